"""What the second derivation takes for each metric: its own reading of the taxonomy's calculation relations.

The names are those of the us-gaap elements; an element stands before those that the taxonomy adds up to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Concept:
    """How a metric is read.

    tags : elements, `taxonomy:name`, the one that says most first.
    neighbours : those of them that say another thing than the metric and only fill a gap.
    instant : at a day, not over a period. unit : of its figures. summed : whether a year is the sum of its quarters.
    terms : what it is the signed sum of in a filing that does not state it; absent terms of `optional` count as zero,
        and those of `inside` already lie in a neighbour of another term.
    helper : only a term of another metric's sum.
    """

    tags: tuple[str, ...]
    neighbours: frozenset[str] = frozenset()
    instant: bool = False
    unit: str = "USD"
    summed: bool = True
    terms: Mapping[str, int] = field(default_factory=dict[str, int])
    optional: frozenset[str] = frozenset()
    inside: frozenset[str] = frozenset()
    helper: bool = False


def _flow(*tags: str, also: tuple[str, ...] = (), ifrs: str = "", terms: Mapping[str, int] | None = None) -> Concept:
    """A flow in dollars; `also` are its neighbours."""
    named = tuple(f"us-gaap:{tag}" for tag in (*tags, *also)) + ((f"ifrs-full:{ifrs}",) if ifrs else ())
    return Concept(named, frozenset(f"us-gaap:{tag}" for tag in also), terms=terms or {})


def _balance(*tags: str, also: tuple[str, ...] = (), ifrs: tuple[str, ...] = ()) -> Concept:
    """A balance in dollars; of two IFRS elements the second is a neighbour."""
    named = tuple(f"us-gaap:{tag}" for tag in (*tags, *also)) + tuple(f"ifrs-full:{tag}" for tag in ifrs)
    near = (*(f"us-gaap:{tag}" for tag in also), *(f"ifrs-full:{tag}" for tag in ifrs[1:]))
    return Concept(named, frozenset(near), instant=True)


BANK_REVENUE = "us-gaap:RevenuesNetOfInterestExpense"
GROSS_OF_TAX = "us-gaap:RevenueFromContractWithCustomerIncludingAssessedTax"
GOODS_AND_SERVICES = (
    ("us-gaap:SalesRevenueGoodsNet", "us-gaap:SalesRevenueServicesNet"),
    ("us-gaap:CostOfGoodsSold", "us-gaap:CostOfServices"),
)
"""Two parts of one total: with both of them filed, neither is the total."""
GROSS = ("us-gaap:GrossProfit", "ifrs-full:GrossProfit")
EXPENSES, ALL_COSTS = "us-gaap:OperatingExpenses", "us-gaap:CostsAndExpenses"
OPERATING = ("us-gaap:OperatingIncomeLoss", "ifrs-full:ProfitLossFromOperatingActivities")
BEFORE_TAX = (
    "us-gaap:IncomeLossFromContinuingOperationsBeforeIncomeTaxesExtraordinaryItemsNoncontrollingInterest",
    "us-gaap:IncomeLossFromContinuingOperationsBeforeIncomeTaxesMinorityInterestAndIncomeLossFromEquityMethodInvestments",
)
ALL_WORN = "us-gaap:DepreciationDepletionAndAmortization"
WORN, AMORTISED = "us-gaap:Depreciation", "us-gaap:AmortizationOfIntangibleAssets"
ONE_LINE = ("us-gaap:DepreciationAndAmortization", "us-gaap:OtherDepreciationAndAmortization")
"""Elements that the taxonomy defines as a line of the income statement: wholes on the cash flow statement alone."""
CASH = "us-gaap:NetCashProvidedByUsedInOperatingActivities"
TOTAL_ASSETS = ("us-gaap:Assets", "ifrs-full:Assets")

CONCEPTS: Mapping[str, Concept] = {
    "revenue": _flow(
        *("RevenuesNetOfInterestExpense", "Revenues", "RevenueFromContractWithCustomerExcludingAssessedTax"),
        *("RegulatedAndUnregulatedOperatingRevenue", "RealEstateRevenueNet", "HealthCareOrganizationRevenue"),
        *("RevenueFromContractWithCustomerIncludingAssessedTax", "SalesRevenueNet"),
        *("SalesRevenueGoodsNet", "SalesRevenueServicesNet"),
        ifrs="Revenue",
    ),
    "cost_of_revenue": _flow(
        *("CostOfRevenue", "CostOfGoodsAndServicesSold", "CostOfGoodsSold", "CostOfServices"),
        ifrs="CostOfSales",
        terms={"revenue": 1, "gross_profit": -1},
    ),
    "gross_profit": _flow("GrossProfit", ifrs="GrossProfit", terms={"revenue": 1, "cost_of_revenue": -1}),
    "operating_income": _flow("OperatingIncomeLoss", ifrs="ProfitLossFromOperatingActivities"),
    "net_income": Concept(
        (
            "us-gaap:NetIncomeLoss",
            "us-gaap:NetIncomeLossAvailableToCommonStockholdersBasic",
            "us-gaap:ProfitLoss",
            "ifrs-full:ProfitLossAttributableToOwnersOfParent",
            "ifrs-full:ProfitLoss",
        ),
        frozenset(
            {
                "us-gaap:NetIncomeLossAvailableToCommonStockholdersBasic",
                "us-gaap:ProfitLoss",
                "ifrs-full:ProfitLoss",
            }
        ),
    ),
    "sga": _flow(
        "SellingGeneralAndAdministrativeExpense",
        ifrs="SellingGeneralAndAdministrativeExpense",
        terms={"selling": 1, "general": 1},
    ),
    "rnd": _flow(
        *("ResearchAndDevelopmentExpense", "ResearchAndDevelopmentExpenseExcludingAcquiredInProcessCost"),
        also=("ResearchAndDevelopmentExpenseSoftwareExcludingAcquiredInProcessCost",),
        ifrs="ResearchAndDevelopmentExpense",
    ),
    "operating_expenses": _flow("OperatingExpenses"),
    "depreciation_amortization": _flow(
        *("DepreciationDepletionAndAmortization", "DepreciationAmortizationAndAccretionNet"),
        "DepreciationAndAmortization",
        also=("OtherDepreciationAndAmortization",),
        ifrs="DepreciationAndAmortisationExpense",
        terms={"depreciation": 1, "amortization": 1},
    ),
    "interest_expense": Concept(
        (
            "us-gaap:InterestExpense",
            "us-gaap:InterestExpenseNonoperating",
            "us-gaap:InterestAndDebtExpense",
            "us-gaap:InterestExpenseDebt",
            "ifrs-full:FinanceCosts",
        ),
        frozenset({"us-gaap:InterestExpenseDebt", "ifrs-full:FinanceCosts"}),
    ),
    "income_tax": _flow("IncomeTaxExpenseBenefit", ifrs="IncomeTaxExpenseContinuingOperations"),
    "operating_cash_flow": _flow(
        "NetCashProvidedByUsedInOperatingActivities",
        also=("NetCashProvidedByUsedInOperatingActivitiesContinuingOperations",),
        ifrs="CashFlowsFromUsedInOperatingActivities",
    ),
    "investing_cash_flow": _flow(
        "NetCashProvidedByUsedInInvestingActivities", ifrs="CashFlowsFromUsedInInvestingActivities"
    ),
    "financing_cash_flow": _flow(
        "NetCashProvidedByUsedInFinancingActivities", ifrs="CashFlowsFromUsedInFinancingActivities"
    ),
    "cash_change": _flow(
        "CashCashEquivalentsRestrictedCashAndRestrictedCashEquivalentsPeriodIncreaseDecreaseIncludingExchangeRateEffect",
        "CashAndCashEquivalentsPeriodIncreaseDecrease",
        ifrs="IncreaseDecreaseInCashAndCashEquivalents",
    ),
    "exchange_rate_effect": _flow(
        "EffectOfExchangeRateOnCashCashEquivalentsRestrictedCashAndRestrictedCashEquivalents",
        "EffectOfExchangeRateOnCashCashEquivalentsRestrictedCashAndRestrictedCashEquivalents"
        "IncludingDisposalGroupAndDiscontinuedOperations",
        "EffectOfExchangeRateOnCashAndCashEquivalents",
        ifrs="EffectOfExchangeRateChangesOnCashAndCashEquivalents",
    ),
    "capex": _flow(
        *("PaymentsToAcquirePropertyPlantAndEquipment", "PaymentsToAcquireProductiveAssets"),
        also=("PaymentsForCapitalImprovements",),
        ifrs="PurchaseOfPropertyPlantAndEquipmentClassifiedAsInvestingActivities",
    ),
    "eps_diluted": Concept(
        (
            "us-gaap:EarningsPerShareDiluted",
            "us-gaap:EarningsPerShareBasicAndDiluted",
            "ifrs-full:DilutedEarningsLossPerShare",
        ),
        unit="USD/shares",
        summed=False,
    ),
    "diluted_shares": Concept(
        (
            "us-gaap:WeightedAverageNumberOfDilutedSharesOutstanding",
            "us-gaap:WeightedAverageNumberOfShareOutstandingBasicAndDiluted",
            "ifrs-full:AdjustedWeightedAverageShares",
        ),
        unit="shares",
        summed=False,
    ),
    "total_assets": _balance("Assets", ifrs=("Assets",)),
    "total_liabilities": Concept(
        ("us-gaap:Liabilities", "ifrs-full:Liabilities"),
        instant=True,
        terms={
            "total_assets": 1,
            "stockholders_equity": -1,
            "minority_interest": -1,
            "redeemable_interest": -1,
            "temporary_equity": -1,
        },
        optional=frozenset({"minority_interest", "redeemable_interest", "temporary_equity"}),
        inside=frozenset({"minority_interest"}),
    ),
    "stockholders_equity": _balance(
        "StockholdersEquity",
        also=("StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest",),
        ifrs=("EquityAttributableToOwnersOfParent", "Equity"),
    ),
    "minority_interest": _balance("MinorityInterest", ifrs=("NoncontrollingInterests",)),
    "current_assets": _balance("AssetsCurrent", ifrs=("CurrentAssets",)),
    "current_liabilities": _balance("LiabilitiesCurrent", ifrs=("CurrentLiabilities",)),
    "receivables": _balance(
        *("AccountsReceivableNetCurrent", "ReceivablesNetCurrent", "AccountsNotesAndLoansReceivableNetCurrent"),
        also=("AccountsReceivableNet",),
        ifrs=("TradeAndOtherCurrentReceivables",),
    ),
    "inventory": _balance(
        "InventoryNet", "InventoryNetOfAllowancesCustomerAdvancesAndProgressBillings", ifrs=("Inventories",)
    ),
    "ppe_net": _balance(
        "PropertyPlantAndEquipmentNet",
        "PropertyPlantAndEquipmentAndFinanceLeaseRightOfUseAssetAfterAccumulatedDepreciationAndAmortization",
        ifrs=("PropertyPlantAndEquipment",),
    ),
    "long_term_debt": Concept(
        (
            "us-gaap:LongTermDebtNoncurrent",
            "us-gaap:LongTermDebtAndCapitalLeaseObligations",
            "us-gaap:LongTermDebt",
            "ifrs-full:NoncurrentPortionOfNoncurrentBorrowings",
        ),
        frozenset({"us-gaap:LongTermDebt", "ifrs-full:NoncurrentPortionOfNoncurrentBorrowings"}),
        instant=True,
    ),
    "cash": _balance(
        *("CashAndCashEquivalentsAtCarryingValue", "Cash", "CashAndDueFromBanks"),
        also=("CashCashEquivalentsRestrictedCashAndRestrictedCashEquivalents",),
        ifrs=("CashAndCashEquivalents",),
    ),
    "shares_outstanding": Concept(
        ("dei:EntityCommonStockSharesOutstanding", "us-gaap:CommonStockSharesOutstanding"),
        instant=True,
        unit="shares",
    ),
    "depreciation": Concept((WORN,), helper=True),
    "amortization": Concept((AMORTISED,), helper=True),
    "redeemable_interest": Concept(
        ("us-gaap:RedeemableNoncontrollingInterestEquityCarryingAmount",), instant=True, helper=True
    ),
    "temporary_equity": Concept(
        ("us-gaap:TemporaryEquityCarryingAmountAttributableToParent",), instant=True, helper=True
    ),
    "selling": Concept(("us-gaap:SellingAndMarketingExpense", "us-gaap:SellingExpense"), helper=True),
    "general": Concept(("us-gaap:GeneralAndAdministrativeExpense",), helper=True),
}
NOT_NEGATIVE = frozenset(
    {
        *("cost_of_revenue", "sga", "rnd", "depreciation_amortization", "interest_expense", "capex"),
        "operating_expenses",
    }
)
"""Expenses; one below zero has its sign or its element wrong."""
