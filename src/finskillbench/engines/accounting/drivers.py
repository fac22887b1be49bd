"""Drivers of quarter-on-quarter changes in revenue and margins.

A segment row is a mapping with `axis`, `segment`, `start`, `end`, `filed`, `value` (USD), and optionally `symbol` and
`accession`; dates are `datetime.date` or ISO strings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import date
from types import MappingProxyType
from typing import Any

from finskillbench.engines.accounting.periods import Duration, classify_period
from finskillbench.engines.accounting.statements import (
    Row,
    Statement,
    company_rows,
    difference_or_none,
    ratio,
    read_row,
    text_in,
)

AXES = ("product_segment", "geographic_segment")
"""By preference; one of them explains the change."""
SEGMENT_TOLERANCE = 0.01
"""Maximum relative difference between the sum of segments and revenue."""
TOP_SEGMENTS = 5
LEAST_DELTA_PP = 0.005
"""Minimum change of a ratio in percentage points."""

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
"""Ratio -> numerator; the denominator is revenue."""

MIRROR = ("gross_margin", "cogs_ratio")
"""Complements that sum to 1; the first one counts."""
METRICS = ("revenue", *MARGINS.values(), *EXPENSE_RATIOS.values())

_TABLE = "filing_facts.segments"

Segments = Mapping[str, Mapping[str, float]]
"""Axis -> segment name -> quarterly revenue, USD."""


def segments_at(rows: Iterable[Row], symbol: str, period_end: date) -> Segments:
    """Return the segment revenue of a quarter by axis, from its last visible filing.

    A later breakdown replaces the earlier one whole, since redrawn segments have other names. Raises `InputError` for
    rows with missing or invalid fields.
    """
    known: dict[str, dict[tuple[Any, ...], dict[str, float]]] = {}
    for place, row in company_rows(rows, symbol, _TABLE):
        start, end, (_, filed, accession, first), value = read_row(row, place, _TABLE)
        if end == period_end and classify_period(start, end) is Duration.QUARTERLY:
            found = known.setdefault(text_in(row, "axis", place, _TABLE), {}).setdefault((filed, accession, first), {})
            found[text_in(row, "segment", place, _TABLE)] = value
    return {axis: found[max(found)] for axis, found in known.items()}


def drivers(
    current: Statement, prior: Statement, segments_current: Segments, segments_prior: Segments
) -> dict[str, Any]:
    """Return revenue_delta, top_revenue_drivers and margin_drivers.

    Revenue drivers are the changed segments of `explaining_axis`: the `TOP_SEGMENTS` largest changes, ties by name.
    Margin drivers are the ratios over revenue by size of change, without unknown, overflowing or small
    (`LEAST_DELTA_PP`) changes. The cost ratio is left out if it mirrors the gross margin. revenue_delta is None for
    unknown revenue.
    """
    revenue_delta = difference_or_none(current.get("revenue"), prior.get("revenue"))
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
    """Return the first of `AXES` whose segments match in both quarters and sum to revenue, else None."""
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
            change = difference_or_none(current.over(metric, "revenue"), prior.over(metric, "revenue"))
            if change is not None and LEAST_DELTA_PP <= abs(100.0 * change) < math.inf:
                rows.append({"driver": name, "type": kind, "direction": _direction(change), "delta_pp": 100.0 * change})
    sizes = {row["driver"]: row["delta_pp"] for row in rows}
    if set(MIRROR) <= sizes.keys() and abs(math.fsum(sizes[name] for name in MIRROR)) < LEAST_DELTA_PP:
        rows = [row for row in rows if row["driver"] != MIRROR[1]]
    return sorted(rows, key=lambda row: -abs(row["delta_pp"]))


def _direction(change: float) -> str:
    return "increase" if change > 0 else "decrease"
