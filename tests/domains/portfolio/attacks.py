"""Answers on portfolio tasks that try to earn more than they know: constant, trivial, borrowed, padded ones.

Each function returns the attacks on one subtask as `{name: answer}`, made from what an agent sees. Portfolios that
take an optimiser to find (nearest feasible to something, optimum of another objective) are among them as a yardstick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.engines.portfolio.formulation import Goal
from finskillbench.engines.portfolio.mandate import black_litterman_from, problem_from
from finskillbench.engines.portfolio.measures import check_limits, turnover
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.errors import FinSkillBenchError

Array = np.ndarray
Json = dict[str, Any]

NEEDS_AN_OPTIMISER = ("nearest feasible", "optimum", "of the way", "views taken", "minimum variance")
"""What the name of an attack contains when finding it takes a quadratic program."""


def portfolios(problem: PortfolioProblem, task_input: Json) -> dict[str, Array]:
    """Portfolios that are not the answer: trivial ones, near-feasible ones, optima of other questions."""
    n = problem.size
    equal = np.full(n, 1.0 / n)
    found = {"equal weights": equal, "first name only": np.eye(n)[0], "all zero": np.zeros(n)}
    found["equal weights within the caps"] = _clipped(problem, equal)
    found["inverse variance"] = problem.inverse_variance
    found["inverse variance within the caps"] = _clipped(problem, problem.inverse_variance)
    if problem.expected_returns is not None:
        found["highest expected return only"] = np.eye(n)[int(problem.expected_returns.argmax())]
    market = task_input.get("benchmark_weights") or task_input.get("market_cap_weights")
    if market:
        found["benchmark"] = np.array([market.get(ticker, 0.0) for ticker in problem.tickers])
        found["half equal, half benchmark"] = (equal + found["benchmark"]) / 2
    if problem.current is not None:
        found["current portfolio"] = problem.current
        found["half equal, half current"] = (equal + problem.current) / 2
    for name in ("equal weights", "benchmark", "current portfolio", "half equal, half benchmark", "inverse variance"):
        if name in found:
            found[f"nearest feasible to {name}"] = optimise(problem, Goal.DISTANCE, anchor=found[name]).weights
    return found


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


def _clipped(problem: PortfolioProblem, weights: Array) -> Array:
    """By hand: cut what exceeds a name's or a sector's cap, and give it to the rest in proportion, 200 times."""
    cap = problem.limits.max_weight or 1.0
    weights = weights.copy()
    for _ in range(200):
        weights = np.minimum(weights, cap)
        for sector, limit in problem.limits.sector_limits.items():
            inside = np.array([name == sector for name in problem.sectors])
            total = weights[inside].sum()
            if total > limit:
                weights[inside] *= limit / total
        free = weights < cap - 1e-12
        for sector, limit in problem.limits.sector_limits.items():
            inside = np.array([name == sector for name in problem.sectors])
            if weights[inside].sum() >= limit - 1e-12:
                free &= ~inside
        if not free.any() or weights.sum() == 0:
            break
        weights[free] += (1 - weights.sum()) * weights[free] / weights[free].sum()
    return weights


def named(problem: PortfolioProblem, weights: Array) -> dict[str, float]:
    """Weights as an agent writes them."""
    return {ticker: float(weight) for ticker, weight in zip(problem.tickers, weights, strict=True)}


def _all(task_input: Json, write: Callable[[PortfolioProblem, Array], Json]) -> dict[str, Json]:
    problem = problem_from(task_input)
    found = portfolios(problem, task_input) | other_questions(problem)
    answers = {name: write(problem, weights) for name, weights in found.items()}
    answers["empty"] = {}
    return answers


def unconstrained(task_input: Json) -> dict[str, Json]:
    """Attacks on unconstrained optimisation."""
    return _all(task_input, lambda problem, weights: {"weights": named(problem, weights)}) | {
        "no weights": {"weights": {}},
        "all in cash": {"weights": {"CASH": 1.0}},
    }


def constrained(task_input: Json) -> dict[str, Json]:
    """Attacks on constrained optimisation; every flag is claimed to be true."""
    problem = problem_from(task_input)
    flags = dict.fromkeys(check_limits(problem, np.full(problem.size, 1 / problem.size)), True)
    answers = _all(
        task_input,
        lambda problem, weights: {"weights": named(problem, weights), "constraint_satisfaction": flags},
    )
    return answers | {
        "no weights": {"weights": {}, "constraint_satisfaction": flags},
        "all in cash": {"weights": {"CASH": 1.0}, "constraint_satisfaction": flags},
    }


def traded(problem: PortfolioProblem, weights: Array) -> Json:
    """A rebalancing answer whose reports agree with its weights."""
    assert problem.current is not None
    return {
        "trade_list": named(problem, weights - problem.current),
        "new_weights": named(problem, weights),
        "turnover": turnover(weights, problem.current),
    }


def rebalancing(task_input: Json) -> dict[str, Json]:
    """Attacks on rebalancing; reports agree with the weights, which is the best a cheat can do."""
    answers = _all(task_input, traded)
    problem = problem_from(task_input)
    assert problem.current is not None
    best = optimise(problem).weights
    answers["optimum without the second stage"] = traded(problem, best)
    for share in (0.25, 0.5, 0.75):
        answers[f"{share:.0%} of the way to the optimum"] = traded(
            problem, problem.current + share * (best - problem.current)
        )
    return answers | {
        "no weights": {"trade_list": {}, "turnover": 0.0},
        "all in cash": {"new_weights": {"CASH": 1.0}, "trade_list": {"CASH": 1.0}, "turnover": 1.0},
    }


def black_litterman(task_input: Json) -> dict[str, Json]:
    """Attacks on Black-Litterman: each posterior that ignores the model, with portfolios that ignore the posterior."""
    problem, after = black_litterman_from(task_input)
    found = portfolios(replace(problem, expected_returns=after.equilibrium), task_input)
    found["minimum variance"] = optimise(replace(problem, objective=Objective.MIN_VARIANCE)).weights
    found["optimum of the equilibrium"] = optimise(replace(problem, expected_returns=after.equilibrium)).weights
    equilibrium = named(problem, after.equilibrium)
    answers = {
        name: {"posterior_returns": equilibrium, "optimal_weights": named(problem, weights)}
        for name, weights in found.items()
    }
    market = answers["benchmark"]["optimal_weights"]
    viewed = dict(equilibrium)
    for view in task_input["analyst_views"]:
        if view["type"] == "absolute":
            viewed[view["symbols"][0]] = view["return"]
        else:
            viewed[view["symbols"][0]] = viewed[view["symbols"][1]] + view["return"]
    certain = np.array([viewed[ticker] for ticker in problem.tickers])
    blind = optimise(replace(problem, expected_returns=certain)).weights
    return answers | {
        "views taken as certain": {"posterior_returns": viewed, "optimal_weights": named(problem, blind)},
        "posterior of zeros": {"posterior_returns": dict.fromkeys(problem.tickers, 0.0), "optimal_weights": market},
        "posterior of 8 %": {"posterior_returns": dict.fromkeys(problem.tickers, 0.08), "optimal_weights": market},
        "posterior only": {"posterior_returns": equilibrium},
        "empty": {},
        "no weights": {"posterior_returns": {}, "optimal_weights": {}},
        "all in cash": {"posterior_returns": {"CASH": 0.0}, "optimal_weights": {"CASH": 1.0}},
    }


EVERYTHING = {
    "objective": "max_sharpe",
    "risk_aversion": 2.0,
    "constraints": {
        "long_only": True,
        "max_weight": 0.08,
        "min_weight": 0.005,
        "max_sector_weight": 0.2,
        "sector_limits": {"Technology": 0.1},
        "excluded_sectors": ["Energy"],
        "min_names": 20,
        "max_names": 25,
        "max_turnover": 0.1,
        "max_tracking_error": 0.03,
        "neutral_factors": ["mkt_rf", "smb", "hml", "rmw", "cma", "mom"],
        "neutrality_tolerance": 0.02,
    },
}
"""A call that sets every parameter of the API."""


def tool_use(task_input: Json) -> dict[str, Json]:
    """Constant calls."""
    objectives = ("max_sharpe", "min_variance", "max_return", "risk_parity")
    answers = {f"{name}, long-only": _call(name, {"long_only": True}) for name in objectives}
    answers |= {f"{name}, 8 % a name": _call(name, {"long_only": True, "max_weight": 0.08}) for name in objectives}
    answers |= {
        f"{name}, 8 % a name and 20 % a sector": _call(
            name, {"long_only": True, "max_weight": 0.08, "max_sector_weight": 0.2}
        )
        for name in objectives
    }
    del task_input
    return answers | {
        "every parameter": {"optimizer_call": EVERYTHING},
        "the example of the documentation": _call("max_return", {"sector_limits": {"Energy": 0.1}}),
        "documented numbers": _call("max_sharpe", {"max_tracking_error": 0.03, "neutrality_tolerance": 0.01}),
        "limits that never bind": _call("max_sharpe", {"max_weight": 1.0, "max_turnover": 1.0, "max_names": 30}),
        "empty": {},
        "no call": {"optimizer_call": {}},
        "call outside optimizer_call": EVERYTHING,
    }


def _call(objective: str, constraints: Json) -> Json:
    return {"optimizer_call": {"objective": objective, "constraints": constraints}}


def infeasibility(task_input: Json) -> dict[str, Json]:
    """Constant verdicts and numbers, and cheap estimates of the least turnover with the verdict they imply."""
    limit = task_input["constraints"]["max_turnover"]
    answers: dict[str, Json] = {"empty": {}}
    for feasible in (True, False):
        word = "feasible" if feasible else "infeasible"
        answers[word] = {"feasible": feasible}
        answers[f"{word}, no turnover"] = {"feasible": feasible, "minimum_turnover": 0.0}
        answers[f"{word}, at the limit"] = {"feasible": feasible, "minimum_turnover": limit}
        for level in np.arange(0.06, 0.26, 0.01):
            answers[f"{word}, {level:.0%}"] = {"feasible": feasible, "minimum_turnover": float(level)}
    free = {**task_input, "constraints": {**task_input["constraints"], "max_turnover": None}}
    problem = problem_from(free)
    assert problem.current is not None
    equal = np.full(problem.size, 1 / problem.size)
    nearest = optimise(problem, Goal.DISTANCE, anchor=problem.current).weights
    estimates = {
        "to equal weights": equal,
        "to equal weights within the caps": _clipped(problem, equal),
        "to itself within the caps": _clipped(problem, problem.current),
        "to the benchmark": np.array([task_input["benchmark_weights"][ticker] for ticker in problem.tickers]),
        "to the nearest feasible by distance": nearest,
    }
    for name, weights in estimates.items():
        needed = turnover(weights, problem.current)
        answers[f"turnover {name}"] = {"feasible": needed <= limit, "minimum_turnover": needed}
    return answers


ATTACKS: Mapping[str, Callable[[Json], dict[str, Json]]] = {
    "unconstrained_optimization": unconstrained,
    "constrained_optimization": constrained,
    "rebalancing": rebalancing,
    "black_litterman": black_litterman,
    "tool_use_parameterization": tool_use,
    "infeasibility_detection": infeasibility,
}
