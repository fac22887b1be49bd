"""Mandates at the edge of what can be kept: drafts for infeasibility detection, and how far each limit matters.

Cases of infeasibility detection: drafts of mandates made feasible or infeasible, with what proves it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuildContext
from finskillbench.domains.checks.proofs import farkas_of
from finskillbench.domains.portfolio.objects import PortfolioObjects
from finskillbench.domains.portfolio.objects.month_end import MonthEnd
from finskillbench.domains.portfolio.objects.settings import InfeasibilitySettings
from finskillbench.engines.holdings import without_dust
from finskillbench.engines.optimisation.certified import Certified, InfeasibleError, UndecidedError, find
from finskillbench.engines.portfolio.formulation import Aim, formulate
from finskillbench.engines.portfolio.mandates.binding import slack
from finskillbench.engines.portfolio.mandates.feasibility import (
    WAIVABLE,
    least_attainable,
    rough_least,
    shifted,
    waived,
)
from finskillbench.engines.portfolio.measures import FEASIBILITY_TOLERANCE, sector_weights
from finskillbench.engines.portfolio.problem import Limits, Objective, PortfolioProblem

STEPS = {
    "max_weight": 0.005,
    "sector_limits": 0.005,
    "max_turnover": 0.005,
    "max_tracking_error": 0.0005,
    "factor_neutrality": 0.0025,
}
"""Steps in which limits are written."""
MATTERS = 0.98
"""Share of the least attainable value that is left at most once a limit that matters is waived."""
_LEAST = {"max_turnover": 0.05, "max_tracking_error": 0.005, "factor_neutrality": 0.01}
"""Least attainable values are at least this: a smaller one shows only that the other limits are loose."""
_ABOVE = 1.03
"""A least attainable cap lies above the benchmark's own weight by at least this factor."""
_MATTER = 2
"""Of the four other limits, so many matter in every draft."""


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A mandate with the limit to relax, `limit` (a sector stands for its cap), and its least attainable value.

    `without` holds the value left where each other waivable limit is waived. None of these figures is proved.
    """

    month: MonthEnd
    problem: PortfolioProblem
    cause: str
    limit: str
    least: float
    without: Mapping[str, float]

    @property
    def idle(self) -> list[str]:
        """Limits that do not matter: waiving one leaves the least attainable value next to what it is."""
        return [name for name in self.without if self.without[name] > MATTERS * self.least]


def benchmark_level(month: MonthEnd, cause: str, limit: str) -> float:
    """Least cap that the benchmark keeps; zero of limits that it keeps by definition."""
    if cause == "max_weight":
        return float(month.benchmark.max())
    return sector_weights(month.benchmark, month.sectors)[limit] if cause == "sector_limits" else 0.0


def _draft(
    month: MonthEnd,
    cause: str,
    settings: InfeasibilitySettings,
    rng: np.random.Generator,
    needed: Collection[str] = (),
) -> Draft | None:
    """Draw a mandate whose limits lie near what the others leave attainable; None where too few of them matter.

    Those `needed` matter in any case.
    """
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
    return None if without is None else Draft(month, problem, cause, limit, least[0], without)


def _without(
    problem: PortfolioProblem, cause: str, limit: str, least: tuple[float, Floats], needed: Collection[str]
) -> dict[str, float] | None:
    """What is attainable without each other limit; None as soon as too few of them matter."""
    idle = _idle(problem, least[1], cause)
    found = dict.fromkeys(idle, least[0])
    for name in (name for name in WAIVABLE if name != cause and name not in found):
        kept = rough_least(waived(problem, name), limit) if _enough(idle, needed) else None
        if kept is None:
            return None
        found[name] = kept[0]
        if kept[0] > MATTERS * least[0]:
            idle.append(name)
    return found if _enough(idle, needed) else None


def _idle(problem: PortfolioProblem, weights: Floats, *apart: str) -> list[str]:
    """Limits that do not bind at an optimum, some apart, so that waiving one of them changes nothing."""
    loose = slack(problem, weights)
    return [name for name in WAIVABLE if name in loose and name not in apart]


def _enough(idle: Collection[str], needed: Collection[str]) -> bool:
    """Whether enough limits matter, and those needed."""
    return len(idle) <= len(WAIVABLE) - 1 - _MATTER and not any(name in idle for name in needed)


def stepped(cause: str, value: float) -> float:
    """A limit to the next step above."""
    return round(math.ceil(value / STEPS[cause] - 1e-9) * STEPS[cause], 4)


def _fullest(month: MonthEnd, weights: Floats) -> str:
    """The sector that weights exceed the benchmark most in."""
    active = sector_weights(weights - month.benchmark, month.sectors)
    return max(sorted(active), key=lambda name: active[name])


def _drawn(
    month: MonthEnd, cause: str, settings: InfeasibilitySettings, rng: np.random.Generator
) -> PortfolioProblem | None:
    """A mandate with its caps and neutral factors; None where the restricted names weigh too little or too much.

    The benchmark keeps the caps on names and sectors. Turnover, tracking error and the limit to relax are left open.
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
    neutral = [
        list(month.exposures)[place]
        for place in sorted(factors[: int(rng.integers(*settings["factors"], endpoint=True))])
    ]
    exposures = np.stack([month.exposures[name] for name in neutral], axis=1)
    room = {name: int(rng.integers(*settings["room" if cause == name else "tight"], endpoint=True)) for name in STEPS}
    cap = stepped("max_weight", float(benchmark.max())) + room["max_weight"] * 0.005
    sectors = sector_weights(benchmark, month.sectors)
    caps = {
        name: round(math.floor(100 * sectors[name] + 0.5) / 100 + 0.01 * (1 + room["sector_limits"]), 2)
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
        Limits(
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


def _current(month: MonthEnd, settings: InfeasibilitySettings, rng: np.random.Generator) -> Floats:
    """(n,) the benchmark with a book of one style, drifted: what has to be mended is no limit on names alone."""
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
"""How many limits are in conflict, by tier."""
_ATTEMPTS = 120
"""Drafts for each episode at most."""
_ALIKE = 0.45
"""Share of a tier's mandates with one and the same limit to relax."""
_RATIONS = (
    (5, {"easy": 0.46, "medium": 0.34, "hard": 0.26}),
    (40, {"easy": 0.46, "medium": 0.43, "hard": 0.3}),
    (_ATTEMPTS, dict.fromkeys(SIZES, 2.0)),
)
"""Up to so many drafts for each episode: shares of a tier's mandates with another limit to relax in which one and the
same limit may not matter, since who leaves it out is right there."""
_NAMES = 40
"""Names on the list of a mandate at most: a draft solves a handful of programs, and most drafts are dropped."""
AMBIGUITY = FEASIBILITY_TOLERANCE
"""No verdict changes when every limit is wider or narrower by so much."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A mandate with its certified least attainable value and, where it cannot be kept, what shows the conflict.

    `size` is the number of limits in conflict, of a feasible mandate that of the infeasible one like it. `waivers`
    holds, for each limit in conflict, a portfolio that keeps all the others; `farkas` refutes those in conflict alone.
    Together they prove that the set is the only smallest one.
    """

    draft: Draft
    tier: str
    value: float
    least: Certified
    size: int
    waivers: dict[str, list[float]]
    farkas: dict[str, Any] | None


def cases(context: BuildContext, objects: PortfolioObjects, count: int) -> Iterator[Case]:
    """Draw mandates, month-end after month-end, until every tier has as many of each verdict as it wants.

    Of one tier and one limit to relax the verdicts alternate, as long as the tier wants both.
    """
    settings, months = objects.settings["infeasibility"], objects.month_ends
    wanted = Counter((tier, place % 2 == 0) for place, tier in zip(range(count), _in_pairs(SIZES), strict=False))
    sizes = {tier: wanted[tier, True] + wanted[tier, False] for tier in SIZES}
    idle, used, last = Counter[tuple[str, str]](), Counter[tuple[str, str]](), dict[tuple[str, str], bool]()

    def others(tier: str, name: str) -> float:
        """Least number of mandates of a tier that will have another limit to relax."""
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
            if idle[tier, name] + 1 > shares[tier] * others(tier, name)
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


def _in_pairs(tiers: Iterable[str]) -> Iterator[str]:
    """Every tier twice, again and again."""
    return (tier for tier in cycle(tiers) for _ in range(2))


def _case(objects: PortfolioObjects, found: Draft, tier: str, feasible: bool, rng: np.random.Generator) -> Case | None:
    """The draft as a mandate of a tier and a verdict; None where it cannot be one, or lies in a grey band.

    Whether it is feasible or not, so many limits are in conflict at the value that the infeasible twin has.
    """
    value = _value(objects, found, tier, feasible, rng)
    if value is None:
        return None
    conflict = [name for name in WAIVABLE if name == found.cause or found.without[name] <= value]
    problem = at(found, value)
    farkas = _refuted(waived(problem, *(name for name in WAIVABLE if name not in conflict)))
    if farkas is None:
        return None
    try:
        least = least_attainable(problem, found.limit)
        others = () if feasible else (name for name in conflict if name != found.cause)
        waivers = {name: least_attainable(waived(problem, name), found.limit) for name in others}
    except UndecidedError:
        return None
    kept = waivers if feasible else {found.cause: least, **waivers}
    return Case(
        found,
        tier,
        _twin(found, value) if feasible else value,
        least,
        len(conflict),
        {name: kept[name].weights.tolist() for name in conflict if name in kept},
        None if feasible else farkas,
    )


def _value(
    objects: PortfolioObjects, found: Draft, tier: str, feasible: bool, rng: np.random.Generator
) -> float | None:
    """A value of the limit to relax at which as many limits are in conflict as the tier says; None if there is none.

    A limit is in conflict exactly where waiving it leaves less than the value. No value is nearer than the grey band
    to where the set of them changes, and none leaves a verdict to `AMBIGUITY`.
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
    bound = edge(found.problem, found.limit, feasible=feasible)
    clear = [value for value in values if (_twin(found, value) >= bound if feasible else value < bound)]
    return clear[int(rng.integers(len(clear)))] if clear else None


def _twin(found: Draft, value: float) -> float:
    """The value of a feasible mandate as far above the least attainable one as `value` is below."""
    return stepped(found.cause, found.least**2 / value)


def at(found: Draft, value: float) -> PortfolioProblem:
    """The draft's problem with a value of the limit to relax."""
    limits = found.problem.limits
    if found.cause == "sector_limits":
        limits = replace(limits, sector_limits={**limits.sector_limits, found.limit: value})
    elif found.cause == "factor_neutrality":
        limits = replace(limits, neutrality_tolerance=value)
    else:
        limits = replace(limits, **{found.cause: value})
    return replace(found.problem, limits=limits)


def edge(problem: PortfolioProblem, limit: str, *, feasible: bool) -> float:
    """The least attainable value with all limits, the one to relax included, shifted against a verdict."""
    shift = -AMBIGUITY if feasible else AMBIGUITY
    found = rough_least(replace(problem, limits=shifted(problem.limits, shift)), limit)
    return math.inf if found is None else found[0] - shift


def _refuted(problem: PortfolioProblem) -> dict[str, Any] | None:
    """The certificate that no portfolio keeps the limits, or None where no ray proves it."""
    formulation = formulate(problem, Aim())
    try:
        find(formulation)
    except InfeasibleError as error:
        return farkas_of(error, formulation.program)
    except UndecidedError:
        return None
    return None
