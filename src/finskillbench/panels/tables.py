"""The panels of one build, with the few look-ups that every user of them needs.

What building the panels found: counts, flags and notes, as plain data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from finskillbench.arrays import FACTORS, Floats
from finskillbench.engines.risk.portfolio import Market
from finskillbench.engines.statistics.covariance import Covariance
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import InputError
from finskillbench.panels.reading import read_table


@dataclass(frozen=True, slots=True)
class PriceGap:
    """A run of sessions without a price inside a name's history, longer than prices are carried forward.

    `last` is the session of the last price before it and `next` that of the first after it, absent (None) where the
    prices never resume; `sessions` counts the run, of which the first five are filled and the rest are null.
    """

    symbol: str
    last: date
    next: date | None
    sessions: int


@dataclass(frozen=True, slots=True)
class Jump:
    """A one-session move beyond the limit: a corporate action adjusted wrongly, or news. Reported, never altered."""

    symbol: str
    date: date
    simple_return: float


@dataclass(frozen=True, slots=True)
class PanelReport:
    """Counts and findings of one build.

    Attributes
    ----------
    first_session, last_session, sessions : the range of sessions and their number; None and 0 without prices.
    observations : sessions with an observed price, per symbol.
    forward_filled : sessions filled with the last price, per symbol (symbols with none are left out).
    gaps, jumps : see `PriceGap` and `Jump`.
    short_history : symbols with fewer observations than a regression needs.
    absent_signals : per view signal, the number of (month-end, symbol) pairs where it could not be computed.
    stale_shares : symbols whose shares were older than two reporting years at a month-end or risk date: the greatest
        age in days.
    shrinkage : Ledoit-Wolf intensity per month-end and risk date (ISO date).
    ridged : month-ends and risk dates (ISO dates) whose covariance needed a ridge.
    notes : sentences for the reader, those of the sources first.
    unusable : which companies' facts cannot be used, with the reason and the remedy, one sentence each.
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


Half: TypeAlias = Literal["prices", "company facts"]
"""What panels are built from; a collection has one of the two or both."""


class Tables(Mapping[str, pl.DataFrame]):
    """The tables of panels by name, in memory or in files; one in a file is read when it is asked for, and then kept.

    Raises
    ------
    EditionError : on access, a file that cannot be read.
    """

    def __init__(self, made: Mapping[str, pl.DataFrame], files: Mapping[str, Path] | None = None) -> None:
        self.files: Mapping[str, Path] = files or dict[str, Path]()
        self._made = dict(made)

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in self._made:
            self._made[name] = read_table(self.files[name])
        return self._made[name]

    def once(self, name: str) -> pl.DataFrame:
        """A table of which nobody will ask again: of one in a file nothing is kept."""
        return self._made[name] if name in self._made else read_table(self.files[name])

    def unread(self) -> Tables:
        """The same tables of files, none of them in memory."""
        return Tables({}, self.files)

    def over(self, other: Tables) -> Tables:
        """These tables, and those of `other` that are not among them."""
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

    Without prices there are no symbols and no dates, and the tables of the market have no rows; without company facts
    those of the filings have none.

    Attributes
    ----------
    symbols : the universe, sorted; the order of every array returned here.
    sectors : symbol to sector.
    month_ends : 12 month-ends, trading sessions, spread over the years that the prices cover; those of portfolio tasks.
    tables : the tables, which are properties too.
    covariance : annualised, per date: the names of `symbols_at` at each month-end and risk date.
    risk_free : per month-end of `month_ends`, annual decimals.
    regimes : market regime of each risk date, in order of date.
    report : what the build found.
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
        """Long, of every company of the collection's EDGAR files, which need not be those of `symbols`.

        `FactStore` of `finskillbench.panels.filings.query` says what was public on a day.
        """
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
        """Long: what filers said of each tag, for the companies of `facts`."""
        return self.tables["filed"]

    @property
    def halves(self) -> frozenset[Half]:
        """What the panels were built from."""
        found: list[Half] = []
        if self.symbols:
            found.append("prices")
        if self.filings.height:
            found.append("company facts")
        return frozenset(found)

    @property
    def universe(self) -> tuple[str, ...]:
        """The names with prices; where there are none, those with company facts. Sorted."""
        return self.symbols or tuple(self.facts["symbol"].unique().sort().to_list())

    @property
    def risk_dates(self) -> tuple[date, ...]:
        """The dates of the risk subtasks, increasing."""
        return tuple(self.regimes)

    def symbols_at(self, as_of: date) -> tuple[str, ...]:
        """The names of a risk date or month-end, sorted: those with every figure on it; InputError if it is neither."""
        if as_of not in self.covariance:
            raise InputError(f"panels: {as_of} is neither a month-end of the edition nor a risk date")
        return self.covariance[as_of].symbols

    def snapshot(self, as_of: date) -> Market:
        """What the risk engines need of a risk date, for `symbols_at`; the factor volatility is the domain's to add.

        Raises InputError if it is no risk date.
        """
        if as_of not in self.regimes:
            raise InputError(f"panels: {as_of} is not a risk date")
        tickers, covariance = self.symbols_at(as_of), self.covariance[as_of]
        return Market(
            tickers=tickers,
            sectors=tuple(self.sectors[symbol] for symbol in tickers),
            betas=self.exposures(as_of),
            benchmark=self.weights(as_of),
            risk=RiskModel.from_factors(covariance.loadings, covariance.specific),
            dollar_volume=self._vector(self.liquidity, as_of, "average_daily_volume_usd"),
        )

    def prices_of(self, field: str) -> pl.DataFrame:
        """One field of the prices: `date` and a column per symbol."""
        names = [f"{field}:{symbol}" for symbol in self.symbols]
        if names[0] not in self.prices.columns:
            raise InputError(f"prices panel: no field {field}")
        return self.prices.select("date", *(pl.col(name).alias(name.split(":", 1)[1]) for name in names))

    def window_returns(self, end: date, sessions: int = 252) -> tuple[tuple[date, ...], Floats]:
        """The dates and simple returns (sessions, n) of the sessions up to and including `end`; NaN where absent.

        Raises InputError if `end` is no session or too few sessions precede it.
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
        """The sessions up to and including `end`; InputError if it is none or too few precede it."""
        return tuple(self._window(end, sessions).to_list())

    def _window(self, end: date, sessions: int) -> pl.Series:
        days = self.prices["date"]
        place = int(days.search_sorted(end))
        if place >= len(days) or days[place] != end:
            raise InputError(f"returns panel: {end} is not a session")
        if place + 1 < sessions:
            raise InputError(f"returns panel: {place + 1} sessions up to {end}, {sessions} asked for")
        return days[place - sessions + 1 : place + 1]

    def exposures(self, as_of: date) -> Floats:
        """Betas (n, 6) on `FACTORS` of `symbols_at`; InputError if a name has none."""
        return np.column_stack([self._vector(self.factor_exposures, as_of, factor) for factor in FACTORS])

    def weights(self, as_of: date) -> Floats:
        """Benchmark weights (n,) of `symbols_at`, summing to 1."""
        return self._vector(self.benchmark_weights, as_of, "weight")

    def expected_returns(self, as_of: date) -> Floats:
        """Expected returns (n,) of `symbols_at`, annualised decimals, at one of `month_ends`."""
        return self._vector(self.views, as_of, "expected_return")

    def _vector(self, frame: pl.DataFrame, as_of: date, column: str) -> Floats:
        at = frame.filter(pl.col("date") == as_of).select("symbol", column).drop_nulls()
        values = dict(at.iter_rows())
        symbols = self.symbols_at(as_of)
        missing = [symbol for symbol in symbols if symbol not in values]
        if missing:
            raise InputError(f"panels: no {column} of {missing[0]} at {as_of}")
        return np.array([values[symbol] for symbol in symbols], dtype=np.float64)
