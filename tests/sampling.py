"""How much of a large pool a test tries: a sample of it, or all where `FINSKILLBENCH_THOROUGH` is set."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")
THOROUGH = bool(os.environ.get("FINSKILLBENCH_THOROUGH"))


def sampled(items: Iterable[T], one_in: int) -> list[T]:
    """Every so-manieth item, the first among them; all of them in a thorough run."""
    return list(items)[:: 1 if THOROUGH else one_in]
