"""What makes a stress episode medium or hard: sensitivities to estimate, options, liquidity, correlations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from finskillbench.arrays import FACTORS, Floats, Integers
from finskillbench.domains.risk.inputs import OptionInput, ScenarioInput
from finskillbench.domains.risk.objects.scenarios import REPLAY, ScenarioSet
from finskillbench.domains.risk.objects.stress import StressPair
from finskillbench.domains.risk.shared import factor_exposures, holdings
from finskillbench.engines.risk.full_stress import overlay_from, stress, with_estimated_betas
from finskillbench.engines.risk.portfolio import Market, required
from finskillbench.engines.risk.stress import StressResult, scenario_from

EASY, MEDIUM, HARD = "easy", "medium", "hard"
PROXIES: Mapping[str, str] = {
    "Healthcare": "Consumer Defensive",
    "Consumer Defensive": "Healthcare",
    "Communication Services": "Technology",
    "Industrials": "Basic Materials",
    "Basic Materials": "Industrials",
}
"""Sectors whose sensitivity may be missing, none of which a scenario's story is about, and where it is taken from."""
SMALL, LARGE = 18, 22
"""Least holdings of a hard portfolio without short positions, and most of an easy one."""
MISSING = {MEDIUM: (1, 3), HARD: (2, 4)}
"""Holdings without betas: at least, and fewer than."""
MOVED = 2e-3
"""A loss, a decimal of NAV, that a missing number must be about: a smaller one might as well be 0."""
LEAST_WIDENING, WIDENING_PER_FALL = 40.0, 3.0
"""Spreads widen by so many basis points, and by so many more for each per cent that the market falls."""
LEAST_SHIFT, SHIFT_PER_FALL, MOST_SHIFT = 0.1, 0.01, 0.6
"""The same of the part of its distance to 1 by which every correlation moves, and the most of it."""
_NOTIONAL = {MEDIUM: (0.4, 0.7), HARD: (0.5, 0.8)}
_SOLD = (0.6, 0.9)
"""Part of the notional that a put spread sells."""
_NEAR, _FAR = (0.93, 1.0), (0.75, 0.87)
"""Strikes of a put near the market, and of one far below it, as parts of the index."""
_YEARS = (0.25, 0.75)
_AT_THE_MONEY = (0.15, 0.24)
_SKEW = (0.2, 0.35)
"""Volatility by which a put whose strike is lower by 1 is dearer."""
_RISE, _RISE_PER_FALL = 0.02, (0.5, 0.9)
"""Volatility added under stress, and for each unit by which the market falls."""


@dataclass(frozen=True, eq=False)
class StressCase:
    """A portfolio under a scenario with what its tier adds; `market` holds the betas that are estimated.

    `missing` are the names whose betas the task does not give.
    """

    pair: StressPair
    tier: str
    scenario: ScenarioInput
    market: Market
    missing: tuple[str, ...] = ()
    overlay: tuple[OptionInput, ...] = ()

    @property
    def exposures(self) -> dict[str, dict[str, float]]:
        """The betas that the task gives."""
        return {name: row for name, row in factor_exposures(self.market).items() if name not in self.missing}

    @property
    def decisions(self) -> int:
        """Numbers that have to be found or heeded beside the holdings' own."""
        closed = holdings(self.pair.case) if "spread_widening_bp" in self.scenario else 0
        return len(self.missing) + len(self.scenario.get("sector_proxies", {})) + len(self.overlay) + closed

    @property
    def result(self) -> StressResult:
        """What the scenario does."""
        options = overlay_from({"portfolio": {"option_overlay": list(self.overlay)}})
        return stress(self.pair.case.portfolio, options, scenario_from(self.scenario), self.market)


def as_stated(pair: StressPair) -> StressCase:
    """A pair with what its scenario states and nothing else; hard where that is more than shocks."""
    wider = "spread_widening_bp" in pair.scenario or "correlation_shift" in pair.scenario
    return StressCase(pair, HARD if wider else EASY, pair.scenario, pair.case.market)


def tiers_of(pairs: list[StressPair], rng: np.random.Generator) -> list[tuple[StressPair, str]]:
    """Each pair with its tier, by lot but that no small portfolio is hard and no large one easy.

    Short positions and a scenario that moves correlations are hard.
    """
    levels = (EASY, MEDIUM, HARD)
    drawn = rng.integers(len(levels), size=len(pairs)).tolist()

    def tier(pair: StressPair, at: int) -> str:
        if as_stated(pair).tier == HARD or (pair.case.portfolio.weights < 0).any():
            return HARD
        names = holdings(pair.case)
        return levels[min(max(at, int(names > LARGE)), 1 + int(names >= SMALL))]

    return [(pair, tier(pair, at)) for pair, at in zip(pairs, drawn, strict=True)]


def at_tier(pair: StressPair, tier: str, scenarios: ScenarioSet, rng: np.random.Generator) -> StressCase | None:
    """A pair at a tier: medium lacks betas and a sensitivity and has options, hard also moves spreads and correlations.

    None where nothing that is held would be worth estimating.
    """
    if tier == EASY:
        return as_stated(pair)
    market, scenario = pair.case.market, pair.scenario
    held, proxies = _estimable(pair, rng), _proxied(pair)
    count = int(rng.integers(*MISSING[tier]))
    if len(held) < count or not proxies:
        return None
    missing = _spread(market, held, count)
    known = {name: row for name, row in factor_exposures(market).items() if name not in missing}
    index = dict(zip(market.tickers, required(market.benchmark, "benchmark weights").tolist(), strict=True))
    sectors = dict(zip(market.tickers, market.sectors, strict=True))
    full = with_estimated_betas({"sector_mapping": sectors, "factor_exposures": known, "benchmark_weights": index})
    betas = np.array([[full["factor_exposures"][name][factor] for factor in FACTORS] for name in market.tickers])
    market = replace(market, betas=betas)
    scenario = scenarios.with_proxies(scenario, market, proxies)
    return StressCase(
        pair,
        tier,
        moved(scenario) if tier == HARD else scenario,
        market,
        tuple(missing),
        _options(tier, max(0.0, -scenario["factor_shocks"]["mkt_rf"]), rng),
    )


def _estimable(pair: StressPair, rng: np.random.Generator) -> Integers:
    """Holdings in a random order whose betas matter and whose sector has other names."""
    market, weights = pair.case.market, pair.case.portfolio.weights
    moves = np.abs(weights * (market.betas @ _shocks(pair.scenario)))
    return rng.permutation(np.flatnonzero((moves >= MOVED) & (_peers(market) > 1)))


def _peers(market: Market) -> Floats:
    return market.membership @ market.membership.sum(axis=0)


def _shocks(scenario: ScenarioInput) -> Floats:
    return np.array([scenario["factor_shocks"][factor] for factor in FACTORS])


def _spread(market: Market, held: Integers, count: int) -> list[str]:
    """So many of the holdings, of different sectors, so that each sector keeps names with betas."""
    chosen: dict[str, str] = {}
    order: list[int] = held.tolist()
    for at in order:
        if len(chosen) < count:
            chosen.setdefault(market.sectors[at], market.tickers[at])
    return sorted(chosen.values())


def _proxied(pair: StressPair) -> dict[str, str]:
    """The sector whose sensitivity moves the portfolio most of those that may be missing; none where that is little."""
    market, given = pair.case.market, pair.scenario["sector_sensitivities"]
    totals = dict(zip(market.sector_names, (pair.case.portfolio.weights @ market.membership).tolist(), strict=True))
    moves = {
        sector: abs(totals.get(sector, 0.0) * given[proxy])
        for sector, proxy in PROXIES.items()
        if given.keys() >= {sector, proxy}
    }
    largest = max(moves, key=lambda sector: moves[sector], default=None)
    return {} if largest is None or moves[largest] < MOVED / 2 else {largest: PROXIES[largest]}


def _options(tier: str, fall: float, rng: np.random.Generator) -> tuple[OptionInput, ...]:
    """A put on the market, or of a hard case a put spread; the more the market falls, the more volatility rises."""
    notional = float(rng.uniform(*_NOTIONAL[tier]))
    years, level, skew = (float(rng.uniform(*within)) for within in (_YEARS, _AT_THE_MONEY, _SKEW))
    rise = _RISE + fall * float(rng.uniform(*_RISE_PER_FALL))

    def put(name: str, amount: float, strikes: tuple[float, float]) -> OptionInput:
        strike = round(float(rng.uniform(*strikes)), 2)
        implied = round(level + skew * (1.0 - strike), 3)
        return {
            "option": name,
            "notional": round(amount, 3),
            "strike": strike,
            "years": round(years, 2),
            "implied_volatility": implied,
            "stressed_volatility": round(implied + rise, 3),
        }

    bought = put("index put bought", notional, _NEAR)
    if tier == MEDIUM:
        return (bought,)
    return bought, put("index put sold", -notional * float(rng.uniform(*_SOLD)), _FAR)


def moved(scenario: ScenarioInput) -> ScenarioInput:
    """A scenario with wider spreads and higher correlations: as it states them, else by the fall of the market."""
    fall = max(0.0, -100 * scenario["factor_shocks"]["mkt_rf"])
    widening = scenario.get("spread_widening_bp", round(LEAST_WIDENING + WIDENING_PER_FALL * fall, 1))
    shift = scenario.get("correlation_shift", round(min(MOST_SHIFT, LEAST_SHIFT + SHIFT_PER_FALL * fall), 3))
    words = f"Bid-ask spreads widen by {widening:g} bp"
    if "correlation_shift" not in scenario:
        words += f", and every correlation moves {100 * shift:.3g} % of its distance to 1"
    if scenario["type"] == REPLAY:
        words += "; this is assumed by the size of the fall, not measured"
    return cast(
        "ScenarioInput",
        {
            **scenario,
            "description": f"{scenario['description']} {words}.",
            "spread_widening_bp": widening,
            "correlation_shift": shift,
        },
    )
