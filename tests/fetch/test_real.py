"""Real files, served as their sources serve them, come through the fetch as they are; and what is derived from them."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
import pytest_socket
from polars.testing import assert_frame_equal
from tests.fetch.conftest import fetched
from tests.fetch.internet import Internet
from tests.fetch.world import World

from finskillbench.fetch.collect import derive_statements
from finskillbench.fetch.configuration import Window
from finskillbench.sources.companies.universe import SecurityRecord
from finskillbench.sources.edgar.companyfacts import parse_companyfacts
from finskillbench.sources.market.collection import load_french, load_market
from finskillbench.sources.market.prices import parse_prices
from finskillbench.sources.market.splice import splice

pytestmark = pytest.mark.enable_socket
NAMES = {"AAPL": 320193, "COST": 909832, "KHC": 1637459}
PARTS = {
    "prices": "ohlcv_full_history_to_2024-12-06",
    "fred": "seho4080_raw_observation_date",
    "submissions": "2026-07_accounting-redflag-screen",
    "companyfacts": "full_2026-07",
}
HISTORY = "prices/ohlcv_full_history_to_2024-12-06"


@pytest.fixture(scope="module")
def raw(realdata: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest_socket.enable_socket()
    folder = tmp_path_factory.mktemp("real")
    (folder / "names.txt").write_text("\n".join(NAMES))
    with Internet(World(realdata, parts=PARTS)) as net:
        done = fetched(net, folder, window=Window(date(2024, 10, 1), date(2024, 11, 30)))
    assert done.names == len(NAMES)
    return folder / "raw"


def test_facts_and_prices_are_the_files(raw: Path, realdata: Path) -> None:
    for symbol, cik in NAMES.items():
        name = f"companyfacts/{{}}CIK{cik:010d}.json.gz"
        mine, own = (
            parse_companyfacts(path) for path in (raw / name.format(""), realdata / name.format("full_2026-07/"))
        )
        assert_frame_equal(mine.facts, own.facts)
        prices = splice([parse_prices(raw / "prices" / f"{symbol}.csv")]).frame
        history = splice([parse_prices(realdata / HISTORY / f"{symbol}.csv.gz")]).frame
        assert_frame_equal(prices, history.filter(history["date"] <= date(2024, 11, 30)), rel_tol=1e-6)


def test_apples_split_and_its_price_on_the_day_before(raw: Path) -> None:
    """4 for 1 on 2020-08-31; it closed at 499.23 on the Friday before."""
    found = splice([parse_prices(raw / "prices" / "AAPL.csv")])
    assert found.splits.rows() == [(date(2020, 8, 31), 4.0, 4.0)]
    close = found.frame.filter(found.frame["date"] == date(2020, 8, 28))["close"][0]
    assert close == pytest.approx(499.23, abs=0.05)


def test_the_factors_are_those_of_the_library(raw: Path, realdata: Path) -> None:
    assert_frame_equal(load_french(raw / "famafrench")[0], load_french(realdata / "famafrench")[0])
    assert {symbol.symbol for symbol in load_market(raw).securities} == set(NAMES)


@pytest.mark.parametrize("symbol", NAMES)
def test_derived_statements_agree_with_those_that_were_published(symbol: str, realdata: Path) -> None:
    """Net income, earnings per share and diluted shares of every period that both have; equity is the parent's."""
    facts = realdata / "companyfacts" / "full_2026-07" / f"CIK{NAMES[symbol]:010d}.json.gz"
    mine = json.loads(derive_statements(facts, SecurityRecord(symbol, symbol)))
    own = json.loads((realdata / "statements_derived" / f"{symbol}.json").read_text())
    compared = 0
    for block, field in (("quarterly", "netIncome"), ("quarterly", "eps"), ("annual", "netIncome"), ("annual", "eps")):
        there = {entry["end"]: entry["v"] for entry in own[block][field]}
        for entry in mine[block][field]:
            if entry["end"] in there:
                assert entry["v"] == pytest.approx(there[entry["end"]], rel=1e-12), (block, field, entry)
                compared += 1
    assert compared > 40
    shares = {entry["end"]: entry["v"] for entry in own["dilutedShares"]}
    assert {entry["end"]: entry["v"] for entry in mine["dilutedShares"]}.items() >= shares.items()


def test_apples_net_income_of_2024_and_its_fourth_quarter(realdata: Path) -> None:
    """93,736 M in the year to 2024-09-28, of which 14,736 M in its last quarter, which no report states."""
    facts = realdata / "companyfacts" / "full_2026-07" / f"CIK{NAMES['AAPL']:010d}.json.gz"
    mine = json.loads(derive_statements(facts, SecurityRecord("AAPL", "Apple")))
    assert {"end": "2024-09-28", "v": 93736000000} in mine["annual"]["netIncome"]
    assert {"end": "2024-09-28", "v": 14736000000, "d": 1} in mine["quarterly"]["netIncome"]
