"""What is fetched is what the sources have; a second fetch asks for nothing; what was altered is not built."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace
from datetime import date
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
import pytest_socket
from polars.testing import assert_frame_equal
from tests.fetch.conftest import AGENT, KEYS, WINDOW, contents, fetched, wish
from tests.fetch.internet import Internet, Served
from tests.fetch.world import World, without

from finskillbench import extensions
from finskillbench.edition.build import build_edition
from finskillbench.errors import DownloadError, InputError, SourceError
from finskillbench.fetch.client import SourceRequest
from finskillbench.fetch.collect import derive_statements, fetch_collection
from finskillbench.fetch.configuration import Addresses, Window, window_of
from finskillbench.fetch.fetcher import open_folder
from finskillbench.fetch.prices import PriceProvider, provider
from finskillbench.sources.companies.universe import SecurityRecord
from finskillbench.sources.edgar.collection import load_filings
from finskillbench.sources.fetched import read_journal, verify_collection
from finskillbench.sources.market.collection import load_market

pytestmark = pytest.mark.enable_socket

NAMES = 3


@pytest.fixture(scope="module")
def names(world: World) -> list[str]:
    return sorted(world.ciks)[:NAMES]


@pytest.fixture(scope="module")
def whole(world: World, names: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete fetch of a few names; copy it before altering anything."""
    pytest_socket.enable_socket()
    folder = tmp_path_factory.mktemp("whole")
    (folder / "names.txt").write_text("# three of them\n" + "\n".join(names) + "\n")
    with Internet(world) as net:
        fetched(net, folder)
        assert not any(one.query.get("apikey") for one in net.asked)
    return folder


@pytest.fixture
def mine(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "mine")
    return tmp_path / "mine"


def test_a_build_reads_of_it_what_it_reads_of_the_files_themselves(
    whole: Path, world: World, names: list[str], tmp_path: Path
) -> None:
    """Prices, factors, rates, statements, facts and lists of filings, number by number."""
    reference = tmp_path / "reference"
    shutil.copytree(world.raw, reference, ignore=shutil.ignore_patterns("prices", "statements_derived", "xbrl"))
    for symbol in names:
        for folder, text in (("prices", world.reference(symbol).encode()), ("statements_derived", None)):
            (reference / folder).mkdir(exist_ok=True)
            facts = reference / "companyfacts" / f"CIK{world.ciks[symbol]}.json"
            body = text or derive_statements(facts, SecurityRecord(symbol, symbol))
            (reference / folder / f"{symbol}.{'csv' if text else 'json'}").write_bytes(body)
    shutil.copy(whole / "raw" / "universe.json", reference / "universe.json")
    mine, own = load_market(whole / "raw"), load_market(reference)
    assert [one.symbol for one in mine.securities] == names
    assert_frame_equal(mine.prices, own.prices, check_exact=True)
    assert_frame_equal(mine.factors, own.factors, check_exact=True)
    assert mine.macro.keys() == own.macro.keys()
    for series, table in mine.macro.items():
        assert_frame_equal(table, own.macro[series], check_exact=True)
    for symbol in names:
        assert_frame_equal(mine.statements[symbol].cover_shares, own.statements[symbol].cover_shares)
        assert_frame_equal(mine.statements[symbol].net_income_quarterly, own.statements[symbol].net_income_quarterly)
    filings, original = load_filings(whole / "raw"), load_filings(world.raw)
    assert sorted(filings.companies) == names
    for symbol in names:
        assert_frame_equal(filings.companies[symbol].facts, original.companies[symbol].facts)
        assert_frame_equal(filings.submissions[symbol].filings, original.submissions[symbol].filings)
        read = {one.accession: one.facts for one in filings.instances[symbol]}
        there = {one.accession: one.facts for one in original.instances[symbol]}
        listed = original.submissions[symbol].filings
        reports = listed.filter(
            listed["form"].str.starts_with("10-") & listed["filed"].is_between(WINDOW.reports_from, WINDOW.last)
        )
        assert read == {accession: there[accession] for accession in reports["accession"]}


def test_statements_are_those_of_the_generator(whole: Path, world: World, names: list[str]) -> None:
    """Every figure of a period that both have; fiscal calendars of 52 weeks end on other days."""
    compared = 0
    for symbol in names:
        mine = json.loads((whole / "raw" / "statements_derived" / f"{symbol}.json").read_text())
        own = json.loads((world.raw / "statements_derived" / f"{symbol}.json").read_text())
        for block, field in (("quarterly", "netIncome"), ("annual", "netIncome"), ("balances", "equity")):
            there = {entry["end"]: entry["v"] for entry in own[block][field]}
            for entry in mine[block][field]:
                if entry["end"] in there:
                    assert entry["v"] == there[entry["end"]], (symbol, block, entry)
                    compared += 1
    assert compared > 40 * NAMES


def test_a_second_fetch_asks_for_nothing(mine: Path, net: Internet) -> None:
    """Not even with another server behind the same addresses: nothing is asked, whatever is there."""
    before = contents(mine / "raw")
    _at(mine, net)
    net.asked.clear()
    fetched(net, mine)
    assert [one.url for one in net.asked] == []
    assert contents(mine / "raw") == before


def _at(folder: Path, net: Internet) -> None:
    """Let a collection be one that was fetched from this server, which has another port."""
    path = folder / "raw" / "provenance.jsonl"
    old = json.loads(path.read_text().splitlines()[2])["origins"]
    journal = read_journal(folder / "raw")
    assert journal is not None
    urls = [origin.url for entry in journal.entries.values() for origin in entry.origins]
    host = next(url for url in urls if url.startswith("http")).split("/")[2]
    path.write_text(path.read_text().replace(host, f"127.0.0.1:{net.port}"))
    assert old


def test_refresh_asks_whether_anything_has_changed(mine: Path, net: Internet) -> None:
    before = contents(mine / "raw")
    _at(mine, net)
    fetched(net, mine, refresh=True)
    asked = [one for one in net.asked if "Archives" not in one.url]
    assert len(asked) == len(net.asked)
    assert {one.status for one in asked} == {304, 404}
    assert contents(mine / "raw") == before


def test_what_was_fetched_before_the_end_of_the_window_is_asked_whether_it_changed(mine: Path, net: Internet) -> None:
    """As after a later `--to`: lists and facts may lack its last filings. Documents once filed do not change."""
    before = contents(mine / "raw")
    _at(mine, net)
    path = mine / "raw" / "provenance.jsonl"
    path.write_text(re.sub(r'"retrieved":"[^"]*"', '"retrieved":"2025-12-15T00:00:00Z"', path.read_text()))
    fetched(net, mine)
    assert {one.status for one in net.asked} == {304, 404}
    assert sum("companyfacts" in one.path for one in net.asked) == NAMES
    assert not any("Archives" in one.path for one in net.asked)
    assert contents(mine / "raw") == before
    net.asked.clear()
    fetched(net, mine)
    assert net.asked == []


def test_a_longer_window_asks_for_what_it_adds(mine: Path, net: Internet, names: list[str]) -> None:
    """Earlier months: reports before those that are there, and nothing twice."""
    _at(mine, net)
    net.asked.clear()
    earlier = window_of("2025-07", "2025-12", date(2026, 11, 23))
    fetched(net, mine, window=earlier)
    assert net.asked
    assert all("Archives" in one.url for one in net.asked)
    assert len({one.url for one in net.asked}) == len(net.asked)


def test_an_altered_file_is_asked_for_again(mine: Path, net: Internet, names: list[str]) -> None:
    before = contents(mine / "raw")
    _at(mine, net)
    (mine / "raw" / "prices" / f"{names[0]}.csv").write_text("Date,Open\n")
    (mine / "raw" / "fred" / "DGS3MO.csv").unlink()
    fetched(net, mine)
    assert sorted(one.path.split("/")[-1] for one in net.asked) == [names[0], "fredgraph.csv"]
    assert contents(mine / "raw") == before


def _refusal(raw: Path, out: Path) -> str:
    with pytest.raises(SourceError) as caught:
        build_edition(source="raw-dir", raw_dir=raw, out=out)
    assert not out.exists()
    return str(caught.value)


def test_a_build_refuses_what_was_altered_added_or_not_completed(mine: Path, names: list[str], tmp_path: Path) -> None:
    raw = mine / "raw"
    price = raw / "prices" / f"{names[0]}.csv"
    text = price.read_text()
    price.write_text(text.replace("1", "2", 1))
    assert "was altered since it was fetched 20" in _refusal(raw, tmp_path / "edition")
    price.unlink()
    assert "is missing" in _refusal(raw, tmp_path / "edition")
    price.write_text(text)
    (raw / "prices" / "EXTRA.csv").write_text(text)
    assert "is not listed in provenance.jsonl" in _refusal(raw, tmp_path / "edition")
    (raw / "prices" / "EXTRA.csv").unlink()
    told = verify_collection(raw, [])
    assert told is not None
    assert told.window == (WINDOW.first, WINDOW.last)
    journal = read_journal(raw)
    assert journal is not None
    with open_folder(raw, msgspec.structs.replace(journal.request, complete=False)):
        pass
    assert "the fetch is not complete" in _refusal(raw, tmp_path / "edition")


def test_provenance_tells_where_each_file_came_from(whole: Path, names: list[str]) -> None:
    journal = read_journal(whole / "raw")
    assert journal is not None
    prices = journal.entries[f"prices/{names[0]}.csv"]
    assert "/v8/finance/chart/" in prices.origins[0].url
    assert prices.origins[0].etag
    assert prices.retrieved.startswith("20")
    assert prices.bytes == (whole / "raw" / prices.path).stat().st_size
    derived = journal.entries[f"statements_derived/{names[0]}.json"]
    assert derived.origins[0].url.startswith("companyfacts/CIK")
    assert journal.entries["fred/DFF.csv"].absent


def test_prices_with_a_key(net: Internet, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is sent and is in no file."""
    monkeypatch.setenv("TIINGO_API_KEY", KEYS["tiingo"])
    (tmp_path / "names.txt").write_text(f"{names[0]}\n")
    december = window_of("2025-12", "2025-12", date(2026, 11, 23))
    assert fetched(net, tmp_path, prices="tiingo", window=december).names == 1
    for path in (tmp_path / "raw").rglob("*"):
        assert not path.is_file() or KEYS["tiingo"].encode() not in path.read_bytes()
    assert sum(one.path.startswith("/tiingo/") for one in net.asked) == 1


def test_prices_of_a_provider_from_outside(
    net: Internet, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks two questions about each name, at a host that no configuration knows, and its answers become one file."""
    yahoo = provider("yahoo")

    def questions(symbol: str, window: Window, addresses: Addresses, key: str) -> tuple[SourceRequest, ...]:
        (question,) = yahoo.requests(symbol, window, addresses, key)
        first, second = (replace(question, source="outside", url=f"{question.url}&part={part}") for part in "ab")
        return first, second

    module = ModuleType("outside_prices")
    module.provider = PriceProvider(requests=questions, file_of=yahoo.file_of)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    point = EntryPoint("outside", "outside_prices:provider", extensions.PRICES)
    monkeypatch.setattr(extensions, "entry_points", lambda group: [point])
    (tmp_path / "names.txt").write_text(f"{names[0]}\n")
    december = window_of("2025-12", "2025-12", date(2026, 11, 23))
    assert fetched(net, tmp_path, prices="outside", window=december).names == 1
    assert sum(one.path.startswith("/yahoo/") for one in net.asked) == 2


def test_own_prices_and_an_own_list_with_sectors(net: Internet, world: World, names: list[str], tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for symbol in names[:2]:
        shutil.copy(world.raw / "prices" / f"{symbol}.csv", own)
    head, *rows = (world.raw / "constituents" / "constituents.csv").read_text().splitlines()
    chosen = [row for row in rows if row.split(",")[0] in names]
    (tmp_path / "list.csv").write_text("\n".join([head, *chosen]) + "\n")
    december = window_of("2025-12", "2025-12", date(2026, 11, 23))
    changes = {"universe": str(tmp_path / "list.csv"), "prices": "csv", "prices_dir": own, "window": december}
    done = fetched(net, tmp_path, **changes)
    assert done.names == 2
    assert any(f"{names[2]} is left out: no price file of {names[2]}" in note for note in done.notes)
    assert not any("constituents" in one.path or "yahoo" in one.path for one in net.asked)
    asked = len(net.asked)
    assert fetched(net, tmp_path, **changes).files == done.files
    assert len(net.asked) == asked


def test_a_name_without_prices_is_left_out_and_said(world: World, names: list[str], tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("\n".join(names[:2]))
    with Internet(without(world, names[1])) as net:
        done = fetched(net, tmp_path, window=window_of("2025-12", "2025-12", date(2026, 11, 23)))
    assert done.names == 1
    assert any(note.startswith(f"{names[1]} is left out: ") and "HTTP 404" in note for note in done.notes)
    universe = json.loads((tmp_path / "raw" / "universe.json").read_text())
    assert [name for lists in universe["sectors"].values() for name in lists["names"]] == [names[0]]


def test_a_document_of_another_filer_alone_is_none_of_ours(world: World, names: list[str], tmp_path: Path) -> None:
    """As where a parent and its subsidiary file together: it is noted, not asked for again, and nothing fails."""

    def answers(path: str, query, headers) -> Served:
        served = world(path, query, headers)
        if not path.endswith(".xml"):
            return served
        return Served(served.status, served.body.replace(world.ciks[names[0]].encode(), b"0000000007"))

    (tmp_path / "names.txt").write_text(names[0])
    with Internet(answers) as net:
        assert fetched(net, tmp_path).names == 1
        asked = len(net.asked)
        fetched(net, tmp_path)
        assert len(net.asked) == asked
    journal = read_journal(tmp_path / "raw")
    assert journal is not None
    documents = [entry for path, entry in journal.entries.items() if path.startswith("xbrl/")]
    assert len(documents) > 5
    assert all("is of CIK 7 alone" in entry.absent for entry in documents)


def test_a_source_that_refuses_everything_is_asked_no_further(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers(path: str, query, headers) -> Served:
        limited = path.startswith("/tiingo")
        return Served(200, b'{"detail": "run over your limit"}') if limited else world(path, query, headers)

    monkeypatch.setenv("TIINGO_API_KEY", KEYS["tiingo"])
    (tmp_path / "names.txt").write_text("\n".join(sorted(world.ciks)))
    with Internet(answers) as net:
        with pytest.raises(DownloadError, match="run over your limit"):
            fetched(net, tmp_path, prices="tiingo")
        assert sum(one.path.startswith("/tiingo") for one in net.asked) <= 8
    with pytest.raises(SourceError, match="not complete"):
        verify_collection(tmp_path / "raw", [])


@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        ("2025-13", "2025-12", "not a month"),
        ("2025-12", "2025-10", "exchange them"),
        ("2012-01", "2025-12", "2017-01 or later"),
        ("2026-10", "2026-11", "not over yet"),
    ],
)
def test_a_window_is_of_whole_months_that_are_over(start: str, end: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        window_of(start, end, date(2026, 11, 23))


@pytest.mark.parametrize(
    "agent", ["", "Jane", "jane@", "Jane jane@host", "Jane\njane@example.com", "Jäne j@example.com"]
)
def test_who_does_not_say_who_he_is_asks_nothing(agent: str, net: Internet, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("A\n")
    with pytest.raises(InputError, match="FINSKILLBENCH_USER_AGENT"):
        fetched(net, tmp_path, agent=agent)
    assert net.asked == []
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [("", "is empty"), ("# none\n", "has no tickers"), ("A B\n", "not a ticker"), ("ZZZZ\n", "line 1: ZZZZ is not")],
)
def test_a_list_of_names_that_cannot_be_used_is_refused(text: str, told: str, net: Internet, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text(text)
    with pytest.raises(InputError, match=told):
        fetched(net, tmp_path)


def test_a_folder_of_other_files_and_one_in_use_are_refused(mine: Path, net: Internet, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="were not fetched"):
        fetch_collection(other, wish(net, mine))
    journal = read_journal(mine / "raw")
    assert journal is not None
    with open_folder(mine / "raw", journal.request), pytest.raises(InputError, match="another process"):
        fetched(net, mine)
    assert AGENT
