"""What arithmetic by hand can do for a task without any skill: the no-skill side of `baseline/reference`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from finskillbench.domains import Naive, by_name

FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "unconstrained_optimization": ("objective", "expected_returns", "covariance_matrix"),
        "constrained_optimization": ("constraints", "benchmark_weights"),
        "rebalancing": ("objective", "expected_returns", "covariance_matrix", "current_portfolio"),
        "black_litterman": ("market_cap_weights", "covariance_matrix", "risk_aversion"),
        "tool_use_parameterization": ("scenario_description",),
        "infeasibility_detection": ("constraints", "current_portfolio"),
        "constraint_monitoring": ("portfolio", "mandate", "sector_mapping"),
        "risk_identification": ("portfolio", "sector_mapping"),
        "stress_testing": ("portfolio", "stress_scenario"),
        "risk_remediation": ("portfolio", "mandate", "sector_mapping"),
        "normalization": ("period_end", "form_type", "filing_facts"),
    }
)
"""The input fields that the arithmetic of each subtask reads."""

_NOT_LIMITS = frozenset({"neutral_factors", "neutrality_tolerance"})
_COUNTED = 0.001
_TRADED = 1e-9
_LEAST = frozenset({"long_only", "position_limit_min"})
_FILED = (
    "revenue",
    "operating_income",
    "net_income",
    "eps_diluted",
    "total_assets",
    "total_liabilities",
    "stockholders_equity",
    "operating_cash_flow",
)


def by_hand(sub_task: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """An answer from the fields read, or an empty one where arithmetic gets nowhere."""
    naive = by_name(sub_task).by_hand or BY_HAND.get(sub_task)
    try:
        return naive.answer(data) if naive is not None else {}
    except KeyError:
        return {}


def _unconstrained(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"weights": _heuristic(data)}


def _constrained(data: Mapping[str, Any]) -> dict[str, Any]:
    """The benchmark, cut to the cap; every limit is hoped to hold."""
    limits = data["constraints"]
    cap = limits.get("max_weight") or 1.0
    flags = {name: True for name, limit in limits.items() if limit and name not in _NOT_LIMITS}
    return {"weights": _capped(data["benchmark_weights"], cap), "constraint_satisfaction": flags}


def _rebalancing(data: Mapping[str, Any]) -> dict[str, Any]:
    weights, current = _heuristic(data), data["current_portfolio"]
    trades = {name: weights[name] - current.get(name, 0.0) for name in weights}
    return {"trade_list": trades, "new_weights": weights, "turnover": sum(map(abs, trades.values())) / 2}


def _black_litterman(data: Mapping[str, Any]) -> dict[str, Any]:
    """The equilibrium without the views, and the market portfolio that it implies."""
    market, table = data["market_cap_weights"], data["covariance_matrix"]
    tickers = table["tickers"]
    returns = {
        name: data["risk_aversion"] * sum(row[j] * market.get(other, 0.0) for j, other in enumerate(tickers))
        for name, row in zip(tickers, table["matrix"], strict=True)
    }
    return {"posterior_returns": returns, "optimal_weights": market}


def _tool_use(data: Mapping[str, Any]) -> dict[str, Any]:
    """The objective by its most telling word; no limit is read."""
    text = data["scenario_description"].lower()
    cues = (("risk aversion", "max_sharpe"), ("inverse-variance", "risk_parity"), ("expected return", "max_return"))
    objective = next((name for cue, name in cues if cue in text), "min_variance")
    return {"optimizer_call": {"objective": objective, "constraints": {"long_only": True}}}


def _infeasibility(data: Mapping[str, Any]) -> dict[str, Any]:
    """Turnover needed for the name caps alone, which bounds the least turnover from below."""
    limits, current = data["constraints"], data["current_portfolio"]
    needed = sum(max(0.0, weight - limits["max_weight"]) for weight in current.values())
    return {"feasible": needed <= limits["max_turnover"], "minimum_turnover": needed}


def _monitoring(data: Mapping[str, Any]) -> dict[str, Any]:
    """Minima, maxima and sums of the weights; what needs betas, a covariance or the month's trades is left out."""
    weights, cash = _holdings(data)
    entries = [
        _verdict(limit, *measured)
        for limit in data["mandate"]["constraints"]
        if (measured := _measured(limit["type"], weights, cash, data["sector_mapping"])) is not None
    ]
    failed = sum(entry["status"] == "FAIL" for entry in entries)
    return {"overall_compliant": failed == 0, "violations_count": failed, "constraints": entries}


def _identification(data: Mapping[str, Any]) -> dict[str, Any]:
    """Largest name, largest sector and the Herfindahl index; no betas, no volumes."""
    weights, _ = _holdings(data)
    sizes = {name: abs(weight) for name, weight in weights.items()}
    found = [("concentration", "portfolio", sum(weight**2 for weight in weights.values()))]
    if weights:
        found += [
            ("single_name", *_largest(sizes)),
            ("sector_concentration", *_largest(_by_sector(weights, data["sector_mapping"]))),
        ]
    found.sort(key=lambda exposure: -exposure[2])
    return {
        "top_risk_exposures": [
            {"rank": rank, "type": kind, "subject": subject, "detail": f"{subject} {size:.4f}", "magnitude": size}
            for rank, (kind, subject, size) in enumerate(found, start=1)
        ]
    }


def _stress(data: Mapping[str, Any]) -> dict[str, Any]:
    """Every holding moves with the market; nothing else does."""
    weights, _ = _holdings(data)
    pnl = sum(weights.values()) * data["stress_scenario"]["factor_shocks"]["mkt_rf"]
    by_factor = [{"factor": "mkt_rf", "contribution_pct": pnl}]
    return {"estimated_pnl_pct": pnl, "attribution": {"by_sector": [], "by_factor": by_factor}}


def _remediation(data: Mapping[str, Any]) -> dict[str, Any]:
    """Cut names and sectors to their caps and spread what is freed over the other holdings; the rest is hoped for."""
    weights, _ = _holdings(data)
    limits = {limit["type"]: limit.get("value") for limit in data["mandate"]["constraints"]}
    after = _cut(weights, data["sector_mapping"], limits.get("position_limit_max"), limits.get("sector_limit_max"))
    changes = {name: after[name] - weight for name, weight in weights.items() if abs(after[name] - weight) > _TRADED}
    return {
        "trades": [
            {
                "symbol": name,
                "action": "buy" if change > 0 else "sell",
                "current_weight": weights[name],
                "target_weight": after[name],
                "trade_pct": change,
            }
            for name, change in changes.items()
        ],
        "total_turnover": (sum(map(abs, changes.values())) + abs(sum(changes.values()))) / 2,
        "post_trade_compliant": True,
    }


def _normalization(data: Mapping[str, Any]) -> dict[str, Any]:
    """What filings state for the period itself; nothing is derived from other periods."""
    covered = ("instant", "quarterly" if data["form_type"].startswith("10-Q") else "annual")
    stated: dict[str, float] = {}
    for row in sorted(data["filing_facts"]["facts"], key=lambda row: row["filed"]):
        if row["end"] == data["period_end"] and row["duration"] in covered and not row["derived"]:
            stated[row["metric"]] = row["value"]
    income, revenue = stated.get("operating_income"), stated.get("revenue")
    depreciation = stated.get("depreciation_amortization")
    metrics = {name: stated.get(name) for name in _FILED}
    metrics["operating_margin"] = income / revenue if income is not None and revenue else None
    metrics["ebitda"] = income + depreciation if income is not None and depreciation is not None else None
    return {"metrics": metrics}


_METHODS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = MappingProxyType(
    {
        "unconstrained_optimization": _unconstrained,
        "constrained_optimization": _constrained,
        "rebalancing": _rebalancing,
        "black_litterman": _black_litterman,
        "tool_use_parameterization": _tool_use,
        "infeasibility_detection": _infeasibility,
        "constraint_monitoring": _monitoring,
        "risk_identification": _identification,
        "stress_testing": _stress,
        "risk_remediation": _remediation,
        "normalization": _normalization,
    }
)

BY_HAND = {name: Naive(FIELDS[name], method) for name, method in _METHODS.items()}
"""What a subtask whose domain does not say it yet is answered by hand."""


def _heuristic(data: Mapping[str, Any]) -> dict[str, float]:
    """The best name for max_return, inverse variances for everything else."""
    table = data["covariance_matrix"]
    if data["objective"] == "max_return":
        best = max(data["expected_returns"], key=data["expected_returns"].get)
        return {name: float(name == best) for name in table["tickers"]}
    inverse = {name: 1.0 / table["matrix"][i][i] for i, name in enumerate(table["tickers"])}
    total = sum(inverse.values())
    return {name: value / total for name, value in inverse.items()}


def _capped(weights: Mapping[str, float], cap: float) -> dict[str, float]:
    """Cut to the cap and spread the excess over the names below it in proportion, until none is above."""
    result = dict(weights)
    for _ in range(len(result)):
        excess = sum(max(0.0, weight - cap) for weight in result.values())
        room = sum(weight for weight in result.values() if weight < cap)
        if excess <= 1e-12 or room <= 0:
            break
        result = {name: cap if weight >= cap else weight * (1 + excess / room) for name, weight in result.items()}
    return result


def _holdings(data: Mapping[str, Any]) -> tuple[dict[str, float], float]:
    """Weights by ticker and the cash weight."""
    portfolio = data["portfolio"]
    return {item["symbol"]: item["weight"] for item in portfolio["holdings"]}, portfolio["cash_weight"]


def _by_sector(weights: Mapping[str, float], sectors: Mapping[str, str]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for name, weight in weights.items():
        totals[sectors[name]] = totals.get(sectors[name], 0.0) + weight
    return totals


def _largest(values: Mapping[str, float]) -> tuple[str, float]:
    name = max(values, key=values.__getitem__)
    return name, values[name]


def _measured(
    kind: str, weights: Mapping[str, float], cash: float, sectors: Mapping[str, str]
) -> tuple[float, dict[str, str]] | None:
    """Value of one constraint and what is worst in it; None where a sum of weights does not give it."""
    sizes = {name: abs(weight) for name, weight in weights.items() if abs(weight) > _TRADED}
    if kind == "cash_max":
        return cash, {}
    if kind == "gross_exposure_max":
        return sum(sizes.values()), {}
    if kind == "hhi_max":
        return sum(size**2 for size in sizes.values()), {}
    if kind == "name_count":
        return float(sum(size >= _COUNTED for size in sizes.values())), {}
    if not sizes:
        return None
    match kind:
        case "long_only":
            name = min(weights, key=weights.__getitem__)
            return weights[name], {"worst_symbol": name}
        case "position_limit_max":
            name, value = _largest(weights)
            return value, {"worst_symbol": name}
        case "position_limit_min":
            name = min(sizes, key=sizes.__getitem__)
            return sizes[name], {"worst_symbol": name}
        case "sector_limit_max":
            name, value = _largest(_by_sector(weights, sectors))
            return value, {"worst_sector": name}
        case _:
            return None


def _verdict(limit: Mapping[str, Any], value: float, worst: Mapping[str, str]) -> dict[str, Any]:
    """One entry of the answer: the value against the limit or the range."""
    kind = limit["type"]
    if kind == "name_count":
        ends = {name: limit[name] for name in ("min", "max") if limit.get(name) is not None}
        excess = max(ends.get("min", value) - value, value - ends.get("max", value))
    else:
        bound = 0.0 if kind == "long_only" else limit["value"]
        ends = {"limit": bound}
        excess = bound - value if kind in _LEAST else value - bound
    entry: dict[str, Any] = {"type": kind, "status": "FAIL" if excess > _TRADED else "PASS", "value": value}
    entry |= {**ends, **worst}
    return entry | {"violation_magnitude": excess} if excess > _TRADED else entry


def _cut(
    weights: Mapping[str, float], sectors: Mapping[str, str], cap: float | None, sector_cap: float | None
) -> dict[str, float]:
    """Weights cut to both caps; what that frees goes, in proportion, to long holdings below them, as often as it takes.

    Whatever finds no room stays in cash.
    """
    name_cap, group_cap = cap or 1.0, sector_cap or 1.0
    result, freed = dict(weights), 0.0
    for _ in range(len(result)):
        before = sum(result.values())
        result = {name: min(weight, name_cap) for name, weight in result.items()}
        totals = _by_sector(result, sectors)
        for name, weight in result.items():
            if weight > 0 and totals[sectors[name]] > group_cap:
                result[name] = weight * group_cap / totals[sectors[name]]
        freed += before - sum(result.values())
        open_names = [
            name for name, weight in result.items() if 0 < weight < name_cap and totals[sectors[name]] < group_cap
        ]
        room = sum(result[name] for name in open_names)
        if freed <= 1e-12 or room <= 0:
            break
        result |= {name: result[name] * (1 + freed / room) for name in open_names}
        freed = 0.0
    return result
