"""Points lost, part by part: what each part of an answer costs, put alone into the expected answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from finskillbench.domains.checks.agreement import Leaf, entry_names, quoted
from finskillbench.runs.postprocess.failures.attempt import Known
from finskillbench.scoring.values import is_array, is_object

LEAST = 1e-9
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
    part: str, expected: Any, given: Any, whole: Callable[[Any], Any], lost: Callable[[Any], float]
) -> Iterator[Loss]:
    """The losses at one node; `whole` is the expected answer with another value at this node."""
    points = lost(whole(given))
    if points <= LEAST:
        return
    smaller: list[Loss] = []
    for name, one, other, put in _children(part, expected, given):
        smaller += _losses(name, one, other, lambda value, put=put: whole(put(value)), lost)
    yield from smaller or [Loss(part, points)]


_Child = tuple[str, Any, Any, Callable[[Any], Any]]


def _children(part: str, expected: Any, given: Any) -> Iterator[_Child]:
    """The parts of a node that differ: name, both values, and how another value is put into the expected node."""
    if is_object(expected) and is_object(given) and not all(map(str.isupper, expected)):  # tickers are one part
        for key in dict.fromkeys((*expected, *given)):
            one, other = expected.get(key, _ABSENT), given.get(key, _ABSENT)
            if one is _ABSENT or other is _ABSENT or one != other:
                name = f"{part}.{quoted(key)}" if part else quoted(key)
                yield name, one, other, lambda value, key=key: _with(expected, key, value)
    elif is_array(expected) and is_array(given):
        yield from _fields(f"{part}[]", expected, given)


def _fields(part: str, expected: Sequence[Any], given: Sequence[Any]) -> Iterator[_Child]:
    """The fields of two lists of objects with the same names; none where they name others."""
    names, others = entry_names(expected), entry_names(given)
    if names is None or others is None or set(names) != set(others):
        return
    by_name = dict(zip(others, given, strict=True))
    entries = [(entry, by_name[name]) for name, entry in zip(names, expected, strict=True)]
    for field in dict.fromkeys(key for pair in entries for entry in pair for key in entry):
        one, other = ([entry.get(field, _ABSENT) for entry in side] for side in zip(*entries, strict=True))
        if one != other:

            def put(values: Any, field: str = field) -> list[Any]:
                return [_with(entry, field, value) for entry, value in zip(expected, values, strict=True)]

            yield f"{part}.{quoted(field)}", None, other, put


def _with(node: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy of an object with another value under a key, or without the key."""
    if value is not _ABSENT:
        return {**node, key: value}
    return {name: each for name, each in node.items() if name != key}
