"""Figures of filings, by value and accession number: first in the raw file with plain JSON, then in the facts panel.

Every figure was read off the files of realdata/companyfacts by hand. The accession is that of the filing which gave the
figure first; a restated figure stands with both.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from finskillbench.panels.filings.facts import build_facts
from finskillbench.sources.edgar.companyfacts import parse_companyfacts

FILES = {
    "AAPL": "full_2026-07/CIK0000320193.json.gz",
    "MCD": "full_2026-07/CIK0000063908.json.gz",
    "TXN": "full_2026-07/CIK0000097476.json.gz",
    "WMT": "full_2026-07/CIK0000104169.json.gz",
    "NKE": "full_2026-07/CIK0000320187.json.gz",
    "HD": "full_2026-07/CIK0000354950.json.gz",
    "COST": "full_2026-07/CIK0000909832.json.gz",
    "SUNEQ": "full_2026-07/CIK0000945436.json.gz",
    "UAA": "full_2026-07/CIK0001336917.json.gz",
    "MDXG": "full_2026-07/CIK0001376339.json.gz",
    "KHC": "full_2026-07/CIK0001637459.json.gz",
    "HTZ": "full_2026-07/CIK0001657853.json.gz",
    "NKLA": "full_2026-07/CIK0001731289.json.gz",
    "DIS": "full_2026-07/CIK0001744489.json.gz",
    "TSLA": "full_other/CIK0001318605.json.gz",
    "SNOW": "full_other/CIK0001640147.json.gz",
}
NI, CFO, EPS = "NetIncomeLoss", "NetCashProvidedByUsedInOperatingActivities", "EarningsPerShareDiluted"
REVENUE, OI, DA = (
    "RevenueFromContractWithCustomerExcludingAssessedTax",
    "OperatingIncomeLoss",
    "DepreciationDepletionAndAmortization",
)
SHARES, EQUITY = "WeightedAverageNumberOfDilutedSharesOutstanding", "StockholdersEquity"


class Figure(NamedTuple):
    """One reported figure: USD, USD/shares or shares, unscaled; `start` is None for an instant."""

    symbol: str
    metric: str
    tag: str
    start: str | None
    end: str
    value: float
    accession: str
    filed: str


class Derived(NamedTuple):
    """A quarter that was never reported: the longer period minus the shorter of the same start, with both filings."""

    symbol: str
    metric: str
    tag: str
    begin: str
    shorter: tuple[str, float, str]
    longer: tuple[str, float, str]
    value: float
    filed: str


FIGURES = [
    # Apple: a year of 53 weeks to 2023-09-30, and a quarter.
    Figure("AAPL", "revenue", REVENUE, "2022-09-25", "2023-09-30", 383_285e6, "0000320193-23-000106", "2023-11-03"),
    Figure("AAPL", "net_income", NI, "2022-09-25", "2023-09-30", 96_995e6, "0000320193-23-000106", "2023-11-03"),
    Figure("AAPL", "operating_income", OI, "2022-09-25", "2023-09-30", 114_301e6, "0000320193-23-000106", "2023-11-03"),
    Figure(
        "AAPL", "operating_cash_flow", CFO, "2022-09-25", "2023-09-30", 110_543e6, "0000320193-23-000106", "2023-11-03"
    ),
    Figure("AAPL", "eps_diluted", EPS, "2022-09-25", "2023-09-30", 6.13, "0000320193-23-000106", "2023-11-03"),
    Figure("AAPL", "total_assets", "Assets", None, "2023-09-30", 352_583e6, "0000320193-23-000106", "2023-11-03"),
    Figure(
        "AAPL", "total_liabilities", "Liabilities", None, "2023-09-30", 290_437e6, "0000320193-23-000106", "2023-11-03"
    ),
    Figure("AAPL", "stockholders_equity", EQUITY, None, "2023-09-30", 62_146e6, "0000320193-23-000106", "2023-11-03"),
    Figure(
        "AAPL",
        "receivables",
        "AccountsReceivableNetCurrent",
        None,
        "2023-09-30",
        29_508e6,
        "0000320193-23-000106",
        "2023-11-03",
    ),
    Figure("AAPL", "inventory", "InventoryNet", None, "2023-09-30", 6_331e6, "0000320193-23-000106", "2023-11-03"),
    Figure(
        "AAPL",
        "ppe_net",
        "PropertyPlantAndEquipmentNet",
        None,
        "2023-09-30",
        43_715e6,
        "0000320193-23-000106",
        "2023-11-03",
    ),
    Figure(
        "AAPL",
        "capex",
        "PaymentsToAcquirePropertyPlantAndEquipment",
        "2022-09-25",
        "2023-09-30",
        10_959e6,
        "0000320193-23-000106",
        "2023-11-03",
    ),
    Figure(
        "AAPL",
        "rnd",
        "ResearchAndDevelopmentExpense",
        "2022-09-25",
        "2023-09-30",
        29_915e6,
        "0000320193-23-000106",
        "2023-11-03",
    ),
    Figure(
        "AAPL",
        "sga",
        "SellingGeneralAndAdministrativeExpense",
        "2022-09-25",
        "2023-09-30",
        24_932e6,
        "0000320193-23-000106",
        "2023-11-03",
    ),
    Figure(
        "AAPL",
        "income_tax",
        "IncomeTaxExpenseBenefit",
        "2022-09-25",
        "2023-09-30",
        16_741e6,
        "0000320193-23-000106",
        "2023-11-03",
    ),
    Figure("AAPL", "revenue", REVENUE, "2023-12-31", "2024-03-30", 90_753e6, "0000320193-24-000069", "2024-05-03"),
    Figure("AAPL", "operating_income", OI, "2023-12-31", "2024-03-30", 27_900e6, "0000320193-24-000069", "2024-05-03"),
    Figure("AAPL", "net_income", NI, "2023-12-31", "2024-03-30", 23_636e6, "0000320193-24-000069", "2024-05-03"),
    Figure("AAPL", "eps_diluted", EPS, "2023-12-31", "2024-03-30", 1.53, "0000320193-24-000069", "2024-05-03"),
    Figure(
        "AAPL",
        "diluted_shares",
        SHARES,
        "2023-12-31",
        "2024-03-30",
        15_464_709_000,
        "0000320193-24-000069",
        "2024-05-03",
    ),
    Figure(
        "AAPL",
        "cost_of_revenue",
        "CostOfGoodsAndServicesSold",
        "2023-12-31",
        "2024-03-30",
        48_482e6,
        "0000320193-24-000069",
        "2024-05-03",
    ),
    Figure(
        "AAPL",
        "long_term_debt",
        "LongTermDebtNoncurrent",
        None,
        "2024-03-30",
        91_831e6,
        "0000320193-24-000069",
        "2024-05-03",
    ),
    Figure(
        "AAPL", "current_assets", "AssetsCurrent", None, "2024-03-30", 128_416e6, "0000320193-24-000069", "2024-05-03"
    ),
    # Walmart: total revenues hold membership income, revenue from contracts does not (642,637 M).
    Figure("WMT", "revenue", "Revenues", "2023-02-01", "2024-01-31", 648_125e6, "0000104169-24-000056", "2024-03-15"),
    Figure("WMT", "net_income", NI, "2023-02-01", "2024-01-31", 15_511e6, "0000104169-24-000056", "2024-03-15"),
    Figure("WMT", "revenue", "Revenues", "2023-08-01", "2023-10-31", 160_804e6, "0000104169-23-000132", "2023-11-30"),
    Figure(
        "WMT",
        "cost_of_revenue",
        "CostOfRevenue",
        "2023-02-01",
        "2024-01-31",
        490_142e6,
        "0000104169-24-000056",
        "2024-03-15",
    ),
    # McDonald's: negative equity; cash flow of the quarter itself in the 10-Q.
    Figure("MCD", "revenue", "Revenues", "2023-01-01", "2023-12-31", 25_493.7e6, "0000063908-24-000072", "2024-02-22"),
    Figure("MCD", "net_income", NI, "2023-01-01", "2023-12-31", 8_468.8e6, "0000063908-24-000072", "2024-02-22"),
    Figure("MCD", "stockholders_equity", EQUITY, None, "2023-12-31", -4_706.7e6, "0000063908-24-000072", "2024-02-22"),
    Figure(
        "MCD", "operating_cash_flow", CFO, "2019-04-01", "2019-06-30", 1_925.5e6, "0000063908-19-000062", "2019-08-06"
    ),
    # Texas Instruments: the cost of revenue moved from one tag to another in 2023.
    Figure("TXN", "revenue", REVENUE, "2022-01-01", "2022-12-31", 20_028e6, "0000097476-23-000007", "2023-02-03"),
    Figure(
        "TXN", "gross_profit", "GrossProfit", "2022-01-01", "2022-12-31", 13_771e6, "0000097476-23-000007", "2023-02-03"
    ),
    Figure(
        "TXN",
        "cost_of_revenue",
        "CostOfGoodsAndServicesSold",
        "2024-01-01",
        "2024-03-31",
        1_566e6,
        "0000097476-24-000021",
        "2024-04-24",
    ),
    Figure(
        "TXN", "total_liabilities", "Liabilities", None, "2024-03-31", 17_902e6, "0000097476-24-000021", "2024-04-24"
    ),
    Figure("TXN", "net_income", NI, "2024-01-01", "2024-03-31", 1_105e6, "0000097476-24-000021", "2024-04-24"),
    # Nike: a year to the end of May.
    Figure("NKE", "revenue", REVENUE, "2022-06-01", "2023-05-31", 51_217e6, "0000320187-23-000039", "2023-07-20"),
    Figure("NKE", "net_income", NI, "2022-09-01", "2022-11-30", 1_331e6, "0000320187-23-000003", "2023-01-05"),
    Figure("NKE", "eps_diluted", EPS, "2022-06-01", "2023-05-31", 3.23, "0000320187-23-000039", "2023-07-20"),
    # Home Depot: the proxy statement of 2026 gives 17,110 M for the same year (form DEF 14A).
    Figure("HD", "net_income", NI, "2022-01-31", "2023-01-29", 17_105e6, "0000354950-23-000059", "2023-03-15"),
    Figure("HD", "revenue", REVENUE, "2022-01-31", "2023-01-29", 157_403e6, "0000354950-23-000059", "2023-03-15"),
    Figure("HD", "operating_cash_flow", CFO, "2024-01-29", "2024-04-28", 5_497e6, "0000354950-24-000152", "2024-05-21"),
    # Costco: quarters of 12, 12, 12 and 16 or 17 weeks.
    Figure("COST", "revenue", "Revenues", "2022-08-29", "2023-09-03", 242_290e6, "0000909832-23-000042", "2023-10-11"),
    Figure("COST", "net_income", NI, "2023-11-27", "2024-02-18", 1_743e6, "0000909832-24-000017", "2024-03-13"),
    Figure("COST", "total_assets", "Assets", None, "2024-02-18", 66_323e6, "0000909832-24-000017", "2024-03-13"),
    # SunEdison: losses; an 8-K of June 2015 recast revenue to 1,646.7 M, and forms 8-K are not taken.
    Figure(
        "SUNEQ",
        "revenue",
        "SalesRevenueNet",
        "2014-01-01",
        "2014-12-31",
        2_484.4e6,
        "0000945436-15-000049",
        "2015-03-02",
    ),
    Figure("SUNEQ", "net_income", NI, "2014-01-01", "2014-12-31", -1_180.4e6, "0000945436-15-000049", "2015-03-02"),
    Figure("SUNEQ", "eps_diluted", EPS, "2014-01-01", "2014-12-31", -4.40, "0000945436-15-000049", "2015-03-02"),
    # MiMedx: the year 2018 was first filed in March 2020.
    Figure("MDXG", "revenue", REVENUE, "2018-01-01", "2018-12-31", 359.111e6, "0001376339-20-000009", "2020-03-17"),
    Figure("MDXG", "net_income", NI, "2018-01-01", "2018-12-31", -29.979e6, "0001376339-20-000009", "2020-03-17"),
    Figure("HTZ", "revenue", "Revenues", "2020-01-01", "2020-12-31", 5_258e6, "0001657853-21-000006", "2021-02-26"),
    Figure("HTZ", "net_income", NI, "2020-01-01", "2020-12-31", -1_714e6, "0001657853-21-000006", "2021-02-26"),
    # Nikola: gross profit below zero.
    Figure(
        "NKLA",
        "gross_profit",
        "GrossProfit",
        "2022-01-01",
        "2022-12-31",
        -104.757e6,
        "0001731289-23-000013",
        "2023-02-23",
    ),
    Figure(
        "NKLA", "operating_cash_flow", CFO, "2022-01-01", "2022-12-31", -576.706e6, "0001731289-23-000013", "2023-02-23"
    ),
    Figure("DIS", "revenue", "Revenues", "2022-10-02", "2023-09-30", 88_898e6, "0001744489-23-000216", "2023-11-21"),
    Figure("DIS", "net_income", NI, "2022-10-02", "2023-09-30", 2_354e6, "0001744489-23-000216", "2023-11-21"),
    Figure("TSLA", "revenue", "Revenues", "2020-01-01", "2020-12-31", 31_536e6, "0001564590-21-004599", "2021-02-08"),
    Figure("TSLA", "net_income", NI, "2022-07-01", "2022-09-30", 3_292e6, "0000950170-22-019867", "2022-10-24"),
    Figure("TSLA", "eps_diluted", EPS, "2022-07-01", "2022-09-30", 0.95, "0000950170-22-019867", "2022-10-24"),
    Figure("SNOW", "revenue", REVENUE, "2024-02-01", "2025-01-31", 3_626.396e6, "0001640147-25-000052", "2025-03-21"),
    Figure(
        "SNOW", "operating_cash_flow", CFO, "2024-02-01", "2025-01-31", 959.764e6, "0001640147-25-000052", "2025-03-21"
    ),
    Figure(
        "SNOW",
        "depreciation_amortization",
        DA,
        "2024-02-01",
        "2025-01-31",
        182.508e6,
        "0001640147-25-000052",
        "2025-03-21",
    ),
]

RESTATED = [
    # Kraft Heinz found misconduct in procurement and restated 2017 in the 10-K of June 2019.
    (
        Figure("KHC", "net_income", NI, "2017-01-01", "2017-12-30", 10_999e6, "0001637459-18-000015", "2018-02-16"),
        Figure("KHC", "net_income", NI, "2017-01-01", "2017-12-30", 10_941e6, "0001637459-19-000049", "2019-06-07"),
    ),
    (
        Figure("KHC", "total_assets", "Assets", None, "2017-12-30", 120_232e6, "0001637459-18-000015", "2018-02-16"),
        Figure("KHC", "total_assets", "Assets", None, "2017-12-30", 120_092e6, "0001637459-19-000049", "2019-06-07"),
    ),
    # Under Armour revised 2022 in its 10-K of May 2024.
    (
        Figure("UAA", "net_income", NI, "2022-10-01", "2022-12-31", 121.617e6, "0001336917-23-000009", "2023-02-08"),
        Figure("UAA", "net_income", NI, "2022-10-01", "2022-12-31", 113.070e6, "0001336917-24-000073", "2024-05-29"),
    ),
    # New accounting for cash flows, adopted retrospectively: restated twice, 364.368 M and then 366.623 M.
    (
        Figure(
            "UAA",
            "operating_cash_flow",
            CFO,
            "2016-01-01",
            "2016-12-31",
            304.487e6,
            "0001336917-17-000017",
            "2017-02-23",
        ),
        Figure(
            "UAA",
            "operating_cash_flow",
            CFO,
            "2016-01-01",
            "2016-12-31",
            364.368e6,
            "0001336917-18-000009",
            "2018-02-28",
        ),
    ),
    # McDonald's presented technology fees gross from 2020.
    (
        Figure(
            "MCD", "revenue", "Revenues", "2019-04-01", "2019-06-30", 5_341.3e6, "0000063908-19-000062", "2019-08-06"
        ),
        Figure(
            "MCD", "revenue", "Revenues", "2019-04-01", "2019-06-30", 5_409.8e6, "0000063908-20-000063", "2020-08-10"
        ),
    ),
    # Stock splits restate figures per share: Apple 4 for 1, Walmart 3 for 1.
    (
        Figure("AAPL", "eps_diluted", EPS, "2017-10-01", "2018-09-29", 11.91, "0000320193-18-000145", "2018-11-05"),
        Figure("AAPL", "eps_diluted", EPS, "2017-10-01", "2018-09-29", 2.98, "0000320193-20-000096", "2020-10-30"),
    ),
    (
        Figure(
            "WMT", "diluted_shares", SHARES, "2023-08-01", "2023-10-31", 2_703e6, "0000104169-23-000132", "2023-11-30"
        ),
        Figure(
            "WMT", "diluted_shares", SHARES, "2023-08-01", "2023-10-31", 8_110e6, "0000104169-24-000178", "2024-12-06"
        ),
    ),
    (
        Figure(
            "AAPL",
            "current_liabilities",
            "LiabilitiesCurrent",
            None,
            "2018-09-29",
            116_866e6,
            "0000320193-18-000145",
            "2018-11-05",
        ),
        Figure(
            "AAPL",
            "current_liabilities",
            "LiabilitiesCurrent",
            None,
            "2018-09-29",
            115_929e6,
            "0000320193-19-000010",
            "2019-01-30",
        ),
    ),
]

DERIVED = [
    # The published release takes 62,585 M, the half year, for the quarter to 2024-03-30.
    Derived(
        "AAPL",
        "operating_cash_flow",
        CFO,
        "2023-10-01",
        ("2023-12-30", 39_895e6, "0000320193-24-000006"),
        ("2024-03-30", 62_585e6, "0000320193-24-000069"),
        22_690e6,
        "2024-05-03",
    ),
    Derived(
        "AAPL",
        "depreciation_amortization",
        DA,
        "2023-10-01",
        ("2023-12-30", 2_848e6, "0000320193-24-000006"),
        ("2024-03-30", 5_684e6, "0000320193-24-000069"),
        2_836e6,
        "2024-05-03",
    ),
    Derived(
        "AAPL",
        "operating_cash_flow",
        CFO,
        "2022-09-25",
        ("2023-07-01", 88_945e6, "0000320193-23-000077"),
        ("2023-09-30", 110_543e6, "0000320193-23-000106"),
        21_598e6,
        "2023-11-03",
    ),
    Derived(
        "WMT",
        "operating_cash_flow",
        CFO,
        "2023-02-01",
        ("2023-07-31", 18_201e6, "0000104169-23-000097"),
        ("2023-10-31", 19_014e6, "0000104169-23-000132"),
        813e6,
        "2023-11-30",
    ),
    Derived(
        "NKE",
        "operating_cash_flow",
        CFO,
        "2022-06-01",
        ("2022-08-31", 357e6, "0000320187-22-000058"),
        ("2022-11-30", 1_358e6, "0000320187-23-000003"),
        1_001e6,
        "2023-01-05",
    ),
    # Seventeen weeks: 53 weeks less 36.
    Derived(
        "COST",
        "operating_cash_flow",
        CFO,
        "2022-08-29",
        ("2023-05-07", 7_343e6, "0000909832-23-000028"),
        ("2023-09-03", 11_068e6, "0000909832-23-000042"),
        3_725e6,
        "2023-10-11",
    ),
    Derived(
        "HD",
        "revenue",
        REVENUE,
        "2022-01-31",
        ("2022-10-30", 121_572e6, "0000354950-22-000239"),
        ("2023-01-29", 157_403e6, "0000354950-23-000059"),
        35_831e6,
        "2023-03-15",
    ),
    Derived(
        "TXN",
        "revenue",
        REVENUE,
        "2022-01-01",
        ("2022-09-30", 15_358e6, "0000097476-22-000048"),
        ("2022-12-31", 20_028e6, "0000097476-23-000007"),
        4_670e6,
        "2023-02-03",
    ),
]
EVERY = [*FIGURES, *(figure for pair in RESTATED for figure in pair)]


def _named(figure: Figure | Derived) -> str:
    return f"{figure.symbol}-{figure.metric}-{figure.value:.10g}"


@cache
def _raw(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def _served(folder: Path, symbol: str, tag: str) -> list[dict[str, Any]]:
    """Rows of one tag as the SEC serves them, of the forms that count, by day of filing."""
    units = _raw(folder / "companyfacts" / FILES[symbol])["facts"]["us-gaap"][tag]["units"]
    rows = [row for unit in units.values() for row in unit]
    kept = [row for row in rows if row["form"].removesuffix("/A") in ("10-Q", "10-QT", "10-K", "10-KT", "20-F", "40-F")]
    return sorted(kept, key=lambda row: row["filed"])


@pytest.fixture(scope="module")
def panel(realdata: Path) -> pl.DataFrame:
    """The facts panel of the sixteen companies."""
    files = {symbol: realdata / "companyfacts" / name for symbol, name in FILES.items()}
    return build_facts({symbol: parse_companyfacts(path) for symbol, path in files.items()}).frame


def _period(panel: pl.DataFrame, symbol: str, metric: str, start: str | None, end: str) -> pl.DataFrame:
    """Every version of one figure, by day of filing."""
    begins = pl.col("start").is_null() if start is None else pl.col("start") == dt.date.fromisoformat(start)
    same = (pl.col("symbol") == symbol) & (pl.col("metric") == metric) & (pl.col("end") == dt.date.fromisoformat(end))
    return panel.filter(same & begins).sort("filed")


def test_enough_figures_of_enough_companies() -> None:
    assert len(EVERY) + len(DERIVED) >= 40
    assert len({figure.symbol for figure in EVERY}) == len(FILES) >= 10


@pytest.mark.parametrize("figure", EVERY, ids=_named)
def test_the_filing_says_so(realdata: Path, figure: Figure) -> None:
    """Guards the list itself: the figure stands in the raw file under its accession, and no earlier."""
    rows = [
        row
        for row in _served(realdata, figure.symbol, figure.tag)
        if (row.get("start"), row["end"], row["val"]) == (figure.start, figure.end, figure.value)
    ]
    assert (rows[0]["accn"], rows[0]["filed"]) == (figure.accession, figure.filed)


@pytest.mark.parametrize("figure", FIGURES, ids=_named)
def test_the_panel_has_the_figure(panel: pl.DataFrame, figure: Figure) -> None:
    first = _period(panel, figure.symbol, figure.metric, figure.start, figure.end).row(0, named=True)
    assert first["value"] == figure.value
    assert first["tag"] == figure.tag
    assert first["accession"] == figure.accession
    assert first["filed"] == dt.date.fromisoformat(figure.filed)
    assert not first["derived"]


@pytest.mark.parametrize(("old", "new"), RESTATED, ids=lambda figure: _named(figure))
def test_a_restatement_is_a_row_of_its_own(panel: pl.DataFrame, old: Figure, new: Figure) -> None:
    rows = _period(panel, old.symbol, old.metric, old.start, old.end)
    versions = [(row["value"], row["accession"], row["filed"].isoformat()) for row in rows.iter_rows(named=True)]
    assert versions[:2] == [(figure.value, figure.accession, figure.filed) for figure in (old, new)]


@pytest.mark.parametrize("quarter", DERIVED, ids=_named)
def test_a_quarter_by_difference(realdata: Path, panel: pl.DataFrame, quarter: Derived) -> None:
    """The identity on the raw rows first, then the row of the panel with its parents."""
    served = _served(realdata, quarter.symbol, quarter.tag)
    for end, value, accession in (quarter.shorter, quarter.longer):
        assert (quarter.begin, end, value, accession) in [
            (row.get("start"), row["end"], row["val"], row["accn"]) for row in served
        ]
    assert quarter.longer[1] - quarter.shorter[1] == quarter.value
    start = dt.date.fromisoformat(quarter.shorter[0]) + dt.timedelta(days=1)
    row = _period(panel, quarter.symbol, quarter.metric, start.isoformat(), quarter.longer[0]).row(0, named=True)
    assert row["value"] == quarter.value
    assert row["duration"] == "quarterly"
    assert row["derived"]
    assert row["filed"] == dt.date.fromisoformat(quarter.filed)
    assert quarter.shorter[2] in row["parents"]
    assert quarter.longer[2] in row["parents"]


def test_what_other_forms_say_is_not_taken(panel: pl.DataFrame) -> None:
    """17,110 M stands in a DEF 14A, 1,646.7 M in an 8-K; both would look like restatements."""
    home_depot = _period(panel, "HD", "net_income", "2022-01-31", "2023-01-29")
    sunedison = _period(panel, "SUNEQ", "revenue", "2014-01-01", "2014-12-31")
    assert home_depot["value"].to_list() == [17_105e6]
    assert sunedison["value"].to_list() == [2_484.4e6]
    assert set(panel["form"].unique()) <= {
        form + suffix for form in ("10-Q", "10-QT", "10-K", "10-KT", "20-F", "40-F") for suffix in ("", "/A")
    }
