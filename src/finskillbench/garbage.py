"""Settings of Python's cyclic garbage collector for allocation-heavy work."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

GC_THRESHOLD = 1_000_000
"""Allocation threshold; the default of 700 took a tenth of a build's time."""


@contextmanager
def relaxed_gc() -> Generator[None]:
    """Raise the collector's threshold to `GC_THRESHOLD` within the context."""
    before = gc.get_threshold()
    gc.set_threshold(GC_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def frozen() -> Generator[None]:
    """Exclude existing objects from collection within the context; a loaded edition is large and permanent."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
