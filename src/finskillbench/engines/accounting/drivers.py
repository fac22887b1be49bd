"""What moved revenue and margins from one quarter to the next.

A segment row is a mapping with `axis`, `segment`, `start`, `end`, `filed`, `value` (USD), and optionally `symbol` (of
one company without it) and `accession`; dates are `datetime.date` or ISO strings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import date
from types import MappingProxyType
from typing import Any

from finskillbench.engines.accounting.periods import Duration, classify
from finskillbench.engines.accounting.statements import Row, Statement, less, ratio, read_row, rows_of, text_in

AXES = ("product_segment", "geographic_segment")
"""In the order of preference; one of them explains the change."""
SEGMENT_TOLERANCE = 0.01
"""Segments add up to revenue within this fraction of it."""
TOP_SEGMENTS = 5
LEAST_DELTA_PP = 0.005
"""A ratio that moved by less, in percentage points, did not move."""

MARGINS: Mapping[str, str] = MappingProxyType({"operating_margin": "operating_income", "gross_margin": "gross_profit"})
EXPENSE_RATIOS: Mapping[str, str] = MappingProxyType(
    {
        "cogs_ratio": "cost_of_revenue",
        "sga_ratio": "sga",
        "rnd_ratio": "rnd",
        "da_ratio": "depreciation_amortization",
        "interest_ratio": "interest_expense",
        "tax_ratio": "income_tax",
    }
)
"""Ratio -> the metric that it measures over revenue."""

MIRROR = ("gross_margin", "cogs_ratio")
"""Where one is 1 less the other they say the same, and the first counts."""
METRICS = ("revenue", *MARGINS.values(), *EXPENSE_RATIOS.values())
"""What the ratios are made of."""

_TABLE = "filing_facts.segments"

Segments = Mapping[str, Mapping[str, float]]
"""Axis -> segment name -> revenue of one quarter, USD."""


def segments_at(rows: Iterable[Row], symbol: str, period_end: date) -> Segments:
    """Revenue by segment of the quarter ending at `period_end`, by axis, as its last visible filing breaks it down.

    A company that redraws its segments files a quarter again under other names; the later breakdown replaces the
    earlier one whole.

    Raises
    ------
    InputError : a row lacks a field or holds no finite number or date; the message names the row.
    """
    breakdowns: dict[str, dict[tuple[Any, ...], dict[str, float]]] = {}
    for place, row in rows_of(rows, symbol, _TABLE):
        start, end, (_, filed, accession, first), value = read_row(row, place, _TABLE)
        if end == period_end and classify(start, end) is Duration.QUARTERLY:
            found = breakdowns.setdefault(text_in(row, "axis", place, _TABLE), {}).setdefault(
                (filed, accession, first), {}
            )
            found[text_in(row, "segment", place, _TABLE)] = value
    return {axis: found[max(found)] for axis, found in breakdowns.items()}


def drivers(
    current: Statement, prior: Statement, segments_current: Segments, segments_prior: Segments
) -> dict[str, Any]:
    """The answer: revenue_delta, top_revenue_drivers, margin_drivers.

    Revenue drivers are the segments of one axis (`explaining_axis`) by size of change, at most `TOP_SEGMENTS`, equal
    changes by name; a segment that did not move drives nothing. Margin drivers are the ratios over revenue by size of
    change; one that is unknown on either side, moved by less than `LEAST_DELTA_PP` or beyond what a number holds is
    left out, and so is the cost ratio where it only mirrors the gross margin.
    revenue_delta is None where the revenue of a quarter is not known.
    """
    revenue_delta = less(current.get("revenue"), prior.get("revenue"))
    axis = explaining_axis(current, prior, segments_current, segments_prior)
    return {
        "revenue_delta": revenue_delta,
        "top_revenue_drivers": []
        if axis is None
        else _revenue_drivers(axis, segments_current[axis], segments_prior[axis], revenue_delta),
        "margin_drivers": _margin_drivers(current, prior),
    }


def explaining_axis(
    current: Statement, prior: Statement, segments_current: Segments, segments_prior: Segments
) -> str | None:
    """The first of `AXES` that names the same segments in both quarters and adds up to revenue in both; else None.

    Segments that were renamed or redrawn in between cannot be compared: their difference is no change of business.
    """
    for axis in AXES:
        now, before = segments_current.get(axis, {}), segments_prior.get(axis, {})
        if now and now.keys() == before.keys() and _adds_up(now, current) and _adds_up(before, prior):
            return axis
    return None


def _adds_up(segments: Mapping[str, float], statement: Statement) -> bool:
    revenue = statement.get("revenue")
    return revenue is not None and abs(math.fsum(segments.values()) - revenue) <= SEGMENT_TOLERANCE * abs(revenue)


def _revenue_drivers(
    axis: str, now: Mapping[str, float], before: Mapping[str, float], revenue_delta: float | None
) -> list[dict[str, Any]]:
    changes = {name: now[name] - before[name] for name in now if now[name] != before[name]}
    largest = sorted(changes, key=lambda name: (-abs(changes[name]), name))[:TOP_SEGMENTS]
    return [
        {
            "driver": name,
            "type": axis,
            "direction": _direction(changes[name]),
            "magnitude_usd": changes[name],
            "contribution_pct": ratio(100.0 * changes[name], revenue_delta),
        }
        for name in largest
    ]


def _margin_drivers(current: Statement, prior: Statement) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for kind, table in (("margin", MARGINS), ("expense_ratio", EXPENSE_RATIOS)):
        for name, metric in table.items():
            change = less(current.over(metric, "revenue"), prior.over(metric, "revenue"))
            if change is not None and LEAST_DELTA_PP <= abs(100.0 * change) < math.inf:
                rows.append({"driver": name, "type": kind, "direction": _direction(change), "delta_pp": 100.0 * change})
    sizes = {row["driver"]: row["delta_pp"] for row in rows}
    if set(MIRROR) <= sizes.keys() and abs(math.fsum(sizes[name] for name in MIRROR)) < LEAST_DELTA_PP:
        rows = [row for row in rows if row["driver"] != MIRROR[1]]
    return sorted(rows, key=lambda row: -abs(row["delta_pp"]))


def _direction(change: float) -> str:
    return "increase" if change > 0 else "decrease"
