"""Ladders of the two optimisations: the optimum, rounded, of another question, of other limits, and no thought."""

from __future__ import annotations

from typing import Any

import numpy as np

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.portfolio.audits.exploits import by_ticker
from finskillbench.domains.portfolio.audits.ladders.written import (
    WORTHLESS,
    of_digits,
    other_objectives,
    too_wide,
)
from finskillbench.domains.portfolio.worth import CONFUSED
from finskillbench.engines.portfolio.mandates.fields import problem_from

_NAMES = 0.1
"""What decisions on names, which the zero of the scores leaves out, may add to the optimum of another objective."""


def ladder(label: Label[Any]) -> list[GradedExample]:
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
