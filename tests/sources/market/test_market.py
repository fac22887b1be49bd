"""Whole collections: the real one with its replacements, the synthetic one, and planted defects."""

import shutil
from datetime import date
from pathlib import Path

import numpy as np
import orjson
import polars as pl
import pytest
from tests.sampling import thorough

from finskillbench.arrays import SECTORS
from finskillbench.errors import SourceError
from finskillbench.sources.companies.universe import sector_counts
from finskillbench.sources.market.collection import MarketData, load_market
from finskillbench.sources.synthetic import SyntheticMarket

COUNTS: dict[str, int] = dict(zip(SECTORS, (5, 4, 4, 3, 3, 2, 2, 2, 2, 2, 1), strict=True))


@pytest.fixture
def spoiled(few: Path, tmp_path: Path) -> Path:
    """The market's part of some names' files, free to be altered."""
    edgar = shutil.ignore_patterns("companyfacts", "submissions", "xbrl")
    return shutil.copytree(few, tmp_path / "raw", ignore=edgar)


def _by_sector(market: MarketData) -> dict[str, int]:
    sectors = [s.sector for s in market.securities]
    return {sector: sectors.count(sector) for sector in SECTORS}


def test_the_real_thirty_with_their_two_replacements(real: MarketData) -> None:
    symbols = [s.symbol for s in real.securities]
    assert symbols == sorted(symbols)
    assert _by_sector(real) == COUNTS
    assert {"CVX", "PLD", "BF-B"} <= set(symbols)
    assert not {"CTRA", "ARE"} & set(symbols)
    assert "CTRA (Energy) has no statements; CVX takes its place." in real.notes
    assert any(n.startswith("ARE (Real Estate)") and "PLD" in n for n in real.notes)
    assert any(n.startswith("TT: ") and "2024-12-06" in n for n in real.notes)
    assert any(n.startswith("DHR: 2016-07-05") for n in real.notes)
    assert real.prices["symbol"].unique(maintain_order=True).to_list() == symbols
    assert real.prices["date"].min() == date(2016, 1, 4)
    assert all(s.isin is None and s.cusip is None for s in real.securities)
    brown = next(s for s in real.securities if s.symbol == "BF-B")
    assert (brown.cik, brown.sub_sector, brown.exchange) == ("0000014693", "Distillers & Vintners", "NYSE")
    carrier = real.prices.filter(pl.col("symbol") == "CARR")
    assert carrier["date"][0] == date(2020, 3, 19)


def test_no_real_return_is_left_absurd(real: MarketData) -> None:
    """A splice at a wrong level or an unrepaired action would show as one; EQT did move 30 % in March 2020."""
    moves = real.prices.with_columns(pl.col("adj_close").pct_change().over("symbol").alias("r"))["r"]
    assert np.abs(moves.drop_nulls().to_numpy()).max() < 0.5


def test_an_error_of_the_published_universe_asks_for_a_file_of_ones_own(spoiled: Path) -> None:
    """It ships with the package, where nobody should edit it."""
    (spoiled / "universe.json").unlink()
    for path in (*(spoiled / "prices").glob("*.csv"), *(spoiled / "statements_derived").glob("*.json")):
        path.rename(path.with_name(f"AIG{path.suffix}"))
    with pytest.raises(SourceError, match=r"write a universe\.json with the names there are") as caught:
        load_market(spoiled)
    assert str(caught.value).startswith(f"{spoiled / 'universe.json'}: Technology supplies 0 of 5 names")


@thorough
@pytest.mark.slow
def test_more_names_come_from_alternates_fewer_in_proportion(realdata: Path, collection: Path) -> None:
    assert len(load_market(realdata, names=34).securities) == 34
    with pytest.raises(SourceError, match=r"supplies \d+ of \d+ names"):
        load_market(collection, names=300)
    assert _by_sector(load_market(collection, names=12)) == sector_counts(COUNTS, 12)


def test_sector_counts_are_largest_remainders() -> None:
    assert sector_counts(COUNTS, 30) == COUNTS
    assert sector_counts(COUNTS, 3000) == {sector: 100 * count for sector, count in COUNTS.items()}
    assert sector_counts({"Technology": 1, "Energy": 1, "Utilities": 1}, 2) == {
        "Technology": 1,
        "Energy": 1,
        "Utilities": 0,
    }


def test_a_written_collection_reads_back_as_the_truth(collection: Path, truth: SyntheticMarket) -> None:
    market = load_market(collection)
    assert all(note.endswith("are restated for later splits; undone.") for note in market.notes)
    assert market.securities == truth.securities
    close = market.prices["adj_close"].to_numpy().reshape(len(truth.securities), len(truth.days)).T
    np.testing.assert_array_equal(close, truth.adjusted_close)
    np.testing.assert_allclose(market.factors.drop("date", "rf").to_numpy(), truth.factors, atol=1e-12)
    np.testing.assert_allclose(market.factors["rf"].to_numpy(), truth.risk_free, atol=1e-12)
    assert market.factors["date"].to_list() == list(truth.days)
    assert set(market.macro) == set(truth.macro)
    for series, (days, values) in truth.macro.items():
        known = [(d, v) for d, v in zip(days, values, strict=True) if v is not None and d >= date(2016, 1, 1)]
        assert market.macro[series].rows() == known, series
    for (symbol, published), facts in zip(market.statements.items(), truth.fundamentals, strict=True):
        for table, ends, values in (
            (published.net_income_quarterly, facts.quarter_ends, facts.quarterly["netIncome"]),
            (published.eps_quarterly, facts.quarter_ends, facts.quarterly["eps"]),
            (published.equity, facts.annual_ends, facts.balances["equity"]),
            (published.net_income_annual, facts.annual_ends, facts.annual["netIncome"]),
        ):
            assert table.rows() == list(zip(ends, values.tolist(), strict=True)), symbol
        splits = market.splits[symbol].rows()
        for (end, own), stated in zip(published.diluted_shares.rows(), facts.diluted_shares.tolist(), strict=True):
            ratio = next((shares for day, _, shares in splits if day > end), 1.0)
            assert own in (stated, pytest.approx(stated / ratio, rel=1e-12)), symbol


def _symbol(raw: Path, index: int = 3) -> str:
    return sorted(p.stem for p in (raw / "prices").glob("*.csv"))[index]


def test_a_missing_name_without_alternate_is_one_clear_error(spoiled: Path) -> None:
    symbol = _symbol(spoiled)
    (spoiled / "statements_derived" / f"{symbol}.json").unlink()
    with pytest.raises(SourceError, match=f"{symbol} has no statements"):
        load_market(spoiled)


def test_an_alternate_stands_in(spoiled: Path) -> None:
    record = orjson.loads((spoiled / "universe.json").read_bytes())
    technology = record["sectors"]["Technology"]
    technology["alternates"] = [technology["names"].pop()]
    (spoiled / "universe.json").write_bytes(orjson.dumps(record))
    gone, spare = technology["names"][0], technology["alternates"][0]
    (spoiled / "prices" / f"{gone}.csv").unlink()
    market = load_market(spoiled)
    assert f"{gone} (Technology) has no prices with volume; {spare} takes its place." in market.notes
    assert len(market.securities) == 8


def test_without_a_universe_any_names_are_taken_that_the_constituents_give_a_sector(spoiled: Path) -> None:
    """A collection of names of which the published universe has none; one that cannot be used is left out."""
    (spoiled / "universe.json").unlink()
    short = _symbol(spoiled)
    statements = spoiled / "statements_derived" / f"{short}.json"
    record = orjson.loads(statements.read_bytes())
    record["quarterly"]["netIncome"] = record["quarterly"]["netIncome"][-7:]
    statements.write_bytes(orjson.dumps(record))
    market = load_market(spoiled)
    assert len(market.securities) == 8
    assert any(note.startswith("There is no universe.json, and the files do not fill") for note in market.notes)
    assert any(
        note.endswith("has 7 quarters of net income where 8 are needed; it is left out.") for note in market.notes
    )
    for path in (spoiled / "statements_derived").iterdir():
        record = orjson.loads(path.read_bytes())
        path.write_bytes(orjson.dumps(record | {"balances": {"equity": []}}))
    with pytest.raises(SourceError, match=r"raw: not one name can be used: \w+ \(.*\) has no equity; it is left out"):
        load_market(spoiled)
    (spoiled / "constituents" / "constituents.csv").unlink()
    with pytest.raises(SourceError, match=r"unknown ticker \w+; rename the file or list the ticker in universe\.json"):
        load_market(spoiled)


def test_a_long_hole_names_file_and_dates(spoiled: Path) -> None:
    path = spoiled / "prices" / f"{_symbol(spoiled)}.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:1000] + lines[1030:]))
    assert load_market(spoiled).prices.height == 9 * 2514 - 30
    path.write_text("".join(lines[:1000] + lines[1031:]))
    with pytest.raises(SourceError, match="no prices for 31 sessions") as caught:
        load_market(spoiled)
    for part in (f"{path.name}, line 1000:", lines[999][:10], lines[1031][:10]):
        assert part in str(caught.value)


@pytest.mark.slow
def test_a_long_hole_is_told_of_the_download_it_is_in(spoiled: Path) -> None:
    """A close-only extract comes first by name; the rows used, and so the hole, are those of the later one."""
    path = spoiled / "prices" / f"{_symbol(spoiled)}.csv"
    lines = path.read_text().splitlines(keepends=True)
    for folder in ("a_closes", "b_full"):
        (spoiled / "prices" / folder).mkdir()
    rows = [line.split(",") for line in lines]
    place = rows[0].index("Close")
    closes = "\n".join(f"{row[0]},{row[place]}" for row in rows)
    (spoiled / "prices" / "a_closes" / path.name).write_text(closes)
    (spoiled / "prices" / "b_full" / path.name).write_text("".join(lines[:1000] + lines[1031:]))
    path.unlink()
    with pytest.raises(SourceError, match="no prices for 31 sessions") as caught:
        load_market(spoiled)
    assert f"b_full/{path.name}, line 1000:" in str(caught.value)


def test_a_price_of_another_scale_is_named_by_file_line_and_date(spoiled: Path) -> None:
    path = spoiled / "prices" / f"{_symbol(spoiled)}.csv"
    lines = path.read_text().splitlines(keepends=True)
    head, cells = lines[0].strip().split(","), lines[2400].strip().split(",")
    for name in ("Open", "High", "Low", "Close"):
        cells[head.index(name)] = repr(float(cells[head.index(name)]) * 50)
    lines[2400] = ",".join(cells) + "\n"
    path.write_text("".join(lines))
    with pytest.raises(SourceError, match="a spike that the next session undoes") as caught:
        load_market(spoiled)
    assert f"{path.name}, line 2401: close of {cells[0][:10]} is" in str(caught.value)


def test_a_name_that_stopped_trading_is_not_usable(spoiled: Path) -> None:
    path = spoiled / "prices" / f"{_symbol(spoiled)}.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-60]))
    with pytest.raises(SourceError, match=f"{path.stem} has prices that end on"):
        load_market(spoiled)


@pytest.mark.parametrize(("folder", "name"), [("prices", "NOONE.csv"), ("statements_derived", "NOONE.json")])
def test_a_file_of_an_unknown_ticker_is_refused(spoiled: Path, folder: str, name: str) -> None:
    some = next((spoiled / folder).iterdir())
    shutil.copy(some, spoiled / folder / name)
    with pytest.raises(SourceError, match="unknown ticker NOONE") as caught:
        load_market(spoiled)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ('"Technology"', '"Tech"', "unknown sector 'Tech'"),
        ("{", "{{", "not valid JSON"),
        ('"sub_sector": "', '"sub_sector": 1, "x": "', "sub_sector is missing"),
        ('"cik": "', '"cik": "CIK', "cik is 'CIK"),
    ],
)
def test_a_bad_universe_is_refused(spoiled: Path, old: str, new: str, word: str) -> None:
    path = spoiled / "universe.json"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(SourceError, match=word) as caught:
        load_market(spoiled)
    assert "universe.json, line" in str(caught.value)


@pytest.mark.parametrize("folder", ["prices", "famafrench", "fred", "statements_derived"])
def test_a_missing_folder_is_named(spoiled: Path, folder: str) -> None:
    shutil.rmtree(spoiled / folder)
    with pytest.raises(SourceError, match=f"no folder {folder}"):
        load_market(spoiled)
