"""Shortcuts and graded examples of rebalancing."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.arrays import Booleans, Floats
from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.portfolio.examples.exploits import (
    WORTHLESS,
    Answers,
    of_digits,
    rebalancing_answer,
    uncorrelated,
)
from finskillbench.domains.portfolio.inputs import RebalancingInput
from finskillbench.engines.optimisation.certified import UndecidedError
from finskillbench.engines.optimisation.intervals import SLACK
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import PortfolioProblem, require_array
from finskillbench.engines.portfolio.rebalance import RebalancingRules, cheapest, required_value
from finskillbench.engines.portfolio.trivial import within_caps

_HALVINGS = 40


def shortcuts(task_input: RebalancingInput) -> Answers:
    """Return answers that skip part of the work; all reports agree with the weights."""
    problem = problem_from(task_input)
    trading_rules = RebalancingRules.of(task_input, problem)
    current = require_array(problem.current, "current portfolio")
    first = optimise(problem, unique=False)
    value = required_value(problem, first.value, trading_rules)
    relaxed = cheapest(problem, replace(trading_rules, min_trade=0.0), value).weights
    found = {
        "first stage only": first.weights,
        "half-way to the first stage": (current + first.weights) / 2,
        "straight line until it gains enough": _straight(problem, first.weights, value),
        "first stage, small trades dropped": _dropped(problem, trading_rules, first.weights),
        "minimum trade ignored": relaxed,
        "minimum trade ignored, small trades dropped": _dropped(problem, trading_rules, relaxed),
        "minimum trade ignored, small trades rounded": _rounded(problem, trading_rules, relaxed),
        "optimum without correlations within the caps": within_caps(problem, uncorrelated(problem)),
        "no trade": current,
    }
    try:
        alike = replace(trading_rules, costs=np.full(problem.size, float(np.median(trading_rules.costs))))
        found["least turnover instead of least cost"] = cheapest(problem, alike, value).weights
    except UndecidedError:
        pass
    return {name: rebalancing_answer(problem, weights) for name, weights in found.items()}


def mended(problem: PortfolioProblem, trading_rules: RebalancingRules, relaxed: Floats) -> tuple[Floats, Floats]:
    """Return trades found without the minimum, with smaller ones dropped, and rounded to 0 or the minimum."""
    return _dropped(problem, trading_rules, relaxed), _rounded(problem, trading_rules, relaxed)


def small_trades(problem: PortfolioProblem, trading_rules: RebalancingRules, weights: Floats) -> Booleans:
    """Return (n,) flags of trades below the minimum."""
    current = require_array(problem.current, "current portfolio")
    size = np.abs(weights - current)
    return (size > SLACK) & (size < trading_rules.least_trades(weights, current, SLACK) - SLACK)


def _straight(problem: PortfolioProblem, target: Floats, value: float) -> Floats:
    """Return the first point on the line to a target that reaches the required objective."""
    current = require_array(problem.current, "current portfolio")
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = problem.value(current + middle * (target - current)) <= value
        low, high = (low, middle) if enough else (middle, high)
    return current + high * (target - current)


def _dropped(problem: PortfolioProblem, trading_rules: RebalancingRules, weights: Floats) -> Floats:
    return _resized(problem, trading_rules, weights, lambda trades: np.zeros(len(trades)))


def _rounded(problem: PortfolioProblem, trading_rules: RebalancingRules, weights: Floats) -> Floats:
    least = trading_rules.min_trade
    return _resized(
        problem,
        trading_rules,
        weights,
        lambda trades: np.where(np.abs(trades) > least / 2, np.sign(trades) * least, 0.0),
    )


def _resized(
    problem: PortfolioProblem, trading_rules: RebalancingRules, weights: Floats, resize: Callable[[Floats], Floats]
) -> Floats:
    """Resize small trades; large trades absorb the surplus of purchases in proportion."""
    current = require_array(problem.current, "current portfolio")
    small, trades = small_trades(problem, trading_rules, weights), weights - current
    trades = np.where(small, resize(trades), trades)
    share = np.abs(trades) * ~small
    return current + trades - trades.sum() * share / max(float(share.sum()), SLACK)


_MORE = 0.05
"""Share of the distance from the required to the full improvement."""


def graded_examples(label: Label[Any]) -> list[GradedExample]:
    """Return graded answers; each episode has one of rounding, extra and missing improvement, which cost about the
    same.
    """
    problem, truth = problem_from(label.task_input), label.truth.expected_output
    rules, known = RebalancingRules.of(label.task_input, problem), label.truth.verification
    current = require_array(problem.current, "current portfolio")
    kind = zlib.crc32(label.truth.task_id.encode()) % 3
    found = [GradedExample("the cheapest trades that gain enough", truth, 1.0, 1.0)]
    value, first = known["required_value"], optimise(problem, unique=False)
    if kind == 0:
        found += of_digits(problem, truth, "new_weights", fewest=4)
    elif kind == 1:
        better = rebalancing_answer(problem, cheapest(problem, rules, value - _MORE * (value - first.value)).weights)
        found.append(GradedExample("the cheapest trades that gain a little more", better, 0.3, 1.0))
    else:
        short = rebalancing_answer(
            problem, cheapest(problem, rules, value + 0.01 * (problem.value(current) - value)).weights
        )
        found.append(GradedExample("one per cent short of the required improvement", short, 0.7, 0.9))
    found.append(
        GradedExample("turnover of both sides reported", {**truth, "turnover": 2 * truth["turnover"]}, 0.5, 0.5)
    )
    best = np.array([truth["new_weights"][ticker] for ticker in problem.tickers])
    found.append(
        GradedExample(
            "half of every trade", rebalancing_answer(problem, current + 0.5 * (best - current)), 0.0, WORTHLESS
        )
    )
    found.append(GradedExample("the first stage's optimum", rebalancing_answer(problem, first.weights), 0.0, WORTHLESS))
    found.append(GradedExample("no trade", rebalancing_answer(problem, current), 0.0, WORTHLESS))
    found.append(GradedExample("no weights", {**truth, "new_weights": {}}, 0.0, 0.0))
    return found
