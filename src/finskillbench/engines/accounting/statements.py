"""Statements of one period from fact rows, and the ten normalised metrics.

A fact row is a mapping with `metric`, `start` (None for instants), `end`, `filed`, `value`, and optionally `symbol`,
`derived`, `accession` and `tag`; dates are `datetime.date` or ISO strings. The caller passes visible rows only. Values
are in USD, USD per share or shares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from types import MappingProxyType
from typing import Any, cast

from finskillbench.engines.accounting.periods import Duration, classify_period
from finskillbench.engines.fields import describe_value
from finskillbench.errors import InputError
from finskillbench.sums import exact_sum

Row = Mapping[str, Any]

NORMALISED = (
    "revenue",
    "operating_income",
    "net_income",
    "eps_diluted",
    "total_assets",
    "total_liabilities",
    "stockholders_equity",
    "operating_cash_flow",
    "operating_margin",
    "ebitda",
)
"""Metrics of a normalised filing, in the answer's order; the last two are computed."""

_SHARES = "diluted_shares"
_TABLE = "filing_facts.facts"
_LARGEST = 1e18
"""Larger amounts of dollars or shares indicate a wrong unit."""


@dataclass(frozen=True, slots=True)
class Statement:
    """Flows of one company in one period, and the balance sheet at its end.

    `values` maps known metrics to values, `tags` metrics to XBRL tags. `end` is None for a missing period.
    """

    symbol: str
    end: date | None
    duration: Duration
    values: Mapping[str, float] = field(default_factory=dict[str, float])
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    def get(self, metric: str) -> float | None:
        return self.values.get(metric)

    def over(self, numerator: str, denominator: str) -> float | None:
        return ratio(self.get(numerator), self.get(denominator))

    def comparable(self, prior: Statement) -> Statement:
        """Return a prior statement without the figures filed under another tag, which have another basis."""
        values = {
            metric: value
            for metric, value in prior.values.items()
            if self.tags.get(metric, "") == prior.tags.get(metric, "") or metric not in self.values
        }
        return replace(prior, values=values)


@dataclass(frozen=True, slots=True)
class CompanyFacts:
    """Effective rows of one company: (duration, end) -> metric -> row."""

    symbol: str
    rows: Mapping[tuple[Duration, date], Mapping[str, Row]]

    def statement(self, end: date | None, duration: Duration) -> Statement:
        """Return the flows of `duration` ending at `end`, and the instants of that day; empty if unknown."""
        if end is None:
            return Statement(self.symbol, None, duration)
        rows = {**self.rows.get((Duration.INSTANT, end), {}), **self.rows.get((duration, end), {})}
        values = {metric: float(row["value"]) for metric, row in rows.items()}
        tags = {metric: str(row.get("tag") or "") for metric, row in rows.items()}
        return Statement(self.symbol, end, duration, values, tags)

    def compared(self, end: date, prior_end: date | None) -> tuple[Statement, Statement]:
        """Return a quarter and the comparable figures of the same quarter of the prior year.

        10-Q filings have quarterly average diluted shares, 10-K filings annual ones. If either quarter lacks them, both
        use the years that end with them.
        """
        current, prior = (self.statement(day, Duration.QUARTERLY) for day in (end, prior_end))
        if current.get(_SHARES) is None or prior.get(_SHARES) is None:
            now, before = (self.statement(day, Duration.ANNUAL) for day in (end, prior_end))
            if now.get(_SHARES) is not None and before.get(_SHARES) is not None:
                current, prior = _with_shares(current, now), _with_shares(prior, before)
        return current, current.comparable(prior)

    def ends(self, duration: Duration) -> tuple[date, ...]:
        return tuple(sorted(end for kind, end in self.rows if kind is duration))


def _with_shares(quarter: Statement, year: Statement) -> Statement:
    values, tags = {**quarter.values, _SHARES: year.values[_SHARES]}, {**quarter.tags}
    tags[_SHARES] = year.tags.get(_SHARES, "")
    return replace(quarter, values=values, tags=tags)


def company_facts(rows: Iterable[Row], symbol: str) -> CompanyFacts:
    """Read the rows of one company and keep one row per metric and period.

    Precedence: reported before derived, latest filing, greatest accession number, latest start. Raises `InputError` for
    rows with missing or invalid fields.
    """
    latest: dict[tuple[Duration, date], dict[str, tuple[tuple[Any, ...], Row]]] = {}
    for place, row in company_rows(rows, symbol, _TABLE):
        start, end, rank, _ = read_row(row, place, _TABLE)
        found = latest.setdefault((classify_period(start, end), end), {})
        metric = text_in(row, "metric", place, _TABLE)
        if metric not in found or found[metric][0] < rank:
            found[metric] = rank, row
    counting = {period: {metric: row for metric, (_, row) in found.items()} for period, found in latest.items()}
    return CompanyFacts(symbol, MappingProxyType(counting))


def company_rows(rows: Iterable[object], symbol: str, table: str) -> Iterator[tuple[int, Row]]:
    """Yield the company's rows with their index."""
    for place, entry in enumerate(rows):
        if not isinstance(entry, Mapping):
            raise InputError(f"row {place} of {table} must be an object, not {describe_value(entry)}")
        row = cast(Row, entry)
        if row.get("symbol", symbol) == symbol:
            yield place, row


def read_row(row: Row, place: int, table: str) -> tuple[date | None, date, tuple[Any, ...], float]:
    """Validate a row and return its start, end, rank and value; the highest rank of a period wins."""
    start = None if row.get("start") is None else date_in(row, "start", place, table)
    end, filed, value = date_in(row, "end", place, table), date_in(row, "filed", place, table), row.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise InputError(f"row {place} of {table}: value must be a finite number, not {describe_value(value)}")
    if start is not None and start > end:
        raise InputError(f"row {place} of {table}: start {start} is after end {end}")
    rank = (not row.get("derived"), filed, str(row.get("accession") or ""), start or date.min)
    return start, end, rank, float(value)


def text_in(row: Row, key: str, place: int, table: str) -> str:
    """Return a required text field of the row at `place`."""
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise InputError(f"row {place} of {table}: {key} must be a text, not {describe_value(value)}")
    return value


def date_in(row: Row, key: str, place: int, table: str) -> date:
    """Return a date field of the row at `place`: a `date` or its ISO text."""
    value = row.get(key)
    if isinstance(value, str):
        # Fast path: the message's location is formatted on failure only.
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    return as_date(value, f"row {place} of {table}: {key}")


def as_date(value: Any, where: str) -> date:
    """Return a `date`, parsed from ISO text if needed; `where` begins the error message."""
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise InputError(f"{where} must be a date like 2024-03-30, not {describe_value(value)}") from None


def normalise(statement: Statement) -> dict[str, float | None]:
    """Return the metrics of `NORMALISED`: USD, eps in USD per share, operating margin a decimal; None if unknown.

    ebitda = operating income + depreciation and amortisation; operating margin = operating income / revenue.
    """
    computed = {
        "operating_margin": statement.over("operating_income", "revenue"),
        "ebitda": sum_or_none(statement.get("operating_income"), statement.get("depreciation_amortization")),
    }
    return {name: computed[name] if name in computed else statement.get(name) for name in NORMALISED}


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """Return the quotient, None if undefined or infinite."""
    if numerator is None or denominator is None or denominator == 0:
        return None
    quotient = numerator / denominator
    return quotient if math.isfinite(quotient) else None


def sum_or_none(*addends: float | None) -> float | None:
    """Return the sum, None if any addend is None."""
    known = [term for term in addends if term is not None]
    return exact_sum(known) if len(known) == len(addends) else None


def difference_or_none(left: float | None, right: float | None) -> float | None:
    """Return left - right, None if either is None."""
    return None if left is None or right is None else left - right
