"""Shortcuts and graded examples of unconstrained and constrained optimisation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.portfolio.examples import exploits
from finskillbench.domains.portfolio.worth import CONFUSED
from finskillbench.engines.optimisation.certified import UndecidedError
from finskillbench.engines.portfolio.mandates.binding import stated_limits, without
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import check_limits
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits, PortfolioProblem
from finskillbench.engines.portfolio.trivial import within_caps

Json = dict[str, Any]


def unconstrained_shortcuts(task_input: Any) -> dict[str, Json]:
    """Return shortcut answers to unconstrained optimisation."""
    problem = problem_from(task_input)
    found = {
        "optimum with short sales, cut and rescaled": cut_short_positions(problem),
        "optimum without correlations": exploits.uncorrelated(problem),
        "inverse variance": problem.inverse_variance,
        "equal weights": np.full(problem.size, 1.0 / problem.size),
        **dict(_other_optima(problem)),
    }
    if problem.objective is Objective.MAX_SHARPE:
        halved = replace(problem, risk_aversion=problem.risk_aversion / 2)
        found["optimum with a factor of one half"] = optimise(halved, unique=False).weights
    return {name: {"weights": exploits.weights_by_ticker(problem, weights)} for name, weights in found.items()}


def constrained_shortcuts(task_input: Any) -> dict[str, Json]:
    """Return shortcut answers to constrained optimisation; all limits are reported as satisfied."""
    problem = problem_from(task_input)
    caps = PortfolioLimits(max_weight=problem.limits.max_weight, sector_limits=problem.limits.sector_limits)
    within = replace(problem, limits=caps, exposures=None)
    found = {
        "unconstrained optimum within the caps": within_caps(problem, _best(replace(within, limits=PortfolioLimits()))),
        "optimum without correlations within the caps": within_caps(problem, exploits.uncorrelated(problem)),
        "inverse variance within the caps": within_caps(problem, problem.inverse_variance),
        "caps alone": _best(within),
        "equal weights": np.full(problem.size, 1.0 / problem.size),
        **{name: _vector(problem, task_input[name]) for name in ("benchmark_weights", "current_portfolio")},
        **dict(_other_optima(problem)),
    }
    for limit in stated_limits(problem):
        found |= _solved(f"optimum without {limit}", without(problem, limit))
    flags = {name: True for name in check_limits(problem, problem.inverse_variance) if name != "fully_invested"}
    return {
        name: {"weights": exploits.weights_by_ticker(problem, weights), "constraint_satisfaction": flags}
        for name, weights in found.items()
    }


def cut_short_positions(problem: PortfolioProblem) -> Floats:
    """Return the fully invested optimum with shorts cut and the rest rescaled; the best name alone under max_return."""
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


def _other_optima(problem: PortfolioProblem) -> Iterator[tuple[str, Floats]]:
    for objective in Objective:
        if objective is not problem.objective:
            yield from _solved(f"optimum of {objective}", replace(problem, objective=objective))


def _solved(name: str, problem: PortfolioProblem) -> Iterator[tuple[str, Floats]]:
    """Yield an optimum with its name; nothing if counts of names cannot be decided in time."""
    with suppress(UndecidedError):
        yield name, _best(problem)


def _best(problem: PortfolioProblem) -> Floats:
    return optimise(problem, unique=False).weights


def _vector(problem: PortfolioProblem, weights: Json) -> Floats:
    return np.array([weights.get(ticker, 0.0) for ticker in problem.tickers])


_NAMES = 0.1
"""Maximum score added by counts of names, which the zero of the scale ignores."""


def graded_examples(label: Label[Any]) -> list[GradedExample]:
    """Return graded answers to both subtasks; suboptimal portfolios report all limits as satisfied."""
    problem, truth = problem_from(label.task_input), label.truth.expected_output
    graded = [GradedExample("the optimum", truth, 1.0, 1.0), *exploits.of_digits(problem, truth, "weights")]
    for name, weights in exploits.other_objectives(problem).items():
        answer = {**truth, "weights": exploits.weights_by_ticker(problem, weights)}
        graded.append(GradedExample(f"the optimum of {name}", answer, 0.0, CONFUSED + _NAMES))
    wide = exploits.too_wide(problem)
    if wide is not None:
        answer = {**truth, "weights": exploits.weights_by_ticker(problem, wide)}
        graded.append(GradedExample("the optimum of limits a tenth wider", answer, 0.0, CONFUSED))
    equal = exploits.weights_by_ticker(problem, np.full(problem.size, 1.0 / problem.size))
    graded.append(GradedExample("equal weights", {**truth, "weights": equal}, 0.0, exploits.WORTHLESS))
    graded.append(GradedExample("no weights", {**truth, "weights": {}}, 0.0, 0.0))
    return graded
