"""What submitted weights are worth: their distance to the label, and, under `certified`, to the proved optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.portfolio.measures import breach, check_limits, forgiven_budget
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.engines.portfolio.trivial import trivial_value
from finskillbench.episode import Score
from finskillbench.scoring.measures import clip, l2
from finskillbench.sums import summed

DEAD_ZONE = 1e-2
"""Share of the distance from the trivial to the optimal objective that rounding may cost without losing marks."""
LEAST_SPREAD = 5e-5
"""An episode discriminates when the zero of its scale is at least this far from the optimum, per year."""
LEAST_SPAN = 0.0050
"""Under a full mandate a minimum-variance episode discriminates when the two are so much annual volatility apart."""

CONFUSED = 0.3
"""What the optimum of another objective under the same limits earns at most."""


def weight_score(predicted: Mapping[str, float], expected: Mapping[str, float], threshold: float) -> float:
    """What all optimisation subtasks share under `paper`: the distance to the labelled weights.

    clip(1 - L2/(4θ)) over the union of tickers, θ = `threshold` (fraction of NAV); 0 without any weight.
    """
    if not predicted:
        return 0.0
    return clip(1.0 - l2(predicted, expected) / (4.0 * threshold))


def zero_value(problem: PortfolioProblem, optimal: float, *anchors: Floats) -> float:
    """The objective that scores 0 under `certified`: the best trivial answer's, or one nearer to the optimum.

    It is nearer where the optimum of another objective under the same limits would otherwise earn more than `CONFUSED`:
    who answered another question than the one that was asked. Decisions on names are left out there: they change such
    an optimum little, and take longer to find than all else.
    """
    others = [objective for objective in Objective if objective is not problem.objective]
    if problem.expected_returns is None:
        others = [objective for objective in others if objective in (Objective.MIN_VARIANCE, Objective.RISK_PARITY)]
    free = replace(problem, limits=replace(problem.limits, min_position=None, min_names=None, max_names=None))
    answers = [optimise(replace(free, objective=objective), unique=False).weights for objective in others]
    nearest = min(map(problem.value, answers))
    return min(trivial_value(problem, *anchors), optimal + (nearest - optimal) / (1.0 - CONFUSED))


def discriminates(problem: PortfolioProblem, optimal: float, zero: float) -> bool:
    """Whether `LEAST_SPREAD`, and `LEAST_SPAN` where variance is the objective, lie between the scores 1 and 0."""
    if zero - optimal < LEAST_SPREAD:
        return False
    return problem.objective is not Objective.MIN_VARIANCE or math.sqrt(zero) - math.sqrt(optimal) >= LEAST_SPAN


def judge_weights(problem: PortfolioProblem, weights: Floats, optimal: float, trivial: float) -> Score:
    """The objective gap, scaled so that the trivial answer scores 0, less what the broken limits cost.

    `optimal` and `trivial` are values of `problem.value`; a gap inside `DEAD_ZONE` is full marks. Limits are measured
    on the weights as they stand. The objective is that of the weights scaled to the full budget: left in, an investment
    of 99.95 % would outdo every honest portfolio of least variance, and 100.02 % of honest rounding would pay for it.
    """
    kept = judge_limits(problem, weights)
    if not kept.value > 0:
        return kept
    value = problem.value(weights / weights.sum())
    gap = (value - optimal) / (trivial - optimal)
    scale = {"objective": value, "full_marks_at": optimal, "no_marks_at": trivial, "share_of_the_way_down": gap}
    return Score(kept.value * (1.0 if gap <= DEAD_ZONE else clip(1.0 - gap)), {**scale, **kept.details})


def judge_limits(problem: PortfolioProblem, weights: Floats) -> Score:
    """One less what the broken limits cost, the budget among them, measured on the weights as they stand."""
    checks = dict(check_limits(problem, weights))
    missed = checks.pop("fully_invested").excess
    forgiven = forgiven_budget(problem.size)
    broken = {name: severity for name, check in checks.items() if (severity := breach(name, check)) > 0}
    if missed > forgiven:
        broken["fully_invested"] = clip(missed / forgiven - 1.0)
    return Score(clip(1.0 - summed(broken.values())), {"violated": broken} if broken else {})


def submitted_weights(value: Mapping[str, float], tickers: Sequence[str]) -> Floats | None:
    """(n,) weights from a submitted map; None when it is empty or names a ticker outside the universe."""
    if not value or not value.keys() <= set(tickers):
        return None
    weights = np.array([value.get(ticker, 0.0) for ticker in tickers])
    return None if float(np.abs(weights).max()) > 1e6 else weights
