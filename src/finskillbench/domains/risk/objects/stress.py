"""Stress pairs, difficulty tiers of stress cases, and a draw that limits shortcut scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import numpy as np

from finskillbench.arrays import FACTORS, Floats, Integers
from finskillbench.domains.building import BuildContext, BuiltTask, draw_evenly
from finskillbench.domains.risk.inputs import OptionInput, ScenarioInput
from finskillbench.domains.risk.objects.portfolios import PortfolioCase, batched
from finskillbench.domains.risk.objects.scenarios import REPLAY, ScenarioSet
from finskillbench.domains.risk.shared import betas_by_ticker, holding_count
from finskillbench.engines.risk.full_stress import overlay_from, stress, with_estimated_betas
from finskillbench.engines.risk.portfolio import MarketSnapshot, require_field
from finskillbench.engines.risk.stress import StressResult, apply_pairs, scenario_from

LEAST_PNL = 0.005
"""Least absolute P&L of an episode; relative errors mean nothing near zero."""


@dataclass(frozen=True, eq=False)
class StressPair:
    """Portfolio under a scenario in input form; `pnl` is a fraction of NAV."""

    case: PortfolioCase
    scenario: ScenarioInput
    pnl: float

    @property
    def large_enough(self) -> bool:
        return abs(self.pnl) >= LEAST_PNL


def stress_pairs(
    context: BuildContext, cases: Sequence[PortfolioCase], scenarios: ScenarioSet, count: int
) -> tuple[StressPair, ...]:
    """Pair each portfolio with the scenarios of its date, and with severe versions up to `count`."""
    at = {case.as_of: case.market for case in cases}
    usual = {as_of: scenarios.at(as_of, market) for as_of, market in at.items()}
    severe = {as_of: scenarios.severe_at(market) for as_of, market in at.items()}
    pairs: list[tuple[PortfolioCase, ScenarioInput]] = []
    for case in cases:
        rng, severe_scenarios = context.generator("risk", "severe", case.portfolio_id), severe[case.as_of]
        extra: list[int] = rng.permutation(len(severe_scenarios))[: max(0, count - len(usual[case.as_of]))].tolist()
        pairs += [(case, scenario) for scenario in (*usual[case.as_of], *(severe_scenarios[i] for i in sorted(extra)))]
    pnl = stress_results([case for case, _ in pairs], [scenario for _, scenario in pairs])[0]
    return tuple(StressPair(case, scenario, made) for (case, scenario), made in zip(pairs, pnl.tolist(), strict=True))


def stress_results(cases: Sequence[PortfolioCase], scenarios: Sequence[ScenarioInput]) -> tuple[Floats, Floats, Floats]:
    """Return P&L (m,), factor split (m, 7) and sector split (m, sectors) of m pairs."""
    batch, rows = batched(cases)
    distinct: dict[int, ScenarioInput] = {}
    for scenario in scenarios:  # ids repeat across dates with different numbers
        distinct[id(scenario)] = scenario
    column = {identity: place for place, identity in enumerate(distinct)}
    columns = np.array([column[id(scenario)] for scenario in scenarios])
    return apply_pairs(batch, rows, [scenario_from(scenario) for scenario in distinct.values()], columns)


EASY, MEDIUM, HARD = "easy", "medium", "hard"
PROXIES: Mapping[str, str] = {
    "Healthcare": "Consumer Defensive",
    "Consumer Defensive": "Healthcare",
    "Communication Services": "Technology",
    "Industrials": "Basic Materials",
    "Basic Materials": "Industrials",
}
"""Proxy of each sector whose sensitivity may be missing; no scenario narrative concerns these sectors."""
SMALL, LARGE = 18, 22
"""Least holdings of a hard portfolio without shorts, and most of an easy one."""
MISSING = {MEDIUM: (1, 3), HARD: (2, 4)}
"""Range of the number of holdings without betas, upper end excluded."""
MOVED = 2e-3
"""Least loss, a fraction of NAV, that a missing number affects."""
LEAST_WIDENING, WIDENING_PER_FALL = 40.0, 3.0
"""Spread widening in basis points: base, and increase per per cent of market fall."""
LEAST_SHIFT, SHIFT_PER_FALL, MOST_SHIFT = 0.1, 0.01, 0.6
"""Correlation shift: base, increase per per cent of market fall, and maximum."""
_NOTIONAL = {MEDIUM: (0.4, 0.7), HARD: (0.5, 0.8)}
_SOLD = (0.6, 0.9)
"""Ratio of sold to bought notional of a put spread."""
_NEAR, _FAR = (0.93, 1.0), (0.75, 0.87)
"""Strikes near and far below the index level."""
_YEARS = (0.25, 0.75)
_AT_THE_MONEY = (0.15, 0.24)
_SKEW = (0.2, 0.35)
"""Rise in volatility per unit of lower strike."""
_RISE, _RISE_PER_FALL = 0.02, (0.5, 0.9)
"""Rise in volatility under stress: base, and range per unit of market fall."""


@dataclass(frozen=True, eq=False)
class StressCase:
    """Stress pair with the additions of its tier; `market` includes estimated betas of the `missing` names."""

    pair: StressPair
    tier: str
    scenario: ScenarioInput
    market: MarketSnapshot
    missing: tuple[str, ...] = ()
    overlay: tuple[OptionInput, ...] = ()

    @property
    def exposures(self) -> dict[str, dict[str, float]]:
        """Return the betas of the task."""
        return {name: row for name, row in betas_by_ticker(self.market).items() if name not in self.missing}

    @property
    def decisions(self) -> int:
        """Count the numbers to estimate or consider in addition to the holdings."""
        closed = holding_count(self.pair.case) if "spread_widening_bp" in self.scenario else 0
        return len(self.missing) + len(self.scenario.get("sector_proxies", {})) + len(self.overlay) + closed

    @property
    def result(self) -> StressResult:
        options = overlay_from({"portfolio": {"option_overlay": list(self.overlay)}})
        return stress(self.pair.case.portfolio, options, scenario_from(self.scenario), self.market)


def as_stated(pair: StressPair) -> StressCase:
    """Return the case without additions; hard if the scenario moves spreads or correlations."""
    wider = "spread_widening_bp" in pair.scenario or "correlation_shift" in pair.scenario
    return StressCase(pair, HARD if wider else EASY, pair.scenario, pair.case.market)


def tiers_of(pairs: list[StressPair], rng: np.random.Generator) -> list[tuple[StressPair, str]]:
    """Draw a tier per pair within bounds on size; shorts and moving correlations are always hard."""
    levels = (EASY, MEDIUM, HARD)
    drawn = rng.integers(len(levels), size=len(pairs)).tolist()

    def tier(pair: StressPair, at: int) -> str:
        if as_stated(pair).tier == HARD or (pair.case.portfolio.weights < 0).any():
            return HARD
        names = holding_count(pair.case)
        return levels[min(max(at, int(names > LARGE)), 1 + int(names >= SMALL))]

    return [(pair, tier(pair, at)) for pair, at in zip(pairs, drawn, strict=True)]


def at_tier(pair: StressPair, tier: str, scenarios: ScenarioSet, rng: np.random.Generator) -> StressCase | None:
    """Add missing numbers and options for medium, also spreads and correlations for hard; None if none would matter."""
    if tier == EASY:
        return as_stated(pair)
    market, scenario = pair.case.market, pair.scenario
    held, proxies = _estimable(pair, rng), _proxied(pair)
    count = int(rng.integers(*MISSING[tier]))
    if len(held) < count or not proxies:
        return None
    missing = _spread(market, held, count)
    known = {name: row for name, row in betas_by_ticker(market).items() if name not in missing}
    index = dict(zip(market.tickers, require_field(market.benchmark, "benchmark weights").tolist(), strict=True))
    sectors = dict(zip(market.tickers, market.sectors, strict=True))
    full = with_estimated_betas({"sector_mapping": sectors, "factor_exposures": known, "benchmark_weights": index})
    betas = np.array([[full["factor_exposures"][name][factor] for factor in FACTORS] for name in market.tickers])
    market = replace(market, betas=betas)
    scenario = scenarios.with_proxies(scenario, market, proxies)
    return StressCase(
        pair,
        tier,
        _moved(scenario) if tier == HARD else scenario,
        market,
        tuple(missing),
        _options(tier, max(0.0, -scenario["factor_shocks"]["mkt_rf"]), rng),
    )


def _estimable(pair: StressPair, rng: np.random.Generator) -> Integers:
    """Return holdings in random order whose betas matter and whose sector has other names."""
    market, weights = pair.case.market, pair.case.portfolio.weights
    shocks = np.array([pair.scenario["factor_shocks"][factor] for factor in FACTORS])
    moves, peers = np.abs(weights * (market.betas @ shocks)), market.membership @ market.membership.sum(axis=0)
    return rng.permutation(np.flatnonzero((moves >= MOVED) & (peers > 1)))


def _spread(market: MarketSnapshot, held: Integers, count: int) -> list[str]:
    """Choose `count` holdings of different sectors."""
    chosen: dict[str, str] = {}
    order: list[int] = held.tolist()
    for at in order:
        if len(chosen) < count:
            chosen.setdefault(market.sectors[at], market.tickers[at])
    return sorted(chosen.values())


def _proxied(pair: StressPair) -> dict[str, str]:
    """Return the omissible sector with the largest effect and its proxy; empty if the effect is small."""
    market, sensitivities = pair.case.market, pair.scenario["sector_sensitivities"]
    totals = dict(zip(market.sector_names, (pair.case.portfolio.weights @ market.membership).tolist(), strict=True))
    moves = {
        sector: abs(totals.get(sector, 0.0) * sensitivities[proxy])
        for sector, proxy in PROXIES.items()
        if sensitivities.keys() >= {sector, proxy}
    }
    largest = max(moves, key=lambda sector: moves[sector], default=None)
    return {} if largest is None or moves[largest] < MOVED / 2 else {largest: PROXIES[largest]}


def _options(tier: str, fall: float, rng: np.random.Generator) -> tuple[OptionInput, ...]:
    """Draw a put, or for hard cases a put spread."""
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


def _moved(scenario: ScenarioInput) -> ScenarioInput:
    """Add wider spreads and higher correlations where the scenario states none."""
    fall = max(0.0, -100 * scenario["factor_shocks"]["mkt_rf"])
    widening = scenario.get("spread_widening_bp", round(LEAST_WIDENING + WIDENING_PER_FALL * fall, 1))
    shift = scenario.get("correlation_shift", round(min(MOST_SHIFT, LEAST_SHIFT + SHIFT_PER_FALL * fall), 3))
    addition = f"Bid-ask spreads widen by {widening:g} bp"
    if "correlation_shift" not in scenario:
        addition += f", and every correlation moves {100 * shift:.3g} % of its distance to 1"
    if scenario["type"] == REPLAY:
        addition += "; this is assumed by the size of the fall, not measured"
    return cast(
        "ScenarioInput",
        {
            **scenario,
            "description": f"{scenario['description']} {addition}.",
            "spread_widening_bp": widening,
            "correlation_shift": shift,
        },
    )


T = TypeVar("T")

_AT_A_TIME = 20


class Shares:
    """Mean shortcut scores of accepted tasks by tier, bounded by `most`."""

    def __init__(self, most: Mapping[str, float]) -> None:
        self._most = most
        self._tasks = Counter[str]()
        self._earned: dict[str, dict[str, float]] = {tier: {} for tier in most}

    def take(self, tier: str, scores: Mapping[str, float]) -> bool:
        """Accept a task if every shortcut stays within its bound."""
        earned, most = self._earned[tier], self._most[tier]
        after = {name: earned.get(name, 0.0) + score for name, score in scores.items()}
        if any(scores[name] > most and total > most * (self._tasks[tier] + 1) for name, total in after.items()):
            return False
        self._tasks[tier] += 1
        self._earned[tier] = earned | after
        return True


def drawn_within(
    most: Mapping[str, float],
    items: Sequence[T],
    traits: Callable[[T], Sequence[Hashable]],
    count: int,
    rng: np.random.Generator,
    scored: Callable[[T], tuple[BuiltTask, Mapping[str, float]]],
) -> list[BuiltTask]:
    """Draw tasks like `drawn`, retrying rejected ones, with each mean shortcut score within `most` of its tier."""
    shares, made = Shares(most), dict[int, tuple[BuiltTask, Mapping[str, float]]]()
    tasks: list[BuiltTask] = []
    left: list[int] = list(range(len(items)))

    def taken(at: int) -> tuple[int, BuiltTask] | None:
        if at not in made:
            made[at] = scored(items[at])
        task, scores = made[at]
        return (at, task) if shares.take(task.episode.difficulty, scores) else None

    while left and len(tasks) < count:
        found = draw_evenly(left, lambda at: traits(items[at]), min(_AT_A_TIME, count - len(tasks)), rng, taken)
        if not found:
            break
        used = {at for at, _ in found}
        tasks += [task for _, task in found]
        left = [at for at in left if at not in used]
    return tasks
