"""Settings of the portfolio subtasks (catalog/portfolio.json); fractions of NAV, annual decimals."""

from __future__ import annotations

from typing import TypedDict

import msgspec

from finskillbench.domains.building import read_catalog

Range = tuple[float, float]


class TierSettings(TypedDict):
    """One constraint tier before it is sized to a benchmark; None for absent limits.

    sector_room : headroom of a sector above its benchmark weight.
    min_position : minimum weight of a held name; implies a minimum number of names.
    max_turnover, max_tracking_error, neutrality_tolerance : maxima; mandates in which they would not bind use less.
    listed : share of the universe on the approved list of a rebalancing.
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
    """Ranges from which mandates of infeasibility detection are drawn.

    causes : limits to relax, in turn.
    restricted, restricted_weight : share of the universe on the restricted list, and its benchmark weight.
    factors : number of neutral factors.
    tight, room : steps of caps above benchmark weights (0.5 % for names; 1 % for sectors, plus one); `room` for the cap
        to relax.
    book, active : share of the universe in the active book of the current portfolio, and weight of that book.
    loose : excess of turnover and tracking-error limits over the attainable values.
    neutrality : tolerance as a share of the tilts to close.
    gap : relative distance of the limit to relax from its least attainable value.
    clear : relative margin of any verdict on a set of limits.
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
    """Number of views of one tier by kind, share of the universe listed, and surprise in prior standard deviations."""

    listed: float
    surprise: Range
    absolute: int
    pairs: int
    baskets: int


class RebalancingSettings(TypedDict):
    """Requirements of a rebalancing: `min_trade` is a share of the average listed position; `draws` of portfolios."""

    min_trade: float
    required_improvement: float
    draws: int


class ViewSettings(TypedDict):
    """Number and ranges of draws of views at a month-end; `attempts` bounds the draws until one discriminates."""

    variants: int
    attempts: int
    tiers: dict[str, ViewTier]
    confidence: Range


class Settings(TypedDict):
    about: str
    tiers: dict[str, TierSettings]
    unconstrained_risk_aversions: list[float]
    infeasibility: InfeasibilitySettings
    rebalancing: RebalancingSettings
    legacy_drift_sessions: int
    episodes_per_subtask: int
    black_litterman: ViewSettings


def read_settings() -> Settings:
    """Return the settings that ship with the benchmark."""
    return msgspec.convert(read_catalog("finskillbench.domains.portfolio", "portfolio.json"), Settings)
