"""The ladder of Black-Litterman: posterior and weights, weaker views, one of the two, the equilibrium, nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.portfolio.audits.exploits import by_ticker
from finskillbench.domains.portfolio.audits.ladders.written import WORTHLESS, of_digits
from finskillbench.engines.portfolio.mandates.fields import black_litterman_from


def ladder(label: Label[Any]) -> list[GradedExample]:
    """Of Black-Litterman."""
    task_input, truth = label.task_input, label.truth.expected_output
    problem, after = black_litterman_from(task_input)
    market = task_input["market_cap_weights"]
    equal = by_ticker(problem, np.full(problem.size, 1.0 / problem.size))
    prior = by_ticker(problem, after.equilibrium + task_input["risk_free_rate"])
    tilted = {name: 0.95 * value + 0.05 * prior[name] for name, value in truth["posterior_returns"].items()}
    return [
        GradedExample("posterior and its optimum", truth, 1.0, 1.0),
        *of_digits(problem, truth, "optimal_weights"),
        GradedExample("views held a twentieth too weakly", {**truth, "posterior_returns": tilted}, 0.6, 0.95),
        GradedExample("the posterior, with the market portfolio", {**truth, "optimal_weights": market}, 0.0, WORTHLESS),
        GradedExample("the posterior alone", {"posterior_returns": truth["posterior_returns"]}, 0.0, 0.0),
        GradedExample("the equilibrium", {"posterior_returns": prior, "optimal_weights": market}, 0.0, WORTHLESS),
        GradedExample(
            "one return for every name, and equal weights",
            {"posterior_returns": dict.fromkeys(equal, 0.08), "optimal_weights": equal},
            0.0,
            WORTHLESS,
        ),
    ]
