"""Figures of the hand-made companies as a professional writes them, against what the panels make of their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.domains.fundamental.hand_made import FIRST_FILED, Company, Line, Span, always, write_collection
from tests.domains.fundamental.hand_made_companies import COMPANIES

from finskillbench.edition import build_edition
from finskillbench.engines.accounting.periods import YEAR_APART, Duration, earlier
from finskillbench.engines.accounting.quality import piotroski
from finskillbench.engines.accounting.statements import company_facts
from finskillbench.panels.filings.query import FactStore
from finskillbench.panels.filings.statements import build_fundamentals
from finskillbench.sources.edgar.collection import load_filings

Key: TypeAlias = tuple[str, date, str]
"""Metric or signal, end of the period, duration."""
Derived: TypeAlias = Callable[[str], Mapping[Key, float]]
LAST = date(2030, 1, 1)
"""A day after every filing."""
METRICS = {
    "Revenues": "revenue",
    "CostOfRevenue": "cost_of_revenue",
    "GrossProfit": "gross_profit",
    "SellingGeneralAndAdministrativeExpense": "sga",
    "ResearchAndDevelopmentExpense": "rnd",
    "OperatingIncomeLoss": "operating_income",
    "InterestExpense": "interest_expense",
    "IncomeTaxExpenseBenefit": "income_tax",
    "NetIncomeLoss": "net_income",
    "NetCashProvidedByUsedInOperatingActivities": "operating_cash_flow",
    "DepreciationDepletionAndAmortization": "depreciation_amortization",
    "PaymentsToAcquirePropertyPlantAndEquipment": "capex",
    "Assets": "total_assets",
    "AssetsCurrent": "current_assets",
    "CashAndCashEquivalentsAtCarryingValue": "cash",
    "AccountsReceivableNetCurrent": "receivables",
    "PropertyPlantAndEquipmentNet": "ppe_net",
    "Liabilities": "total_liabilities",
    "LiabilitiesCurrent": "current_liabilities",
    "LongTermDebtNoncurrent": "long_term_debt",
    "StockholdersEquity": "stockholders_equity",
}
"""The metric that each tag of an ordinary company stands for."""
FIGURES = """
BASE revenue 2022-12-31: annual 4380, quarterly 1110; operating_cash_flow 2022-09-30: quarterly 200
BASE net_income 2023-12-31: annual 548; total_liabilities 2022-12-31: instant 3220
BASE depreciation_amortization 2022-12-31: quarterly 51, annual 198
BASE eps_diluted 2022-09-30: quarterly 1.30, nine_months 3.84; eps_diluted 2022-12-31: quarterly null
BASE diluted_shares 2022-09-30: quarterly 100; diluted_shares 2022-12-31: quarterly null, annual 100
BASE no_dilution 2023-03-31: quarterly 1; delta_asset_turnover_positive 2023-12-31: quarterly 1
AMRT depreciation_amortization 2020-12-31: annual 418; depreciation_amortization 2021-06-30: quarterly 115
AMRT depreciation_amortization 2021-12-31: quarterly 121, annual 466
AMRT depreciation_amortization 2022-03-31: quarterly 124
AMRT depreciation_amortization 2022-09-30: quarterly 130
AMRT depreciation_amortization 2022-12-31: quarterly 133, annual 514
AMRT depreciation_amortization 2023-06-30: quarterly 139
AMRT depreciation_amortization 2023-12-31: quarterly 145, annual 562
DALO depreciation_amortization 2021-06-30: quarterly 70; depreciation_amortization 2021-12-31: annual 284
DALO depreciation_amortization 2022-03-31: quarterly 76; depreciation_amortization 2022-06-30: quarterly 78, half 154
DALO depreciation_amortization 2022-12-31: quarterly 82, annual 316; depreciation_amortization 2023-09-30: quarterly 88
DNOT depreciation_amortization 2022-06-30: quarterly 69; depreciation_amortization 2022-12-31: quarterly 71, annual 278
DNOT depreciation_amortization 2023-03-31: quarterly 72
TINC depreciation_amortization 2022-06-30: quarterly 49; depreciation_amortization 2022-12-31: quarterly 51, annual 198
TADJ depreciation_amortization 2022-06-30: quarterly 49; depreciation_amortization 2022-12-31: quarterly 51, annual 198
TWOL depreciation_amortization 2022-06-30: quarterly 49; depreciation_amortization 2022-12-31: quarterly 51, annual 198
TWOA depreciation_amortization 2022-06-30: quarterly 49; depreciation_amortization 2022-12-31: quarterly 51, annual 198
PREF net_income 2022-06-30: quarterly 128; net_income 2022-12-31: quarterly 132, annual 516
NCIP net_income 2022-06-30: quarterly 128; net_income 2022-12-31: quarterly 132, annual 516
COMP net_income 2022-06-30: quarterly 128; net_income 2022-12-31: quarterly 132, annual 516
SOME net_income 2021-12-31: quarterly 124, annual 484; net_income 2022-06-30: quarterly 128
SOME net_income 2022-09-30: quarterly 130; net_income 2023-12-31: quarterly 140, annual 548
LEFT net_income 2022-03-31: quarterly 126; net_income 2022-06-30: quarterly 128; net_income 2022-09-30: quarterly 130
LEFT net_income 2022-12-31: quarterly 132; net_income 2023-09-30: quarterly null, nine_months null
LEFT net_income 2023-12-31: quarterly null, annual 548
MEZZ total_liabilities 2021-12-31: instant 2840; total_liabilities 2022-09-30: instant 2900
RNIP total_liabilities 2021-12-31: instant 2840; total_liabilities 2022-09-30: instant 2900
TEMP total_liabilities 2021-12-31: instant 2840; total_liabilities 2022-09-30: instant 2900
RCPS total_liabilities 2021-12-31: instant 2840; total_liabilities 2022-09-30: instant 2900
PART total_liabilities 2021-12-31: instant 2840; total_liabilities 2022-09-30: instant 2900
BOTH total_liabilities 2021-12-31: instant 2840; total_liabilities 2022-09-30: instant 2900
LIAB total_liabilities 2021-12-31: instant 3140; total_liabilities 2022-09-30: instant 3200
SEGN depreciation_amortization 2021-06-30: quarterly 45; depreciation_amortization 2022-06-30: quarterly 49
SEGN depreciation_amortization 2022-12-31: quarterly 51, annual 198; depreciation_amortization 2023-09-30: quarterly 54
STRY depreciation_amortization 2021-06-30: quarterly 45; depreciation_amortization 2022-06-30: quarterly 49
STRY depreciation_amortization 2022-09-30: quarterly 50, nine_months 147
STRY depreciation_amortization 2022-12-31: quarterly 51
STRY depreciation_amortization 2023-06-30: quarterly 53; depreciation_amortization 2023-09-30: quarterly 54
RTAG revenue 2017-12-31: quarterly 1110, annual 4380; revenue 2018-12-31: quarterly 1150, annual 4540
RTAG delta_asset_turnover_positive 2018-03-31: quarterly 1; delta_asset_turnover_positive 2018-12-31: quarterly 1
RTAG delta_gross_margin_positive 2018-06-30: quarterly 1; delta_gross_margin_positive 2018-12-31: quarterly 1
NTAG net_income 2022-12-31: quarterly 132; net_income 2023-12-31: quarterly 140, annual 548
NTAG delta_roa_positive 2023-03-31: quarterly 1; delta_roa_positive 2023-12-31: quarterly 1
RNDG net_income 2022-06-30: quarterly 66, half 130; net_income 2022-09-30: quarterly 58, nine_months 189
RNDG net_income 2022-12-31: quarterly 62, annual 251
ACQN revenue 2022-09-30: quarterly 11000; revenue 2022-12-31: quarterly 11100, annual 24270
ACQN cost_of_revenue 2022-09-30: quarterly 6500; net_income 2022-09-30: quarterly 1300
ACQN total_assets 2022-09-30: instant 54000; total_liabilities 2022-12-31: instant 32200
ACQN diluted_shares 2022-06-30: quarterly 100; diluted_shares 2022-09-30: quarterly 600
FACT revenue 2023-09-30: nine_months 3390; revenue 2023-12-31: quarterly 1150
FACT cost_of_revenue 2023-09-30: quarterly 670; total_liabilities 2023-09-30: instant 3280
FACT total_assets 2023-12-31: instant 5600
SPLT no_dilution 2022-12-31: quarterly 1; no_dilution 2023-03-31: quarterly 1; no_dilution 2023-12-31: quarterly 1
ISSU no_dilution 2022-12-31: quarterly 1; no_dilution 2023-03-31: quarterly 0; no_dilution 2023-12-31: quarterly 0
ISSU total_assets 2023-03-31: instant 23480; stockholders_equity 2023-03-31: instant 20240
ROUN revenue 2015-09-30: quarterly 1100; revenue 2015-12-31: quarterly 1110, annual 4380
ROUN revenue 2016-12-31: quarterly 1150, annual 4540
RNDN revenue 2015-12-31: quarterly 1115, annual 4430; revenue 2016-12-31: quarterly 1135, annual 4510
RNDN operating_income 2016-12-31: annual 678; revenue 2016-09-30: quarterly 1130
AMND revenue 2022-09-30: quarterly 1090; revenue 2022-12-31: quarterly 1080, annual 4340
AMND net_income 2022-09-30: quarterly 120; net_income 2022-12-31: quarterly 102, annual 476
AMND total_assets 2022-09-30: instant 5390; total_assets 2022-12-31: instant 5400
AMND stockholders_equity 2022-12-31: instant 2180; revenue 2023-03-31: quarterly 1120
FYCH revenue 2022-12-31: quarterly 1110, annual 4380; revenue 2023-03-31: quarterly 1120, annual null
FYCH revenue 2023-06-30: quarterly 1130; revenue 2023-12-31: quarterly 1150, nine_months 3420, annual null
FYCH revenue 2024-03-31: quarterly 1160, annual 4580; operating_cash_flow 2024-03-31: quarterly 218
FYCH depreciation_amortization 2023-03-31: quarterly 52; depreciation_amortization 2023-09-30: quarterly 54, half 107
WEEK revenue 2023-02-04: quarterly 1110, annual 4380; depreciation_amortization 2023-02-04: quarterly 51
WEEK revenue 2024-02-03: quarterly 1150, annual 4540; revenue 2023-05-06: quarterly 1120
DISC revenue 2022-12-31: quarterly 1110, annual 3580; revenue 2023-09-30: quarterly 1140
DISC revenue 2023-12-31: quarterly null, annual 3740; cost_of_revenue 2023-12-31: quarterly null, annual 2190
DISC gross_profit 2023-12-31: quarterly null, annual 1550; operating_income 2023-12-31: quarterly null, annual 548
DISC income_tax 2023-12-31: quarterly null, annual 88; net_income 2023-12-31: quarterly 140, annual 548
DISD depreciation_amortization 2022-09-30: quarterly 50; depreciation_amortization 2022-12-31: annual 158
DISD depreciation_amortization 2023-06-30: quarterly 53
DISD depreciation_amortization 2023-09-30: quarterly null, nine_months 129
DISD depreciation_amortization 2023-12-31: quarterly 45|null, annual 174
"""
"""Company, then metric and end of the period with its values, in millions; `|` where either is right.

Signals and earnings per share are unscaled.
"""


def expected(ticker: str) -> dict[Key, set[float | None]]:
    """The right values of a company by the table."""
    found: dict[Key, set[float | None]] = {}
    for row in FIGURES.strip().splitlines():
        name, _, rest = row.partition(" ")
        for figures in rest.split("; ") if name == ticker else ():
            subject, _, values = figures.partition(": ")
            metric, _, end = subject.partition(" ")
            scale = 1e6 if metric in {*METRICS.values(), "diluted_shares"} else 1
            for text in values.split(", "):
                duration, _, value = text.partition(" ")
                found[metric, date.fromisoformat(end), duration] = {
                    None if one == "null" else float(one) * scale for one in value.split("|")
                }
    return found


def ordinary(company: Company) -> dict[Key, float]:
    """The true figures of each line that all filings give alike: quarters, years and days."""
    days, special = company.calendar, {tag for _, tag, _ in company.figures}
    quarters: list[Span] = [(n, n) for n in range(len(days.ends))]
    years: list[Span] = [span for span in map(days.whole, range(len(days.years))) if span[1] - span[0] == 3]
    instants: list[Span] = [(None, n) for n in range(FIRST_FILED - 1, len(days.ends))]
    found: dict[Key, float] = {}
    for tag, metric in METRICS.items():
        lines: tuple[Line, ...] = company.lines[tag]
        if len(lines) != 1 or lines[0].filings is not always or tag in special:
            continue
        flow = lines[0].statement != "balance"
        for duration, spans in (("quarterly", quarters), ("annual", years)) if flow else (("instant", instants),):
            found |= {(metric, days.ends[span[1]], duration): lines[0].over(span) * 1e6 for span in spans}
    return found


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> Derived:
    """The figures and signals that the panels make of each company's raw files, as of its last filing."""
    folder = tmp_path_factory.mktemp("hand-made")
    write_collection(COMPANIES, folder)
    tables = build_fundamentals(load_filings(folder)).tables
    store = FactStore(tables["facts"], tables["filings"], tables["segments"])

    @cache
    def of(ticker: str) -> Mapping[Key, float]:
        accounts = company_facts(store.visible(ticker, LAST)["facts"], ticker)
        found = {
            (metric, end, str(duration)): row["value"]
            for (duration, end), rows in accounts.rows.items()
            for metric, row in rows.items()
        }
        ends = accounts.ends(Duration.QUARTERLY)
        for end in ends:
            signals = piotroski(*accounts.compared(end, earlier(end, ends, YEAR_APART))).components
            found |= {(name, end, "quarterly"): one for name, one in signals.items() if one is not None}
        return found

    return of


@pytest.mark.parametrize("company", COMPANIES, ids=lambda company: company.ticker)
def test_figures_that_follow_from_the_rule(derived: Derived, company: Company) -> None:
    """Every value of the table, and no value where the table has none."""
    found, right = derived(company.ticker), expected(company.ticker)
    assert right
    assert {key: found.get(key) for key, values in right.items() if found.get(key) not in values} == {}


@pytest.mark.parametrize("company", COMPANIES, ids=lambda company: company.ticker)
def test_the_rule_disturbs_no_other_figure(derived: Derived, company: Company) -> None:
    """The lines that are as in any company give every quarter, year and day."""
    found, right = derived(company.ticker), ordinary(company)
    assert len(right) > 200
    assert {key: found.get(key) for key, value in right.items() if found.get(key) != pytest.approx(value)} == {}


@pytest.mark.slow
def test_a_build_keeps_filings_that_are_in_order(tmp_path: Path) -> None:
    """No label is left out because statements do not add up or a figure is out of its pattern."""
    tickers = {"BASE", "WEEK", "FYCH", "LIAB", "BOTH", "RNDG", "ACQN"}
    write_collection([company for company in COMPANIES if company.ticker in tickers], tmp_path / "raw")
    edition = build_edition(source="raw-dir", raw_dir=tmp_path / "raw", out=tmp_path / "edition")
    pools = edition.manifest["parameters"]["fundamental_pools"]
    assert {name: pool["faults"] for name, pool in pools.items() if pool["faulty"]} == {}
    assert {one.input["symbol"] for one in edition.episodes()} == tickers


@pytest.mark.slow
def test_a_build_drops_filings_of_which_a_figure_is_ten_times_too_great(tmp_path: Path) -> None:
    """Revenue that neither the year to date nor cost bears out, assets that liabilities and equity refute."""
    write_collection([company for company in COMPANIES if company.ticker in {"BASE", "FACT"}], tmp_path / "raw")
    edition = build_edition(source="raw-dir", raw_dir=tmp_path / "raw", out=tmp_path / "edition")
    kinds = {kind for pool in edition.manifest["parameters"]["fundamental_pools"].values() for kind in pool["faults"]}
    assert kinds >= {"gross_profit", "quarters", "witness"}
    assert not [one for one in edition.episodes() if one.task_id.endswith("FACT_2023-09-30")]
