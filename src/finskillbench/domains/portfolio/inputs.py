"""Input types of the portfolio subtasks; fields absent from the published release are not required."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from finskillbench.domains.building import CovarianceTable

AnalystView = TypedDict(
    "AnalystView",
    {"type": str, "symbols": list[str], "against": NotRequired[list[str]], "return": float, "confidence": float},
    total=False,  # the release nests type, symbols and return in `view`
)
"""A view: `absolute` on a total return, or `relative` of `symbols` over `against`."""


class Constraints(TypedDict):
    """Limits of a mandate; null or absent switches a limit off."""

    long_only: NotRequired[bool | None]
    restricted_names: NotRequired[list[str] | None]
    max_weight: NotRequired[float | None]
    min_weight: NotRequired[float | None]
    sector_limits: NotRequired[dict[str, float] | None]
    min_position: NotRequired[float | None]
    min_names: NotRequired[int | None]
    max_names: NotRequired[int | None]
    max_turnover: NotRequired[float | None]
    max_tracking_error: NotRequired[float | None]
    factor_neutrality: NotRequired[bool | None]
    neutral_factors: NotRequired[list[str] | None]
    neutrality_tolerance: NotRequired[float | None]


class MarketFields(TypedDict):
    """Fields of every optimisation."""

    expected_returns: NotRequired[dict[str, float]]
    covariance_matrix: CovarianceTable
    risk_free_rate: NotRequired[float]
    objective: str
    risk_aversion: NotRequired[float]


class MandateFields(TypedDict):
    """A full set of limits and the data they refer to."""

    constraints: Constraints
    benchmark_weights: NotRequired[dict[str, float]]
    current_portfolio: NotRequired[dict[str, float]]
    sector_mapping: NotRequired[dict[str, str]]
    factor_exposures: NotRequired[dict[str, dict[str, float]]]


class UnconstrainedInput(MarketFields):
    """Input of unconstrained optimisation."""

    constraints: NotRequired[Constraints]
    conventions: NotRequired[dict[str, str]]


class ConstrainedInput(MarketFields, MandateFields):
    """Input of constrained optimisation."""

    conventions: NotRequired[dict[str, str]]


class RebalancingInput(MarketFields):
    """Input of rebalancing."""

    current_portfolio: dict[str, float]
    current_portfolio_date: str
    constraints: NotRequired[Constraints]
    sector_mapping: NotRequired[dict[str, str]]
    trading_costs_bps: NotRequired[dict[str, float]]
    min_trade: NotRequired[float]
    required_improvement: NotRequired[float]
    conventions: NotRequired[dict[str, str]]


class BlackLittermanInput(TypedDict):
    """Input of Black-Litterman."""

    market_cap_weights: dict[str, float]
    covariance_matrix: CovarianceTable
    risk_free_rate: float
    analyst_views: list[AnalystView]
    risk_aversion: NotRequired[float]
    tau: NotRequired[float]
    conventions: NotRequired[dict[str, str]]


class ToolUseInput(TypedDict):
    """Input of tool-use parameterisation."""

    scenario_description: str
    tool_documentation: str
    sectors: NotRequired[list[str]]
    universe_size: NotRequired[int]


class InfeasibilityInput(MandateFields):
    """Input of infeasibility detection."""

    covariance_matrix: CovarianceTable
    limit_to_relax: str
    conventions: NotRequired[dict[str, str]]
