"""Risk arithmetic on the JSON of an input, written from the definitions and independent of the engines.

A second derivation is worth having only if it shares no code with the first: nothing here is imported from engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from finskillbench.domains.portfolio.checks.limits import Floats, covariance

FACTORS = ("mkt_rf", "smb", "hml", "rmw", "cma", "mom")
TYPES = ("factor_tilt", "sector_concentration", "single_name", "concentration", "liquidity_risk")
HELD, COUNTED = 1e-9, 0.001
"""A holding is a weight of more than the first in size; name_count counts those of at least the second."""
TILT, SECTOR, ILLIQUID, LISTED = 0.30, 0.30, 0.05, 5
"""An exposure is listed from these magnitudes on, and no more exposures than the last."""
NEVER_GIVEN_UP = frozenset({"long_only", "position_limit_min", "name_count", "turnover_max_monthly"})
"""What remediation keeps even where it cannot meet the whole mandate."""
LEAST_SCALE = 0.01
DAYS, PARTICIPATION = 5, 0.20
"""What cannot be sold within so many days, at so much of the average daily volume, is illiquid."""


@dataclass(frozen=True)
class Position:
    """The portfolio of an input over its universe: weights (n,) and cash of NAV, turnover already made this month."""

    tickers: tuple[str, ...]
    weights: Floats
    cash: float
    nav: float
    traded: float

    def after(self, trades: Floats) -> Position:
        """The portfolio after further trades (n,): cash mirrors their sum, the two turnovers add."""
        return replace(
            self,
            weights=self.weights + trades,
            cash=self.cash - float(trades.sum()),
            traded=self.traded + turnover(trades),
        )


@dataclass(frozen=True)
class Measured:
    """A constraint's value, how far it lies beyond its limit (kept: not positive), and the values by name or sector."""

    value: float
    excess: float
    by: Mapping[str, float]


def turnover(trades: Floats) -> float:
    """One-way: the trades and the cash that mirrors their sum, halved."""
    return float(np.abs(trades).sum() + abs(trades.sum())) / 2


def position(task_input: Mapping[str, Any]) -> Position:
    """The portfolio of an input over the names of its sector map.

    Raises KeyError for a ticker outside the universe, ValueError for one that is held twice.
    """
    given = task_input["portfolio"]
    tickers = tuple(task_input["sector_mapping"])
    held = {item["symbol"]: float(item["weight"]) for item in given["holdings"]}
    if len(held) != len(given["holdings"]):
        raise ValueError("a ticker is held twice")
    traded = _over(tickers, given.get("trades_this_month") or {})
    weights = _over(tickers, held)
    return Position(tickers, weights, float(given["cash_weight"]), float(given["total_nav"]), turnover(traded))


def _over(tickers: tuple[str, ...], values: Mapping[str, float]) -> Floats:
    strangers = sorted(set(values) - set(tickers))
    if strangers:
        raise KeyError(f"{strangers[0]} is not of the universe")
    return np.array([values.get(ticker, 0.0) for ticker in tickers], dtype=float)


def betas(task_input: Mapping[str, Any], tickers: tuple[str, ...]) -> Floats:
    """(n, 6) betas on `FACTORS`."""
    table = task_input["factor_exposures"]
    return np.array([[table[ticker][factor] for factor in FACTORS] for ticker in tickers], dtype=float)


def sector_totals(task_input: Mapping[str, Any], held: Position) -> dict[str, float]:
    """Signed total weight of each sector of the universe."""
    totals: dict[str, float] = {}
    for ticker, weight in zip(held.tickers, held.weights.tolist(), strict=True):
        sector = task_input["sector_mapping"][ticker]
        totals[sector] = totals.get(sector, 0.0) + weight
    return totals


def measured(
    constraint: Mapping[str, Any], task_input: Mapping[str, Any], held: Position, slack: float = HELD
) -> Measured:
    """One constraint of a mandate on a portfolio; a weight within `slack` of counting as a holding counts as it suits.

    Raises ValueError for an unknown type.
    """
    w, limit = held.weights, constraint.get("value")
    size = np.abs(w)
    names = np.flatnonzero(size > HELD)
    by = {held.tickers[i]: float(w[i]) for i in names}
    match constraint["type"]:
        case "long_only":
            value = min(by.values(), default=0.0)
            return Measured(value, -value, by)
        case "position_limit_max":
            value = max(by.values(), default=0.0)
        case "position_limit_min":
            by = {ticker: abs(weight) for ticker, weight in by.items()}
            value = min(by.values(), default=np.inf)
            return Measured(value, float(limit) - value, by)  # pyright: ignore[reportArgumentType]
        case "sector_limit_max":
            by = sector_totals(task_input, held)
            value = max(by.values())
        case "tracking_error_max":
            order, sigma = covariance(task_input)
            benchmark = task_input["benchmark_weights"]
            owned = dict(zip(held.tickers, w.tolist(), strict=True))
            active = np.array([owned[ticker] - benchmark[ticker] for ticker in order])
            value = float(np.sqrt(max(active @ sigma @ active, 0.0)))
        case "beta_range":
            value = float(w @ betas(task_input, held.tickers)[:, 0])
            return _between(constraint, value)
        case "factor_exposure_max":
            listed = [FACTORS.index(factor) for factor in constraint["factors"]]
            value = float(np.abs(w @ betas(task_input, held.tickers)[:, listed]).max())
        case "turnover_max_monthly":
            value = held.traded
        case "cash_max":
            value = held.cash
        case "gross_exposure_max":
            value = float(size.sum())
        case "hhi_max":
            value = float(w @ w)
        case "name_count":
            found, most, least = (int((size >= COUNTED + s).sum()) for s in (-HELD, -slack, slack - 2 * HELD))
            low, high = constraint.get("min"), constraint.get("max")
            beyond = ([low - most] if low is not None else []) + ([least - high] if high is not None else [])
            return Measured(float(found), float(max(beyond)), {})
        case unknown:
            raise ValueError(f"constraint {unknown!r} is unknown")
    return Measured(value, value - float(limit), by)  # pyright: ignore[reportArgumentType]


def _between(constraint: Mapping[str, Any], value: float) -> Measured:
    low, high = constraint.get("min"), constraint.get("max")
    beyond = ([low - value] if low is not None else []) + ([value - high] if high is not None else [])
    return Measured(value, max(beyond), {})


def relative_excess(task_input: Mapping[str, Any], held: Position) -> float:
    """Sum over the constraints that remediation may give up of excess over the size of the limit.

    Of a range that is the end that is passed; a limit smaller than `LEAST_SCALE` counts as that.
    """
    total = 0.0
    for constraint in task_input["mandate"]["constraints"]:
        found = measured(constraint, task_input, held)
        if found.excess > 0 and constraint["type"] not in NEVER_GIVEN_UP:
            end = constraint.get("value")
            if end is None:
                low = constraint.get("min")
                end = low if low is not None and found.value < low else constraint["max"]
            total += found.excess / max(abs(end), LEAST_SCALE)
    return total


def exposures(task_input: Mapping[str, Any], held: Position) -> list[tuple[str, str, float]]:
    """Every exposure that may be listed as (type, subject, magnitude), largest first, beyond the number kept."""
    found: list[tuple[str, str, float]] = []
    total = held.weights @ betas(task_input, held.tickers)
    total[0] -= 1
    found += [("factor_tilt", f, abs(float(b))) for f, b in zip(FACTORS, total, strict=True) if abs(b) >= TILT]
    sectors = sector_totals(task_input, held)
    most = max(sectors.values())
    found += [("sector_concentration", name, w) for name, w in sectors.items() if w >= SECTOR or w == most]
    size = np.abs(held.weights)
    largest = float(size.max())
    found += [
        ("single_name", ticker, largest) for ticker, of in zip(held.tickers, size, strict=True) if of >= largest - HELD
    ]
    found.append(("concentration", "portfolio", float(held.weights @ held.weights)))
    illiquid = illiquid_share(held, volumes(task_input, held))
    if illiquid >= ILLIQUID:
        found.append(("liquidity_risk", "portfolio", illiquid))
    return sorted(found, key=lambda each: (-each[2], TYPES.index(each[0]), each[1]))


def volumes(task_input: Mapping[str, Any], held: Position) -> Floats:
    """(n,) average daily volumes, USD."""
    return _over(held.tickers, task_input["average_daily_volume_usd"])


def days_to_sell(held: Position, volume: Floats) -> Floats:
    """(n,) days to sell each position at a participation of 20 % of its average daily volume."""
    return np.abs(held.weights) * held.nav / (PARTICIPATION * volume)


def illiquid_share(held: Position, volume: Floats) -> float:
    """The share of NAV that cannot be sold in five days at that participation."""
    return float(np.maximum(np.abs(held.weights) - DAYS * PARTICIPATION * volume / held.nav, 0.0).sum())


@dataclass(frozen=True)
class Stressed:
    """P&L of a scenario as a decimal of NAV, and its two attributions."""

    pnl: float
    by_sector: Mapping[str, float]
    by_factor: Mapping[str, float]


def stressed(task_input: Mapping[str, Any], held: Position) -> Stressed:
    """The scenario on the portfolio: betas times shocks and the sensitivity of the sector, name by name."""
    scenario, sectors = task_input["stress_scenario"], task_input["sector_mapping"]
    shocks = np.array([scenario["factor_shocks"][factor] for factor in FACTORS], dtype=float)
    table = scenario["sector_sensitivities"]
    owned = np.abs(held.weights) > HELD
    sensitivity = np.array([table[sectors[t]] if o else 0.0 for t, o in zip(held.tickers, owned, strict=True)])
    parts = held.weights[:, None] * np.column_stack([betas(task_input, held.tickers) * shocks, sensitivity])
    by_factor: dict[str, float] = dict(zip((*FACTORS, "sector_sensitivity"), parts.sum(axis=0).tolist(), strict=True))
    by_sector: dict[str, float] = {}
    for ticker, gained, own in zip(held.tickers, parts.sum(axis=1).tolist(), owned.tolist(), strict=True):
        if own:
            by_sector[sectors[ticker]] = by_sector.get(sectors[ticker], 0.0) + gained
    return Stressed(float(parts.sum()), by_sector, by_factor)
