"""Mandates at the edge of what can be kept: drafts for infeasibility detection, and how far each limit matters."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.portfolio.objects.month_end import MonthEnd
from finskillbench.domains.portfolio.objects.settings import InfeasibilitySettings
from finskillbench.engines.holdings import without_dust
from finskillbench.engines.portfolio.mandates.binding import slack
from finskillbench.engines.portfolio.mandates.feasibility import WAIVABLE, rough_least, waived
from finskillbench.engines.portfolio.measures import sector_weights
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


def draft(
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
