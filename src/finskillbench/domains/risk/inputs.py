"""Task inputs of the risk subtasks; weights are signed fractions of NAV, and references are resolved before use."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Holding(TypedDict):
    """Position in one name."""

    symbol: str
    weight: float


class OptionInput(TypedDict):
    """Index puts: notional as signed fraction of NAV, strike relative to the index, annual volatilities."""

    option: str
    notional: float
    strike: float
    years: float
    implied_volatility: float
    stressed_volatility: float


class PortfolioInput(TypedDict):
    """Portfolio: weights and cash sum to 1, `total_nav` is in USD, trades are signed weight changes."""

    portfolio_id: str
    holdings: list[Holding]
    cash_weight: float
    total_nav: float
    trades_this_month: dict[str, float]
    option_overlay: NotRequired[list[OptionInput]]


class ConstraintInput(TypedDict):
    """Limit of a mandate: a `value` or a range; name_count may have one null end."""

    type: str
    definition: str
    value: NotRequired[float | bool]
    min: NotRequired[float | None]
    max: NotRequired[float | None]
    factors: NotRequired[list[str]]


class MandateInput(TypedDict):
    """Mandate with at most one constraint per type."""

    mandate_id: str
    name: str
    constraints: list[ConstraintInput]


class CovarianceInput(TypedDict):
    """Annualised covariance: a reference, a full matrix, or L'L + diag(specific) with loadings L."""

    tickers: list[str]
    ref: NotRequired[str]
    matrix: NotRequired[list[list[float]]]
    loadings: NotRequired[list[list[float]]]
    specific: NotRequired[list[float]]


class ScenarioInput(TypedDict):
    """Stress scenario: the narrative `market_shocks`, and applied tables; sectors without sensitivity have a proxy."""

    scenario_id: str
    type: str
    name: str
    description: str
    market_shocks: dict[str, float]
    factor_shocks: dict[str, float]
    sector_sensitivities: dict[str, float]
    sector_proxies: NotRequired[dict[str, str]]
    spread_widening_bp: NotRequired[float]
    correlation_shift: NotRequired[float]


class HoldingsInput(TypedDict):
    """Fields common to all risk subtasks: portfolio, sectors, betas and conventions."""

    portfolio: PortfolioInput
    sector_mapping: dict[str, str]
    factor_exposures: dict[str, dict[str, float]]
    conventions: dict[str, str]


class MonitoringInput(HoldingsInput):
    """Input of constraint monitoring."""

    mandate: MandateInput
    benchmark_weights: dict[str, float]
    covariance_matrix: CovarianceInput


class TradingRulesInput(TypedDict):
    """Trading costs in basis points by ticker, minimum trade, and headroom by kind of limit."""

    cost_bps: dict[str, float]
    minimum_trade: float
    headroom: dict[str, float]


class RemediationInput(MonitoringInput):
    """Input of risk remediation; `violations` lists the broken constraint types."""

    violations: list[str]
    trading_terms: TradingRulesInput


class IdentificationInput(HoldingsInput):
    """Input of risk identification: volumes in USD a day, annual factor volatilities as decimals."""

    average_daily_volume_usd: dict[str, float]
    factor_volatility: dict[str, float]
    benchmark_weights: dict[str, float]
    covariance_matrix: CovarianceInput


class StressInput(HoldingsInput):
    """Input of stress testing: volumes in USD a day; some names may lack betas."""

    stress_scenario: ScenarioInput
    benchmark_weights: NotRequired[dict[str, float]]
    average_daily_volume_usd: NotRequired[dict[str, float]]
    covariance_matrix: NotRequired[CovarianceInput]
