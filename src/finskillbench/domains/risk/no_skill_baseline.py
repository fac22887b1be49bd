"""Answers from arithmetic on weights; KeyError if an imported mandate or scenario has no numbers."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

TRADED = 1e-9
"""Smallest weight that counts as held, and smallest weight change that counts as traded."""
_COUNTED = 0.001
_LEAST = frozenset({"long_only", "position_limit_min"})


def weights_and_cash(data: Mapping[str, Any]) -> tuple[dict[str, float], float]:
    """Return weights by ticker, and the cash weight."""
    portfolio = data["portfolio"]
    return {item["symbol"]: item["weight"] for item in portfolio["holdings"]}, portfolio["cash_weight"]


def by_sector(weights: Mapping[str, float], sectors: Mapping[str, str]) -> dict[str, float]:
    """Return the total weight of each sector held."""
    totals: dict[str, float] = {}
    for name, weight in weights.items():
        totals[sectors[name]] = totals.get(sectors[name], 0.0) + weight
    return totals


def largest(values: Mapping[str, float]) -> tuple[str, float]:
    """Return the name of the largest value, and the value."""
    name = max(values, key=values.__getitem__)
    return name, values[name]


def exposures_by_weight(data: Mapping[str, Any]) -> list[tuple[str, str, float, float]]:
    """Return Herfindahl index, largest name and largest sector by weight alone, as rows of `exposure_answer`."""
    weights, _ = weights_and_cash(data)
    found = [("concentration", "portfolio", math.fsum(weight**2 for weight in weights.values()))]
    if weights:
        sizes = {name: abs(weight) for name, weight in weights.items()}
        sectors = by_sector(weights, data["sector_mapping"])
        found += [("single_name", *largest(sizes)), ("sector_concentration", *largest(sectors))]
    found.sort(key=lambda exposure: -exposure[2])
    return [(kind, subject, size, size) for kind, subject, size in found]


def monitor_by_weights(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdicts that follow from weights and trades; limits that need betas or a covariance are omitted."""
    weights, cash = weights_and_cash(data)
    traded = data["portfolio"].get("trades_this_month", {}).values()
    entries = [
        _verdict(limit, *measured)
        for limit in data["mandate"]["constraints"]
        if (measured := _measured(limit["type"], weights, (cash, turnover_of_changes(traded)), data["sector_mapping"]))
        is not None
    ]
    failed = sum(entry["status"] == "FAIL" for entry in entries)
    return {"overall_compliant": failed == 0, "violations_count": failed, "constraints": entries}


def turnover_of_changes(changes: Collection[float]) -> float:
    """Return the one-way turnover of weight changes, including the change of cash."""
    return (math.fsum(map(abs, changes)) + abs(math.fsum(changes))) / 2


def _measured(
    kind: str, weights: Mapping[str, float], cash_and_turnover: tuple[float, float], sectors: Mapping[str, str]
) -> tuple[float, dict[str, str]] | None:
    cash, traded = cash_and_turnover
    sizes = {name: abs(weight) for name, weight in weights.items() if abs(weight) > TRADED}
    found: tuple[float, dict[str, str]] | None = None
    if kind == "cash_max":
        found = cash, {}
    elif kind == "turnover_max_monthly":
        found = traded, {}
    elif kind == "gross_exposure_max":
        found = math.fsum(sizes.values()), {}
    elif kind == "hhi_max":
        found = math.fsum(size**2 for size in sizes.values()), {}
    elif kind == "name_count":
        found = float(sum(size >= _COUNTED for size in sizes.values())), {}
    elif not sizes:
        found = None
    elif kind == "long_only":
        name = min(weights, key=weights.__getitem__)
        found = weights[name], {"worst_symbol": name}
    elif kind == "position_limit_max":
        name, value = largest(weights)
        found = value, {"worst_symbol": name}
    elif kind == "position_limit_min":
        name = min(sizes, key=sizes.__getitem__)
        found = sizes[name], {"worst_symbol": name}
    elif kind == "sector_limit_max":
        name, value = largest(by_sector(weights, sectors))
        found = value, {"worst_sector": name}
    return found


def _verdict(limit: Mapping[str, Any], value: float, worst: Mapping[str, str]) -> dict[str, Any]:
    kind = limit["type"]
    if kind == "name_count":
        ends = {name: limit[name] for name in ("min", "max") if limit.get(name) is not None}
        excess = max(ends.get("min", value) - value, value - ends.get("max", value))
    else:
        bound = 0.0 if kind == "long_only" else limit["value"]
        ends = {"limit": bound}
        excess = bound - value if kind in _LEAST else value - bound
    entry: dict[str, Any] = {"type": kind, "status": "FAIL" if excess > TRADED else "PASS", "value": value}
    entry |= {**ends, **worst}
    return entry | {"violation_magnitude": excess} if excess > TRADED else entry


def cap_weights(
    weights: Mapping[str, float], sectors: Mapping[str, str], cap: float | None, sector_cap: float | None
) -> dict[str, float]:
    """Cap names and sectors, and move the excess to long holdings below both caps; the rest stays in cash."""
    name_cap, group_cap = cap or 1.0, sector_cap or 1.0
    result, freed = dict(weights), 0.0
    for _ in range(len(result)):
        before = math.fsum(result.values())
        result = {name: min(weight, name_cap) for name, weight in result.items()}
        totals = by_sector(result, sectors)
        for name, weight in result.items():
            if weight > 0 and totals[sectors[name]] > group_cap:
                result[name] = weight * group_cap / totals[sectors[name]]
        freed += before - math.fsum(result.values())
        free = [name for name, weight in result.items() if 0 < weight < name_cap and totals[sectors[name]] < group_cap]
        open_weight = math.fsum(result[name] for name in free)
        if freed <= 1e-12 or open_weight <= 0:
            break
        result |= {name: result[name] * (1 + freed / open_weight) for name in free}
        freed = 0.0
    return result
