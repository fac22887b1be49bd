"""Two derivations of one JSON value held against each other."""

from __future__ import annotations

from collections.abc import Iterator

from finskillbench.scoring.values import is_array, is_object, json_equal, number

CLOSE = 1e-7
"""Relative difference of two derivations of one number."""


def same(stated: object, again: object) -> bool:
    """Whether two JSON values differ by rounding only."""
    return next(differences(stated, again, ""), None) is None


def differences(stated: object, again: object, path: str) -> Iterator[str]:
    """Paths at which two JSON values differ by more than rounding; lists are held against each other in their order."""
    if is_object(stated) and is_object(again):
        for key in sorted({*stated, *again}):
            where = f"{path}.{key}"
            yield from differences(stated[key], again[key], where) if key in stated and key in again else (where,)
    elif is_array(stated) and is_array(again):
        if len(stated) != len(again):
            yield path
        for place, (one, other) in enumerate(zip(stated, again, strict=False)):
            yield from differences(one, other, f"{path}[{place}]")
    elif (first := number(stated)) is None or (second := number(again)) is None:
        if not json_equal(stated, again):
            yield path
    elif abs(first - second) > CLOSE * abs(second):
        yield path
