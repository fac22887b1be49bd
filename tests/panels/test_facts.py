"""The facts panel: what is new when, which tag speaks for a metric, and quarters that nobody reported."""

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from finskillbench.engines.accounting.periods import Duration
from finskillbench.panels.filings.facts import (
    PANEL_SCHEMA,
    PERIODIC_FORMS,
    FactsPanel,
    build_facts,
    classify,
)
from finskillbench.panels.filings.periodic import FILINGS_SCHEMA, build_filings
from finskillbench.sources.edgar.companyfacts import FACTS_SCHEMA, CompanyFacts, parse_companyfacts
from finskillbench.sources.edgar.metrics import CANONICAL, METRICS
from finskillbench.sources.edgar.submissions import FILINGS_SCHEMA as SUBMISSIONS_SCHEMA
from finskillbench.sources.edgar.submissions import Submissions

YEAR = ("2023-01-01", "2023-12-31")
NINE = ("2023-01-01", "2023-09-30")
HALF = ("2023-01-01", "2023-06-30")
FIRST = ("2023-01-01", "2023-03-31")
SECOND = ("2023-04-01", "2023-06-30")
FOURTH = ("2023-10-01", "2023-12-31")

Fact = tuple[str, tuple[str | None, str], float, str]
"""Tag, period, value, day of filing; the accession follows from the day."""


def rows(facts: Iterable[Fact], *, unit: str = "USD", form: str = "10-Q") -> pl.DataFrame:
    records = []
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


def as_of(frame: pl.DataFrame, day: date) -> pl.DataFrame:
    return frame.filter(pl.col("filed") <= day).group_by("symbol", "metric", "start", "end").agg(pl.all().last())


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


def test_a_repeated_comparative_is_no_new_row_and_a_restatement_is() -> None:
    frame = panel(
        rows(
            [
                ("Revenues", FIRST, 100, "2023-05-01"),
                ("Revenues", FIRST, 100, "2024-05-01"),
                ("Revenues", FIRST, 90, "2024-06-01"),
                ("Revenues", FIRST, 90, "2025-05-01"),
            ]
        )
    ).frame
    assert versions(frame, "revenue", FIRST) == [(100, "2023-05-01", False), (90, "2024-06-01", False)]


def test_the_first_alias_wins_within_a_filing() -> None:
    contract = "RevenueFromContractWithCustomerExcludingAssessedTax"
    frame = panel(rows([(contract, FIRST, 80, "2023-05-01"), ("Revenues", FIRST, 100, "2023-05-01")])).frame
    assert versions(frame, "revenue", FIRST) == [(100, "2023-05-01", False)]
    assert frame["tag"].to_list() == ["Revenues"]


def test_a_change_of_tags_carries_the_series_on() -> None:
    contract = "RevenueFromContractWithCustomerExcludingAssessedTax"
    frame = panel(
        rows(
            [
                ("SalesRevenueNet", FIRST, 100, "2023-05-01"),
                (contract, FIRST, 97, "2024-05-01"),
                (contract, ("2024-01-01", "2024-03-31"), 110, "2024-05-01"),
            ]
        )
    ).frame
    assert versions(frame, "revenue", FIRST) == [(100, "2023-05-01", False), (97, "2024-05-01", False)]


def test_a_lesser_alias_does_not_restate_a_better_one() -> None:
    frame = panel(
        rows(
            [
                ("NetIncomeLoss", FIRST, 100, "2023-05-01"),
                ("ProfitLoss", FIRST, 103, "2024-05-01"),
                ("Revenues", FIRST, 900, "2023-05-01"),
                ("SalesRevenueNet", FIRST, 700, "2024-05-01"),
                ("Revenues", ("2024-01-01", "2024-03-31"), 950, "2024-05-01"),
            ]
        )
    ).frame
    assert versions(frame, "net_income", FIRST) == [(100, "2023-05-01", False)]
    assert versions(frame, "revenue", FIRST) == [(900, "2023-05-01", False)]


def test_a_part_is_not_taken_for_the_total() -> None:
    frame = panel(
        rows(
            [
                ("DepreciationDepletionAndAmortization", FIRST, 20, "2023-05-01"),
                ("DepreciationAndAmortization", FIRST, 90, "2023-05-01"),
                ("CostOfGoodsSold", FIRST, 30, "2023-05-01"),
                ("CostOfServices", FIRST, 40, "2023-05-01"),
            ]
        )
    ).frame
    assert versions(frame, "depreciation_amortization", FIRST) == [(90, "2023-05-01", False)]
    assert versions(frame, "cost_of_revenue", FIRST) == []


def test_quarters_follow_from_the_year_to_date() -> None:
    cash = "NetCashProvidedByUsedInOperatingActivities"
    frame = panel(
        rows(
            [
                (cash, FIRST, 10, "2023-05-01"),
                (cash, HALF, 25, "2023-08-01"),
                (cash, NINE, 45, "2023-11-01"),
                (cash, YEAR, 70, "2024-02-20"),
            ]
        )
    ).frame
    assert versions(frame, "operating_cash_flow", SECOND) == [(15, "2023-08-01", True)]
    assert versions(frame, "operating_cash_flow", ("2023-07-01", "2023-09-30")) == [(20, "2023-11-01", True)]
    assert versions(frame, "operating_cash_flow", FOURTH) == [(25, "2024-02-20", True)]
    fourth = frame.row(by_predicate=pl.col("start") == date(2023, 10, 1), named=True)
    assert fourth["parents"] == (
        "0000000001-24-022000 operating_cash_flow 2023-01-01..2023-12-31 - "
        "0000000001-23-110100 operating_cash_flow 2023-01-01..2023-09-30"
    )
    assert (fourth["duration"], fourth["tag"], fourth["accession"]) == ("quarterly", "", "0000000001-24-022000")


def test_a_derived_row_is_made_again_once_both_parents_are_restated() -> None:
    frame = panel(
        rows(
            [
                ("NetIncomeLoss", NINE, 45, "2023-11-01"),
                ("NetIncomeLoss", YEAR, 70, "2024-02-20"),
                ("NetIncomeLoss", NINE, 40, "2024-11-01"),
                ("NetIncomeLoss", YEAR, 62, "2025-02-20"),
            ]
        )
    ).frame
    assert versions(frame, "net_income", FOURTH) == [
        (25, "2024-02-20", True),
        (22, "2025-02-20", True),
    ]


def test_a_reported_quarter_beats_a_derived_one() -> None:
    frame = panel(
        rows(
            [
                ("NetIncomeLoss", NINE, 45, "2023-11-01"),
                ("NetIncomeLoss", YEAR, 70, "2024-02-20"),
                ("NetIncomeLoss", FOURTH, 24, "2024-06-01"),
                ("NetIncomeLoss", NINE, 40, "2024-11-01"),
            ]
        )
    ).frame
    assert versions(frame, "net_income", FOURTH) == [(25, "2024-02-20", True), (24, "2024-06-01", False)]


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


def test_a_figure_repeated_under_a_better_tag_counts_under_it_from_then_on() -> None:
    """TXN's nine months of 2009 were first `ProfitLoss`, its year `NetIncomeLoss`."""
    frame = panel(
        rows(
            [
                ("ProfitLoss", NINE, 45, "2023-11-01"),
                ("NetIncomeLoss", YEAR, 70, "2024-02-20"),
                ("NetIncomeLoss", NINE, 45, "2024-11-01"),
                ("NetIncomeLossAvailableToCommonStockholdersBasic", NINE, 44, "2024-11-01"),
            ]
        )
    ).frame
    assert versions(frame, "net_income", NINE) == [(45, "2023-11-01", False)]
    assert versions(frame, "net_income", FOURTH) == [(25, "2024-11-01", True)]
    assert frame.filter("derived")["parents"].item() == (
        "0000000001-24-022000 net_income 2023-01-01..2023-12-31 - "
        "0000000001-24-110100 net_income 2023-01-01..2023-09-30"
    )


def test_a_repetition_under_a_better_tag_is_no_restatement_of_a_parent() -> None:
    frame = panel(
        rows(
            [
                ("ProfitLoss", NINE, 45, "2023-11-01"),
                ("ProfitLoss", YEAR, 70, "2024-02-20"),
                ("NetIncomeLoss", NINE, 45, "2024-11-01"),
                ("NetIncomeLoss", YEAR, 62, "2025-02-20"),
            ]
        )
    ).frame
    assert versions(frame, "net_income", FOURTH) == [(25, "2024-02-20", True)]


def test_no_difference_is_made_of_a_quarter_that_is_reported_from_another_day() -> None:
    """LMT tells its quarters once by the calendar and once by its weeks."""
    frame = panel(
        rows(
            [
                ("Revenues", HALF, 25, "2023-08-01"),
                ("Revenues", SECOND, 15, "2023-08-01"),
                ("Revenues", ("2023-01-01", "2023-03-26"), 9, "2024-02-20"),
            ]
        )
    ).frame
    assert frame.filter("derived").is_empty()


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


def test_identities_fill_what_a_filing_does_not_state() -> None:
    at = (None, "2023-03-31")
    frame = panel(
        rows(
            [
                ("Revenues", FIRST, 100, "2023-05-01"),
                ("CostOfRevenue", FIRST, 60, "2023-05-01"),
                ("Depreciation", FIRST, 8, "2023-05-01"),
                ("AmortizationOfIntangibleAssets", FIRST, 2, "2023-05-01"),
                ("Assets", at, 500, "2023-05-01"),
                ("StockholdersEquity", at, 200, "2023-05-01"),
                ("MinorityInterest", at, 20, "2023-05-01"),
                ("Liabilities", at, 280, "2024-05-01"),
            ]
        )
    ).frame
    assert versions(frame, "gross_profit", FIRST) == [(40, "2023-05-01", True)]
    assert versions(frame, "depreciation_amortization", FIRST) == [(10, "2023-05-01", True)]
    assert versions(frame, "total_liabilities", at) == [(280, "2023-05-01", True)]
    assert not set(frame["metric"]) - set(CANONICAL)


def test_equity_with_minority_interest_leaves_none_to_subtract() -> None:
    at = (None, "2023-03-31")
    equity = "StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest"
    facts = [("Assets", at, 500, "2023-05-01"), (equity, at, 220, "2023-05-01")]
    frame = panel(rows([*facts, ("MinorityInterest", at, 20, "2023-05-01")])).frame
    assert versions(frame, "total_liabilities", at) == [(280, "2023-05-01", True)]


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


def test_figures_in_thousands_are_left_out_by_name() -> None:
    quarters = [FIRST, SECOND, ("2023-07-01", "2023-09-30"), FOURTH]
    good = rows([("NetIncomeLoss", p, 100e6, f"2024-0{i + 1}-01") for i, p in enumerate(quarters)])
    late = rows([("NetIncomeLoss", FIRST, 100e3, "2024-08-01")])
    built = panel(good, late)
    assert versions(built.frame, "net_income", FIRST) == [(100e6, "2024-01-01", False)]
    assert built.notes == (
        "ONE: 1 figures of NetIncomeLoss in 0000000001-24-080100 are in thousands or millions: left out.",
    )

    shares = "WeightedAverageNumberOfDilutedSharesOutstanding"
    per_share = rows([("EarningsPerShareDiluted", FIRST, 2, "2023-05-01")], unit="USD/shares")
    in_millions = panel(
        rows([("NetIncomeLoss", FIRST, 100e6, "2023-05-01")]),
        per_share,
        rows([(shares, FIRST, 50, "2023-05-01")], unit="shares"),
    )
    assert set(in_millions.frame["metric"]) == {"net_income", "eps_diluted"}
    assert f"figures of {shares} in 0000000001-23-050100 are in thousands or millions" in in_millions.notes[0]
    dollars = panel(
        rows([("NetIncomeLoss", FIRST, 100e3, "2023-05-01"), ("Revenues", FIRST, 900e3, "2023-05-01")]),
        per_share,
        rows([(shares, FIRST, 50e6, "2023-05-01")], unit="shares"),
    )
    assert set(dollars.frame["metric"]) == {"diluted_shares", "eps_diluted"}


SHARES = "WeightedAverageNumberOfDilutedSharesOutstanding"
THIRD = ("2023-07-01", "2023-09-30")


@pytest.mark.parametrize("count", [1_020.0, 1_020e3])
def test_shares_out_of_scale_are_told_by_those_known_before(count: float) -> None:
    """Of other periods; the whole filing falls, and what fell is no measure of what follows."""
    before = rows([(SHARES, FIRST, 1_000e6, "2023-05-01")], unit="shares")
    scaled = rows([(SHARES, SECOND, count, "2023-08-01"), (SHARES, HALF, 1_010e6, "2023-08-01")], unit="shares")
    again = rows([(SHARES, THIRD, count, "2023-11-01")], unit="shares")
    right = rows([(SHARES, FOURTH, 1_030e6, "2024-02-01")], unit="shares")
    built = panel(before, scaled, again, right)
    assert built.frame["value"].to_list() == [1_000e6, 1_030e6]
    assert built.notes == (
        f"ONE: 2 figures of {SHARES} in 0000000001-23-080100 are in thousands or millions: left out.",
        f"ONE: 1 figures of {SHARES} in 0000000001-23-110100 are in thousands or millions: left out.",
    )


def test_the_scale_of_shares_does_not_look_ahead() -> None:
    """Figures that only later filings show to be out of scale stand, whatever comes after them."""
    first = rows([(SHARES, FIRST, 1_000e3, "2023-05-01"), (SHARES, SECOND, 1_000e3, "2023-05-01")], unit="shares")
    later = rows([(SHARES, p, 1_000e6, "2023-08-01") for p in (FIRST, HALF)], unit="shares")
    fallen = rows([(SHARES, THIRD, 1_000e3, "2023-11-01")], unit="shares")
    whole = panel(first, later, fallen).frame
    for day, known in ((date(2023, 5, 1), (first,)), (date(2023, 8, 1), (first, later))):
        assert whole.filter(pl.col("filed") <= day).equals(panel(*known).frame)
    assert versions(whole, "diluted_shares", FIRST) == [(1e6, "2023-05-01", False), (1e9, "2023-08-01", False)]


def test_a_great_reverse_split_is_borne_out_by_earnings_per_share() -> None:
    before = rows([(SHARES, FIRST, 1_000e6, "2023-05-01")], unit="shares")
    after = rows([(SHARES, SECOND, 2e6, "2023-08-01")], unit="shares")
    income = rows([("NetIncomeLoss", SECOND, 10e6, "2023-08-01")])
    per_share = rows([("EarningsPerShareDiluted", SECOND, 5, "2023-08-01")], unit="USD/shares")
    assert versions(panel(before, after, income).frame, "diluted_shares", SECOND) == []
    split = panel(before, after, income, per_share).frame
    assert versions(split, "diluted_shares", SECOND) == [(2e6, "2023-08-01", False)]


def test_a_first_filing_in_thousands_is_told_by_its_income_a_share() -> None:
    first = rows([(SHARES, FIRST, 1.5e6, "2023-05-01"), (SHARES, SECOND, 1.5e6, "2023-05-01")], unit="shares")
    income = rows([("NetIncomeLoss", FIRST, 3_000e6, "2023-05-01")])
    built = panel(first, income)
    assert set(built.frame["metric"]) == {"net_income"}
    assert "2 figures" in built.notes[0]
    dear = rows([("EarningsPerShareDiluted", FIRST, 2_000, "2023-05-01")], unit="USD/shares")
    assert panel(first, income, dear).frame.filter(pl.col("metric") == "diluted_shares").height == 2


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


@pytest.fixture(scope="module")
def real(realdata: Path) -> FactsPanel:
    """Every company of the collection; whole files and filtered ones of one company under two names."""
    paths = sorted((realdata / "companyfacts").rglob("*.json.gz"))
    return build_facts({path.name.partition(".")[0]: parse_companyfacts(path) for path in paths})


APPLE = "CIK0000320193"


@pytest.mark.parametrize(
    ("symbol", "accessions"),
    [
        ("COP", ["0000950123-09-029713", "0001193125-15-276084", "0001193125-16-574165", "0001562762-21-000193"]),
        ("KO", ["0000021344-18-000042", "0000021344-19-000028"]),
        ("T", ["0000732717-10-000074", "0000732717-10-000091"]),
        ("NVDA", ["0001045810-10-000006", "0001045810-11-000046"]),
        ("MRK", ["0001193125-13-084618"]),
        ("AXP", ["0000004962-19-000031"]),
    ],
)
def test_real_shares_in_thousands_or_millions(real: FactsPanel, symbol: str, accessions: list[str]) -> None:
    shares = real.frame.filter((pl.col("symbol") == symbol) & (pl.col("metric") == "diluted_shares"))
    assert shares.filter(pl.col("accession").is_in(accessions)).is_empty()
    for accession in accessions:
        assert any(note.startswith(f"{symbol}: ") and f"{accession} are in thousands" in note for note in real.notes)
    assert shares.height > 40
    assert shares.filter(pl.col("value") < 400e6).is_empty()


def test_real_shares_in_units_stay(real: FactsPanel) -> None:
    """A tag out of scale leaves the cover page of its filing, and the filings around it, alone."""
    apple = real.frame.filter((pl.col("symbol") == APPLE) & (pl.col("accession") == "0001193125-14-157311"))
    assert apple.filter(pl.col("metric") == "shares_outstanding")["value"].to_list() == [861_381_000.0]
    ko = real.frame.filter(pl.col("symbol") == "KO")
    assert versions(ko, "diluted_shares", ("2018-01-01", "2018-12-31")) == [(4_299e6, "2019-02-21", False)]


def test_real_empty_total_assets(real: FactsPanel) -> None:
    assert real.frame.filter((pl.col("metric") == "total_assets") & (pl.col("value") <= 0)).is_empty()
    assert "BAC: 1 figures of Assets in 0000950123-11-018743 are not positive: left out." in real.notes


def test_a_real_filing_has_one_depreciation(real: FactsPanel) -> None:
    """Celadon's two totals, at times 0.4 % apart: the lesser falls in every filing, for quarters and years to date."""
    own = (pl.col("symbol") == "CIK0000865941") & (pl.col("metric") == "depreciation_amortization")
    celadon = real.frame.filter(own)
    reported = celadon.filter(~pl.col("derived"))
    assert reported.height > 20
    assert set(reported["tag"]) == {"DepreciationAmortizationAndAccretionNet"}
    # Of 0001008886-15-000115 (nine months 53,955) less 0001008886-15-000017 (half 33,419), in thousands.
    third = versions(celadon, "depreciation_amortization", ("2015-01-01", "2015-03-31"))
    assert third == [(20_536e3, "2015-05-11", True)]


def test_the_real_panel_holds_together(real: FactsPanel) -> None:
    frame = real.frame
    assert dict(frame.schema) == PANEL_SCHEMA
    key = ["symbol", "metric", "start", "end", "filed"]
    assert not frame.select(key).is_duplicated().any()
    assert frame.sort("symbol", "metric", "end", "start", "filed").equals(frame)
    assert set(frame["form"]) <= set(PERIODIC_FORMS)
    assert set(frame["duration"]) == set(Duration)
    assert frame.filter(pl.col("derived") != (pl.col("parents") != "")).is_empty()
    units = dict(frame.select("metric", "unit").unique().rows())
    assert units == {metric: METRICS[metric].unit for metric in CANONICAL}
    assert frame.filter(pl.col("filed") < pl.col("end")).is_empty()
    # A derived quarter may be confirmed by a reported one of the same value.
    same = [*key[:4], "value", "derived"]
    assert frame.filter(pl.struct(same) == pl.struct(same).shift(1)).is_empty()
    assert any("ASML: 498 figures in EUR" in note for note in real.notes)
    assert any("in 0000063908-24-000072 are in thousands or millions" in note for note in real.notes)


def test_a_derived_row_is_filed_with_the_last_of_its_parents(real: FactsPanel) -> None:
    frame = real.frame
    filed = dict(
        pl.concat([frame.select("symbol", "accession", "filed")])
        .unique(["symbol", "accession"])
        .select(key=pl.concat_str("symbol", pl.lit(" "), "accession"), filed="filed")
        .rows()
    )
    said: dict[tuple[object, ...], list[tuple[date, float]]] = {}
    for *period, day, value in frame.select("symbol", "metric", "start", "end", "filed", "value").iter_rows():
        said.setdefault(tuple(period), []).append((day, value))
    checked = repeated = 0
    for row in frame.filter(pl.col("derived") & (pl.col("duration") == "quarterly")).iter_rows(named=True):
        terms = row["parents"].split(" - ")
        if len(terms) != 2 or any(row["metric"] != term.split()[1] for term in terms):
            continue  # an identity within one filing
        figures = []
        for term in terms:
            accession, metric, period = term.split()
            start, end = map(date.fromisoformat, period.split(".."))
            day = filed[f"{row['symbol']} {accession}"]
            first, current = [known for known in said[row["symbol"], metric, start, end] if known[0] <= day][-1]
            repeated += first != day
            figures.append((day, current, start, end))
        (long_day, long, start, end), (short_day, short, other, earlier) = figures
        assert start == other
        assert row["filed"] == max(long_day, short_day)
        assert (row["start"], row["end"]) == (earlier + timedelta(days=1), end)
        assert row["value"] == pytest.approx(long - short, abs=1e-6)
        checked += 1
    assert checked > 12_000
    assert 20 < repeated < 100  # told once more under the tag of the other parent


def test_restated_figures_show_their_old_value_before_and_their_new_value_after(real: FactsPanel) -> None:
    key = ["symbol", "metric", "start", "end"]
    history = real.frame.group_by(key, maintain_order=True).agg("filed", "value").filter(pl.col("filed").list.len() > 1)
    assert history.height > 5_000
    for row in history.sample(200, seed=1).iter_rows(named=True):
        of = real.frame.filter(
            (pl.col("symbol") == row["symbol"])
            & (pl.col("metric") == row["metric"])
            & pl.col("start").eq_missing(row["start"])
            & (pl.col("end") == row["end"])
        )
        for (before, old), (after, new) in pairwise(zip(row["filed"], row["value"], strict=True)):
            assert before < after
            assert as_of(of, after - timedelta(days=1))["value"].item() == old
            assert as_of(of, after)["value"].item() == new
        assert as_of(of, row["filed"][0] - timedelta(days=1)).is_empty()


def test_mapping_order_does_not_matter() -> None:
    one = CompanyFacts(1, "One", None, rows([("Assets", (None, "2023-03-31"), 1, "2023-05-01")]), (), Path("1"))
    two = CompanyFacts(2, "Two", None, rows([("Assets", (None, "2023-03-31"), 2, "2023-05-01")]), (), Path("2"))
    forward: Mapping[str, CompanyFacts] = {"A": one, "B": two}
    assert build_facts(forward).frame.equals(build_facts(dict(reversed(forward.items()))).frame)
