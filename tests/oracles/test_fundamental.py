"""The fundamental oracle against hand arithmetic, identities of the two scores, and Apple's filings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.oracles import fundamental as oracle

Json = dict[str, Any]

TAGS = {
    "revenue": ("Revenues", "SalesRevenueNet"),
    "cost_of_revenue": ("CostOfGoodsAndServicesSold",),
    "gross_profit": ("GrossProfit",),
    "operating_income": ("OperatingIncomeLoss",),
    "net_income": ("NetIncomeLoss",),
    "sga": ("SellingGeneralAndAdministrativeExpense",),
    "rnd": ("ResearchAndDevelopmentExpense",),
    "depreciation_amortization": ("DepreciationDepletionAndAmortization",),
    "interest_expense": ("InterestExpense",),
    "income_tax": ("IncomeTaxExpenseBenefit",),
    "operating_cash_flow": ("NetCashProvidedByUsedInOperatingActivities",),
    "capex": ("PaymentsToAcquirePropertyPlantAndEquipment",),
    "eps_diluted": ("EarningsPerShareDiluted",),
    "diluted_shares": ("WeightedAverageNumberOfDilutedSharesOutstanding",),
    "total_assets": ("Assets",),
    "total_liabilities": ("Liabilities",),
    "stockholders_equity": ("StockholdersEquity",),
    "minority_interest": ("MinorityInterest",),
    "current_assets": ("AssetsCurrent",),
    "current_liabilities": ("LiabilitiesCurrent",),
    "receivables": ("AccountsReceivableNetCurrent",),
    "inventory": ("InventoryNet",),
    "ppe_net": ("PropertyPlantAndEquipmentNet",),
    "long_term_debt": ("LongTermDebtNoncurrent",),
    "cash": ("CashAndCashEquivalentsAtCarryingValue",),
}
UNITS = {"eps_diluted": "USD/shares", "diluted_shares": "shares"}
SUMS: dict[str, Json] = {
    "gross_profit": {"terms": {"revenue": 1, "cost_of_revenue": -1}},
    "total_liabilities": {
        "terms": {"total_assets": 1, "stockholders_equity": -1, "minority_interest": -1},
        "optional": ("minority_interest",),
    },
}
TABLE = {
    metric: oracle.Concept(
        UNITS.get(metric, "USD"),
        oracle.METRICS.index(metric) >= oracle.METRICS.index("total_assets"),
        tuple(oracle.Alias("us-gaap", tag) for tag in tags),
        additive=metric not in UNITS,
        **SUMS.get(metric, {}),
    )
    for metric, tags in TAGS.items()
}
APPLE_AXES = TABLE | {
    "revenue": oracle.Concept(
        "USD",
        False,
        (
            oracle.Alias("us-gaap", "Revenues"),
            oracle.Alias("us-gaap", "RevenueFromContractWithCustomerExcludingAssessedTax"),
        ),
    )
}


def fact(tag: str, start: str | None, end: str, value: float, filed: str, form: str = "10-Q") -> tuple[str, Json]:
    """One row as the SEC serves it; the accession is made from the day of filing."""
    row = {"end": end, "val": value, "accn": f"0-{filed}", "form": form, "filed": filed}
    return tag, row if start is None else {"start": start, **row}


def company(*facts: tuple[str, Json], unit: str = "USD") -> oracle.Filer:
    """A company of a few facts."""
    tags: Json = {}
    for tag, row in facts:
        tags.setdefault(tag, {"units": {unit: []}})["units"][unit].append(row)
    return oracle.filer({"facts": {"us-gaap": tags}}, TABLE)


def whole(**given: float) -> oracle.Statement:
    """A statement in which every metric is one, but for those given."""
    return {metric: given.get(metric, 1.0) for metric in oracle.METRICS}


@pytest.mark.parametrize(
    ("start", "end", "kind"),
    [
        ("2023-07-02", "2023-09-30", "quarterly"),  # 13 weeks
        ("2023-07-02", "2023-10-07", "quarterly"),  # 14 weeks
        ("2023-05-08", "2023-09-03", "quarterly"),  # 17 weeks, Costco
        ("2023-09-04", "2024-02-18", "half"),  # 24 weeks, Costco
        ("2023-01-01", "2023-06-30", "half"),
        ("2022-08-29", "2023-05-07", "nine_months"),  # 36 weeks, Costco
        ("2022-09-25", "2023-09-30", "annual"),  # 53 weeks
        ("2022-09-25", "2023-09-23", "annual"),  # 52 weeks
        ("2022-01-01", "2022-05-31", "half"),
        ("2022-01-01", "2022-05-15", "other"),  # a transition period of 135 days
        (None, "2022-01-01", "instant"),
    ],
)
def test_classes_of_duration(start: str | None, end: str, kind: str) -> None:
    assert oracle.duration(start, end) == kind


def test_the_quarter_is_a_difference_of_the_versions_of_its_day() -> None:
    cfo = TAGS["operating_cash_flow"][0]
    one = company(
        fact(cfo, "2023-01-01", "2023-03-31", 10.0, "2023-05-01"),
        fact(cfo, "2023-01-01", "2023-06-30", 30.0, "2023-08-01"),
        fact(cfo, "2023-01-01", "2023-06-30", 33.0, "2023-10-01", "10-Q/A"),
        fact(cfo, "2023-01-01", "2023-06-30", 99.0, "2023-09-01", "8-K"),
        fact(cfo, "2023-01-01", "2023-03-31", 11.0, "2024-05-01"),
    )
    assert [
        oracle.flow(one, "operating_cash_flow", "2023-06-30", "quarterly", day)
        for day in ("2023-07-31", "2023-08-01", "2023-10-01", "2024-05-01")
    ] == [None, 20.0, 20.0, 22.0]  # one restated parent of two makes no new difference


def test_a_reported_quarter_beats_the_difference_and_averages_have_none() -> None:
    ni, shares = TAGS["net_income"][0], TAGS["diluted_shares"][0]
    one = company(
        fact(ni, "2023-01-01", "2023-09-30", 60.0, "2023-11-01"),
        fact(ni, "2023-01-01", "2023-12-31", 100.0, "2024-02-01", "10-K"),
        fact(ni, "2023-10-01", "2023-12-31", 41.0, "2024-02-01", "10-K"),
    )
    two = company(
        fact(shares, "2023-01-01", "2023-09-30", 60.0, "2023-11-01"),
        fact(shares, "2023-01-01", "2023-12-31", 61.0, "2024-02-01", "10-K"),
        unit="shares",
    )
    assert oracle.flow(one, "net_income", "2023-12-31", "quarterly", "2024-02-01") == 41.0
    assert oracle.flow(two, "diluted_shares", "2023-12-31", "quarterly", "2024-02-01") is None


def test_aliases_and_fallbacks() -> None:
    one = company(
        fact("SalesRevenueNet", "2023-01-01", "2023-03-31", 7.0, "2023-05-01"),
        fact("Revenues", "2023-01-01", "2023-03-31", 8.0, "2023-05-01"),
        fact("CostOfGoodsAndServicesSold", "2023-01-01", "2023-03-31", 5.0, "2023-05-01"),
        fact("Assets", None, "2023-03-31", 100.0, "2023-05-01"),
        fact("StockholdersEquity", None, "2023-03-31", 40.0, "2023-05-01"),
        fact("MinorityInterest", None, "2023-03-31", 3.0, "2023-05-01"),
    )
    found = oracle.statement(one, "2023-03-31", "quarterly", "2023-05-01")
    assert (found["revenue"], found["gross_profit"], found["total_liabilities"]) == (8.0, 3.0, 57.0)


def test_a_weak_alias_fills_a_gap_and_no_more() -> None:
    weak = (oracle.Alias("us-gaap", "NetIncomeLoss"), oracle.Alias("us-gaap", "ProfitLoss", weak=True))
    table = TABLE | {"net_income": oracle.Concept("USD", False, weak)}
    tags: Json = {}
    for tag, row in (
        fact("ProfitLoss", "2023-01-01", "2023-03-31", 11.0, "2023-05-01"),
        fact("NetIncomeLoss", "2023-01-01", "2023-03-31", 10.0, "2023-06-01"),
        fact("ProfitLoss", "2023-01-01", "2023-03-31", 12.0, "2023-07-01"),
        fact("ProfitLoss", "2023-01-01", "2023-06-30", 30.0, "2023-08-01"),
    ):
        tags.setdefault(tag, {"units": {"USD": []}})["units"]["USD"].append(row)
    one = oracle.filer({"facts": {"us-gaap": tags}}, table)
    quarters = [
        oracle.flow(one, "net_income", "2023-03-31", "quarterly", day)
        for day in ("2023-05-01", "2023-06-01", "2023-07-01")
    ]
    assert quarters == [11.0, 10.0, 10.0]
    assert oracle.flow(one, "net_income", "2023-06-30", "quarterly", "2023-08-01") is None


def test_scores_at_their_ends() -> None:
    better = whole(net_income=2.0, operating_cash_flow=3.0, long_term_debt=0.5, current_assets=2.0)
    better |= {"gross_profit": 2.0 * 1.5, "revenue": 2.0}
    worse = whole(net_income=-1.0, operating_cash_flow=-2.0, long_term_debt=2.0, current_assets=0.5)
    worse |= {"gross_profit": 0.2, "revenue": 0.5, "diluted_shares": 2.0}
    assert list(oracle.piotroski(better, whole()).values()) == [1] * 9
    assert list(oracle.piotroski(worse, whole()).values()) == [0] * 9
    assert oracle.piotroski(whole() | {"current_assets": None}, whole())["delta_current_ratio_positive"] is None


def test_beneish_of_an_unchanged_company() -> None:
    """All indices one and no accruals: the intercept and the sum of seven coefficients."""
    alike = whole(total_assets=4.0)
    expected = -4.84 + 0.92 + 0.528 + 0.404 + 0.892 + 0.115 - 0.172 - 0.327
    assert oracle.beneish(alike, alike) == pytest.approx(expected, rel=1e-12)
    assert oracle.beneish(alike | {"receivables": None}, alike) is None
    assert oracle.beneish(alike, alike | {"sga": 0.0}) is None


def test_subtotals_are_dropped_and_the_rest_must_add_up() -> None:
    products = {"products": 70.0, "services": 30.0, "phones": 50.0, "tablets": 20.0}
    assert oracle.parts(products, 100.0) == {"services": 30.0, "phones": 50.0, "tablets": 20.0}
    assert oracle.parts({"phones": 50.0, "tablets": 20.0}, 100.0) is None
    assert oracle.parts({"all": 100.0}, 100.0) is None


def test_apple_quarter_to_march_2024(realdata: Path) -> None:
    """The episode that the published release labels with six months of cash flow and depreciation."""
    served = oracle.read(realdata / "companyfacts" / "full_2026-07" / "CIK0000320193.json.gz")
    apple = oracle.filer(served, APPLE_AXES)
    found = oracle.normalization(apple, "2024-03-30", "10-Q", "2024-05-03")
    assert found["operating_cash_flow"] == 62_585e6 - 39_895e6
    assert found["ebitda"] == 27_900e6 + 5_684e6 - 2_848e6
    assert found["operating_margin"] == pytest.approx(27_900 / 90_753)
    quality = oracle.earnings_quality(apple, "2024-03-30", "2024-05-03")
    assert quality["accruals_ratio"] == pytest.approx((23_636 - 22_690) / 337_411)
    assert quality["income_quality_ratio"] == pytest.approx(22_690 / 23_636)
    assert oracle.normalization(apple, "2024-03-30", "10-Q", "2024-05-02")["revenue"] is None


def test_apple_segments_of_2023(realdata: Path) -> None:
    path = realdata / "xbrl" / "xbrl" / "aapl" / "10k_2023" / "aapl-20230930_htm.xml.gz"
    found = oracle.instance(path, "2023-11-03", [alias.tag for alias in APPLE_AXES["revenue"].aliases])
    year = ("2022-09-25", "2023-09-30")
    products = oracle.parts(found.revenue[("ProductOrServiceAxis", *year)], 383_285e6)
    business = oracle.parts(found.revenue[("StatementBusinessSegmentsAxis", *year)], 383_285e6)
    assert products is not None
    assert business is not None
    assert len(products) == len(business) == 5
    assert sum(products.values()) == sum(business.values()) == 383_285e6
    assert found.revenue[("ProductOrServiceAxis", *year)]["iphone"] == 200_583e6
