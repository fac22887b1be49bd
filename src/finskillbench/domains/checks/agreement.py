"""Two derivations of one answer held against each other, leaf by leaf."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from finskillbench.episode import JsonObject
from finskillbench.findings import Findings
from finskillbench.scoring.values import is_object

AGREEMENT = 1e-9
"""Largest difference of two derivations of one number, relative to the larger of the number and 1."""
_PLAIN = re.compile(r'[^.\[\]"]+')
"""A key that a path can hold as it is; any other is quoted, so that different places never have one path."""


class Leaf(NamedTuple):
    """One leaf of two answers.

    difference : of two numbers, relative to the larger of the first and 1; otherwise 0 where the two are equal and
        infinite where they are not.
    absent : which of the two answers lacks it, "first" or "second"; empty where both have it.
    """

    path: str
    first: object
    second: object
    difference: float
    absent: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the two differ by rounding only."""
        return self.difference <= AGREEMENT


def leaf_by_leaf(first: JsonObject, second: JsonObject) -> list[Leaf]:
    """Every leaf of two answers: those that one of them lacks by path, then the others in the order of the first.

    Entries of a list that begin with a name go by it where all names are different, so that ties may stand in either
    order; other entries go by their place.
    """
    return differences(leaves_of(first), leaves_of(second))


def leaves_of(answer: JsonObject) -> dict[str, object]:
    """Path to leaf of an answer, for one that is held against many."""
    found: dict[str, object] = {}
    _collect(answer, "", found)
    return found


def differences(left: Mapping[str, object], right: Mapping[str, object]) -> list[Leaf]:
    """As `leaf_by_leaf`, of the leaves of two answers."""
    lacking = [
        Leaf(path, left.get(path), right.get(path), math.inf, "second" if path in left else "first")
        for path in sorted(left.keys() ^ right.keys())
    ]
    both = [Leaf(path, left[path], right[path], _difference(left[path], right[path])) for path in left if path in right]
    return lacking + both


def with_leaves(answer: JsonObject, values: Mapping[str, object]) -> dict[str, Any]:
    """A copy of an answer in which the leaves at some paths have other values; paths that it lacks are passed over."""
    return {key: _replaced(item, quoted(key), values) for key, item in answer.items()}


def compare(leaves: Iterable[Leaf], where: str, findings: Findings) -> None:
    """Add a defect for every leaf that a label or its second derivation lacks, or in which they differ.

    Keeps the widest difference as a figure.
    """
    for leaf in leaves:
        if leaf.absent:
            only = "the label" if leaf.absent == "second" else "the second derivation"
            findings.fail(where, f"{leaf.path} is in {only} only")
            continue
        if _is_number(leaf.first) and _is_number(leaf.second):
            findings.widest("greatest_difference", leaf.difference)
        stated, again = _shown(leaf.first), _shown(leaf.second)
        findings.expect(leaf.agrees, where, f"{leaf.path} is {stated} in the label and {again} derived again")


def _difference(first: object, second: object) -> float:
    if _is_number(first) and _is_number(second):
        stated, again = cast(float, first), cast(float, second)
        difference = abs(stated - again) / max(1.0, abs(stated))
        return difference if math.isfinite(difference) else math.inf
    return 0.0 if first == second and isinstance(first, bool) == isinstance(second, bool) else math.inf


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else repr(value)


def _collect(value: object, path: str, found: dict[str, object]) -> None:
    """Add path to leaf, `.key` into an object and `[name or place]` into a list; an empty one of either is a leaf."""
    if is_object(value) and value:
        for key, item in value.items():
            _collect(item, f"{path}.{quoted(key)}" if path else quoted(key), found)
    elif isinstance(value, list | tuple) and value:
        entries = cast("Sequence[object]", value)
        names = entry_names(entries)
        for place, item in enumerate(entries):
            name = place if names is None else quoted(names[place])
            _collect(item, f"{path}[{name}]", found)
    else:
        found[path] = list(cast("tuple[object]", value)) if isinstance(value, tuple) else value


def _replaced(value: object, path: str, values: Mapping[str, object]) -> object:
    if is_object(value) and value:
        return {key: _replaced(item, f"{path}.{quoted(key)}", values) for key, item in value.items()}
    if isinstance(value, list | tuple) and value:
        entries = cast("Sequence[object]", value)
        names = entry_names(entries)
        places = range(len(entries)) if names is None else map(quoted, names)
        return [_replaced(item, f"{path}[{place}]", values) for place, item in zip(places, entries, strict=True)]
    return values[path] if path in values else cast(object, value)


@lru_cache(maxsize=2**12)  # the same keys and tickers come again and again
def quoted(key: str) -> str:
    """A key as a path holds it."""
    return key if _PLAIN.fullmatch(key) else json.dumps(key)


def entry_names(entries: Sequence[object]) -> list[str] | None:
    """The text that each entry of a list begins with; None unless all are objects that begin with different texts."""
    names = [next(iter(entry.values()), None) if is_object(entry) else None for entry in entries]
    texts = [name for name in names if isinstance(name, str)]
    return texts if len(set(texts)) == len(entries) else None
