"""Figures that companies published, by accession number: revenue, operating income, depreciation, EBITDA.

`published_figures.csv` holds what was known on the day of each report, in USD; an empty value says that nothing may be
stated: the fourth quarter of a year that the annual report recast (IBM 2021, Pfizer and Uber 2020, Bank of America
2025), or a total that no filing tags (Tesla's depreciation, amortization and impairment).
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.sampling import sampled

from finskillbench.domains.fundamental.second.answers import normalised
from finskillbench.domains.fundamental.second.definitions import Kind
from finskillbench.domains.fundamental.second.raw import RawFacts
from finskillbench.engines.accounting.periods import Duration
from finskillbench.engines.accounting.statements import ledger, normalise
from finskillbench.panels.filings.facts import build_facts
from finskillbench.panels.filings.fundamentals import FundamentalPanels
from finskillbench.panels.filings.query import FactStore
from finskillbench.sources.edgar.companyfacts import parse_companyfacts

with Path(__file__).with_name("published_figures.csv").open(newline="") as _file:
    FIGURES = list(csv.DictReader(_file))
FILES = {figure["symbol"]: figure["file"] for figure in FIGURES}
CHOSEN = sampled(FILES, 3)
"""Companies that are looked at."""
KINDS: Mapping[str, Kind] = {"annual": "annual", "quarterly": "quarterly"}


@pytest.fixture(scope="module")
def store(realdata: Path) -> FactStore:
    companies = {
        symbol: parse_companyfacts(realdata / "companyfacts" / name)
        for symbol, name in FILES.items()
        if symbol in CHOSEN
    }
    nothing = FundamentalPanels.empty().tables
    return FactStore(build_facts(companies).frame, nothing["filings"], nothing["segments"])


@cache
def _raw(path: Path) -> RawFacts:
    return RawFacts(parse_companyfacts(path).facts.iter_rows(named=True))


@cache
def _accessions(path: Path, tag: str) -> set[tuple[str, str]]:
    """Accession and last day of what a file holds under a tag."""
    units: Mapping[str, Any] = json.loads(gzip.decompress(path.read_bytes()))["facts"]["us-gaap"][tag]["units"]
    return {(row["accn"], row["end"]) for rows in units.values() for row in rows}


def test_enough_figures_of_enough_companies() -> None:
    assert len(FIGURES) >= 60
    assert len(FILES) >= 25
    assert {"UAA", "WMT", "BLK", "TSLA", "HD", "IBM", "PFE", "UBER", "BAC", "DIS"} <= set(FILES)


@pytest.mark.parametrize(
    "figure",
    [figure for figure in FIGURES if figure["symbol"] in CHOSEN],
    ids="{symbol} {end} {kind} {metric}".format_map,
)
def test_a_published_figure(realdata: Path, store: FactStore, figure: dict[str, str]) -> None:
    """Both derivations state it on the day of the report, from the filing of that accession, or neither states any."""
    end, as_of = date.fromisoformat(figure["end"]), date.fromisoformat(figure["as_of"])
    rows = store.visible(figure["symbol"], as_of)["facts"]
    statement = ledger(rows, figure["symbol"]).statement(end, Duration(figure["kind"]))
    path = realdata / "companyfacts" / figure["file"]
    again = _raw(path).on(as_of).figures(end, KINDS[figure["kind"]])
    metric = figure["metric"]
    first = normalise(statement)[metric] if metric == "ebitda" else statement.get(metric)
    second = normalised(again)[metric] if metric == "ebitda" else again[metric]
    expected = float(figure["value"]) if figure["value"] else None
    assert first == expected
    assert second == expected
    if figure["tag"]:
        tag = figure["tag"].partition("+")[0]
        assert (figure["accession"], figure["end"]) in _accessions(path, tag)
        told = [row for row in rows if (row["metric"], row["end"], row["duration"]) == (metric, *_period(figure))]
        assert [(row["accession"], row["tag"]) for row in told] == [(figure["accession"], figure["tag"])]


def _period(figure: Mapping[str, str]) -> tuple[str, str]:
    return figure["end"], figure["kind"]
