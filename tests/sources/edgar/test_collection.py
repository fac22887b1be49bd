"""EDGAR files of a whole collection: found at any depth, under any of their names, and told apart."""

import gzip
import re
import shutil
from pathlib import Path

import orjson
import pytest
from tests.sources.synthetic.truth import filer_of

from finskillbench.errors import SourceError
from finskillbench.sources.edgar.collection import load_filings
from finskillbench.sources.synthetic import SyntheticMarket

EDGAR = ("companyfacts", "submissions", "xbrl")


@pytest.fixture
def spoiled(few: Path, tmp_path: Path) -> Path:
    """The EDGAR part of some names' files with their universe, free to be altered."""
    for name in EDGAR:
        shutil.copytree(few / name, tmp_path / "raw" / name)
    shutil.copy(few / "universe.json", tmp_path / "raw" / "universe.json")
    return tmp_path / "raw"


@pytest.fixture(scope="module")
def two(few: Path) -> tuple[str, str]:
    first, second, *_ = sorted(folder.name for folder in (few / "xbrl").iterdir())
    return first, second


def _file(raw: Path, folder: str, truth: SyntheticMarket, symbol: str) -> Path:
    cik = next(s.cik for s in truth.securities if s.symbol == symbol)
    return raw / folder / f"CIK{cik}.json"


@pytest.mark.slow
def test_the_synthetic_collection_is_complete(collection: Path, truth: SyntheticMarket) -> None:
    data = load_filings(collection)
    symbols = [security.symbol for security in truth.securities]
    assert data.notes == ()
    assert list(data.companies) == list(data.submissions) == list(data.instances) == symbols
    for security in truth.securities[:3]:
        filings = filer_of(truth, security.symbol).filings
        assert data.companies[security.symbol].cik == int(security.cik or 0)
        assert data.submissions[security.symbol].tickers == (security.symbol,)
        instances = data.instances[security.symbol]
        assert [one.accession for one in instances] == sorted(filing.accession for filing in filings)
        periodic = data.submissions[security.symbol].filings
        assert {f.accession for f in filings} <= set(periodic["accession"])
        for one in instances:
            filing = next(f for f in filings if f.accession == one.accession)
            assert (one.form, one.fiscal_year, one.fiscal_period) == (
                filing.form,
                filing.fiscal_year,
                filing.fiscal_period,
            )


def test_only_the_companies_asked_for_are_read(collection: Path, two: tuple[str, str]) -> None:
    data = load_filings(collection, [*two, "NOPE"])
    assert tuple(data.companies) == tuple(data.submissions) == tuple(data.instances) == two
    assert data.notes == ("Company facts are not there for 1 of 3 names: NOPE.",)


def test_absent_folders_are_notes(spoiled: Path, two: tuple[str, str]) -> None:
    shutil.rmtree(spoiled / "xbrl")
    shutil.rmtree(spoiled / "submissions")
    data = load_filings(spoiled, two)
    assert tuple(data.companies) == two
    assert not data.submissions
    assert len(data.instances) == 0
    assert [note.split(":")[0] for note in data.notes] == [
        "There is no folder submissions",
        "There are no XBRL instances",
    ]
    shutil.rmtree(spoiled / "companyfacts")
    assert load_filings(spoiled, two).notes[0] == ("There is no folder companyfacts: fundamental analysis is left out.")
    with pytest.raises(SourceError, match="no such folder"):
        load_filings(spoiled / "nowhere")


def test_deep_and_gzipped_files_are_the_same(spoiled: Path, collection: Path, two: tuple[str, str]) -> None:
    for name in ("companyfacts", "submissions"):
        deep = spoiled / name / "2026-01" / "full"
        deep.mkdir(parents=True)
        for path in (spoiled / name).glob("*.json"):
            (deep / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    (spoiled / "xbrl" / "a" / "b").mkdir(parents=True)
    (spoiled / "xbrl" / two[0]).rename(spoiled / "xbrl" / "a" / "b" / two[0].lower())
    plain, data = load_filings(collection, two), load_filings(spoiled, two)
    for symbol in two:
        assert data.companies[symbol].facts.equals(plain.companies[symbol].facts)
        assert data.submissions[symbol].filings.equals(plain.submissions[symbol].filings)
        assert [one.facts for one in data.instances[symbol]] == [one.facts for one in plain.instances[symbol]]


def test_a_ticker_comes_from_submissions_the_file_name_or_the_wrapper(
    spoiled: Path, truth: SyntheticMarket, two: tuple[str, str]
) -> None:
    (spoiled / "universe.json").unlink()
    assert len(load_filings(spoiled).companies) == 9
    shutil.rmtree(spoiled / "submissions")
    named, wrapped = (_file(spoiled, "companyfacts", truth, symbol) for symbol in two)
    named.rename(named.with_name(f"{two[0]}.json"))
    record = orjson.loads(wrapped.read_bytes())
    wrapped.write_bytes(orjson.dumps({"ticker": two[1], "fetched": "2026-01-01", **record}))
    data = load_filings(spoiled)
    assert tuple(data.companies) == two
    (unusable,) = data.unusable
    assert unusable.startswith("CIK99")
    assert "in companyfacts cannot be used: nothing names the ticker; list it with its CIK in universe.json" in unusable
    others = [f"{one.symbol},{one.symbol},Energy,,,{one.cik}" for one in truth.securities if one.symbol not in two]
    columns = "Symbol,Security,GICS Sector,GICS Sub-Industry,Date added,CIK"
    (spoiled / "constituents.csv").write_text("\n".join([columns, *others]))
    data = load_filings(spoiled)
    assert data.unusable == ()
    assert len(data.companies) == 9


def test_of_two_files_the_fuller_is_taken(spoiled: Path, truth: SyntheticMarket, two: tuple[str, str]) -> None:
    path = _file(spoiled, "companyfacts", truth, two[0])
    record = orjson.loads(path.read_bytes())
    record["facts"]["us-gaap"] = {"Assets": record["facts"]["us-gaap"]["Assets"]}
    (spoiled / "companyfacts" / f"{two[0]}.json").write_bytes(orjson.dumps(record))
    data = load_filings(spoiled, two)
    assert data.companies[two[0]].file == path
    assert data.notes == (f"{two[0]}: of 2 company facts {path} has most and is used.",)


def test_facts_under_the_name_of_another_company_are_refused(
    spoiled: Path, truth: SyntheticMarket, two: tuple[str, str]
) -> None:
    """Its own file gone, as when a collector saved Amphenol's facts as KMB.json: asked for an error, else a note."""
    own, other = (_file(spoiled, "companyfacts", truth, symbol) for symbol in two)
    own.unlink()
    shutil.copy(other, spoiled / "companyfacts" / f"{two[0]}.json")
    told = rf"it holds the facts of .+ \(CIK \d+, {two[1]}\), but by the lists of the collection {two[0]} is CIK \d+"
    with pytest.raises(SourceError, match=told):
        load_filings(spoiled, two)
    data = load_filings(spoiled)
    assert two[0] not in data.companies
    assert len(data.companies) == 8
    (unusable,) = data.unusable
    assert re.search(told, unusable)
    assert unusable.endswith(f"; put the facts of {two[0]} in its place.")


def test_two_filers_under_one_ticker_that_nobody_lists_are_refused(
    spoiled: Path, truth: SyntheticMarket, two: tuple[str, str]
) -> None:
    (spoiled / "universe.json").unlink()
    shutil.rmtree(spoiled / "submissions")
    for folder, symbol in zip(("one", "other"), two, strict=True):
        (spoiled / "companyfacts" / folder).mkdir()
        facts = _file(spoiled, "companyfacts", truth, symbol)
        shutil.copy(facts, spoiled / "companyfacts" / folder / f"{two[0]}.json")
    with pytest.raises(SourceError, match=rf"{two[0]} is CIK \d+ here and CIK \d+ in"):
        load_filings(spoiled, two)


def test_an_instance_is_found_by_its_cover_wherever_it_lies(spoiled: Path, two: tuple[str, str]) -> None:
    """In the folder of another company, of its accession number, of no meaning at all, and beside the other folders."""
    plain = load_filings(spoiled, two).instances[two[0]]
    moved = sorted((spoiled / "xbrl" / two[0]).iterdir())
    for number, folder in enumerate((f"xbrl/{two[1]}", "xbrl/000123456725000009", "xbrl/2026 07", "filings/a", "xbrl")):
        (spoiled / folder).mkdir(parents=True, exist_ok=True)
        moved[number].rename(spoiled / folder / f"{number}-{moved[number].name}")
    data = load_filings(spoiled, two)
    assert {one.facts for one in data.instances[two[0]]} == {one.facts for one in plain}
    assert {one.accession for one in data.instances[two[0]]} == {one.accession for one in plain}
    assert data.notes == ()


def test_documents_of_others_or_of_nobody_are_counted(spoiled: Path, two: tuple[str, str]) -> None:
    path = sorted((spoiled / "xbrl" / two[0]).iterdir())[0]
    stranger = path.read_text().replace(f"{load_filings(spoiled, two).companies[two[0]].cik}", "123")
    (spoiled / "xbrl" / "stranger.xml").write_text(stranger)
    (spoiled / "xbrl" / "exhibit.htm").write_text("<html><body>Exhibit 99</body></html>")
    nobody = "1 documents name no filer, so that they hold no XBRL facts: left out."
    assert load_filings(spoiled, two).notes == (nobody,)
    others = "1 XBRL documents are of companies without company facts: left out."
    assert load_filings(spoiled).notes == (others, nobody)


def test_a_cover_of_another_filer_is_refused(spoiled: Path, two: tuple[str, str]) -> None:
    path = sorted((spoiled / "xbrl" / two[0]).iterdir())[0]
    cik = f"{load_filings(spoiled, two).companies[two[0]].cik:010d}"
    text = path.read_text()
    assert f">{cik}</dei:EntityCentralIndexKey>" in text
    path.write_text(text.replace(f">{cik}</dei:EntityCentralIndexKey>", ">0000000123</dei:EntityCentralIndexKey>"))
    with pytest.raises(SourceError, match=f"the cover is of CIK 123, but its figures are of CIK {int(cik)}"):
        _ = load_filings(spoiled, two).instances[two[0]]


def test_the_real_collection(realdata: Path) -> None:
    data = load_filings(realdata)
    assert len(data.companies) >= 95
    assert {"AAPL", "CAT", "SNOW", "TSLA"} <= set(data.companies)
    assert data.companies["AAPL"].facts.height > data.companies["ABBV"].facts.height
    assert {"AAPL", "MSFT", "NFLX", "TSLA"} <= set(data.instances)
    assert {symbol: len(data.instances[symbol]) for symbol in ("AAPL", "NFLX", "PG")} == {"AAPL": 7, "NFLX": 5, "PG": 2}
    assert not any("XBRL" in note for note in data.notes)
    assert any(note.startswith("AAPL: of 2 company facts") for note in data.notes)
    # A file named DELL that a collector filled with the facts of Intercontinental Exchange.
    assert "DELL" not in data.companies
    dell = "DELL.json.gz cannot be used: it holds the facts of INTERCONTINENTAL EXCHANGE"
    assert any(one.startswith(dell) for one in data.unusable)
