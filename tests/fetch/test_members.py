"""Who is in a universe, by the real list of constituents, and what becomes of names that lack something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from tests.fetch.conftest import AGENT, WINDOW
from tests.fetch.internet import Internet
from tests.fetch.world import World

from finskillbench.fetch.client import Client
from finskillbench.fetch.configuration import Configuration, Window, read_configuration
from finskillbench.fetch.fetcher import Fetcher, open_folder
from finskillbench.fetch.members import Members, read_members
from finskillbench.sources.companies.universe import load_universe
from finskillbench.sources.fetched import FetchRequest

pytestmark = pytest.mark.enable_socket
ASKED = FetchRequest(start="2025-10", end="2025-12", universe="any", prices="yahoo")


@pytest.fixture
def configuration(realdata: Path, tmp_path: Path) -> Iterator[Configuration]:
    with Internet(World(realdata)) as net:
        yield read_configuration(net.configuration(tmp_path))


def _read(universe: str, configuration: Configuration, folder: Path, window: Window = WINDOW) -> Members:
    with open_folder(folder / "raw", ASKED) as into, Client(configuration, AGENT) as client:
        fetcher = Fetcher(into, client, since=window.last.isoformat(), refresh=False)
        return read_members(fetcher, universe, window, configuration.addresses)


def test_the_published_names_have_their_sectors_and_their_filers(configuration: Configuration, tmp_path: Path) -> None:
    """CTRA has left the index, so that nobody here knows its CIK; CVX and XOM stand in for it."""
    members = _read("sp500-30", configuration, tmp_path)
    assert len(members.securities) == 29 + 22
    assert len(members.alternates) == 22
    assert members.notes == ("CTRA is left out: neither the constituents nor the SEC's list of tickers know its CIK.",)
    brown = members.securities["BF-B"]
    assert (brown.cik, brown.sector, brown.name) == ("0000014693", "Consumer Defensive", "Brown–Forman")


def test_a_name_that_stands_in_takes_the_place(configuration: Configuration, tmp_path: Path) -> None:
    members = _read("sp500-30", configuration, tmp_path)
    usable = dict.fromkeys(symbol for symbol in members.securities if symbol not in ("ARE", "ZBRA"))
    (tmp_path / "universe.json").write_bytes(members.universe(usable, WINDOW))
    universe = load_universe(tmp_path)
    assert universe.names["Energy"] == ("EQT", "CVX")
    assert universe.alternates["Energy"] == ("XOM",)
    assert universe.names["Real Estate"] == ("REG", "PLD")
    assert universe.names["Technology"] == ("BR", "CPAY", "ON", "TTWO", "MSFT")
    assert sum(len(names) for names in universe.names.values()) == 30
    assert universe.securities["MSFT"].cik == "0000789019"


def test_the_index_is_who_had_been_added_by_the_end(configuration: Configuration, tmp_path: Path) -> None:
    now = _read("sp500", configuration, tmp_path, Window(date(2026, 6, 1), date(2026, 7, 31)))
    then = _read("sp500", configuration, tmp_path, Window(date(2018, 1, 1), date(2018, 12, 31)))
    assert len(now.securities) == 502  # one of the 503 came in August
    assert 300 < len(then.securities) < len(now.securities)
    assert all(one.date_added is None or one.date_added <= date(2018, 12, 31) for one in then.securities.values())
    record = json.loads(now.universe(dict.fromkeys(now.securities), WINDOW))
    assert sum(len(lists["names"]) for lists in record["sectors"].values()) == 502
