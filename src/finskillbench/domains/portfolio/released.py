"""How the published release carries the portfolio subtasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from finskillbench.domains.base import Released
from finskillbench.episode import JsonObject
from finskillbench.scoring.values import mapping

_NEEDS_RETURNS = ("max_sharpe", "max_return")


def _fields(*fields: str) -> Callable[[JsonObject], tuple[str, ...]]:
    """These fields, and those that the episode's own objective and limits refer to."""
    return lambda task_input: tuple(dict.fromkeys((*fields, *_referred_to(task_input))))


def _referred_to(task_input: JsonObject) -> Iterator[str]:
    if task_input.get("objective") in _NEEDS_RETURNS:
        yield "expected_returns"
    limits = mapping(task_input.get("constraints"))
    neutral = bool(limits.get("factor_neutrality"))
    if limits.get("sector_limits"):
        yield "sector_mapping"
    if limits.get("max_turnover") is not None:
        yield "current_portfolio"
    if limits.get("max_tracking_error") is not None or neutral:
        yield "benchmark_weights"
    if neutral:
        yield "factor_exposures"


RELEASED = {
    "unconstrained_optimization": Released(_fields("covariance_matrix", "objective"), folder="unconstrained"),
    "constrained_optimization": Released(
        _fields("covariance_matrix", "objective", "constraints"), folder="constrained"
    ),
    "rebalancing": Released(_fields("covariance_matrix", "objective", "current_portfolio")),
    "black_litterman": Released(_fields("covariance_matrix", "market_cap_weights", "analyst_views")),
    "tool_use_parameterization": Released(_fields("scenario_description", "tool_documentation")),
}
