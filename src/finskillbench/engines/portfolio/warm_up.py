"""A small optimisation that warms up script processes."""

from __future__ import annotations

import json
from typing import Any

from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.report import checks, named, proof, satisfaction

_NAMES = 30


def solve_small() -> dict[str, Any]:
    """Optimise 30 names as a typical portfolio script does, to touch the memory that later calls need."""
    tickers = [f"W{number:02d}" for number in range(_NAMES)]
    covariance = [[0.01 + 0.05 * (row == column) for column in range(_NAMES)] for row in range(_NAMES)]
    payload = {
        "covariance_matrix": {"tickers": tickers, "matrix": covariance},
        "expected_returns": {ticker: 0.04 + 0.002 * number for number, ticker in enumerate(tickers)},
        "objective": "max_sharpe",
        "risk_aversion": 3.0,
        "constraints": {"long_only": True, "max_weight": 0.2},
    }
    problem = problem_from(json.loads(json.dumps(payload)))
    best = optimise(problem)
    weights = clean(best.weights)
    return {
        "weights": named(problem, weights),
        "proof": proof(best),
        "checks": checks(problem, weights),
        "constraint_satisfaction": satisfaction(problem, weights),
    }
