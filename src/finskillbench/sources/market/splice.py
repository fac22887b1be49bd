"""Join several price downloads per ticker, undo adjustments, and select the names of a universe.

Adjusted prices are restated to the first day at every dividend, so downloads of one ticker differ by a factor while
their returns agree. The latest download is kept; earlier history is prepended, scaled by the ratio of adjusted closes
on the first shared date. Yahoo divides earlier prices by each later split and spin-off and subtracts dividends, but
share counts are as reported at the time. Their product is no market cap: Chipotle's is a fiftieth before its split of
2024, and DuPont's 2.4 times too small for ten months before its spin-off of November 2025. A split changes the number
of shares, a spin-off does not. Each sector's quota is filled from its names, then its alternates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from finskillbench.arrays import Floats
from finskillbench.errors import SourceError
from finskillbench.sources.companies.constituents import cover_counts, undo_split_restatement
from finskillbench.sources.companies.statements import Statements, parse_statements
from finskillbench.sources.companies.universe import CompanyUniverse, SecurityRecord, sector_counts
from finskillbench.sources.files import Problems, attempt, raise_or_collect
from finskillbench.sources.market.prices import PriceFile, parse_prices

SCHEMA = {"date": pl.Date, "price": pl.Float64, "shares": pl.Float64}
"""Splits and spin-offs: earlier prices are divided by `price`, earlier share counts multiplied by `shares`."""
_DENOMINATORS = (1, 2, 3, 4)
_SIMPLE = 5e-4
"""Relative distance from a ratio of small integers up to which a ratio is a split's, not a spin-off's."""
_DOUBLE = 0.20
"""A dividend beyond this share of the price, on the day of a split, repeats that split (DHR 2016-07-05)."""
_FIELDS = ("open", "high", "low", "close")


class Traded(NamedTuple):
    """Prices and volumes as traded, null where unknown; splits and spin-offs; notes."""

    frame: pl.DataFrame
    splits: pl.DataFrame
    notes: list[str]


def as_traded(joined: pl.DataFrame, files: list[tuple[PriceFile, pl.DataFrame]], volume_ratio: float) -> Traded:
    """Undo the adjustments of a joined history by the actions of the latest file that has any.

    After that file the dates of adjustments are unknown: dividends are spread evenly (error below one dividend), and a
    split or spin-off leaves prices as traded unknown. The last price of a download is as traded.

    Parameters
    ----------
    joined : date, prices, adj_close and volume of one name, by date; it keeps `adj_close`.
    files : repaired downloads, the base of `joined` first.
    volume_ratio : volume of the base over that of the file with actions: 1 unless a split is between them.
    """
    with_actions = [(file, frame) for file, frame in files if not frame["splits"].is_null().all()]
    if not with_actions:
        return Traded(joined, pl.DataFrame(schema=SCHEMA), [])
    file, frame = with_actions[0]
    splits = _splits(frame)
    unadjusted = pl.DataFrame({"date": frame["date"], "traded": _undone(frame), "ratio": _later(frame)})
    last = frame["date"][-1]
    table = joined.join(unadjusted, on="date", how="left").sort("date")
    factor = (table["traded"] / table["close"]).to_numpy().copy()
    shares = volume_ratio * table["ratio"].fill_null(strategy="backward").fill_null(1.0).to_numpy()
    later = (table["date"] > last).to_numpy()
    notes: list[str] = []
    if later.any():
        start = int(np.argmax(later)) - 1
        days = table["date"].to_physical().to_numpy().astype(float)
        left = (days[-1] - days[later]) / (days[-1] - days[start])
        factor[later] = factor[start] ** left if volume_ratio == 1.0 else np.nan
        shares[later] = 1.0 if volume_ratio == 1.0 else np.nan
        if volume_ratio != 1.0:
            notes.append(
                f"{file.ticker}: prices as traded are unknown after {last}: a later download divides them by a further "
                f"{volume_ratio:g} (a split or spin-off without a date)."
            )
    factor = pl.Series(factor).fill_nan(None).fill_null(strategy="backward") if not later.any() else pl.Series(factor)
    mixed = splits.filter(pl.col("shares").is_null())["date"].max()
    if mixed is not None:
        factor = factor.set((table["date"] < mixed), float("nan"))
        notes.append(f"{file.ticker}: the share basis before {mixed} is unknown: a split and a spin-off fall together.")
    scale = factor.fill_nan(None)
    return Traded(
        table.select(
            "date",
            *(pl.col(name) * scale for name in _FIELDS),
            "adj_close",
            (pl.col("volume") / pl.Series(shares).fill_nan(None)).alias("volume"),
        ),
        splits,
        notes,
    )


def _splits(frame: pl.DataFrame) -> pl.DataFrame:
    rows = frame.filter(~pl.col("splits").fill_null(0).is_in([0.0, 1.0])).select("date", "splits")
    ratios = rows["splits"].to_list()
    # A ratio below one that no reverse split explains combines a reverse split and a spin-off.
    shares = [ratio if _is_simple(ratio) else 1.0 if ratio > 1 else None for ratio in ratios]
    return pl.DataFrame({"date": rows["date"], "price": ratios, "shares": shares}, schema=SCHEMA)


def _is_simple(ratio: float) -> bool:
    """Return true for a ratio of a split: n for 1, 3 for 2, 5 for 4, 1 for n."""
    large = max(ratio, 1 / ratio)
    return any(abs(large * d - round(large * d)) <= _SIMPLE * large * d for d in _DENOMINATORS)


def _later(frame: pl.DataFrame) -> Floats:
    """(T,) product of the split ratios after each day."""
    ratio = frame["splits"].fill_null(0).to_numpy()
    steps = np.where((ratio == 0) | (ratio == 1), 1.0, ratio)
    return np.append(np.cumprod(steps[::-1])[::-1][1:], 1.0)


def _undone(frame: pl.DataFrame) -> Floats:
    """(T,) closes as traded, from the last one back.

    An adjusted close lacks the factor 1 - D / C of every later dividend D, where C is the close before it. Both are
    adjusted for later splits. A separate unadjusted close lacks the splits only.
    """
    close, adjusted = frame["close"].to_numpy(), frame["adj_close"].to_numpy()
    splits = frame["splits"].fill_null(0).to_numpy()
    whole = np.ones(len(close))
    if np.array_equal(close, adjusted):
        paid = frame["dividends"].fill_null(0).to_numpy()
        factor = 1.0
        for row in np.flatnonzero(paid > 0)[::-1].tolist():
            if row == 0:
                continue
            before = close[row - 1] / factor + paid[row]
            if splits[row] not in (0.0, 1.0) and paid[row] > _DOUBLE * before:
                continue
            whole[row] = 1 - paid[row] / before
            factor *= whole[row]
    remaining = np.append(np.cumprod(whole[::-1])[::-1][1:], 1.0)
    return close / remaining * _later(frame)


JUMP = 0.40
"""One-day move that, on a day with a dividend or split, indicates a doubly applied adjustment."""
DISAGREEMENT = 0.0020
"""Reported difference of daily returns between two downloads (20 bp)."""
_COLUMNS = ("date", "open", "high", "low", "close", "adj_close", "volume")
_LEVELS = ("open", "high", "low", "close")


def repair_jumps(file: PriceFile) -> tuple[pl.DataFrame, list[str]]:
    """Rescale prices before moves over 40 % on a day with a dividend or split, so that the day's return is 0.

    Such jumps come from a corporate action adjusted twice (DHR 2016-07-05). The true return is unknown; later uses
    treat zero as missing, and a note reports it.
    """
    frame = file.frame
    notes: list[str] = []
    action = (pl.col("dividends").fill_null(0) > 0) | ~pl.col("splits").fill_null(0).is_in([0.0, 1.0])
    move = pl.col("adj_close") / pl.col("adj_close").shift(1) - 1
    suspects = frame.with_columns(move.alias("move")).filter(action & (pl.col("move").abs() > JUMP))
    for row in suspects.iter_rows(named=True):
        factor = 1 + row["move"]
        before = pl.col("date") < row["date"]
        frame = frame.with_columns(
            pl.when(before).then(pl.col(name) * factor).otherwise(pl.col(name)).alias(name)
            for name in (*_LEVELS, "adj_close")
        )
        notes.append(
            f"{file.ticker}: {row['date']} moves {row['move']:+.1%} on a day with Dividends {row['dividends']:g} and "
            f"Stock Splits {row['splits']:g} in {file.path.parent.name}; taken for a missing return: earlier prices "
            "are rescaled so that the day's return is 0."
        )
    return frame, notes


def splice(files: Sequence[PriceFile]) -> Traded:
    """Join the price sets of one ticker on returns, and convert prices and volumes to the traded basis.

    Parameters
    ----------
    files : sets of one ticker with OHLCV, each with at least one row.

    Returns
    -------
    date, OHLCV as traded and adj_close, sorted by date; splits; notes on jumps, disagreements and omitted sets.
    """
    notes: list[str] = []
    repaired: list[tuple[PriceFile, pl.DataFrame]] = []
    for file in latest_first(files):
        frame, found = repair_jumps(file)
        repaired.append((file, frame))
        notes += found
    base_file, whole = repaired[0]
    joined = whole.select(_COLUMNS)
    ratios = {base_file.path: 1.0}
    for file, actions in repaired[1:]:
        frame = actions.select(_COLUMNS)
        notes += _disagreements(base_file, joined, file, frame)
        common = joined.join(frame, on="date", how="inner", suffix="_old").sort("date")
        if common.is_empty():
            notes.append(
                f"{file.ticker}: {file.path.parent.name} shares no date with the later prices and is left out."
            )
            continue
        earlier = frame.filter(pl.col("date") < joined["date"][0])
        first = common.row(0, named=True)
        level = first["close"] / first["close_old"]
        shares = ratios[file.path] = _volume_ratio(common)
        if shares != 1.0 and actions["splits"].is_null().all():
            notes.append(
                f"{file.ticker}: volumes of {file.path.parent.name} are multiplied by {shares:g} "
                "(a split or spin-off in between)."
            )
        earlier = earlier.with_columns(
            *(pl.col(name) * level for name in _LEVELS),
            pl.col("adj_close") * (first["adj_close"] / first["adj_close_old"]),
            pl.col("volume") * shares,
        )
        joined = pl.concat([earlier, joined])
    actions_file = next((file for file, frame in repaired if not frame["splits"].is_null().all()), base_file)
    traded = as_traded(joined, repaired, ratios.get(actions_file.path, 1.0))
    return traded._replace(notes=notes + traded.notes)


def latest_first(files: Sequence[PriceFile]) -> list[PriceFile]:
    """Sort downloads by last day, then length, latest first."""
    return sorted(files, key=lambda f: (f.frame["date"][-1].toordinal(), f.frame.height), reverse=True)


def _volume_ratio(common: pl.DataFrame) -> float:
    """Return the volume of the later set over the earlier one: 1 unless a split is between the downloads."""
    both = common.filter((pl.col("volume") > 0) & (pl.col("volume_old") > 0))
    ratio = both.select((pl.col("volume") / pl.col("volume_old")).median()).item()
    return 1.0 if ratio is None or abs(ratio - 1) < 0.05 else float(ratio)


def _disagreements(base: PriceFile, joined: pl.DataFrame, file: PriceFile, frame: pl.DataFrame) -> list[str]:
    """Note days on which both sets' returns from the same previous day differ by more than 20 bp."""
    returns = [
        f.select("date", pl.col("date").shift(1).alias("from"), (pl.col("adj_close").pct_change()).alias("r"))
        for f in (joined, frame)
    ]
    overlap = returns[0].join(returns[1], on=["date", "from"], how="inner", suffix="_old").drop_nulls()
    worst = (
        overlap.with_columns((pl.col("r") - pl.col("r_old")).alias("gap"))
        .filter(pl.col("gap").abs() > DISAGREEMENT)
        .sort(pl.col("gap").abs(), descending=True)
    )
    if worst.is_empty():
        return []
    top = worst.row(0, named=True)
    days = "1 day" if worst.height == 1 else f"{worst.height} days"
    return [
        f"{file.ticker}: returns of {base.path.parent.name} and {file.path.parent.name} differ by more than 20 bp on "
        f"{days}, most on {top['date']} by {top['gap'] * 1e4:+.1f} bp; the former are kept."
    ]


MIN_SESSIONS = 120
"""Minimum sessions for a rolling regression (spec: at least 120 observations)."""
WRITE_ONE = "write a universe.json with the names there are; `finskillbench data template OUT` shows one"


@dataclass(slots=True)
class Files:
    """Files of the raw folder by ticker, and their parsed contents."""

    prices: dict[str, list[Path]]
    statements: dict[str, Path]
    covers: dict[str, list[Path]]
    start: date
    problems: Problems = None
    parsed: dict[str, list[PriceFile]] = field(default_factory=dict)

    def price_files(self, symbol: str) -> list[PriceFile]:
        """Return the price sets of a symbol with OHLCV and at least one row in the window."""
        if symbol not in self.parsed:
            read = (
                attempt(lambda path=path: parse_prices(path, start=self.start), self.problems)
                for path in self.prices.get(symbol, ())
            )
            self.parsed[symbol] = [f for f in read if f is not None and f.has_ohlcv and f.frame.height]
        return self.parsed[symbol]


@dataclass(slots=True)
class Selection:
    """The selected names with prices and statements; `last` is the session that prices have to reach."""

    universe: CompanyUniverse
    listed: Mapping[str, SecurityRecord]
    collection: Files
    last: date
    securities: dict[str, SecurityRecord] = field(default_factory=dict[str, SecurityRecord])
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
                raise_or_collect(
                    SourceError(universe.path, problem, remedy=remedy if universe.has_file else WRITE_ONE),
                    self.collection.problems,
                )
            elif waiting:
                self.notes += [f"{symbol} ({sector}) has {reason}; it is left out." for symbol, reason in waiting]

    def _take(self, symbol: str, sector: str) -> str | None:
        """Add a name, or return why it cannot be used."""
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
        self.collection.parsed[symbol] = []  # frees memory: 3,000 names would be held twice
        if frame.height < MIN_SESSIONS:
            return f"{frame.height} sessions of prices where {MIN_SESSIONS} are needed"
        if (ends := frame["date"][-1]) < self.last:
            return f"prices that end on {ends}"
        self.prices[symbol], self.splits[symbol] = frame, splits
        # The configured sector takes precedence: the published universe uses Yahoo's classes, the index list GICS.
        if symbol in self.listed and (other := self.listed[symbol].sector) != sector:
            self.notes.append(f"{symbol}: taken as {sector} as configured; the constituents list says {other}.")
        security = self.securities[symbol] = self._security(symbol, sector, described)
        counts = undo_split_restatement(symbol, facts.diluted_shares, facts.shares_outstanding, splits)
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

    def _security(self, symbol: str, sector: str, described: Mapping[str, str]) -> SecurityRecord:
        """Return the universe's record, else the constituents', completed from the statements."""
        if symbol in self.universe.securities:
            return self.universe.securities[symbol]
        found = self.listed.get(symbol) or SecurityRecord(symbol, described.get("name", symbol))
        cik = found.cik or described.get("cik")
        return replace(found, sector=sector, cik=cik.zfill(10) if cik else None, exchange=described.get("exchange"))
