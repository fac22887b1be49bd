"""Shortcuts of rebalancing: a stage, the costs or the minimum trade left out, and mended by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from finskillbench.arrays import Booleans, Floats
from finskillbench.domains.portfolio.audits.exploits import Answers, traded, uncorrelated
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
