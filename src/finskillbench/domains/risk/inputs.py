"""What an agent is given in each risk subtask, as the edition's files hold it.

Weights are signed fractions of NAV. A covariance or a table of returns stands as a reference in an episode's file and
is resolved before anybody computes with it.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Holding(TypedDict):
    """One name held."""

    symbol: str
    weight: float


class OptionInput(TypedDict):
    """Puts on the market: notional as a signed decimal of NAV, strike as a part of the index, volatilities a year."""

    option: str
    notional: float
    strike: float
    years: float
    implied_volatility: float
    stressed_volatility: float


class PortfolioInput(TypedDict):
    """A portfolio: weights and cash sum to 1, `total_nav` is in USD, trades are signed changes of weight."""

    portfolio_id: str
    holdings: list[Holding]
    cash_weight: float
    total_nav: float
    trades_this_month: dict[str, float]
    option_overlay: NotRequired[list[OptionInput]]


class ConstraintInput(TypedDict):
    """One limit of a mandate: a `value`, or a range of which name_count may leave one end null."""

    type: str
    definition: str
    value: NotRequired[float | bool]
    min: NotRequired[float | None]
    max: NotRequired[float | None]
    factors: NotRequired[list[str]]


class MandateInput(TypedDict):
    """A mandate: constraints of distinct types."""

    mandate_id: str
    name: str
    constraints: list[ConstraintInput]


class CovarianceInput(TypedDict):
    """An annualised covariance: a reference; or in full, as a matrix or as L'L + diag(specific) with L the loadings."""

    tickers: list[str]
    ref: NotRequired[str]
    matrix: NotRequired[list[list[float]]]
    loadings: NotRequired[list[list[float]]]
    specific: NotRequired[list[float]]


class ScenarioInput(TypedDict):
    """A stress scenario: `market_shocks` tell the story, the other two tables are applied.

    A sector that `sector_sensitivities` lacks has a proxy. Spreads and correlations move only in the hard tier.
    """

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
    """What every risk subtask gives: a portfolio, the sectors of the universe, and the definitions that count."""

    portfolio: PortfolioInput
    sector_mapping: dict[str, str]
    factor_exposures: dict[str, dict[str, float]]
    conventions: dict[str, str]


class MonitoringInput(HoldingsInput):
    """Input of constraint monitoring."""

    mandate: MandateInput
    benchmark_weights: dict[str, float]
    covariance_matrix: CovarianceInput


class TradingTermsInput(TypedDict):
    """Terms of trading: basis points of the amount traded by ticker, the least trade and the headroom by type."""

    cost_bps: dict[str, float]
    minimum_trade: float
    headroom: dict[str, float]


class RemediationInput(MonitoringInput):
    """Input of risk remediation; `violations` are the types of the constraints that are broken now."""

    violations: list[str]
    trading_terms: TradingTermsInput


class IdentificationInput(HoldingsInput):
    """Input of risk identification; volumes are in USD a day, factor volatilities decimals per year."""

    average_daily_volume_usd: dict[str, float]
    factor_volatility: dict[str, float]
    benchmark_weights: dict[str, float]
    covariance_matrix: CovarianceInput


class StressInput(HoldingsInput):
    """Input of stress testing, with what the case needs; volumes are in USD a day, and names may lack betas."""

    stress_scenario: ScenarioInput
    benchmark_weights: NotRequired[dict[str, float]]
    average_daily_volume_usd: NotRequired[dict[str, float]]
    covariance_matrix: NotRequired[CovarianceInput]
