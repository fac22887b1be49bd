"""Answers on the four risk subtasks that try to earn more than they know.

Each function returns the attacks on one subtask as `{name: answer}`, made from what an agent sees. Some take a little
work (the market's P&L, a report copied from the limits, trades to the benchmark); none takes the method asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]

HUGE = 1e300
TYPES = ("factor_tilt", "sector_concentration", "single_name", "concentration", "liquidity_risk")
FACTORS = ("mkt_rf", "smb", "hml", "rmw", "cma", "mom")


# --- constraint monitoring ---------------------------------------------------------------------------------------


def _statuses(task_input: Json, status: str, value: Callable[[Json], Any] | None = None) -> Json:
    rows = []
    for rule in task_input["mandate"]["constraints"]:
        row = {"type": rule["type"], "status": status}
        if value is not None:
            row["value"] = value(rule)
        rows.append(row)
    failed = len(rows) if status == "FAIL" else 0
    return {"overall_compliant": failed == 0, "violations_count": failed, "constraints": rows}


def _limit(rule: Json) -> Any:
    """The limit as the value: a number, the middle of a range, or what is given of one."""
    if rule["type"] == "long_only":
        return 0.0
    if "value" in rule:
        return rule["value"]
    ends = [rule[key] for key in ("min", "max") if rule.get(key) is not None]
    return sum(ends) / len(ends)


def monitoring(task_input: Json) -> dict[str, Json]:
    """Constant statuses with and without values, and limits copied as values."""
    rows = _statuses(task_input, "PASS", _limit)["constraints"]
    both = [*_statuses(task_input, "PASS")["constraints"], *_statuses(task_input, "FAIL")["constraints"]]
    return {
        "empty object": {},
        "nulls": {"overall_compliant": None, "violations_count": None, "constraints": None},
        "no rows, compliant": {"overall_compliant": True, "violations_count": 0, "constraints": []},
        "no rows, one violation": {"overall_compliant": False, "violations_count": 1, "constraints": []},
        "all PASS, no values": _statuses(task_input, "PASS"),
        "all FAIL, no values": _statuses(task_input, "FAIL"),
        "all FAIL, zero": _statuses(task_input, "FAIL", lambda _: 0.0),
        "all PASS, values of the limits": _statuses(task_input, "PASS", _limit),
        "all FAIL, values of the limits": _statuses(task_input, "FAIL", _limit),
        "first FAIL, others PASS, values of the limits": {
            "overall_compliant": False,
            "violations_count": 1,
            "constraints": [{**row, "status": "PASS" if i else "FAIL"} for i, row in enumerate(rows)],
        },
        "every type as PASS and as FAIL": {"overall_compliant": False, "violations_count": 1, "constraints": both},
        "repeated types": {**_statuses(task_input, "PASS", _limit), "constraints": rows * 20},
        "huge values": _statuses(task_input, "FAIL", lambda _: HUGE),
        "values as text": _statuses(task_input, "PASS", lambda rule: str(_limit(rule))),
        "values NaN": _statuses(task_input, "PASS", lambda _: float("nan")),
        "values as booleans": _statuses(task_input, "PASS", lambda _: True),
    }


# --- risk identification -----------------------------------------------------------------------------------------


def _ranked(*rows: tuple[str, str, Any]) -> Json:
    listed = [
        {"rank": i, "type": kind, "subject": subject, "magnitude": size, "detail": f"{kind} {subject}"}
        for i, (kind, subject, size) in enumerate(rows, 1)
    ]
    return {"top_risk_exposures": listed}


def identification(task_input: Json) -> dict[str, Json]:
    """Constants, what the list of holdings shows at a glance, and very long lists."""
    held = task_input["portfolio"]["holdings"]
    sectors = sorted(set(task_input["sector_mapping"].values()))
    subjects = [*(("factor_tilt", f) for f in FACTORS), *(("sector_concentration", s) for s in sectors)]
    subjects += [("single_name", row["symbol"]) for row in held]
    subjects += [("concentration", "portfolio"), ("liquidity_risk", "portfolio")]
    grid = [(kind, subject, size / 20) for size in range(20) for kind, subject in subjects]
    constants = (
        ("factor_tilt", "mkt_rf", 0.5),
        ("factor_tilt", "hml", 0.4),
        ("sector_concentration", "Technology", 0.3),
        ("single_name", held[0]["symbol"], 0.1),
        ("concentration", "portfolio", 0.05),
    )
    return {
        "empty object": {},
        "nulls": {"top_risk_exposures": None},
        "empty list": {"top_risk_exposures": []},
        "ranked list of constants": _ranked(*constants),
        "types without subjects": {
            "top_risk_exposures": [{"rank": i, "type": t, "magnitude": 0.3} for i, t in enumerate(TYPES, 1)]
        },
        "types and subjects without magnitudes": _ranked(*((t, s, None) for t, s, _ in constants)),
        "one type five times": _ranked(*[("factor_tilt", "mkt_rf", 0.5)] * 5),
        "magnitudes of zero": _ranked(*((t, s, 0.0) for t, s, _ in constants)),
        "every tilt at its threshold": _ranked(*(("factor_tilt", f, 0.30) for f in FACTORS[:5])),
        "1000 exposures": _ranked(*(grid * 1000)[:1000]),
        "huge magnitudes": _ranked(*((t, s, HUGE) for t, s, _ in constants)),
        "magnitudes NaN": _ranked(*((t, s, float("nan")) for t, s, _ in constants)),
        "magnitudes as text": _ranked(*((t, s, "0.3") for t, s, _ in constants)),
        "exposures of wrong types": {"top_risk_exposures": [1, None, "factor_tilt", [], {}]},
    }


# --- stress ------------------------------------------------------------------------------------------------------


def _stress(pnl: Any, by_sector: Mapping[str, Any] | None = None, by_factor: Mapping[str, Any] | None = None) -> Json:
    attribution = {
        name: [{key: label, "contribution_pct": value} for label, value in (given or {}).items()]
        for name, key, given in (("by_sector", "sector", by_sector), ("by_factor", "factor", by_factor))
    }
    return {"estimated_pnl_pct": pnl, "attribution": attribution}


def stress(task_input: Json) -> dict[str, Json]:
    """Constants and what the market's beta alone says."""
    scenario = task_input["stress_scenario"]
    betas = {symbol: row["mkt_rf"] for symbol, row in task_input["factor_exposures"].items()}
    mapping = task_input["sector_mapping"]
    weights = {row["symbol"]: row["weight"] for row in task_input["portfolio"]["holdings"]}
    shock = scenario["factor_shocks"]["mkt_rf"]
    held = sorted({mapping[symbol] for symbol in weights})
    market = sum(w * betas.get(s, 1.0) for s, w in weights.items()) * shock
    by_sector = {
        name: sum(w * betas.get(s, 1.0) for s, w in weights.items() if mapping[s] == name) * shock for name in held
    }
    names = (*FACTORS, "sector_sensitivity")
    zero: dict[str, float] = dict.fromkeys(names, 0.0)
    sensitivity = {name: scenario["sector_sensitivities"].get(name, 0.0) for name in held}
    invested = sum(weights.values())
    return {
        "empty object": {},
        "nulls": {"estimated_pnl_pct": None, "attribution": None},
        "zero P&L": _stress(0.0),
        "zero P&L, zero attributions": _stress(0.0, dict.fromkeys(held, 0.0), zero),
        "minus ten per cent": _stress(-0.10, dict.fromkeys(held, -0.10 / len(held)), zero | {"mkt_rf": -0.10}),
        "market beta only": _stress(market, by_sector, zero | {"mkt_rf": market}),
        "shock of the market": _stress(
            shock * invested,
            {n: shock * sum(w for s, w in weights.items() if mapping[s] == n) for n in held},
            zero | {"mkt_rf": shock * invested},
        ),
        "sensitivities as contributions": _stress(sum(sensitivity.values()), sensitivity, scenario["factor_shocks"]),
        "shocks as contributions": _stress(sum(scenario["factor_shocks"].values()), None, scenario["factor_shocks"]),
        "attribution that does not add up": _stress(market, dict.fromkeys(held, market), dict.fromkeys(names, market)),
        "empty attributions": _stress(market),
        "huge": _stress(-HUGE, dict.fromkeys(held, HUGE), dict.fromkeys(names, -HUGE)),
        "NaN": _stress(float("nan"), dict.fromkeys(held, float("nan")), dict.fromkeys(names, float("nan"))),
        "text": _stress("-0.1", dict.fromkeys(held, "0"), dict.fromkeys(names, "0")),
    }


# --- remediation -------------------------------------------------------------------------------------------------


def _trades(changes: Mapping[str, Any], held: Mapping[str, float], compliant: Any, turnover: Any = None) -> Json:
    numbers = [x for x in changes.values() if isinstance(x, (int, float))]
    rows = []
    for symbol, change in changes.items():
        known = isinstance(change, (int, float))
        rows.append(
            {
                "symbol": symbol,
                "action": "sell" if known and change < 0 else "buy",
                "current_weight": held.get(symbol, 0.0),
                "target_weight": held.get(symbol, 0.0) + change if known else change,
                "trade_pct": change,
            }
        )
    if turnover is None:
        turnover = (sum(map(abs, numbers)) + abs(sum(numbers))) / 2
    return {"trades": rows, "total_turnover": turnover, "post_trade_compliant": compliant}


def remediation(task_input: Json) -> dict[str, Json]:
    """Nothing, everything, trades to fixed portfolios, and lists that no broker would take."""
    held = {row["symbol"]: row["weight"] for row in task_input["portfolio"]["holdings"]}
    universe = list(task_input["sector_mapping"])
    benchmark = task_input["benchmark_weights"]

    def towards(target: Mapping[str, float], compliant: Any, share: float = 1.0) -> Json:
        changes = {s: share * (target.get(s, 0.0) - held.get(s, 0.0)) for s in universe}
        return _trades({s: x for s, x in changes.items() if abs(x) > 1e-9}, held, compliant)

    equal = dict.fromkeys(universe, 1 / len(universe))
    first = next(iter(held))
    found = {
        "empty object": {},
        "nulls": {"trades": None, "total_turnover": None, "post_trade_compliant": None},
        "verdict only, true": {"post_trade_compliant": True},
        "verdict only, false": {"post_trade_compliant": False},
    }
    for word, compliant in (("true", True), ("false", False)):
        found |= {
            f"no trades, {word}": _trades({}, held, compliant),
            f"no trades at a turnover of 10 %, {word}": _trades({}, held, compliant, 0.10),
            f"all to cash, {word}": towards({}, compliant),
            f"to equal weights, {word}": towards(equal, compliant),
            f"to the benchmark, {word}": towards(benchmark, compliant),
            f"a quarter to the benchmark, {word}": towards(benchmark, compliant, 0.25),
            f"half to the benchmark, {word}": towards(benchmark, compliant, 0.5),
            f"unknown symbols, {word}": _trades({"NOSUCH": 0.05, first: -0.05}, held, compliant),
            f"huge, {word}": _trades(dict.fromkeys(universe, HUGE), held, compliant, HUGE),
            f"NaN, {word}": _trades(dict.fromkeys(universe, float("nan")), held, compliant, float("nan")),
            f"text, {word}": _trades(dict.fromkeys(universe, "0.01"), held, compliant, 0.1),
        }
        twice = towards(benchmark, compliant)
        found[f"duplicate trades, {word}"] = {**twice, "trades": twice["trades"] * 2}
        free = towards(benchmark, compliant)
        found[f"to the benchmark, a turnover of zero, {word}"] = {**free, "total_turnover": 0.0}
    return found


ATTACKS: Mapping[str, Callable[[Json], dict[str, Json]]] = {
    "constraint_monitoring": monitoring,
    "risk_identification": identification,
    "stress_testing": stress,
    "risk_remediation": remediation,
}
