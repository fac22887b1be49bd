"""One price history per ticker out of several downloads: joined on returns, since levels move with every dividend.

Adjusted prices are restated back to the first day at every dividend, so two downloads of one ticker differ by a factor
while their returns agree. The download that ends last is kept as it is; earlier history is put in front of it, scaled
by the ratio of the adjusted closes on the first date both have.
"""

from collections.abc import Sequence

import polars as pl

from finskillbench.sources.market.basis import Traded, as_traded
from finskillbench.sources.market.prices import PriceFile

JUMP = 0.40
"""One-day move that, together with a dividend or split entry, is taken for a doubly applied adjustment."""
DISAGREEMENT = 0.0020
"""Difference of daily returns between two downloads that is reported (20 bp)."""
_COLUMNS = ("date", "open", "high", "low", "close", "adj_close", "volume")
_LEVELS = ("open", "high", "low", "close")


def repair_jumps(file: PriceFile) -> tuple[pl.DataFrame, list[str]]:
    """Neutralise moves over 40 % on a day with a dividend or split entry: rescale what lies before, return 0.

    A corporate action adjusted twice (DHR 2016-07-05) leaves such a jump. The day's return is unknown, not +61 %;
    a zero return is a missing one to every later use, and the note says so.
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
    """Join the price sets of one ticker on returns, and put prices and volumes on the basis they were traded on.

    Parameters
    ----------
    files : sets of one ticker with OHLCV, each with at least one row.

    Returns
    -------
    date, open, high, low, close, volume as traded and adj_close, sorted by date; the splits; and notes on jumps, on
    days on which the sets disagree, and on sets that could not be joined.
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
    told = next((file for file, frame in repaired if not frame["splits"].is_null().all()), base_file)
    traded = as_traded(joined, repaired, ratios.get(told.path, 1.0))
    return traded._replace(notes=notes + traded.notes)


def latest_first(files: Sequence[PriceFile]) -> list[PriceFile]:
    """The latest download, the base, first; of two that end together the longer one."""
    return sorted(files, key=lambda f: (f.frame["date"][-1].toordinal(), f.frame.height), reverse=True)


def _volume_ratio(common: pl.DataFrame) -> float:
    """Volume of the later set over the earlier one: 1 unless a split lies between the two downloads."""
    both = common.filter((pl.col("volume") > 0) & (pl.col("volume_old") > 0))
    ratio = both.select((pl.col("volume") / pl.col("volume_old")).median()).item()
    return 1.0 if ratio is None or abs(ratio - 1) < 0.05 else float(ratio)


def _disagreements(base: PriceFile, joined: pl.DataFrame, file: PriceFile, frame: pl.DataFrame) -> list[str]:
    """Days on which the returns of both sets, from the same previous day, differ by more than 20 bp."""
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
