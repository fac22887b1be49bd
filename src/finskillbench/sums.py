"""Sums of floats that no order and no Python changes by a digit: the builtin `sum` compensates them since Python 3.12.

`math.fsum` is such a sum of what is known to be of ordinary size; `summed` is one of what comes from outside. That the
builtin adds whole numbers alone is checked with the types (`__builtins__.pyi`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from operator import add


def exact_sum(values: Iterable[float]) -> float:
    """The sum, rounded once; infinite or NaN where additions one by one are, which `math.fsum` refuses.

    >>> summed([0.1] * 10), summed([1e308, 1e308]), summed([])
    (1.0, inf, 0.0)
    """
    terms = tuple(values)
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):  # past the largest double, or infinities of both signs
        return reduce(add, terms, 0.0)
