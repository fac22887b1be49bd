"""Prices and volumes as they were traded: what a provider's adjustments made of them is undone.

Yahoo divides every earlier price by each later split and spin-off and takes each later dividend off it. A share count
is what was reported at the time, so such a price times the count is no capitalisation: Chipotle's is a fiftieth before
its split of 2024, and DuPont's 2.4 times too small for ten months before it spun off its electronics in November 2025,
which nobody could know then. A spin-off leaves the number of shares as it is, a split does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from finskillbench.arrays import Floats
from finskillbench.sources.market.prices import PriceFile

SCHEMA = {"date": pl.Date, "price": pl.Float64, "shares": pl.Float64}
"""Splits and spin-offs: earlier prices are divided by `price`, earlier share counts multiplied by `shares`."""
_DENOMINATORS = (1, 2, 3, 4)
_SIMPLE = 5e-4
"""Relative distance from a ratio of small whole numbers up to which a ratio is a split's and no spin-off's."""
_DOUBLE = 0.20
"""A dividend beyond this share of the price on the day of a split entry is that entry once more (DHR 2016-07-05)."""
_FIELDS = ("open", "high", "low", "close")


class Traded(NamedTuple):
    """Prices and volumes as traded, null where the files do not say; the splits and spin-offs; notes."""

    frame: pl.DataFrame
    splits: pl.DataFrame
    notes: list[str]


def as_traded(joined: pl.DataFrame, files: list[tuple[PriceFile, pl.DataFrame]], volume_ratio: float) -> Traded:
    """Undo the adjustments of a joined history by the dividends and splits of the file that ends last of those with.

    After the last day of that file the later download's adjustments have no dates: dividends are spread evenly over the
    days up to its end (off by less than one dividend), and where there was a split or spin-off, prices as traded are
    unknown. The last price of a download is taken for one as traded.

    Parameters
    ----------
    joined : date, prices, adj_close and volume of one name, by date; it keeps `adj_close`.
    files : the downloads, repaired, the one that `joined` is based on first.
    volume_ratio : volume of that one over volume of the file with actions: 1 unless a split lies between them.
    """
    told = [(file, frame) for file, frame in files if not frame["splits"].is_null().all()]
    if not told:
        return Traded(joined, pl.DataFrame(schema=SCHEMA), [])
    file, frame = told[0]
    splits = _splits(frame)
    own = pl.DataFrame({"date": frame["date"], "traded": _undone(frame), "ratio": _later(frame)})
    last = frame["date"][-1]
    table = joined.join(own, on="date", how="left").sort("date")
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
    # A ratio below one that no reverse split explains is a reverse split and a spin-off in one.
    shares = [ratio if _is_simple(ratio) else 1.0 if ratio > 1 else None for ratio in ratios]
    return pl.DataFrame({"date": rows["date"], "price": ratios, "shares": shares}, schema=SCHEMA)


def _is_simple(ratio: float) -> bool:
    """Whether a ratio is that of a split: n for 1, 3 for 2, 5 for 4, 1 for n."""
    large = max(ratio, 1 / ratio)
    return any(abs(large * d - round(large * d)) <= _SIMPLE * large * d for d in _DENOMINATORS)


def _later(frame: pl.DataFrame) -> Floats:
    """(T,) product of the split ratios after each day."""
    ratio = frame["splits"].fill_null(0).to_numpy()
    steps = np.where((ratio == 0) | (ratio == 1), 1.0, ratio)
    return np.append(np.cumprod(steps[::-1])[::-1][1:], 1.0)


def _undone(frame: pl.DataFrame) -> Floats:
    """(T,) closes as traded, from the last one back.

    An adjusted close lacks the factor 1 - D / C of every later dividend D, C being the close before it, both adjusted
    for later splits; a close of its own beside the adjusted one lacks the splits only.
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
