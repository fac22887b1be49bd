"""Quarterly and annual figures of a fictional company, consistent with each other and with its price."""

from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from finskillbench.arrays import Floats
from finskillbench.sources.synthetic.calendar import on_grid, round_to, session_ordinals, thousands
from finskillbench.sources.synthetic.market.companies import Traits

_TRAILING = 252
_LOWEST_PE, _HIGHEST_PE = 13.0, 28.0

_BAD_SPELLS, _SPELL_QUARTERS = 0.5, (7, 17)
"""Share of companies with a series of loss quarters, and its length."""
_WRITE_OFFS = 0.07
"""Share of quarters whose write-offs exceed earnings."""
_TAX_RELIEF = 0.21


@dataclass(frozen=True, slots=True)
class Fundamentals:
    """Exact published figures: whole dollars and shares, cents per share.

    quarterly, annual : field -> values at `quarter_ends` / `annual_ends`; balances and diluted_shares at `annual_ends`.
        Shares and per-share figures are restated for a split as far back as the first later report (three annual, two
        quarterly years).
    shares : average diluted shares of each quarter, split-adjusted; charges : pre-tax write-offs of each quarter.
        Neither is in the derived statements.
    """

    quarter_ends: tuple[date, ...]
    quarterly: dict[str, Floats]
    annual_ends: tuple[date, ...]
    annual: dict[str, Floats]
    balances: dict[str, Floats]
    diluted_shares: Floats
    latest_shares: tuple[date, float]
    shares: Floats
    charges: Floats


def draw_fundamentals(
    traits: Traits,
    price: Floats,
    days: tuple[date, ...],
    quarters: tuple[date, ...],
    shares: float,
    rng: np.random.Generator,
) -> Fundamentals:
    """Draw figures of a company with `shares` (split-adjusted) around 2024 and the given (T,) prices.

    Trailing earnings are last year's average price over the company's multiple, adjusted by the earnings surprise, at
    13 to 28 times the quarter-end price. Some 15 % of the quarters are losses: longer spells, and single write-offs.
    """
    at = np.clip(np.searchsorted(session_ordinals(), [q.toordinal() for q in quarters], side="right") - 1, 0, None)
    total = np.concatenate([[0.0], np.cumsum(price)])
    low = np.clip(at + 1 - _TRAILING, 0, None)
    usual = (total[at + 1] - total[low]) / (at + 1 - low)
    years = np.array([q.year + q.month / 12 for q in quarters])
    count = round_to(shares * (1 + traits.share_growth) ** (years - 2025.0), -4)
    seasons: Floats = np.clip(0.05 * rng.standard_normal(4), -0.12, 0.12)
    season = 1 + round_to(seasons, 3)
    season = (season / season.sum() * 4)[np.array([q.month // 3 - 1 for q in quarters])]
    trend = usual * count / traits.price_earnings
    value = price[at] * count
    trailing: Floats = np.clip(trend * (1 + 0.04 * traits.surprises), value / _HIGHEST_PE, value / _LOWEST_PE)
    usually = thousands(trailing * season / 4)
    revenue = thousands(np.maximum(trend * season / 4 / traits.net_margin, usually / 0.45))
    earned, charges = _troubles(usually, rng)
    income = earned - thousands(charges * (1 - _TAX_RELIEF))
    fiscal = np.array([q.year + (q.month > traits.fiscal_month) for q in quarters])
    split_year = None
    if traits.split is not None and traits.split[0] < len(days):
        day = days[traits.split[0]]
        split_year = day.year + (day.month > traits.fiscal_month)
    ratio = traits.split[1] if traits.split is not None else 1.0
    old_quarters = fiscal < split_year - 1 if split_year is not None else np.zeros(len(quarters), dtype=bool)
    reported = np.where(old_quarters, round_to(count / ratio, -4), count)
    operating = thousands(earned * 1.28) - charges
    quarterly = {
        "revenue": revenue,
        "netIncome": income,
        "eps": round_to(income / reported, 2),
        "opIncome": operating,
        "ocf": thousands(earned * 1.2 + revenue * 0.02),
    }
    annual_ends, annual, balances, diluted = _annual(
        traits, quarters, fiscal, quarterly, usually, count, split_year, ratio
    )
    latest = (days[-10], on_grid(count[-1], -4))
    return Fundamentals(quarters, quarterly, annual_ends, annual, balances, diluted, latest, count, charges)


def _troubles(usually: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return earnings before write-offs, with loss spells, and the pre-tax write-offs."""
    count = len(usually)
    spell, first, length = (
        rng.random() < _BAD_SPELLS,
        int(rng.integers(2, count - 6)),
        int(rng.integers(*_SPELL_QUARTERS)),
    )
    depth = round_to(rng.uniform(0.1, 0.5, size=count), 3)
    size = round_to(rng.uniform(1.5, 3.0, size=count), 3)
    at = np.arange(count)
    bad = spell & (at >= first) & (at < first + length)
    written_off = (rng.random(count) < _WRITE_OFFS) & ~bad
    return np.where(bad, -thousands(usually * depth), usually), np.where(written_off, thousands(usually * size), 0.0)


def _annual(
    traits: Traits,
    quarters: tuple[date, ...],
    fiscal: NDArray[np.int64],
    quarterly: dict[str, Floats],
    usually: Floats,
    count: Floats,
    split_year: int | None,
    ratio: float,
) -> tuple[tuple[date, ...], dict[str, Floats], dict[str, Floats], Floats]:
    """Return figures of whole fiscal years; a flow is the sum of its four quarters to the dollar."""
    members = [np.flatnonzero(fiscal == year) for year in sorted(set(fiscal.tolist()))]
    members = [rows for rows in members if len(rows) == 4]
    ends = tuple(quarters[int(rows[-1])] for rows in members)
    flow = {name: np.array([quarterly[name][r].sum() for r in members]) for name in quarterly if name != "eps"}
    years = np.array([fiscal[r[0]] for r in members])
    adjusted = round_to(np.array([count[r].mean() for r in members]), -4)
    old = years < split_year - 2 if split_year is not None else np.zeros(len(members), dtype=bool)
    diluted = np.where(old, round_to(adjusted / ratio, -4), adjusted)
    income, revenue, operating = flow["netIncome"], flow["revenue"], flow["opIncome"]
    usual = np.array([usually[r].sum() for r in members])
    payout = traits.dividend_yield * traits.price_earnings  # as a share of earnings, since yield = payout / multiple
    distributed = np.maximum(income, 0.0)
    per_share = round_to(payout * distributed / diluted, 2)
    dividends = thousands(np.minimum(per_share * diluted, distributed))
    equity, buybacks = _book_equity(traits, income, dividends, usual)
    gross = thousands(np.maximum(usual * 1.28 * 1.9, revenue * 0.35))
    gross = np.minimum(gross, thousands(revenue * 0.92))
    research = thousands((gross - usual * 1.28) * 0.3)
    capex = thousands(revenue * 0.05)
    annual = {
        "revenue": revenue,
        "costOfRevenue": revenue - gross,
        "grossProfit": gross,
        "opIncome": operating,
        "netIncome": income,
        "rnd": research,
        "sga": gross - operating - research,
        "ocf": flow["ocf"],
        "capex": capex,
        "buybacks": buybacks,
        "dividendsPaid": dividends,
        "eps": round_to(income / diluted, 2),
        "divPS": per_share,
    }
    liabilities = thousands(equity * 1.1 + revenue * 0.2)
    balances = {
        "assets": equity + liabilities,
        "liabilities": liabilities,
        "equity": equity,
        "cash": thousands(revenue * 0.12),
        "ltDebt": thousands(liabilities * 0.45),
    }
    return ends, annual, balances, diluted


def _book_equity(traits: Traits, income: Floats, dividends: Floats, usual: Floats) -> tuple[Floats, Floats]:
    """Return year-end equity, and the buybacks that move it towards the company's return on equity.

    Equity never grows by new capital, and no year buys back more than 120 % of its earnings.
    """
    equity, buybacks = np.empty(len(income)), np.empty(len(income))
    book_equity = on_grid(usual[0] / traits.return_on_equity, -3)
    for i, earned in enumerate(income):
        spare = book_equity + earned - dividends[i] - usual[i] / traits.return_on_equity
        buybacks[i] = thousands(np.clip(spare, 0.0, 1.2 * max(earned, 0.0)))
        book_equity = book_equity + earned - dividends[i] - buybacks[i]
        equity[i] = book_equity
    return equity, buybacks
