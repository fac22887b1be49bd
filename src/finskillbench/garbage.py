"""Seldom looking for cyclic garbage, where much is made and little of it refers back to itself."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

SELDOM = 1_000_000
"""New objects after which a process looks for garbage; Python's own 700 made it a tenth of a build's time."""


@contextmanager
def relaxed_gc() -> Generator[None]:
    """Look for cyclic garbage after `SELDOM` new objects; each time all that the process holds may be looked at."""
    before = gc.get_threshold()
    gc.set_threshold(SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def frozen() -> Generator[None]:
    """Leave what the process holds out of the search for cyclic garbage: an edition is large and lives on."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
