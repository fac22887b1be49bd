"""Joining downloads: returns are preserved, levels follow the last one, disagreements and jumps are told."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from finskillbench.sources.market.prices import PriceFile, parse_prices
from finskillbench.sources.market.splice import repair_jumps, splice

DAYS = [date(2020, 1, 1) + timedelta(days=i) for i in range(40)]


def _set(name: str, days: list[date], close: np.ndarray, **columns: list[float]) -> PriceFile:
    nothing = [0.0] * len(days)
    frame = pl.DataFrame(
        {
            "date": days,
            "open": close,
            "high": close * 1.01,
            "low": close * 0.99,
            "close": close,
            "adj_close": close,
            "volume": np.full(len(days), 1000.0),
            "dividends": nothing,
            "splits": nothing,
            **columns,
        }
    )
    return PriceFile(Path(name) / "ABC.csv", "ABC", frame, has_ohlcv=True, first_line=2)


def _path(seed: int = 1) -> np.ndarray:
    return 50 * np.cumprod(1 + 0.01 * np.random.default_rng(seed).standard_normal(len(DAYS)))


def test_three_downloads_become_one_history_with_the_returns_of_each() -> None:
    close = _path()
    sets = [
        _set("middle", DAYS[8:30], close[8:30] * 1.07),
        _set("late", DAYS[20:], close[20:]),
        _set("early", DAYS[:15], close[:15] * 0.31),
    ]
    joined, _, notes = splice(sets)
    assert notes == []
    assert joined["date"].to_list() == DAYS
    np.testing.assert_allclose(joined["adj_close"].to_numpy(), close, rtol=1e-13)
    np.testing.assert_allclose(joined["high"].to_numpy(), close * 1.01, rtol=1e-13)
    # The last download is kept to the bit.
    assert joined["close"].to_list()[20:] == close[20:].tolist()


def test_disagreeing_days_are_told_with_date_and_size() -> None:
    close = _path()
    other = close.copy()
    other[25:] *= 1.004
    _, _, notes = splice([_set("late", DAYS[10:], close[10:]), _set("early", DAYS[:35], other[:35])])
    assert len(notes) == 1
    assert "ABC" in notes[0]
    assert str(DAYS[25]) in notes[0]
    assert "1 day" in notes[0]


def test_a_split_between_the_downloads_scales_volume_too() -> None:
    close = _path()
    untold = _set("late", DAYS[10:], close[10:])
    untold = replace(
        untold,
        frame=untold.frame.with_columns(
            splits=pl.lit(None, dtype=pl.Float64), dividends=pl.lit(None, dtype=pl.Float64)
        ),
    )
    told = _set("early", DAYS[:30], close[:30] * 2, volume=[500.0] * 30)
    early = replace(
        told,
        frame=told.frame.with_columns(splits=pl.lit(None, dtype=pl.Float64), dividends=pl.lit(None, dtype=pl.Float64)),
    )
    joined, _, notes = splice([untold, early])
    assert joined["volume"].to_list() == [1000.0] * 40
    assert "multiplied by 2" in notes[0]
    joined, _, notes = splice([untold, told])
    assert joined["volume"].to_list() == [500.0] * 30 + [None] * 10  # as traded; after the last day told, nobody knows
    assert "unknown after" in notes[0]


def test_sets_without_a_common_date_are_not_joined() -> None:
    close = _path()
    joined, _, notes = splice([_set("late", DAYS[30:], close[30:]), _set("early", DAYS[:20], close[:20])])
    assert joined.height == 10
    assert "early" in notes[0]


@pytest.mark.parametrize(("action", "repaired"), [({"dividends": 24.56}, True), ({"splits": 1.319}, True), ({}, False)])
def test_a_jump_is_repaired_only_on_a_corporate_action(action: dict[str, float], repaired: bool) -> None:
    close = _path()
    close[10:] *= 1.6
    columns = {name: [value if i == 10 else 0.0 for i in range(40)] for name, value in action.items()}
    frame, notes = repair_jumps(_set("only", DAYS, close, **columns))
    returns = frame["adj_close"].pct_change().to_numpy()
    truth = close[1:] / close[:-1] - 1
    assert returns[10] == pytest.approx(0.0 if repaired else truth[9], abs=1e-12)
    assert len(notes) == int(repaired)
    others = np.delete(np.arange(1, 40), 9)
    np.testing.assert_allclose(returns[others], truth[others - 1], atol=1e-12)


def test_danaher_is_detected_and_repaired(realdata: Path) -> None:
    sets = [parse_prices(p) for p in sorted((realdata / "prices").glob("ohlcv*/DHR.csv.gz"))]
    joined, _, notes = splice(sets)
    assert any("DHR" in n and "2016-07-05" in n and "+61" in n and "24.56" in n and "1.319" in n for n in notes)
    moves = joined.with_columns(pl.col("adj_close").pct_change().alias("r"))
    assert moves.filter(pl.col("date") == date(2016, 7, 5))["r"].item() == pytest.approx(0.0, abs=1e-12)
    raw = sets[1].frame if sets[1].frame["date"][0] < sets[0].frame["date"][0] else sets[0].frame
    kept = raw.select("date", r=pl.col("adj_close").pct_change()).join(moves.select("date", spliced="r"), on="date")
    early = kept.filter((pl.col("date") < date(2021, 2, 26)) & (pl.col("date") != date(2016, 7, 5))).drop_nulls()
    assert early.select((pl.col("r") - pl.col("spliced")).abs().max()).item() < 1e-12
