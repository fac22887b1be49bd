"""Settings of the portfolio subtasks (catalog/portfolio.json beside them); fractions of NAV, annual decimals."""

from __future__ import annotations

from typing import TypedDict

import msgspec

from finskillbench.domains.building import read_catalog

Range = tuple[float, float]


class TierSettings(TypedDict):
    """One constraint tier before it is set against the benchmark of a month-end; None where there is no such limit.

    sector_room : how far above its benchmark weight a sector may weigh.
    min_position : least weight of a name that is held; with it comes a least number of names.
    max_turnover, max_tracking_error, neutrality_tolerance : the most that a mandate allows; one in which these would
        not bind allows less.
    listed : share of the universe on the approved list of a rebalancing: more names are more work.
    """

    max_weight: float
    sector_room: float
    min_position: float | None
    max_turnover: float | None
    max_tracking_error: float | None
    neutral_factors: list[str]
    neutrality_tolerance: float
    risk_aversion: float
    listed: float


class InfeasibilitySettings(TypedDict):
    """What the mandates of infeasibility detection are drawn from.

    tier : whose limits they vary.
    tracking_error : the limit.
    sector_room : by how much the caps of sectors are wider than the tier's.
    least_turnover : from the current portfolio into the other limits.
    gap : by what share the turnover limit is above the least turnover, or this above the limit.
    """

    tier: str
    tracking_error: Range
    sector_room: Range
    least_turnover: Range
    gap: Range


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
    unconstrained_risk_aversions: list[float]
    grey_band: float
    infeasibility: InfeasibilitySettings
    legacy_drift_sessions: int
    episodes_per_subtask: int
    black_litterman: ViewSettings


def read_settings() -> Settings:
    """The settings that ship with the benchmark."""
    return msgspec.convert(read_catalog("finskillbench.domains.portfolio", "portfolio.json"), Settings)
