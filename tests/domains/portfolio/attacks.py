"""Answers on portfolio tasks that try to earn more than they know: the exploits, and yardsticks beside them.

Each function returns the attacks on one subtask as `{name: answer}`, made from what an agent sees. Portfolios that
take an optimiser to find (nearest feasible to something, optimum of another objective) are among them as a yardstick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.portfolio import rederive
from finskillbench.domains.portfolio.definitions import WAIVABLE, family, level, printed, waive_limits
from finskillbench.domains.portfolio.examples import exploits
from finskillbench.domains.portfolio.examples import infeasibility as conflicts
from finskillbench.domains.portfolio.examples.exploits import (
    EVERYTHING,
    effortless_portfolios,
    rebalancing_answer,
    weights_by_ticker,
)
from finskillbench.engines.portfolio.formulation import PortfolioGoal
from finskillbench.engines.portfolio.mandates.fields import black_litterman_from, problem_from
from finskillbench.engines.portfolio.measures import check_limits
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.errors import FinSkillBenchError

__all__ = ["ATTACKS", "EVERYTHING", "NEEDS_AN_OPTIMISER", "named", "other_questions", "rebalancing_answer", "stretched"]

Array = Floats
Json = dict[str, Any]
named = weights_by_ticker

NEEDS_AN_OPTIMISER = ("nearest feasible", "optimum", "of the way", "minimum variance")
"""What the name of an attack contains when finding it takes a quadratic program."""


def other_questions(problem: PortfolioProblem) -> dict[str, Array]:
    """Certified optima of the same limits under the other objectives."""
    if problem.expected_returns is None:
        return {}
    others = [objective for objective in Objective if objective is not problem.objective]
    return {f"optimum of {other}": optimise(replace(problem, objective=other)).weights for other in others}


def stretched(problem: PortfolioProblem, slack: float) -> Array | None:
    """The optimum of limits that are all wider by `slack`: what the tolerance allows a cheat to gain."""
    limits = problem.limits
    wider = replace(
        limits,
        max_weight=_wider(limits.max_weight, slack),
        sector_limits={name: cap + slack for name, cap in limits.sector_limits.items()},
        max_turnover=_wider(limits.max_turnover, slack),
        max_tracking_error=_wider(limits.max_tracking_error, slack),
        neutrality_tolerance=limits.neutrality_tolerance + slack,
    )
    try:
        return optimise(replace(problem, limits=wider)).weights
    except FinSkillBenchError:
        return None


def _wider(limit: float | None, slack: float) -> float | None:
    return None if limit is None else limit + slack


def nearest(problem: PortfolioProblem, task_input: Json) -> dict[str, Array]:
    """The portfolios nearest to those that need no thought, names left to chance; the one name of highest return."""
    known = effortless_portfolios(problem, task_input)
    chosen = ("equal weights", "benchmark", "current portfolio", "half equal, half benchmark", "inverse variance")
    free = replace(problem, limits=replace(problem.limits, min_position=None, min_names=None))
    found = {
        f"nearest feasible to {name}": optimise(free, PortfolioGoal.DISTANCE, anchor=known[name]).weights
        for name in chosen
        if name in known
    }
    if problem.expected_returns is not None:
        found["highest expected return only"] = np.eye(problem.size)[int(problem.expected_returns.argmax())]
    return found


def _yardsticks(task_input: Json, write: Callable[[PortfolioProblem, Array], Json]) -> dict[str, Json]:
    problem = problem_from(task_input)
    found = nearest(problem, task_input) | other_questions(problem)
    return {name: write(problem, weights) for name, weights in found.items()}


def unconstrained(task_input: Json) -> dict[str, Json]:
    """Attacks on unconstrained optimisation."""
    return exploits.unconstrained_exploits(task_input) | _yardsticks(task_input, exploits.weights_answer)


def constrained(task_input: Json) -> dict[str, Json]:
    """Attacks on constrained optimisation; every flag is claimed to be true."""
    problem = problem_from(task_input)
    flags = dict.fromkeys(check_limits(problem, np.full(problem.size, 1 / problem.size)), True)
    return exploits.constrained_exploits(task_input) | _yardsticks(
        task_input, lambda problem, weights: {"weights": named(problem, weights), "constraint_satisfaction": flags}
    )


def rebalancing(task_input: Json) -> dict[str, Json]:
    """Attacks on rebalancing; reports agree with the weights, which is the best a cheat can do."""
    answers = exploits.rebalancing_exploits(task_input) | _yardsticks(task_input, rebalancing_answer)
    problem = problem_from(task_input)
    assert problem.current is not None
    best = optimise(problem).weights
    answers["optimum without the second stage"] = rebalancing_answer(problem, best)
    for share in (0.25, 0.5, 0.75):
        part = problem.current + share * (best - problem.current)
        answers[f"{share:.0%} of the way to the optimum"] = rebalancing_answer(problem, part)
    return answers


def black_litterman(task_input: Json) -> dict[str, Json]:
    """Attacks on Black-Litterman: portfolios of the equilibrium."""
    problem, after = black_litterman_from(task_input)
    found = nearest(replace(problem, expected_returns=after.equilibrium), task_input)
    found["minimum variance"] = optimise(replace(problem, objective=Objective.MIN_VARIANCE)).weights
    found["optimum of the equilibrium"] = optimise(replace(problem, expected_returns=after.equilibrium)).weights
    prior = named(problem, after.equilibrium + task_input["risk_free_rate"])
    return exploits.black_litterman_exploits(task_input) | {
        name: {"posterior_returns": prior, "optimal_weights": named(problem, weights)}
        for name, weights in found.items()
    }


def infeasibility(task_input: Json) -> dict[str, Json]:
    """Constant verdicts and numbers, and the value of the portfolio that is nearest by distance."""
    answers, named = conflicts.exploits(task_input), task_input["limit_to_relax"]
    for feasible in (True, False):
        for value in np.arange(0.02, 0.42, 0.02):
            word = "feasible" if feasible else "infeasible"
            answers[f"{word}, {value:.0%}"] = _verdict(feasible, float(value))
    others = waive_limits(task_input, [family(named)])
    problem = problem_from(others)
    assert problem.current is not None
    nearest = optimise(problem, PortfolioGoal.DISTANCE, anchor=problem.current).weights
    value = level(task_input, named, rederive.input_covariance(task_input)[1], nearest)
    answers["the nearest feasible"] = _verdict(value <= printed(task_input, named), value)
    return answers


def _verdict(feasible: bool, value: float) -> Json:
    return {"feasible": feasible, "conflicting_limits": [] if feasible else list(WAIVABLE), "least_attainable": value}


ATTACKS: Mapping[str, Callable[[Json], dict[str, Json]]] = {
    "unconstrained_optimization": unconstrained,
    "constrained_optimization": constrained,
    "rebalancing": rebalancing,
    "black_litterman": black_litterman,
    "tool_use_parameterization": exploits.tool_use_exploits,
    "infeasibility_detection": infeasibility,
}
