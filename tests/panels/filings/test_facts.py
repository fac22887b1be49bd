"""The facts panel: what is new when, which tag speaks for a metric, and quarters that nobody reported."""

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest

from finskillbench.panels.filings.facts import (
    PANEL_SCHEMA,
    FactsPanel,
    build_facts,
    classify,
)
from finskillbench.panels.filings.periodic import FILINGS_SCHEMA, build_filings
from finskillbench.sources.edgar.companyfacts import FACTS_SCHEMA, CompanyFacts
from finskillbench.sources.edgar.metrics import CANONICAL
from finskillbench.sources.edgar.submissions import FILINGS_SCHEMA as SUBMISSIONS_SCHEMA
from finskillbench.sources.edgar.submissions import Submissions

YEAR = ("2023-01-01", "2023-12-31")
NINE = ("2023-01-01", "2023-09-30")
HALF = ("2023-01-01", "2023-06-30")
FIRST = ("2023-01-01", "2023-03-31")
LAST_HALF = ("2022-01-01", "2022-06-30")
SECOND = ("2023-04-01", "2023-06-30")
THIRD = ("2023-07-01", "2023-09-30")
FOURTH = ("2023-10-01", "2023-12-31")
AT = (None, "2023-03-31")

Fact = tuple[str, tuple[str | None, str], float, str]
"""Tag, period, value, day of filing; the accession follows from the day."""


def rows(facts: Iterable[Fact], *, unit: str = "USD", form: str = "10-Q") -> pl.DataFrame:
    records: list[dict[str, object]] = []
    for tag, (start, end), value, filed in facts:
        taxonomy, _, name = tag.rpartition(":")
        records.append(
            {
                "taxonomy": taxonomy or "us-gaap",
                "tag": name,
                "unit": unit,
                "start": start and date.fromisoformat(start),
                "end": date.fromisoformat(end),
                "value": float(value),
                "accession": f"0000000001-{filed[2:4]}-{filed[5:7]}{filed[8:]}00",
                "fiscal_year": 2023,
                "fiscal_period": "Q1",
                "form": form,
                "filed": date.fromisoformat(filed),
                "frame": None,
            }
        )
    return pl.DataFrame(records, schema=FACTS_SCHEMA)


def panel(*frames: pl.DataFrame) -> FactsPanel:
    return build_facts({"ONE": CompanyFacts(1, "One", None, pl.concat(frames), (), Path("ONE.json"))})


def versions(frame: pl.DataFrame, metric: str, period: tuple[str | None, str]) -> list[tuple[float, str, bool]]:
    """value, filed, derived of a period, by filing date."""
    start, end = (day and date.fromisoformat(day) for day in period)
    found = frame.filter((pl.col("metric") == metric) & pl.col("start").eq_missing(start) & (pl.col("end") == end))
    return [(value, str(filed), derived) for value, filed, derived in found["value", "filed", "derived"].rows()]


@pytest.mark.parametrize(
    ("days", "kind"),
    [
        (None, "instant"),
        (69, "other"),
        (84, "quarterly"),  # 12 weeks
        (91, "quarterly"),
        (119, "quarterly"),  # 17 weeks
        (140, "other"),
        (168, "half"),  # 24 weeks
        (184, "half"),
        (252, "nine_months"),  # 36 weeks
        (274, "nine_months"),
        (364, "annual"),
        (371, "annual"),  # 53 weeks
        (400, "other"),
    ],
)
def test_durations_come_from_the_dates(days: int | None, kind: str) -> None:
    end = date(2023, 12, 30)
    start = None if days is None else end - timedelta(days=days - 1)
    frame = pl.DataFrame({"start": [start], "end": [end]}, schema={"start": pl.Date, "end": pl.Date})
    assert frame.select(classify(pl.col("start"), pl.col("end"))).item() == kind


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
            ("net_income", NINE): [(45, "2023-11-01", False), (45, "2024-11-01", False)],
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
        {("net_income", FOURTH): [(25, "2024-02-20", True)]},
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
    "equity with minority interest leaves none to subtract": (
        [
            ("Assets", AT, 500, "2023-05-01"),
            ("StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest", AT, 220, "2023-05-01"),
            ("MinorityInterest", AT, 20, "2023-05-01"),
        ],
        {("total_liabilities", AT): [(280, "2023-05-01", True)]},
    ),
}


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
    assert panel(rows(facts)).frame.filter("derived")["parents"].item() == (
        "0000000001-24-022000 net_income 2023-01-01..2023-12-31 - "
        "0000000001-24-110100 net_income 2023-01-01..2023-09-30"
    )


def test_figures_under_two_tags_are_not_subtracted_nor_averages_nor_earnings_per_share() -> None:
    frame = panel(
        rows([("SalesRevenueNet", NINE, 45, "2023-11-01"), ("Revenues", YEAR, 70, "2024-02-20")]),
        rows([("EarningsPerShareDiluted", p, 1, "2024-02-20") for p in (NINE, YEAR)], unit="USD/shares"),
        rows(
            [("WeightedAverageNumberOfDilutedSharesOutstanding", p, 9, "2024-02-20") for p in (NINE, YEAR)],
            unit="shares",
        ),
    ).frame
    assert frame.filter("derived").is_empty()
    assert frame.height == 6


def test_a_filing_is_judged_by_all_its_periods_though_another_of_the_day_repeats_them() -> None:
    """HRI amended a report on the day of the next: the cover's count is not that of the balance sheet."""
    cover, sheet = "dei:EntityCommonStockSharesOutstanding", "CommonStockSharesOutstanding"
    first = rows([(cover, (None, "2023-06-30"), 1_015, "2023-07-16")], unit="shares")
    day = rows(
        [(cover, (None, "2023-11-02"), 990, "2023-11-09"), (sheet, (None, "2023-06-30"), 1_000, "2023-11-09")],
        unit="shares",
    )
    later = day.filter(pl.col("taxonomy") == "dei").with_columns(accession=pl.lit("0000000001-23-110999"))
    frame = panel(first, day, later).frame
    assert versions(frame, "shares_outstanding", (None, "2023-06-30")) == [(1_015, "2023-07-16", False)]


def test_other_forms_units_and_kinds_stay_out() -> None:
    built = panel(
        rows([("NetIncomeLoss", FIRST, 100, "2023-05-01")]),
        rows([("NetIncomeLoss", FIRST, 101, "2023-06-01")], form="DEF 14A"),
        rows([("NetIncomeLoss", FIRST, 102, "2023-07-01")], form="8-K"),
        rows([("Revenues", FIRST, 103, "2023-05-01")], unit="EUR"),
        rows([("Assets", FIRST, 104, "2023-05-01")]),
        rows([("WeightedAverageNumberOfDilutedSharesOutstanding", FIRST, 0, "2023-05-01")], unit="shares"),
    )
    assert built.frame["value"].to_list() == [100.0]
    assert built.notes == (
        "ONE: 1 figures in EUR where USD is expected: left out.",
        "ONE: 1 figures of total_assets over the wrong kind of period: left out.",
        "ONE: 1 figures of WeightedAverageNumberOfDilutedSharesOutstanding in 0000000001-23-050100 are not positive: "
        "left out.",
    )


def test_total_assets_are_never_nothing() -> None:
    end = (None, "2023-03-31")
    equity = [("StockholdersEquity", end, 5, "2023-05-01"), ("LongTermDebtNoncurrent", end, 0, "2023-05-01")]
    built = panel(rows([("Assets", end, 0, "2023-05-01"), *equity]))
    assert set(built.frame["metric"]) == {"stockholders_equity", "long_term_debt"}
    assert built.notes == ("ONE: 1 figures of Assets in 0000000001-23-050100 are not positive: left out.",)


def test_a_company_without_usable_facts_is_named() -> None:
    built = panel(rows([("Revenues", FIRST, 1, "2023-05-01")], form="8-K"))
    assert built.frame.is_empty()
    assert dict(built.frame.schema) == PANEL_SCHEMA
    assert "ONE: no usable fact of" in built.notes[0]
    assert build_facts({}).frame.is_empty()


def test_filings_are_listed_and_completed_from_the_facts() -> None:
    frame = panel(
        rows([("Assets", (None, "2023-03-31"), 1, "2023-05-01"), ("Assets", (None, "2022-12-31"), 2, "2023-05-01")]),
        rows([("dei:EntityCommonStockSharesOutstanding", (None, "2023-04-25"), 5, "2023-05-01")], unit="shares"),
    ).frame
    listed = pl.DataFrame(
        [
            ("0000000001-20-000001", "10-K", date(2020, 2, 1), date(2019, 12, 31), None),
            ("0000000001-20-000002", "8-K", date(2020, 2, 2), date(2020, 2, 2), None),
        ],
        schema=SUBMISSIONS_SCHEMA,
        orient="row",
    )
    filer = Submissions(1, "One", ("ONE",), None, listed, (), Path("ONE.json"))
    filings = build_filings({"ONE": filer, "TWO": filer}, frame)
    assert dict(filings.schema) == FILINGS_SCHEMA
    assert filings.rows() == [
        ("ONE", "0000000001-20-000001", "10-K", date(2019, 12, 31), date(2020, 2, 1)),
        ("ONE", "0000000001-23-050100", "10-Q", date(2023, 3, 31), date(2023, 5, 1)),
    ]
    assert build_filings({}, frame).height == 1


def test_mapping_order_does_not_matter() -> None:
    one = CompanyFacts(1, "One", None, rows([("Assets", (None, "2023-03-31"), 1, "2023-05-01")]), (), Path("1"))
    two = CompanyFacts(2, "Two", None, rows([("Assets", (None, "2023-03-31"), 2, "2023-05-01")]), (), Path("2"))
    forward: Mapping[str, CompanyFacts] = {"A": one, "B": two}
    assert build_facts(forward).frame.equals(build_facts(dict(reversed(forward.items()))).frame)
