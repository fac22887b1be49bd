"""Constraint monitoring, risk identification and stress testing, derived from the conventions that a task prints.

Plain numpy on a resolved task input, independent of `finskillbench`. Every function returns the answer and the
distance of its nearest decision (a limit, a threshold, a rank) from the value at which it would turn.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import itertools
import math
import re
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Json = dict[str, Any]
Array = NDArray[np.float64]
HOLDING = 0.001
ZERO = 1e-5
"""Largest weight that counts as 0, and the tolerance of a limit."""
TIE = 12
"""Decimals to which magnitudes that tie agree: of a sector with one name both magnitudes are the same."""
FACTORS = ("mkt_rf", "smb", "hml", "rmw", "cma", "mom")
KINDS = ("factor_tilt", "sector_concentration", "single_name", "concentration", "liquidity_risk")


def covariance(task_input: Json) -> tuple[list[str], Array]:
    """Tickers and the (n, n) covariance; a factor form is multiplied out."""
    table = task_input["covariance_matrix"]
    if "matrix" in table:
        return list(table["tickers"]), np.array(table["matrix"], dtype=float)
    loadings = np.array(table["loadings"], dtype=float)
    return list(table["tickers"]), loadings.T @ loadings + np.diag(np.array(table["specific"], dtype=float))


def holdings(task_input: Json) -> dict[str, float]:
    """Signed weights by ticker."""
    return {row["symbol"]: float(row["weight"]) for row in task_input["portfolio"]["holdings"]}


def by_sector(weights: dict[str, float], task_input: Json) -> dict[str, float]:
    """Total weight of each sector of the universe."""
    totals = dict.fromkeys(task_input["sector_mapping"].values(), 0.0)
    for ticker, weight in weights.items():
        totals[task_input["sector_mapping"][ticker]] += weight
    return totals


def turnover(trades: Any) -> float:
    """One-way turnover of signed trades, cash included."""
    changes = list(trades)
    return (sum(map(abs, changes)) + abs(sum(changes))) / 2


def measure(rule: Json, weights: dict[str, float], cash: float, task_input: Json, trades: Any) -> float:
    """Value of a constraint by its printed definition; `trades` are those of the month."""
    sized = {ticker: weight for ticker, weight in weights.items() if abs(weight) > ZERO}
    held = [weight for weight in weights.values() if abs(weight) >= HOLDING]

    def exposure(factor: str) -> float:
        return sum(weight * task_input["factor_exposures"][ticker][factor] for ticker, weight in weights.items())

    kind = rule["type"]
    if kind == "long_only":
        return min(sized.values())
    if kind == "position_limit_max":
        return max(weights.values())
    if kind == "position_limit_min":
        return min(map(abs, sized.values()))
    if kind == "sector_limit_max":
        return max(by_sector(weights, task_input).values())
    if kind == "tracking_error_max":
        tickers, matrix = covariance(task_input)
        active = np.array([weights.get(t, 0.0) - task_input["benchmark_weights"].get(t, 0.0) for t in tickers])
        return math.sqrt(active @ matrix @ active)
    if kind == "beta_range":
        return exposure("mkt_rf")
    if kind == "factor_exposure_max":
        return max(abs(exposure(factor)) for factor in rule["factors"])
    if kind == "turnover_max_monthly":
        return turnover(trades)
    if kind == "cash_max":
        return cash
    if kind == "gross_exposure_max":
        return math.fsum(map(abs, held))
    if kind == "hhi_max":
        return math.fsum(weight * weight for weight in held)
    if kind == "name_count":
        return float(len(held))
    raise ValueError(f"constraint type {kind!r} is unknown")


def excess(rule: Json, value: float) -> float:
    """How far a value lies beyond its limit; negative within it."""
    if rule["type"] == "long_only":
        return -value
    if rule["type"] == "position_limit_min":
        return rule["value"] - value
    ends = [value - rule[end] for end in ("value", "max") if rule.get(end) is not None]
    return max([*ends, *([rule["min"] - value] if rule.get("min") is not None else [])])


def monitor(task_input: Json) -> tuple[Json, float]:
    """Status, value and excess of every constraint of the mandate."""
    portfolio, weights, rows, nearest = task_input["portfolio"], holdings(task_input), [], math.inf
    trades = (portfolio.get("trades_this_month") or {}).values()
    for rule in task_input["mandate"]["constraints"]:
        value = measure(rule, weights, portfolio["cash_weight"], task_input, trades)
        beyond = excess(rule, value)
        nearest = min(nearest, abs(beyond - ZERO))
        row = {"type": rule["type"], "status": "FAIL" if beyond > ZERO else "PASS", "value": value}
        row |= {end: rule[end] for end in ("min", "max") if rule.get(end) is not None}
        row |= {"limit": float(rule["value"])} if "value" in rule and rule["type"] != "long_only" else {}
        row |= _worst(rule["type"], weights, task_input)
        rows.append({**row, "violation_magnitude": beyond} if beyond > ZERO else row)
    failed = sum(row["status"] == "FAIL" for row in rows)
    answer = {"overall_compliant": failed == 0, "violations_count": failed, "constraints": rows}
    return answer, nearest


def _worst(kind: str, weights: dict[str, float], task_input: Json) -> dict[str, str]:
    """The name or sector nearest to a limit or furthest beyond it, as the schema of the answer asks.

    The task prints no rule for ties, of which some are exact: the first by name is taken, as labels do.
    """
    sized = {ticker: weight for ticker, weight in weights.items() if abs(weight) > ZERO}
    if kind == "long_only":
        return {"worst_symbol": min(sorted(sized), key=lambda ticker: round(sized[ticker], TIE))}
    if kind == "position_limit_max":
        return {"worst_symbol": max(sorted(weights), key=lambda ticker: round(weights[ticker], TIE))}
    if kind == "position_limit_min":
        return {"worst_symbol": min(sorted(sized), key=lambda ticker: round(abs(sized[ticker]), TIE))}
    if kind == "sector_limit_max":
        totals = by_sector(weights, task_input)
        return {"worst_sector": max(sorted(totals), key=lambda sector: round(totals[sector], TIE))}
    return {}


def identify(task_input: Json) -> tuple[Json, float]:
    """The ranked material exposures; thresholds, sessions and the number kept are read from the conventions."""
    printed, tickers, matrix = task_input["conventions"], *covariance(task_input)
    weights, betas, sectors = holdings(task_input), task_input["factor_exposures"], task_input["sector_mapping"]
    w = np.array([weights.get(ticker, 0.0) for ticker in tickers])
    active = w - np.array([task_input["benchmark_weights"].get(ticker, 0.0) for ticker in tickers])
    found: list[tuple[str, str, float, float]] = []
    for factor, volatility in task_input["factor_volatility"].items():
        beta = np.array([betas[ticker][factor] for ticker in tickers])
        found.append(("factor_tilt", factor, abs(active @ beta) * volatility, float(w @ beta)))
    for sector in sorted(set(sectors.values())):
        inside = np.array([sectors[ticker] == sector for ticker in tickers])
        part = np.where(inside, active, 0.0)
        if part.sum() > 0:
            found.append(("sector_concentration", sector, math.sqrt(part @ matrix @ part), float(w[inside].sum())))
    for place, ticker in enumerate(tickers):
        if abs(w[place]) > 0:
            found.append(("single_name", ticker, abs(active[place]) * math.sqrt(matrix[place, place]), w[place]))
    concentration = math.sqrt(float(active**2 @ matrix.diagonal()))
    found.append(("concentration", "portfolio", concentration, float(w @ w)))
    sessions, share = (
        float(x) for x in re.findall(r"beyond ([\d.]+) x ([\d.]+) x average", printed["liquidity_risk"])[0]
    )
    volume = np.array([task_input["average_daily_volume_usd"][ticker] for ticker in tickers])
    sold = sessions * share * volume / task_input["portfolio"]["total_nav"]
    stuck = np.sign(w) * np.maximum(np.abs(w) - sold, 0.0)
    found.append(("liquidity_risk", "portfolio", math.sqrt(stuck @ matrix @ stuck), float(np.abs(stuck).sum())))
    least = {kind: float(re.findall(rf"(?<!_){kind} ([\d.]*\d)", printed["listed"])[0]) for kind in KINDS}
    herfindahl = float(re.findall(r"Herfindahl index of at least ([\d.]*\d)", printed["listed"])[0])
    kept = int(re.findall(r"the first (\d+) are kept", printed["ranking"])[0])
    gaps = [abs(row[2] - least[row[0]]) for row in found] + [abs(found[-2][3] - herfindahl)]
    listed = [r for r in found if r[2] >= least[r[0]] and not (r[0] == "concentration" and r[3] < herfindahl)]
    listed.sort(key=lambda row: (-round(row[2], TIE), KINDS.index(row[0]), row[1]))
    apart = (upper[2] - lower[2] for upper, lower in itertools.pairwise(listed[: kept + 1]))
    gaps += [gap for gap in apart if gap > 10**-TIE]  # the ranking rule decides ties
    rows = [
        {"rank": rank, "type": row[0], "subject": row[1], "magnitude": row[2], "evidence": row[3]}
        for rank, row in enumerate(listed[:kept], start=1)
    ]
    return {"top_risk_exposures": rows}, min(gaps)


def stress(task_input: Json) -> tuple[Json, float]:
    """P&L, both attributions and, where the task prints its definition, the VaR."""
    printed, scenario, sectors = task_input["conventions"], task_input["stress_scenario"], task_input["sector_mapping"]
    betas, shocks, moves = task_input["factor_exposures"], scenario["factor_shocks"], scenario["sector_sensitivities"]
    benchmark, weights = task_input.get("benchmark_weights"), holdings(task_input)
    nav = task_input["portfolio"]["total_nav"]
    sector_rows: dict[str, float] = {}
    factor_rows = dict.fromkeys([*FACTORS, "sector_sensitivity"], 0.0)
    for ticker, weight in weights.items():
        sector = sectors[ticker]
        beta = betas.get(ticker) or _peers_beta(sector, betas, sectors, benchmark or {})
        move = moves[sector] if sector in moves else moves[scenario["sector_proxies"][sector]]
        parts = {factor: weight * beta[factor] * shocks.get(factor, 0.0) for factor in FACTORS}
        parts["sector_sensitivity"] = weight * move
        for name, part in parts.items():
            factor_rows[name] += part
        sector_rows[sector] = sector_rows.get(sector, 0.0) + sum(parts.values())
    puts = task_input["portfolio"].get("option_overlay") or []
    if "option_overlay" in printed and puts:
        gain = sum(
            put["notional"]
            * (
                _put(1 + shocks["mkt_rf"], put["strike"], put["years"], put["stressed_volatility"])[0]
                - _put(1.0, put["strike"], put["years"], put["implied_volatility"])[0]
            )
            for put in puts
        )
        sector_rows["option_overlay"] = factor_rows["option_overlay"] = gain
    if "liquidation" in printed:
        factor_rows["liquidation"] = 0.0
        for ticker, weight in weights.items():
            days = abs(weight) * nav / (0.2 * task_input["average_daily_volume_usd"][ticker])
            cost = abs(weight) * scenario["spread_widening_bp"] / 20000 * max(1.0, math.sqrt(days))
            factor_rows["liquidation"] -= cost
            sector_rows[sectors[ticker]] -= cost
    answer: Json = {
        "estimated_pnl_pct": math.fsum(factor_rows.values()),
        "attribution": {
            "by_sector": [{"sector": name, "contribution_pct": x} for name, x in sorted(sector_rows.items())],
            "by_factor": [{"factor": name, "contribution_pct": x} for name, x in factor_rows.items()],
        },
    }
    if "stressed_var_pct" in printed:
        tickers, matrix = covariance(task_input)
        x = np.array([weights.get(ticker, 0.0) for ticker in tickers])
        if puts:
            deltas = [_put(1.0, put["strike"], put["years"], put["implied_volatility"])[1] for put in puts]
            market = sum(put["notional"] * delta for put, delta in zip(puts, deltas, strict=True))
            x += market * np.array([(benchmark or {}).get(ticker, 0.0) for ticker in tickers])
        volatility = np.sqrt(matrix.diagonal())
        correlation = matrix / np.outer(volatility, volatility)
        shifted = correlation + scenario["correlation_shift"] * (1 - correlation)
        quantile = float(re.findall(r"([\d.]+) x sqrt\(x'S x / 252\)", printed["stressed_var_pct"])[0])
        risk = (x * volatility) @ shifted @ (x * volatility)
        answer["stressed_var_pct"] = quantile * math.sqrt(risk / 252)
    return answer, math.inf


def _peers_beta(sector: str, betas: Json, sectors: Json, benchmark: Json) -> dict[str, float]:
    """Benchmark-weighted mean betas of the names of a sector that have betas."""
    names = [ticker for ticker in betas if sectors[ticker] == sector]
    total = sum(benchmark[ticker] for ticker in names)
    return {factor: sum(benchmark[t] * betas[t][factor] for t in names) / total for factor in FACTORS}


def _put(forward: float, strike: float, years: float, volatility: float) -> tuple[float, float]:
    """Value and delta of a put by Black's formula without interest."""
    spread, normal = volatility * math.sqrt(years), NormalDist()
    d1 = math.log(forward / strike) / spread + spread / 2
    d2 = d1 - spread
    return strike * normal.cdf(-d2) - forward * normal.cdf(-d1), -normal.cdf(-d1)
