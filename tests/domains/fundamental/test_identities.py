"""The identities of a statement, and that the two derivations of a label can disagree about it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.domains.fundamental.test_second import filed

from finskillbench.domains.fundamental.second import concepts
from finskillbench.domains.fundamental.second.answers import Figures
from finskillbench.domains.fundamental.second.concepts import CONCEPTS
from finskillbench.domains.fundamental.second.identities import IDENTITIES, broken, out_of_pattern
from finskillbench.domains.fundamental.second.raw import RawFacts
from finskillbench.panels.filings import concepts as tags
from finskillbench.panels.filings import facts as panel
from finskillbench.panels.filings.facts import build_facts
from finskillbench.sources.edgar.companyfacts import FACTS_SCHEMA, CompanyFacts, parse_companyfacts
from finskillbench.sources.edgar.metrics import CANONICAL, METRICS, Metric
from finskillbench.sources.edgar.taxonomy import STATEMENT_TAGS

WHOLE: Figures = {
    "revenue": 100e9,
    "cost_of_revenue": 60e9,
    "gross_profit": 40e9,
    "operating_expenses": 25e9,
    "operating_income": 15e9,
    "total_assets": 500e9,
    "total_liabilities": 300e9,
    "stockholders_equity": 190e9,
    "minority_interest": 10e9,
    "operating_cash_flow": 20e9,
    "investing_cash_flow": -5e9,
    "financing_cash_flow": -8e9,
    "exchange_rate_effect": -1e9,
    "cash_change": 6e9,
}
BROKEN: dict[str, tuple[str, dict[str, float]]] = {
    "Under Armour's products for its revenue": ("gross_profit", {"revenue": 90e9, "operating_expenses": 15e9}),
    "operating income without an expense": ("operating_income", {"operating_income": 22e9}),
    "liabilities counted twice": ("balance_sheet", {"total_liabilities": 400e9}),
    "equity of the wrong sign": ("balance_sheet", {"stockholders_equity": -190e9}),
    "cash that exceeds assets": ("balance_sheet", {"cash": 600e9}),
    "a section of the cash flow statement left out": ("cash_flow", {"financing_cash_flow": 0.0}),
    "a negative expense": ("sign", {"sga": -1e9}),
}


def test_what_adds_up_breaks_nothing_and_rounding_does_neither() -> None:
    assert list(broken(WHOLE)) == []
    assert list(broken({**WHOLE, "gross_profit": 40_001e6, "cash_change": 6_001e6})) == []
    assert list(broken({name: value for name, value in WHOLE.items() if name != "cost_of_revenue"})) == []
    assert list(broken({})) == []


@pytest.mark.parametrize("case", BROKEN)
def test_a_statement_that_does_not_add_up_is_named(case: str) -> None:
    identity, changes = BROKEN[case]
    assert {fault.identity for fault in broken({**WHOLE, **changes})} == {identity}
    assert identity in IDENTITIES


def test_ten_times_the_quarters_before_is_out_of_pattern() -> None:
    assert out_of_pattern(101.0, [10.0] * 4)
    assert out_of_pattern(0.9, [10.0] * 4)
    assert not out_of_pattern(99.0, [10.0] * 4)
    assert not out_of_pattern(1000.0, [10.0] * 3)


def test_a_quarter_is_what_the_year_to_date_of_its_filing_leaves() -> None:
    rows = [
        filed("Revenues", "2023-01-01", "2023-03-31", 100e6, "2023-05-01", "1"),
        filed("Revenues", "2023-01-01", "2023-06-30", 210e6, "2023-08-01", "2"),
        filed("Revenues", "2023-04-01", "2023-06-30", 110e6, "2023-08-01", "2"),
    ]
    end, day = date(2023, 6, 30), date(2023, 8, 1)
    assert list(RawFacts(rows).on(day).faults([(end, "quarterly")])) == []
    rows[2]["value"] = 150e6
    assert [one.identity for one in RawFacts(rows).on(day).faults([(end, "quarterly")])] == ["quarters"]


# --- two derivations ---------------------------------------------------------------------------------------------


def test_the_second_derivation_chooses_for_itself() -> None:
    assert {name for name, concept in CONCEPTS.items() if not concept.helper} == set(CANONICAL)
    chosen = {tag.partition(":")[2] for concept in CONCEPTS.values() for tag in concept.tags}
    assert chosen <= STATEMENT_TAGS
    assert "metrics" not in Path(concepts.__file__).read_text()


FILING = [
    filed("Revenues", "2023-01-01", "2023-03-31", 120e6, "2023-05-01", "0000000001-23-000001"),
    filed("SalesRevenueNet", "2023-01-01", "2023-03-31", 100e6, "2023-05-01", "0000000001-23-000001"),
    filed("CostOfRevenue", "2023-01-01", "2023-03-31", 60e6, "2023-05-01", "0000000001-23-000001"),
    filed("GrossProfit", "2023-01-01", "2023-03-31", 40e6, "2023-05-01", "0000000001-23-000001"),
    filed(
        "DepreciationDepletionAndAmortization", "2023-01-01", "2023-03-31", 9e6, "2023-05-01", "0000000001-23-000001"
    ),
    filed("DepreciationAndAmortization", "2023-01-01", "2023-03-31", 7e6, "2023-05-01", "0000000001-23-000001"),
]


def _both(rows: list[dict[str, Any]]) -> tuple[dict[str, float], dict[str, float]]:
    """The quarter of a filing by the panel and by the second derivation."""
    frame = pl.DataFrame(
        [{"fiscal_year": 2023, "fiscal_period": "Q1", "frame": None, **row} for row in rows], schema=FACTS_SCHEMA
    )
    first = build_facts({"ONE": CompanyFacts(1, "One", None, Path("ONE.json"), frame, ())}).frame
    second = RawFacts(rows).on(date(2023, 5, 1)).figures(date(2023, 3, 31), "quarterly")
    known = {name: value for name, value in second.items() if value is not None}
    return dict(first.select("metric", "value").iter_rows()), known


def _without(metric: str, tag: str) -> Metric:
    """A metric of the catalog that lost a tag."""
    entry = METRICS[metric]
    kept = tuple(alias for alias in entry.aliases if alias.tag != tag)
    return Metric(entry.kind, entry.unit, kept, entry.summed, entry.part, entry.fallback)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "changed"),
    [
        ("revenue", lambda: _without("revenue", "SalesRevenueNet")),
        (
            "depreciation_amortization",
            lambda: _without("depreciation_amortization", "DepreciationDepletionAndAmortization"),
        ),
        ("gross_profit", lambda: METRICS["operating_income"]),
    ],
)
def test_a_defect_of_the_catalog_is_a_disagreement(
    metric: str, changed: Callable[[], Metric], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tag dropped, or a wrong one taken: one derivation says another figure, or none, and the other does not."""
    first, second = _both(FILING)
    assert first == second
    assert first["revenue"] == 100e6
    assert first["depreciation_amortization"] == 9e6
    table = {**METRICS, metric: changed()}
    monkeypatch.setattr(panel, "METRICS", table)
    monkeypatch.setattr(tags, "METRICS", table)
    first, again = _both(FILING)
    assert again == second
    assert first.get(metric) != second[metric]


def test_the_real_total_of_blackrock_and_the_missing_one_of_tesla(realdata: Path) -> None:
    """The second derivation alone: revenue of 2024 is 20,407 M, and no part of Tesla's depreciation is the whole."""
    folder = realdata / "companyfacts"
    black_rock = RawFacts(parse_companyfacts(folder / "filtered_tags_2026-07/BLK.json.gz").facts.iter_rows(named=True))
    year = black_rock.on(date(2025, 2, 25)).figures(date(2024, 12, 31), "annual")
    assert year["revenue"] == 20_407e6
    tesla = RawFacts(parse_companyfacts(folder / "full_other/CIK0001318605.json.gz").facts.iter_rows(named=True))
    assert tesla.on(date(2022, 2, 7)).figures(date(2021, 12, 31), "annual")["depreciation_amortization"] is None
