"""Trivial portfolios: equal weights, known portfolios, low-variance names, cut to the caps."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.certified import UndecidedError
from finskillbench.engines.portfolio.formulation import PortfolioGoal
from finskillbench.engines.portfolio.measures import violations
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem

_FEW = 10
"""Maximum number of top names in a pick without optimisation."""
_LONG = 60
"""Maximum number of low-variance names, all names apart."""
_SPREAD = 500
"""Maximum names of equal weight: smaller weights would not count as holdings."""


def trivial_value(problem: PortfolioProblem, *anchors: Floats) -> float:
    """Return the best objective of trivial answers.

    Equal weights (of the first `_SPREAD` names) and `anchors` are moved to the nearest feasible portfolio. Others count
    if feasible as they are: the benchmark, the current portfolio, inverse-variance weights of all or the calmest names.
    So do these cut to the caps, and under max_sharpe equal weights of the names with the highest returns.
    """
    spread = min(problem.size, _SPREAD)
    equal = np.where(np.arange(problem.size) < spread, 1.0 / spread, 0.0)
    # Name counts are left out: branching is no trivial answer and slow in large universes.
    free = replace(problem, limits=replace(problem.limits, min_position=None, min_names=None, max_names=None))
    moved = [optimise(free, PortfolioGoal.DISTANCE, anchor=anchor).weights for anchor in (equal, *anchors)]
    known = [weights for weights in (problem.benchmark, problem.current) if weights is not None]
    cut = [within_caps(problem, weights) for weights in (equal, problem.inverse_variance, *known)]
    ready = [*known, *cut, *_calmest(problem)]
    if problem.objective is Objective.MAX_SHARPE:
        best = np.argsort(-problem.mean, kind="stable")
        ready += [np.isin(np.arange(problem.size), best[:few]) / few for few in range(1, _FEW + 1)]
    # Limit checks are slower than the objective: sort by objective first.
    for value, weights in sorted(((problem.value(one), one) for one in (*moved, *ready)), key=itemgetter(0)):
        if not violations(problem, weights):
            return value
    raise UndecidedError("no trivial portfolio keeps the limits")


def within_caps(problem: PortfolioProblem, weights: Floats) -> Floats:
    """Cut excesses over name and sector caps and distribute them in proportion, 200 times."""
    cap = problem.limits.max_weight or 1.0
    weights = weights.copy()
    names = np.array(problem.sectors)
    members = [(names == sector, limit) for sector, limit in problem.limits.sector_limits.items()]
    for _ in range(200):
        before = weights
        weights = np.minimum(weights, cap)
        free = np.ones(problem.size, dtype=bool)
        for inside, limit in members:
            total = weights[inside].sum()
            if total > limit:
                weights[inside] *= limit / total
            if total >= limit - 1e-12:
                free &= ~inside
        free &= weights < cap - 1e-12
        if not free.any() or not weights[free].sum() > 0:
            break
        weights[free] += (1 - weights.sum()) * weights[free] / weights[free].sum()
        if np.array_equal(weights, before):  # fixed point
            break
    return weights


def _calmest(problem: PortfolioProblem) -> list[Floats]:
    order = np.argsort(problem.risk.variances, kind="stable")
    lists: list[Floats] = []
    for count in {*range(1, min(problem.size, _LONG) + 1), problem.size}:
        weights = np.zeros(problem.size)
        weights[order[:count]] = 1.0 / problem.risk.variances[order[:count]]
        lists.append(weights / weights.sum())
    return lists
