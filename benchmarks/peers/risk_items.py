"""Constraint monitoring and stress testing item by item in plain Python, from the JSON of a task.

One portfolio, one mandate or scenario at a time, dictionaries and `sum`: what a careful script does that has not
thought of matrices. Inputs are resolved task inputs; covariance as `matrix` or as `loadings` and `specific`.
"""

import math
from typing import Any

Json = dict[str, Any]


def monitor(task_input: Json) -> list[tuple[float, float]]:
    """(value, excess) of every constraint of the mandate, in its order."""
    portfolio = task_input["portfolio"]
    weights = {row["symbol"]: row["weight"] for row in portfolio["holdings"]}
    found = []
    for rule in task_input["mandate"]["constraints"]:
        value = _value(rule, weights, portfolio, task_input)
        if "min" in rule or "max" in rule:
            low, high = rule.get("min"), rule.get("max")
            below = -math.inf if low is None else low - value
            above = -math.inf if high is None else value - high
            found.append((value, max(below, above)))
        elif rule["type"] == "long_only":
            found.append((value, -value))
        elif rule["type"] == "position_limit_min":
            found.append((value, rule["value"] - value))
        else:
            found.append((value, value - rule["value"]))
    return found


def _value(rule: Json, weights: dict[str, float], portfolio: Json, task_input: Json) -> float:
    kind, betas = rule["type"], task_input["factor_exposures"]
    if kind == "long_only":
        return min(weights.values())
    if kind == "position_limit_max":
        return max(weights.values())
    if kind == "position_limit_min":
        return min(abs(w) for w in weights.values())
    if kind == "sector_limit_max":
        totals: dict[str, float] = {}
        for symbol, weight in weights.items():
            sector = task_input["sector_mapping"][symbol]
            totals[sector] = totals.get(sector, 0.0) + weight
        return max(totals.values())
    if kind == "tracking_error_max":
        return _tracking_error(weights, task_input)
    if kind == "beta_range":
        return sum(w * betas[s]["mkt_rf"] for s, w in weights.items())
    if kind == "factor_exposure_max":
        return max(abs(sum(w * betas[s][f] for s, w in weights.items())) for f in rule["factors"])
    if kind == "turnover_max_monthly":
        changes = (portfolio.get("trades_this_month") or {}).values()
        return (sum(abs(x) for x in changes) + abs(sum(changes))) / 2
    if kind == "cash_max":
        return portfolio["cash_weight"]
    if kind == "gross_exposure_max":
        return sum(abs(w) for w in weights.values())
    if kind == "hhi_max":
        return sum(w * w for w in weights.values())
    return float(sum(abs(w) >= 0.001 for w in weights.values()))


def _tracking_error(weights: dict[str, float], task_input: Json) -> float:
    table, benchmark = task_input["covariance_matrix"], task_input["benchmark_weights"]
    active = [weights.get(s, 0.0) - benchmark.get(s, 0.0) for s in table["tickers"]]
    if "matrix" in table:
        across = [sum(c * b for c, b in zip(row, active, strict=True)) for row in table["matrix"]]
        return math.sqrt(sum(a * x for a, x in zip(active, across, strict=True)))
    total = sum(a * a * v for a, v in zip(active, table["specific"], strict=True))
    for row in table["loadings"]:
        total += sum(x * a for x, a in zip(row, active, strict=True)) ** 2
    return math.sqrt(total)


def stress(task_input: Json) -> tuple[float, dict[str, float], dict[str, float]]:
    """P&L, and its split by sector held and by factor."""
    scenario, mapping = task_input["stress_scenario"], task_input["sector_mapping"]
    shocks, sensitivities = scenario["factor_shocks"], scenario["sector_sensitivities"]
    total, sectors = 0.0, {}
    factors = dict.fromkeys([*shocks, "sector_sensitivity"], 0.0)
    for row in task_input["portfolio"]["holdings"]:
        weight, betas, sector = row["weight"], task_input["factor_exposures"][row["symbol"]], mapping[row["symbol"]]
        move = sensitivities[sector]
        factors["sector_sensitivity"] += weight * move
        for factor, shock in shocks.items():
            move += betas[factor] * shock
            factors[factor] += weight * betas[factor] * shock
        sectors[sector] = sectors.get(sector, 0.0) + weight * move
        total += weight * move
    return total, sectors, factors
