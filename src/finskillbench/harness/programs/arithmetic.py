"""What arithmetic by hand can do for a task without any skill: the no-skill side of `baseline/reference`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from finskillbench.domains import Naive

FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "unconstrained_optimization": ("objective", "expected_returns", "covariance_matrix"),
        "constrained_optimization": ("constraints", "benchmark_weights"),
        "rebalancing": ("objective", "expected_returns", "covariance_matrix", "current_portfolio"),
        "black_litterman": ("market_cap_weights", "covariance_matrix", "risk_aversion"),
        "tool_use_parameterization": ("scenario_description",),
        "infeasibility_detection": ("constraints", "current_portfolio"),
    }
)
"""The input fields that the arithmetic of each subtask reads."""

_NOT_LIMITS = frozenset({"neutral_factors", "neutrality_tolerance"})


def _unconstrained(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"weights": _heuristic(data)}


def _constrained(data: Mapping[str, Any]) -> dict[str, Any]:
    """The benchmark, cut to the cap; every limit is hoped to hold."""
    limits = data["constraints"]
    cap = limits.get("max_weight") or 1.0
    flags = {name: True for name, limit in limits.items() if limit and name not in _NOT_LIMITS}
    return {"weights": _capped(data["benchmark_weights"], cap), "constraint_satisfaction": flags}


def _rebalancing(data: Mapping[str, Any]) -> dict[str, Any]:
    weights, current = _heuristic(data), data["current_portfolio"]
    trades = {name: weights[name] - current.get(name, 0.0) for name in weights}
    return {"trade_list": trades, "new_weights": weights, "turnover": sum(map(abs, trades.values())) / 2}


def _black_litterman(data: Mapping[str, Any]) -> dict[str, Any]:
    """The equilibrium without the views, and the market portfolio that it implies."""
    market, table = data["market_cap_weights"], data["covariance_matrix"]
    tickers = table["tickers"]
    returns = {
        name: data["risk_aversion"] * sum(row[j] * market.get(other, 0.0) for j, other in enumerate(tickers))
        for name, row in zip(tickers, table["matrix"], strict=True)
    }
    return {"posterior_returns": returns, "optimal_weights": market}


def _tool_use(data: Mapping[str, Any]) -> dict[str, Any]:
    """The objective by its most telling word; no limit is read."""
    text = data["scenario_description"].lower()
    cues = (("risk aversion", "max_sharpe"), ("inverse-variance", "risk_parity"), ("expected return", "max_return"))
    objective = next((name for cue, name in cues if cue in text), "min_variance")
    return {"optimizer_call": {"objective": objective, "constraints": {"long_only": True}}}


def _infeasibility(data: Mapping[str, Any]) -> dict[str, Any]:
    """Turnover needed for the name caps alone, which bounds the least turnover from below."""
    limits, current = data["constraints"], data["current_portfolio"]
    needed = sum(max(0.0, weight - limits["max_weight"]) for weight in current.values())
    return {"feasible": needed <= limits["max_turnover"], "minimum_turnover": needed}


_METHODS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = MappingProxyType(
    {
        "unconstrained_optimization": _unconstrained,
        "constrained_optimization": _constrained,
        "rebalancing": _rebalancing,
        "black_litterman": _black_litterman,
        "tool_use_parameterization": _tool_use,
        "infeasibility_detection": _infeasibility,
    }
)

BY_HAND = {name: Naive(FIELDS[name], method) for name, method in _METHODS.items()}
"""What a subtask whose domain does not say it yet is answered by hand."""


def _heuristic(data: Mapping[str, Any]) -> dict[str, float]:
    """The best name for max_return, inverse variances for everything else."""
    table = data["covariance_matrix"]
    if data["objective"] == "max_return":
        best = max(data["expected_returns"], key=data["expected_returns"].get)
        return {name: float(name == best) for name in table["tickers"]}
    inverse = {name: 1.0 / table["matrix"][i][i] for i, name in enumerate(table["tickers"])}
    total = sum(inverse.values())
    return {name: value / total for name, value in inverse.items()}


def _capped(weights: Mapping[str, float], cap: float) -> dict[str, float]:
    """Cut to the cap and spread the excess over the names below it in proportion, until none is above."""
    result = dict(weights)
    for _ in range(len(result)):
        excess = sum(max(0.0, weight - cap) for weight in result.values())
        room = sum(weight for weight in result.values() if weight < cap)
        if excess <= 1e-12 or room <= 0:
            break
        result = {name: cap if weight >= cap else weight * (1 + excess / room) for name, weight in result.items()}
    return result
