"""The ladder of rebalancing: near-optimal with near-minimal turnover first, a portfolio left alone last."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from finskillbench.domains.base import Label, Rung
from finskillbench.domains.portfolio.audits.exploits import traded
from finskillbench.domains.portfolio.audits.ladders.written import WORTHLESS, of_digits, other_objectives
from finskillbench.domains.portfolio.worth.merit import CONFUSED
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import turnover, violations
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import required


def ladder(label: Label[Any]) -> list[Rung]:
    """Of rebalancing; every report agrees with the weights unless the rung says otherwise.

    Rounding, a second stage left out and a part of the way cost about as little as each other, and a ladder is one
    order: an episode has one of the three, by its name.
    """
    problem, truth = problem_from(label.task_input), label.truth.expected_output
    current = required(problem.current, "current portfolio")
    kind = zlib.crc32(label.truth.task_id.encode()) % 3
    rungs = [Rung("the optimum with the least turnover", truth, 1.0, 1.0)]
    if kind == 0:
        rungs += of_digits(problem, truth, "new_weights")
    elif kind == 1:
        first = optimise(problem, unique=False).weights
        more = max(0.0, turnover(first, current) / truth["turnover"] - 1.0)
        rungs.append(Rung("the first stage's optimum", traded(problem, first), 1.0 - 1.05 * more - 1e-3, 1.0))
    else:
        best = np.array([truth["new_weights"][ticker] for ticker in problem.tickers])
        known = label.truth.verification
        accepted, zero = known["accepted_value"], known["trivial_value"]
        left = (problem.value(current) - accepted) / (zero - accepted)
        for words, share in (("nine tenths", 0.9), ("half", 0.5), ("a tenth", 0.1)):
            part = current + share * (best - current)
            # The objective is convex: of the way that is left no more than its share is lost.
            least = max(0.0, 1.0 - (1.0 - share) * left - 1e-3) if not violations(problem, part) else 0.0
            rungs.append(Rung(f"{words} of the way", traded(problem, part), least, 1.0 if share > 0.1 else 0.5))
    if kind != 2:
        rungs.append(Rung("turnover of both sides reported", {**truth, "turnover": 2 * truth["turnover"]}, 0.5, 0.5))
        weights = next(iter(other_objectives(problem).values()))
        rungs.append(Rung("the nearest optimum of another objective", traded(problem, weights), 0.0, CONFUSED))
    rungs.append(Rung("no trade", traded(problem, current), 0.0, WORTHLESS))
    rungs.append(Rung("no weights", {**truth, "new_weights": {}}, 0.0, 0.0))
    return rungs
