"""Panels of one build with look-ups by date, and the report on the build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from finskillbench.arrays import FACTORS, Floats
from finskillbench.engines.risk.portfolio import MarketSnapshot
from finskillbench.engines.statistics.covariance import Covariance
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import InputError
from finskillbench.panels.reading import read_table


@dataclass(frozen=True, slots=True)
class PriceGap:
    """Run of sessions without a price inside a name's history, longer than prices are carried forward.

    last, next : sessions of the prices around it; next is None if prices never resume. The first five are filled.
    """

    symbol: str
    last: date
    next: date | None
    sessions: int


@dataclass(frozen=True, slots=True)
class Jump:
    """One-session move beyond the limit: a wrong adjustment or news; reported, not altered."""

    symbol: str
    date: date
    simple_return: float


@dataclass(frozen=True, slots=True)
class PanelReport:
    """Counts and findings of one build.

    first_session, last_session, sessions : range and number of sessions; None and 0 without prices.
    observations : sessions with an observed price, per symbol.
    forward_filled : sessions filled with the last price, per symbol; symbols with none are omitted.
    short_history : symbols with fewer observations than a regression needs.
    absent_signals : per view signal, the number of (month-end, symbol) pairs without it.
    stale_shares : per symbol, greatest age in days of shares older than two reporting years on a date used.
    shrinkage : Ledoit-Wolf intensity per month-end and risk date (ISO date).
    ridged : month-ends and risk dates (ISO dates) whose covariance needed a ridge.
    notes : sentences for the reader, those of the sources first.
    unusable : one sentence per company whose facts cannot be used, with reason and remedy.
    """

    first_session: date | None
    last_session: date | None
    sessions: int
    observations: Mapping[str, int]
    forward_filled: Mapping[str, int]
    gaps: tuple[PriceGap, ...]
    jumps: tuple[Jump, ...]
    short_history: tuple[str, ...]
    absent_signals: Mapping[str, int]
    stale_shares: Mapping[str, int]
    shrinkage: Mapping[str, float]
    ridged: tuple[str, ...]
    notes: tuple[str, ...]
    unusable: tuple[str, ...] = ()


DataKind: TypeAlias = Literal["prices", "company facts"]
"""Kind of source data; a collection has one or both."""


class Tables(Mapping[str, pl.DataFrame]):
    """Tables of panels by name, in memory or in files read on first use; EditionError for an unreadable file."""

    def __init__(self, made: Mapping[str, pl.DataFrame], files: Mapping[str, Path] | None = None) -> None:
        self.files: Mapping[str, Path] = files or dict[str, Path]()
        self._made = dict(made)

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in self._made:
            self._made[name] = read_table(self.files[name])
        return self._made[name]

    def read_uncached(self, name: str) -> pl.DataFrame:
        """Return a table without caching it."""
        return self._made[name] if name in self._made else read_table(self.files[name])

    def unread(self) -> Tables:
        """Return the same files with no table loaded."""
        return Tables({}, self.files)

    def merged_over(self, other: Tables) -> Tables:
        """Return these tables plus those of `other` under further names."""
        files = {name: file for name, file in other.files.items() if name not in self}
        made = {name: frame for name, frame in other._made.items() if name not in self}
        return Tables({**made, **self._made}, {**files, **self.files})

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._made, *self.files)))

    def __len__(self) -> int:
        return len(self._made.keys() | self.files.keys())


@dataclass(frozen=True, slots=True, eq=False)
class Panels:
    """Point-in-time tables: a row dated d depends on nothing dated after d.

    Without prices there are no symbols and dates, and market tables are empty; without company facts those of filings
    are empty.

    symbols : the universe, sorted; the order of every array returned here.
    month_ends : 12 month-ends of portfolio tasks, trading sessions spread over the years with prices.
    covariance : annualised, for the names of `symbols_at`, per month-end and risk date.
    risk_free : per month-end of `month_ends`, annual decimals.
    regimes : market regime of each risk date, in order of date.
    """

    symbols: tuple[str, ...]
    sectors: Mapping[str, str]
    month_ends: tuple[date, ...]
    tables: Tables
    covariance: Mapping[date, Covariance]
    risk_free: Mapping[date, float]
    regimes: Mapping[date, str]
    report: PanelReport

    @property
    def prices(self) -> pl.DataFrame:
        """Wide, `date` and `field:SYMBOL`."""
        return self.tables["prices"]

    @property
    def returns(self) -> pl.DataFrame:
        """Long: symbol, date, simple, log, volatility_21d, drawdown."""
        return self.tables["returns"]

    @property
    def factors(self) -> pl.DataFrame:
        """Wide: `date`, the six factors and rf, per session."""
        return self.tables["factors"]

    @property
    def factor_exposures(self) -> pl.DataFrame:
        """Long: the betas of all month-ends with 252 sessions of history."""
        return self.tables["factor_exposures"]

    @property
    def benchmark_weights(self) -> pl.DataFrame:
        """Long: the names of `symbols_at` at each month-end and risk date."""
        return self.tables["benchmark_weights"]

    @property
    def views(self) -> pl.DataFrame:
        """Long: `month_ends`."""
        return self.tables["views"]

    @property
    def liquidity(self) -> pl.DataFrame:
        """Long: symbol, date, average_daily_volume_usd; risk dates."""
        return self.tables["liquidity"]

    @property
    def macro(self) -> pl.DataFrame:
        """Wide: `date` and a column per FRED series, as released by the session."""
        return self.tables["macro"]

    @property
    def facts(self) -> pl.DataFrame:
        """Long, for all companies with EDGAR files, which may differ from `symbols`; see `FactStore` for a day."""
        return self.tables["facts"]

    @property
    def filings(self) -> pl.DataFrame:
        """Long: the periodic reports of the companies of `facts`."""
        return self.tables["filings"]

    @property
    def segments(self) -> pl.DataFrame:
        """Long: revenue by segment of the companies of `facts`."""
        return self.tables["segments"]

    @property
    def filed(self) -> pl.DataFrame:
        """Long: figures as filed, by tag, for the companies of `facts`."""
        return self.tables["filed"]

    @property
    def data_kinds(self) -> frozenset[DataKind]:
        found: list[DataKind] = []
        if self.symbols:
            found.append("prices")
        if self.filings.height:
            found.append("company facts")
        return frozenset(found)

    @property
    def universe(self) -> tuple[str, ...]:
        """Symbols with prices, or without any, those with company facts; sorted."""
        return self.symbols or tuple(self.facts["symbol"].unique().sort().to_list())

    @property
    def risk_dates(self) -> tuple[date, ...]:
        return tuple(self.regimes)

    def symbols_at(self, as_of: date) -> tuple[str, ...]:
        """Return the names complete on a risk date or month-end, sorted; InputError for other dates."""
        if as_of not in self.covariance:
            raise InputError(f"panels: {as_of} is neither a month-end of the edition nor a risk date")
        return self.covariance[as_of].symbols

    def snapshot(self, as_of: date) -> MarketSnapshot:
        """Return the inputs of the risk engines for `symbols_at`, without factor volatility; InputError if it is no
        risk date.
        """
        if as_of not in self.regimes:
            raise InputError(f"panels: {as_of} is not a risk date")
        tickers, covariance = self.symbols_at(as_of), self.covariance[as_of]
        return MarketSnapshot(
            tickers=tickers,
            sectors=tuple(self.sectors[symbol] for symbol in tickers),
            betas=self.exposures(as_of),
            benchmark=self.weights(as_of),
            risk=RiskModel.from_factors(covariance.loadings, covariance.specific),
            dollar_volume=self._vector(self.liquidity, as_of, "average_daily_volume_usd"),
        )

    def prices_of(self, field: str) -> pl.DataFrame:
        """Return one field of the prices: `date` and a column per symbol."""
        names = [f"{field}:{symbol}" for symbol in self.symbols]
        if names[0] not in self.prices.columns:
            raise InputError(f"prices panel: no field {field}")
        return self.prices.select("date", *(pl.col(name).alias(name.split(":", 1)[1]) for name in names))

    def window_returns(self, end: date, sessions: int = 252) -> tuple[tuple[date, ...], Floats]:
        """Return dates and simple returns (sessions, n) up to and including `end`, NaN if absent; InputError as
        `window_dates`.
        """
        chosen = self._window(end, sessions)
        wide = pl.DataFrame({"date": chosen}).join(
            self.returns.filter(pl.col("date").is_between(chosen[0], end))
            .select("symbol", "date", "simple")
            .pivot("symbol", index="date", values="simple"),
            on="date",
            how="left",
            maintain_order="left",
        )
        there = set(wide.columns)
        places = [place for place, symbol in enumerate(self.symbols) if symbol in there]
        returns = np.full((sessions, len(self.symbols)), np.nan)
        returns[:, places] = wide.select(self.symbols[place] for place in places).fill_null(np.nan).to_numpy()
        return tuple(chosen.to_list()), returns

    def window_dates(self, end: date, sessions: int = 252) -> tuple[date, ...]:
        """Return the sessions up to and including `end`; InputError if it is none or too few precede it."""
        return tuple(self._window(end, sessions).to_list())

    def _window(self, end: date, sessions: int) -> pl.Series:
        days = self.prices["date"]
        place = int(days.search_sorted(end))
        if place >= len(days) or days[place] != end:
            raise InputError(f"returns panel: {end} is not a session")
        if place + 1 < sessions:
            raise InputError(f"returns panel: {place + 1} sessions up to {end}, {sessions} needed")
        return days[place - sessions + 1 : place + 1]

    def exposures(self, as_of: date) -> Floats:
        """Return betas (n, 6) on `FACTORS` of `symbols_at`; InputError if a name has none."""
        return np.column_stack([self._vector(self.factor_exposures, as_of, factor) for factor in FACTORS])

    def weights(self, as_of: date) -> Floats:
        """Return benchmark weights (n,) of `symbols_at`, summing to 1."""
        return self._vector(self.benchmark_weights, as_of, "weight")

    def expected_returns(self, as_of: date) -> Floats:
        """Return expected returns (n,) of `symbols_at`, annualised decimals, at one of `month_ends`."""
        return self._vector(self.views, as_of, "expected_return")

    def _vector(self, frame: pl.DataFrame, as_of: date, column: str) -> Floats:
        at = frame.filter(pl.col("date") == as_of).select("symbol", column).drop_nulls()
        values = dict(at.iter_rows())
        symbols = self.symbols_at(as_of)
        missing = [symbol for symbol in symbols if symbol not in values]
        if missing:
            raise InputError(f"panels: no {column} of {missing[0]} at {as_of}")
        return np.array([values[symbol] for symbol in symbols], dtype=np.float64)
