"""Published statements derived from EDGAR facts: one JSON file per company, without filing dates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import polars as pl

from finskillbench.errors import SourceError
from finskillbench.sources import files
from finskillbench.sources.companies.constituents import COVER_SCHEMA

MIN_QUARTERS = 8
"""Minimum quarters of net income, to compare two trailing years."""


FIGURES: Mapping[str, tuple[str, str]] = {
    "net_income_quarterly": ("quarterly", "netIncome"),
    "eps_quarterly": ("quarterly", "eps"),
    "net_income_annual": ("annual", "netIncome"),
    "eps_annual": ("annual", "eps"),
    "equity": ("balances", "equity"),
}
"""Place of each dollar figure in the file."""
_SERIES = {"end": pl.Date, "value": pl.Float64}


@dataclass(frozen=True, slots=True)
class Statements:
    """One company's published figures, each a table of `end` (Date) and `value` (Float64), sorted by end.

    Figures are in dollars, dollars per share or shares, of the latest vintage. It restates share counts for a split
    only as far back as later reports repeat them. Filing dates are absent: panels add a reporting lag to the end.
    In a `MarketData`, share counts are on the basis of their end. `cover_shares` are those of cover pages (`end`,
    `filed`, `value`); after an end in `broken_shares` a merger changed the count at an unknown date.
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
        """Return what is missing for market caps and views, or None."""
        if self.net_income_quarterly.height < MIN_QUARTERS:
            return f"{self.net_income_quarterly.height} quarters of net income where {MIN_QUARTERS} are needed"
        if self.equity.is_empty():
            return "no equity"
        if self.diluted_shares.is_empty() and self.shares_outstanding.is_empty():
            return "no share count"
        return None


def parse_statements(path: Path, problems: files.Problems = None) -> tuple[Statements, Mapping[str, str]]:
    """Read one company's file and its descriptive fields (name, cik, exchange); SourceError for invalid data."""
    record = files.json_object(files.read_json_file(path)) or {}
    symbol, named = files.ticker_of(path), record.get("symbol")
    if not isinstance(named, str):
        raise SourceError(path, "no field 'symbol'", line=1, remedy="expected one company's statements")
    if files.symbol_of(named) != symbol:
        raise SourceError(path, f"the symbol inside is {named!r}", line=1, remedy=f"rename or replace {symbol}")
    blocks = {name: files.json_object(record.get(name)) for name in ("quarterly", "annual", "balances")}

    def series(field: str, entries: object, *, positive: bool = False) -> pl.DataFrame:
        try:
            return _series(path, field, files.json_list(entries), positive=positive)
        except SourceError as error:
            files.raise_or_collect(error, problems)
            return pl.DataFrame(schema=_SERIES)

    def figures(field: str) -> pl.DataFrame:
        block, name = FIGURES[field]
        found = blocks[block]
        if found is None:
            absent = SourceError(path, f"no object '{block}'", line=1, remedy="expected annual, quarterly and balances")
            files.raise_or_collect(absent, problems)
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
    profile = files.json_object(record.get("profile")) or {}
    described = {"name": record.get("name"), "cik": record.get("cik"), "exchange": profile.get("exchange")}
    return statements, {key: files.one_line(value) for key, value in described.items() if isinstance(value, str)}


def _series(path: Path, field: str, entries: list[object] | None, *, positive: bool) -> pl.DataFrame:
    """Convert a list of {"end", "v"} to a table; errors name line 1 because the file has a single line."""
    if entries is None:
        raise SourceError(path, f"no list '{field}'", line=1, remedy="write an empty list if there is none")
    ends: list[str] = []
    values: list[float] = []
    for i, entry in enumerate(entries):
        fields = files.json_object(entry) or {}
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
