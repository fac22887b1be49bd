"""Shortcuts and the ladder of answers of unconstrained and constrained optimisation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.portfolio.examples.exploits import (
    WORTHLESS,
    by_ticker,
    of_digits,
    other_objectives,
    too_wide,
    uncorrelated,
)
from finskillbench.domains.portfolio.worth import CONFUSED
from finskillbench.engines.optimisation.certified import UndecidedError
from finskillbench.engines.portfolio.mandates.binding import stated, without
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import check_limits
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Limits, Objective, PortfolioProblem
from finskillbench.engines.portfolio.trivial import within_caps

Json = dict[str, Any]


def unconstrained(task_input: Any) -> dict[str, Json]:
    """Of unconstrained optimisation."""
    problem = problem_from(task_input)
    found = {
        "optimum with short sales, cut and rescaled": cut(problem),
        "optimum without correlations": uncorrelated(problem),
        "inverse variance": problem.inverse_variance,
        "equal weights": np.full(problem.size, 1.0 / problem.size),
        **dict(_others(problem)),
    }
    if problem.objective is Objective.MAX_SHARPE:
        halved = replace(problem, risk_aversion=problem.risk_aversion / 2)
        found["optimum with a factor of one half"] = optimise(halved, unique=False).weights
    return {name: {"weights": by_ticker(problem, weights)} for name, weights in found.items()}


def constrained(task_input: Any) -> dict[str, Json]:
    """Of constrained optimisation; every limit is said to hold."""
    problem = problem_from(task_input)
    caps = Limits(max_weight=problem.limits.max_weight, sector_limits=problem.limits.sector_limits)
    within = replace(problem, limits=caps, exposures=None)
    found = {
        "unconstrained optimum within the caps": within_caps(problem, _best(replace(within, limits=Limits()))),
        "optimum without correlations within the caps": within_caps(problem, uncorrelated(problem)),
        "inverse variance within the caps": within_caps(problem, problem.inverse_variance),
        "caps alone": _best(within),
        "equal weights": np.full(problem.size, 1.0 / problem.size),
        **{name: _vector(problem, task_input[name]) for name in ("benchmark_weights", "current_portfolio")},
        **dict(_others(problem)),
    }
    for limit in stated(problem):
        found |= _solved(f"optimum without {limit}", without(problem, limit))
    flags = {name: True for name in check_limits(problem, problem.inverse_variance) if name != "fully_invested"}
    return {
        name: {"weights": by_ticker(problem, weights), "constraint_satisfaction": flags}
        for name, weights in found.items()
    }


def cut(problem: PortfolioProblem) -> Floats:
    """The fully invested optimum with short sales, its negative weights cut and the rest scaled to 1.

    Without a limit on short sales the highest return is infinite: the best name takes all of it.
    """
    if problem.objective is Objective.MAX_RETURN:
        return np.eye(problem.size)[int(np.argmax(problem.mean))]
    matrix, ones = problem.risk.matrix, np.ones(problem.size)
    curvature: Floats = 2.0 * matrix
    pull = np.zeros(problem.size)
    if problem.objective is Objective.MAX_SHARPE:
        curvature, pull = 2.0 * problem.risk_aversion * matrix, problem.mean
    elif problem.objective is Objective.RISK_PARITY:
        curvature, pull = 2.0 * np.eye(problem.size) + matrix, 2.0 * problem.inverse_variance
    free, even = np.linalg.solve(curvature, np.stack([pull, ones], axis=1)).T
    weights = np.maximum(free + (1.0 - free.sum()) / even.sum() * even, 0.0)
    return weights / weights.sum()


def _others(problem: PortfolioProblem) -> Iterator[tuple[str, Floats]]:
    """The optimum of the same limits under each other objective."""
    for objective in Objective:
        if objective is not problem.objective:
            yield from _solved(f"optimum of {objective}", replace(problem, objective=objective))


def _solved(name: str, problem: PortfolioProblem) -> Iterator[tuple[str, Floats]]:
    """An optimum by its name; nothing where decisions on names take too long."""
    with suppress(UndecidedError):
        yield name, _best(problem)


def _best(problem: PortfolioProblem) -> Floats:
    return optimise(problem, unique=False).weights


def _vector(problem: PortfolioProblem, weights: Json) -> Floats:
    return np.array([weights.get(ticker, 0.0) for ticker in problem.tickers])


_NAMES = 0.1
"""What decisions on names, which the zero of the scores leaves out, may add to the optimum of another objective."""


def graded_examples(label: Label[Any]) -> list[GradedExample]:
    """Of unconstrained and of constrained optimisation; a portfolio that is not the optimum states all flags true."""
    problem, truth = problem_from(label.task_input), label.truth.expected_output
    rungs = [GradedExample("the optimum", truth, 1.0, 1.0), *of_digits(problem, truth, "weights")]
    for name, weights in other_objectives(problem).items():
        answer = {**truth, "weights": by_ticker(problem, weights)}
        rungs.append(GradedExample(f"the optimum of {name}", answer, 0.0, CONFUSED + _NAMES))
    wide = too_wide(problem)
    if wide is not None:
        answer = {**truth, "weights": by_ticker(problem, wide)}
        rungs.append(GradedExample("the optimum of limits a tenth wider", answer, 0.0, CONFUSED))
    equal = by_ticker(problem, np.full(problem.size, 1.0 / problem.size))
    rungs.append(GradedExample("equal weights", {**truth, "weights": equal}, 0.0, WORTHLESS))
    rungs.append(GradedExample("no weights", {**truth, "weights": {}}, 0.0, 0.0))
    return rungs
