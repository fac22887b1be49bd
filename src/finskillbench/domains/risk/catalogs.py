"""The catalog of the risk subtasks: what is planted, the twelve mandates, the scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NotRequired, TypedDict, cast

from finskillbench.domains.building import read_catalog
from finskillbench.domains.risk.inputs import ConstraintInput, ScenarioInput

Range = tuple[float, float]
"""The two ends of a uniform draw."""


class ViolatingSettings(TypedDict):
    """How many portfolios have short positions, how many of these and of what weight."""

    short_share: float
    shorts: tuple[int, int]
    short_weight: Range


class PlantedSettings(TypedDict):
    """How large the planted risks are, by type of portfolio and by what is measured."""

    concentrated: dict[str, Range]
    factor_tilted: dict[str, Range]
    liquidity_stressed: dict[str, Range]
    mandate_violating: ViolatingSettings
    stress_vulnerable: dict[str, Range]


class AboutLimits(TypedDict):
    """How a portfolio lies about the limits of its home mandate; the catalog says what each number is."""

    disciplined: float
    near: float
    near_share: float
    wide: float
    above: dict[str, float]
    pressed: float
    left_out: float


class TradingSettings(TypedDict):
    """Cost of trading by volume, the tickets of which one is chosen, and the headroom by kind of limit."""

    cost_bps: Range
    cost_bps_ends: Range
    minimum_trades: list[float]
    headroom: dict[str, float]


class RiskSettings(TypedDict):
    """How the pools are drawn; `domains/risk/catalog/risk.json` says what each number is."""

    portfolios_per_type: int
    scenarios_per_portfolio: int
    remediation_pairs: int
    large_universe: int
    large_remediation_pairs: int
    beyond_mending_share: float
    mended_within_limit_share: float
    trading: TradingSettings
    regimes: list[str]
    holdings: tuple[int, int]
    most_holdings: int
    tracking: list[tuple[float, float]]
    cash: Range
    turnover: Range
    turnover_violating: Range
    nav_usd: Range
    largest_nav_usd: float
    largest_illiquid_share: float
    least_weight: float
    largest_weight: float
    grey_band: float
    about_limits: AboutLimits
    planted: PlantedSettings


class MandateEntry(TypedDict):
    """A mandate as the catalog states it.

    `room` by kind of limit, where it is not that of the other mandates; one that is held `as_stated` has none, and none
    of its limits is widened.
    """

    mandate_id: str
    name: str
    tier: str
    room: NotRequired[dict[str, float]]
    as_stated: NotRequired[bool]
    constraints: list[ConstraintInput]


EPISODES = 40
"""Episodes of each risk subtask."""
_POOLS: Mapping[Literal["portfolios_per_type", "remediation_pairs"], int] = {
    "portfolios_per_type": 2,
    "remediation_pairs": 2,
}
"""Size of a pool for each episode of a smaller edition, and once more."""


class MandateCatalog(TypedDict):
    """The mandates, and by kind of limit the room that it has above what the benchmark measures."""

    room: dict[str, float]
    mandates: list[MandateEntry]


class ReplayEntry(TypedDict):
    """A window of history to be replayed: dates as text, the market's move beyond cash then in per cent."""

    scenario_id: str
    name: str
    start: str
    end: str
    market_pct: float


class ScenarioCatalog(TypedDict):
    """The hypothetical scenarios with their numbers, and the windows of the replays."""

    severity: float
    replay_description: str
    replays: list[ReplayEntry]
    hypothetical: list[ScenarioInput]


def risk_settings(episodes: int | None = None) -> RiskSettings:
    """The settings of the pools; smaller pools for an edition of at most so many episodes of each subtask."""
    settings = cast("RiskSettings", read_catalog(__package__, "risk.json"))
    if episodes is not None:
        for name, each in _POOLS.items():
            settings[name] = min(settings[name], each * (episodes + 1))
    return settings


def mandate_catalog() -> MandateCatalog:
    """The twelve mandates."""
    return cast("MandateCatalog", read_catalog(__package__, "mandates.json"))


def scenario_catalog() -> ScenarioCatalog:
    """The scenarios."""
    return cast("ScenarioCatalog", read_catalog(__package__, "scenarios.json"))
