"""Fundamental tasks as scripts and builders receive them: fields in, answer out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, cast

from finskillbench.engines.accounting import drivers as decomposition
from finskillbench.engines.accounting import quality
from finskillbench.engines.accounting.periods import YEAR_APART, Duration, duration_of, earlier
from finskillbench.engines.accounting.statements import NORMALISED, Ledger, Row, Statement, as_date, ledger, normalise
from finskillbench.engines.fields import listed, mapping, refuse_unknown, shown, texts_of
from finskillbench.errors import InputError

MOST_ROWS = 200
"""Rows of metrics in one result: at some 250 characters each a fifth of what a tool returns at most."""
_DURATIONS = tuple(kind.value for kind in Duration if kind is not Duration.OTHER)


def normalization(payload: Mapping[str, Any]) -> dict[str, Any]:
    """{"metrics": ...} of symbol, period_end, form_type, filing_facts: the quarter of a 10-Q, the year of a 10-K.

    Beside them `used`, the period and the figures with their tags.

    Raises
    ------
    InputError : a field is missing or of the wrong kind, or no fact is visible for that period.
    """
    accounts = ledger_from(payload)
    duration = duration_of(_text(payload, "form_type"))
    statement = _known(accounts, as_date(payload.get("period_end"), "period_end"), duration)
    names = (*NORMALISED, "depreciation_amortization")
    return {"metrics": normalise(statement), "used": _used(names, reported=statement)}


def earnings_quality(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Answer of symbol, period_end, filing_facts: always the quarter ending at period_end against a year before.

    Beside it `used`, both quarters with their figures and tags, and `beneish_ratios`. Without a quarter a year before,
    what needs one is None. Raises InputError as `normalization` does.
    """
    accounts = ledger_from(payload)
    end = as_date(payload.get("period_end"), "period_end")
    _known(accounts, end, Duration.QUARTERLY)
    current, prior = accounts.compared(end, earlier(end, accounts.ends(Duration.QUARTERLY), YEAR_APART))
    return quality.earnings_quality(current, prior) | {
        "used": _used(quality.METRICS, current=current, prior=prior),
        "beneish_ratios": dict(quality.beneish(current, prior).ratios),
    }


def driver_decomposition(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Answer of symbol, current_period_end, prior_period_end, filing_facts (facts and segments).

    Beside it `axis`, the axis of segments that explains the change, or None, and `used` as of earnings quality. Raises
    InputError as `normalization` does.
    """
    accounts = ledger_from(payload)
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
    """{"metrics": rows, "matching": their number} of symbol, filing_facts and optional filters, latest period first.

    metrics : names; period_end : last day; duration : one of `_DURATIONS`. A row states the figure that counts of one
    metric and period: value, unit, tag, whether it is derived, and the filing. Of more than `MOST_ROWS` the first are
    returned.

    Raises
    ------
    InputError : as `normalization`; an unknown field, metric or duration, or a period_end with which no period ends.
    """
    refuse_unknown(payload, ("symbol", "filing_facts", "metrics", "period_end", "duration"), "derive_metrics")
    accounts = ledger_from(payload)
    metrics, duration = payload.get("metrics"), payload.get("duration")
    end = None if payload.get("period_end") is None else as_date(payload["period_end"], "period_end")
    known = sorted({metric for found in accounts.rows.values() for metric in found})
    wanted = known if metrics is None else texts_of(metrics)
    if wanted is None:
        raise InputError(f"metrics must be a list of names, not {shown(metrics)}")
    if unknown := [name for name in wanted if name not in known]:
        raise InputError(f"metrics: {accounts.symbol} has no {listed(unknown[:5])}; it has {', '.join(known)}")
    if duration is not None and duration not in _DURATIONS:
        raise InputError(f"duration must be one of {', '.join(_DURATIONS)}, not {shown(duration)}")
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
    """What an answer was made of: by period its end, its duration and each known figure with its tag."""
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


def ledger_from(payload: Mapping[str, Any]) -> Ledger:
    """The company's figures from `filing_facts.facts`."""
    symbol = _text(payload, "symbol")
    rows = _rows(payload, "facts")
    accounts = ledger(rows, symbol)
    if not accounts.rows:
        others = sorted({str(row.get("symbol")) for row in rows})[:5]  # without a symbol a row would be the company's
        instead = f"rows of {listed(others)}" if others else "no rows"
        raise InputError(f"filing_facts.facts has no row of {symbol} ({instead}); inject filing_facts with symbol")
    return accounts


def _known(accounts: Ledger, end: date, duration: Duration) -> Statement:
    statement = accounts.statement(end, duration)
    if (duration, end) not in accounts.rows:
        ends = ", ".join(str(day) for day in accounts.ends(duration)[-8:]) or "none"
        raise InputError(f"{accounts.symbol} has no {duration} figures for {end}; such periods end on: {ends}")
    return statement


def _rows(payload: Mapping[str, Any], key: str) -> Sequence[Row]:
    rows = mapping(payload, "filing_facts").get(key)
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise InputError(f"filing_facts.{key} must be an array of rows, not {shown(rows)}; inject filing_facts")
    return cast("Sequence[Row]", rows)


def _text(payload: Mapping[str, Any], key: str) -> str:
    value = payload.get(key)
    if not isinstance(value, str) or not value:
        raise InputError(f"{key} must be a text, not {shown(value)}; inject it from the task data")
    return value
