"""How much work a label takes: how many of its figures filings do not simply state.

A figure needs a decision where filings say several things under the tags of its metric for periods that end on its day
(the quarter and the year to date, a total and its parts, a figure and its restatement), or where none of them is it and
it has to be computed. Difficulty is that count, in bounds of the catalog.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from finskillbench.engines.accounting.statements import Statement
from finskillbench.sources.edgar.metrics import METRICS

Said = Mapping[tuple[date, str], Iterable[float]]
"""(last day of a period, tag) -> what filings say of periods that end then."""

_LEVELS = ("easy", "medium", "hard")


def decisions(said: Said, statements: Iterable[Statement], metrics: Iterable[str]) -> int:
    """How many of the known figures of some metrics need a decision."""
    names = tuple(metrics)
    return sum(
        _told(said, statement.end, name) != {statement.values[name]}
        for statement in statements
        if statement.end is not None
        for name in names
        if name in statement.values
    )


def difficulty(count: int, bounds: Sequence[int]) -> str:
    """easy up to the first bound, medium up to the second, else hard."""
    return _LEVELS[bisect_left(bounds, count)]


def _told(said: Said, end: date, metric: str) -> set[float]:
    return {value for alias in METRICS[metric].aliases for value in said.get((end, alias.tag), ())}
