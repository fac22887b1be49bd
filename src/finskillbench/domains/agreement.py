"""Two derivations of one answer held against each other, leaf by leaf."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from finskillbench.episode import JsonObject
from finskillbench.findings import Findings

AGREEMENT = 1e-9
"""Largest difference of two derivations of one number, relative to the larger of the number and 1."""


def compare(label: JsonObject, derived: JsonObject, where: str, findings: Findings) -> None:
    """Add a defect for every leaf that is in one answer only or differs; keep the widest difference as a figure."""
    left, right = dict(_leaves(label)), dict(_leaves(derived))
    for path in sorted(left.keys() ^ right.keys()):
        findings.fail(where, f"{path} is in {'the label' if path in left else 'the second derivation'} only")
    for path in left.keys() & right.keys():
        stated, again = left[path], right[path]
        if _is_number(stated) and _is_number(again):
            apart = abs(stated - again) / max(1.0, abs(stated))
            findings.widest("greatest_difference", apart if math.isfinite(apart) else math.inf)
            agree = apart <= AGREEMENT
        else:
            agree = stated == again and isinstance(stated, bool) == isinstance(again, bool)
        findings.expect(agree, where, f"{path} is {_shown(stated)} in the label and {_shown(again)} derived again")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else repr(value)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path to leaf; an empty object or list is a leaf, so that its absence shows."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and value:
        for place, item in enumerate(value):
            yield from _leaves(item, f"{path}[{place}]")
    else:
        yield path, list(value) if isinstance(value, tuple) else value
