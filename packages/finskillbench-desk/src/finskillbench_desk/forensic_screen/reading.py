"""Log ratios of a case that follow the disclosed model, read from its tables by the rules of memo and data notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.engines.posterior.model import Prediction, RatioModel, predict_shift
from finskillbench_desk.forensic_screen.difficulty import BEFORE, FINANCIALS, KIND_NAMES, MEASURES, NAMES, RATIOS
from finskillbench_desk.forensic_screen.generator.draws import CASE_UNIT, LOG_UNIT, USABLE

IDENTITIES: dict[str, dict[str, int]] = {
    "net_revenue": {"gross_sales": 1, "returns_and_allowances": -1},
    "cost_of_sales": {"materials": 1, "labour": 1, "production_overhead": 1},
    "gross_profit": {"net_revenue": 1, "cost_of_sales": -1},
    "operating_income": {
        "gross_profit": 1,
        "selling": -1,
        "marketing": -1,
        "general_and_administrative": -1,
        "research_and_development": -1,
        "depreciation": -1,
        "amortisation": -1,
        "lease_cost": -1,
        "restructuring": -1,
        "impairment": -1,
        "other_operating_income": 1,
    },
    "pretax_income": {"operating_income": 1, "interest_income": 1, "interest_expense": -1},
    "net_income": {"pretax_income": 1, "income_tax": -1},
    "receivables_net": {"receivables_gross": 1, "allowance_for_doubtful_accounts": -1},
    "inventory": {"raw_materials": 1, "work_in_progress": 1, "finished_goods": 1},
    "total_current_assets": {
        "cash": 1,
        "short_term_investments": 1,
        "receivables_net": 1,
        "inventory": 1,
        "prepaid_expenses": 1,
        "contract_assets": 1,
        "other_current_assets": 1,
    },
    "ppe_net": {"ppe_gross": 1, "accumulated_depreciation": -1},
    "total_assets": {
        "total_current_assets": 1,
        "ppe_net": 1,
        "right_of_use_assets": 1,
        "capitalised_development": 1,
        "goodwill": 1,
        "deferred_tax_assets": 1,
        "other_assets": 1,
    },
    "total_current_liabilities": {
        "payables": 1,
        "accrued_wages": 1,
        "deferred_revenue": 1,
        "provisions": 1,
        "tax_payable": 1,
        "short_term_debt": 1,
        "other_current_liabilities": 1,
    },
    "total_liabilities": {
        "total_current_liabilities": 1,
        "long_term_debt": 1,
        "lease_liabilities": 1,
        "pension_liabilities": 1,
        "deferred_tax_liabilities": 1,
    },
    "equity": {"total_assets": 1, "total_liabilities": -1},
    "capital_and_reserves": {"equity": 1, "retained_earnings": -1},
    "operating_cash_flow": {
        "net_income": 1,
        "depreciation": 1,
        "amortisation": 1,
        "impairment": 1,
        "change_in_receivables": -1,
        "change_in_inventory": -1,
        "change_in_other_assets": -1,
        "change_in_payables": 1,
        "change_in_deferred_revenue": 1,
        "change_in_provisions": 1,
        "change_in_other_liabilities": 1,
    },
    "investing_cash_flow": {
        "capital_expenditure": -1,
        "development_capitalised": -1,
        "acquisitions": -1,
        "purchases_of_investments": -1,
    },
    "financing_cash_flow": {"debt_raised": 1, "shares_issued": 1, "dividends": -1},
    "change_in_cash": {"operating_cash_flow": 1, "investing_cash_flow": 1, "financing_cash_flow": 1},
    "closing_cash": {"opening_cash": 1, "change_in_cash": 1},
    "cash": {"closing_cash": 1},
}
"""Total to its parts with their signs; the last one ties the balance sheet to the cash flow statement."""


def _names(text: str) -> list[str]:
    return text.split()


INCOME = _names(
    "gross_sales returns_and_allowances net_revenue materials labour production_overhead cost_of_sales gross_profit "
    "selling marketing general_and_administrative research_and_development depreciation amortisation lease_cost "
    "restructuring impairment other_operating_income operating_income interest_income interest_expense pretax_income "
    "income_tax net_income"
)
BALANCE = _names(
    "cash short_term_investments receivables_gross allowance_for_doubtful_accounts receivables_net raw_materials "
    "work_in_progress finished_goods inventory prepaid_expenses contract_assets other_current_assets "
    "total_current_assets ppe_gross accumulated_depreciation ppe_net right_of_use_assets capitalised_development "
    "goodwill deferred_tax_assets other_assets total_assets payables accrued_wages deferred_revenue provisions "
    "tax_payable short_term_debt other_current_liabilities total_current_liabilities long_term_debt lease_liabilities "
    "pension_liabilities deferred_tax_liabilities total_liabilities retained_earnings capital_and_reserves equity"
)
CASH_FLOW = _names(
    "change_in_receivables change_in_inventory change_in_other_assets change_in_payables change_in_deferred_revenue "
    "change_in_provisions change_in_other_liabilities operating_cash_flow capital_expenditure development_capitalised "
    "acquisitions purchases_of_investments investing_cash_flow debt_raised shares_issued dividends "
    "financing_cash_flow change_in_cash opening_cash closing_cash"
)
LAYOUT = {"income_statement": INCOME, "balance_sheet": BALANCE, "cash_flow_statement": CASH_FLOW}


ACQUISITION = "acquisition completed"
LEASE = "lease standard adopted"
YEAR_END = "year end changed"
_KIND_OF = {ACQUISITION: "acquisition", LEASE: "lease_standard", YEAR_END: "fiscal_year"}
"""Event to its kind of pitfall."""
SPURT, SPURT_QUARTERS = 0.075, 3
"""Least log growth above the industry median, and the successive quarters of it, that make a spurt."""
SLIP = 1000
"""Factor by which a balance sheet typed in single dollars is too large."""

Tables = Mapping[str, pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Rules:
    """Case-specific rule of the memo: least share of assets (per cent) at which an acquisition counts."""

    material: float


class AdjustedRatios(NamedTuple):
    """Log ratios (n, T, R) adjusted for everything announced, and quarters of material acquisitions, else -1."""

    y: Floats
    acquired: Integers


def read_adjusted_ratios(tables: Tables, model: RatioModel, rules: Rules, *, left_out: str = "") -> AdjustedRatios:
    """Read the latest statements with slips corrected, less path, season, growth and lease standard.

    `left_out` names the kind of pitfall (`generator.lines.LOCAL`) whose correction is omitted.
    """
    companies, events = tables["companies"], tables["events"]
    latest = (
        tables["statements"]
        .sort("company", "quarter", "version")
        .unique(["company", "quarter"], keep="first" if left_out == "restatement" else "last", maintain_order=True)
    )
    n = len(companies)
    quarters = {name: place for place, name in enumerate(latest["quarter"].unique().sort().to_list())}
    place = {name: number for number, name in enumerate(companies["company"].to_list())}

    def line(name: str) -> Floats:
        return latest[name].to_numpy().reshape(n, len(quarters)).astype(np.float64)

    seen = left_out != "unit_slip"
    slipped = np.where(seen & (line("cash") == SLIP * line("closing_cash")), float(SLIP), 1.0)
    y = np.empty((n, len(quarters), MEASURES))
    for number, ratio in enumerate(RATIOS):
        top, bottom = (
            line(name) / (slipped if name in BALANCE else 1.0) for name in (ratio.numerator, ratio.denominator)
        )
        y[:, :, number] = np.log(top / bottom)
    revenue = np.log(line("net_revenue"))
    growth = np.diff(revenue, axis=1, prepend=revenue[:, :1])
    if left_out == "growth":
        growth -= _spurts(growth, companies["industry"].to_numpy())
    y -= growth[:, :, None] * model.growth
    acquired = np.full(n, -1)
    year_ends = np.repeat(companies["year_end_month"].to_numpy()[:, None], len(quarters), axis=1)
    for event in events.iter_rows(named=True):
        who, when = place[event["company"]], quarters[event["quarter"]]
        if _KIND_OF.get(event["event"]) == left_out:
            continue
        if event["event"] == ACQUISITION and event["value"] >= rules.material:
            acquired[who] = when
        elif event["event"] == LEASE:
            y[who, when:] -= model.lease
        elif event["event"] == YEAR_END:
            year_ends[who, when:] = event["value"]
    return AdjustedRatios(y - _common(tables, companies["industry"].to_list(), year_ends, quarters), acquired)


def _spurts(growth: Floats, industries: NDArray[Any]) -> Floats:
    """Return growth (n, T) above the industry median in the quarters of a spurt, 0 in all others."""
    beyond = growth.copy()
    for industry in np.unique(industries):
        inside = industries == industry
        beyond[inside] -= np.median(growth[inside], axis=0)
    fast = beyond > SPURT
    length = np.zeros(growth.shape, dtype=np.intp)  # length of the run that ends in a quarter
    for quarter in range(growth.shape[1]):
        length[:, quarter] = np.where(fast[:, quarter], length[:, quarter - 1] * (quarter > 0) + 1, 0)
    for quarter in range(growth.shape[1] - 2, -1, -1):  # length of the whole run
        length[:, quarter] = np.where(
            fast[:, quarter] & fast[:, quarter + 1], length[:, quarter + 1], length[:, quarter]
        )
    return np.where(length >= SPURT_QUARTERS, beyond, 0.0)


def _common(tables: Tables, industries: list[str], year_ends: Integers, quarters: Mapping[str, int]) -> Floats:
    """Return the effect of industry path and season on the log ratios (n, T, R)."""
    paths = tables["industry_paths"].sort("industry", "quarter")
    seasons = tables["seasons"].sort("industry", "fiscal_quarter")
    names = seasons["industry"].unique().sort().to_list()
    which = np.array([names.index(industry) for industry in industries])
    months = np.array([3 * int(name[-1]) for name in quarters])
    fiscal = fiscal_quarter(months, year_ends)
    path = paths.select(NAMES).to_numpy().reshape(len(names), len(quarters), MEASURES)
    season = seasons.select(NAMES).to_numpy().reshape(len(names), 4, MEASURES)
    return (path[which] + season[which[:, None], fiscal]) * LOG_UNIT


def fiscal_quarter(months: Integers, year_ends: Integers) -> Integers:
    """Return the fiscal quarter, from 0, that ends in a calendar month; a year end of 12 gives 0 in March."""
    return ((months - year_ends) // 3 - 1) % 4


def usable() -> pl.Expr:
    """Select archive rows of the cases that the memo admits."""
    return pl.col("basis").is_in(USABLE) & (pl.col("industry") != FINANCIALS)


def read_archive(archive: pl.DataFrame, model: RatioModel, *, usable_only: bool = True) -> Prediction:
    """Predict a new case from the archive, by default from admitted cases only."""
    if usable_only:
        archive = archive.filter(usable())
    ordered = archive.sort("case", "quarter")
    rows = ordered["quarter"].n_unique()
    moves = ordered.select(NAMES).to_numpy().reshape(-1, rows, MEASURES) * CASE_UNIT
    kinds = np.array([KIND_NAMES.index(kind) for kind in ordered["kind"].to_list()[::rows]])
    return predict_shift(model, moves[:, BEFORE:], kinds)
