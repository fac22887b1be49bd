"""`baseline/trivial`: for each subtask the best answer that needs no thought about the episode.

It is the floor to clear: equal weights, every constraint said to hold, the portfolio left as it is, everything
compliant, nothing unusual. It loads no skill and runs no script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from finskillbench.domains import Naive
from finskillbench.harness.model import Message, ToolSpec, Turn
from finskillbench.harness.programs.program import Program
from finskillbench.harness.programs.reading import naive_answer, read_fields, submit, subtask_of, turns_taken

_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "unconstrained_optimization": ("expected_returns",),
        "constrained_optimization": ("expected_returns", "constraints"),
        "rebalancing": ("current_portfolio",),
        "black_litterman": ("market_cap_weights",),
    }
)
_FLAGS = (
    "long_only",
    "max_weight",
    "min_weight",
    "sector_limits",
    "min_names",
    "max_names",
    "max_turnover",
    "max_tracking_error",
    "factor_neutrality",
)
COMPONENTS = (
    "roa_positive",
    "cfo_positive",
    "delta_roa_positive",
    "accruals_negative",
    "delta_leverage_negative",
    "delta_current_ratio_positive",
    "no_dilution",
    "delta_gross_margin_positive",
    "delta_asset_turnover_positive",
)
"""Piotroski's nine signals."""
METRICS = (
    "revenue",
    "operating_income",
    "net_income",
    "eps_diluted",
    "total_assets",
    "total_liabilities",
    "stockholders_equity",
    "operating_cash_flow",
    "operating_margin",
    "ebitda",
)
"""The metrics of a normalised filing."""
MONITORED = (
    "long_only",
    "position_limit_max",
    "position_limit_min",
    "sector_limit_max",
    "tracking_error_max",
    "beta_range",
    "factor_exposure_max",
    "turnover_max_monthly",
    "cash_max",
    "gross_exposure_max",
    "hhi_max",
    "name_count",
)
"""Every type of constraint that a risk mandate may hold."""
_EXPOSURES = (
    ("factor_tilt", "hml", "hml beta +0.400", 0.4),
    ("sector_concentration", "Technology", "Technology sector 30.0%", 0.3),
    ("single_name", "AAPL", "AAPL at 10.0%", 0.1),
    ("concentration", "portfolio", "HHI 0.0600", 0.06),
    ("liquidity_risk", "portfolio", "illiquid share 5.0%", 0.05),
)

_CONSTANT: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        "tool_use_parameterization": {
            "optimizer_call": {"objective": "max_sharpe", "constraints": {"long_only": True}}
        },
        "infeasibility_detection": {"feasible": True, "minimum_turnover": 0.0},
        "constraint_monitoring": {
            "overall_compliant": True,
            "violations_count": 0,
            "constraints": [{"type": name, "status": "PASS"} for name in MONITORED],
        },
        "risk_identification": {
            "top_risk_exposures": [
                {"rank": rank, "type": kind, "subject": subject, "detail": detail, "magnitude": magnitude}
                for rank, (kind, subject, detail, magnitude) in enumerate(_EXPOSURES, start=1)
            ]
        },
        "stress_testing": {"estimated_pnl_pct": 0.0, "attribution": {"by_sector": [], "by_factor": []}},
        "risk_remediation": {"trades": [], "total_turnover": 0.0, "post_trade_compliant": True},
        "normalization": {"metrics": dict.fromkeys(METRICS, 0.0)},
        "earnings_quality": {
            "piotroski_score": len(COMPONENTS),
            "piotroski_components": dict.fromkeys(COMPONENTS, 1),
            "beneish_m_score": -2.5,
            "beneish_flag": False,
            "accruals_ratio": 0.0,
            "income_quality_ratio": 1.0,
            "flags": [],
        },
        "driver_decomposition": {"revenue_delta": 0.0, "top_revenue_drivers": [], "margin_drivers": []},
    }
)


class Trivial(Program):
    """`baseline/trivial`: reads at most the field that lists the tickers, then submits."""

    name = "baseline/trivial"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Ask for the fields that this subtask needs, then submit its constant answer."""
        subtask = subtask_of(messages)
        naive = subtask and (subtask.trivial or _table(subtask.name))
        if naive is not None and naive.fields and turns_taken(messages) == 0:
            return read_fields(*naive.fields)
        return submit(naive_answer(naive, messages))


def _table(sub_task: str) -> Naive:
    """What a subtask whose domain does not say it yet is answered."""
    return Naive(_FIELDS.get(sub_task, ()), lambda data: _answer(sub_task, data))


def _answer(sub_task: str, data: Mapping[str, Any]) -> dict[str, Any]:
    match sub_task:
        case "unconstrained_optimization":
            return {"weights": _equal(data.get("expected_returns"))}
        case "constrained_optimization":
            flags = {name: True for name in _FLAGS if _is_set((data.get("constraints") or {}).get(name))}
            return {"weights": _equal(data.get("expected_returns")), "constraint_satisfaction": flags}
        case "rebalancing":
            held = data.get("current_portfolio") or {}
            return {"trade_list": {}, "new_weights": held, "turnover": 0.0}
        case "black_litterman":
            weights = _equal(data.get("market_cap_weights"))
            return {"posterior_returns": dict.fromkeys(weights, 0.0), "optimal_weights": weights}
        case _:
            return _CONSTANT.get(sub_task, {})


def _equal(names: Mapping[str, Any] | None) -> dict[str, float]:
    return dict.fromkeys(names, 1.0 / len(names)) if names else {}


def _is_set(limit: Any) -> bool:
    return limit is not None and limit is not False
