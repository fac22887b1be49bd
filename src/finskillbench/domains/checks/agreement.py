"""Comparison of two answers leaf by leaf."""

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
"""Maximum difference of two derivations of a number, relative to the larger of the number and 1."""
_PLAIN = re.compile(r'[^.\[\]"]+')
"""Keys that need no quotes in a path; quoting the others keeps paths unique."""


class Leaf(NamedTuple):
    """One leaf of two answers.

    difference : relative to max(1, |left|) for numbers; otherwise 0 if equal and infinite if not.
    absent : answer without this leaf, "left" or "right"; empty if both have it.
    """

    path: str
    left: object
    right: object
    difference: float
    absent: str = ""

    @property
    def agrees(self) -> bool:
        """True if both differ by rounding only."""
        return self.difference <= AGREEMENT


def leaf_by_leaf(left: JsonObject, right: JsonObject) -> list[Leaf]:
    """Return the leaves of two answers: unmatched ones by path, then the others in the order of `left`.

    List entries that begin with distinct names are matched by name, others by position.
    """
    return compare_leaves(leaves_of(left), leaves_of(right))


def leaves_of(answer: JsonObject) -> dict[str, object]:
    """Return path to leaf of an answer, to compare it with many others."""
    found: dict[str, object] = {}
    _collect(answer, "", found)
    return found


def compare_leaves(left: Mapping[str, object], right: Mapping[str, object]) -> list[Leaf]:
    """Compare two answers given as leaves, like `leaf_by_leaf`."""
    lacking = [
        Leaf(path, left.get(path), right.get(path), math.inf, "right" if path in left else "left")
        for path in sorted(left.keys() ^ right.keys())
    ]
    both = [Leaf(path, left[path], right[path], _difference(left[path], right[path])) for path in left if path in right]
    return lacking + both


def with_leaves(answer: JsonObject, values: Mapping[str, object]) -> dict[str, Any]:
    """Return a copy of an answer with new values at some paths; ignore paths it lacks."""
    return {key: _replaced(item, quoted(key), values) for key, item in answer.items()}


def record_differences(leaves: Iterable[Leaf], where: str, findings: Findings) -> None:
    """Add a defect for every leaf that is unmatched or differs, and record the largest difference."""
    for leaf in leaves:
        if leaf.absent:
            only = "the label" if leaf.absent == "right" else "the independent derivation"
            findings.fail(where, f"{leaf.path} is in {only} only")
            continue
        if _is_number(leaf.left) and _is_number(leaf.right):
            findings.widest("greatest_difference", leaf.difference)
        stated, again = _shown(leaf.left), _shown(leaf.right)
        findings.expect(leaf.agrees, where, f"{leaf.path} is {stated} in the label and {again} derived again")


def _difference(left: object, right: object) -> float:
    if _is_number(left) and _is_number(right):
        stated, again = cast(float, left), cast(float, right)
        difference = abs(stated - again) / max(1.0, abs(stated))
        return difference if math.isfinite(difference) else math.inf
    return 0.0 if left == right and isinstance(left, bool) == isinstance(right, bool) else math.inf


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else repr(value)


def _collect(value: object, path: str, found: dict[str, object]) -> None:
    """Add path to leaf, with `.key` for objects and `[name or position]` for lists; empty containers are leaves."""
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


@lru_cache(maxsize=2**12)  # keys and tickers repeat
def quoted(key: str) -> str:
    return key if _PLAIN.fullmatch(key) else json.dumps(key)


def entry_names(entries: Sequence[object]) -> list[str] | None:
    """Return the first value of each list entry; None unless these are distinct texts in objects."""
    names = [next(iter(entry.values()), None) if is_object(entry) else None for entry in entries]
    texts = [name for name in names if isinstance(name, str)]
    return texts if len(set(texts)) == len(entries) else None
