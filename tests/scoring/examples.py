"""One small truth per subtask, with the verification its method needs; the right answer is its expected output."""

from __future__ import annotations

from typing import Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from typing_extensions import is_typeddict

from finskillbench.domains import subtask_named, subtasks
from finskillbench.episode import JsonObject, Profile, Score, Truth

_COMPONENTS = {
    "roa_positive": 1,
    "cfo_positive": 1,
    "delta_roa_positive": 0,
    "accruals_negative": 1,
    "delta_leverage_negative": 0,
}

EXPECTED: dict[str, dict[str, Any]] = {
    "unconstrained_optimization": {"weights": {"AAA": 0.6, "BBB": 0.4, "CCC": 0.0}},
    "constrained_optimization": {
        "weights": {"AAA": 0.5, "BBB": 0.3, "CCC": 0.2},
        "constraint_satisfaction": {"long_only": True, "max_weight": True, "min_names": False},
    },
    "tool_use_parameterization": {
        "optimizer_call": {
            "objective": "max_sharpe",
            "constraints": {"long_only": True, "max_weight_per_name": 0.05, "min_names": 15},
        }
    },
    "rebalancing": {
        "trade_list": {"AAA": 0.1, "BBB": -0.1},
        "new_weights": {"AAA": 0.5, "BBB": 0.3, "CCC": 0.2},
        "turnover": 0.1,
    },
    "black_litterman": {"posterior_returns": {"AAA": 0.08, "BBB": 0.05}, "optimal_weights": {"AAA": 0.7, "BBB": 0.3}},
    "constraint_monitoring": {
        "overall_compliant": False,
        "violations_count": 2,
        "constraints": [
            {"type": "position_limit_max", "status": "FAIL", "value": 0.15, "limit": 0.05},
            {"type": "sector_limit_max", "status": "FAIL", "value": 0.6, "limit": 0.25},
            {"type": "beta_range", "status": "PASS", "value": 0.99, "min": 0.8, "max": 1.2},
            {"type": "long_only", "status": "PASS", "value": True, "limit": True},
        ],
    },
    "risk_identification": {
        "top_risk_exposures": [
            {"rank": 1, "type": "factor_tilt", "detail": "mkt_rf beta +1.0", "magnitude": 1.0},
            {"rank": 2, "type": "factor_tilt", "detail": "hml beta +0.8", "magnitude": 0.8},
            {"rank": 3, "type": "sector_concentration", "detail": "Energy 60%", "magnitude": 0.6},
        ]
    },
    "stress_testing": {
        "estimated_pnl_pct": -0.1,
        "attribution": {
            "by_sector": [
                {"sector": "Energy", "contribution_pct": -0.06},
                {"sector": "Utilities", "contribution_pct": -0.04},
            ],
            "by_factor": [{"factor": "market", "contribution_pct": -0.1}],
        },
    },
    "risk_remediation": {
        "trades": [
            {"symbol": "AAA", "action": "sell", "current_weight": 0.2, "target_weight": 0.1, "trade_pct": -0.1},
            {"symbol": "BBB", "action": "buy", "current_weight": 0.1, "target_weight": 0.2, "trade_pct": 0.1},
        ],
        "total_turnover": 0.1,
        "post_trade_compliant": True,
    },
    "normalization": {"metrics": {"revenue": 90753000000, "net_income": 23636000000, "operating_margin": 0.3074}},
    "earnings_quality": {
        "piotroski_score": 3,
        "piotroski_components": _COMPONENTS,
        "beneish_m_score": -2.0,
        "beneish_flag": False,
        "accruals_ratio": -0.01,
        "income_quality_ratio": 1.2,
        "flags": [],
    },
    "driver_decomposition": {
        "revenue_delta": -1000.0,
        "top_revenue_drivers": [
            {"driver": "Europe", "direction": "decrease", "magnitude_usd": -600.0, "contribution_pct": 60.0},
            {"driver": "Japan", "direction": "decrease", "magnitude_usd": -400.0, "contribution_pct": 40.0},
        ],
        "margin_drivers": [
            {"driver": "operating_margin", "direction": "decrease", "delta_pp": -2.0},
            {"driver": "sga_ratio", "direction": "increase", "delta_pp": 1.0},
        ],
    },
    "infeasibility_detection": {"feasible": True, "conflicting_limits": [], "least_attainable": 0.1},
}


def example_of(kind: Any) -> Any:
    """A value of a type that inputs and answers are made of."""
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: example_of(field.annotation) for name, field in kind.model_fields.items()}
    if is_typeddict(kind):
        return {name: example_of(member) for name, member in get_type_hints(kind).items()}
    if origin is dict:
        return {"AAA": example_of(parts[1])}
    if origin is list:
        return [example_of(parts[0])]
    if parts:  # of a union its first member, of a Literal its first value
        return example_of(parts[0]) if isinstance(parts[0], type) or get_origin(parts[0]) else parts[0]
    return {bool: True, int: 1, float: 0.5, str: "AAA", Any: "AAA"}[kind]


EXPECTED |= {subtask.name: example_of(subtask.answer) for subtask in subtasks() if subtask.name not in EXPECTED}
"""A subtask that has no example above gets one from its answer type."""

VERIFICATION: dict[str, dict[str, Any]] = {"stress_testing": {"metrics": ["sector_attribution_mae"]}}


def unproved(sub_task: str) -> list[Profile]:
    """The profiles of a subtask that judge an answer without a proof of its label."""
    return [profile for profile in subtask_named(sub_task).scorers if profile is not Profile.CERTIFIED]


def truth(sub_task: str, expected: JsonObject | None = None, **verification: Any) -> Truth:
    """The example truth of a subtask, or one with another expected output; keywords go to its verification."""
    rules = {"method": subtask_named(sub_task).verification.method, **VERIFICATION.get(sub_task, {}), **verification}
    return Truth("t1", sub_task, EXPECTED[sub_task] if expected is None else expected, rules)


def judged(
    sub_task: str,
    answer: JsonObject,
    expected: JsonObject | None = None,
    profile: Profile = Profile.PAPER,
    **verification: Any,
) -> Score:
    """Score an answer against the example truth (or another expected output) under one profile."""
    return subtask_named(sub_task).scorers[profile](answer, truth(sub_task, expected, **verification), {})
