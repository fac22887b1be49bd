"""What the builds of the risk subtasks share: the even draw, and two derivations that must agree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.subtasks.test_risk_certified import MARKET, identification, mandate, monitoring, portfolio

from finskillbench.domains.building import conventions
from finskillbench.domains.risk import second as risk_second
from finskillbench.domains.risk.shared import UNITS, agreed, same
from finskillbench.engines.risk import stress
from finskillbench.engines.risk.mandate import mandate_from
from finskillbench.engines.risk.monitor import measure
from finskillbench.engines.risk.stress import apply, scenario_from
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.errors import InternalError

Json = dict[str, Any]


def test_definitions_are_merged_only_where_none_hides_another() -> None:
    assert conventions({"a": "1"}, {"b": "2"}, {"c": "3"}) == {"a": "1", "b": "2", "c": "3"}
    with pytest.raises(InternalError, match="conventions: b is defined twice"):
        conventions({"a": "1", "b": "2"}, {"b": "2"})
    shown = conventions({"units": UNITS}, stress.CONVENTIONS)
    assert shown["units"] == UNITS
    assert "market_shocks only describe" in shown["shocks"]


def test_two_derivations_that_disagree_stop_the_build() -> None:
    assert agreed("t", [("a", 1.0, 1.0), ("b", 2.0, 2.0 + 5e-10)]) == pytest.approx(5e-10)
    with pytest.raises(InternalError, match=r"t: b is 2\.0 by the engine and 2\.00000001 derived a second time"):
        agreed("t", [("a", 1.0, 1.0), ("b", 2.0, 2.00000001)])
    with pytest.raises(InternalError, match="nan"):
        agreed("t", [("a", 1.0, math.nan)])
    with pytest.raises(InternalError, match="t: status is 'PASS' by the engine and 'FAIL'"):
        same("t", "status", "PASS", "FAIL")


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
    found = measure(portfolio_from(task_input, market), mandate_from(task_input["mandate"]), market)
    second = risk_second.monitored(task_input)
    for one in found:
        assert second[one.kind].value == pytest.approx(one.value, abs=1e-12), one.kind
        assert second[one.kind].excess == pytest.approx(one.excess, abs=1e-12), one.kind
        assert second[one.kind].status == ("PASS" if one.passed else "FAIL"), one.kind
    dense = np.array(MARKET["covariance_matrix"]["matrix"])
    factored = {
        "tickers": list(market.tickers),
        "loadings": np.linalg.cholesky(dense).T.tolist(),
        "specific": [0.0] * 6,
    }
    again = risk_second.monitored(task_input | {"covariance_matrix": factored})
    assert again["tracking_error_max"].value == pytest.approx(second["tracking_error_max"].value, abs=1e-12)


def test_the_second_derivation_of_the_ranked_list_agrees() -> None:
    for case in (identification(), identification(AAA=0.3, BBB=-0.1, DDD=0.35, FFF=0.3), identification(fifth=False)):
        truth, task_input = case
        expected = [(row["type"], row["subject"]) for row in truth.expected_output["top_risk_exposures"]]
        second = risk_second.exposures(task_input)
        assert [one[:2] for one in second] == expected
        sizes = [row["magnitude"] for row in truth.expected_output["top_risk_exposures"]]
        assert [one[2] for one in second] == pytest.approx(sizes, abs=1e-12)


def test_the_second_derivation_of_stress_agrees() -> None:
    task_input = monitoring()[1] | {
        "stress_scenario": {
            "scenario_id": "s",
            "type": "hypothetical",
            "name": "S",
            "factor_shocks": {"mkt_rf": -0.2, "smb": -0.03, "hml": 0.01, "rmw": 0.0, "cma": 0.02, "mom": -0.05},
            "sector_sensitivities": {"Technology": -0.01, "Energy": -0.03, "Utilities": 0.01, "Healthcare": 0.004},
        }
    }
    market = market_from(task_input)
    first = apply(portfolio_from(task_input, market), scenario_from(task_input["stress_scenario"]), market)
    second = risk_second.stressed(task_input)
    assert second.pnl == pytest.approx(first.pnl, abs=1e-15)
    assert second.by_sector == pytest.approx(dict(first.by_sector), abs=1e-15)
    assert second.by_factor == pytest.approx(dict(first.by_factor), abs=1e-15)
