"""Settings of the portfolio subtasks (catalog/portfolio.json beside them); fractions of NAV, annual decimals."""

from __future__ import annotations

from typing import TypedDict

import msgspec

from finskillbench.domains.building import read_catalog

Range = tuple[float, float]


class TierSettings(TypedDict):
    """One constraint tier before it is fitted to the universe of a month-end.

    legacy_turnover : least turnovers into the limits that current portfolios are drawn for.
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


class InfeasibilitySettings(TypedDict):
    """The tier of infeasibility detection and how far from its turnover limit, on either side, cases are drawn."""

    tier: str
    within: Range
    beyond: Range


class ViewSettings(TypedDict):
    """How many draws of views a month-end has, and what they are drawn from."""

    variants: int
    views: tuple[int, int]
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
    legacy_drift_sessions: int
    episodes_per_subtask: int
    black_litterman: ViewSettings


def read_settings() -> Settings:
    """The settings that ship with the benchmark."""
    return msgspec.convert(read_catalog("finskillbench.domains.portfolio", "portfolio.json"), Settings)
