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

    causes : limits to relax, in turn.
    restricted, restricted_weight : share of the universe on the restricted list, and what it weighs in the benchmark.
    factors : how many factors are to be neutral.
    tight, room : steps of caps above the benchmark's own weights (0.5 % of a name; 1 % of a sector, and one step more);
        `room` of the cap to relax.
    book, active : share of the universe in the current portfolio's active book, and weight of that book.
    loose : by what share the limits on turnover and tracking error exceed what the others leave attainable.
    neutrality : its tolerance as a share of the tilts that have to be closed.
    gap : by what share the limit to relax differs from its least attainable value.
    clear : by what share any verdict on a set of limits is clear.
    """

    causes: list[str]
    restricted: Range
    restricted_weight: Range
    factors: tuple[int, int]
    tight: tuple[int, int]
    room: tuple[int, int]
    book: Range
    active: Range
    loose: Range
    neutrality: Range
    gap: Range
    clear: float


class ViewTier(TypedDict):
    """The views of one tier.

    listed : share of the universe on the approved list.
    surprise : size of what a view says beyond the equilibrium, in prior standard deviations.
    absolute, pairs, baskets : number of views on one name, on one name over another, and on two names over two.
    """

    listed: float
    surprise: Range
    absolute: int
    pairs: int
    baskets: int


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

    attempts : most draws until one discriminates.
    """

    variants: int
    attempts: int
    tiers: dict[str, ViewTier]
    confidence: Range


class Settings(TypedDict):
    """The whole file."""

    about: str
    tiers: dict[str, TierSettings]
    unconstrained_risk_aversions: list[float]
    infeasibility: InfeasibilitySettings
    rebalancing: RebalancingSettings
    legacy_drift_sessions: int
    episodes_per_subtask: int
    black_litterman: ViewSettings


def read_settings() -> Settings:
    """The settings that ship with the benchmark."""
    return msgspec.convert(read_catalog("finskillbench.domains.portfolio", "portfolio.json"), Settings)
