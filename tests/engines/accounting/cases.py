"""Two quarters of a company, a year apart, with figures that can be checked by hand; and rows of them."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from finskillbench.engines.accounting.periods import Duration
from finskillbench.engines.accounting.statements import Row, Statement

SYMBOL = "FIR"
QUARTER, YEAR_AGO, BEFORE = date(2024, 3, 30), date(2023, 4, 1), date(2023, 12, 30)
STARTS = {QUARTER: date(2023, 12, 31), YEAR_AGO: date(2023, 1, 1), BEFORE: date(2023, 10, 1)}
INSTANTS = frozenset(
    {
        "total_assets",
        "total_liabilities",
        "stockholders_equity",
        "current_assets",
        "current_liabilities",
        "receivables",
        "ppe_net",
        "long_term_debt",
    }
)
CURRENT: Mapping[str, float] = {
    "revenue": 1000.0,
    "cost_of_revenue": 600.0,
    "gross_profit": 400.0,
    "operating_income": 150.0,
    "net_income": 100.0,
    "sga": 200.0,
    "rnd": 30.0,
    "depreciation_amortization": 50.0,
    "interest_expense": 10.0,
    "income_tax": 35.0,
    "operating_cash_flow": 120.0,
    "eps_diluted": 1.25,
    "diluted_shares": 80.0,
    "total_assets": 4000.0,
    "total_liabilities": 2200.0,
    "stockholders_equity": 1800.0,
    "current_assets": 1500.0,
    "current_liabilities": 1000.0,
    "receivables": 300.0,
    "ppe_net": 1700.0,
    "long_term_debt": 800.0,
}
PRIOR: Mapping[str, float] = {
    "revenue": 800.0,
    "cost_of_revenue": 500.0,
    "gross_profit": 300.0,
    "operating_income": 130.0,
    "net_income": 60.0,
    "sga": 150.0,
    "rnd": 40.0,
    "depreciation_amortization": 40.0,
    "interest_expense": 12.0,
    "income_tax": 20.0,
    "operating_cash_flow": 50.0,
    "eps_diluted": 0.73,
    "diluted_shares": 82.0,
    "total_assets": 3600.0,
    "total_liabilities": 2000.0,
    "stockholders_equity": 1600.0,
    "current_assets": 1200.0,
    "current_liabilities": 1000.0,
    "receivables": 200.0,
    "ppe_net": 1560.0,
    "long_term_debt": 900.0,
}


def statement(values: Mapping[str, float] = CURRENT, end: date = QUARTER, **changes: float | None) -> Statement:
    """A quarter's statement; a metric changed to None is left out."""
    merged = {**values, **changes}
    known = {name: value for name, value in merged.items() if value is not None}
    return Statement(SYMBOL, end, Duration.QUARTERLY, known)


def prior(**changes: float | None) -> Statement:
    """The statement of the same quarter a year before."""
    return statement(PRIOR, YEAR_AGO, **changes)


def fact(metric: str, value: float, end: date = QUARTER, **changes: Any) -> dict[str, Any]:
    """A row as episodes hold it; a flow of the quarter, or an instant, unless `start` says otherwise."""
    start = None if metric in INSTANTS else STARTS[end].isoformat() if end in STARTS else None
    row = {
        "metric": metric,
        "start": start,
        "end": end.isoformat(),
        "value": value,
        "filed": "2024-05-03",
        "accession": "0000000001-24-000001",
        "derived": False,
    }
    row |= changes
    return {**row, "duration": "instant" if row["start"] is None else row.get("duration", "quarterly")}


def facts(values: Mapping[str, float] = CURRENT, end: date = QUARTER) -> list[Row]:
    """Rows of all figures of a quarter."""
    return [fact(metric, value, end) for metric, value in values.items()]


def segment(name: str, value: float, end: date = QUARTER, axis: str = "product_segment", **changes: Any) -> Row:
    """A row of revenue by segment."""
    return {
        "axis": axis,
        "segment": name,
        "start": STARTS[end].isoformat(),
        "end": end.isoformat(),
        "duration": "quarterly",
        "value": value,
        "filed": "2024-05-03",
        "accession": "0000000001-24-000001",
        "derived": False,
        **changes,
    }
