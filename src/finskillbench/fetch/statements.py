"""A company's statements from its facts, in the format of `sources.companies.statements`: no source serves them.

Every figure is that of the latest filing that states it, as in the published collections of this format. A quarter
that no report states alone is the difference of two periods that begin on the same day (`"d": 1`), mostly the fourth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

import orjson
import polars as pl

from finskillbench.sources.companies.universe import Security
from finskillbench.sources.edgar.companyfacts import parse_companyfacts

_NET_INCOME = ("NetIncomeLoss", "ProfitLoss", "NetIncomeLossAvailableToCommonStockholdersBasic")
_EPS = ("EarningsPerShareDiluted", "EarningsPerShareBasicAndDiluted", "EarningsPerShareBasic")
_EQUITY = ("StockholdersEquity", "StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest")
_DILUTED = (
    "WeightedAverageNumberOfDilutedSharesOutstanding",
    "WeightedAverageNumberOfShareOutstandingBasicAndDiluted",
    "WeightedAverageNumberOfSharesOutstandingBasic",
)
_COVER = ("EntityCommonStockSharesOutstanding",)
_TAGS = frozenset((*_NET_INCOME, *_EPS, *_EQUITY, *_DILUTED, *_COVER))
_FORMS = ("10-K", "10-Q", "10-K/A", "10-Q/A", "10-KT", "10-QT", "20-F", "40-F", "20-F/A", "40-F/A")
_QUARTER, _YEAR = (75, 125), (345, 385)
"""Days of a quarter, 12 weeks to 17 (Costco has both), and of a year, 52 weeks or 53."""

_Periods: TypeAlias = Mapping[tuple[date | None, date], float]
"""Figures by first day (None of an instant) and last day."""


def derive_statements(facts: Path, security: Security) -> bytes:
    """The statements of a company, from its file of company facts, as JSON.

    Raises
    ------
    SourceError : the facts cannot be trusted.
    """
    filer = parse_companyfacts(facts, tags=_TAGS)
    rows = filer.facts.filter(pl.col("form").is_in(_FORMS)).sort("filed", "accession", maintain_order=True)
    income, eps = _figures(rows, _NET_INCOME, "USD"), _figures(rows, _EPS, "USD/shares")
    equity = {end: value for (start, end), value in _figures(rows, _EQUITY, "USD").items() if start is None}
    years = _lasting(income, _YEAR)
    fiscal = {end: value for end, value in equity.items() if end in years}
    covers = {end: value for (_, end), value in _figures(rows, _COVER, "shares").items() if value > 0}
    diluted = {end: value for end, value in _lasting(_figures(rows, _DILUTED, "shares"), _YEAR).items() if value > 0}
    record: dict[str, Any] = {
        "symbol": security.symbol,
        "name": filer.entity or security.name,
        "cik": f"{filer.cik:010d}",
        "profile": {"exchange": security.exchange},
        "annual": {"netIncome": _entries(years), "eps": _entries(_lasting(eps, _YEAR))},
        "quarterly": {
            "netIncome": _entries(_lasting(income, _QUARTER), _differences(income)),
            "eps": _entries(_lasting(eps, _QUARTER)),
        },
        "balances": {"equity": _entries(fiscal or equity)},
        "dilutedShares": _entries(diluted),
    }
    if covers:
        last = max(covers)
        record["sharesLatest"] = {"end": last.isoformat(), "v": covers[last]}
    return orjson.dumps(record)


def _figures(rows: pl.DataFrame, tags: Sequence[str], unit: str) -> _Periods:
    """Of each period the latest figure under the first of the tags that has one."""
    found: dict[tuple[date | None, date], float] = {}
    for tag in reversed(tags):
        of_tag = rows.filter((pl.col("tag") == tag) & (pl.col("unit") == unit))
        found |= {(start, end): value for start, end, value in of_tag.select("start", "end", "value").iter_rows()}
    return found


def _lasting(figures: _Periods, days: tuple[int, int]) -> dict[date, float]:
    """Figures of the periods of so many days, by their last day."""
    shortest, longest = days
    return {
        end: value
        for (start, end), value in sorted(figures.items(), key=lambda item: item[0][1])
        if start is not None and shortest <= (end - start).days + 1 <= longest
    }


def _differences(figures: _Periods) -> dict[date, float]:
    """Quarters as differences of two periods with one first day, by their last day."""
    by_start: dict[date, list[tuple[date, float]]] = {}
    for (start, end), value in figures.items():
        if start is not None:
            by_start.setdefault(start, []).append((end, value))
    shortest, longest = _QUARTER
    return {
        end: value - earlier
        for ends in by_start.values()
        for end, value in ends
        for before, earlier in ends
        if shortest <= (end - before).days <= longest
    }


def _entries(stated: Mapping[date, float], derived: Mapping[date, float] | None = None) -> list[dict[str, Any]]:
    """Figures by last day, whole where they are whole; a derived one where none is stated."""
    entries: dict[date, dict[str, Any]] = {}
    for end, value in (derived or {}).items():
        entries[end] = {"end": end.isoformat(), "v": _number(value), "d": 1}
    for end, value in stated.items():
        entries[end] = {"end": end.isoformat(), "v": _number(value)}
    return [entries[end] for end in sorted(entries)]


def _number(value: float) -> float | int:
    return int(value) if value.is_integer() else value
