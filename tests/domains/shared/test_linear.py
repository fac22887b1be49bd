"""Judging is linear in the rows of an answer: twice as many take at most about twice as many calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import orjson
from tests.sampling import sampled

from finskillbench.domains import Subtask
from finskillbench.edition import Edition

FEW = 150


def _calls(run: Callable[[], object]) -> int:
    """How many functions are called, which is the same on every machine."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def _lists(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    """The lists of rows or words in an answer."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _lists(item, (*path, key))
    elif isinstance(value, list) and value:
        yield path, value


def _with(answer: Any, path: tuple[Any, ...], what: Any) -> Any:
    return {**answer, path[0]: _with(answer[path[0]], path[1:], what)} if path else what


def _rows(first: Any, count: int) -> Iterator[list[Any]]:
    """Rows that repeat, and rows that differ in one field by a number or a text."""
    yield [first] * count
    for key in first if isinstance(first, dict) else ():
        yield [{**first, key: place} for place in range(count)]
        yield [{**first, key: f"{place}"} for place in range(count)]
    if not isinstance(first, dict):
        yield [f"{place}" for place in range(count)]


def test_twice_the_rows_take_twice_the_work(subtask: Subtask, synthetic_edition: Edition) -> None:
    episode = synthetic_edition.episodes([subtask.name])[0]
    task_input, truth = synthetic_edition.full_input(episode), synthetic_edition.truth(episode.task_id)
    right = orjson.loads(orjson.dumps(truth.expected_output))
    for path, rows in _lists(right):
        for few, many in sampled(zip(_rows(rows[0], FEW), _rows(rows[0], 2 * FEW), strict=True), 3):
            for profile, score in subtask.scorers.items():
                one, two = (
                    _calls(partial(score, _with(right, path, given), truth, task_input)) for given in (few, many)
                )
                assert two <= 2.2 * one, (path, profile, few[1], one, two)
