"""What the facts panel makes of filed figures: which tag speaks for a metric, and quarters that nobody reported."""

from datetime import date

import polars as pl
import pytest
from tests.panels.filings.test_facts import (
    AT,
    FIRST,
    FOURTH,
    HALF,
    LAST_HALF,
    NINE,
    SECOND,
    THIRD,
    YEAR,
    Fact,
    panel,
    rows,
    versions,
)

from finskillbench.sources.edgar.numerals import CANONICAL

CONTRACTS = "RevenueFromContractWithCustomerExcludingAssessedTax"
CASH = "NetCashProvidedByUsedInOperatingActivities"
BEFORE = ("2022-01-01", "2022-12-31")
NEXT_FIRST = ("2024-01-01", "2024-03-31")
Filed = tuple[float, str, bool]
"""Value, day of filing, whether it is derived."""
SAID: dict[str, tuple[list[Fact], dict[tuple[str, tuple[str | None, str]], list[Filed]]]] = {
    "a repeated comparative is no new row and a restatement is": (
        [
            ("Revenues", FIRST, 100, "2023-05-01"),
            ("Revenues", FIRST, 100, "2024-05-01"),
            ("Revenues", FIRST, 90, "2024-06-01"),
            ("Revenues", FIRST, 90, "2025-05-01"),
        ],
        {("revenue", FIRST): [(100, "2023-05-01", False), (90, "2024-06-01", False)]},
    ),
    "the first alias wins within a filing": (
        [(CONTRACTS, FIRST, 80, "2023-05-01"), ("Revenues", FIRST, 100, "2023-05-01")],
        {("revenue", FIRST): [(100, "2023-05-01", False)]},
    ),
    "a change of tags carries the series on": (
        [
            ("SalesRevenueNet", FIRST, 100, "2023-05-01"),
            (CONTRACTS, FIRST, 97, "2024-05-01"),
            (CONTRACTS, NEXT_FIRST, 110, "2024-05-01"),
        ],
        {("revenue", FIRST): [(100, "2023-05-01", False), (97, "2024-05-01", False)]},
    ),
    "a lesser alias does not restate a better one": (
        [
            ("NetIncomeLoss", FIRST, 100, "2023-05-01"),
            ("ProfitLoss", FIRST, 103, "2024-05-01"),
            ("Revenues", FIRST, 900, "2023-05-01"),
            ("SalesRevenueNet", FIRST, 700, "2024-05-01"),
            ("Revenues", NEXT_FIRST, 950, "2024-05-01"),
        ],
        {("net_income", FIRST): [(100, "2023-05-01", False)], ("revenue", FIRST): [(900, "2023-05-01", False)]},
    ),
    "a part is not taken for the total": (
        [
            ("DepreciationDepletionAndAmortization", FIRST, 20, "2023-05-01"),
            ("DepreciationAndAmortization", FIRST, 90, "2023-05-01"),
            ("CostOfGoodsSold", FIRST, 30, "2023-05-01"),
            ("CostOfServices", FIRST, 40, "2023-05-01"),
        ],
        {("depreciation_amortization", FIRST): [(90, "2023-05-01", False)], ("cost_of_revenue", FIRST): []},
    ),
    "revenue is the total that ties with cost and gross profit": (  # Under Armour, 0001336917-13-000011
        [
            ("Revenues", FIRST, 2_000, "2023-05-01"),
            ("SalesRevenueNet", FIRST, 1_790, "2023-05-01"),
            ("SalesRevenueGoodsNet", FIRST, 1_835, "2023-05-01"),
            ("CostOfGoodsSold", FIRST, 956, "2023-05-01"),
            ("GrossProfit", FIRST, 879, "2023-05-01"),
        ],
        {("revenue", FIRST): [(1_835, "2023-05-01", False)]},
    ),
    "revenue is the total that all costs leave operating income of": (
        [
            ("Revenues", FIRST, 90, "2023-05-01"),
            (CONTRACTS, FIRST, 100, "2023-05-01"),
            ("CostsAndExpenses", FIRST, 70, "2023-05-01"),
            ("OperatingIncomeLoss", FIRST, 20, "2023-05-01"),
        ],
        {("revenue", FIRST): [(90, "2023-05-01", False)]},
    ),
    "without a statement to tie with the greatest total counts": (  # BlackRock, 0000950170-25-026584
        [("Revenues", YEAR, 12_794, "2024-02-25"), (CONTRACTS, YEAR, 20_407, "2024-02-25")],
        {("revenue", YEAR): [(20_407, "2024-02-25", False)]},
    ),
    "a filing has one revenue for all its periods": (  # Walmart, 0001193125-12-134679
        [
            ("Revenues", YEAR, 446_950, "2024-02-25"),
            ("SalesRevenueNet", YEAR, 443_854, "2024-02-25"),
            ("SalesRevenueNet", FOURTH, 122_285, "2024-02-25"),
            ("Revenues", NINE, 323_781, "2023-11-01"),
            ("SalesRevenueNet", NINE, 321_569, "2023-11-01"),
        ],
        {("revenue", FOURTH): [(123_169, "2024-02-25", True)]},
    ),
    "depreciation is the cash flow statement's, not the income statement's": (  # Home Depot, 2023
        [
            ("DepreciationDepletionAndAmortization", FIRST, 793, "2023-05-01"),
            ("DepreciationAndAmortization", FIRST, 651, "2023-05-01"),
            ("DepreciationDepletionAndAmortization", HALF, 1_588, "2023-08-01"),
            ("DepreciationAndAmortization", HALF, 1_304, "2023-08-01"),
            ("DepreciationAndAmortization", SECOND, 653, "2023-08-01"),
        ],
        {("depreciation_amortization", SECOND): [(795, "2023-08-01", True)]},
    ),
    "items of the notes are no total of depreciation": (  # Tesla, 2021: the total has a tag of its own
        [
            ("Depreciation", HALF, 885, "2023-08-01"),
            ("Depreciation", SECOND, 461, "2023-08-01"),
            ("Depreciation", YEAR, 1_910, "2024-02-07"),
            ("AmortizationOfIntangibleAssets", YEAR, 51, "2024-02-07"),
        ],
        {("depreciation_amortization", YEAR): [], ("depreciation_amortization", HALF): []},
    ),
    "amortisation taken out of the total is added again": (  # Home Depot since 0000354950-24-000201
        [
            ("DepreciationDepletionAndAmortization", HALF, 1_588, "2023-08-01"),
            ("DepreciationDepletionAndAmortization", HALF, 1_500, "2024-08-01"),
            ("AmortizationOfIntangibleAssets", HALF, 88, "2024-08-01"),
            ("DepreciationDepletionAndAmortization", NEXT_FIRST, 800, "2024-08-01"),
        ],
        {
            ("depreciation_amortization", HALF): [(1_588, "2023-08-01", False), (1_588, "2024-08-01", False)],
            ("depreciation_amortization", NEXT_FIRST): [],
        },
    ),
    "a year on another basis than its nine months leaves no quarter": (  # IBM, 2021
        [
            ("Revenues", BEFORE, 73_620, "2023-02-22"),
            ("Revenues", NINE, 54_093, "2023-11-05"),
            ("Revenues", BEFORE, 55_179, "2024-02-22"),
            ("Revenues", YEAR, 57_350, "2024-02-22"),
        ],
        {("revenue", FOURTH): []},
    ),
    "nine months told again on the year's basis leave one": (
        [
            ("Revenues", BEFORE, 73_620, "2023-02-22"),
            ("Revenues", NINE, 54_093, "2023-11-05"),
            ("Revenues", BEFORE, 55_179, "2024-02-22"),
            ("Revenues", YEAR, 57_350, "2024-02-22"),
            ("Revenues", NINE, 40_656, "2024-10-25"),
        ],
        {("revenue", FOURTH): [(16_694, "2024-10-25", True)]},
    ),
    "rounding recasts no year": (
        [
            ("Revenues", BEFORE, 73_620_000, "2023-02-22"),
            ("Revenues", NINE, 54_093_000, "2023-11-05"),
            ("Revenues", BEFORE, 73_621_000, "2024-02-22"),
            ("Revenues", YEAR, 75_000_000, "2024-02-22"),
        ],
        {("revenue", FOURTH): [(20_907_000, "2024-02-22", True)]},
    ),
    "no expense is negative, filed or subtracted": (
        [
            ("CostOfRevenue", NINE, 60, "2023-11-01"),
            ("CostOfRevenue", YEAR, 55, "2024-02-20"),
            ("InterestExpense", FIRST, -5, "2023-05-01"),
        ],
        {("cost_of_revenue", FOURTH): [], ("interest_expense", FIRST): []},
    ),
    "quarters follow from the year to date": (
        [
            (CASH, FIRST, 10, "2023-05-01"),
            (CASH, HALF, 25, "2023-08-01"),
            (CASH, NINE, 45, "2023-11-01"),
            (CASH, YEAR, 70, "2024-02-20"),
        ],
        {
            ("operating_cash_flow", SECOND): [(15, "2023-08-01", True)],
            ("operating_cash_flow", THIRD): [(20, "2023-11-01", True)],
            ("operating_cash_flow", FOURTH): [(25, "2024-02-20", True)],
        },
    ),
    "a derived row is made again once both parents are restated": (
        [
            ("NetIncomeLoss", NINE, 45, "2023-11-01"),
            ("NetIncomeLoss", YEAR, 70, "2024-02-20"),
            ("NetIncomeLoss", NINE, 40, "2024-11-01"),
            ("NetIncomeLoss", YEAR, 62, "2025-02-20"),
        ],
        {("net_income", FOURTH): [(25, "2024-02-20", True), (22, "2025-02-20", True)]},
    ),
    "a reported quarter beats a derived one": (
        [
            ("NetIncomeLoss", NINE, 45, "2023-11-01"),
            ("NetIncomeLoss", YEAR, 70, "2024-02-20"),
            ("NetIncomeLoss", FOURTH, 24, "2024-06-01"),
            ("NetIncomeLoss", NINE, 40, "2024-11-01"),
        ],
        {("net_income", FOURTH): [(25, "2024-02-20", True), (24, "2024-06-01", False)]},
    ),
    # TXN's nine months of 2009 were first `ProfitLoss`, its year `NetIncomeLoss`.
    "a figure repeated under a better tag counts under it from then on": (
        [
            ("ProfitLoss", NINE, 45, "2023-11-01"),
            ("NetIncomeLoss", YEAR, 70, "2024-02-20"),
            ("NetIncomeLoss", NINE, 45, "2024-11-01"),
            ("NetIncomeLossAvailableToCommonStockholdersBasic", NINE, 44, "2024-11-01"),
        ],
        {
            ("net_income", NINE): [(45, "2023-11-01", True), (45, "2024-11-01", False)],
            ("net_income", FOURTH): [(25, "2024-11-01", True)],
        },
    ),
    "a repetition under a better tag is no restatement of a parent": (
        [
            ("ProfitLoss", NINE, 45, "2023-11-01"),
            ("ProfitLoss", YEAR, 70, "2024-02-20"),
            ("NetIncomeLoss", NINE, 45, "2024-11-01"),
            ("NetIncomeLoss", YEAR, 62, "2025-02-20"),
        ],
        {
            ("net_income", NINE): [(45, "2023-11-01", True), (45, "2024-11-01", False)],
            ("net_income", YEAR): [(70, "2024-02-20", True), (62, "2025-02-20", False)],
            ("net_income", FOURTH): [(25, "2024-02-20", True)],
        },
    ),
    # LMT gives its quarters once by the calendar and once by its weeks.
    "no difference is made of a quarter that is reported from another day": (
        [
            ("Revenues", HALF, 25, "2023-08-01"),
            ("Revenues", SECOND, 15, "2023-08-01"),
            ("Revenues", ("2023-01-01", "2023-03-26"), 9, "2024-02-20"),
        ],
        {("revenue", SECOND): [(15, "2023-08-01", False)], ("revenue", ("2023-03-27", "2023-06-30")): []},
    ),
    "identities fill what a filing does not state": (
        [
            ("Revenues", FIRST, 100, "2023-05-01"),
            ("CostOfRevenue", FIRST, 60, "2023-05-01"),
            ("Depreciation", FIRST, 8, "2023-05-01"),
            ("AmortizationOfIntangibleAssets", FIRST, 2, "2023-05-01"),
            ("Depreciation", LAST_HALF, 15, "2023-05-01"),
            ("AmortizationOfIntangibleAssets", LAST_HALF, 4, "2023-05-01"),
            ("Assets", AT, 500, "2023-05-01"),
            ("StockholdersEquity", AT, 200, "2023-05-01"),
            ("MinorityInterest", AT, 20, "2023-05-01"),
            ("Liabilities", AT, 280, "2024-05-01"),
        ],
        {
            ("gross_profit", FIRST): [(40, "2023-05-01", True)],
            ("depreciation_amortization", FIRST): [(10, "2023-05-01", True)],
            ("depreciation_amortization", LAST_HALF): [(19, "2023-05-01", True)],
            ("total_liabilities", AT): [(280, "2023-05-01", True), (280, "2024-05-01", False)],
        },
    ),
    "equity with minority interest leaves that of the parent": (
        [
            ("Assets", AT, 500, "2023-05-01"),
            ("StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest", AT, 220, "2023-05-01"),
            ("MinorityInterest", AT, 20, "2023-05-01"),
        ],
        {
            ("total_liabilities", AT): [(280, "2023-05-01", True)],
            ("stockholders_equity", AT): [(200, "2023-05-01", True)],
        },
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", SAID)
def test_what_the_panel_makes_of_filed_figures(case: str) -> None:
    facts, expected = SAID[case]
    frame = panel(rows(facts)).frame
    assert {key: versions(frame, *key) for key in expected} == expected
    assert not set(frame["metric"]) - set(CANONICAL)
    derived = [row for found in expected.values() for row in found if row[2]]
    assert frame.filter("derived").height == len(derived)


def test_a_derived_row_names_its_parents_and_the_later_filing() -> None:
    facts, _ = SAID["quarters follow from the year to date"]
    fourth = panel(rows(facts)).frame.row(by_predicate=pl.col("start") == date(2023, 10, 1), named=True)
    assert fourth["parents"] == (
        "0000000001-24-022000 operating_cash_flow 2023-01-01..2023-12-31 - "
        "0000000001-23-110100 operating_cash_flow 2023-01-01..2023-09-30"
    )
    assert (fourth["duration"], fourth["tag"], fourth["accession"]) == ("quarterly", CASH, "0000000001-24-022000")
    facts, _ = SAID["a figure repeated under a better tag counts under it from then on"]
    quarter = panel(rows(facts)).frame.row(by_predicate=pl.col("start") == date(2023, 10, 1), named=True)
    assert quarter["parents"] == (
        "0000000001-24-022000 net_income 2023-01-01..2023-12-31 - "
        "0000000001-24-110100 net_income 2023-01-01..2023-09-30"
    )
