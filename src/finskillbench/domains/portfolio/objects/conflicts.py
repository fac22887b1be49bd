"""Cases of infeasibility detection: draft mandates near the edge of feasibility, and the proof of each verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import numpy as np
from numpy.random import Generator

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuildContext
from finskillbench.domains.checks.proofs import farkas_of
from finskillbench.domains.portfolio.objects import PortfolioObjects
from finskillbench.domains.portfolio.objects.month_end import MonthEnd
from finskillbench.domains.portfolio.objects.settings import InfeasibilitySettings
from finskillbench.engines.holdings import without_dust
from finskillbench.engines.optimisation.certified import Certified, InfeasibleError, UndecidedError, find
from finskillbench.engines.portfolio.formulation import PortfolioAim, formulate_portfolio
from finskillbench.engines.portfolio.mandates.binding import slack
from finskillbench.engines.portfolio.mandates.feasibility import (
    WAIVABLE,
    least_attainable,
    rough_least,
    shifted,
    without_limits,
)
from finskillbench.engines.portfolio.measures import FEASIBILITY_TOLERANCE, portfolio_sector_weights
from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits, PortfolioProblem

STEPS = {
    "max_weight": 0.005,
    "sector_limits": 0.005,
    "max_turnover": 0.005,
    "max_tracking_error": 0.0005,
    "factor_neutrality": 0.0025,
}
"""Step sizes of limits."""
MATTERS = 0.98
"""Waiving a limit that matters lowers the least attainable value to at most this share."""
_LEAST = {"max_turnover": 0.05, "max_tracking_error": 0.005, "factor_neutrality": 0.01}
"""Minimum of the least attainable values; smaller ones only show that the other limits are loose."""
_ABOVE = 1.03
"""Minimum ratio of a least attainable cap to the benchmark's own weight."""
_MATTER = 2
"""Minimum number of the four other limits that matter in every draft."""


@dataclass(frozen=True, slots=True, eq=False)
class MandateDraft:
    """A mandate with the limit to relax (a sector's name for its cap), its least attainable value, and the values
    `without`
    each other limit. None of these figures is proved.
    """

    month: MonthEnd
    problem: PortfolioProblem
    cause: str
    limit: str
    least: float
    without: Mapping[str, float]

    @property
    def idle(self) -> list[str]:
        """Limits that hardly change the least attainable value if waived."""
        return [name for name in self.without if self.without[name] > MATTERS * self.least]


def benchmark_level(month: MonthEnd, cause: str, limit: str) -> float:
    """Return the lowest cap that the benchmark satisfies; zero for limits that it satisfies by definition."""
    if cause == "max_weight":
        return float(month.benchmark.max())
    return portfolio_sector_weights(month.benchmark, month.sectors)[limit] if cause == "sector_limits" else 0.0


def _draft(
    month: MonthEnd, cause: str, settings: InfeasibilitySettings, rng: Generator, needed: Collection[str] = ()
) -> MandateDraft | None:
    """Draw a mandate with limits near the attainable edge; None if too few limits, or not all `needed` ones, matter."""
    problem, least = _drawn(month, cause, settings, rng), (0.0, month.benchmark)
    for name in ("max_turnover", "max_tracking_error"):
        found = None if problem is None else rough_least(problem, name)
        if problem is None or found is None:
            return None
        least, loose = found, stepped(name, found[0] * (1 + float(rng.uniform(*settings["loose"]))))
        problem = replace(problem, limits=replace(problem.limits, **{name: loose}))
    if not _enough(_idle(problem, least[1], "max_tracking_error", cause), needed):
        return None
    limit = _fullest(month, least[1]) if cause == "sector_limits" else cause
    if cause != "max_tracking_error":
        least = rough_least(problem, limit)
    if least is None or least[0] < max(_LEAST.get(cause, 0.0), _ABOVE * benchmark_level(month, cause, limit)):
        return None
    without = _without(problem, cause, limit, least, needed)
    return None if without is None else MandateDraft(month, problem, cause, limit, least[0], without)


def _without(
    problem: PortfolioProblem, cause: str, limit: str, least: tuple[float, Floats], needed: Collection[str]
) -> dict[str, float] | None:
    """Return the attainable value without each other limit; None as soon as too few of them matter."""
    idle = _idle(problem, least[1], cause)
    found = dict.fromkeys(idle, least[0])
    for name in (name for name in WAIVABLE if name != cause and name not in found):
        kept = rough_least(without_limits(problem, name), limit) if _enough(idle, needed) else None
        if kept is None:
            return None
        found[name] = kept[0]
        if kept[0] > MATTERS * least[0]:
            idle.append(name)
    return found if _enough(idle, needed) else None


def _idle(problem: PortfolioProblem, weights: Floats, *apart: str) -> list[str]:
    """Return the limits, except `apart`, that do not bind at an optimum."""
    loose = slack(problem, weights)
    return [name for name in WAIVABLE if name in loose and name not in apart]


def _enough(idle: Collection[str], needed: Collection[str]) -> bool:
    return len(idle) <= len(WAIVABLE) - 1 - _MATTER and not any(name in idle for name in needed)


def stepped(cause: str, value: float) -> float:
    """Round a limit up to the next step."""
    return round(math.ceil(value / STEPS[cause] - 1e-9) * STEPS[cause], 4)


def _fullest(month: MonthEnd, weights: Floats) -> str:
    active = portfolio_sector_weights(weights - month.benchmark, month.sectors)
    return max(sorted(active), key=lambda name: active[name])


def _drawn(month: MonthEnd, cause: str, settings: InfeasibilitySettings, rng: Generator) -> PortfolioProblem | None:
    """Draw caps that the benchmark satisfies, and neutral factors; None if restricted names weigh too little or too
    much.
    """
    n, benchmark = len(month.tickers), month.benchmark
    names: list[int] = rng.permutation(n).tolist()
    restricted = names[: round(n * float(rng.uniform(*settings["restricted"])))]
    low, high = settings["restricted_weight"]
    if not low <= benchmark[restricted].sum() <= high:
        return None
    ceilings = np.ones(n)
    ceilings[restricted] = 0.0
    factors: list[int] = rng.permutation(len(month.exposures)).tolist()
    factor_count = int(rng.integers(*settings["factors"], endpoint=True))
    neutral = [list(month.exposures)[place] for place in sorted(factors[:factor_count])]
    exposures = np.stack([month.exposures[name] for name in neutral], axis=1)
    steps = {name: int(rng.integers(*settings["room" if cause == name else "tight"], endpoint=True)) for name in STEPS}
    cap = stepped("max_weight", float(benchmark.max())) + steps["max_weight"] * 0.005
    sectors = portfolio_sector_weights(benchmark, month.sectors)
    caps = {
        name: round(math.floor(100 * sectors[name] + 0.5) / 100 + 0.01 * (1 + steps["sector_limits"]), 2)
        for name in sorted(sectors)
    }
    current = _current(month, settings, rng)
    rest = benchmark * ceilings / (benchmark * ceilings).sum()
    tilts = float(np.abs(exposures.T @ np.stack([rest - benchmark, 0.3 * (current - benchmark)], axis=1)).max())
    tolerance = stepped("factor_neutrality", tilts * float(rng.uniform(*settings["neutrality"])))
    return PortfolioProblem(
        month.tickers,
        month.risk,
        Objective.MIN_VARIANCE,
        PortfolioLimits(
            max_weight=1.0 if cause == "max_weight" else round(cap, 4),
            sector_limits=caps,
            max_turnover=1.0,
            max_tracking_error=1.0,
            neutral_factors=tuple(neutral),
            neutrality_tolerance=1.0 if cause == "factor_neutrality" else tolerance,
        ),
        sectors=month.sectors,
        benchmark=benchmark,
        current=current,
        exposures=exposures,
        ceilings=ceilings,
    )


def _current(month: MonthEnd, settings: InfeasibilitySettings, rng: Generator) -> Floats:
    """Return the benchmark (n,) with a drifted active book of one style, so that caps on names alone do not decide."""
    betas = np.array(list(month.exposures.values()))
    centre, spread = betas.mean(axis=1, keepdims=True), betas.std(axis=1, keepdims=True)
    scores: Floats = rng.standard_normal(len(betas)) @ ((betas - centre) / spread)
    low, high = settings["book"]
    count = max(round(len(month.tickers) * float(rng.uniform(low, high))), 1)
    book = np.zeros(len(month.tickers))
    book[np.argsort(-scores, kind="stable")[:count]] = rng.dirichlet(np.full(count, 4.0))
    share = float(rng.uniform(*settings["active"]))
    return without_dust(month.drifted((1 - share) * month.benchmark + share * book))


SIZES = {"easy": (2,), "medium": (3,), "hard": (4, 5)}
"""Number of limits in conflict, by tier."""
_ATTEMPTS = 120
_ALIKE = 0.45
"""Maximum share of a tier's mandates with the same limit to relax."""
_RATIONS = (
    (5, {"easy": 0.46, "medium": 0.34, "hard": 0.26}),
    (40, {"easy": 0.46, "medium": 0.43, "hard": 0.3}),
    (_ATTEMPTS, dict.fromkeys(SIZES, 2.0)),
)
"""Drafts per episode, with the maximum share of mandates in which one other limit may not matter; relaxed over time."""
_NAMES = 40
"""Maximum names of a mandate: a draft solves several programs, and most drafts are dropped."""
AMBIGUITY = FEASIBILITY_TOLERANCE
"""No verdict changes if every limit moves by this much."""


@dataclass(frozen=True, slots=True, eq=False)
class MandateCase:
    """A mandate with its certified least attainable value and, if infeasible, the proof of the conflict.

    `size` is the number of limits in conflict, also of a feasible mandate's infeasible twin. `waivers` maps each of
    them to a portfolio that satisfies all others; with `farkas` they prove that the set is the unique minimal one.
    """

    draft: MandateDraft
    tier: str
    value: float
    least: Certified
    size: int
    waivers: dict[str, list[float]]
    farkas: dict[str, Any] | None


def draw_cases(context: BuildContext, objects: PortfolioObjects, count: int) -> Iterator[MandateCase]:
    """Draw mandates over the month-ends until every tier has its number of each verdict; verdicts alternate."""
    settings, months = objects.settings["infeasibility"], objects.month_ends
    in_pairs = (tier for tier in cycle(SIZES) for _ in range(2))
    wanted = Counter((tier, place % 2 == 0) for place, tier in zip(range(count), in_pairs, strict=False))
    sizes = {tier: wanted[tier, True] + wanted[tier, False] for tier in SIZES}
    idle, used, last = Counter[tuple[str, str]](), Counter[tuple[str, str]](), dict[tuple[str, str], bool]()

    def least_with_other_limit(tier: str, name: str) -> float:
        """Return the minimum number of a tier's mandates with another limit to relax."""
        still = wanted[tier, True] + wanted[tier, False]
        return sizes[tier] - min(used[tier, name] + still, math.ceil(_ALIKE * sizes[tier]))

    for attempt in range(_ATTEMPTS * count):
        open_tiers = {tier for tier, _ in +wanted}
        if not open_tiers:
            return
        shares = next(shares for drafts, shares in _RATIONS if attempt < drafts * count)
        month, cause = months[attempt % len(months)], settings["causes"][attempt % len(settings["causes"])]
        tiers = [one for one in SIZES if one in open_tiers and used[one, cause] < _ALIKE * sizes[one]]
        if not tiers:
            continue
        rng = context.generator("conflicts", month.as_of, attempt)
        full = {
            (tier, name)
            for tier in tiers
            for name in WAIVABLE
            if idle[tier, name] + 1 > shares[tier] * least_with_other_limit(tier, name)
        }
        listed = month.of_list(rng, min(_NAMES / len(month.tickers), 1.0))
        found = _draft(
            listed, cause, settings, rng, [name for name in WAIVABLE if all((tier, name) in full for tier in tiers)]
        )
        if found is None:
            continue
        for tier in (tier for tier in tiers if full.isdisjoint((tier, name) for name in found.idle)):
            turn = not last.get((tier, cause), wanted[tier, True] < wanted[tier, False])
            feasible = turn if wanted[tier, turn] > 0 else not turn
            case = _case(objects, found, tier, feasible, rng)
            if case is not None:
                wanted[tier, feasible] -= 1
                used[tier, cause] += 1
                last[tier, cause] = feasible
                idle.update((tier, name) for name in found.idle)
                yield case
                break


def _case(
    objects: PortfolioObjects, found: MandateDraft, tier: str, feasible: bool, rng: Generator
) -> MandateCase | None:
    """Turn a draft into a case of a tier and verdict; None if impossible or too close to call."""
    value = _value(objects, found, tier, feasible, rng)
    if value is None:
        return None
    conflict = [name for name in WAIVABLE if name == found.cause or found.without[name] <= value]
    problem = problem_at(found, value)
    farkas = _refuted(without_limits(problem, *(name for name in WAIVABLE if name not in conflict)))
    if farkas is None:
        return None
    try:
        least = least_attainable(problem, found.limit)
        to_waive = () if feasible else (name for name in conflict if name != found.cause)
        waivers = {name: least_attainable(without_limits(problem, name), found.limit) for name in to_waive}
    except UndecidedError:
        return None
    kept = waivers if feasible else {found.cause: least, **waivers}
    return MandateCase(
        found,
        tier,
        _twin(found, value) if feasible else value,
        least,
        len(conflict),
        {name: kept[name].weights.tolist() for name in conflict if name in kept},
        None if feasible else farkas,
    )


def _value(objects: PortfolioObjects, found: MandateDraft, tier: str, feasible: bool, rng: Generator) -> float | None:
    """Draw a value of the limit to relax with as many limits in conflict as the tier needs; None if there is none.

    A limit is in conflict if waiving it leaves less than the value. Values near a change of the set are excluded.
    """
    settings, step = objects.settings["infeasibility"], STEPS[found.cause]
    low_gap, high_gap = settings["gap"]
    left = [*sorted(found.without.values()), math.inf]
    values: list[float] = []
    for size in SIZES[tier]:
        low = max(
            left[size - 2] * (1 + settings["clear"]),
            found.least / (1 + high_gap),
            benchmark_level(found.month, found.cause, found.limit),
        )
        high = min(left[size - 1] * (1 - settings["clear"]), found.least / (1 + low_gap))
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        values += [round(place * step, 4) for place in range(first, last + 1)]
    if not values:
        return None
    bound = verdict_edge(found.problem, found.limit, feasible=feasible)
    clear = [value for value in values if (_twin(found, value) >= bound if feasible else value < bound)]
    return clear[int(rng.integers(len(clear)))] if clear else None


def _twin(found: MandateDraft, value: float) -> float:
    """Return the feasible value as far above the least attainable one as `value` is below."""
    return stepped(found.cause, found.least**2 / value)


def problem_at(found: MandateDraft, value: float) -> PortfolioProblem:
    """Return the draft's problem with a value of the limit to relax."""
    limits = found.problem.limits
    if found.cause == "sector_limits":
        limits = replace(limits, sector_limits={**limits.sector_limits, found.limit: value})
    elif found.cause == "factor_neutrality":
        limits = replace(limits, neutrality_tolerance=value)
    else:
        limits = replace(limits, **{found.cause: value})
    return replace(found.problem, limits=limits)


def verdict_edge(problem: PortfolioProblem, limit: str, *, feasible: bool) -> float:
    """Return the least attainable value with all limits shifted against a verdict."""
    shift = -AMBIGUITY if feasible else AMBIGUITY
    found = rough_least(replace(problem, limits=shifted(problem.limits, shift)), limit)
    return math.inf if found is None else found[0] - shift


def _refuted(problem: PortfolioProblem) -> dict[str, Any] | None:
    formulation = formulate_portfolio(problem, PortfolioAim())
    try:
        find(formulation)
    except InfeasibleError as error:
        return farkas_of(error, formulation.program)
    except UndecidedError:
        return None
    return None
