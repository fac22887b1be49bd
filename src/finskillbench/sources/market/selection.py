"""Which names of a universe are taken: each sector's quota from its names, then from its alternates."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import polars as pl

from finskillbench.errors import SourceError
from finskillbench.sources.companies.share_counts import cover_counts, on_own_basis
from finskillbench.sources.companies.statements import Statements, parse_statements
from finskillbench.sources.companies.universe import Security, Universe, sector_counts
from finskillbench.sources.files import Problems, attempt, tell
from finskillbench.sources.market.prices import PriceFile, parse_prices
from finskillbench.sources.market.splice import splice

MIN_SESSIONS = 120
"""Sessions below which a name has no rolling regression (spec: at least 120 observations)."""
WRITE_ONE = "write a universe.json with the names there are; `finskillbench data template OUT` shows one"


@dataclass(slots=True)
class Files:
    """Files of the raw folder by ticker, and what has been parsed of them so far."""

    prices: dict[str, list[Path]]
    statements: dict[str, Path]
    covers: dict[str, list[Path]]
    start: date
    problems: Problems = None
    parsed: dict[str, list[PriceFile]] = field(default_factory=dict)

    def price_files(self, symbol: str) -> list[PriceFile]:
        """Price sets of a symbol with OHLCV and at least one row in the window."""
        if symbol not in self.parsed:
            read = (
                attempt(lambda path=path: parse_prices(path, start=self.start), self.problems)
                for path in self.prices.get(symbol, ())
            )
            self.parsed[symbol] = [f for f in read if f is not None and f.has_ohlcv and f.frame.height]
        return self.parsed[symbol]


@dataclass(slots=True)
class Selection:
    """The names taken so far, each with its prices and statements; `last` is the session that prices have to reach."""

    universe: Universe
    listed: Mapping[str, Security]
    collection: Files
    last: date
    securities: dict[str, Security] = field(default_factory=dict[str, Security])
    prices: dict[str, pl.DataFrame] = field(default_factory=dict[str, pl.DataFrame])
    statements: dict[str, Statements] = field(default_factory=dict[str, Statements])
    splits: dict[str, pl.DataFrame] = field(default_factory=dict[str, pl.DataFrame])
    notes: list[str] = field(default_factory=list[str])

    def choose(self, names: int | None) -> None:
        """Fill each sector's quota from its names, then its alternates; note every replacement."""
        universe = self.universe
        sizes = {sector: len(listed) for sector, listed in universe.names.items()}
        quota = sizes if names is None else sector_counts(sizes, names)
        for sector, wanted in quota.items():
            configured = set(universe.names[sector][:wanted])
            waiting: list[tuple[str, str]] = []
            taken = 0
            for symbol in (*universe.names[sector], *universe.alternates[sector]):
                if taken == wanted:
                    break
                if (reason := self._take(symbol, sector)) is not None:
                    waiting.append((symbol, reason))
                    continue
                taken += 1
                if waiting and symbol not in configured:
                    replaced, why = waiting.pop(0)
                    self.notes.append(f"{replaced} ({sector}) has {why}; {symbol} takes its place.")
            if taken < wanted and universe.fixed:
                why = "; ".join(f"{symbol} has {reason}" for symbol, reason in waiting) or "no further alternates"
                problem = f"{sector} supplies {taken} of {wanted} names ({why})"
                remedy = "add files or alternates, or ask for fewer names"
                tell(
                    SourceError(universe.path, problem, remedy=remedy if universe.own else WRITE_ONE),
                    self.collection.problems,
                )
            elif waiting:
                self.notes += [f"{symbol} ({sector}) has {reason}; it is left out." for symbol, reason in waiting]

    def _take(self, symbol: str, sector: str) -> str | None:
        """Add the name; or say why it cannot be used."""
        files = self.collection.price_files(symbol)
        if not files:
            return "no prices with volume"
        if symbol not in self.collection.statements:
            return "no statements"
        parsed = attempt(lambda: parse_statements(self.collection.statements[symbol]), self.collection.problems)
        if parsed is None:
            return "statements that cannot be read"
        facts, described = parsed
        if (gap := facts.gap()) is not None:
            return gap
        frame, splits, found = splice(files)
        self.collection.parsed[symbol] = []  # 3,000 names need not lie in memory twice
        if frame.height < MIN_SESSIONS:
            return f"{frame.height} sessions of prices where {MIN_SESSIONS} are needed"
        if (ends := frame["date"][-1]) < self.last:
            return f"prices that end on {ends}"
        self.prices[symbol], self.splits[symbol] = frame, splits
        # The configured sector wins: the published universe follows Yahoo's classes, the index list GICS.
        if symbol in self.listed and (other := self.listed[symbol].sector) != sector:
            self.notes.append(f"{symbol}: taken as {sector} as configured; the constituents list says {other}.")
        security = self.securities[symbol] = self._security(symbol, sector, described)
        counts = on_own_basis(symbol, facts.diluted_shares, facts.shares_outstanding, splits)
        covers = [*self.collection.covers.get(symbol, ()), *self.collection.covers.get(f"CIK{security.cik}", ())]
        self.statements[symbol] = replace(
            facts,
            diluted_shares=counts.table,
            broken_shares=counts.broken,
            **({"cover_shares": max(map(cover_counts, covers), key=len)} if covers else {}),
        )
        found += counts.notes
        self.notes.extend(found)
        return None

    def _security(self, symbol: str, sector: str, described: Mapping[str, str]) -> Security:
        """The universe's own record, else that of the constituents, completed from the statements' header."""
        if symbol in self.universe.securities:
            return self.universe.securities[symbol]
        found = self.listed.get(symbol) or Security(symbol, described.get("name", symbol))
        cik = found.cik or described.get("cik")
        return replace(found, sector=sector, cik=cik.zfill(10) if cik else None, exchange=described.get("exchange"))
