"""The second derivation: by hand, and as the engines measure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.domains.risk.judging.cases import MARKET, mandate, portfolio

from finskillbench.domains.building import merge_conventions
from finskillbench.domains.risk import rederive, rederive_stress
from finskillbench.engines.risk.mandate import mandate_from
from finskillbench.engines.risk.monitor import check_constraints
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.errors import InternalError

Json = dict[str, Any]


def test_definitions_are_merged_only_where_none_hides_another() -> None:
    assert merge_conventions({"a": "1"}, {"b": "2"}, {"c": "3"}) == {"a": "1", "b": "2", "c": "3"}
    with pytest.raises(InternalError, match="conventions: b is defined twice"):
        merge_conventions({"a": "1", "b": "2"}, {"b": "2"})


def _episode() -> Json:
    names, sectors = ["A", "B", "C", "D"], ["X", "X", "Y", "Z"]
    betas = {"A": 1.2, "B": 0.8, "C": 1.0, "D": 0.5}
    return {
        "portfolio": {
            "portfolio_id": "P1",
            "holdings": [
                {"symbol": "A", "weight": 0.5},
                {"symbol": "B", "weight": 0.3},
                {"symbol": "C", "weight": 0.1},
            ],
            "cash_weight": 0.1,
            "total_nav": 1e6,
            "trades_this_month": {"A": 0.05, "C": -0.02},
        },
        "mandate": {"constraints": []},
        "sector_mapping": dict(zip(names, sectors, strict=True)),
        "factor_exposures": {n: dict.fromkeys(rederive.FACTORS, 0.1) | {"mkt_rf": betas[n]} for n in names},
        "factor_volatility": dict.fromkeys(rederive.FACTORS, 0.1) | {"mkt_rf": 0.2},
        "benchmark_weights": dict.fromkeys(names, 0.25),
        "covariance_matrix": {"tickers": names, "matrix": np.diag([0.04, 0.09, 0.01, 0.16]).tolist()},
        "average_daily_volume_usd": {"A": 1e5, "B": 1e6, "C": 1e6, "D": 1e6},
    }


RULES: list[tuple[Json, str, float]] = [
    ({"type": "long_only", "value": True}, "PASS", 0.1),
    ({"type": "position_limit_max", "value": 0.4}, "FAIL", 0.5),
    ({"type": "position_limit_min", "value": 0.1}, "PASS", 0.1),
    ({"type": "sector_limit_max", "value": 0.7}, "FAIL", 0.8),
    # active +.25, +.05, -.15, -.25
    ({"type": "tracking_error_max", "value": 0.1}, "FAIL", (0.0025 + 0.000225 + 0.000225 + 0.01) ** 0.5),
    ({"type": "beta_range", "min": 0.95, "max": 1.1}, "FAIL", 0.94),
    ({"type": "factor_exposure_max", "factors": ["smb", "hml"], "value": 0.1}, "PASS", 0.09),
    ({"type": "turnover_max_monthly", "value": 0.05}, "PASS", 0.05),
    ({"type": "cash_max", "value": 0.05}, "FAIL", 0.1),
    ({"type": "gross_exposure_max", "value": 0.9}, "PASS", 0.9),
    ({"type": "hhi_max", "value": 0.3}, "FAIL", 0.35),
    ({"type": "name_count", "min": 4, "max": None}, "FAIL", 3.0),
]


def test_every_type_by_hand() -> None:
    episode = _episode() | {"mandate": {"constraints": [rule for rule, _, _ in RULES]}}
    report = rederive.monitoring_answer(episode)
    for row, (rule, status, value) in zip(report["constraints"], RULES, strict=True):
        assert (row["type"], row["status"]) == (rule["type"], status)
        assert row["value"] == pytest.approx(value, abs=1e-12), rule
    assert report["violations_count"] == 7
    assert not report["overall_compliant"]
    magnitudes = [row["violation_magnitude"] for row in report["constraints"] if row["status"] == "FAIL"]
    assert magnitudes == pytest.approx([0.1, 0.1, 0.01295**0.5 - 0.1, 0.01, 0.05, 0.05, 1.0], abs=1e-12)


def test_exposures_by_hand() -> None:
    rows = rederive.identification_answer(_episode())["top_risk_exposures"]
    # Active +.25, +.05, -.15, -.25. A: 0.5 less 5 days x 0.2 x 1e5 / 1e6 = 0.4 illiquid, at 20 % a year. The tilts to
    # the market, 0.065 x 20 %, and to the others, 0.01 x 10 %, are not material; neither are B and C.
    assert [(r["rank"], r["type"], r["subject"]) for r in rows] == [
        (1, "concentration", "portfolio"),
        (2, "liquidity_risk", "portfolio"),
        (3, "sector_concentration", "X"),
        (4, "single_name", "A"),
    ]
    sizes = [(0.0025 + 0.000225 + 0.000225 + 0.01) ** 0.5, 0.4 * 0.2, (0.0025 + 0.000225) ** 0.5, 0.25 * 0.2]
    assert [r["magnitude"] for r in rows] == pytest.approx(sizes, abs=1e-12)
    assert [r["evidence"] for r in rows] == pytest.approx([0.35, 0.4, 0.8, 0.5], abs=1e-12)
    every = {(one.type, one.subject): one for one in rederive.every_exposure(_episode())}
    assert every["factor_tilt", "mkt_rf"][2:] == pytest.approx((0.065 * 0.2, 0.94), abs=1e-12)
    assert every["factor_tilt", "hml"][2:] == pytest.approx((0.01 * 0.1, 0.09), abs=1e-12)
    assert every["single_name", "B"][2:] == pytest.approx((0.05 * 0.3, 0.3), abs=1e-12)
    days = rederive.days_to_sell(_episode()["portfolio"], _episode()["average_daily_volume_usd"])
    assert days == pytest.approx([25.0, 1.5, 0.5])


def test_stress_by_hand_and_both_attributions_add_up() -> None:
    shocks = dict.fromkeys(rederive.FACTORS, 0.0) | {"mkt_rf": -0.2, "smb": 0.1}
    scenario = {"factor_shocks": shocks, "sector_sensitivities": {"X": -0.05, "Y": 0.02, "Z": 0.0}}
    found = rederive_stress.rederived_stress_answer(_episode() | {"stress_scenario": scenario})
    assert found["estimated_pnl_pct"] == pytest.approx(-0.2 * 0.94 + 0.1 * 0.09 - 0.05 * 0.8 + 0.02 * 0.1)
    for rows in found["attribution"].values():
        assert sum(r["contribution_pct"] for r in rows) == pytest.approx(found["estimated_pnl_pct"], abs=1e-15)


def test_the_second_derivation_of_monitoring_agrees_kind_by_kind() -> None:
    constraints = [
        {"type": "long_only", "value": True},
        {"type": "position_limit_max", "value": 0.3},
        {"type": "position_limit_min", "value": 0.02},
        {"type": "sector_limit_max", "value": 0.4},
        {"type": "tracking_error_max", "value": 0.05},
        {"type": "beta_range", "min": 0.8, "max": 1.0},
        {"type": "factor_exposure_max", "factors": ["smb", "hml"], "value": 0.1},
        {"type": "turnover_max_monthly", "value": 0.02},
        {"type": "cash_max", "value": 0.1},
        {"type": "gross_exposure_max", "value": 1.0},
        {"type": "hhi_max", "value": 0.2},
        {"type": "name_count", "min": 6, "max": None},
    ]
    weights = {"AAA": 0.52, "BBB": -0.05, "CCC": 0.31, "DDD": 0.01, "EEE": 0.12}
    task_input = MARKET | {"portfolio": portfolio(**weights), "mandate": mandate(*constraints)}
    market = market_from(task_input)
    found = check_constraints(portfolio_from(task_input, market), mandate_from(task_input["mandate"]), market)
    derived = rederive.measure_mandate(task_input)
    for one in found:
        assert derived[one.kind].value == pytest.approx(one.value, abs=1e-12), one.kind
        assert derived[one.kind].excess == pytest.approx(one.excess, abs=1e-12), one.kind
        assert derived[one.kind].status == ("PASS" if one.passed else "FAIL"), one.kind
    dense = np.array(MARKET["covariance_matrix"]["matrix"])
    factored = {
        "tickers": list(market.tickers),
        "loadings": np.linalg.cholesky(dense).T.tolist(),
        "specific": [0.0] * 6,
    }
    again = rederive.measure_mandate(task_input | {"covariance_matrix": factored})
    assert again["tracking_error_max"].value == pytest.approx(derived["tracking_error_max"].value, abs=1e-12)
