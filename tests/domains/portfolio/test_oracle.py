"""The oracle and the second derivation, against enumeration and closed forms, so that they may be believed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.domains.portfolio import oracle

from finskillbench.domains.portfolio import second

TICKERS = ["A", "B", "C", "D", "E"]


@pytest.fixture
def task_input() -> dict:
    r = np.random.default_rng(7)
    sigma = np.cov(r.normal(0, 0.01, (252, 5)) + r.normal(0, 0.01, (252, 1)), rowvar=False) * 252
    return {
        "covariance_matrix": {"tickers": TICKERS, "matrix": sigma.tolist()},
        "expected_returns": dict(zip(TICKERS, [0.12, 0.05, 0.09, 0.01, 0.03], strict=True)),
        "risk_free_rate": 0.04,
        "risk_aversion": 3.0,
        "objective": "max_sharpe",
        "constraints": {"long_only": True},
        "current_portfolio": dict.fromkeys(TICKERS, 0.2),
        "benchmark_weights": dict.fromkeys(TICKERS, 0.2),
        "market_cap_weights": dict.fromkeys(TICKERS, 0.2),
        "sector_mapping": dict(zip(TICKERS, ["X", "X", "Y", "Y", "Y"], strict=True)),
    }


def test_long_short_minimum_variance_is_the_closed_form(task_input: dict) -> None:
    sigma = np.array(task_input["covariance_matrix"]["matrix"])
    inverse = np.linalg.solve(sigma, np.ones(5))
    found = oracle.solve(task_input | {"objective": "min_variance", "constraints": {"long_only": False}})
    assert list(found["weights"].values()) == pytest.approx(inverse / inverse.sum(), abs=1e-7)
    assert found["objective"] == pytest.approx(1 / inverse.sum(), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["max_sharpe", "min_variance", "max_return", "risk_parity"])
@pytest.mark.parametrize(("fewest", "most"), [(5, 5), (4, 5), (1, 2), (1, 1), (3, 3)])
def test_name_counts_equal_enumeration(task_input: dict, objective: str, fewest: int, most: int) -> None:
    task_input |= {"objective": objective, "constraints": {"min_names": fewest, "max_names": most}}
    found = oracle.solve(task_input)
    assert fewest <= sum(w >= oracle.HOLDING - 1e-9 for w in found["weights"].values()) <= most
    universe = oracle.Universe.of(task_input)
    best = float("inf")
    for held in itertools.product([0.0, 1.0], repeat=5):
        if fewest <= sum(held) <= most:
            w = oracle.cp.Variable(5)
            pattern = np.array(held)
            limits = [
                oracle.cp.sum(w) == 1,
                w >= oracle.HOLDING * pattern,
                w <= oracle.UNHELD + (1 - oracle.UNHELD) * pattern,
            ]
            best = min(best, oracle._minimise(oracle._objective(task_input, universe, w), limits)[1])
    assert found["objective"] == pytest.approx(best, abs=1e-9)


def test_least_turnover_of_a_cap_is_the_excess_sold_and_both_limits_conflict(task_input: dict) -> None:
    held = dict(zip(TICKERS, [0.5, 0.2, 0.1, 0.1, 0.1], strict=True))
    task_input |= {"current_portfolio": held, "limit_to_relax": "max_turnover"}
    task_input["constraints"] = {"max_weight": 0.3, "max_turnover": 0.15}
    found = oracle.feasibility(task_input)
    assert found["least_attainable"] == pytest.approx(0.2, abs=1e-9)
    assert found["feasible"] is False
    assert found["conflicts"] == [{"max_weight", "max_turnover"}]
    assert oracle.solve(task_input)["status"] == "infeasible"
    task_input["constraints"] = {"max_weight": 0.3, "max_turnover": 0.25}
    assert oracle.feasibility(task_input)["feasible"] is True
    assert oracle.solve(task_input)["status"] == "optimal"


def test_tracking_error_binds_at_its_limit(task_input: dict) -> None:
    task_input["constraints"] = {"long_only": True, "max_tracking_error": 0.02}
    found = oracle.solve(task_input)
    active = np.array(list(found["weights"].values())) - 0.2
    sigma = np.array(task_input["covariance_matrix"]["matrix"])
    assert np.sqrt(active @ sigma @ active) == pytest.approx(0.02, rel=1e-6)


def test_rebalancing_gains_enough_for_less_than_the_optimum_costs(task_input: dict) -> None:
    costs = {"A": 5.0, "B": 30.0, "C": 10.0, "D": 60.0, "E": 20.0}
    terms = {"trading_costs_bps": costs, "min_trade": 0.05, "required_improvement": 0.7}
    task_input |= {**terms, "constraints": {"long_only": True, "max_weight": 0.6}}
    first, found = oracle.solve(task_input), oracle.rebalance(task_input)
    assert found["objective"] == pytest.approx(first["objective"], rel=1e-9)
    assert found["achieved"] <= found["required"] + 1e-9
    assert found["cost"] < sum(costs[t] * abs(w - 0.2) for t, w in first["weights"].items()) - 1e-3
    assert all(abs(change) < 1e-9 or abs(change) > 0.05 - 1e-9 for change in found["trades"].values())
    assert found["cost"] == pytest.approx(sum(costs[t] * abs(x) for t, x in found["trades"].items()), abs=1e-6)


def test_posterior_equals_the_form_without_inverses_of_the_prior(task_input: dict) -> None:
    views = [
        {"type": "absolute", "symbols": ["B"], "return": 0.11, "confidence": 0.4},
        {"type": "relative", "symbols": ["C", "E"], "against": ["D"], "return": 0.02, "confidence": 0.8},
    ]
    sigma = np.array(task_input["covariance_matrix"]["matrix"])
    stated = {"analyst_views": views, "tau": 0.05, "risk_aversion": 2.5, "risk_free_rate": 0.03}
    found = second.posterior(task_input | stated, sigma)
    picks = np.array([[0, 1, 0, 0, 0], [0, 0, 0.5, -1, 0.5]])
    spread = 0.05 * picks @ sigma @ picks.T
    omega = np.diag([0.6 / 0.4 * spread[0, 0], 0.2 / 0.8 * spread[1, 1]])
    pi = 2.5 * sigma @ np.full(5, 0.2)
    gap = np.array([0.08, 0.02]) - picks @ pi
    assert found == pytest.approx(pi + 0.05 * sigma @ picks.T @ np.linalg.solve(spread + omega, gap), abs=1e-10)
