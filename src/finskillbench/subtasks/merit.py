"""What submitted weights are worth under `certified`: feasibility first, then the distance to the proved optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from finskillbench.engines.portfolio.formulation import Goal
from finskillbench.engines.portfolio.measures import FEASIBILITY_TOLERANCE, check_limits, violations
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import PortfolioProblem
from finskillbench.engines.portfolio.risk_model import Array
from finskillbench.episode import Score
from finskillbench.scoring.measures import clip

DEAD_ZONE = 1e-3
"""Share of the distance from the trivial to the optimal objective that rounding may cost without losing marks."""
LEAST_SPREAD = 1e-4
"""An episode discriminates when the trivial portfolio's objective is at least this far from the optimum, per year."""


def trivial_value(problem: PortfolioProblem) -> float:
    """Best objective among the answers that need no thought: the zero of `certified`.

    Equal weights moved to the nearest feasible portfolio; the benchmark and the current portfolio where they are
    feasible as they stand.
    """
    equal = np.full(problem.size, 1.0 / problem.size)
    values = [problem.value(optimise(problem, Goal.DISTANCE, anchor=equal).weights)]
    known = [weights for weights in (problem.benchmark, problem.current) if weights is not None]
    return min([*values, *(problem.value(weights) for weights in known if not violations(problem, weights))])


def judge_weights(problem: PortfolioProblem, weights: Array, optimal: float, trivial: float) -> Score:
    """Feasibility gates; within it the objective gap, scaled so that the trivial answer scores 0.

    `optimal` and `trivial` are values of `problem.value`; a gap inside `DEAD_ZONE` is full marks.
    """
    broken = violations(problem, weights)
    if broken:
        return Score(0.0, {"violated": broken})
    gap = (problem.value(weights) - optimal) / (trivial - optimal)
    return Score(1.0 if gap <= DEAD_ZONE else clip(1.0 - gap), {"objective_gap": gap})


def submitted_weights(value: Mapping[str, float], tickers: Sequence[str]) -> Array | None:
    """(n,) weights from a submitted map; None when it is empty or names a ticker outside the universe."""
    if not value or set(value) - set(tickers):
        return None
    weights = np.array([value.get(ticker, 0.0) for ticker in tickers])
    return weights if float(np.abs(weights).max()) <= 1e6 else None


def agreement(problem: PortfolioProblem, weights: Array, flags: Mapping[str, Any], expected: Sequence[str]) -> float:
    """Share of the expected constraint flags whose submitted value is what the weights themselves say."""
    checks = check_limits(problem, weights)
    kept = {name: checks[name].excess <= FEASIBILITY_TOLERANCE for name in checks}
    return sum(flags.get(name) is kept.get(name, True) for name in expected) / len(expected)
