"""Sums of floats that do not depend on the order or the Python version.

The builtin `sum` compensates rounding since Python 3.12. Use `math.fsum` for values of ordinary size and `exact_sum`
for outside data. `__builtins__.pyi` makes the type checker restrict the builtin to integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from operator import add


def exact_sum(values: Iterable[float]) -> float:
    """Return the sum, rounded once; infinite or NaN where `math.fsum` would raise.

    >>> exact_sum([0.1] * 10), exact_sum([1e308, 1e308]), exact_sum([])
    (1.0, inf, 0.0)
    """
    addends = tuple(values)
    try:
        return math.fsum(addends)
    except (OverflowError, ValueError):  # beyond the largest double, or infinities of both signs
        return reduce(add, addends, 0.0)
