"""The 200 portfolios: five types whose planted risk the engines find, many of them inside their home mandate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.domains.building import BuildContext, permuted
from finskillbench.domains.risk.catalogs import RiskSettings
from finskillbench.domains.risk.inputs import PortfolioInput
from finskillbench.domains.risk.objects.mandates import TIERS, RiskDate
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
    Attempt,
    PlannedPortfolio,
    draw_portfolio,
)
from finskillbench.engines.risk.batch import Batch
from finskillbench.engines.risk.exposures import (
    days_to_liquidate,
    illiquid_share,
)
from finskillbench.engines.risk.mandate import Kind, Mandate
from finskillbench.engines.risk.monitor import measure
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, Market, Portfolio
from finskillbench.engines.risk.stress import apply_all
from finskillbench.errors import SourceError
from finskillbench.panels.market.regimes import OWN as OWN_DATE

OWN = "own"
"""The type of a portfolio that a user brought: nothing is planted in it."""
_ATTEMPTS = 48
_DISCIPLINED = 24
"""Attempts after which a portfolio that leaves no room for discipline is drawn without it."""
_TRIES_PER_HOME = 8
"""Draws for one home mandate before the next one is tried."""
_SLOWEST = 3
"""So many of a liquidity-stressed portfolio's least liquid positions take more than ten days to sell."""


@dataclass(frozen=True, eq=False)
class PortfolioCase:
    """One portfolio of the pool.

    Attributes
    ----------
    portfolio_id : neutral; type, regime : what it is, never shown to an agent.
    home : the mandate that it is run under; empty of a user's book that names none, until one is found.
    trades : (n,) signed weight changes already made this month.
    """

    portfolio_id: str
    type: str
    regime: str
    as_of: date
    market: Market
    portfolio: Portfolio
    trades: Floats
    home: str

    def to_json(self) -> PortfolioInput:
        """The input field `portfolio`: holdings in ticker order, as signed fractions of NAV."""
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


def planned_portfolios(context: BuildContext, settings: RiskSettings) -> list[PlannedPortfolio]:
    """The 200 portfolios to draw: each type evenly over the regimes, each regime's over its dates; tiers take turns."""
    by_regime: dict[str, list[date]] = {}
    for as_of in context.panels.risk_dates:
        if context.panels.regimes[as_of] == OWN_DATE:
            continue
        by_regime.setdefault(context.panels.regimes[as_of], []).append(as_of)
    count = settings["portfolios_per_type"]
    planned: list[PlannedPortfolio] = []
    for offset, kind in enumerate(TYPES):
        names = list(by_regime)
        names = names[offset % len(names) :] + names[: offset % len(names)]
        shares = {name: len(range(place_, count, len(names))) for place_, name in enumerate(names)}
        for name, share in shares.items():
            dates = permuted(by_regime[name], context.generator("risk", "dates", kind, name))
            for number in range(share):
                tier = TIERS[len(planned) % len(TIERS)]
                planned.append(PlannedPortfolio(kind, name, dates[number % len(dates)], number, tier))
    return planned


def draw(
    context: BuildContext, plan: PlannedPortfolio, dates: Mapping[date, RiskDate], settings: RiskSettings
) -> PortfolioCase:
    """A planned portfolio; on another date of its regime where it must.

    Raises
    ------
    SourceError : where no date of the regime has such a portfolio.
    """
    others = [day for day, regime in context.panels.regimes.items() if regime == plan.regime and day != plan.as_of]
    for as_of in (plan.as_of, *others):
        case = _draw_at(context, replace(plan, as_of=as_of), dates[as_of], settings)
        if case is not None:
            return case
    raise SourceError(
        f"panels at {plan.as_of}",
        f"the {len(dates[plan.as_of].market.tickers)} names allow no {plan.type} portfolio, there or elsewhere in the "
        f"regime {plan.regime}",
        remedy="add names to the universe, or with own mandates by --catalog looser ones",
    )


def _draw_at(
    context: BuildContext, plan: PlannedPortfolio, at: RiskDate, settings: RiskSettings
) -> PortfolioCase | None:
    """Draw until the engines find the planted risk and nothing hangs on rounding; None where no draw succeeds."""
    homes = _homes(context, plan, at)
    own = context.generator("risk", "discipline", plan.type, plan.regime, plan.number).random()
    disciplined = own < settings["about_limits"]["disciplined"]
    for number in range(_ATTEMPTS):
        rng = context.generator("risk", plan.type, plan.regime, plan.number, number)
        name = homes[number // _TRIES_PER_HOME % len(homes)]
        home = at.mandates[name].mandate
        drawn = draw_portfolio(
            Attempt(rng, plan, at, home, settings, number / _ATTEMPTS, disciplined and number < _DISCIPLINED)
        )
        if drawn is None:
            continue
        portfolio, trades = drawn
        facts = _facts(portfolio, at, home)
        if _planted(plan, facts) and _clear(portfolio, at, home, settings["grey_band"]):
            return PortfolioCase("", plan.type, plan.regime, plan.as_of, at.market, portfolio, trades, name)
    return None


def _homes(context: BuildContext, plan: PlannedPortfolio, at: RiskDate) -> list[str]:
    """The mandates in the order in which they are tried: those of the planned tier first."""
    rng = context.generator("risk", "home", plan.type, plan.regime, plan.number)
    names = [
        name
        for name, fitted in at.mandates.items()
        if plan.type != MANDATE_VIOLATING or len(fitted.mandate.constraints) > LEAST["failing"]
    ]
    return sorted(permuted(names, rng), key=lambda name: at.mandates[name].tier != plan.tier)


def _facts(portfolio: Portfolio, at: RiskDate, home: Mandate) -> dict[str, float]:
    """What the engines say of every planted risk."""
    market = at.market
    tilts = np.abs(portfolio.weights @ market.betas - NEUTRAL)
    pnl = apply_all(np.vstack([portfolio.weights, np.asarray(market.benchmark)]), at.scenarios, market)[0]
    worst = int(np.argmin(pnl[0]))
    days = np.sort(days_to_liquidate(portfolio, market))[::-1]
    measures = measure(portfolio, home, market)
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


def _planted(plan: PlannedPortfolio, facts: Mapping[str, float]) -> bool:
    wanted = {
        CONCENTRATED: ("sector", "name"),
        FACTOR_TILTED: ("tilt",),
        LIQUIDITY_STRESSED: ("illiquid", "days"),
        MANDATE_VIOLATING: ("failing",),
        STRESS_VULNERABLE: ("worse",),
    }[plan.type]
    return all(facts[name] >= LEAST[name] for name in wanted)


def clear_of_limits(portfolio: Portfolio, mandate: Mandate, market: Market, band: float) -> bool:
    """Whether no constraint's status hangs on less than `band`; whole names are counted, not measured."""
    return all(
        abs(one.excess) >= band for one in measure(portfolio, mandate, market) if one.kind is not Kind.NAME_COUNT
    )


def _clear(portfolio: Portfolio, at: RiskDate, home: Mandate, band: float) -> bool:
    """Whether the portfolio is one, and no status of its home mandate hangs on rounding."""
    sizes = np.abs(portfolio.weights[portfolio.weights != 0])
    if sizes.min() < SMALLEST - band / 2 or portfolio.cash < 0 or np.diff(np.sort(sizes)[-2:])[0] < band:
        return False
    return clear_of_limits(portfolio, home, at.market, band)


def batched(cases: Sequence[PortfolioCase]) -> tuple[Batch, Integers]:
    """The distinct ones of m cases side by side, sorted by date, and (m,) the row of each case."""
    distinct = sorted({case.portfolio_id: case for case in cases}.values(), key=lambda case: case.as_of)
    row = {case.portfolio_id: place for place, case in enumerate(distinct)}
    batch = Batch.of([case.portfolio for case in distinct], [case.market for case in distinct])
    return batch, np.array([row[case.portfolio_id] for case in cases])
