"""Editions of one half of a collection: filings without prices, prices without filings."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from tests.editions import one_process
from tests.sampling import thorough

from finskillbench import cli
from finskillbench.domains import domain
from finskillbench.edition import Edition, build_edition, load_edition
from finskillbench.edition.build import refuse_small_universe
from finskillbench.edition.checks.engine import validate_edition
from finskillbench.edition.withheld import export_public
from finskillbench.errors import InputError, SourceError
from finskillbench.panels import read_panels
from finskillbench.sources.market.collection import load_market

MARKET = ("prices", "famafrench", "fred", "statements_derived")
OF_PRICES = ("portfolio_construction", "risk_management")
FUNDAMENTAL = {"normalization", "earnings_quality", "driver_decomposition"}


@pytest.fixture(scope="module", autouse=True)
def alone_on_its_core() -> Iterator[None]:
    with one_process():
        yield


@pytest.fixture(scope="module")
def collection(synthetic_raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A written collection whose filings are those of three companies."""
    raw = shutil.copytree(synthetic_raw, tmp_path_factory.mktemp("halves") / "raw", copy_function=os.link)
    for path in sorted((raw / "companyfacts").iterdir())[3:]:
        path.unlink()
    return raw


@pytest.fixture(scope="module")
def filings_only(collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Edition:
    raw = shutil.copytree(collection, tmp_path_factory.mktemp("filings") / "raw", copy_function=os.link)
    for folder in MARKET:
        shutil.rmtree(raw / folder)
    return build_edition(source="raw-dir", raw_dir=raw, seed=1, episodes=5, out=raw.parent / "edition")


@pytest.mark.slow
def test_filings_alone_are_an_edition_of_fundamental_analysis(filings_only: Edition) -> None:
    manifest = filings_only.manifest
    assert set(manifest["counts"]) == FUNDAMENTAL
    assert all(manifest["counts"].values())
    assert len(manifest["universe"]) == 3
    assert manifest["as_of_dates"] == []
    assert "Portfolio construction is left out: the collection has no prices." in manifest["notes"]
    assert "Risk management is left out: the collection has no prices." in manifest["notes"]
    assert set(manifest["parameters"]) == {"fundamental", "fundamental_pools", "fundamental_entities"}
    panels = read_panels(filings_only.path / "panels")
    assert panels.data_kinds == {"company facts"}
    assert panels.universe == tuple(manifest["universe"])


@pytest.mark.slow
def test_they_are_validated_and_handed_out(filings_only: Edition, tmp_path: Path) -> None:
    report = validate_edition(filings_only)
    assert report.passed
    skipped = {check.domain for check in report.checks if check.state == "SKIP"}
    assert skipped == {"portfolio_construction", "risk_management"}
    assert not export_public(filings_only, tmp_path / "public").has_truth


@thorough
@pytest.mark.slow
def test_an_edition_may_be_about_the_reports_of_some_months(collection: Path, tmp_path: Path) -> None:
    """Every episode is as of a filing day within them, compares with what was filed before, and stands validation."""
    raw = shutil.copytree(collection, tmp_path / "raw", copy_function=os.link)
    for folder in MARKET:
        shutil.rmtree(raw / folder)
    filed = (date(2023, 7, 1), date(2024, 6, 30))
    edition = build_edition(source="raw-dir", raw_dir=raw, seed=1, episodes=5, filed=filed, out=tmp_path / "edition")
    days = {episode.as_of_date for episode in edition.episodes()}
    assert min(days) >= filed[0]
    assert max(days) <= filed[1]
    assert len(days) > 4
    assert edition.manifest.get("filed") == ["2023-07-01", "2024-06-30"]
    assert "Fundamental episodes cover only reports filed from 2023-07-01 to 2024-06-30." in edition.manifest["notes"]
    assert validate_edition(edition).passed


@pytest.mark.slow
def test_they_are_described_and_run(filings_only: Edition, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "info", str(filings_only.path)]) == 0
    assert "Universe:  3 names\nDates:     none\n" in capsys.readouterr().out
    days = sorted(each.as_of_date for each in filings_only.episodes())
    middle = days[len(days) // 2]
    after = sum(day > middle for day in days)
    assert 0 < after < len(days)
    asked = ["--cutoff", str(middle), "--cutoff", f"lab/late={days[-1]}"]
    assert cli.main(["data", "info", str(filings_only.path), *asked]) == 0
    told = capsys.readouterr().out
    assert f"newest day: {days[-1]}; no episode contains later data" in told
    assert f"a model trained on data up to {middle} may know the answers of {len(days) - after:,} of" in told
    assert f"lab/late, trained on data up to {days[-1]}," in told
    assert "0 have a later as-of date" in told
    run = ["run", "--edition", str(filings_only.path), "--limit", "1", "--out", str(tmp_path / "run")]
    assert cli.main([*run, "--model", "baseline/reference", "--condition", "curated"]) == 0
    assert "normalization" in capsys.readouterr().out
    assert cli.main(["export-tasks", str(filings_only.path), str(tmp_path / "tasks"), "--limit", "1"]) == 0


@pytest.mark.slow
def test_names_are_not_chosen_without_prices(filings_only: Edition, tmp_path: Path) -> None:
    raw = filings_only.path.parent / "raw"
    with pytest.raises(InputError, match="has no folder prices to choose companies by"):
        build_edition(source="raw-dir", raw_dir=raw, companies=20, out=tmp_path / "edition")


def test_a_universe_that_is_too_small_is_refused_with_its_size(collection: Path) -> None:
    market = load_market(collection)
    refuse_small_universe(market, collection)
    few = replace(market, securities=market.securities[:14])
    with pytest.raises(SourceError, match=r"only 14 names in \d+ sectors can be used; 15 in 5 are needed"):
        refuse_small_universe(few, collection)
    narrow = replace(market, securities=tuple(replace(one, sector="Energy") for one in market.securities))
    with pytest.raises(SourceError, match="30 names in 1 sectors"):
        refuse_small_universe(narrow, collection)


@thorough
@pytest.mark.slow
def test_prices_alone_are_an_edition_of_the_market(collection: Path, tmp_path: Path) -> None:
    raw = shutil.copytree(
        collection, tmp_path / "raw", ignore=shutil.ignore_patterns("companyfacts", "submissions", "xbrl")
    )
    edition = build_edition(source="raw-dir", raw_dir=raw, seed=1, episodes=1, out=tmp_path / "edition")
    market = {subtask.name for name in OF_PRICES for subtask in domain(name).subtasks}
    assert set(edition.manifest["counts"]) == market
    assert "Fundamental analysis is left out: the collection has no company facts." in edition.manifest["notes"]
    assert not set(edition.manifest["counts"]) & FUNDAMENTAL
    assert load_edition(edition.path).filings is not None
