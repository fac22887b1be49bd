"""The ladder of rebalancing: the cheapest sufficient trades first, then dearer and shorter ones, no trade last."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.portfolio.audits.exploits import traded
from finskillbench.domains.portfolio.audits.ladders.written import WORTHLESS, of_digits
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import required
from finskillbench.engines.portfolio.rebalance import TradingTerms, cheapest

_MORE = 0.05
"""Part of the way from the required improvement to all of it."""


def ladder(label: Label[Any]) -> list[GradedExample]:
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
        better = cheapest(problem, terms, value - _MORE * (value - first.value)).weights
        rungs.append(GradedExample("the cheapest trades that gain a little more", traded(problem, better), 0.3, 1.0))
    else:
        short = cheapest(problem, terms, value + 0.01 * (problem.value(current) - value)).weights
        rungs.append(GradedExample("one per cent short of the required improvement", traded(problem, short), 0.7, 0.9))
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
