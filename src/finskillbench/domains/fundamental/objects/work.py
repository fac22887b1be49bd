"""How much work a label takes: how many of its figures filings do not simply state.

A figure needs a decision where filings say several things under the tags of its metric for periods that end on its day
(the quarter and the year to date, a total and its parts, a figure and its restatement), or where none of them is it and
it has to be computed. Difficulty is that count, in bounds of the catalog.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import product

from finskillbench.engines.accounting.statements import Statement
from finskillbench.sources.edgar.numerals import METRICS

Said = Mapping[tuple[date, str], Iterable[float]]
"""(last day of a period, tag) -> what filings say of periods that end then."""

_COSTS = "CostsAndExpenses"
_TIES = 0.005
"""Share of revenue by which sums may miss: what is rounded, and small items beside the costs."""
_OF_SEGMENTS = ("DE", "HON")
"""Companies known for it where filings with all costs are not at hand, see `of_segments`: Deere's 9,039 M of 2024
(0001558370-24-016169) is the profit of its four segments, so is Honeywell's 8,699 M (0000773840-25-000010)."""
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


def of_segments(said: Said, statement: Statement) -> bool:
    """Whether operating income is filed as a total of segments rather than as a line of the income statement.

    The Walt Disney Company does: revenue less all costs and expenses is neither its operating income nor its income
    before taxes, since segments do not bear what their head office, restructuring and interest cost.
    """
    revenue, income = statement.get("revenue"), statement.get("operating_income")
    if statement.symbol in _OF_SEGMENTS:
        return income is not None
    if (
        statement.end is None
        or revenue is None
        or income is None
        or revenue not in _told(said, statement.end, "revenue")
    ):
        return False
    costs = set(said.get((statement.end, _COSTS), ()))
    revenues = _told(said, statement.end, "revenue")  # of the quarter and of the year to date, as costs are
    totals = {income, *_told(said, statement.end, "operating_income"), *_told(said, statement.end, "pretax_income")}
    return bool(costs) and all(
        abs(revenue - cost - total) > _TIES * abs(revenue) for revenue, cost, total in product(revenues, costs, totals)
    )


def difficulty(count: int, bounds: Sequence[int]) -> str:
    """easy up to the first bound, medium up to the second, else hard."""
    return _LEVELS[bisect_left(bounds, count)]


def _told(said: Said, end: date, metric: str) -> set[float]:
    parts = [term for fallback in METRICS[metric].fallbacks for term in fallback.terms if METRICS[term].part]
    aliases = [alias for name in (metric, *parts) for alias in METRICS[name].aliases]
    return {value for alias in aliases for value in said.get((end, alias.tag), ())}
