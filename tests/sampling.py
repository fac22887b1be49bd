"""How much a test run tries: a sample of large pools, or all and the longest tests where it is thorough."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")
THOROUGH = bool(os.environ.get("FINSKILLBENCH_THOROUGH"))

WHERE_THOROUGH = "takes long; continuous integration runs it, with FINSKILLBENCH_THOROUGH=1"
"""Why an ordinary run leaves a test out."""
thorough = pytest.mark.skipif(not THOROUGH, reason=WHERE_THOROUGH)
"""Marks a test that only a thorough run has, since what it shows is seen in part by others."""


def sampled(items: Iterable[T], one_in: int) -> list[T]:
    """Every so-manieth item, the first among them; all of them in a thorough run."""
    return list(items)[:: 1 if THOROUGH else one_in]


def examples(count: int) -> int:
    """How many examples Hypothesis draws: a quarter of them, ten at the least; all of them in a thorough run.

    They are other ones in every run.
    """
    return count if THOROUGH else min(count, max(10, count // 4))
