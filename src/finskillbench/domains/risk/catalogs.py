"""Types and loaders of the risk catalogs: pool settings, mandates and scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NotRequired, TypedDict, cast

from finskillbench.domains.building import read_catalog
from finskillbench.domains.risk.inputs import ConstraintInput, ScenarioInput

Range = tuple[float, float]
"""Lower and upper bound of a uniform draw."""


class ViolatingSettings(TypedDict):
    """Share of portfolios with short positions, and the number and weights of the shorts."""

    short_share: float
    shorts: tuple[int, int]
    short_weight: Range


class PlantedSettings(TypedDict):
    """Size of each planted risk, by portfolio type and measure."""

    concentrated: dict[str, Range]
    factor_tilted: dict[str, Range]
    liquidity_stressed: dict[str, Range]
    mandate_violating: ViolatingSettings
    stress_vulnerable: dict[str, Range]


class AboutLimits(TypedDict):
    """Distances of a portfolio from the limits of its home mandate; `risk.json` documents each number."""

    disciplined: float
    near: float
    near_share: float
    wide: float
    above: dict[str, float]
    pressed: float
    left_out: float


class TradingSettings(TypedDict):
    """Trading costs by volume, candidate minimum trades, and headroom by kind of limit."""

    cost_bps: Range
    cost_bps_ends: Range
    minimum_trades: list[float]
    headroom: dict[str, float]


class RiskSettings(TypedDict):
    """Settings of the pools; `domains/risk/catalog/risk.json` documents each number."""

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
    """Mandate of the catalog; `room` overrides that of `MandateCatalog`, and `as_stated` excludes any widening."""

    mandate_id: str
    name: str
    tier: str
    room: NotRequired[dict[str, float]]
    as_stated: NotRequired[bool]
    constraints: list[ConstraintInput]


EPISODES = 40
"""Episodes per risk subtask."""
_POOLS: Mapping[Literal["portfolios_per_type", "remediation_pairs"], int] = {
    "portfolios_per_type": 2,
    "remediation_pairs": 2,
}
"""Pool size per episode of a smaller edition; one episode is added to the count."""


class MandateCatalog(TypedDict):
    """Mandates, and the margin above the benchmark by kind of limit."""

    room: dict[str, float]
    mandates: list[MandateEntry]


class ReplayEntry(TypedDict):
    """Historical window to replay: ISO dates and the market's excess return in per cent."""

    scenario_id: str
    name: str
    start: str
    end: str
    market_pct: float


class ScenarioCatalog(TypedDict):
    """Hypothetical scenarios, and the windows of the replays."""

    severity: float
    replay_description: str
    replays: list[ReplayEntry]
    hypothetical: list[ScenarioInput]


def risk_settings(episodes: int | None = None) -> RiskSettings:
    """Return the pool settings; `episodes` limits the pools of a smaller edition."""
    settings = cast("RiskSettings", read_catalog(__package__, "risk.json"))
    if episodes is not None:
        for name, each in _POOLS.items():
            settings[name] = min(settings[name], each * (episodes + 1))
    return settings


def mandate_catalog() -> MandateCatalog:
    """Return the twelve built-in mandates."""
    return cast("MandateCatalog", read_catalog(__package__, "mandates.json"))


def scenario_catalog() -> ScenarioCatalog:
    """Return the built-in scenarios."""
    return cast("ScenarioCatalog", read_catalog(__package__, "scenarios.json"))
