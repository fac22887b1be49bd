"""Shortcuts and the ladder of answers of rebalancing."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.arrays import Booleans, Floats
from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.portfolio.examples.exploits import WORTHLESS, Answers, of_digits, traded, uncorrelated
from finskillbench.domains.portfolio.inputs import RebalancingInput
from finskillbench.engines.optimisation.certified import UndecidedError
from finskillbench.engines.optimisation.intervals import SLACK
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import PortfolioProblem, required
from finskillbench.engines.portfolio.rebalance import TradingTerms, cheapest, required_value
from finskillbench.engines.portfolio.trivial import within_caps

_HALVINGS = 40


def answers(task_input: RebalancingInput) -> Answers:
    """Answers that leave out a part of the work; every report agrees with the weights."""
    problem = problem_from(task_input)
    terms = TradingTerms.of(task_input, problem)
    current = required(problem.current, "current portfolio")
    first = optimise(problem, unique=False)
    value = required_value(problem, first.value, terms)
    relaxed = cheapest(problem, replace(terms, min_trade=0.0), value).weights
    found = {
        "first stage only": first.weights,
        "half-way to the first stage": (current + first.weights) / 2,
        "straight line until it gains enough": _straight(problem, first.weights, value),
        "first stage, small trades dropped": _dropped(problem, terms, first.weights),
        "minimum trade ignored": relaxed,
        "minimum trade ignored, small trades dropped": _dropped(problem, terms, relaxed),
        "minimum trade ignored, small trades rounded": _rounded(problem, terms, relaxed),
        "optimum without correlations within the caps": within_caps(problem, uncorrelated(problem)),
        "no trade": current,
    }
    try:
        alike = replace(terms, costs=np.full(problem.size, float(np.median(terms.costs))))
        found["least turnover instead of least cost"] = cheapest(problem, alike, value).weights
    except UndecidedError:
        pass
    return {name: traded(problem, weights) for name, weights in found.items()}


def mended(problem: PortfolioProblem, terms: TradingTerms, relaxed: Floats) -> tuple[Floats, Floats]:
    """Trades found without the minimum, with those under it dropped, and rounded to 0 or the minimum."""
    return _dropped(problem, terms, relaxed), _rounded(problem, terms, relaxed)


def small_trades(problem: PortfolioProblem, terms: TradingTerms, weights: Floats) -> Booleans:
    """(n,) whether a trade is below the minimum."""
    current = required(problem.current, "current portfolio")
    size = np.abs(weights - current)
    return (size > SLACK) & (size < terms.least_trades(weights, current, SLACK) - SLACK)


def _straight(problem: PortfolioProblem, target: Floats, value: float) -> Floats:
    """As far towards a target as the required objective asks."""
    current = required(problem.current, "current portfolio")
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = problem.value(current + middle * (target - current)) <= value
        low, high = (low, middle) if enough else (middle, high)
    return current + high * (target - current)


def _dropped(problem: PortfolioProblem, terms: TradingTerms, weights: Floats) -> Floats:
    return _resized(problem, terms, weights, lambda trades: np.zeros(len(trades)))


def _rounded(problem: PortfolioProblem, terms: TradingTerms, weights: Floats) -> Floats:
    least = terms.min_trade
    return _resized(
        problem, terms, weights, lambda trades: np.where(np.abs(trades) > least / 2, np.sign(trades) * least, 0.0)
    )


def _resized(
    problem: PortfolioProblem, terms: TradingTerms, weights: Floats, resize: Callable[[Floats], Floats]
) -> Floats:
    """Weights after small trades are resized; the large ones share the surplus of purchases in proportion."""
    current = required(problem.current, "current portfolio")
    small, trades = small_trades(problem, terms, weights), weights - current
    trades = np.where(small, resize(trades), trades)
    share = np.abs(trades) * ~small
    return current + trades - trades.sum() * share / max(float(share.sum()), SLACK)


_MORE = 0.05
"""Part of the way from the required improvement to all of it."""


def graded_examples(label: Label[Any]) -> list[GradedExample]:
    """Of rebalancing; every report agrees with the weights unless the rung says otherwise.

    Rounding, more improvement than required and less of it cost about as little as each other, and a ladder is one
    order: an episode has one of the three, by its name.
    """
    problem, truth = problem_from(label.task_input), label.truth.expected_output
    terms, known = TradingTerms.of(label.task_input, problem), label.truth.verification
    current = required(problem.current, "current portfolio")
    kind = zlib.crc32(label.truth.task_id.encode()) % 3
    rungs = [GradedExample("the cheapest trades that gain enough", truth, 1.0, 1.0)]
    value, first = known["required_value"], optimise(problem, unique=False)
    if kind == 0:
        rungs += of_digits(problem, truth, "new_weights", fewest=4)
    elif kind == 1:
        better = traded(problem, cheapest(problem, terms, value - _MORE * (value - first.value)).weights)
        rungs.append(GradedExample("the cheapest trades that gain a little more", better, 0.3, 1.0))
    else:
        short = traded(problem, cheapest(problem, terms, value + 0.01 * (problem.value(current) - value)).weights)
        rungs.append(GradedExample("one per cent short of the required improvement", short, 0.7, 0.9))
    rungs.append(
        GradedExample("turnover of both sides reported", {**truth, "turnover": 2 * truth["turnover"]}, 0.5, 0.5)
    )
    best = np.array([truth["new_weights"][ticker] for ticker in problem.tickers])
    rungs.append(
        GradedExample("half of every trade", traded(problem, current + 0.5 * (best - current)), 0.0, WORTHLESS)
    )
    rungs.append(GradedExample("the first stage's optimum", traded(problem, first.weights), 0.0, WORTHLESS))
    rungs.append(GradedExample("no trade", traded(problem, current), 0.0, WORTHLESS))
    rungs.append(GradedExample("no weights", {**truth, "new_weights": {}}, 0.0, 0.0))
    return rungs
