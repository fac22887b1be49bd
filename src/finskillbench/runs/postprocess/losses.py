"""Points lost, part by part: what each part of an answer costs, put alone into the expected answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from finskillbench.domains.checks.agreement import Leaf, entry_names, quoted
from finskillbench.runs.postprocess.failures.attempt import Known
from finskillbench.scoring.values import is_array, is_object

MIN_POINTS = 1e-9
"""Fewer points are none."""
_ENTRY = re.compile(r'\[(?:"(?:[^"\\]|\\.)*"|[^\]]*)\]')
_ABSENT = object()


class Loss(NamedTuple):
    """A part by its path, `[]` for all entries of a list, and the points that it costs alone."""

    part: str
    points: float

    def covers(self, leaf: Leaf) -> bool:
        """Return True if a leaf belongs to the part."""
        rest = _ENTRY.sub("[]", leaf.path).removeprefix(self.part)
        return not self.part or (rest != leaf.path and rest[:1] in ("", ".", "[")) or leaf.path == self.part


def points_lost(known: Known, answer: Mapping[str, Any]) -> list[Loss]:
    """The smallest parts of an answer that cost points by themselves, the dearest first.

    Parts that cost points only together are one loss, with an empty path where they are the whole answer.
    """
    best = known.points(known.truth.expected_output)

    def lost(answer: Any) -> float:
        return best - known.points(answer)

    found = _losses("", known.truth.expected_output, answer, lambda answer: answer, lost)
    return sorted(found, key=lambda loss: -loss.points)


def _losses(
    part: str, expected: Any, submitted: Any, whole: Callable[[Any], Any], lost: Callable[[Any], float]
) -> Iterator[Loss]:
    """The losses at one node; `whole` is the expected answer with another value at this node."""
    points = lost(whole(submitted))
    if points <= MIN_POINTS:
        return
    smaller: list[Loss] = []
    for name, one, other, put in _children(part, expected, submitted):
        smaller += _losses(name, one, other, lambda value, put=put: whole(put(value)), lost)
    yield from smaller or [Loss(part, points)]


_Child = tuple[str, Any, Any, Callable[[Any], Any]]


def _children(part: str, expected: Any, submitted: Any) -> Iterator[_Child]:
    """The parts of a node that differ: name, both values, and how another value is put into the expected node."""
    if is_object(expected) and is_object(submitted) and not all(map(str.isupper, expected)):  # tickers are one part
        for key in dict.fromkeys((*expected, *submitted)):
            expected_value, submitted_value = expected.get(key, _ABSENT), submitted.get(key, _ABSENT)
            if expected_value is _ABSENT or submitted_value is _ABSENT or expected_value != submitted_value:
                name = f"{part}.{quoted(key)}" if part else quoted(key)
                yield name, expected_value, submitted_value, lambda value, key=key: _replaced(expected, key, value)
    elif is_array(expected) and is_array(submitted):
        yield from _fields(f"{part}[]", expected, submitted)


def _fields(part: str, expected: Sequence[Any], submitted: Sequence[Any]) -> Iterator[_Child]:
    """The fields of two lists of objects with the same names; none where they name others."""
    names, submitted_names = entry_names(expected), entry_names(submitted)
    if names is None or submitted_names is None or set(names) != set(submitted_names):
        return
    by_name = dict(zip(submitted_names, submitted, strict=True))
    entries = [(entry, by_name[name]) for name, entry in zip(names, expected, strict=True)]
    for field in dict.fromkeys(key for pair in entries for entry in pair for key in entry):
        one, other = ([entry.get(field, _ABSENT) for entry in side] for side in zip(*entries, strict=True))
        if one != other:

            def put(values: Any, field: str = field) -> list[Any]:
                return [_replaced(entry, field, value) for entry, value in zip(expected, values, strict=True)]

            yield f"{part}.{quoted(field)}", None, other, put


def _replaced(node: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy of an object with another value under a key, or without the key."""
    if value is not _ABSENT:
        return {**node, key: value}
    return {name: each for name, each in node.items() if name != key}
