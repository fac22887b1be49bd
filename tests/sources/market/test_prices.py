"""Price files: every header variant, published closes, and each way a file can be wrong."""

import gzip
from datetime import date
from pathlib import Path

import pytest

from finskillbench.errors import SourceError
from finskillbench.sources.market.prices import has_ohlcv, parse_prices

HEADER = "Date,Open,High,Low,Close,Volume\n"
ROWS = "2020-01-02,10,11,9,10.5,1000\n2020-01-03,10.5,12,10,11,900\n"
OLD = date(1960, 1, 1)


def _file(folder: Path, text: str, name: str = "ABC.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def _refused(path: Path, line: int | None, *words: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_prices(path)
    message = str(caught.value)
    assert path.name in message
    assert "\n" not in message
    if line is not None:
        assert f"line {line}:" in message
    for word in words:
        assert word in message


def test_plain_and_gzip_files_give_the_same_table(tmp_path: Path) -> None:
    plain = parse_prices(_file(tmp_path, HEADER + ROWS)).frame
    packed = tmp_path / "ABC.csv.gz"
    packed.write_bytes(gzip.compress((HEADER + ROWS).encode()))
    assert parse_prices(packed).frame.equals(plain)
    assert plain["adj_close"].to_list() == [10.5, 11.0]
    assert plain["date"].to_list() == [date(2020, 1, 2), date(2020, 1, 3)]


def test_every_header_variant_is_read(tmp_path: Path) -> None:
    variants = {
        "stamped": "Date,Open,High,Low,Close,Volume,Dividends,Stock Splits\n"
        "2020-01-02 00:00:00-05:00,10,11,9,10.5,1000,0.0,0.0\n2020-07-02 00:00:00-04:00,10.5,12,10,11,900,0.2,2.0\n",
        "named": "date,Close,High,Low,Open,Volume,stockname\n"
        "2020-01-02,10.5,11,9,10,1000,NAMED\n2020-07-02,11,12,10,10.5,900,NAMED\n",
        "broken": "Price,Close,High,Low,Open,Volume\nTicker,BROKEN,BROKEN,BROKEN,BROKEN,BROKEN\nDate,,,,,\n"
        "2020-01-02,10.5,11,9,10,1000\n2020-07-02,11,12,10,10.5,900\n",
        "windows": "\ufeffDate,Open,High,Low,Close,Volume\r\n2020-01-02,10,11,9,10.5,1000\r\n"
        "2020-07-02,10.5,12,10,11,900\r\n",
        "returns": "Date,Open,High,Low,Close,Volume\r2020-01-02,10,11,9,10.5,1000\r2020-07-02,10.5,12,10,11,900\r",
    }
    for name, text in variants.items():
        file = parse_prices(_file(tmp_path, text, f"{name}.csv"))
        assert file.has_ohlcv, name
        assert file.frame.select("date", "open", "high", "low", "close", "volume").rows() == [
            (date(2020, 1, 2), 10.0, 11.0, 9.0, 10.5, 1000.0),
            (date(2020, 7, 2), 10.5, 12.0, 10.0, 11.0, 900.0),
        ], name
    assert parse_prices(tmp_path / "stamped.csv").frame["splits"].to_list() == [0.0, 2.0]


def test_adjusted_close_is_taken_where_given_and_close_only_is_no_price_set(tmp_path: Path) -> None:
    both = _file(tmp_path, "Date,Open,High,Low,Close,Adj Close,Volume\n2020-01-02,10,11,9,10.5,8.4,1000\n")
    assert parse_prices(both).frame.row(0)[4:6] == (10.5, 8.4)
    only = _file(tmp_path, "Date,Close\n2020-01-02,10.5\n", "ONLY.csv")
    assert not parse_prices(only).has_ohlcv
    assert not has_ohlcv(only)
    assert parse_prices(only).frame["volume"].to_list() == [None]


def test_a_zero_open_is_unrecorded_and_old_rows_are_only_checked_for_order(tmp_path: Path) -> None:
    text = HEADER + "1979-01-02,0,0,0,0,0\n2016-01-04,0,11,9,10,5\n"
    path = _file(tmp_path, text)
    assert parse_prices(path).frame.select("date", "open", "high").rows() == [(date(2016, 1, 4), None, 11.0)]
    with pytest.raises(SourceError, match="line 2: close is missing or not positive"):
        parse_prices(path, start=OLD)


@pytest.mark.parametrize(
    ("row", "line", "words"),
    [
        ("2020-01-06,10,11,9,abc,1000", 4, ("close is not a number", "'abc'")),
        ("2020-01-06,10,11,9,nan,1000", 4, ("close is not a number", "'nan'")),
        ("2020-01-06,10,11,9,inf,1000", 4, ("close is not a number",)),
        ("2020-01-06,10,11,9,,1000", 4, ("close is missing",)),
        ("2020-01-06,10,11,9,0,1000", 4, ("not positive", "'0'")),
        ("2020-01-06,10,11,9,-3,1000", 4, ("not positive", "'-3'")),
        ("2020-01-06,10,8,9,8.5,1000", 4, ("high is below low",)),
        ("2020-01-06,10,11,9,10,-1", 4, ("volume is negative",)),
        ("2020-01-06,10,11,9,10,1e308", 4, ("volume is beyond 1e+12", "'1e308'")),
        ("2020-01-06,10,11,9,11.0001,1", 4, ("close is above the day's high", "'11.0001'")),
        ("2020-01-06,10,11,9,8.9999,1", 4, ("close is below the day's low", "'8.9999'")),
        ("2020-01-06,550,600,500,550,1\n2020-01-07,10,12,9,11.2,1", 4, ("2020-01-06 is 550", "11.2 on 2020-01-07")),
        ("2020-01-06,6,6,5,5.5,1\n2020-01-07,10,12,9,11.2,1", 4, ("2020-01-06 is 5.5", "next session undoes")),
        ("2020-01-03,10,11,9,10,1", 4, ("duplicate date", "2020-01-03")),
        ("2020-01-01,10,11,9,10,1", 4, ("not sorted", "2020-01-01")),
        ("2020-02-30,10,11,9,10,1", 4, ("impossible date", "2020-02-30")),
        ("06/01/2020,10,11,9,10,1", 4, ("unreadable date",)),
        ("2020-01-06,10,11,9,10", 4, ("5 fields where 6",)),
        ("2020-01-06,10,11,9,10,1,7", 4, ("7 fields where 6",)),
        ("\n2020-01-06,10,11,9,10,1", 4, ("0 fields where 6",)),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path: Path, row: str, line: int, words: tuple[str, ...]) -> None:
    _refused(_file(tmp_path, HEADER + ROWS + row + "\n"), line, *words)


@pytest.mark.parametrize(
    "row",
    [
        "2020-01-06,10,11,9,10,",  # volume not recorded
        "2020-01-06,10,11,9,10,0",
        "2020-01-06,10,11,9,11.000001,1",  # adjusted prices are rounded
        "2020-01-06,20,20,19,20,1\n2020-01-07,20,20,19,19.5,1",  # +82 % that lasts
        "2020-01-06,20,20,19,20,1\n2020-01-07,14,14,13,13.5,1",  # half of it lasts
        "2020-01-06,16,16,15,16,1\n2020-01-07,11,11,11,11,1",  # +45 % and back: news can do that
        "2020-01-06,20,20,19,20,1",  # nothing follows
    ],
)
def test_what_a_market_or_a_provider_can_do_is_kept(tmp_path: Path, row: str) -> None:
    path = _file(tmp_path, HEADER + ROWS + row + "\n")
    assert parse_prices(path).frame.height == (HEADER + ROWS + row).count("\n")


def test_a_spike_of_the_adjusted_close_alone_is_found_and_an_old_one_is_not(tmp_path: Path) -> None:
    head = "Date,Open,High,Low,Close,Adj Close,Volume\n"
    rows = [f"2020-01-0{day},10,11,9,10,{price},1" for day, price in ((2, 8), (3, 80), (6, 8))]
    path = _file(tmp_path, head + "\n".join(rows))
    _refused(path, 3, "adj_close of 2020-01-03 is 80")
    old = parse_prices(path, start=date(2020, 1, 6))
    assert (old.frame.height, old.first_line) == (1, 4)


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("", 1, "empty"),
        (" \n\n", 1, "empty"),
        (HEADER, 2, "no rows"),
        ("Date,Open,High,Low,Volume\n2020-01-02,1,1,1,1\n", 1, "no close column"),
        ("Open,Close\n1,1\n", 1, "no date column"),
        ("Date,Close,Price of tea\n2020-01-02,1,1\n", 1, "unknown column 'Price of tea'"),
        ("Date,Close,Close\n2020-01-02,1,1\n", 1, "twice"),
        ("Price,Close\nTicker,XYZ\nDate,\n2020-01-02,1\n", 2, "does not name ABC"),
        ("Date,Close,stockname\n2020-01-02,1,ABC\n2020-01-03,1,XYZ\n", 3, "not of ABC"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, line: int, word: str) -> None:
    _refused(_file(tmp_path, text), line, word)


def test_damaged_bytes_are_refused(tmp_path: Path) -> None:
    packed = tmp_path / "ABC.csv.gz"
    packed.write_bytes(gzip.compress((HEADER + ROWS * 1).encode())[:-12])
    _refused(packed, None, "truncated")
    packed.write_bytes(b"not gzip at all")
    _refused(packed, None, "damaged")
    plain = tmp_path / "ABC.csv"
    plain.write_bytes((HEADER + ROWS).encode() + b"2020-01-06,10,11,9,\xff,1\n")
    _refused(plain, 4, "UTF-8")
    plain.write_bytes((HEADER + ROWS).encode() + b"2020-01-06,10,11,9,\x00,1\n")
    _refused(plain, 4, "NUL")
    _refused(tmp_path / "MISSING.csv", None, "no such file")


def test_published_closes(realdata: Path) -> None:
    """Unadjusted by construction on the last day of a download, so these are the closes everybody saw."""
    full = realdata / "prices" / "ohlcv_full_history_to_2024-12-06"
    frame = parse_prices(full / "AAPL.csv.gz").frame
    assert frame["date"][-1] == date(2024, 12, 6)
    assert round(frame["close"][-1], 2) == 242.84
    later = parse_prices(realdata / "prices" / "ohlcv_2021-02-26_to_2026-02-25" / "DHR.csv.gz").frame
    assert (later["date"][-1], round(later["close"][-1], 2), later.height) == (date(2026, 2, 25), 209.52, 1255)
    # Pre-1980 opens of zero do not spoil a file.
    assert parse_prices(full / "DHR.csv.gz").frame["open"].null_count() == 0
