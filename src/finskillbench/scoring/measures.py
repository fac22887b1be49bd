"""The measures that several scorers share: distances, ramps, overlaps and discounted gains.

Inputs are finite (see `values`), yet differences and sums of doubles may still overflow. Every function is written so
that an overflow becomes a clean worst case (infinite distance, zero score) and never NaN.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set

from finskillbench.sums import summed


def clip(value: float) -> float:
    """Return max(0, min(1, value))."""
    return max(0.0, min(1.0, value))


def l2(predicted: Mapping[str, float], expected: Mapping[str, float]) -> float:
    """Euclidean distance over the union of keys, an absent key being 0; infinite on overflow."""
    return math.hypot(*_differences(predicted, expected))


def mean_absolute_error(predicted: Mapping[str, float], expected: Mapping[str, float]) -> float:
    """Mean absolute difference over the union of keys, an absent key being 0; 0 for two empty mappings."""
    differences = _differences(predicted, expected)
    return summed(differences) / len(differences) if differences else 0.0


def _differences(predicted: Mapping[str, float], expected: Mapping[str, float]) -> list[float]:
    common = [abs(predicted.get(key, 0.0) - value) for key, value in expected.items()]
    return common + [abs(value) for key, value in predicted.items() if key not in expected]


def relative_error(predicted: float, expected: float, floor: float) -> float:
    """Absolute difference over max(|expected|, floor)."""
    return abs(predicted - expected) / max(abs(expected), floor)


def ramp(predicted: float | None, expected: float, *, tolerance: float = 1.0, floor: float = 1e-8) -> float:
    """1 at the expected value, falling linearly to 0 at a relative error of `tolerance`; 0 where absent."""
    if predicted is None:
        return 0.0
    return 1.0 - min(1.0, relative_error(predicted, expected, floor) / tolerance)


def closeness(
    given: float | None, expected: float, *, full: float, full_floor: float, zero: float, zero_floor: float
) -> float:
    """1 up to an error of max(full |expected|, full_floor), falling linearly to 0 at max(zero |expected|, zero_floor).

    0 where absent. `full` and `zero` are relative errors, the floors absolute ones in the number's own unit.
    """
    if given is None:
        return 0.0
    inner, outer = max(full * abs(expected), full_floor), max(zero * abs(expected), zero_floor)
    return clip((outer - abs(given - expected)) / (outer - inner))


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; 0 for an empty sequence, a share of nothing earning nothing."""
    return summed(values) / len(values) if values else 0.0


def share(part: int, whole: int) -> float:
    """`part / whole`, 0 where there is no whole."""
    return part / whole if whole else 0.0


def overlap(predicted: Iterable[Hashable], expected: Iterable[Hashable]) -> int:
    """Size of the multiset intersection."""
    return (Counter(predicted) & Counter(expected)).total()


def multiset_f1(predicted: Sequence[Hashable], expected: Sequence[Hashable]) -> float:
    """F1 = 2|P∩E| / (|P| + |E|) of two multisets; 1 if both are empty."""
    total = len(predicted) + len(expected)
    return 2 * overlap(predicted, expected) / total if total else 1.0


def set_f1(predicted: Set[Hashable], expected: Set[Hashable]) -> float:
    """F1 = 2|P∩E| / (|P| + |E|) of two sets; 1 if both are empty."""
    total = len(predicted) + len(expected)
    return 2 * len(predicted & expected) / total if total else 1.0


def dcg(relevances: Iterable[float]) -> float:
    """Discounted cumulative gain: Σ rel_i / log2(i + 2), i from 0. Source: Järvelin & Kekäläinen (2002)."""
    return summed(relevance / math.log2(place + 2) for place, relevance in enumerate(relevances))
