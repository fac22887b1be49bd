"""Portfolios under stress scenarios, with what each makes or loses.

What makes a stress episode medium or hard: sensitivities to estimate, options, liquidity, correlations.

A draw of tasks in which no shortcut earns too much on the mean of a tier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import numpy as np

from finskillbench.arrays import FACTORS, Floats, Integers
from finskillbench.domains.building import BuildContext, Task, drawn
from finskillbench.domains.risk.inputs import OptionInput, ScenarioInput
from finskillbench.domains.risk.objects.portfolios import PortfolioCase, batched
from finskillbench.domains.risk.objects.scenarios import REPLAY, ScenarioSet
from finskillbench.domains.risk.shared import factor_exposures, holdings
from finskillbench.engines.risk.full_stress import overlay_from, stress, with_estimated_betas
from finskillbench.engines.risk.portfolio import Market, required
from finskillbench.engines.risk.stress import StressResult, apply_pairs, scenario_from

LEAST_PNL = 0.005
"""A P&L nearer to zero than half a percent of NAV makes no episode: relative errors mean nothing there."""


@dataclass(frozen=True, eq=False)
class StressPair:
    """A portfolio under a scenario, which is kept as the input JSON shows it; `pnl` is a fraction of NAV."""

    case: PortfolioCase
    scenario: ScenarioInput
    pnl: float

    @property
    def large_enough(self) -> bool:
        """Whether the P&L is clear of zero."""
        return abs(self.pnl) >= LEAST_PNL


def stress_pairs(
    context: BuildContext, cases: Sequence[PortfolioCase], scenarios: ScenarioSet, count: int
) -> tuple[StressPair, ...]:
    """Each portfolio with all scenarios that may be applied on its date, filled up with severe versions to `count`."""
    at = {case.as_of: case.market for case in cases}
    usual = {as_of: scenarios.at(as_of, market) for as_of, market in at.items()}
    severe = {as_of: scenarios.severe_at(market) for as_of, market in at.items()}
    pairs: list[tuple[PortfolioCase, ScenarioInput]] = []
    for case in cases:
        rng, own = context.generator("risk", "severe", case.portfolio_id), severe[case.as_of]
        extra: list[int] = rng.permutation(len(own))[: max(0, count - len(usual[case.as_of]))].tolist()
        pairs += [(case, scenario) for scenario in (*usual[case.as_of], *(own[i] for i in sorted(extra)))]
    pnl = stress_results([case for case, _ in pairs], [scenario for _, scenario in pairs])[0]
    return tuple(StressPair(case, scenario, made) for (case, scenario), made in zip(pairs, pnl.tolist(), strict=True))


def stress_results(cases: Sequence[PortfolioCase], scenarios: Sequence[ScenarioInput]) -> tuple[Floats, Floats, Floats]:
    """P&L (m,), its split by factor (m, 7) and by sector (m, sectors) of m pairs; see `apply_pairs`."""
    batch, rows = batched(cases)
    distinct: dict[int, ScenarioInput] = {}
    for scenario in scenarios:  # one of a name is another on another date
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
        _moved(scenario) if tier == HARD else scenario,
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


def _moved(scenario: ScenarioInput) -> ScenarioInput:
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


T = TypeVar("T")

_AT_A_TIME = 20


class Shares:
    """What shortcuts earn of the tasks taken so far, by tier.

    Parameters
    ----------
    most : tier to what each shortcut may earn on the mean of its tasks.
    """

    def __init__(self, most: Mapping[str, float]) -> None:
        self._most = most
        self._tasks = Counter[str]()
        self._earned: dict[str, dict[str, float]] = {tier: {} for tier in most}

    def take(self, tier: str, scores: Mapping[str, float]) -> bool:
        """Whether every shortcut stays within its bound with one more task, which is then counted."""
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
    scored: Callable[[T], tuple[Task, Mapping[str, float]]],
) -> list[Task]:
    """Draw `count` tasks as `drawn` does, without those with which a shortcut would earn more than `most` of its tier.

    A few are drawn at a time, and what was passed over is tried again, since tasks that shortcuts fail at make room for
    others. `scored` makes the task of an item and says what each shortcut earns of it.
    """
    shares, made = Shares(most), dict[int, tuple[Task, Mapping[str, float]]]()
    tasks: list[Task] = []
    left: list[int] = list(range(len(items)))

    def taken(at: int) -> tuple[int, Task] | None:
        if at not in made:
            made[at] = scored(items[at])
        task, scores = made[at]
        return (at, task) if shares.take(task.episode.difficulty, scores) else None

    while left and len(tasks) < count:
        found = drawn(left, lambda at: traits(items[at]), min(_AT_A_TIME, count - len(tasks)), rng, taken)
        if not found:
            break
        used = {at for at, _ in found}
        tasks += [task for _, task in found]
        left = [at for at in left if at not in used]
    return tasks
