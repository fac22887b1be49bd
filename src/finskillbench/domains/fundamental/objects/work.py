"""Difficulty and plausibility of fundamental labels.

Difficulty counts figures that need a decision: filings state several values for the day, or none that equals it.
Labels with a denominator near zero are meaningless ("NM" on data terminals) and excluded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import product
from types import MappingProxyType

from finskillbench.engines.accounting.quality import beneish
from finskillbench.engines.accounting.statements import Statement
from finskillbench.scoring.values import as_number, is_array, is_object
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
"""Figure -> the largest meaningful size, in its own unit."""
_TENFOLD = 10.0
"""Limit of an index or of growth, in either direction, beyond which the base is too small."""


def oversized_figures(answer: object) -> list[str]:
    """Describe the figures of an answer that are too large to be meaningful."""
    if is_array(answer):
        return [found for item in answer for found in oversized_figures(item)]
    if not is_object(answer):
        return []
    found = [one for value in answer.values() for one in oversized_figures(value)]
    for name, most in LARGEST.items():
        size = as_number(answer.get(name))
        if size is not None and abs(size) > most:
            found.append(f"{name} {size:.6g} is not meaningful beyond {most:g}")
    return found


def meaningful(answer: Mapping[str, object], *statements: Statement) -> bool:
    """Return True if revenues are positive and of similar size, and no figure of the label is oversized."""
    revenues = [revenue for one in statements if (revenue := one.get("revenue")) is not None]
    return (
        all(revenue > 0 for revenue in revenues)
        and max(revenues, default=0.0) <= _TENFOLD * min(revenues, default=0.0)
        and not oversized_figures(answer)
    )


def indices_meaningful(now: Statement, before: Statement) -> bool:
    """Return True if every index of a known M-score compares positive figures of similar size."""
    found = beneish(now, before)
    if found.m_score is None:
        return True
    indices = [value for name, value in found.ratios.items() if name != "TATA"]
    return now.values["gross_profit"] > 0 and all(
        value is not None and 1 / _TENFOLD <= value <= _TENFOLD for value in indices
    )


FiledValues = Mapping[tuple[date, str], Iterable[float]]
"""(last day of a period, tag) -> values filed for periods ending that day."""

_COSTS = "CostsAndExpenses"
_TIES = 0.005
"""Share of revenue by which sums may differ: rounding and small items outside the costs."""
_OF_SEGMENTS = ("DE", "HON")
"""Known companies for which filings with all costs are missing, see `is_segment_total`: Deere's 9,039 M of 2024
(0001558370-24-016169) is the profit of its four segments, so is Honeywell's 8,699 M (0000773840-25-000010).
"""
_LEVELS = ("easy", "medium", "hard")


def count_decisions(filed_values: FiledValues, statements: Iterable[Statement], metrics: Iterable[str]) -> int:
    """Count the known figures of some metrics that need a decision."""
    names = tuple(metrics)
    return sum(
        _values_of_metric(filed_values, statement.end, name) != {statement.values[name]}
        for statement in statements
        if statement.end is not None
        for name in names
        if name in statement.values
    )


def is_segment_total(filed_values: FiledValues, statement: Statement) -> bool:
    """Return True if operating income is filed as a total of segments, not as a line of the income statement.

    The Walt Disney Company does so: revenue less all costs is neither its operating nor its pretax income.
    """
    revenue, income = statement.get("revenue"), statement.get("operating_income")
    if statement.symbol in _OF_SEGMENTS:
        return income is not None
    if (
        statement.end is None
        or revenue is None
        or income is None
        or revenue not in _values_of_metric(filed_values, statement.end, "revenue")
    ):
        return False
    costs = set(filed_values.get((statement.end, _COSTS), ()))
    revenues = _values_of_metric(filed_values, statement.end, "revenue")  # quarter and year to date
    totals = {
        income,
        *_values_of_metric(filed_values, statement.end, "operating_income"),
        *_values_of_metric(filed_values, statement.end, "pretax_income"),
    }
    return bool(costs) and all(
        abs(revenue - cost - total) > _TIES * abs(revenue) for revenue, cost, total in product(revenues, costs, totals)
    )


def difficulty_level(count: int, bounds: Sequence[int]) -> str:
    """Return easy up to the first bound, medium up to the second, else hard."""
    return _LEVELS[bisect_left(bounds, count)]


def _values_of_metric(filed_values: FiledValues, end: date, metric: str) -> set[float]:
    parts = [term for fallback in METRICS[metric].fallbacks for term in fallback.terms if METRICS[term].part]
    aliases = [alias for name in (metric, *parts) for alias in METRICS[name].aliases]
    return {value for alias in aliases for value in filed_values.get((end, alias.tag), ())}
