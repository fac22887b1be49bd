"""Portfolios that need no skill, for the programs that answer without one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from finskillbench.engines.portfolio.problem import Objective


def equal_weights(by_ticker: Mapping[str, Any] | None) -> dict[str, float]:
    """The same weight for every ticker of a map; none where the input has no such map."""
    return dict.fromkeys(by_ticker, 1.0 / len(by_ticker)) if by_ticker else {}


def rule_of_thumb(data: Mapping[str, Any]) -> dict[str, float]:
    """The best name for max_return, inverse variances for everything else."""
    table = data["covariance_matrix"]
    if data["objective"] == Objective.MAX_RETURN:
        best = max(data["expected_returns"], key=data["expected_returns"].get)
        return {name: float(name == best) for name in table["tickers"]}
    inverse = {name: 1.0 / table["matrix"][i][i] for i, name in enumerate(table["tickers"])}
    total = math.fsum(inverse.values())
    return {name: value / total for name, value in inverse.items()}
