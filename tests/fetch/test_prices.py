"""What each provider serves becomes the same prices, whatever basis it serves them on; and its ways of saying no."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal
from tests.fetch.world import World

from finskillbench.errors import InputError
from finskillbench.fetch.configuration import Addresses, ContentError, Window
from finskillbench.fetch.prices import provider, user_files
from finskillbench.sources.market.prices import PriceFile, parse_prices
from finskillbench.sources.market.splice import splice

WINDOW = Window(date(2025, 10, 1), date(2025, 12, 31))
KEYS = {"tiingo": "a-key-of-tiingo"}
YAHOO, TIINGO = provider("yahoo"), provider("tiingo")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TIINGO.key, KEYS["tiingo"])


@pytest.fixture(scope="module")
def world(synthetic_raw: Path) -> World:
    return World(synthetic_raw, KEYS)


@pytest.fixture(scope="module")
def split(world: World) -> str:
    """A name with a split and with dividends."""
    return next(name for name in sorted(world.ciks) if any(r.split not in (0, 1) for r in world.rows(name)))


def _served(world: World, name: str, symbol: str, tmp_path: Path) -> PriceFile:
    """The price file of a provider's answers, as a build reads it."""
    item = provider(name).item(symbol, WINDOW, Addresses())
    bodies: list[bytes] = []
    for question in item.requests:
        path, _, query = question.url.partition("?")
        where = "/" + name + "/" + path.split("/", 3)[3]
        pairs = dict(pair.split("=", 1) for pair in query.split("&"))
        served = world(where, pairs, {name.lower(): value for name, value in question.headers.items()})
        assert served.status == 200
        question.check(served.body)
        bodies.append(served.body)
    path = tmp_path / f"{symbol}.csv"
    path.write_bytes(item.compose(bodies))
    return parse_prices(path)


@pytest.mark.parametrize("name", ["yahoo", "tiingo"])
def test_every_provider_comes_to_the_prices_as_traded(
    name: str, world: World, split: str, tmp_path: Path, synthetic_raw: Path
) -> None:
    """Close, volume and splits of the generator's own file, which is adjusted and whose adjustments are undone."""
    mine = splice([_served(world, name, split, tmp_path)])
    own = splice([parse_prices(synthetic_raw / "prices" / f"{split}.csv")])
    assert_frame_equal(mine.frame, own.frame, rel_tol=1e-6)
    assert_frame_equal(mine.splits, own.splits, rel_tol=1e-12)
    assert mine.splits.height


def test_yahoo_comes_to_what_yfinance_writes(world: World, split: str, tmp_path: Path) -> None:
    reference = tmp_path / "reference" / f"{split}.csv"
    reference.parent.mkdir()
    reference.write_text(world.reference(split))
    assert_frame_equal(_served(world, "yahoo", split, tmp_path).frame, parse_prices(reference).frame, check_exact=True)


def _chart(**changes: Any) -> dict[str, Any]:
    stamps = [1735828200 + 86400 * day for day in range(2)]  # 2025-01-02 14:30 UTC
    quote = {name: [10.0, 11.0] for name in ("open", "high", "low", "close")} | {"volume": [100, 200]}
    result = {
        "meta": {"symbol": "AAPL", "gmtoffset": -18000, "dataGranularity": "1d"},
        "timestamp": stamps,
        "indicators": {"quote": [quote], "adjclose": [{"adjclose": [9.0, 11.0]}]},
    }
    return result | changes


def _yahoo(result: dict[str, Any] | None, error: Any = None) -> bytes:
    return json.dumps({"chart": {"result": None if result is None else [result], "error": error}}).encode()


def test_yahoo_sessions_are_days_of_the_exchange_and_nulls_are_none() -> None:
    result = _chart()
    result["timestamp"] = [1735828200, 1735914600]
    result["indicators"]["quote"][0]["open"] = [None, 11.0]
    rows = YAHOO.file_of("AAPL", [_yahoo(result)], WINDOW).decode().splitlines()
    assert rows[1] == "2025-01-02,,10.0,10.0,10.0,9.0,100.0,0.0,0.0"
    late = _chart(timestamp=[1735873140, 1735959540])  # 2025-01-03 02:59 UTC is the 2nd in New York
    assert YAHOO.file_of("AAPL", [_yahoo(late)], WINDOW).decode().splitlines()[1].startswith("2025-01-02,")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (_yahoo(None, {"code": "Unauthorized", "description": "Invalid Crumb"}), "Invalid Crumb"),
        (_yahoo(_chart(meta={"symbol": "MSFT", "gmtoffset": 0})), "'MSFT' in place of AAPL"),
        (_yahoo(_chart(meta={"symbol": "AAPL", "gmtoffset": 0, "dataGranularity": "1mo"})), "'1mo' in place of days"),
        (_yahoo(_chart(timestamp=[1, 2, 3])), "2 values for 3 times"),
        (b"Edge: Too Many Requests", "not JSON"),
    ],
)
def test_what_yahoo_serves_in_place_of_prices_is_refused(body: bytes, told: str) -> None:
    question = YAHOO.requests("AAPL", WINDOW, Addresses(), "")[0]
    with pytest.raises(ContentError, match=told):
        question.check(body)


def test_an_allowance_that_is_used_up_ends_all_questions() -> None:
    told = b'{"detail": "Error: You have run over your hourly request allocation."}'
    with pytest.raises(ContentError, match="hourly request allocation") as caught:
        TIINGO.requests("AAPL", WINDOW, Addresses(), "key")[0].check(told)
    assert caught.value.permanent


def test_a_key_is_wanted_in_the_environment_and_is_in_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TIINGO.key)
    with pytest.raises(InputError, match="TIINGO_API_KEY"):
        TIINGO.secret()
    monkeypatch.setenv(TIINGO.key, "planted-key-123")
    (question,) = TIINGO.item("AAPL", WINDOW, Addresses()).requests
    assert "planted" not in question.url
    assert any("planted-key-123" in value for value in question.headers.values())
    monkeypatch.setenv(TIINGO.key, "planted\nkey")
    with pytest.raises(InputError, match="cannot hold"):
        TIINGO.secret()


def test_an_unknown_provider_is_told_which_there_are() -> None:
    with pytest.raises(InputError, match="--prices 'stooq' is unknown; choose from: yahoo, tiingo, csv"):
        provider("stooq")


def test_own_files_are_one_a_ticker(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no files"):
        user_files(tmp_path)
    (tmp_path / "bf.b.csv").write_text("Date,Open,High,Low,Close,Volume\n")
    assert set(user_files(tmp_path)) == {"BF-B"}
    (tmp_path / "BF-B.csv.gz").write_bytes(b"")
    with pytest.raises(InputError, match="a second file of BF-B"):
        user_files(tmp_path)
