"""Points lost by each part of an answer, inserted alone into the expected answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from finskillbench.domains.checks.agreement import Leaf, entry_names, quoted
from finskillbench.runs.postprocess.failures.attempt import LabelledTask
from finskillbench.scoring.values import is_array, is_object

MIN_POINTS = 1e-9
"""Smaller losses count as zero."""
_ENTRY = re.compile(r'\[(?:"(?:[^"\\]|\\.)*"|[^\]]*)\]')
_ABSENT = object()


class Loss(NamedTuple):
    """Path of a part, with `[]` for all entries of a list, and the points that it alone costs."""

    part: str
    points: float

    def covers(self, leaf: Leaf) -> bool:
        rest = _ENTRY.sub("[]", leaf.path).removeprefix(self.part)
        return not self.part or (rest != leaf.path and rest[:1] in ("", ".", "[")) or leaf.path == self.part


def points_lost(task: LabelledTask, answer: Mapping[str, Any]) -> list[Loss]:
    """Return the smallest parts of an answer that cost points alone, the most expensive first.

    Parts that cost points only together are one loss; its path is empty if they are the whole answer.
    """
    best = task.points(task.truth.expected_output)

    def lost(answer: Any) -> float:
        return best - task.points(answer)

    found = _losses("", task.truth.expected_output, answer, lambda answer: answer, lost)
    return sorted(found, key=lambda loss: -loss.points)


def _losses(
    part: str, expected: Any, submitted: Any, whole: Callable[[Any], Any], lost: Callable[[Any], float]
) -> Iterator[Loss]:
    """Yield losses below one node; `whole` inserts a value for this node into the expected answer."""
    points = lost(whole(submitted))
    if points <= MIN_POINTS:
        return
    smaller: list[Loss] = []
    for name, one, other, put in _children(part, expected, submitted):
        smaller += _losses(name, one, other, lambda value, put=put: whole(put(value)), lost)
    yield from smaller or [Loss(part, points)]


_Child = tuple[str, Any, Any, Callable[[Any], Any]]


def _children(part: str, expected: Any, submitted: Any) -> Iterator[_Child]:
    """Yield the differing parts of a node: name, both values, and a function that replaces the expected value."""
    if is_object(expected) and is_object(submitted) and not all(map(str.isupper, expected)):  # tickers are one part
        for key in dict.fromkeys((*expected, *submitted)):
            expected_value, submitted_value = expected.get(key, _ABSENT), submitted.get(key, _ABSENT)
            if expected_value is _ABSENT or submitted_value is _ABSENT or expected_value != submitted_value:
                name = f"{part}.{quoted(key)}" if part else quoted(key)
                yield name, expected_value, submitted_value, lambda value, key=key: _replaced(expected, key, value)
    elif is_array(expected) and is_array(submitted):
        yield from _fields(f"{part}[]", expected, submitted)


def _fields(part: str, expected: Sequence[Any], submitted: Sequence[Any]) -> Iterator[_Child]:
    """Yield the differing fields of two lists of objects, if both lists have the same names of entries."""
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
    """Copy an object with another value under a key, or without the key."""
    if value is not _ABSENT:
        return {**node, key: value}
    return {name: each for name, each in node.items() if name != key}
