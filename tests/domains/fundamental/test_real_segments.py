"""Revenue drivers of real filings: which there are, published figures, and what the second derivation notices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.sampling import thorough

from finskillbench.domains.fundamental import driver_decomposition
from finskillbench.domains.fundamental.objects.pools import Candidate, Pool
from finskillbench.domains.fundamental.objects.reports import ReportCase, iterate_cases
from finskillbench.domains.fundamental.rederive.segments import RawSegments
from finskillbench.panels.build import filings_only_panels
from finskillbench.panels.filings.statements import build_fundamentals
from finskillbench.sources.edgar.collection import FilingsData, load_filings
from finskillbench.sources.edgar.instance import Instance
from finskillbench.sources.edgar.instance_reader import InstanceFact

COMPANIES = ("AAPL", "JNJ", "KO", "NVDA", "PG", "XOM")
KNOWN = [
    # (symbol, end of the quarter, accession, segment, USD millions in the quarter and in the one before); first
    # quarters are in no document here: they are what the companies published in April and January.
    ("AAPL", "2023-09-30", "0000320193-23-000106", "iPhone", 200_583 - 156_778, 39_669),
    ("AAPL", "2025-03-29", "0000320193-25-000057", "iPhone", 46_841, 69_138),
    ("AAPL", "2025-06-28", "0000320193-25-000073", "Service", 27_423, 26_645),
    ("JNJ", "2025-06-29", "0000200406-25-000178", "Innovative Medicine", 15_202, 13_873),
    ("KO", "2025-06-27", "0000021344-25-000061", "Finished Product Operations", 4_246, 3_946),
    ("NVDA", "2025-07-27", "0001045810-25-000209", "Gaming", 4_287, 3_763),
    ("PG", "2025-06-30", "0000080424-25-000076", "Grooming", 6_662 - 4_980, 1_505),
    ("XOM", "2025-06-30", "0000034088-25-000042", "Other Revenue", 567, 703),
]


@pytest.fixture(scope="module")
def filings(realdata: Path) -> FilingsData:
    return load_filings(realdata, COMPANIES)


@pytest.fixture(scope="module")
def cases(filings: FilingsData) -> dict[tuple[str, str], ReportCase]:
    """Every report of the companies of which revenue by segment is known."""
    panels = filings_only_panels(build_fundamentals(filings))
    found = iterate_cases(panels, filings, np.random.default_rng(1), timedelta(days=800))
    return {(case.report.symbol, f"{case.report.period_end}"): case for case in found if case.segments}


def labelled(case: ReportCase) -> Candidate | None:
    return driver_decomposition._candidate(case, {"ratios": 3})  # pyright: ignore[reportPrivateUsage]


@thorough
def test_every_pair_of_quarters_that_the_documents_break_down_is_an_episode(
    cases: dict[tuple[str, str], ReportCase],
) -> None:
    pool, seen = Pool(), set[tuple[str, str]]()
    for where, case in cases.items():
        label = labelled(case)
        if label is not None and label.expected["top_revenue_drivers"]:
            seen.add(where)
            pool.add(label)
    assert seen == {known[:2] for known in KNOWN}
    assert pool.disagreements == []
    assert len(pool.proved) == len(KNOWN)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: f"{known[0]}-{known[1]}")
def test_known_changes(
    cases: dict[tuple[str, str], ReportCase], known: tuple[str, str, str, str, float, float]
) -> None:
    symbol, end, accession, segment, now, before = known
    label = labelled(cases[symbol, end])
    assert label is not None
    assert label.report.accession == accession
    for side in (label.expected, label.rederived):
        changes = {driver["driver"]: driver["magnitude_usd"] for driver in side["top_revenue_drivers"]}
        assert changes[segment] == pytest.approx((now - before) * 1e6, rel=1e-12)


def explained(case: ReportCase, instances: list[Instance], filings: FilingsData) -> dict[str, float | None]:
    """What the second derivation makes of a case from other documents."""
    rows = filings.companies[case.report.symbol].facts.rows(named=True)
    assert case.before.end is not None
    end, day, shown = case.report.period_end, case.report.filed, case.segments["product_segment"]
    changes = RawSegments(instances, rows).explaining("product_segment", shown, end, case.before.end, day)
    return {each.name: each.change for each in changes}


def _first_dimension(fact: InstanceFact) -> InstanceFact:
    return fact._replace(dimensions=fact.dimensions[:1])


def _one_more(fact: InstanceFact) -> InstanceFact:
    grooming = any("Grooming" in member for _, member in fact.dimensions)
    return fact._replace(value=fact.value + 1e6) if grooming and fact.end == date(2025, 6, 30) else fact


def _corporate_left_out(fact: InstanceFact) -> InstanceFact:
    unqualified = [axis for axis, _ in fact.dimensions] == ["srt:ConsolidationItemsAxis"]
    return fact._replace(tag="Assets") if unqualified else fact


@pytest.mark.parametrize(
    ("change", "moved"),
    [(_first_dimension, None), (_corporate_left_out, None), (_one_more, 177.0 + 1.0)],
    ids=["one dimension only", "without what reconciles", "a figure that is one million off"],
)
def test_the_second_derivation_reads_all_dimensions(
    cases: dict[tuple[str, str], ReportCase],
    filings: FilingsData,
    change: Callable[[InstanceFact], InstanceFact],
    moved: float | None,
) -> None:
    """P&G's segments stand beside "operating segments", and corporate items complete them."""
    case = cases["PG", "2025-06-30"]
    documents = list(filings.instances["PG"])
    assert explained(case, documents, filings)["Grooming"] == pytest.approx(177e6)
    altered = [replace(one, facts=tuple(map(change, one.facts))) for one in documents]
    found = explained(case, altered, filings)
    assert found.get("Grooming") == (None if moved is None else pytest.approx(moved * 1e6))


def test_a_document_that_says_no_accession_belongs_to_the_filing_with_its_figures(
    cases: dict[tuple[str, str], ReportCase], filings: FilingsData
) -> None:
    case = cases["AAPL", "2023-09-30"]
    documents = [one for one in filings.instances["AAPL"] if one.fiscal_year == 2023]
    assert [one.accession for one in documents] == [None, None]
    found = explained(case, documents, filings)
    assert found["iPhone"] == (200_583 - 156_778 - 39_669) * 1e6
    named = [replace(one, accession="0000320193-99-000001") for one in documents]
    assert explained(case, named, filings) == {}
