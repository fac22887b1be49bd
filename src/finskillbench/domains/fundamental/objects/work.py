"""How much work a label takes: how many of its figures filings do not simply state.

A figure needs a decision where filings say several things under the tags of its metric for periods that end on its day
(the quarter and the year to date, a total and its parts, a figure and its restatement), or where none of them is it and
it has to be computed. Difficulty is that count, in bounds of the catalog.

Labels that an analyst would sign: no figure of them comes from a denominator near zero.

A gross margin of a thousandth makes of an index of Beneish's model, and so of the M-score, anything at all; a change of
revenue by a thousandth is explained a hundred times over by every segment. The arithmetic is right and the figure means
nothing: data terminals print "NM". Such a label is no episode.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import product
from types import MappingProxyType

from finskillbench.engines.accounting.quality import beneish
from finskillbench.engines.accounting.statements import Statement
from finskillbench.scoring.values import is_array, is_object, number
from finskillbench.sources.edgar.numerals import METRICS

LARGEST: Mapping[str, float] = MappingProxyType(
    {
        "operating_margin": 1.0,
        "beneish_m_score": 10.0,
        "income_quality_ratio": 20.0,
        "accruals_ratio": 1.0,
        "contribution_pct": 1000.0,
        "delta_pp": 100.0,
    }
)
"""Figure of an answer -> the largest size that means something, in its own unit."""
_TENFOLD = 10.0
"""An index, or growth, beyond it in either direction compares with next to nothing."""


def beyond(answer: object) -> list[str]:
    """What is said of the figures of an answer that are too large to mean something."""
    if is_array(answer):
        return [found for item in answer for found in beyond(item)]
    if not is_object(answer):
        return []
    found = [one for value in answer.values() for one in beyond(value)]
    for name, most in LARGEST.items():
        size = number(answer.get(name))
        if size is not None and abs(size) > most:
            found.append(f"{name} {size:.6g} means nothing beyond {most:g}")
    return found


def meaningful(answer: Mapping[str, object], *statements: Statement) -> bool:
    """Whether every figure of a label means something, and revenue is there to measure by.

    statements : those that the label is made of; two of them are compared.
    """
    revenues = [revenue for one in statements if (revenue := one.get("revenue")) is not None]
    return (
        all(revenue > 0 for revenue in revenues)
        and max(revenues, default=0.0) <= _TENFOLD * min(revenues, default=0.0)
        and not beyond(answer)
    )


def indices_meaningful(now: Statement, before: Statement) -> bool:
    """Whether every index of a known M-score compares figures above zero, and none with next to nothing."""
    found = beneish(now, before)
    if found.m_score is None:
        return True
    indices = [value for name, value in found.ratios.items() if name != "TATA"]
    return now.values["gross_profit"] > 0 and all(
        value is not None and 1 / _TENFOLD <= value <= _TENFOLD for value in indices
    )


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
