"""Company statements as published by a deriver of EDGAR facts: one JSON file per company, without filing dates."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
import polars as pl

from finskillbench.errors import SourceError
from finskillbench.sources.files import read_text, ticker_of

_SCHEMA = {"end": pl.Date, "value": pl.Float64}
MIN_QUARTERS = 8
"""Quarters of net income below which no trailing year can be compared with the year before."""


@dataclass(frozen=True, slots=True)
class Statements:
    """One company's published figures, each a table of `end` (Date) and `value` (Float64), sorted by end.

    Dollars, dollars per share or shares, of the latest vintage: shares and per-share figures are restated for a
    split only as far back as later reports repeat them. The files carry no filing dates: when a figure was known is
    decided by the panels (end plus a reporting lag). Nothing is cut at the price window's start, because what was
    known on its first day is older.
    """

    symbol: str
    net_income_quarterly: pl.DataFrame
    eps_quarterly: pl.DataFrame
    equity: pl.DataFrame
    net_income_annual: pl.DataFrame
    eps_annual: pl.DataFrame
    diluted_shares: pl.DataFrame
    shares_outstanding: pl.DataFrame

    def gap(self) -> str | None:
        """What is missing for caps and views, or None if the statements are usable."""
        if self.net_income_quarterly.height < MIN_QUARTERS:
            return f"{self.net_income_quarterly.height} quarters of net income where {MIN_QUARTERS} are needed"
        if self.equity.is_empty():
            return "no equity"
        if self.diluted_shares.is_empty() and self.shares_outstanding.is_empty():
            return "no share count"
        return None


def parse_statements(path: Path) -> tuple[Statements, Mapping[str, str]]:
    """Read one company's file; also its descriptive fields (name, cik, exchange) where given.

    Raises
    ------
    SourceError : truncated or malformed JSON, a symbol that is not the file's, entries without end or number,
        ends not increasing, share counts that are not positive.
    """
    text = read_text(path)
    try:
        record = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise SourceError(
            path, f"not valid JSON ({error.msg})", line=error.lineno, remedy="download it again"
        ) from None
    if not isinstance(record, dict) or not isinstance(record.get("symbol"), str):
        raise SourceError(path, "no field 'symbol'", line=1, remedy="expected one company's statements")
    symbol = ticker_of(path)
    if record["symbol"].upper().replace(".", "-") != symbol:
        raise SourceError(
            path, f"the symbol inside is {record['symbol']!r}", line=1, remedy=f"rename or replace {symbol}"
        )

    def block(name: str) -> dict[str, object]:
        found = record.get(name)
        if not isinstance(found, dict):
            raise SourceError(path, f"no object '{name}'", line=1, remedy="expected annual, quarterly and balances")
        return found

    quarterly, annual, balances = block("quarterly"), block("annual"), block("balances")
    latest = record.get("sharesLatest")
    statements = Statements(
        symbol=symbol,
        net_income_quarterly=_series(path, "quarterly.netIncome", quarterly.get("netIncome")),
        eps_quarterly=_series(path, "quarterly.eps", quarterly.get("eps")),
        equity=_series(path, "balances.equity", balances.get("equity")),
        net_income_annual=_series(path, "annual.netIncome", annual.get("netIncome")),
        eps_annual=_series(path, "annual.eps", annual.get("eps")),
        diluted_shares=_series(path, "dilutedShares", record.get("dilutedShares"), positive=True),
        shares_outstanding=_series(path, "sharesLatest", [latest] if latest is not None else [], positive=True),
    )
    profile = record.get("profile")
    described = {"name": record.get("name"), "cik": record.get("cik")}
    described["exchange"] = profile.get("exchange") if isinstance(profile, dict) else None
    return statements, {key: " ".join(value.split()) for key, value in described.items() if isinstance(value, str)}


def _series(path: Path, field: str, entries: object, *, positive: bool = False) -> pl.DataFrame:
    """A list of {"end", "v"} as a table; the line named is 1 because the files are a single line."""
    if not isinstance(entries, list):
        raise SourceError(path, f"no list '{field}'", line=1, remedy="an empty list says that there is none")
    ends, values = [], []
    for i, entry in enumerate(entries):
        value = entry.get("v") if isinstance(entry, dict) else None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not isinstance(entry.get("end"), str):
            raise SourceError(path, f"{field}[{i}] has no end or no number: {entry!r}", line=1, remedy="remove it")
        if positive and value <= 0:
            raise SourceError(path, f"{field}[{i}] is not positive: {value}", line=1, remedy="remove it")
        ends.append(entry["end"])
        values.append(float(value))
    dates = pl.Series("end", ends, dtype=pl.String).str.to_date("%Y-%m-%d", strict=False)
    for i, end in enumerate(dates):
        if end is None:
            raise SourceError(path, f"{field}[{i}] has an impossible end: {ends[i]!r}", line=1, remedy="use YYYY-MM-DD")
        if i and end <= dates[i - 1]:
            raise SourceError(path, f"{field}[{i}] ends {end}, not after the entry before", line=1, remedy="sort it")
    return pl.DataFrame({"end": dates, "value": values}, schema=_SCHEMA)
