"""The definitions that every task of fundamental analysis states, with the limits of the engine."""

from __future__ import annotations

from finskillbench.engines.accounting.periods import DAYS, YEAR_APART

PRECISION = "Give ratios and percentages with at least 6 decimals and amounts in USD, unscaled."
"""Said in every arm: the prompt itself abridges numbers to three significant figures."""


def _days(span: tuple[int, int]) -> str:
    return f"{span[0]} to {span[1]} days"


CONVENTIONS = {
    "units": "USD as filed (unscaled), eps in USD per share, margins and ratios decimals (0.25 is 25 %), changes of "
    "margins in percentage points, contributions in percent",
    "public": "only what was filed by as_of_date counts; of a figure filed more than once the latest filing by then. "
    "filing_facts and query_xbrl give what was filed, by XBRL tag, every version of it",
    "periods": "by their dates, first and last day counted: "
    + ", ".join(f"{name.value} {_days(span)}" for name, span in DAYS.items())
    + "; balance sheet figures are instants, taken at the end of the period",
    "tags": "each filing has one tag per metric. revenue is the total with which the "
    "income statement adds up (revenue - cost_of_revenue = gross_profit, gross_profit - operating_expenses = "
    "operating_income, or revenue less all costs and expenses = operating or pretax income); where nothing of that is "
    "filed, the greatest total. depreciation_amortization is the total of the cash flow statement, never a part of it. "
    "Two periods are compared only where both figures stand under the same tag; else the earlier one is unknown",
    "quarters": "a quarter's flow is the reported one; where filers report only the year to date, it is the difference "
    "of two figures under one tag that start on the same day and end a quarter apart (a fourth quarter: the year less "
    "its nine months), as they stood when both were first known; it is made again only once both have been restated. "
    "There is none where the filing of the longer period restates the same period of the year before by more than "
    "rounding (0.05 %, or one unit of the last place up to 1 %) and the shorter one was filed earlier: they are of two "
    "bases; nor where revenue or an expense would be below zero. Per-share figures and average share counts are never "
    "differences: without a reported one they are null",
    "fallbacks": "where not reported: total_liabilities = total_assets - stockholders_equity - minority_interest - "
    "redeemable interests and temporary equity (what is not filed of these three is 0; minority_interest is 0 where "
    "only equity with it is filed); gross_profit = revenue - cost_of_revenue, and the other way round; sga = selling "
    "(and marketing) + general and administrative expense; depreciation_amortization = depreciation + amortization of "
    "intangibles where both are lines of the cash flow statement alone, and, where a filing lowers the total by just "
    "its amortization, from then on that total + amortization",
    "null": "what cannot be computed from figures that are known is null",
}
"""What every task says, beside the definitions of its own answer."""
YEAR_BEFORE = f"the quarter that ends {_days(YEAR_APART)} earlier, of several the one nearest to 365"
