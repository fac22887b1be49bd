"""The 200 portfolios: five types whose planted risk the engines find, many of them inside their home mandate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuildContext
from finskillbench.domains.risk.objects.mandates import TIERS
from finskillbench.domains.risk.objects.recipes import (
    CONCENTRATED,
    FACTOR_TILTED,
    LEAST,
    LIQUIDITY_STRESSED,
    MANDATE_VIOLATING,
    NEUTRAL,
    SMALLEST,
    STRESS_VULNERABLE,
    TYPES,
    Setting,
    Slot,
    draw_book,
    limit_of,
)
from finskillbench.engines.risk.exposures import (
    LEAST_ILLIQUID,
    LEAST_SECTOR,
    LEAST_TILT,
    days_to_liquidate,
    illiquid_share,
    ranked,
)
from finskillbench.engines.risk.mandate import Kind, Mandate
from finskillbench.engines.risk.monitor import measure
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, Market, Portfolio
from finskillbench.engines.risk.stress import apply_all
from finskillbench.errors import SourceError

_ATTEMPTS = 48
_TRIES_PER_HOME, _TRIES_WHERE_LIKELY = 2, 4
"""Draws for one home mandate before the next one is tried; more for what is hard to sell, which fits in any."""
_SLOWEST = 3
"""So many of a liquidity-stressed portfolio's least liquid positions take more than ten days to sell."""


@dataclass(frozen=True, eq=False)
class PortfolioCase:
    """One portfolio of the pool.

    Attributes
    ----------
    portfolio_id : neutral; type, regime : what it is, never shown to an agent.
    home : the mandate that it is run under; placed : whether it was built to keep that mandate.
    trades : (n,) signed weight changes already made this month.
    facts : what the engines measure of the planted risks.
    """

    portfolio_id: str
    type: str
    regime: str
    as_of: date
    market: Market
    book: Portfolio
    trades: Floats
    home: str
    placed: bool
    facts: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """The input field `portfolio`: holdings in ticker order, as signed fractions of NAV."""
        return {
            "portfolio_id": self.portfolio_id,
            "holdings": [
                {"symbol": ticker, "weight": float(weight)}
                for ticker, weight in zip(self.market.tickers, self.book.weights, strict=True)
                if abs(weight) > ZERO_WEIGHT
            ],
            "cash_weight": self.book.cash,
            "total_nav": self.book.nav,
            "trades_this_month": {
                ticker: float(trade)
                for ticker, trade in zip(self.market.tickers, self.trades, strict=True)
                if trade != 0
            },
        }


def slots(context: BuildContext, settings: Mapping[str, Any]) -> list[Slot]:
    """The 200 portfolios to draw: each type evenly over the regimes, each regime's over its dates.

    A share of each type is placed inside its home mandate (`inside_home_share`); the tiers take turns.
    """
    by_regime: dict[str, list[date]] = {}
    for as_of in context.panels.risk_dates:
        by_regime.setdefault(context.panels.regimes[as_of], []).append(as_of)
    count = settings["portfolios_per_type"]
    planned = []
    for offset, kind in enumerate(TYPES):
        names = list(by_regime)
        names = names[offset % len(names) :] + names[: offset % len(names)]
        shares = {name: len(range(place_, count, len(names))) for place_, name in enumerate(names)}
        inside = 0
        for name, share in shares.items():
            rng = context.generator("risk", "dates", kind, name)
            dates = [by_regime[name][i] for i in rng.permutation(len(by_regime[name]))]
            for number in range(share):
                # Spread over the numbers, so that each regime has its share inside.
                part = settings["inside_home_share"].get(kind, 0.0)
                placed = int((number + offset + 1) * part) > int((number + offset) * part)
                # What is hard to sell may be held under any mandate; the other risks hardly fit in a hard one.
                turns = ("hard", "medium", "hard") if kind == LIQUIDITY_STRESSED else TIERS
                tier = turns[inside % len(turns)]
                inside += placed or kind == MANDATE_VIOLATING
                nearly = not placed and rng.random() < settings["nearly_share"]
                planned.append(Slot(kind, name, dates[number % len(dates)], number, placed, nearly, tier))
    return planned


def draw(context: BuildContext, slot: Slot, at: Mapping[date, Setting], settings: Mapping[str, Any]) -> PortfolioCase:
    """The portfolio of a slot; on another date of its regime, or outside its home mandate's limits, where it must.

    Raises
    ------
    SourceError : where no date of the regime has such a portfolio.
    """
    others = [day for day, regime in context.panels.regimes.items() if regime == slot.regime and day != slot.as_of]
    for tried in dict.fromkeys((slot, replace(slot, placed=False, nearly=False))):
        for as_of in (slot.as_of, *others):
            case = _draw_at(context, replace(tried, as_of=as_of), at[as_of], settings)
            if case is not None:
                return case
    raise SourceError(
        f"panels at {slot.as_of}",
        f"the {len(at[slot.as_of].market.tickers)} names allow no {slot.type} portfolio, there or elsewhere in the "
        f"regime {slot.regime}",
        remedy="add names to the universe, or change what is planted in catalog/risk.json",
    )


def _draw_at(context: BuildContext, slot: Slot, setting: Setting, settings: Mapping[str, Any]) -> PortfolioCase | None:
    """Draw until the engines find the planted risk and nothing hangs on rounding; None where no draw succeeds."""
    homes = _homes(context, slot, setting)
    tries = _TRIES_WHERE_LIKELY if slot.type == LIQUIDITY_STRESSED else _TRIES_PER_HOME
    for attempt in range(_ATTEMPTS):
        rng = context.generator("risk", slot.type, slot.regime, slot.number, attempt)
        # Any mandate is home to a portfolio that need neither keep nor break it.
        searched = slot.placed or slot.nearly or slot.type == MANDATE_VIOLATING
        home = homes[attempt // tries % len(homes)] if searched else homes[0]
        drawn = draw_book(rng, slot, setting, setting.mandates[home].mandate, settings)
        if drawn is None:
            continue
        book, trades = drawn
        facts = _facts(book, setting, setting.mandates[home].mandate)
        if _planted(slot, facts) and _clear(book, setting, setting.mandates[home].mandate, settings["grey_band"]):
            return PortfolioCase(
                "", slot.type, slot.regime, slot.as_of, setting.market, book, trades, home, slot.placed, facts
            )
    return None


def _homes(context: BuildContext, slot: Slot, setting: Setting) -> list[str]:
    """The mandates in the order in which they are tried: those of the slot's tier first."""
    rng = context.generator("risk", "home", slot.type, slot.regime, slot.number)
    names = [name for name, fitted in setting.mandates.items() if _may_be_home(slot, fitted.mandate)]
    shuffled = [names[i] for i in rng.permutation(len(names))]
    return sorted(shuffled, key=lambda name: setting.mandates[name].tier != slot.tier)


def _may_be_home(slot: Slot, mandate: Mandate) -> bool:
    """Whether the mandate's own numbers leave room for what is planted."""
    if slot.type == MANDATE_VIOLATING:
        return len(mandate.constraints) > LEAST["failing"]
    if slot.type == CONCENTRATED and slot.placed:
        sector, name = limit_of(mandate, Kind.SECTOR_LIMIT_MAX), limit_of(mandate, Kind.POSITION_LIMIT_MAX)
        return sector > LEAST["sector"] and name > LEAST["name"]
    return True


def _facts(book: Portfolio, setting: Setting, home: Mandate) -> dict[str, float]:
    """What the engines say of every planted risk."""
    market = setting.market
    tilts = np.abs(book.weights @ market.betas - NEUTRAL)
    pnl = apply_all(np.vstack([book.weights, np.asarray(market.benchmark)]), setting.scenarios, market)[0]
    worst = int(np.argmin(pnl[0]))
    days = np.sort(days_to_liquidate(book, market))[::-1]
    measures = measure(book, home, market)
    return {
        "sector": float((book.weights @ market.membership).max()),
        "name": float(np.abs(book.weights).max()),
        "tilt": float(tilts.max()),
        "illiquid": illiquid_share(book, market),
        "days": float(days[min(_SLOWEST, len(days)) - 1]),
        "worst_loss": -float(pnl[0, worst]),
        "worse": float(pnl[1, worst] - pnl[0, worst]),
        "failing": float(sum(not one.passed for one in measures)),
    }


def _planted(slot: Slot, facts: Mapping[str, float]) -> bool:
    wanted = {
        CONCENTRATED: ("sector", "name"),
        FACTOR_TILTED: ("tilt",),
        LIQUIDITY_STRESSED: ("illiquid", "days"),
        MANDATE_VIOLATING: ("failing",),
        STRESS_VULNERABLE: ("worse",),
    }[slot.type]
    found = all(facts[name] >= LEAST[name] for name in wanted)
    if (slot.placed and facts["failing"]) or (slot.nearly and not facts["failing"]):
        return False
    return found


def clear_of_limits(book: Portfolio, mandate: Mandate, market: Market, band: float) -> bool:
    """Whether no constraint's status hangs on less than `band`; whole names are counted, not measured."""
    return all(abs(one.excess) >= band for one in measure(book, mandate, market) if one.kind is not Kind.NAME_COUNT)


def _clear(book: Portfolio, setting: Setting, home: Mandate, band: float) -> bool:
    """Whether neither a status of the home mandate nor a rank or listing of the exposures hangs on rounding."""
    market, sizes = setting.market, np.abs(book.weights[book.weights != 0])
    if sizes.min() < SMALLEST - band / 2 or book.cash < 0 or np.diff(np.sort(sizes)[-2:])[0] < band:
        return False
    tilts = np.abs(book.weights @ market.betas - NEUTRAL)
    sectors = np.sort(book.weights @ market.membership)
    listed = [*(tilts - LEAST_TILT), *(sectors - LEAST_SECTOR), illiquid_share(book, market) - LEAST_ILLIQUID]
    if np.abs(listed).min() < band or np.diff(sectors[-2:]).min(initial=1.0) < band:
        return False
    magnitudes = [one.magnitude for one in ranked(book, market, k=6)]
    if np.abs(np.diff(magnitudes)).min(initial=1.0) < band:
        return False
    return clear_of_limits(book, home, market, band)
