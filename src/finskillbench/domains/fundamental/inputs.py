"""What the episodes of fundamental analysis give an agent, one type per subtask.

Published episodes name a store of facts instead of holding them, and state no definitions.

What a reader without a skill makes of filings: the first tag that means the metric, as it stands for the day.

Of a flow it takes the period of the form's own length where that is filed, else whatever ends on the day, so that a
cash flow of the year to date is taken for the quarter's; it adds and subtracts nothing.

How the published release carries the fundamental subtasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, NotRequired, TypedDict

from finskillbench.domains.base import Released
from finskillbench.engines.accounting.periods import YEAR_APART, Duration, earlier
from finskillbench.engines.accounting.statements import Statement


class FactRow(TypedDict):
    """One figure of one period, as the latest filing by the task's date gives it; USD, USD per share or shares."""

    metric: str
    start: str | None
    end: str
    duration: str
    value: float
    unit: str
    form: str
    filed: str
    accession: str
    tag: str
    derived: bool


class SegmentRow(TypedDict):
    """Revenue of one segment of one axis over one period, USD."""

    axis: str
    segment: str
    start: str
    end: str
    duration: str
    value: float
    form: str
    filed: str
    accession: str
    derived: bool


class FilingFacts(TypedDict, total=False):
    """What the company had filed by the task's date.

    An edition holds it by reference: `ref` names the panel, the other three the rows. Scripts are given the rows,
    agents the facts as filed that they come from.
    """

    facts: list[FactRow]
    segments: list[SegmentRow]
    ref: str
    symbol: str
    as_of: str
    since: str


class FundamentalInput(TypedDict):
    """What the inputs of all subtasks share."""

    symbol: str
    filing_facts: NotRequired[FilingFacts]
    conventions: NotRequired[dict[str, str]]
    xbrl_ref: NotRequired[str]
    tools_available: NotRequired[list[str]]


class FilingInput(FundamentalInput):
    """Input of normalization and of earnings quality: the period of one filing."""

    period_end: str
    form_type: str
    filing_dir: NotRequired[str | None]


class QuartersInput(FundamentalInput):
    """Input of driver decomposition: two quarters."""

    current_period_end: str
    prior_period_end: str
    form_type: NotRequired[str]
    current_filing_dir: NotRequired[str | None]
    prior_filing_dir: NotRequired[str | None]


def filing_facts(task_input: FundamentalInput) -> tuple[list[FactRow], list[SegmentRow]]:
    """The rows of facts and of segments of an input; KeyError where it has none, as a published one."""
    if "filing_facts" not in task_input:
        raise KeyError("filing_facts")
    given = task_input["filing_facts"]
    return given.get("facts", []), given.get("segments", [])


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


RELEASED = {
    "normalization": Released(lambda _: ("symbol", "period_end", "xbrl_ref")),
    "earnings_quality": Released(lambda _: ("symbol", "period_end", "xbrl_ref")),
    "driver_decomposition": Released(lambda _: ("symbol", "current_period_end", "prior_period_end", "xbrl_ref")),
}
