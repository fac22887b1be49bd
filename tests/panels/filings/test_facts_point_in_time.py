"""The facts of every real company on random days: nothing from the future, restatements in their time.

Of one company in four, but in a thorough run.
"""

import datetime as dt
import itertools
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.sampling import THOROUGH, sampled

from finskillbench.domains.fundamental.inputs import FactRow
from finskillbench.domains.fundamental.rederive.definitions import LENGTHS, VisibleFacts
from finskillbench.domains.fundamental.rederive.filed import AsFiled, FiledRow
from finskillbench.domains.fundamental.rederive.witness import Witnesses
from finskillbench.panels.filings.facts import build_facts
from finskillbench.panels.filings.query import LARGEST_LIMIT, FactStore, FiledStore
from finskillbench.panels.filings.statements import FundamentalPanels, build_filed
from finskillbench.sources.edgar.companyfacts import EdgarFacts, parse_companyfacts

FIRST, LAST = dt.date(2009, 6, 1), dt.date(2026, 8, 1)
DAYS = 50 if THOROUGH else 25
REL = 1e-9
EMPTY = FundamentalPanels.empty().tables


def _symbol(path: Path) -> str:
    """A name of its own for each file: some companies are in the collection twice, whole and filtered."""
    return path.name.partition(".")[0] + ("-F" if path.parent.name.startswith("filtered") else "")


def _random_days(seed: object, count: int) -> list[dt.date]:
    rng = random.Random(str(seed))
    return [FIRST + dt.timedelta(days=rng.randrange((LAST - FIRST).days)) for _ in range(count)]


@pytest.fixture(scope="module")
def files(realdata: Path) -> dict[str, Path]:
    """The company files of the collection."""
    paths = sorted((realdata / "companyfacts").rglob("*.json.gz"))
    assert len(paths) == 109
    return {_symbol(path): path for path in sampled(paths, 4)}


@pytest.fixture(scope="module")
def companies(files: Mapping[str, Path]) -> dict[str, EdgarFacts]:
    return {symbol: parse_companyfacts(path) for symbol, path in files.items()}


@pytest.fixture(scope="module")
def frame(companies: Mapping[str, EdgarFacts]) -> pl.DataFrame:
    return build_facts(companies).frame


@pytest.fixture(scope="module")
def store(frame: pl.DataFrame) -> FactStore:
    return FactStore(frame, EMPTY["filings"], EMPTY["segments"])


def test_every_company_has_facts(files: Mapping[str, Path], frame: pl.DataFrame) -> None:
    """But for those whose figures are all in another currency, which the notes name."""
    assert set(files) - set(frame["symbol"].unique()) <= {"ASML-F"}


@pytest.mark.slow
def test_nothing_public_was_filed_after_the_day(companies: Mapping[str, EdgarFacts], store: FactStore) -> None:
    """Every company on random days: all that a query and an episode's input show of them."""
    filed = FiledStore(build_filed(companies), EMPTY["filings"], EMPTY["segments"])
    seen = 0
    for symbol in store.symbols:
        for day in _random_days(symbol, DAYS):
            answer = filed.query(symbol, day, metrics=["Revenues", "Assets", "no such"], limit=LARGEST_LIMIT)
            rows = [*answer["facts"], *store.visible(symbol, day, day - dt.timedelta(days=800))["facts"]]
            assert not [row for row in rows if row["filed"] > day.isoformat()], (symbol, day)
            assert not [row for row in rows if row["end"] > day.isoformat()], (symbol, day)
            assert not [end for end in answer["available"]["periods"] if end > day.isoformat()], (symbol, day)
            seen += len(rows)
    assert seen > 23.2 * DAYS * len(store.symbols)


@pytest.mark.parametrize("day", _random_days("cut", 4 if THOROUGH else 2), ids=str)
def test_the_panel_of_a_day_does_not_know_the_future(
    companies: Mapping[str, EdgarFacts], frame: pl.DataFrame, day: dt.date
) -> None:
    """Cut off what was filed later and build again: the same rows, derived ones included."""
    cut = {name: replace(one, facts=one.facts.filter(pl.col("filed") <= day)) for name, one in companies.items()}
    cut = {name: one for name, one in cut.items() if one.facts.height}
    again = build_facts(cut).frame
    keys = ["symbol", "metric", "start", "end", "filed", "derived", "accession"]
    assert_frame_equal(again.sort(keys), frame.filter(pl.col("filed") <= day).sort(keys), rel_tol=1e-12)


def test_restated_figures_are_old_before_and_new_after(frame: pl.DataFrame, store: FactStore) -> None:
    """Every company with a reported figure of two versions: the last day of the old one, the first of the new."""
    versions = (
        frame.filter(~pl.col("derived") & pl.col("start").is_not_null())
        .sort("filed")
        .group_by("symbol", "metric", "start", "end", maintain_order=True)
        .agg("filed", "value", "tag")
        .filter(pl.col("filed").list.n_unique() > 1)
        .filter(pl.col("filed").list.n_unique() == pl.col("filed").list.len())
    )
    checked: set[tuple[str, int]] = set()
    for row in versions.iter_rows(named=True):
        if sum(symbol == row["symbol"] for symbol, _ in checked) >= 20:
            continue
        checked.add((row["symbol"], len(checked)))
        filings = list(zip(row["filed"], row["value"], strict=True))
        for (_, old), (filed, new) in itertools.pairwise(filings):
            for day, value in ((filed - dt.timedelta(days=1), old), (filed, new)):
                shown = _shown(store, row, day)
                assert shown == value, (row, day)
    assert len({symbol for symbol, _ in checked}) >= 0.74 * len(store.symbols)
    assert len(checked) >= 9.3 * len(store.symbols)


def _shown(store: FactStore, row: Mapping[str, Any], day: dt.date) -> float | None:
    subject = row["metric"], row["start"].isoformat(), row["end"].isoformat()
    facts = store.visible(row["symbol"], day, row["end"])["facts"]
    values = [fact["value"] for fact in facts if (fact["metric"], fact["start"], fact["end"]) == subject]
    assert len(values) == 1
    return values[0]


@pytest.mark.slow
def test_what_is_public_is_what_filings_said(companies: Mapping[str, EdgarFacts], store: FactStore) -> None:
    """Every company on random days: each figure, derived ones too, is what filings said by then of its own concepts."""
    wrong: list[tuple[Any, ...]] = []
    compared = 0
    for symbol in store.symbols:
        filed = AsFiled(companies[symbol].facts.select(FiledRow._fields).iter_rows())
        for day in _random_days(f"oracle {symbol}", 3 if THOROUGH else 1):
            rows = store.visible(symbol, day)["facts"]
            visible, witnesses = VisibleFacts(cast("list[FactRow]", rows)), Witnesses(filed, day)
            for end, kind in itertools.product(sorted({row["end"] for row in rows}), LENGTHS):
                last = dt.date.fromisoformat(end)
                tags = visible.tags(last, kind)
                for metric, value in visible.figures(last, kind).items():
                    compared += 1
                    if not any(_same(value, one) for one in witnesses.on_file(tags[metric], last, kind)):
                        wrong.append((symbol, day.isoformat(), metric, kind, end, value, tags[metric]))
    assert compared > 278 * len(store.symbols)
    assert not wrong, f"{len(wrong)} of {compared}: {wrong[:5]}"


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= REL * max(abs(one), abs(other))
