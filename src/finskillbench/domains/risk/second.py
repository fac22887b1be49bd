"""The second derivation of the risk labels: item by item, in plain Python, from an episode's JSON input alone.

Written from the definitions that the agent reads and from nothing else: no array library, no engine. What differs from
the engine's label by more than `AGREEMENT` is a bug of one of the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

AGREEMENT = 1e-9
"""Largest difference between the two derivations of one number, in its own unit."""

_FACTORS = ("mkt_rf", "smb", "hml", "rmw", "cma", "mom")
_TYPES = ("factor_tilt", "sector_concentration", "single_name", "concentration", "liquidity_risk")
_HELD, _COUNTED, _KEPT = 1e-9, 0.001, 1e-9
_LARGE, _ILLIQUID, _LISTED = 0.30, 0.05, 5
_DAYS, _PARTICIPATION = 5.0, 0.20


@dataclass(frozen=True, slots=True)
class Finding:
    """One constraint as measured: its value, and how far it lies beyond the limit (<= 0 is kept)."""

    value: float
    excess: float

    @property
    def status(self) -> str:
        """PASS or FAIL."""
        return "PASS" if self.excess <= _KEPT else "FAIL"


def monitored(task_input: Mapping[str, Any]) -> dict[str, Finding]:
    """Measure every constraint of the mandate on the portfolio; `covariance_matrix` must be resolved."""
    return {item["type"]: _finding(item, task_input) for item in task_input["mandate"]["constraints"]}


def _finding(item: Mapping[str, Any], task_input: Mapping[str, Any]) -> Finding:
    portfolio = task_input["portfolio"]
    held = {symbol: weight for symbol, weight in _weights(portfolio).items() if abs(weight) > _HELD}
    limit: Any = item.get("value")
    match item["type"]:
        case "long_only":
            value = min(held.values(), default=0.0)
            return Finding(value, -value)
        case "position_limit_max":
            value = max(held.values(), default=0.0)
        case "position_limit_min":
            value = min(map(abs, held.values()), default=math.inf)
            return Finding(value, limit - value)
        case "sector_limit_max":
            value = max(_sector_totals(task_input).values())
        case "tracking_error_max":
            value = _tracking_error(task_input)
        case "beta_range":
            value = _beta(task_input, "mkt_rf")
            return Finding(value, max(item["min"] - value, value - item["max"]))
        case "factor_exposure_max":
            value = max(abs(_beta(task_input, factor)) for factor in item["factors"])
        case "turnover_max_monthly":
            value = _turnover((portfolio.get("trades_this_month") or {}).values())
        case "cash_max":
            value = portfolio["cash_weight"]
        case "gross_exposure_max":
            value = math.fsum(abs(weight) for weight in held.values())
        case "hhi_max":
            value = math.fsum(weight * weight for weight in held.values())
        case "name_count":
            count = sum(1 for weight in held.values() if abs(weight) >= _COUNTED)
            low, high = item.get("min"), item.get("max")
            beyond = [low - count] if low is not None else []
            beyond += [count - high] if high is not None else []
            return Finding(float(count), float(max(beyond)))
        case unknown:
            raise ValueError(f"no second derivation of {unknown}")
    return Finding(value, value - limit)


def exposures(task_input: Mapping[str, Any]) -> list[tuple[str, str, float]]:
    """(type, subject, magnitude) of the listed exposures, ranked; `_LISTED` at most."""
    weights = _weights(task_input["portfolio"])
    found: list[tuple[str, str, float]] = []
    for factor in _FACTORS:
        size = abs(_beta(task_input, factor) - (1.0 if factor == "mkt_rf" else 0.0))
        if size >= _LARGE:
            found.append(("factor_tilt", factor, size))
    totals = _sector_totals(task_input)
    largest = max(totals, key=lambda sector: totals[sector])
    found += [
        ("sector_concentration", sector, total)
        for sector, total in totals.items()
        if total >= _LARGE or sector == largest
    ]
    name = min(weights, key=lambda symbol: (-abs(weights[symbol]), symbol))
    found.append(("single_name", name, abs(weights[name])))
    found.append(("concentration", "portfolio", math.fsum(weight * weight for weight in weights.values())))
    nav, volume = task_input["portfolio"]["total_nav"], task_input["average_daily_volume_usd"]
    sold = {symbol: _DAYS * _PARTICIPATION * volume[symbol] / nav for symbol in weights}
    illiquid = math.fsum(max(0.0, abs(weight) - sold[symbol]) for symbol, weight in weights.items())
    if illiquid >= _ILLIQUID:
        found.append(("liquidity_risk", "portfolio", illiquid))
    return sorted(found, key=lambda item: (-item[2], _TYPES.index(item[0]), item[1]))[:_LISTED]


@dataclass(frozen=True, slots=True)
class Stressed:
    """P&L under a scenario and its two attributions, decimals of NAV."""

    pnl: float
    by_sector: dict[str, float]
    by_factor: dict[str, float]


def stressed(task_input: Mapping[str, Any]) -> Stressed:
    """Name by name: what each holding makes, and which part of it each shock explains."""
    scenario, betas = task_input["stress_scenario"], task_input["factor_exposures"]
    by_sector: dict[str, list[float]] = {}
    by_factor: dict[str, list[float]] = {factor: [] for factor in _FACTORS} | {"sector_sensitivity": []}
    for symbol, weight in _weights(task_input["portfolio"]).items():
        sector = task_input["sector_mapping"][symbol]
        parts = {factor: weight * betas[symbol][factor] * scenario["factor_shocks"][factor] for factor in _FACTORS}
        parts["sector_sensitivity"] = weight * scenario["sector_sensitivities"][sector]
        for name, amount in parts.items():
            by_factor[name].append(amount)
        by_sector.setdefault(sector, []).extend(parts.values())
    return Stressed(
        math.fsum(amount for amounts in by_sector.values() for amount in amounts),
        {sector: math.fsum(amounts) for sector, amounts in by_sector.items()},
        {name: math.fsum(amounts) for name, amounts in by_factor.items()},
    )


def _weights(portfolio: Mapping[str, Any]) -> dict[str, float]:
    return {item["symbol"]: item["weight"] for item in portfolio["holdings"]}


def _sector_totals(task_input: Mapping[str, Any]) -> dict[str, float]:
    mapped = task_input["sector_mapping"]
    totals: dict[str, list[float]] = {sector: [] for sector in sorted(set(mapped.values()))}
    for symbol, weight in _weights(task_input["portfolio"]).items():
        totals[mapped[symbol]].append(weight)
    return {sector: math.fsum(weights) for sector, weights in totals.items()}


def _beta(task_input: Mapping[str, Any], factor: str) -> float:
    betas = task_input["factor_exposures"]
    weights = _weights(task_input["portfolio"])
    return math.fsum(weight * betas[symbol][factor] for symbol, weight in weights.items())


def _turnover(trades: Iterable[float]) -> float:
    amounts = list(trades)
    return (math.fsum(map(abs, amounts)) + abs(math.fsum(amounts))) / 2


def _tracking_error(task_input: Mapping[str, Any]) -> float:
    weights, benchmark = _weights(task_input["portfolio"]), task_input["benchmark_weights"]
    covariance = task_input["covariance_matrix"]
    active = [weights.get(symbol, 0.0) - benchmark[symbol] for symbol in covariance["tickers"]]
    if "matrix" in covariance:
        rows = (a * math.fsum(map(_times, row, active)) for a, row in zip(active, covariance["matrix"], strict=True))
        return math.sqrt(max(math.fsum(rows), 0.0))
    common = math.fsum(math.fsum(map(_times, row, active)) ** 2 for row in covariance["loadings"])
    own = math.fsum(a * a * variance for a, variance in zip(active, covariance["specific"], strict=True))
    return math.sqrt(common + own)


def _times(left: float, right: float) -> float:
    return left * right
