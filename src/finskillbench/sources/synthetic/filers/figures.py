"""Draw quarterly statements of a fictional company from its published revenue, income, equity and shares.

All amounts are multiples of a thousand dollars. Assets are equity, minority interest and liabilities. Gross profit is
revenue less its cost. Operating cash flow is earnings before minorities plus depreciation and stock compensation less
the increase of working capital.
"""

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from finskillbench.arrays import Floats
from finskillbench.sources.synthetic.calendar import PROFILES, Sector, on_grid, thousands
from finskillbench.sources.synthetic.market.companies import Traits
from finskillbench.sources.synthetic.market.fundamentals import Fundamentals

Whole = NDArray[np.int64]

PRODUCT, GEOGRAPHY = "product_segment", "geographic_segment"


GEOGRAPHIES = ("country:US", "srt:EuropeMember", "srt:AsiaPacificMember")


@dataclass(frozen=True, slots=True)
class Figures:
    """True quarterly figures of whole fiscal years and the current one; every array is (Q,).

    first : index of the first quarter in `Fundamentals`. fiscal : fiscal year of each quarter. shares : average diluted
        shares, adjusted for a later split.
    money : metric, `product_segment:i` or `geographic_segment:i` -> whole dollars; flows of the quarter, instants at
        its end.
    """

    first: int
    fiscal: Whole
    money: dict[str, Whole]
    shares: Floats


INSTANTS = (
    "total_assets",
    "total_liabilities",
    "stockholders_equity",
    "minority_interest",
    "current_assets",
    "current_liabilities",
    "receivables",
    "inventory",
    "ppe_net",
    "long_term_debt",
    "cash",
)


def draw_figures(traits: Traits, facts: Fundamentals, sector: str, *, minority: bool, rng: Generator) -> Figures:
    """Draw statements whose revenue, net income, diluted shares and year-end equity equal `facts`."""
    profile = PROFILES[sector]
    all_fiscal = np.array([end.year + (end.month > traits.fiscal_month) for end in facts.quarter_ends])
    # Year-to-date figures need a year from its beginning; the last one may be unfinished.
    first = int(np.flatnonzero(all_fiscal == all_fiscal[0] + (np.sum(all_fiscal == all_fiscal[0]) < 4))[0])
    fiscal = all_fiscal[first:]
    revenue = facts.quarterly["revenue"][first:]
    income = facts.quarterly["netIncome"][first:]
    outside = thousands(income * 0.02) if minority else np.zeros(len(fiscal))
    charges = facts.charges[first:]
    balances = _balances(profile, _equity(traits, facts, first, fiscal, income), revenue, minority, rng)
    earnings = _earnings(profile, revenue, income + outside, charges, balances["long_term_debt"], rng)
    amounts = {
        "revenue": revenue,
        "net_income": income,
        **earnings,
        **_cash_flows(revenue, income + outside + charges, balances, rng),
        **balances,
    }
    money = {metric: np.rint(values).astype(np.int64) for metric, values in amounts.items()}
    for axis, parts in ((PRODUCT, len(profile.products)), (GEOGRAPHY, len(GEOGRAPHIES))):
        for i, values in enumerate(_segments(money["revenue"], parts, rng)):
            money[f"{axis}:{i}"] = values
    return Figures(first, fiscal.astype(np.int64), money, facts.shares[first:])


def _balances(profile: Sector, equity: Floats, revenue: Floats, minority: bool, rng: Generator) -> dict[str, Floats]:
    count = len(equity)
    minorities = thousands(equity * 0.04 * _factor(rng, count, 0.05, 0.9)) if minority else np.zeros(count)
    leverage = profile.liabilities * (1 + 0.15 * float(np.clip(np.round(rng.standard_normal(), 6), -2, 2)))
    liabilities = thousands((leverage * equity + 0.6 * _centred_mean(revenue)) * _factor(rng, count, 0.06, 0.85))
    assets = equity + minorities + liabilities

    receivables, inventory = _working_capital(profile, revenue, assets, rng)
    cash = thousands(np.minimum(assets * profile.cash * _factor(rng, count, 0.25, 0.8), 0.2 * assets))
    other_current = thousands(assets * 0.03 * _factor(rng, count, 0.2, 0.7))
    current_assets = receivables + inventory + cash + other_current
    fixed = thousands(
        np.minimum(assets * profile.fixed * _factor(rng, count, 0.10, 0.9), 0.92 * assets - current_assets)
    )
    share = on_grid(rng.uniform(0.15, 0.24), 3)
    current_liabilities = thousands(np.minimum(assets * share * _factor(rng, count, 0.12, 0.6), 0.6 * liabilities))
    share = on_grid(rng.uniform(0.30, 0.55), 3)
    most = 0.9 * (liabilities - current_liabilities)
    return {
        "total_assets": assets,
        "total_liabilities": liabilities,
        "stockholders_equity": equity,
        "minority_interest": minorities,
        "current_assets": current_assets,
        "current_liabilities": current_liabilities,
        "receivables": receivables,
        "inventory": inventory,
        "ppe_net": fixed,
        "long_term_debt": thousands(np.minimum(liabilities * share * _factor(rng, count, 0.10, 0.9), most)),
        "cash": cash,
    }


def _earnings(
    profile: Sector, revenue: Floats, after_tax: Floats, charges: Floats, debt: Floats, rng: Generator
) -> dict[str, Floats]:
    """Draw income statements from earnings after tax (including minorities) up to gross profit."""
    count, smooth = len(revenue), _centred_mean(revenue)
    tax_rate = np.clip(on_grid(rng.uniform(0.17, 0.25), 3) + _wander(rng, count, 0.02, 0.5), 0.10, 0.32)
    before_tax = thousands(after_tax / (1 - tax_rate))
    interest = thousands(debt * on_grid(rng.uniform(0.008, 0.012), 4) * _factor(rng, count, 0.05, 0.9))
    other = thousands(revenue * _wander(rng, count, 0.004, 0.3))
    operating = before_tax + interest - other
    before_charges = operating + charges
    selling = smooth * profile.selling * _factor(rng, count, 0.07, 0.7)
    research = smooth * profile.research * _factor(rng, count, 0.07, 0.8)
    # With a wide margin, expenses leave at least 8 % of revenue for its cost.
    headroom = np.maximum(0.92 * revenue - before_charges, 0.02 * revenue)
    scale = np.minimum(1.0, headroom / (selling + research))
    selling, research = thousands(selling * scale), thousands(research * scale)
    gross = before_charges + selling + research
    return {
        "cost_of_revenue": revenue - gross,
        "gross_profit": gross,
        "operating_income": operating,
        "sga": selling,
        "rnd": research,
        "interest_expense": interest,
        "income_tax": before_tax - after_tax,
    }


def _cash_flows(
    revenue: Floats, before_charges: Floats, balances: dict[str, Floats], rng: Generator
) -> dict[str, Floats]:
    """Draw operating cash flow from earnings before write-offs, with depreciation and capital expenditure."""
    count, smooth = len(revenue), _centred_mean(revenue)
    depreciation = thousands(balances["ppe_net"] * 0.022 * _factor(rng, count, 0.07, 0.8) + smooth * 0.01)
    amortization = thousands(depreciation * on_grid(rng.uniform(0.12, 0.35), 3))
    expensed = thousands(depreciation * on_grid(rng.uniform(0.3, 0.6), 3))
    capex = thousands(depreciation * on_grid(rng.uniform(0.9, 1.5), 3) * _factor(rng, count, 0.2, 0.5))
    tied_up = balances["receivables"] + balances["inventory"] - thousands(0.5 * balances["current_liabilities"])
    tied_up = np.diff(tied_up, prepend=np.nan)
    tied_up[0] = 0.0
    compensation = thousands(0.015 * smooth)
    return {
        "depreciation_amortization": depreciation,
        "amortization": amortization,
        "expensed_depreciation": expensed,
        "operating_cash_flow": before_charges + depreciation + compensation - tied_up,
        "capex": capex,
    }


def move_revenue(figures: Figures, origin: int, *, keep: float) -> Figures:
    """Move revenue of quarter `origin` to the next quarter, keeping `keep` times the original.

    Costs and net income stay; gross profit and operating income move with revenue, and the year's totals do not change.
    `keep` of 0 gives a quarter without revenue, below 0 a negative figure.
    """
    money = {name: values.copy() for name, values in figures.money.items()}
    moved = int(np.rint(figures.money["revenue"][origin] * (1 - keep) / 1000)) * 1000
    for name in ("revenue", "gross_profit", "operating_income"):
        money[name][origin] -= moved
        money[name][origin + 1] += moved
    for axis in (PRODUCT, GEOGRAPHY):
        names = [name for name in money if name.startswith(f"{axis}:")]
        before = int(figures.money["revenue"][origin])
        left = moved
        for name in names:
            # The last part takes the rest, so that parts still add up to the total.
            part = left if name == names[-1] else int(np.rint(money[name][origin] * (moved / before) / 1000)) * 1000
            money[name][origin] -= part
            money[name][origin + 1] += part
            left -= part
    return replace(figures, money=money)


def _equity(traits: Traits, facts: Fundamentals, first: int, fiscal: NDArray[np.int_], income: Floats) -> Floats:
    """Return equity at quarter-ends: published at year-ends, retained earnings in between."""
    equity = np.empty(len(fiscal))
    year_ends = facts.balances["equity"]
    opening = float(
        year_ends[0] - facts.annual["netIncome"][0] + facts.annual["dividendsPaid"][0] + facts.annual["buybacks"][0]
    )
    for number, year in enumerate(sorted(set(fiscal.tolist()))):
        rows = np.flatnonzero(fiscal == year)
        earned = np.cumsum(income[rows])
        if number < len(year_ends):
            paid = float(facts.annual["dividendsPaid"][number] + facts.annual["buybacks"][number])
            equity[rows] = opening + earned - thousands(paid * np.arange(1, 5) / 4)
        else:
            # In the unfinished year half of the earnings is paid out.
            equity[rows] = opening + earned - thousands(0.5 * earned)
        opening = float(equity[rows[-1]])
    return equity


def _working_capital(profile: Sector, revenue: Floats, assets: Floats, rng: Generator) -> tuple[Floats, Floats]:
    """Draw receivables and inventory; in some years receivables outgrow revenue, as in channel stuffing."""
    count = len(revenue)
    scale = float(assets.mean() / revenue.mean())
    days = min(profile.receivables, 0.16 * scale) * _factor(rng, count, 0.13, 0.4)
    inventory = min(profile.inventory, 0.12 * scale) * _factor(rng, count, 0.10, 0.6)
    for start in np.flatnonzero(rng.random(count) < 0.065):
        days[start : start + int(rng.integers(2, 5))] *= on_grid(rng.uniform(1.5, 2.4), 3)
    receivables = np.minimum(revenue * days, 0.34 * assets)
    return thousands(receivables), thousands(np.minimum(revenue * inventory, 0.2 * assets))


def _segments(revenue: Whole, parts: int, rng: Generator) -> list[Whole]:
    """Split revenue into parts with a changing mix; the first takes the rounding, so that they add up exactly."""
    count = len(revenue)
    weights = np.array([_factor(rng, count, 0.35, 0.97) * _factor(rng, count, 0.05, 0.2) for _ in range(parts)])
    weights *= np.exp(np.round(0.5 * rng.standard_normal((parts, 1)), 6))
    remaining = [thousands(revenue * weight).astype(np.int64) for weight in weights[1:] / weights.sum(axis=0)]
    return [reduce(np.subtract, remaining, revenue), *remaining]


def _centred_mean(values: Floats) -> Floats:
    """Return the mean over five quarters: expenses follow the level, not the season."""
    padded = np.pad(values, 2, mode="edge")
    return np.convolve(padded, np.full(5, 0.2), mode="valid")


def _wander(rng: Generator, count: int, scale: float, persistence: float) -> Floats:
    """Draw a stationary first-order autoregression with standard deviation `scale`, on a grid of 1e-6."""
    shocks = np.clip(rng.standard_normal(count), -3, 3) * (1 - persistence**2) ** 0.5
    path = np.empty(count)
    level = float(np.clip(rng.standard_normal(), -3, 3))
    for i, shock in enumerate(shocks.tolist()):
        level = persistence * level + shock
        path[i] = level
    return np.round(scale * path, 6)


def _factor(rng: Generator, count: int, scale: float, persistence: float) -> Floats:
    """Return exp of `_wander`, rounded because exponentials differ in the last bit between libraries."""
    factors: Floats = np.exp(_wander(rng, count, scale, persistence))
    return np.round(factors, 6)
