"""Independent derivation of the risk labels in plain Python, from JSON input and printed definitions alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from finskillbench.domains.risk.inputs import (
    ConstraintInput,
    CovarianceInput,
    HoldingsInput,
    IdentificationInput,
    MonitoringInput,
    PortfolioInput,
    RemediationInput,
)
from finskillbench.episode import JsonObject

COMPLIANCE_TOLERANCE = 1e-5
"""Largest excess that still complies."""
FACTORS = ("mkt_rf", "smb", "hml", "rmw", "cma", "mom")
TYPES = ("factor_tilt", "sector_concentration", "single_name", "concentration", "liquidity_risk")
NO_WEIGHT, HOLDING = 1e-5, 0.001
"""Largest absolute weight that counts as 0, and smallest weight of a holding."""
LEAST_HHI = 0.06
MATERIAL = {
    "factor_tilt": 0.02,
    "sector_concentration": 0.04,
    "single_name": 0.035,
    "concentration": 0.07,
    "liquidity_risk": 0.03,
}
LISTED = 5
"""Longest list; `MATERIAL` holds the least magnitudes, fractions of NAV at one standard deviation."""
DAYS, PARTICIPATION = 5.0, 0.20
"""Days and share of average daily volume that define the illiquid part."""
HARD_LIMITS = frozenset({"long_only", "position_limit_min", "name_count", "turnover_max_monthly"})
"""Constraints that hold even if the whole mandate is out of reach."""
LEAST_SCALE = 0.01
"""Smallest limit size used to scale an excess."""
_DECIMALS = 12
"""Decimals to which tied weights agree."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """Value of a constraint, its excess over the limit (<= 0 if kept), and the first worst name or sector."""

    value: float
    excess: float
    worst: str | None = None

    @property
    def status(self) -> str:
        return "PASS" if self.excess <= COMPLIANCE_TOLERANCE else "FAIL"


def measure_mandate(task_input: MonitoringInput) -> dict[str, _Measured]:
    """Measure every constraint of the mandate; requires a resolved `covariance_matrix`."""
    return {item["type"]: measure_constraint(item, task_input) for item in task_input["mandate"]["constraints"]}


def monitoring_answer(task_input: MonitoringInput) -> JsonObject:
    """Return the answer of constraint monitoring."""
    rows: list[dict[str, Any]] = []
    for item in task_input["mandate"]["constraints"]:
        found, kind = measure_constraint(item, task_input), item["type"]
        row: dict[str, Any] = {"type": kind, "status": found.status, "value": found.value}
        if kind in ("beta_range", "name_count"):
            ends = {"min": item.get("min"), "max": item.get("max")}
            row |= {name: end for name, end in ends.items() if end is not None}
        else:
            row["limit"] = 0.0 if kind == "long_only" else item.get("value")
        if found.worst is not None:
            row["worst_sector" if kind == "sector_limit_max" else "worst_symbol"] = found.worst
        if found.status == "FAIL":
            row["violation_magnitude"] = found.excess
        rows.append(row)
    failed = sum(row["status"] == "FAIL" for row in rows)
    return {"overall_compliant": failed == 0, "violations_count": failed, "constraints": rows}


def measure_constraint(
    item: ConstraintInput, task_input: MonitoringInput, slack: float = COMPLIANCE_TOLERANCE
) -> _Measured:
    """Measure one constraint (ValueError if unknown); `slack` favours weights near the holding threshold."""
    portfolio = task_input["portfolio"]
    held = {symbol: weight for symbol, weight in weights(task_input).items() if abs(weight) > NO_WEIGHT}
    sizes = {symbol: abs(weight) for symbol, weight in held.items()}
    limit, worst = cast("float", item.get("value")), None
    match item["type"]:
        case "long_only":
            value = min(held.values(), default=0.0)
            return _Measured(value, -value, _first(held))
        case "position_limit_max":
            value, worst = max(held.values(), default=0.0), _first(held, -1)
        case "position_limit_min":
            value = min(sizes.values(), default=math.inf)
            return _Measured(value, limit - value, _first(sizes))
        case "sector_limit_max":
            totals = sector_totals(task_input)
            value, worst = max(totals.values()), _first(totals, -1)
        case "tracking_error_max":
            value = _tracking_error(task_input)
        case "beta_range":
            value = beta(task_input, "mkt_rf")
            return _Measured(value, _beyond(item, value, value))
        case "factor_exposure_max":
            value = max(abs(beta(task_input, factor)) for factor in item.get("factors", ()))
        case "turnover_max_monthly":
            value = turnover_of_trades(portfolio["trades_this_month"].values())
        case "cash_max":
            value = portfolio["cash_weight"]
        case "gross_exposure_max":
            value = math.fsum(sizes.values())
        case "hhi_max":
            value = _herfindahl(held)
        case "name_count":
            most, least = (sum(size >= HOLDING + way * slack for size in sizes.values()) for way in (-1, 1))
            return _Measured(float(sum(size >= HOLDING for size in sizes.values())), float(_beyond(item, most, least)))
        case unknown:
            raise ValueError(f"unknown constraint type {unknown!r}")
    return _Measured(value, value - limit, worst)


def _beyond(item: ConstraintInput, most: float, least: float) -> float:
    """Return the least excess over a range of any value between `least` and `most`."""
    low, high = item.get("min"), item.get("max")
    return max(([low - most] if low is not None else []) + ([least - high] if high is not None else []))


def _first(sizes: Mapping[str, float], sign: int = 1) -> str | None:
    return min(sizes, key=lambda name: (round(sign * sizes[name], _DECIMALS), name), default=None)


def rederived_relative_excess(task_input: MonitoringInput) -> float:
    """Return the sum of excess / |limit| over constraints outside `HARD_LIMITS`; ranges use the breached end."""
    total = 0.0
    for item in task_input["mandate"]["constraints"]:
        found = measure_constraint(item, task_input)
        if found.excess > 0 and item["type"] not in HARD_LIMITS:
            end, low = item.get("value"), item.get("min")
            if end is None:
                end = low if low is not None and found.value < low else item.get("max")
            total += found.excess / max(abs(cast("float", end)), LEAST_SCALE)
    return total


def input_after_trades(task_input: MonitoringInput, trades: Mapping[str, float], dust: float = 0.0) -> MonitoringInput:
    """Return the input after further trades; positions up to `dust` are sold, `trades_this_month` is unchanged."""
    portfolio, owned = task_input["portfolio"], weights(task_input)
    moved = {symbol: owned.get(symbol, 0.0) + trades.get(symbol, 0.0) for symbol in (*owned, *trades)}
    done: PortfolioInput = {
        **portfolio,
        "holdings": [{"symbol": name, "weight": weight} for name, weight in moved.items() if abs(weight) > dust],
        "cash_weight": portfolio["cash_weight"] - math.fsum(trades.values()),
    }
    return {**task_input, "portfolio": done}


def measure_mandate_after(
    task_input: MonitoringInput, trades: Mapping[str, float], dust: float = 0.0
) -> dict[str, _Measured]:
    """Measure every constraint after further trades, which count towards the month's turnover."""
    done = input_after_trades(task_input, trades, dust)
    found = {item["type"]: measure_constraint(item, done, dust) for item in task_input["mandate"]["constraints"]}
    if (before := found.get("turnover_max_monthly")) is not None:
        added = turnover_of_trades(trades.values())
        found["turnover_max_monthly"] = _Measured(before.value + added, before.excess + added)
    return found


def with_headroom(task_input: RemediationInput) -> RemediationInput:
    """Return the input with every limit tightened by its headroom; imported episodes have none."""
    headrooms = task_input["trading_terms"]["headroom"] if "trading_terms" in task_input else {}
    moved: list[ConstraintInput] = []
    for item in task_input["mandate"]["constraints"]:
        headroom, inside = headrooms.get(item["type"], 0.0), cast("dict[str, Any]", {**item})
        for name, way in (("value", -headroom), ("max", -headroom), ("min", headroom)):
            if headroom and item.get(name) is not None:
                inside[name] = cast("float", item.get(name)) + way
        moved.append(cast("ConstraintInput", inside))
    return {**task_input, "mandate": {**task_input["mandate"], "constraints": moved}}


def cost_of(task_input: RemediationInput, trades: Mapping[str, float]) -> float:
    """Return the cost of signed weight changes in per cent of NAV."""
    costs = task_input["trading_terms"]["cost_bps"]
    return math.fsum(costs[name] * abs(change) for name, change in trades.items()) / 100


def undersized_names(task_input: RemediationInput, trades: Mapping[str, float], within: float) -> list[str]:
    """Return names traded below the minimum without closing the position."""
    owned, least = weights(task_input), task_input["trading_terms"]["minimum_trade"] - within
    return [
        name for name, size in trades.items() if 0 < abs(size) < least and abs(owned.get(name, 0.0) + size) > within
    ]


class RederivedExposure(NamedTuple):
    """Risk exposure: type, subject, standalone risk, and supporting figure."""

    type: str
    subject: str
    magnitude: float
    evidence: float


def exposures(task_input: IdentificationInput) -> list[RederivedExposure]:
    """Return at most `LISTED` material exposures, largest first; requires a resolved `covariance_matrix`."""
    return material_exposures(every_exposure(task_input))


def material_exposures(found: Iterable[RederivedExposure]) -> list[RederivedExposure]:
    """Filter and rank the material exposures."""
    return rank_exposures(
        one
        for one in found
        if one.magnitude >= MATERIAL[one.type] and (one.type != "concentration" or one.evidence >= LEAST_HHI)
    )[:LISTED]


def rank_exposures(found: Iterable[RederivedExposure]) -> list[RederivedExposure]:
    """Sort exposures by magnitude, type and subject."""
    return sorted(found, key=lambda one: (-one.magnitude, TYPES.index(one.type), one.subject))


def every_exposure(task_input: IdentificationInput) -> list[RederivedExposure]:
    """Measure every exposure, material or not."""
    owned, index = weights(task_input), task_input["benchmark_weights"]
    mapped, betas = task_input["sector_mapping"], task_input["factor_exposures"]
    active = {symbol: owned.get(symbol, 0.0) - index[symbol] for symbol in mapped}
    found: list[RederivedExposure] = []
    for factor in FACTORS:
        tilt = math.fsum(amount * betas[symbol][factor] for symbol, amount in active.items())
        loss = abs(tilt) * task_input["factor_volatility"][factor]
        found.append(RederivedExposure("factor_tilt", factor, loss, beta(task_input, factor)))
    for sector, total in sector_totals(task_input).items():
        members = {symbol: amount for symbol, amount in active.items() if mapped[symbol] == sector}
        if math.fsum(members.values()) > 0:
            found.append(RederivedExposure("sector_concentration", sector, deviation(members, task_input), total))
    alone = {symbol: deviation({symbol: amount}, task_input) for symbol, amount in active.items()}
    found += [RederivedExposure("single_name", symbol, alone[symbol], weight) for symbol, weight in owned.items()]
    unrelated = math.sqrt(math.fsum(loss * loss for loss in alone.values()))
    found.append(RederivedExposure("concentration", "portfolio", unrelated, _herfindahl(owned)))
    left = _unsold(task_input["portfolio"], task_input["average_daily_volume_usd"])
    share = math.fsum(map(abs, left.values()))
    return [*found, RederivedExposure("liquidity_risk", "portfolio", deviation(left, task_input), share)]


def identification_answer(task_input: IdentificationInput) -> JsonObject:
    """Return the answer of risk identification without `detail`."""
    rows = [{"rank": rank, **one._asdict()} for rank, one in enumerate(exposures(task_input), start=1)]
    return {"top_risk_exposures": rows}


def tilts(task_input: HoldingsInput) -> dict[str, float]:
    """Return the distance of each portfolio beta from the market's."""
    return {factor: abs(beta(task_input, factor) - (1.0 if factor == "mkt_rf" else 0.0)) for factor in FACTORS}


def rederived_illiquid_share(portfolio: PortfolioInput, volumes: Mapping[str, float]) -> float:
    """Return the share of NAV not sold within `DAYS` days; `volumes` are daily averages in USD."""
    return math.fsum(map(abs, _unsold(portfolio, volumes).values()))


def _unsold(portfolio: PortfolioInput, volumes: Mapping[str, float]) -> dict[str, float]:
    """Return signed weights left after `DAYS` days of selling."""
    left: dict[str, float] = {}
    for item in portfolio["holdings"]:
        sold = DAYS * PARTICIPATION * volumes[item["symbol"]] / portfolio["total_nav"]
        left[item["symbol"]] = math.copysign(max(0.0, abs(item["weight"]) - sold), item["weight"])
    return left


def days_to_sell(portfolio: PortfolioInput, volumes: Mapping[str, float]) -> list[float]:
    """Return days to sell each holding."""
    nav = portfolio["total_nav"]
    sold = [(abs(item["weight"]) * nav, PARTICIPATION * volumes[item["symbol"]]) for item in portfolio["holdings"]]
    return [size / daily if daily > 0 else math.inf for size, daily in sold]


def weights(task_input: HoldingsInput) -> dict[str, float]:
    """Return signed weights by ticker."""
    return {item["symbol"]: item["weight"] for item in task_input["portfolio"]["holdings"]}


def sector_totals(task_input: HoldingsInput) -> dict[str, float]:
    """Return the signed weight of each sector of the universe."""
    mapped = task_input["sector_mapping"]
    totals: dict[str, list[float]] = {sector: [] for sector in sorted(set(mapped.values()))}
    for symbol, weight in weights(task_input).items():
        totals[mapped[symbol]].append(weight)
    return {sector: math.fsum(amounts) for sector, amounts in totals.items()}


def beta(task_input: HoldingsInput, factor: str) -> float:
    """Return the portfolio's beta on a factor."""
    betas = task_input["factor_exposures"]
    return math.fsum(weight * betas[symbol][factor] for symbol, weight in weights(task_input).items())


def turnover_of_trades(trades: Iterable[float]) -> float:
    """Return one-way turnover, including the change of cash."""
    amounts = list(trades)
    return (math.fsum(map(abs, amounts)) + abs(math.fsum(amounts))) / 2


def _herfindahl(owned: Mapping[str, float]) -> float:
    return math.fsum(weight * weight for weight in owned.values())


def _tracking_error(task_input: MonitoringInput) -> float:
    owned, benchmark = weights(task_input), task_input["benchmark_weights"]
    active = {symbol: owned.get(symbol, 0.0) - benchmark[symbol] for symbol in task_input["sector_mapping"]}
    return deviation(active, task_input)


def deviation(amounts: Mapping[str, float], task_input: MonitoringInput | IdentificationInput) -> float:
    """Return sqrt(x'Sx) for amounts by ticker; absent tickers count as 0."""
    covariance: CovarianceInput = task_input["covariance_matrix"]
    held = [(place, amounts[symbol]) for place, symbol in enumerate(covariance["tickers"]) if amounts.get(symbol)]
    if "matrix" in covariance:
        matrix = covariance["matrix"]
        return math.sqrt(max(math.fsum(x * y * matrix[i][j] for i, x in held for j, y in held), 0.0))
    loadings, specific = covariance.get("loadings", ()), covariance.get("specific", ())
    common = math.fsum(math.fsum(row[place] * amount for place, amount in held) ** 2 for row in loadings)
    return math.sqrt(common + math.fsum(amount * amount * specific[place] for place, amount in held))
