"""Typed values of parsed JSON, and the measures that scorers share.

A value of the wrong JSON type counts as absent: None or an empty container (scoring specification, rule 3). No function
raises on any JSON value, however deep.

Inputs are finite, yet differences and sums of doubles may overflow. Overflow gives the worst case (infinite distance,
zero score), never NaN.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, TypeGuard

from finskillbench.sums import exact_sum


def clip(value: float) -> float:
    """Clip to [0, 1]."""
    return max(0.0, min(1.0, value))


def l2(predicted: Mapping[str, float], expected: Mapping[str, float]) -> float:
    """Return the Euclidean distance over the union of keys, absent keys being 0; infinite on overflow."""
    return math.hypot(*_differences(predicted, expected))


def mean_absolute_error(predicted: Mapping[str, float], expected: Mapping[str, float]) -> float:
    """Return the mean absolute difference over the union of keys, absent keys being 0; 0 for empty mappings."""
    differences = _differences(predicted, expected)
    return exact_sum(differences) / len(differences) if differences else 0.0


def _differences(predicted: Mapping[str, float], expected: Mapping[str, float]) -> list[float]:
    common = [abs(predicted.get(key, 0.0) - value) for key, value in expected.items()]
    return common + [abs(value) for key, value in predicted.items() if key not in expected]


def relative_error(predicted: float, expected: float, floor: float) -> float:
    """Return |predicted - expected| / max(|expected|, floor)."""
    return abs(predicted - expected) / max(abs(expected), floor)


def ramp(predicted: float | None, expected: float, *, tolerance: float = 1.0, floor: float = 1e-8) -> float:
    """Fall linearly from 1 at the expected value to 0 at a relative error of `tolerance`; 0 if absent."""
    if predicted is None:
        return 0.0
    return 1.0 - min(1.0, relative_error(predicted, expected, floor) / tolerance)


def closeness(
    predicted: float | None, expected: float, *, full: float, full_floor: float, zero: float, zero_floor: float
) -> float:
    """Return 1 up to an error of max(full |expected|, full_floor), then fall to 0 at max(zero |expected|, zero_floor).

    0 if absent. `full` and `zero` are relative errors, the floors absolute ones in the number's unit.
    """
    if predicted is None:
        return 0.0
    inner, outer = max(full * abs(expected), full_floor), max(zero * abs(expected), zero_floor)
    return clip((outer - abs(predicted - expected)) / (outer - inner))


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean, 0 for an empty sequence."""
    return exact_sum(values) / len(values) if values else 0.0


def share(part: int, whole: int) -> float:
    """Return `part / whole`, 0 if `whole` is 0."""
    return part / whole if whole else 0.0


def overlap(predicted: Iterable[Hashable], expected: Iterable[Hashable]) -> int:
    """Return the size of the multiset intersection."""
    return (Counter(predicted) & Counter(expected)).total()


def multiset_f1(predicted: Sequence[Hashable], expected: Sequence[Hashable]) -> float:
    """Return F1 = 2|P∩E| / (|P| + |E|) of two multisets; 1 if both are empty."""
    total = len(predicted) + len(expected)
    return 2 * overlap(predicted, expected) / total if total else 1.0


def set_f1(predicted: Set[Hashable], expected: Set[Hashable]) -> float:
    """Return F1 = 2|P∩E| / (|P| + |E|) of two sets; 1 if both are empty."""
    total = len(predicted) + len(expected)
    return 2 * len(predicted & expected) / total if total else 1.0


def dcg(relevances: Iterable[float]) -> float:
    """Return Σ rel_i / log2(i + 2), i from 0. Source: Järvelin & Kekäläinen (2002)."""
    return exact_sum(relevance / math.log2(place + 2) for place, relevance in enumerate(relevances))


_NO_OBJECTS = frozenset({str, float, int, bool, list, type(None)})
"""Fast path: the check for `Mapping` is slow."""


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Test for a JSON object."""
    return type(value) not in _NO_OBJECTS and isinstance(value, (dict, Mapping))


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Test for a JSON array."""
    return isinstance(value, list)


def as_number(value: object) -> float | None:
    """Return a JSON number as a finite double; None for booleans, numeric strings and the rest."""
    if type(value) is float:  # the common case
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def as_boolean(value: object) -> bool | None:
    """Return a JSON boolean, else None."""
    return value if isinstance(value, bool) else None


def as_text(value: object) -> str | None:
    """Return a JSON string, else None."""
    return value if isinstance(value, str) else None


def as_object(value: object) -> Mapping[str, Any]:
    """Return a JSON object, else an empty one."""
    return value if is_object(value) else {}


def as_array(value: object) -> list[Any]:
    """Return a JSON array, else an empty one."""
    return value if is_array(value) else []


def objects(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a JSON array in order; other entries are dropped."""
    return [item for item in as_array(value) if type(item) not in _NO_OBJECTS and is_object(item)]


def numbers(value: object) -> dict[str, float]:
    """Return the numeric entries of a JSON object."""
    return {key: amount for key, item in as_object(value).items() if (amount := as_number(item)) is not None}


def first_numbers(source: Mapping[str, Any], *keys: str) -> dict[str, float]:
    """Return `numbers` of the first key that has any, else an empty dict (aliases of one field)."""
    for key in keys:
        found = numbers(source.get(key))
        if found:
            return found
    return {}


def keyed_numbers(value: object, key: str, field: str) -> dict[str, float]:
    """Convert an array of `{key: name, field: number}` to name -> number; the last duplicate counts."""
    result: dict[str, float] = {}
    for item in objects(value):
        name, amount = as_text(item.get(key)), as_number(item.get(field))
        if name is not None and amount is not None:
            result[name] = amount
    return result


def parameter(verification: Mapping[str, Any], key: str, default: float, *, positive: bool = True) -> float:
    """Return a verification number, or the default if missing, negative, or 0 where `positive`."""
    value = as_number(verification.get(key))
    if value is None or value < 0 or (positive and value == 0):
        return default
    return value


def weighted_score(
    parts: Mapping[str, float], weights: Mapping[str, tuple[str, float]], verification: Mapping[str, Any]
) -> float:
    """Sum score parts with weights by part (verification key, default), clipped to [0, 1]."""
    total = exact_sum(
        parameter(verification, key, default, positive=False) * parts[part] for part, (key, default) in weights.items()
    )
    return max(0.0, min(1.0, total))


def json_equal(left: object, right: object) -> bool:
    """Compare two JSON values: 1 equals 1.0, true never equals 1. Iterative, so depth cannot overflow the stack."""
    pending: list[tuple[object, object]] = [(left, right)]
    while pending:
        a, b = pending.pop()
        if is_object(a) and is_object(b):
            if a.keys() != b.keys():
                return False
            pending.extend((a[key], b[key]) for key in a)
        elif is_array(a) and is_array(b):
            if len(a) != len(b):
                return False
            pending.extend(zip(a, b, strict=True))
        elif _leaf_type(a) != _leaf_type(b) or a != b:
            return False
    return True


def _leaf_type(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, (int, float)) else type(value).__name__
