"""Company statements as published by a deriver of EDGAR facts: one JSON file per company, without filing dates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import polars as pl

from finskillbench.errors import SourceError
from finskillbench.sources.companies.constituents import COVER_SCHEMA
from finskillbench.sources.files import Problems, as_list, as_object, one_line, read_json, symbol_of, tell, ticker_of

MIN_QUARTERS = 8
"""Quarters of net income below which no trailing year can be compared with the year before."""


FIGURES: Mapping[str, tuple[str, str]] = {
    "net_income_quarterly": ("quarterly", "netIncome"),
    "eps_quarterly": ("quarterly", "eps"),
    "net_income_annual": ("annual", "netIncome"),
    "eps_annual": ("annual", "eps"),
    "equity": ("balances", "equity"),
}
"""Where the file has each of the dollar figures."""
_SERIES = {"end": pl.Date, "value": pl.Float64}


@dataclass(frozen=True, slots=True)
class Statements:
    """One company's published figures, each a table of `end` (Date) and `value` (Float64), sorted by end.

    Dollars, dollars per share or shares, of the latest vintage: shares and per-share figures are restated for a
    split only as far back as later reports repeat them. The files carry no filing dates: when a figure was known is
    decided by the panels (end plus a reporting lag). Nothing is cut at the price window's start, because what was
    known on its first day is older.

    As part of a `MarketData` share counts are on the basis of their own end; `cover_shares` are those of cover pages
    (`end`, `filed`, `value`), and `broken_shares` the ends of counts after which a merger changed them at an unknown
    date.
    """

    symbol: str
    net_income_quarterly: pl.DataFrame
    eps_quarterly: pl.DataFrame
    equity: pl.DataFrame
    net_income_annual: pl.DataFrame
    eps_annual: pl.DataFrame
    diluted_shares: pl.DataFrame
    shares_outstanding: pl.DataFrame
    cover_shares: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=COVER_SCHEMA))
    broken_shares: tuple[date, ...] = ()

    def gap(self) -> str | None:
        """What is missing for caps and views, or None if the statements are usable."""
        if self.net_income_quarterly.height < MIN_QUARTERS:
            return f"{self.net_income_quarterly.height} quarters of net income where {MIN_QUARTERS} are needed"
        if self.equity.is_empty():
            return "no equity"
        if self.diluted_shares.is_empty() and self.shares_outstanding.is_empty():
            return "no share count"
        return None


def parse_statements(path: Path, problems: Problems = None) -> tuple[Statements, Mapping[str, str]]:
    """Read one company's file; also its descriptive fields (name, cik, exchange) where given.

    Raises
    ------
    SourceError : truncated or malformed JSON, a symbol that is not the file's, entries without end or number,
        ends not increasing, share counts that are not positive.
    """
    record = as_object(read_json(path)) or {}
    symbol, named = ticker_of(path), record.get("symbol")
    if not isinstance(named, str):
        raise SourceError(path, "no field 'symbol'", line=1, remedy="expected one company's statements")
    if symbol_of(named) != symbol:
        raise SourceError(path, f"the symbol inside is {named!r}", line=1, remedy=f"rename or replace {symbol}")
    blocks = {name: as_object(record.get(name)) for name in ("quarterly", "annual", "balances")}

    def series(field: str, entries: object, *, positive: bool = False) -> pl.DataFrame:
        try:
            return _series(path, field, as_list(entries), positive=positive)
        except SourceError as error:
            tell(error, problems)
            return pl.DataFrame(schema=_SERIES)

    def figures(field: str) -> pl.DataFrame:
        block, name = FIGURES[field]
        found = blocks[block]
        if found is None:
            absent = SourceError(path, f"no object '{block}'", line=1, remedy="expected annual, quarterly and balances")
            tell(absent, problems)
            return pl.DataFrame(schema=_SERIES)
        return series(f"{block}.{name}", found.get(name))

    latest = record.get("sharesLatest")
    statements = Statements(
        symbol=symbol,
        net_income_quarterly=figures("net_income_quarterly"),
        eps_quarterly=figures("eps_quarterly"),
        net_income_annual=figures("net_income_annual"),
        eps_annual=figures("eps_annual"),
        equity=figures("equity"),
        diluted_shares=series("dilutedShares", record.get("dilutedShares"), positive=True),
        shares_outstanding=series("sharesLatest", [] if latest is None else [latest], positive=True),
    )
    profile = as_object(record.get("profile")) or {}
    described = {"name": record.get("name"), "cik": record.get("cik"), "exchange": profile.get("exchange")}
    return statements, {key: one_line(value) for key, value in described.items() if isinstance(value, str)}


def _series(path: Path, field: str, entries: list[object] | None, *, positive: bool) -> pl.DataFrame:
    """A list of {"end", "v"} as a table; the line named is 1 because the files are a single line."""
    if entries is None:
        raise SourceError(path, f"no list '{field}'", line=1, remedy="an empty list says that there is none")
    ends: list[str] = []
    values: list[float] = []
    for i, entry in enumerate(entries):
        fields = as_object(entry) or {}
        value, end = fields.get("v"), fields.get("end")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not isinstance(end, str):
            raise SourceError(path, f"{field}[{i}] has no end or no number: {entry!r}", line=1, remedy="remove it")
        if positive and value <= 0:
            raise SourceError(path, f"{field}[{i}] is not positive: {value}", line=1, remedy="remove it")
        ends.append(end)
        values.append(float(value))
    table = pl.DataFrame({"end": ends, "value": values}, schema={**_SERIES, "end": pl.String})
    table = table.with_columns(pl.col("end").str.to_date("%Y-%m-%d", strict=False))
    for i, end in enumerate(table["end"]):
        if end is None:
            raise SourceError(path, f"{field}[{i}] has an impossible end: {ends[i]!r}", line=1, remedy="use YYYY-MM-DD")
        if i and end <= table["end"][i - 1]:
            raise SourceError(path, f"{field}[{i}] ends {end}, not after the entry before", line=1, remedy="sort it")
    return table
