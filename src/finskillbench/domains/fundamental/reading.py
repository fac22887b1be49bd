"""What a reader without a skill makes of filings: the first tag that means the metric, as it stands for the day.

Of a flow it takes the period of the form's own length where that is filed, else whatever ends on the day, so that a
cash flow of the year to date is taken for the quarter's; it adds and subtracts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from finskillbench.engines.accounting.periods import YEAR_APART, Duration, earlier
from finskillbench.engines.accounting.statements import Statement

_TAGS: Mapping[str, tuple[str, ...]] = {
    "revenue": ("Revenues", "RevenueFromContractWithCustomerExcludingAssessedTax", "SalesRevenueNet"),
    "cost_of_revenue": ("CostOfRevenue", "CostOfGoodsAndServicesSold", "CostOfGoodsSold"),
    "gross_profit": ("GrossProfit",),
    "operating_income": ("OperatingIncomeLoss",),
    "net_income": ("NetIncomeLoss", "ProfitLoss"),
    "eps_diluted": ("EarningsPerShareDiluted",),
    "diluted_shares": ("WeightedAverageNumberOfDilutedSharesOutstanding",),
    "sga": ("SellingGeneralAndAdministrativeExpense",),
    "rnd": ("ResearchAndDevelopmentExpense",),
    "depreciation_amortization": ("DepreciationDepletionAndAmortization", "DepreciationAndAmortization"),
    "interest_expense": ("InterestExpense",),
    "income_tax": ("IncomeTaxExpenseBenefit",),
    "operating_cash_flow": ("NetCashProvidedByUsedInOperatingActivities",),
    "total_assets": ("Assets",),
    "total_liabilities": ("Liabilities",),
    "stockholders_equity": ("StockholdersEquity",),
    "current_assets": ("AssetsCurrent",),
    "current_liabilities": ("LiabilitiesCurrent",),
    "receivables": ("AccountsReceivableNetCurrent", "ReceivablesNetCurrent"),
    "ppe_net": ("PropertyPlantAndEquipmentNet",),
    "long_term_debt": ("LongTermDebtNoncurrent", "LongTermDebt"),
}

Row = Mapping[str, Any]


def read(rows: Iterable[Row], symbol: str, end: date | None, duration: Duration) -> Statement:
    """The figures of a period as filings state them, the last filed of several; rows as of `query_xbrl`."""
    day = str(end)
    by_tag: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["duration"] == duration, row["filed"])):
        if row["end"] == day:
            by_tag.setdefault(row["tag"], []).append(row)
    found = {metric: [row for tag in tags for row in by_tag.get(tag, ())[-1:]] for metric, tags in _TAGS.items()}
    return Statement(
        symbol, end, duration, {metric: float(those[0]["value"]) for metric, those in found.items() if those}
    )


def a_year_before(rows: Iterable[Row], end: date) -> date | None:
    """The day a year before on which any period ended."""
    ends = {date.fromisoformat(row["end"]) for row in rows if row["start"] is not None}
    return earlier(end, sorted(ends), YEAR_APART)
