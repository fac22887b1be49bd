"""The hand-made companies, one rule of reporting each; `test_hand_made` holds the figures that follow."""

from __future__ import annotations

from datetime import date

from tests.domains.fundamental.hand_made import (
    STANDARD,
    TWENTIES,
    Calendar,
    Company,
    Filing,
    Line,
    balance,
    before,
    calendar,
    cash,
    income,
    line,
    note,
    shares,
    since,
    weeks,
)

TOTAL, OTHER = "DepreciationDepletionAndAmortization", "OtherDepreciationAndAmortization"
DEPRECIATION, ADJUSTMENT = "Depreciation", "AdjustmentForAmortization"
INTANGIBLES, PLAIN = "AmortizationOfIntangibleAssets", "DepreciationAndAmortization"
PARENT, WHOLE = "NetIncomeLoss", "ProfitLoss"
COMMON = "NetIncomeLossAvailableToCommonStockholdersBasic"
NET, GOODS = "SalesRevenueNet", "SalesRevenueGoodsNet"
CONTRACTS = "RevenueFromContractWithCustomerExcludingAssessedTax"
REDEEMABLE = "RedeemableNoncontrollingInterestEquity{}CarryingAmount"
TEMPORARY = "TemporaryEquityCarryingAmount{}"
NONE: tuple[Line, ...] = ()
TENFOLD_SINCE = 10
SPLIT_SINCE = 12


def _mezzanine(ticker: str, rule: str, amounts: dict[str, float]) -> Company:
    """A company that states no total of liabilities, and amounts between them and equity."""
    return Company(ticker, rule, {"Liabilities": NONE, **{tag: (balance(amount),) for tag, amount in amounts.items()}})


def _scaled(one: Line) -> Line:
    """A line that grows tenfold at once."""
    true, factor = one.true, {"USD": 10, "shares": 6, "USD/shares": 10 / 6}[one.unit]
    return Line(one.statement, lambda n: round(true(n) * (factor if n >= TENFOLD_SINCE else 1), 2), unit=one.unit)


def _raised(one: Line) -> Line:
    """A line of the balance sheet that an issue of stock raises by 18,000."""
    true = one.true
    return Line(one.statement, lambda n: true(n) + (18_000 if n >= SPLIT_SINCE else 0))


def _restated(tag: str, *, stock: bool = False) -> tuple[Line, ...]:
    """A line whose third and fourth quarters of the third year amendments lower by 10 and 30."""
    one = STANDARD[tag]

    def lower(n: int) -> float:
        return one.true(n) - (40 if n > 11 and stock else {10: 10, 11: 40 if stock else 30}.get(n, 0))

    def amended(filing: Filing) -> bool:
        return filing.amendment or filing.quarter > 11

    return Line(one.statement, one.true, lambda filing: not amended(filing)), Line(one.statement, lower, amended)


def _continuing(one: Line, sold: float) -> tuple[Line, ...]:
    """A line of the income statement that the last 10-K gives without a business that was sold."""
    true = one.true
    return Line("income", true, before(15)), Line("income", lambda n: true(n) - sold, since(15))


_CHANGED = Calendar(TWENTIES.start, (*TWENTIES.ends, date(2024, 3, 31)), (0, 4, 8, 12, 13))
_COMMON_ALONE = {8, 14}


def _tenfold(quarter: int) -> float:
    return 1000 if quarter >= SPLIT_SINCE else 100


def _one(**lines: Line) -> dict[str, tuple[Line, ...]]:
    return {tag: (one,) for tag, one in lines.items()}


COMPANIES = (
    Company("BASE", "an ordinary company"),
    # F13: depreciation and amortisation
    Company(
        "AMRT",
        "a 10-K lowers the total by just its amortisation, a line of its own since; the note rounds it to 100",
        {TOTAL: NONE, OTHER: (cash(100, 3, before(11)), cash(40, 1, since(11))), ADJUSTMENT: (cash(60, 2, since(11)),)},
        {
            (quarter, INTANGIBLES, (n, n + 3)): 300
            for quarter, years in ((11, (0, 4, 8)), (15, (4, 8, 12)))
            for n in years
        },
    ),
    Company(
        "DALO",
        "a 10-Q lowers the total by just its amortisation, a line of its own since",
        {TOTAL: (cash(60, 2, before(9)), cash(40, 1, since(9))), ADJUSTMENT: (cash(20, 1, since(9)),)},
    ),
    Company(
        "DNOT",
        "the line is no more than the depreciation of the note; amortisation is the next line",
        {TOTAL: NONE, OTHER: (cash(40, 1),), DEPRECIATION: (note(40, 1),), ADJUSTMENT: (cash(20),)},
    ),
    Company(
        "TINC",
        "the total is depreciation and amortisation of the notes together",
        {DEPRECIATION: (note(30, 1),), INTANGIBLES: (note(10),)},
    ),
    Company(
        "TADJ",
        "the total is depreciation of the note and an adjustment for amortisation that explains it",
        {DEPRECIATION: (note(30, 1),), ADJUSTMENT: (note(10),)},
    ),
    Company(
        "TWOL",
        "depreciation and amortisation of intangibles are two lines of the cash flow statement, without a total",
        {TOTAL: NONE, DEPRECIATION: (cash(30, 1),), INTANGIBLES: (cash(10),)},
    ),
    Company(
        "TWOA",
        "depreciation and the adjustment for amortisation are two lines of the cash flow statement, without a total",
        {TOTAL: NONE, DEPRECIATION: (cash(30, 1),), ADJUSTMENT: (cash(10),)},
    ),
    # F14: net income is the parent's, before preferred dividends
    Company(
        "PREF",
        "no NetIncomeLoss: the whole profit, what diluted shares have of it, and that after preferred dividends",
        {
            PARENT: NONE,
            WHOLE: (income(115, 2),),
            "NetIncomeLossAttributableToParentDiluted": (income(110, 2),),
            COMMON: (income(102, 2),),
        },
    ),
    Company(
        "NCIP",
        "only the whole profit and what other holders have of it",
        {PARENT: NONE, WHOLE: (income(115, 2),), "NetIncomeLossAttributableToNoncontrollingInterest": (income(5),)},
    ),
    Company(
        "COMP",
        "only what is left to common stock, and the preferred dividends",
        {PARENT: NONE, COMMON: (income(102, 2),), "PreferredStockDividendsIncomeStatementImpact": (income(8),)},
    ),
    Company(
        "SOME",
        "what is left to common stock stands beside net income in some filings",
        {COMMON: (Line("income", line(102, 2), lambda filing: filing.quarter in {7, 9, 10, 15}),)},
    ),
    Company(
        "LEFT",
        "two 10-Qs give only what is left to common stock, and no preferred dividends",
        {
            PARENT: (Line("income", line(110, 2), lambda filing: filing.quarter not in _COMMON_ALONE),),
            COMMON: (Line("income", line(102, 2), lambda filing: filing.quarter in _COMMON_ALONE),),
        },
    ),
    # F15: temporary equity
    _mezzanine("MEZZ", "common stock of a subsidiary that its holders may return", {REDEEMABLE.format("Common"): 300}),
    _mezzanine(
        "RNIP", "preferred stock of a subsidiary that its holders may return", {REDEEMABLE.format("Preferred"): 300}
    ),
    _mezzanine("TEMP", "temporary equity under its plain name", {TEMPORARY.format(""): 300}),
    _mezzanine("RCPS", "convertible preferred stock", {"RedeemableConvertiblePreferredStockCarryingAmount": 300}),
    _mezzanine("PART", "two parts, and no total", {REDEEMABLE.format("Common"): 100, REDEEMABLE.format("Other"): 200}),
    _mezzanine(
        "BOTH",
        "a total beside its parts",
        {
            TEMPORARY.format("IncludingPortionAttributableToNoncontrollingInterests"): 300,
            TEMPORARY.format("AttributableToParent"): 200,
            REDEEMABLE.format(""): 100,
        },
    ),
    Company(
        "LIAB",
        "liabilities are filed, and so is temporary equity",
        {
            **_one(Assets=balance(5300, 40), LiabilitiesAndStockholdersEquity=balance(5300, 40)),
            TEMPORARY.format("AttributableToParent"): (balance(300),),
        },
    ),
    # F16: inner quarters of a segment note
    Company(
        "SEGN",
        "the total year to date, and its quarter in a note from one second quarter on",
        {TOTAL: NONE, PLAIN: (cash(40, 1), note(40, 1, since(9)))},
    ),
    Company(
        "STRY",
        "one filing gives a part of the total, of its quarter, in a segment note",
        {TOTAL: NONE, PLAIN: (cash(40, 1),)},
        {(10, PLAIN, (10, 10)): 30},
    ),
    # F17: comparatives filed again, unchanged, under another tag
    Company(
        "RTAG",
        "another tag of revenue since 2018, the year before repeated under it",
        {"Revenues": NONE, NET: (income(1000, 10, before(12)),), CONTRACTS: (income(1000, 10, since(12)),)},
        calendar=calendar(2015),
    ),
    Company(
        "NTAG",
        "another tag of net income since 2023, the year before repeated under it",
        {WHOLE: (income(110, 2, before(12)),), PARENT: (income(110, 2, since(12)),)},
    ),
    # F18: filings that are in order, and one that is not
    Company(
        "RNDG",
        "a quarter of 58, and 189 of nine months less 130 of six",
        {
            PARENT: (Line("income", lambda n: {8: 64, 9: 66, 10: 58, 11: 62}.get(n, 110 + 2 * n)),),
            **dict.fromkeys(
                ("EarningsPerShareDiluted", "EarningsPerShareBasic"), NONE
            ),  # they would be of other income
        },
        {(quarter, PARENT, (8, last)): value for last, value in ((10, 189), (11, 251)) for quarter in (last, last + 4)},
    ),
    Company(
        "ACQN",
        "an acquisition, paid with five new shares for each old one, that multiplies every line by ten",
        {tag: (_scaled(one),) for tag, one in STANDARD.items()},
    ),
    Company(
        "FACT",
        "ten times the revenue of a quarter, and ten times the assets of its day",
        figures={(14, "Revenues", (14, 14)): 11_400, (14, "Assets", (None, 14)): 55_600},
    ),
    Company("SPLT", "ten shares for one, the year before never given again", _one(**shares(_tenfold, repeats=False))),
    Company(
        "ISSU",
        "nine new shares for each old one, sold for 18,000",
        _one(
            **shares(_tenfold),
            **{
                tag: _raised(STANDARD[tag])
                for tag, one in STANDARD.items()
                if one.statement == "balance" and tag.startswith(("Assets", "Cash", "Stock", "LiabilitiesAnd"))
            },
        ),
    ),
    # F19: precision
    Company(
        "ROUN",
        "annual revenue twice, once rounded to hundreds, and no other line of the income statement that ties with it",
        {
            **dict.fromkeys(("Revenues", "CostOfRevenue", "GrossProfit", "OperatingIncomeLoss"), NONE),
            NET: (income(1000, 10),),
        },
        {(11, GOODS, (8, 11)): 4400, (15, GOODS, (8, 11)): 4400, (15, GOODS, (12, 15)): 4500},
        calendar(2013),
    ),
    Company(
        "RNDN",
        "another total of revenue, greater, with which the income statement of the 10-K does not add up",
        {
            **dict.fromkeys(("Revenues", "GrossProfit"), NONE),
            **_one(SalesRevenueNet=income(1060, 5), CostOfRevenue=income(600, 5), OperatingIncomeLoss=income(210, -3)),
        },
        {(15, GOODS, (12, 15)): 4600},
        calendar(2013),
    ),
    # Restatements and calendars
    Company(
        "AMND",
        "a 10-Q/A and a 10-K/A of one day lower revenue and income; later filings repeat that",
        {
            **{tag: _restated(tag) for tag in ("Revenues", "GrossProfit", "OperatingIncomeLoss", PARENT)},
            **{
                tag: _restated(tag, stock=True)
                for tag in ("Assets", "AssetsCurrent", "StockholdersEquity", "LiabilitiesAndStockholdersEquity")
            },
        },
        amended=(10, 11),
    ),
    Company("FYCH", "the fiscal year ends in March after three months of transition, a 10-KT", calendar=_CHANGED),
    Company(
        "WEEK",
        "quarters of thirteen weeks, one of fourteen, and a year of fifty-three",
        calendar=weeks(date(2020, 2, 2), [13] * 11 + [14] + [13] * 4),
    ),
    Company(
        "DISC",
        "a 10-K gives three years without a business that was sold; its nine months held it",
        {
            tag: _continuing(STANDARD[tag], sold)
            for tag, sold in {
                "Revenues": 200,
                "CostOfRevenue": 120,
                "GrossProfit": 80,
                "SellingGeneralAndAdministrativeExpense": 40,
                "OperatingIncomeLoss": 40,
                "IncomeTaxExpenseBenefit": 8,
            }.items()
        }
        | {"IncomeLossFromDiscontinuedOperationsNetOfTax": (income(32, 0, since(15)),)},
    ),
    Company(
        "DISD",
        "depreciation of nine months, and of a year before, without a business that was sold; six months held it",
        {TOTAL: (cash(40, 1, before(14)), cash(30, 1, since(14)))},
    ),
)
