"""Figures that companies published, by accession number: first in the raw file with plain JSON, then in the panel.

`published_figures.csv` holds what was known on the day of each report, in USD or USD per share. `tag` is the line of
the filing, or the lines that make it up (`Assets-StockholdersEquity`); `less` is the filing of the shorter year to date
that was subtracted. An empty value says that nothing may be stated, and `remark` why. `finding` says what is wrong
where the panel states something else.

Figures of ABBV, AMZN, GOOGL, JNJ, KO, NVDA, PG, UNH and XOM of 2025 were read off the statements of the inline
documents; of the others a reader of each filing's concepts chose the line.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.sampling import sampled

from finskillbench.domains.fundamental.rederive.definitions import LENGTHS, Kind
from finskillbench.domains.fundamental.rederive.filed import AsFiled, FiledRow
from finskillbench.domains.fundamental.rederive.witness import Witnesses
from finskillbench.engines.accounting.periods import Duration, classify_period
from finskillbench.engines.accounting.statements import CompanyFacts, company_facts, normalise
from finskillbench.panels.filings.facts import build_facts
from finskillbench.panels.filings.query import FactStore
from finskillbench.panels.filings.statements import FundamentalPanels
from finskillbench.sources.edgar.companyfacts import parse_companyfacts
from finskillbench.sums import exact_sum

with Path(__file__).with_name("published_figures.csv").open(newline="") as _file:
    FIGURES = list(csv.DictReader(_file))
FILES = {figure["symbol"]: figure["file"] for figure in FIGURES}
CHOSEN = sampled(FILES, 3)
"""Companies that are looked at."""
LOOKED_AT = [figure for figure in FIGURES if figure["symbol"] in CHOSEN]
KINDS: Mapping[str, Kind] = {kind: kind for kind in LENGTHS}
"""Periods that witnesses know."""
NAME = "{symbol} {end} {kind} {metric}".format_map
Row = Mapping[str, Any]


@pytest.fixture(scope="module")
def accounts(realdata: Path) -> Any:
    """The rows of a company as public on a day, and the ledger of them."""
    companies = {
        symbol: parse_companyfacts(realdata / "companyfacts" / name)
        for symbol, name in FILES.items()
        if symbol in CHOSEN
    }
    nothing = FundamentalPanels.empty().tables
    store = FactStore(build_facts(companies).frame, nothing["filings"], nothing["segments"])

    @cache
    def of(symbol: str, as_of: date) -> tuple[list[dict[str, Any]], CompanyFacts]:
        rows = store.visible(symbol, as_of)["facts"]
        return rows, company_facts(rows, symbol)

    return of


@cache
def _as_filed(path: Path) -> AsFiled:
    return AsFiled(parse_companyfacts(path).facts.select(FiledRow._fields).iter_rows())


@cache
def _filed(path: Path) -> dict[tuple[str, str, date], list[tuple[date | None, float]]]:
    """Accession, tag and last day -> first days and values, as a file holds them."""
    found: dict[tuple[str, str, date], list[tuple[date | None, float]]] = {}
    for tag, concept in json.loads(gzip.decompress(path.read_bytes()))["facts"].get("us-gaap", {}).items():
        for row in (row for rows in concept.get("units", {}).values() for row in rows):
            start = date.fromisoformat(row["start"]) if "start" in row else None
            key = row["accn"], tag, date.fromisoformat(row["end"])
            found.setdefault(key, []).append((start, float(row["val"])))
    return found


def _signed(figure: Row) -> list[tuple[int, str]]:
    """The lines that a figure adds up from, each with its sign."""
    return [(-1 if sign == "-" else 1, tag) for sign, tag in re.findall(r"([+-]?)(\w+)", figure["tag"])]


def test_enough_figures_of_enough_companies() -> None:
    assert len(FIGURES) >= 1_000
    assert len(FILES) >= 50
    assert sum(not figure["value"] for figure in FIGURES) >= 50
    assert all(figure["value"] or figure["remark"] for figure in FIGURES)
    assert {"UAA", "WMT", "BLK", "TSLA", "HD", "IBM", "PFE", "UBER", "BAC", "DIS"} <= set(FILES)


@pytest.mark.parametrize("figure", [figure for figure in LOOKED_AT if figure["tag"]], ids=NAME)
def test_a_figure_stands_in_its_filing(realdata: Path, figure: Row) -> None:
    """The lines of the filing add up to it, or what two filings say of the year to date leaves it."""
    filed, end = _filed(realdata / "companyfacts" / figure["file"]), date.fromisoformat(figure["end"])
    start = date.fromisoformat(figure["start"]) if figure["start"] else None
    if not figure["less"]:
        assert start is None or classify_period(start, end) == figure["kind"]
        terms = [
            {sign * value for first, value in filed[figure["accession"], tag, end] if first == start}
            for sign, tag in _signed(figure)
        ]
    else:
        assert start is not None
        shorter = start - timedelta(days=1)
        terms = [
            {
                sign * (long - short)
                for (first, long), (same, short) in product(
                    filed[figure["accession"], tag, end], filed[figure["less"], tag, shorter]
                )
                if first == same
            }
            for sign, tag in _signed(figure)
        ]
    assert float(figure["value"]) in {exact_sum(choice) for choice in product(*terms)}


@pytest.mark.parametrize("figure", LOOKED_AT, ids=NAME)
def test_a_published_figure(realdata: Path, accounts: Any, figure: Row) -> None:
    """The panels state it on the day of the report, from the filing of that accession, and no witness refutes it."""
    end, as_of, metric = date.fromisoformat(figure["end"]), date.fromisoformat(figure["as_of"]), figure["metric"]
    rows, known = accounts(figure["symbol"], as_of)
    statement = known.statement(end, Duration(figure["kind"]))
    expected = float(figure["value"]) if figure["value"] else None
    assert (normalise(statement)[metric] if metric == "ebitda" else statement.get(metric)) == expected
    if expected is not None and metric != "ebitda":
        witnesses = Witnesses(_as_filed(realdata / "companyfacts" / figure["file"]), as_of)
        kind = KINDS.get(figure["kind"], "quarterly")  # a balance is of no kind
        assert not list(witnesses.faults({metric: expected}, {metric: figure["tag"]}, [metric], end, kind))
    if figure["tag"]:
        periods = {figure["kind"], "instant"}
        told = [row for row in rows if (row["metric"], row["end"]) == (metric, figure["end"])]
        told = [row for row in told if row["duration"] in periods]
        assert [(row["accession"], row["tag"]) for row in told] == [(figure["accession"], figure["tag"])]
