"""Cases of infeasibility detection: drafts of mandates made feasible or infeasible, with what proves it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import numpy as np

from finskillbench.domains.building import BuildContext
from finskillbench.domains.checks.proofs import farkas_of
from finskillbench.domains.portfolio.objects import PortfolioObjects
from finskillbench.domains.portfolio.objects.conflicts import STEPS, Draft, benchmark_level, draft, stepped
from finskillbench.engines.optimisation.certified import Certified, InfeasibleError, UndecidedError, find
from finskillbench.engines.portfolio.formulation import Aim, formulate
from finskillbench.engines.portfolio.mandates.feasibility import (
    WAIVABLE,
    least_attainable,
    rough_least,
    shifted,
    waived,
)
from finskillbench.engines.portfolio.measures import FEASIBILITY_TOLERANCE
from finskillbench.engines.portfolio.problem import PortfolioProblem

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
        found = draft(
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
