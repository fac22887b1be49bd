"""Tasks of the risk subtasks on a market small enough to be worked by hand, and how they are judged."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from finskillbench.domains import subtask_named
from finskillbench.engines.risk.exposures import ranked
from finskillbench.engines.risk.mandate import mandate_from
from finskillbench.engines.risk.monitor import constraint_report
from finskillbench.engines.risk.report import exposure_list
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.episode import Profile, Score, Truth

Json = dict[str, Any]
FACTORS = ("mkt_rf", "smb", "hml", "rmw", "cma", "mom")
TICKERS = ("AAA", "BBB", "CCC", "DDD", "EEE", "FFF")
SECTORS = dict(zip(TICKERS, ["Technology", "Technology", "Energy", "Energy", "Utilities", "Healthcare"], strict=True))
BETAS = {
    ticker: dict(zip(FACTORS, (0.9 + 0.1 * i, 0.1 * i, 0.4 - 0.1 * i, 0.05, -0.02 * i, 0.2), strict=True))
    for i, ticker in enumerate(TICKERS)
}
MARKET: Json = {
    "sector_mapping": SECTORS,
    "factor_exposures": BETAS,
    "benchmark_weights": dict.fromkeys(TICKERS, 1 / 6),
    "covariance_matrix": {"tickers": list(TICKERS), "matrix": (0.04 * np.eye(6) + 0.01).tolist()},
}
WORDS = {
    "constraint_monitoring": ("overall_compliant", "violations_count", "constraints"),
    "risk_identification": ("top_risk_exposures",),
    "stress_testing": ("estimated_pnl_pct", "attribution"),
    "risk_remediation": ("trades", "total_turnover", "post_trade_compliant"),
}


def portfolio(**weights: float) -> Json:
    return {
        "portfolio_id": "P001",
        "holdings": [{"symbol": symbol, "weight": weight} for symbol, weight in weights.items()],
        "cash_weight": 1 - math.fsum(weights.values()),
        "total_nav": 1e9,
        "trades_this_month": {"AAA": 0.03, "BBB": -0.01},
    }


def mandate(*constraints: Json) -> Json:
    return {"mandate_id": "m", "name": "M", "constraints": list(constraints)}


def judged(sub_task: str, answer: Any, truth: Truth, task_input: Json) -> Score:
    score = subtask_named(sub_task).scorers[Profile.CERTIFIED](answer, truth, task_input)
    assert isinstance(score.value, float)
    assert 0.0 <= score.value <= 1.0  # False for NaN
    return score


Case = tuple[Truth, Json]


def monitoring() -> Case:
    task_input = MARKET | {
        "portfolio": portfolio(AAA=0.5, BBB=0.1, CCC=0.1, DDD=0.1, EEE=0.1, FFF=0.05),
        "mandate": mandate(
            {"type": "long_only", "value": True},
            {"type": "position_limit_max", "value": 0.3},
            {"type": "sector_limit_max", "value": 0.55},
            {"type": "tracking_error_max", "value": 0.2},
            {"type": "turnover_max_monthly", "value": 0.2},
            {"type": "cash_max", "value": 0.1},
            {"type": "name_count", "min": 4, "max": None},
        ),
    }
    market = market_from(task_input)
    report = constraint_report(portfolio_from(task_input, market), mandate_from(task_input["mandate"]), market)
    return Truth("rm_cm_t", "constraint_monitoring", report, {"method": "exact_match"}, {"kind": "hand"}), task_input


def identification(*, fifth: bool = True, **weights: float) -> Case:
    task_input = MARKET | {
        "portfolio": portfolio(**(weights or {"AAA": 0.45, "BBB": 0.15, "CCC": 0.2, "EEE": 0.15})),
        "average_daily_volume_usd": dict.fromkeys(TICKERS, 2e8 if fifth else 1e12),
        "factor_volatility": dict.fromkeys(FACTORS, 0.1),
    }
    market = market_from(task_input)
    expected = {"top_risk_exposures": exposure_list(ranked(portfolio_from(task_input, market), market))}
    return Truth("rm_ri_t", "risk_identification", expected, {"top_k": 5}, {"kind": "hand"}), task_input


def stress() -> Case:
    by_sector = {"Technology": -0.05, "Energy": 0.01, "Utilities": 0.0, "Healthcare": -0.0601}
    by_factor = {"mkt_rf": -0.08, "smb": -0.01, "hml": 0.004, "rmw": 0.0, "cma": -0.0001, "mom": 0.0}
    pnl = math.fsum(by_sector.values())
    by_factor["sector_sensitivity"] = pnl - math.fsum(by_factor.values())
    expected = stress_answer(pnl, by_sector, by_factor)
    return Truth("rm_st_t", "stress_testing", expected, {"method": "absolute_error"}, {"kind": "hand"}), {}


def stress_answer(pnl: float | None, by_sector: dict[str, float], by_factor: dict[str, float]) -> Json:
    return {
        "estimated_pnl_pct": pnl,
        "attribution": {
            "by_sector": [{"sector": name, "contribution_pct": x} for name, x in by_sector.items()],
            "by_factor": [{"factor": name, "contribution_pct": x} for name, x in by_factor.items()],
        },
    }


BOOK = {"AAA": 0.5, "BBB": 0.1, "CCC": 0.1, "DDD": 0.1, "EEE": 0.1, "FFF": 0.1}


def remediation(*, curable: bool = True, headroom: float = 0.0) -> Case:
    """AAA has to fall from 50 % to 30 %, at most 10 % in cash; a trade costs 10 bp and is 1 % at least.

    The least cost is that of 30 %, 3 bp. With 0.12 left V falls to 4/15, at 1.4 bp.
    """
    limits = [
        {"type": "long_only", "value": True},
        {"type": "position_limit_max", "value": 0.3},
        {"type": "position_limit_min", "value": 0.02},
        {"type": "cash_max", "value": 0.1},
        {"type": "turnover_max_monthly", "value": 0.5 if curable else 0.15},
    ]
    broken: list[str] = []
    terms = trading_terms(**({"position_limit_max": headroom} if headroom else {}))
    stated = {"portfolio": portfolio(**BOOK), "mandate": mandate(*limits), "violations": broken, "trading_terms": terms}
    if curable:
        known = {"least_cost": 0.03}
        expected = cure(AAA=-0.2, BBB=0.1)
    else:
        known = {"least_shortfall": 0.08 / 0.3 + 0.014, "shortfall_before": 0.2 / 0.3}
        expected = cure(AAA=-0.12, BBB=0.02) | {"post_trade_compliant": False}
    return Truth("rm_rr_t", "risk_remediation", expected, known, {"kind": "hand"}), MARKET | stated


def trading_terms(**headroom: float) -> Json:
    return {"cost_bps": dict.fromkeys(TICKERS, 10.0), "minimum_trade": 0.01, "headroom": headroom}


def cure(**trades: float) -> Json:
    net = math.fsum(trades.values())
    return {
        "trades": [
            {
                "symbol": symbol,
                "action": "buy" if trade > 0 else "sell",
                "current_weight": BOOK[symbol],
                "target_weight": BOOK[symbol] + trade,
                "trade_pct": trade,
            }
            for symbol, trade in trades.items()
        ],
        "total_turnover": (math.fsum(map(abs, trades.values())) + abs(net)) / 2,
        "post_trade_compliant": True,
    }


CASES: dict[str, Callable[[], Case]] = {
    "constraint_monitoring": monitoring,
    "risk_identification": identification,
    "stress_testing": stress,
    "risk_remediation": remediation,
}
