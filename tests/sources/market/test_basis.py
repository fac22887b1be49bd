"""Prices, volumes and share counts on the basis of their own day."""

import gzip
import json
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest

from finskillbench.panels import build_panels
from finskillbench.sources.companies.constituents import cover_counts, undo_split_restatement
from finskillbench.sources.market.collection import MarketData
from finskillbench.sources.market.prices import parse_prices
from finskillbench.sources.market.splice import splice

START = date(2024, 1, 2)


@pytest.fixture(scope="module")
def real_caps(real: MarketData) -> pl.DataFrame:
    return build_panels(real).benchmark_weights


def _write(path: Path, traded: list[float], dividends: dict[int, float], splits: dict[int, float]) -> Path:
    """A download with adjusted closes, dividends and splits, by the provider's own rule, from closes as traded."""
    factor = 1.0
    lines: list[str] = []
    for row in range(len(traded) - 1, -1, -1):
        stamp = START + timedelta(days=row)
        price, volume = traded[row] * factor, round(1000 * traded[-1] / traded[row])
        lines.append(
            f"{stamp},{price!r},{price!r},{price!r},{price!r},{volume},{dividends.get(row, 0)},{splits.get(row, 0)}"
        )
        if row in splits:
            factor /= splits[row]
        if row in dividends:
            later = 1.0
            for at, ratio in splits.items():
                later *= ratio if at > row or at == row else 1.0
            factor *= 1 - dividends[row] / (traded[row - 1] / later)
    header = "Date,Open,High,Low,Close,Volume,Dividends,Stock Splits"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *reversed(lines)]) + "\n")
    return path


def test_dividends_and_splits_are_undone(tmp_path: Path) -> None:
    traded = [100.0, 101.0, 50.0, 51.0, 52.0, 26.5, 27.0]
    path = _write(tmp_path / "a" / "X.csv", traded, {1: 0.4, 4: 0.25}, {2: 2.0, 5: 2.0})
    result = splice([parse_prices(path)])
    assert result.frame["close"].to_list() == pytest.approx(traded, rel=1e-12)
    assert result.frame["adj_close"][0] < 25
    assert result.splits.rows() == [(date(2024, 1, 4), 2.0, 2.0), (date(2024, 1, 7), 2.0, 2.0)]


def test_a_spin_off_changes_prices_and_no_share_count(tmp_path: Path) -> None:
    path = _write(tmp_path / "a" / "X.csv", [131.9, 132.0, 100.0, 101.0], {}, {2: 1.319})
    assert splice([parse_prices(path)]).splits.rows() == [(date(2024, 1, 4), 1.319, 1.0)]


def test_a_later_split_without_a_date_leaves_prices_unknown(tmp_path: Path) -> None:
    """DuPont, 2024-12 to 2026-02: which of the later prices are divided by 2.39 nobody can tell."""
    early = _write(tmp_path / "a" / "X.csv", [80.0, 81.0, 82.0, 81.5], {}, {})
    prices = [p / 2.39 for p in (80.0, 81.0, 82.0, 81.5)] + [34.0, 35.0]
    rows = [
        f"{START + timedelta(days=row)},{p!r},{p!r},{p!r},{p!r},{(2390 if row < 4 else 2400)}"
        for row, p in enumerate(prices)
    ]
    late = tmp_path / "b" / "X.csv"
    late.parent.mkdir()
    late.write_text("\n".join(["Date,Open,High,Low,Close,Volume", *rows]) + "\n")
    result = splice([parse_prices(early), parse_prices(late)])
    close = result.frame["close"].to_list()
    assert close[:4] == pytest.approx([80.0, 81.0, 82.0, 81.5], rel=1e-9)
    assert close[4:] == [None, None]
    assert result.frame["adj_close"].null_count() == 0
    assert any("unknown after 2024-01-05" in note for note in result.notes)


def test_counts_are_put_on_the_basis_of_their_end() -> None:
    """Chipotle: 2021 as reported then, 2022 and 2023 restated for the 50 for 1 split of June 2024."""
    ends = [date(year, 12, 31) for year in (2021, 2022, 2023, 2024)]
    counts = pl.DataFrame({"end": ends, "value": [28.5e6, 1.396e9, 1.379e9, 1.377e9]})
    latest = pl.DataFrame({"end": [date(2025, 6, 30)], "value": [1.34e9]})
    splits = pl.DataFrame({"date": [date(2024, 6, 26)], "price": [50.0], "shares": [50.0]})
    result = undo_split_restatement("CMG", counts, latest, splits)
    assert result.table["value"].to_list() == pytest.approx([28.5e6, 27.92e6, 27.58e6, 1.377e9])
    assert result.broken == ()
    assert len(result.notes) == 1
    merged = undo_split_restatement(
        "KHC", counts.with_columns(value=pl.Series([3.77e8, 1.226e9, 1.2e9, 1.2e9])), latest, splits[:0]
    )
    assert merged.broken == (date(2021, 12, 31),)


def test_cover_pages_say_what_was_outstanding_and_when_that_was_filed(tmp_path: Path) -> None:
    rows = [
        {"end": "2024-01-20", "val": 100, "filed": "2024-02-01", "form": "10-K"},
        {"end": "2024-04-20", "val": 99, "filed": "2024-05-01", "form": "10-Q"},
        {"end": "2024-04-30", "val": 5, "filed": "2024-05-02", "form": "DEF 14A"},
        {"end": "nonsense", "val": 5, "filed": "2024-05-02", "form": "10-Q"},
    ]
    path = tmp_path / "X.json.gz"
    facts = {"facts": {"dei": {"EntityCommonStockSharesOutstanding": {"units": {"shares": rows}}}}}
    path.write_bytes(gzip.compress(json.dumps(facts).encode()))
    assert cover_counts(path).rows() == [
        (date(2024, 1, 20), date(2024, 2, 1), 100.0),
        (date(2024, 4, 20), date(2024, 5, 1), 99.0),
    ]


# Closing prices as printed on the day, and capitalisations in billions as published around it.
@pytest.mark.parametrize(
    ("symbol", "day", "close", "billions"),
    [
        ("CMG", date(2021, 6, 30), 1550.34, 44),
        ("CPRT", date(2021, 6, 30), 131.83, 32),
        ("DHR", date(2021, 6, 30), 268.36, 195),
        ("KHC", date(2021, 6, 30), 40.78, 50),
        ("SRE", date(2021, 6, 30), 132.48, 41),
        ("C", date(2021, 6, 30), 70.75, 147),
    ],
)
def test_real_closes_and_caps_are_those_of_the_day(
    realdata: Path, real_caps: pl.DataFrame, symbol: str, day: date, close: float, billions: float
) -> None:
    files = [parse_prices(path) for path in sorted((realdata / "prices").glob(f"*/{symbol}.csv.gz"))]
    frame = splice([file for file in files if file.has_ohlcv]).frame
    assert frame.filter(pl.col("date") == day)["close"].item() == pytest.approx(close, abs=0.006)
    caps = real_caps.filter((pl.col("symbol") == symbol) & (pl.col("date").dt.year() == 2021))
    assert caps["market_cap_usd"].to_numpy().max() == pytest.approx(billions * 1e9, rel=0.35)
