"""Statements of one period from plain fact rows, and the ten normalised metrics.

A fact row is a mapping with `metric`, `start` (None for instants), `end`, `filed`, `value`, and optionally `symbol` (of
one company without it), `derived`, `accession` and `tag`; dates are `datetime.date` or ISO strings. Rows are those
visible at some date: what must not be known is left out by whoever chose them. Values are in USD, USD per share or
shares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from types import MappingProxyType
from typing import Any, cast

from finskillbench.engines.accounting.periods import Duration, classify
from finskillbench.engines.fields import shown
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
"""The metrics of a normalised filing, in the answer's order; the last two are computed."""

_SHARES = "diluted_shares"
_TABLE = "filing_facts.facts"
_LARGEST = 1e18
"""No company has had more dollars or shares; what has is a unit or a typing error."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The figures of one company for one period: its flows, and the balance sheet at its end.

    `values` maps a canonical metric to its value; a metric that is not known is absent. `tags` says under which tag it
    was filed, where the rows say it. `end` is None for the statement of a period that there is none of (all figures
    unknown).
    """

    symbol: str
    end: date | None
    duration: Duration
    values: Mapping[str, float] = field(default_factory=dict[str, float])
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    def get(self, metric: str) -> float | None:
        """Value of a metric, None where it is not known."""
        return self.values.get(metric)

    def over(self, numerator: str, denominator: str) -> float | None:
        """Ratio of two metrics, None where one is not known or the denominator is 0."""
        return ratio(self.get(numerator), self.get(denominator))

    def comparable(self, prior: Statement) -> Statement:
        """An earlier statement without the figures under another tag than here: those are of another basis."""
        values = {
            metric: value
            for metric, value in prior.values.items()
            if self.tags.get(metric, "") == prior.tags.get(metric, "") or metric not in self.values
        }
        return replace(prior, values=values)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The rows of one company that count: (duration, end) -> metric -> row."""

    symbol: str
    rows: Mapping[tuple[Duration, date], Mapping[str, Row]]

    def statement(self, end: date | None, duration: Duration) -> Statement:
        """Flows of `duration` ending at `end` with the instants of that day; empty where nothing is known."""
        if end is None:
            return Statement(self.symbol, None, duration)
        rows = {**self.rows.get((Duration.INSTANT, end), {}), **self.rows.get((duration, end), {})}
        values = {metric: float(row["value"]) for metric, row in rows.items()}
        tags = {metric: str(row.get("tag") or "") for metric, row in rows.items()}
        return Statement(self.symbol, end, duration, values, tags)

    def compared(self, end: date, prior_end: date | None) -> tuple[Statement, Statement]:
        """A quarter and the same quarter of the prior year, of which figures under another tag are left out.

        The average of diluted shares is filed for the quarter of a 10-Q and for the year of a 10-K: where it is not
        known of both quarters, it is that of the years that end with them.
        """
        current, prior = (self.statement(day, Duration.QUARTERLY) for day in (end, prior_end))
        if current.get(_SHARES) is None or prior.get(_SHARES) is None:
            now, before = (self.statement(day, Duration.ANNUAL) for day in (end, prior_end))
            if now.get(_SHARES) is not None and before.get(_SHARES) is not None:
                current, prior = _with_shares(current, now), _with_shares(prior, before)
        return current, current.comparable(prior)

    def ends(self, duration: Duration) -> tuple[date, ...]:
        """Days on which a period of this class ends, ascending."""
        return tuple(sorted(end for kind, end in self.rows if kind is duration))


def _with_shares(quarter: Statement, year: Statement) -> Statement:
    """A quarter with the average of diluted shares of a year."""
    values, tags = {**quarter.values, _SHARES: year.values[_SHARES]}, {**quarter.tags}
    tags[_SHARES] = year.tags.get(_SHARES, "")
    return replace(quarter, values=values, tags=tags)


def ledger(rows: Iterable[Row], symbol: str) -> Ledger:
    """Read the rows of one company, one row per metric and period.

    A reported figure goes before a derived one, then the one filed last, then the greater accession number, then the
    later start: two readings of a period's first day are one period.

    Raises
    ------
    InputError : a row lacks a field or holds no finite number or date; the message names the row.
    """
    latest: dict[tuple[Duration, date], dict[str, tuple[tuple[Any, ...], Row]]] = {}
    for place, row in rows_of(rows, symbol, _TABLE):
        start, end, rank, _ = read_row(row, place, _TABLE)
        found = latest.setdefault((classify(start, end), end), {})
        metric = text_in(row, "metric", place, _TABLE)
        if metric not in found or found[metric][0] < rank:
            found[metric] = rank, row
    counting = {period: {metric: row for metric, (_, row) in found.items()} for period, found in latest.items()}
    return Ledger(symbol, MappingProxyType(counting))


def rows_of(rows: Iterable[object], symbol: str, table: str) -> Iterator[tuple[int, Row]]:
    """The rows of a company with their places; those of another are passed over."""
    for place, entry in enumerate(rows):
        if not isinstance(entry, Mapping):
            raise InputError(f"row {place} of {table} must be an object, not {shown(entry)}")
        row = cast(Row, entry)
        if row.get("symbol", symbol) == symbol:
            yield place, row


def read_row(row: Row, place: int, table: str) -> tuple[date | None, date, tuple[Any, ...], float]:
    """Start, end, rank and value of the row at `place` of a table, checked; of one period the greatest rank counts."""
    start = None if row.get("start") is None else date_in(row, "start", place, table)
    end, filed, value = date_in(row, "end", place, table), date_in(row, "filed", place, table), row.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise InputError(f"row {place} of {table}: value must be a finite number, not {shown(value)}")
    if start is not None and start > end:
        raise InputError(f"row {place} of {table}: start {start} is after end {end}")
    rank = (not row.get("derived"), filed, str(row.get("accession") or ""), start or date.min)
    return start, end, rank, float(value)


def text_in(row: Row, key: str, place: int, table: str) -> str:
    """A text of the row at `place`, which must be there."""
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise InputError(f"row {place} of {table}: {key} must be a text, not {shown(value)}")
    return value


def date_in(row: Row, key: str, place: int, table: str) -> date:
    """A date of the row at `place`: a `date` or its ISO text."""
    value = row.get(key)
    if isinstance(value, str):
        # Most rows hold ISO texts: the place is worded only where it is needed.
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    return as_date(value, f"row {place} of {table}: {key}")


def as_date(value: Any, where: str) -> date:
    """A `date`, or the date of an ISO text; `where` begins the message if it is neither."""
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise InputError(f"{where} must be a date like 2024-03-30, not {shown(value)}") from None


def normalise(statement: Statement) -> dict[str, float | None]:
    """The ten metrics of `NORMALISED`: USD, eps in USD per share, operating margin a decimal.

    ebitda = operating income + depreciation and amortisation of the same period; operating margin = operating income
    / revenue. What cannot be computed is None.
    """
    computed = {
        "operating_margin": statement.over("operating_income", "revenue"),
        "ebitda": added(statement.get("operating_income"), statement.get("depreciation_amortization")),
    }
    return {name: computed[name] if name in computed else statement.get(name) for name in NORMALISED}


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """The quotient; None where a side is None, the denominator is 0, or the quotient overflows."""
    if numerator is None or denominator is None or denominator == 0:
        return None
    quotient = numerator / denominator
    return quotient if math.isfinite(quotient) else None


def added(*terms: float | None) -> float | None:
    """The sum; None where a term is."""
    known = [term for term in terms if term is not None]
    return exact_sum(known) if len(known) == len(terms) else None


def less(left: float | None, right: float | None) -> float | None:
    """left - right; None where either is."""
    return None if left is None or right is None else left - right
