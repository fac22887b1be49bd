"""Fundamental tasks for scripts and builders: payload in, answer out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, cast

from finskillbench.engines.accounting import drivers as decomposition
from finskillbench.engines.accounting import quality
from finskillbench.engines.accounting.periods import YEAR_APART, Duration, duration_of, earlier
from finskillbench.engines.accounting.statements import (
    NORMALISED,
    CompanyFacts,
    Row,
    Statement,
    as_date,
    company_facts,
    normalise,
)
from finskillbench.engines.fields import describe_value, listed, mapping, refuse_unknown, texts_of
from finskillbench.errors import InputError

MOST_ROWS = 200
"""Maximum rows of one result; at some 250 characters each, a fifth of a tool result's limit."""
_DURATIONS = tuple(kind.value for kind in Duration if kind is not Duration.OTHER)


def normalization(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return {"metrics", "used"} of symbol, period_end, form_type, filing_facts.

    The period is the quarter of a 10-Q or the year of a 10-K; `used` has its figures with tags. Raises `InputError` for
    invalid fields or a period without facts.
    """
    accounts = company_facts_from(payload)
    duration = duration_of(_text(payload, "form_type"))
    statement = _known(accounts, as_date(payload.get("period_end"), "period_end"), duration)
    names = (*NORMALISED, "depreciation_amortization")
    return {"metrics": normalise(statement), "used": _used(names, reported=statement)}


def earnings_quality(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer for the quarter ending at period_end against one year before, with `used` and `beneish_ratios`.

    `used` has both quarters' figures with tags. Without a prior quarter, comparisons are None. Raises as
    `normalization`.
    """
    accounts = company_facts_from(payload)
    end = as_date(payload.get("period_end"), "period_end")
    _known(accounts, end, Duration.QUARTERLY)
    current, prior = accounts.compared(end, earlier(end, accounts.ends(Duration.QUARTERLY), YEAR_APART))
    return quality.quality_answer(current, prior) | {
        "used": _used(quality.METRICS, current=current, prior=prior),
        "beneish_ratios": dict(quality.beneish(current, prior).ratios),
    }


def driver_decomposition(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the drivers of two quarters, with the explaining `axis` and `used`; raises as `normalization`."""
    accounts = company_facts_from(payload)
    rows = _rows(payload, "segments")
    now, before = (as_date(payload.get(field), field) for field in ("current_period_end", "prior_period_end"))
    if now <= before:
        raise InputError(f"current_period_end {now} must be after prior_period_end {before}")
    current, prior = (_known(accounts, end, Duration.QUARTERLY) for end in (now, before))
    prior = current.comparable(prior)
    segments = [decomposition.segments_at(rows, accounts.symbol, end) for end in (now, before)]
    return decomposition.drivers(current, prior, *segments) | {
        "axis": decomposition.explaining_axis(current, prior, *segments),
        "used": _used(decomposition.METRICS, current=current, prior=prior),
    }


def metrics_on_file(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return {"metrics": rows, "matching": count} of symbol, filing_facts and optional filters, latest period first.

    Filters: metrics (names), period_end, duration (one of `_DURATIONS`). A row has the effective figure of a metric and
    period: value, unit, tag, derived, filing. Returns at most `MOST_ROWS` rows. Raises `InputError` as `normalization`,
    and for unknown fields, metrics, durations or period ends.
    """
    refuse_unknown(payload, ("symbol", "filing_facts", "metrics", "period_end", "duration"), "derive_metrics")
    accounts = company_facts_from(payload)
    metrics, duration = payload.get("metrics"), payload.get("duration")
    end = None if payload.get("period_end") is None else as_date(payload["period_end"], "period_end")
    known = sorted({metric for found in accounts.rows.values() for metric in found})
    wanted = known if metrics is None else texts_of(metrics)
    if wanted is None:
        raise InputError(f"metrics must be a list of names, not {describe_value(metrics)}")
    if unknown := [name for name in wanted if name not in known]:
        raise InputError(f"metrics: {accounts.symbol} has no {listed(unknown[:5])}; it has {', '.join(known)}")
    if duration is not None and duration not in _DURATIONS:
        raise InputError(f"duration must be one of {', '.join(_DURATIONS)}, not {describe_value(duration)}")
    if end is not None and not any(end == day for _, day in accounts.rows):
        near = sorted({day for _, day in accounts.rows}, key=lambda day: abs(day - end))[:8]
        raise InputError(
            f"{accounts.symbol} has no figures for {end}; the nearest ends are {', '.join(map(str, near))}"
        )
    found = [
        (day, metric, kind, row)
        for (kind, day), rows in accounts.rows.items()
        if end in (None, day) and duration in (None, kind)
        for metric, row in rows.items()
        if metric in wanted
    ]
    found.sort(key=lambda one: (-one[0].toordinal(), one[1], str(one[3].get("start"))))
    rows = [
        {
            "metric": metric,
            "duration": str(kind),
            "start": None if row.get("start") is None else str(row["start"]),
            "end": str(day),
            **{name: row.get(name) for name in ("value", "unit", "tag", "derived", "form", "accession")},
            "filed": str(row["filed"]),
        }
        for day, metric, kind, row in found[:MOST_ROWS]
    ]
    return {"metrics": rows, "matching": len(found)}


def _used(metrics: Iterable[str], **statements: Statement) -> dict[str, Any]:
    names = tuple(metrics)
    return {
        period: {
            "end": None if one.end is None else str(one.end),
            "duration": str(one.duration),
            "figures": {
                name: {"value": one.values[name], "tag": one.tags.get(name, "")} for name in names if name in one.values
            },
        }
        for period, one in statements.items()
    }


def company_facts_from(payload: Mapping[str, Any]) -> CompanyFacts:
    """Read the company's figures from `filing_facts.facts`."""
    symbol = _text(payload, "symbol")
    rows = _rows(payload, "facts")
    accounts = company_facts(rows, symbol)
    if not accounts.rows:
        symbols = sorted({str(row.get("symbol")) for row in rows})[:5]  # rows without a symbol belong to the company
        instead = f"rows of {listed(symbols)}" if symbols else "no rows"
        raise InputError(f"filing_facts.facts has no row of {symbol} ({instead}); inject filing_facts with symbol")
    return accounts


def _known(accounts: CompanyFacts, end: date, duration: Duration) -> Statement:
    statement = accounts.statement(end, duration)
    if (duration, end) not in accounts.rows:
        ends = ", ".join(str(day) for day in accounts.ends(duration)[-8:]) or "none"
        raise InputError(f"{accounts.symbol} has no {duration} figures for {end}; such periods end on: {ends}")
    return statement


def _rows(payload: Mapping[str, Any], key: str) -> Sequence[Row]:
    rows = mapping(payload, "filing_facts").get(key)
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise InputError(
            f"filing_facts.{key} must be an array of rows, not {describe_value(rows)}; inject filing_facts"
        )
    return cast("Sequence[Row]", rows)


def _text(payload: Mapping[str, Any], key: str) -> str:
    value = payload.get(key)
    if not isinstance(value, str) or not value:
        raise InputError(f"{key} must be a text, not {describe_value(value)}; inject it from the task data")
    return value
