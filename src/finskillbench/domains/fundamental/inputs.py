"""Inputs and conventions of the fundamental subtasks, and a simple reader of filed facts.

Published episodes refer to a store of facts and carry no conventions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, NotRequired, TypedDict

from finskillbench.domains.base import Released
from finskillbench.engines.accounting.periods import DAYS, YEAR_APART, Duration, earlier
from finskillbench.engines.accounting.statements import Statement

PRECISION = "Give ratios and percentages with at least 6 decimals and amounts in USD, unscaled."
"""Instruction for every condition, because prompts show numbers with three significant figures."""


def _days(span: tuple[int, int]) -> str:
    return f"{span[0]} to {span[1]} days"


CONVENTIONS = {
    "units": "USD as filed (unscaled), eps in USD per share, margins and ratios decimals (0.25 is 25 %), changes of "
    "margins in percentage points, contributions in percent",
    "public": "only figures filed by as_of_date count; for a figure filed more than once, the latest filing by then. "
    "filing_facts and query_xbrl give every version of a figure as filed, by XBRL tag",
    "periods": "by their dates, first and last day counted: "
    + ", ".join(f"{name.value} {_days(span)}" for name, span in DAYS.items())
    + "; balance sheet figures are instants, taken at the end of the period",
    "tags": "each filing has one tag per metric. If several cover the period of the report, it is the one with which "
    "the income statement adds up (revenue - cost_of_revenue = gross_profit, gross_profit - operating_expenses = "
    "operating_income, revenue - cost_of_revenue - sga - rnd = operating_income, or revenue less all costs and "
    "expenses = operating or pretax income); if no tag adds up in one of these ways, the greatest total; a figure "
    "comes before a rounded version of it. net_income is the parent's, before preferred dividends. Two periods "
    "are compared only if both figures have the same tag, as last filed; else the earlier one is unknown",
    "balances": "long_term_debt is due after one year, receivables are trade receivables, net and current, ppe_net is "
    "net of depreciation; a figure that includes more (debt due within the year, other receivables, leases) counts "
    "only in a filing that gives no narrower one",
    "depreciation": "depreciation_amortization is the total of the cash flow statement, never a part of it. No other "
    "depreciation and amortization of the filing may exceed it, and it is not the depreciation outside production. "
    "A tag is a line of that statement if most interim reports so far give it for the year to date alone. If such a "
    "tag also gives a quarter, that quarter comes from a note and does not count. Some totals exclude amortization. "
    "This starts with a filing that does one of three things: it lowers the figure of an earlier period by just its "
    "amortization; its total equals the depreciation of a note without the amortization; or it gives "
    "AdjustmentForAmortization and no depreciation. It ends when a total includes both again. Meanwhile the figure is "
    "total + amortization, null without amortization. In a filing without a total the figure is depreciation + "
    "amortization of intangibles + amortization of software. Of these, depreciation and that of software count only "
    "if such a line, that of intangibles only if interim reports give it. Depreciation and at least one of the two "
    "amortizations must be filed",
    "quarters": "a quarter's flow is the reported one. Where filers report only the year to date, it is the difference "
    "of two figures under one tag that start on the same day and end a quarter apart (a fourth quarter: the year less "
    "its nine months). Both are taken as filed when both were first known, and the difference changes only once both "
    "have been restated. There is no difference in two cases. First, the filing of the longer period restates the same "
    "period of the year before by more than rounding (0.05 %, or one unit of the last place up to 1 %), and the "
    "shorter one was filed earlier: their bases differ. Second, revenue or an expense would be below zero. Per-share "
    "figures and average share counts are never differences: without a reported one they are null",
    "fallbacks": "if not reported: total_liabilities = total_assets - stockholders_equity - minority_interest "
    "(if that is not filed: total_assets - equity including minorities) - redeemable interests and temporary equity "
    "of every kind (a total, else its parts; what is not filed is 0); stockholders_equity = equity including "
    "minorities - minority_interest; gross_profit = revenue - cost_of_revenue, and the other way round; sga = selling "
    "(and marketing) + general and administrative expense. In a filing that gives no net_income: net_income = profit - "
    "the minority share of it (0 if not filed), else income of common stock + preferred dividends",
    "null": "a figure that cannot be computed from known figures is null",
}
"""Conventions in every task; subtasks add definitions of their answers."""
YEAR_BEFORE = f"the quarter that ends {_days(YEAR_APART)} earlier, of several the one nearest to 365"


class FactRow(TypedDict):
    """Figure of one period from the latest filing by the task's date, in USD, USD per share or shares."""

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
    """Revenue of a segment on one axis over one period, USD."""

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
    """Facts filed by the task's date; agents receive them as filed.

    Editions store a reference (`ref` to the panel, the next three fields select rows), which scripts get resolved.
    """

    facts: list[FactRow]
    segments: list[SegmentRow]
    ref: str
    symbol: str
    as_of: str
    since: str


class FundamentalInput(TypedDict):
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
    current_period_end: str
    prior_period_end: str
    form_type: NotRequired[str]
    current_filing_dir: NotRequired[str | None]
    prior_filing_dir: NotRequired[str | None]


def filing_facts(task_input: FundamentalInput) -> tuple[list[FactRow], list[SegmentRow]]:
    """Return the rows of facts and segments of an input; KeyError if absent, as in published inputs."""
    if "filing_facts" not in task_input:
        raise KeyError("filing_facts")
    facts = task_input["filing_facts"]
    return facts.get("facts", []), facts.get("segments", [])


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


def read_statement(rows: Iterable[Row], symbol: str, end: date | None, duration: Duration) -> Statement:
    """Return figures from the last filing under the first tag of each metric; rows as in `query_xbrl`.

    Flows take the requested duration, else any period ending that day, such as the year to date.
    """
    day = str(end)
    by_tag: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["duration"] == duration, row["filed"])):
        if row["end"] == day:
            by_tag.setdefault(row["tag"], []).append(row)
    found = {name: [row for tag in tags for row in by_tag.get(tag, ())[-1:]] for name, tags in _TAGS.items()}
    return Statement(symbol, end, duration, {name: float(those[0]["value"]) for name, those in found.items() if those})


def a_year_before(rows: Iterable[Row], end: date) -> date | None:
    """Return the period end nearest to a year before."""
    ends = {date.fromisoformat(row["end"]) for row in rows if row["start"] is not None}
    return earlier(end, sorted(ends), YEAR_APART)


RELEASED = {
    "normalization": Released(lambda _: ("symbol", "period_end", "xbrl_ref")),
    "earnings_quality": Released(lambda _: ("symbol", "period_end", "xbrl_ref")),
    "driver_decomposition": Released(lambda _: ("symbol", "current_period_end", "prior_period_end", "xbrl_ref")),
}
