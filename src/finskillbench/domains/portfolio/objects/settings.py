"""Settings of the portfolio subtasks (catalog/portfolio.json beside them); fractions of NAV, annual decimals."""

from __future__ import annotations

from typing import TypedDict

import msgspec

from finskillbench.domains.building import read_catalog

Range = tuple[float, float]


class TierSettings(TypedDict):
    """One constraint tier before it is fitted to the universe of a month-end.

    legacy_turnover : least turnovers into the limits that current portfolios are drawn for.
    listed : share of the universe on the approved list of a rebalancing: more names are more work.
    """

    max_weight: float
    sector_cap: float
    min_names: int
    max_names: int
    max_turnover: float | None
    max_tracking_error: float | None
    neutral_factors: list[str]
    risk_aversion: float
    legacy_turnover: Range
    listed: float


class InfeasibilitySettings(TypedDict):
    """What the mandates of infeasibility detection are drawn from.

    tier : whose limits they vary.
    tracking_error : the limit, as a multiple of the least attainable.
    sector_room : by how much the caps of sectors are wider than the tier's.
    least_turnover : from the current portfolio into the other limits.
    gap : by what share the turnover limit is above the least turnover, or this above the limit.
    """

    tier: str
    tracking_error: Range
    sector_room: Range
    least_turnover: Range
    gap: Range


class RebalancingSettings(TypedDict):
    """What a rebalancing has to do.

    min_trade : least size of a trade, as a share of the average position on the approved list.
    required_improvement : share of the attainable improvement of the objective.
    draws : current portfolios drawn for each date, tier and objective.
    """

    min_trade: float
    required_improvement: float
    draws: int


class ViewSettings(TypedDict):
    """How many draws of views a month-end has, and what they are drawn from.

    listed : share of the universe on the approved list, by number of views from the fewest.
    """

    variants: int
    views: tuple[int, int]
    listed: list[float]
    relative_share: float
    confidence: Range
    view_standard_deviations: float


class Settings(TypedDict):
    """The whole file."""

    about: str
    tiers: dict[str, TierSettings]
    neutrality_tolerance: float
    unconstrained_risk_aversion: float
    grey_band: float
    infeasibility: InfeasibilitySettings
    rebalancing: RebalancingSettings
    legacy_drift_sessions: int
    episodes_per_subtask: int
    black_litterman: ViewSettings


def read_settings() -> Settings:
    """The settings that ship with the benchmark."""
    return msgspec.convert(read_catalog("finskillbench.domains.portfolio", "portfolio.json"), Settings)
