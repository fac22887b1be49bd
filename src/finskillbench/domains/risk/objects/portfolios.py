"""Pool of 200 portfolios of five types, with planted risks that the engines confirm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.domains.building import BuildContext, permuted
from finskillbench.domains.risk.catalogs import RiskSettings
from finskillbench.domains.risk.inputs import PortfolioInput
from finskillbench.domains.risk.objects import recipes
from finskillbench.domains.risk.objects.mandates import TIERS, RiskDate
from finskillbench.engines.risk.batch import Batch
from finskillbench.engines.risk.exposures import days_to_liquidate, illiquid_share
from finskillbench.engines.risk.mandate import ConstraintKind, RiskMandate
from finskillbench.engines.risk.monitor import check_constraints
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, MarketSnapshot, Portfolio
from finskillbench.engines.risk.stress import apply_all
from finskillbench.errors import SourceError
from finskillbench.panels.market.regimes import USER_REGIME as OWN_DATE

USER_BOOK = "own"
"""Type of a user's portfolio, without planted risk."""
_ATTEMPTS = 48
_DISCIPLINED = 24
"""Attempts before a disciplined portfolio is drawn without discipline."""
_TRIES_PER_HOME = 8
"""Draws per home mandate."""
_SLOWEST = 3
"""Number of positions of a liquidity-stressed portfolio that take more than ten days to sell."""


@dataclass(frozen=True, eq=False)
class PortfolioCase:
    """Portfolio of the pool.

    portfolio_id : neutral name.
    type, regime : hidden from agents.
    home : id of its mandate; empty for a user's book until one is found.
    trades : (n,) signed weight changes already made this month.
    """

    portfolio_id: str
    type: str
    regime: str
    as_of: date
    market: MarketSnapshot
    portfolio: Portfolio
    trades: Floats
    home: str

    def to_json(self) -> PortfolioInput:
        """Return the input field `portfolio`: holdings in ticker order, fractions of NAV."""
        return {
            "portfolio_id": self.portfolio_id,
            "holdings": [
                {"symbol": ticker, "weight": float(weight)}
                for ticker, weight in zip(self.market.tickers, self.portfolio.weights, strict=True)
                if abs(weight) > ZERO_WEIGHT
            ],
            "cash_weight": self.portfolio.cash,
            "total_nav": self.portfolio.nav,
            "trades_this_month": {
                ticker: float(trade)
                for ticker, trade in zip(self.market.tickers, self.trades, strict=True)
                if trade != 0
            },
        }


def planned_portfolios(context: BuildContext, settings: RiskSettings) -> list[recipes.PlannedPortfolio]:
    """Plan the pool: types spread evenly over regimes and dates, tiers in rotation."""
    by_regime: dict[str, list[date]] = {}
    for as_of in context.panels.risk_dates:
        if context.panels.regimes[as_of] == OWN_DATE:
            continue
        by_regime.setdefault(context.panels.regimes[as_of], []).append(as_of)
    count = settings["portfolios_per_type"]
    planned: list[recipes.PlannedPortfolio] = []
    for offset, kind in enumerate(recipes.TYPES):
        names = list(by_regime)
        names = names[offset % len(names) :] + names[: offset % len(names)]
        shares = {name: len(range(place_, count, len(names))) for place_, name in enumerate(names)}
        for name, share in shares.items():
            dates = permuted(by_regime[name], context.generator("risk", "dates", kind, name))
            for number in range(share):
                tier = TIERS[len(planned) % len(TIERS)]
                planned.append(recipes.PlannedPortfolio(kind, name, dates[number % len(dates)], number, tier))
    return planned


def draw_portfolio_case(
    context: BuildContext, plan: recipes.PlannedPortfolio, dates: Mapping[date, RiskDate], settings: RiskSettings
) -> PortfolioCase:
    """Draw a planned portfolio, if necessary on another date of its regime; SourceError if none allows it."""
    other_dates = [day for day, regime in context.panels.regimes.items() if regime == plan.regime and day != plan.as_of]
    for as_of in (plan.as_of, *other_dates):
        case = _draw_at(context, replace(plan, as_of=as_of), dates[as_of], settings)
        if case is not None:
            return case
    raise SourceError(
        f"panels at {plan.as_of}",
        f"the {len(dates[plan.as_of].market.tickers)} names allow no {plan.type} portfolio on any date of the "
        f"regime {plan.regime}",
        remedy="add names to the universe, take another --seed, or supply looser mandates with --catalog",
    )


def _draw_at(
    context: BuildContext, plan: recipes.PlannedPortfolio, at: RiskDate, settings: RiskSettings
) -> PortfolioCase | None:
    """Draw until the engines confirm the planted risk clear of rounding; None without success."""
    homes = _homes(context, plan, at)
    chance = context.generator("risk", "discipline", plan.type, plan.regime, plan.number).random()
    disciplined = chance < settings["about_limits"]["disciplined"]
    for number in range(_ATTEMPTS):
        rng = context.generator("risk", plan.type, plan.regime, plan.number, number)
        name = homes[number // _TRIES_PER_HOME % len(homes)]
        home = at.mandates[name].mandate
        drawn = recipes.draw_portfolio(
            recipes.DrawAttempt(
                rng, plan, at, home, settings, number / _ATTEMPTS, disciplined and number < _DISCIPLINED
            )
        )
        if drawn is None:
            continue
        portfolio, trades = drawn
        facts = _facts(portfolio, at, home)
        if _planted(plan, facts) and _clear(portfolio, at, home, settings["grey_band"]):
            return PortfolioCase("", plan.type, plan.regime, plan.as_of, at.market, portfolio, trades, name)
    return None


def _homes(context: BuildContext, plan: recipes.PlannedPortfolio, at: RiskDate) -> list[str]:
    """Return the mandates in order of trial, the planned tier first."""
    rng = context.generator("risk", "home", plan.type, plan.regime, plan.number)
    names = [
        name
        for name, fitted in at.mandates.items()
        if plan.type != recipes.MANDATE_VIOLATING or len(fitted.mandate.constraints) > recipes.LEAST["failing"]
    ]
    return sorted(permuted(names, rng), key=lambda name: at.mandates[name].tier != plan.tier)


def _facts(portfolio: Portfolio, at: RiskDate, home: RiskMandate) -> dict[str, float]:
    """Measure every planted risk with the engines."""
    market = at.market
    tilts = np.abs(portfolio.weights @ market.betas - recipes.NEUTRAL)
    pnl = apply_all(np.vstack([portfolio.weights, np.asarray(market.benchmark)]), at.scenarios, market)[0]
    worst = int(np.argmin(pnl[0]))
    days = np.sort(days_to_liquidate(portfolio, market))[::-1]
    measures = check_constraints(portfolio, home, market)
    return {
        "sector": float((portfolio.weights @ market.membership).max()),
        "name": float(np.abs(portfolio.weights).max()),
        "tilt": float(tilts.max()),
        "illiquid": illiquid_share(portfolio, market),
        "days": float(days[min(_SLOWEST, len(days)) - 1]),
        "worst_loss": -float(pnl[0, worst]),
        "worse": float(pnl[1, worst] - pnl[0, worst]),
        "failing": float(sum(not one.passed for one in measures)),
    }


def _planted(plan: recipes.PlannedPortfolio, facts: Mapping[str, float]) -> bool:
    wanted = {
        recipes.CONCENTRATED: ("sector", "name"),
        recipes.FACTOR_TILTED: ("tilt",),
        recipes.LIQUIDITY_STRESSED: ("illiquid", "days"),
        recipes.MANDATE_VIOLATING: ("failing",),
        recipes.STRESS_VULNERABLE: ("worse",),
    }[plan.type]
    return all(facts[name] >= recipes.LEAST[name] for name in wanted)


def clear_of_limits(portfolio: Portfolio, mandate: RiskMandate, market: MarketSnapshot, band: float) -> bool:
    """Check that no status has a margin below `band`, without name_count."""
    return all(
        abs(one.excess) >= band
        for one in check_constraints(portfolio, mandate, market)
        if one.kind is not ConstraintKind.NAME_COUNT
    )


def _clear(portfolio: Portfolio, at: RiskDate, home: RiskMandate, band: float) -> bool:
    sizes = np.abs(portfolio.weights[portfolio.weights != 0])
    if sizes.min() < recipes.SMALLEST - band / 2 or portfolio.cash < 0 or np.diff(np.sort(sizes)[-2:])[0] < band:
        return False
    return clear_of_limits(portfolio, home, at.market, band)


def batched(cases: Sequence[PortfolioCase]) -> tuple[Batch, Integers]:
    """Return the distinct cases as a batch sorted by date, and (m,) the row of each case."""
    distinct = sorted({case.portfolio_id: case for case in cases}.values(), key=lambda case: case.as_of)
    row = {case.portfolio_id: place for place, case in enumerate(distinct)}
    batch = Batch.of([case.portfolio for case in distinct], [case.market for case in distinct])
    return batch, np.array([row[case.portfolio_id] for case in cases])
