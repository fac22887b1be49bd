"""Witnesses of figures: what else a company filed refutes a wrong tag, a part for the whole and a null."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from finskillbench.domains.fundamental.rederive.filed import AsFiled, FiledRow
from finskillbench.domains.fundamental.rederive.identities import LedgerSource
from finskillbench.domains.fundamental.rederive.witness import Witnesses
from finskillbench.engines.accounting.statements import company_facts
from finskillbench.panels.filings import concepts, facts
from finskillbench.sources.edgar.companyfacts import FACTS_SCHEMA, EdgarFacts
from finskillbench.sources.edgar.numerals import METRICS, Metric

START, END, DAY = date(2023, 1, 1), date(2023, 3, 31), date(2023, 5, 1)
FLOWS = {
    "Revenues": 120e6,
    "SalesRevenueNet": 100e6,
    "CostOfRevenue": 60e6,
    "GrossProfit": 40e6,
    "DepreciationDepletionAndAmortization": 9e6,
    "DepreciationAndAmortization": 7e6,
    "NetIncomeLoss": 10e6,
    "ProfitLoss": 12e6,
    "NetIncomeLossAttributableToNoncontrollingInterest": 2e6,
    "NetIncomeLossAvailableToCommonStockholdersBasic": 8e6,
}
BALANCES = {
    "Assets": 500e6,
    "LiabilitiesAndStockholdersEquity": 500e6,
    "LiabilitiesCurrent": 100e6,
    "LiabilitiesNoncurrent": 150e6,
    "StockholdersEquity": 200e6,
    "MinorityInterest": 20e6,
    "RedeemableNoncontrollingInterestEquityCommonCarryingAmount": 30e6,
}
ROWS = [FiledRow(tag, START, END, DAY, "1", value) for tag, value in FLOWS.items()]
ROWS += [FiledRow(tag, None, END, DAY, "1", value) for tag, value in BALANCES.items()]


def _panel(rows: list[FiledRow]) -> LedgerSource:
    """The figures of the panels from rows of one company."""
    stated = {"taxonomy": "us-gaap", "unit": "USD", "form": "10-Q", "fiscal_year": 2023, "fiscal_period": "Q1"}
    frame = pl.DataFrame([{**stated, "frame": None, **row._asdict()} for row in rows], schema=FACTS_SCHEMA)
    company = EdgarFacts(1, "One", None, Path("ONE.json"), frame, ())
    rows_of_panel = facts.build_facts({"ONE": company}).frame.iter_rows(named=True)
    return LedgerSource.of(company_facts(rows_of_panel, "ONE"), END, [])


def _refuted(source: LedgerSource, rows: list[FiledRow], *metrics: str) -> set[str]:
    """What the witnesses in some rows say of figures: the names of the faults."""
    figures, tags = source.figures(END, "quarterly"), source.tags(END, "quarterly")
    found = Witnesses(AsFiled(rows), DAY).faults(figures, tags, metrics or tuple(figures), END, "quarterly")
    return {f"{fault.identity} {fault.message.split()[3]}" for fault in found}


def _without(metric: str, tag: str) -> Metric:
    """A metric of the table that lost a tag."""
    entry = METRICS[metric]
    kept = tuple(alias for alias in entry.aliases if alias.tag != tag)
    return Metric(entry.kind, entry.unit, kept or METRICS["cash"].aliases, entry.declared_additive, entry.part)


def test_nothing_refutes_figures_that_are_right() -> None:
    source = _panel(ROWS)
    figures = source.figures(END, "quarterly")
    assert (figures["revenue"], figures["total_liabilities"], figures["net_income"]) == (100e6, 250e6, 10e6)
    assert _refuted(source, ROWS) == set()


@pytest.mark.parametrize(
    ("metric", "changed", "fault"),
    [
        (
            "depreciation_amortization",
            lambda: _without("depreciation_amortization", "DepreciationDepletionAndAmortization"),
            "witness",
        ),
        ("net_income", lambda: Metric("flow", "USD", METRICS["common_income"].aliases), "witness net_income"),
        ("redeemable_common", lambda: METRICS["cash"], "witness total_liabilities"),
        ("total_assets", lambda: METRICS["current_liabilities"], "witness total_assets"),
    ],
)
def test_a_defect_of_the_table_is_refuted(
    metric: str, changed: Callable[[], Metric], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tag dropped, or a wrong one taken."""
    table = {**METRICS, metric: changed()}
    monkeypatch.setattr(facts, "METRICS", table)
    monkeypatch.setattr(concepts, "METRICS", table)
    assert any(found.startswith(fault) for found in _refuted(_panel(ROWS), ROWS))


def test_a_figure_that_no_filing_says_and_a_null_that_one_fills() -> None:
    witnesses = Witnesses(AsFiled(ROWS), DAY)
    figures, tags = {"revenue": 101e6}, {"revenue": "SalesRevenueNet"}
    found = list(witnesses.faults(figures, tags, ["revenue", "gross_profit", "sga"], END, "quarterly"))
    assert [fault.identity for fault in found] == ["filed", "null"]


def test_a_quarter_is_what_the_year_to_date_of_its_filing_leaves() -> None:
    june, filed = date(2023, 6, 30), date(2023, 8, 1)
    rows = [
        FiledRow("Revenues", START, END, DAY, "1", 100e6),
        FiledRow("Revenues", START, june, filed, "2", 210e6),
        FiledRow("Revenues", date(2023, 4, 1), june, filed, "2", 110e6),
    ]
    tags = {"revenue": "Revenues"}
    assert list(Witnesses(AsFiled(rows), filed).quarters(tags, ["revenue"], june)) == []
    rows[2] = rows[2]._replace(value=150e6)
    assert [one.identity for one in Witnesses(AsFiled(rows), filed).quarters(tags, ["revenue"], june)] == ["quarters"]
    before = rows[0]._replace(start=date(2022, 1, 1), end=date(2022, 6, 30), value=190e6)
    again = before._replace(filed=filed, accession="2", value=150e6)
    recast = Witnesses(AsFiled([*rows, before, again]), filed)
    assert list(recast.quarters(tags, ["revenue"], june)) == []  # the year to date is of another basis


def test_what_is_filed_twice_under_one_concept_is_comparable() -> None:
    year_before = date(2022, 3, 31)
    rows = [
        FiledRow("Revenues", START, END, DAY, "1", 100e6),
        FiledRow("SalesRevenueNet", date(2022, 1, 1), year_before, date(2022, 5, 1), "0", 90e6),
        FiledRow("Revenues", date(2022, 1, 1), year_before, DAY, "1", 90e6),
    ]
    values = {END: ({"revenue": 100e6}, {"revenue": "Revenues"})}
    values[year_before] = {"revenue": 90e6}, {"revenue": "SalesRevenueNet"}

    class Source:
        figures = staticmethod(lambda end, kind: values[end][0])
        tags = staticmethod(lambda end, kind: values[end][1])

    def found(rows: list[FiledRow]) -> list[str]:
        witnesses = Witnesses(AsFiled(rows), DAY)
        return [one.identity for one in witnesses.comparable(Source, ["revenue"], END, year_before)]  # type: ignore[arg-type]

    assert found(rows) == ["null"]
    assert found(rows[:2]) == []
