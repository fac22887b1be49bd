"""The published scorers of portfolio construction, on numbers worked out by hand from the specification."""

import math

import pytest
from tests.scoring.examples import EXPECTED, judged

HALF = math.sqrt(0.02)  # L2 of moving 0.1 from one name to another


def test_unconstrained_falls_linearly_to_zero_at_four_thresholds() -> None:
    moved = {"weights": {"AAA": 0.5, "BBB": 0.5}}
    assert judged("unconstrained_optimization", moved).value == pytest.approx(1 - HALF / 0.2)
    assert judged("unconstrained_optimization", moved, weight_l2_threshold=0.1).value == pytest.approx(1 - HALF / 0.4)
    assert judged("unconstrained_optimization", {"weights": {"BBB": 1.0}}).value == 0.0


def test_constrained_is_gated_by_every_expected_flag() -> None:
    name, right = "constrained_optimization", EXPECTED["constrained_optimization"]
    flags = right["constraint_satisfaction"]
    assert judged(name, right | {"constraint_satisfaction": flags | {"extra": "x"}}).value == 1.0
    for wrong in (flags | {"min_names": True}, {"long_only": True}, flags | {"long_only": 1}, {}, None):
        assert judged(name, right | {"constraint_satisfaction": wrong}).value == 0.0
    assert judged(name, {"weights": right["weights"]}).value == 0.0


def test_parameters_match_within_a_fifth() -> None:
    expected = {"a": 0.05, "b": 0}
    assert judged("tool_use_parameterization", {"a": 0.0599, "b": 1.9e-7}, expected).value == 1.0
    assert judged("tool_use_parameterization", {"a": 0.0601, "b": 2.1e-7}, expected).value == 0.0
    # exactly a fifth away is no match
    assert judged("tool_use_parameterization", {"a": 6}, {"a": 5}).value == 0.0


def test_parameters_count_the_leaves_of_the_union() -> None:
    call = {"objective": "max_sharpe", "constraints": {"long_only": True, "max_weight_per_name": 0.05, "x": 1}}
    # objective, long_only and cap match; min_names is missing and x is extra: 3 of 5
    assert judged("tool_use_parameterization", {"optimizer_call": call}).value == pytest.approx(3 / 5)
    # a missing or an extra subtree is one mismatch, however large: 1 of 2, then 4 of 5
    assert judged("tool_use_parameterization", {"optimizer_call": {"objective": "max_sharpe"}}).value == 0.5
    extra = EXPECTED["tool_use_parameterization"] | {"note": {"a": 1, "b": {"c": 2, "d": 3}}}
    assert judged("tool_use_parameterization", extra).value == 0.8
    # a leaf against a subtree is one mismatch: 1 of 2
    flat = {"optimizer_call": {"objective": "max_sharpe", "constraints": "none"}}
    assert judged("tool_use_parameterization", flat).value == 0.5


def test_rebalancing_adds_weights_turnover_and_trades() -> None:
    name, right = "rebalancing", EXPECTED["rebalancing"]
    assert judged(name, right | {"turnover": 0.12}).value == pytest.approx(0.75 + 0.25 * 0.8)
    assert judged(name, right | {"turnover": 0.3}).value == pytest.approx(0.75)
    assert judged(name, {"new_weights": right["new_weights"]}).value == 0.5
    half = right | {"trade_list": {"AAA": 0.05, "ZZZ": 9.0}}  # AAA half right, BBB absent, ZZZ ignored
    assert judged(name, half).value == pytest.approx(0.75 + 0.25 * 0.25)
    assert judged(name, right | {"trade_list": {"AAA": -0.1, "BBB": 0.1}}).value == pytest.approx(0.75)
    moved = right | {"new_weights": {"AAA": 0.4, "BBB": 0.4, "CCC": 0.2}}
    assert judged(name, moved).value == pytest.approx(0.5 * (1 - HALF / 0.2) + 0.5)


def test_black_litterman_averages_what_both_sides_have() -> None:
    name, right = "black_litterman", EXPECTED["black_litterman"]
    returns, weights = right["posterior_returns"], right["optimal_weights"]
    off = {"AAA": 0.10, "BBB": 0.05, "CCC": 0.01}  # MAE (0.02 + 0 + 0.01) / 3 = 0.01 over the union
    assert judged(name, {"posterior_returns": off}).value == pytest.approx(0.8)
    assert judged(name, {"posterior_returns": off, "optimal_weights": weights}).value == pytest.approx(0.9)
    assert judged(name, {"posterior_weights": {"AAA": 0.6, "BBB": 0.4}}).value == pytest.approx(1 - HALF / 0.4)
    assert judged(name, {"optimal_weights": weights, "posterior_returns": {}}).value == 1.0
    assert judged(name, {"optimal_weights": weights, "posterior_returns": {"AAA": 9.0}}).value == 0.5
    assert judged(name, {"optimal_weights": weights, "posterior_returns": returns}, {"x": 1}).value == 0.0
    assert judged(name, {}).value == 0.0
