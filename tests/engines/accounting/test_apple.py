"""Apple's quarter to 30 March 2024 from the SEC's own file, against figures read off its filings.

10-Q 0000320193-24-000069 (filed 2024-05-03), and 10-Q 0000320193-24-000006 and 0000320193-23-000064 for the quarter and
the year before; USD millions. Cash flows and depreciation are filed for the year to date only: 62,585 and 5,684 are
those of six months.
"""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from finskillbench.engines.accounting.drivers import drivers
from finskillbench.engines.accounting.periods import QUARTER_APART, YEAR_APART, Duration, earlier
from finskillbench.engines.accounting.quality import beneish, quality_answer
from finskillbench.engines.accounting.statements import CompanyFacts, Row, Statement, company_facts, normalise
from finskillbench.panels.filings.facts import build_facts
from finskillbench.sources.edgar.companyfacts import parse_companyfacts
from finskillbench.sources.edgar.numerals import CANONICAL_TAGS

FILED, QUARTER = date(2024, 5, 3), date(2024, 3, 30)
FILE = "companyfacts/full_2026-07/CIK0000320193.json.gz"
MILLION = 1e6


@pytest.fixture(scope="module")
def rows(realdata: Path) -> Sequence[Row]:
    """Every fact of Apple's, of all filings."""
    return build_facts({"AAPL": parse_companyfacts(realdata / FILE, tags=CANONICAL_TAGS)}).frame.to_dicts()


@pytest.fixture(scope="module")
def book(rows: Sequence[Row]) -> CompanyFacts:
    """What was known on the day of the filing."""
    return company_facts([row for row in rows if row["filed"] <= FILED], "AAPL")


@pytest.fixture(scope="module")
def current(book: CompanyFacts) -> Statement:
    """The quarter."""
    return book.statement(QUARTER, Duration.QUARTERLY)


def test_normalised_figures_are_of_three_months(current: Statement) -> None:
    expected = {
        "revenue": 90_753 * MILLION,
        "operating_income": 27_900 * MILLION,
        "net_income": 23_636 * MILLION,
        "eps_diluted": 1.53,
        "total_assets": 337_411 * MILLION,
        "total_liabilities": 263_217 * MILLION,
        "stockholders_equity": 74_194 * MILLION,
        "operating_cash_flow": (62_585 - 39_895) * MILLION,
        "operating_margin": 27_900 / 90_753,
        "ebitda": (27_900 + 5_684 - 2_848) * MILLION,
    }
    assert normalise(current) == pytest.approx(expected, rel=1e-12)


def test_earnings_quality_against_the_quarter_to_1_april_2023(book: CompanyFacts, current: Statement) -> None:
    end = earlier(QUARTER, book.ends(Duration.QUARTERLY), YEAR_APART)
    assert book.compared(QUARTER, end)[0] == current
    prior = book.compared(QUARTER, end)[1]
    assert prior.end == date(2023, 4, 1)
    assert prior.get("operating_cash_flow") == (62_565 - 34_005) * MILLION
    answer = quality_answer(current, prior)
    assert answer["piotroski_components"] == {
        "roa_positive": 1,
        "cfo_positive": 1,
        "delta_roa_positive": 0,  # 23,636 / 337,411 after 24,160 / 332,160
        "accruals_negative": 0,  # 22,690 of cash for 23,636 of income
        "delta_leverage_negative": 1,  # 91,831 / 337,411 after 97,041 / 332,160
        "delta_current_ratio_positive": 1,  # 128,416 / 123,822 after 112,913 / 120,075
        "no_dilution": 1,  # 15,464,709 thousand after 15,847,050
        "delta_gross_margin_positive": 1,  # 42,271 / 90,753 after 41,976 / 94,836
        "delta_asset_turnover_positive": 0,
    }
    assert answer["piotroski_score"] == 6
    assert answer["accruals_ratio"] == pytest.approx((23_636 - 22_690) / 337_411, rel=1e-12)
    assert answer["income_quality_ratio"] == pytest.approx(22_690 / 23_636, rel=1e-12)
    assert answer["flags"] == []
    assert dict(beneish(current, prior).ratios) == pytest.approx(
        {
            "DSRI": (21_837 / 90_753) / (17_936 / 94_836),
            "GMI": (41_976 / 94_836) / (42_271 / 90_753),
            "AQI": (1 - (128_416 + 43_546) / 337_411) / (1 - (112_913 + 43_398) / 332_160),
            "SGI": 90_753 / 94_836,
            "DEPI": (2_898 / (2_898 + 43_398)) / (2_836 / (2_836 + 43_546)),
            "SGAI": (6_468 / 90_753) / (6_201 / 94_836),
            "TATA": 946 / 337_411,
            "LVGI": ((91_831 + 123_822) / 337_411) / ((97_041 + 120_075) / 332_160),
        },
        rel=1e-12,
    )
    # 1.272271, .950268, .926216, .956947, 1.023760, 1.089985, .002804, .977804: each by its coefficient
    assert answer["beneish_m_score"] == pytest.approx(-2.31635, abs=1e-5)
    assert answer["beneish_flag"] is False


def test_ratios_moved_against_the_christmas_quarter(book: CompanyFacts, current: Statement) -> None:
    end = earlier(QUARTER, book.ends(Duration.QUARTERLY), QUARTER_APART)
    assert end == date(2023, 12, 30)
    answer = drivers(current, book.statement(end, Duration.QUARTERLY), {}, {})
    assert answer["revenue_delta"] == (90_753 - 119_575) * MILLION
    assert {item["driver"]: item["delta_pp"] for item in answer["margin_drivers"]} == pytest.approx(
        {
            "operating_margin": 100 * (27_900 / 90_753 - 40_373 / 119_575),
            "gross_margin": 100 * (42_271 / 90_753 - 54_855 / 119_575),
            "sga_ratio": 100 * (6_468 / 90_753 - 6_786 / 119_575),
            "rnd_ratio": 100 * (7_903 / 90_753 - 7_696 / 119_575),
            "da_ratio": 100 * (2_836 / 90_753 - 2_848 / 119_575),
            "tax_ratio": 100 * (4_422 / 90_753 - 6_407 / 119_575),
        },
        abs=1e-10,
    )


def test_the_fourth_quarter_is_the_year_less_nine_months(rows: Sequence[Row]) -> None:
    book = company_facts([row for row in rows if row["filed"] <= date(2023, 11, 3)], "AAPL")
    year, fourth = (book.statement(date(2023, 9, 30), length) for length in (Duration.ANNUAL, Duration.QUARTERLY))
    assert (year.get("revenue"), year.get("net_income")) == (383_285 * MILLION, 96_995 * MILLION)
    assert (fourth.get("revenue"), fourth.get("net_income")) == (89_498 * MILLION, 22_956 * MILLION)
    assert (fourth.get("eps_diluted"), fourth.get("diluted_shares")) == (None, None)
    assert fourth.get("total_assets") == 352_583 * MILLION


def test_share_counts_of_fourth_quarters_are_those_of_the_years(rows: Sequence[Row]) -> None:
    book = company_facts([row for row in rows if row["filed"] <= date(2023, 11, 3)], "AAPL")
    current, prior = book.compared(date(2023, 9, 30), date(2022, 9, 24))
    assert (current.get("diluted_shares"), prior.get("diluted_shares")) == (15_812_547e3, 16_325_819e3)
    assert current.get("revenue") == 89_498 * MILLION
    signals = quality_answer(current, prior)
    assert signals["piotroski_components"]["no_dilution"] == 1
    assert signals["piotroski_score"] is not None
