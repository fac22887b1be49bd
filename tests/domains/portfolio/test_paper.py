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


def test_unconstrained_takes_an_absent_ticker_as_zero() -> None:
    assert judged("unconstrained_optimization", {"weights": {"AAA": 0.6, "BBB": 0.4}}).value == 1.0
    extra = {"weights": {"AAA": 0.6, "BBB": 0.4, "ZZZ": 0.1}}
    assert judged("unconstrained_optimization", extra).value == pytest.approx(0.5)
    text_weight = {"weights": {"AAA": 0.6, "BBB": 0.4, "ZZZ": "0.1", "CCC": True}}
    assert judged("unconstrained_optimization", text_weight).value == 1.0


@pytest.mark.parametrize("weights", [None, {}, [], {"AAA": "0.6"}, {"AAA": None}, {"AAA": True}, 1])
def test_no_weights_at_all_earn_nothing_even_where_zero_is_near(weights: object) -> None:
    spread = {"weights": {f"T{i}": 1 / 30 for i in range(30)}}  # its own norm is 0.18 < 0.2
    assert judged("unconstrained_optimization", {"weights": weights}, spread).value == 0.0
    assert judged("unconstrained_optimization", {}, spread).value == 0.0


def test_huge_weights_score_zero() -> None:
    for weight in (1e308, -1e308, int(1e308)):
        assert judged("unconstrained_optimization", {"weights": {"AAA": weight, "BBB": weight}}).value == 0.0


def test_constrained_is_gated_by_every_expected_flag() -> None:
    name, right = "constrained_optimization", EXPECTED["constrained_optimization"]
    flags = right["constraint_satisfaction"]
    assert judged(name, right | {"constraint_satisfaction": flags | {"extra": "x"}}).value == 1.0
    for wrong in (flags | {"min_names": True}, {"long_only": True}, flags | {"long_only": 1}, {}, None):
        assert judged(name, right | {"constraint_satisfaction": wrong}).value == 0.0
    assert judged(name, {"weights": right["weights"]}).value == 0.0


def test_constrained_gate_open_leaves_the_weights() -> None:
    name, right = "constrained_optimization", EXPECTED["constrained_optimization"]
    moved = right | {"weights": {"AAA": 0.4, "BBB": 0.4, "CCC": 0.2}}
    assert judged(name, moved).value == pytest.approx(1 - HALF / 0.2)
    alone = {"weights": right["weights"]}
    assert judged(name, alone, right | {"constraint_satisfaction": {}}).value == 1.0
    assert judged(name, alone, alone).value == 1.0


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


def test_parameters_match_within_the_tolerance_that_the_truth_names() -> None:
    assert judged("tool_use_parameterization", {"a": 6}, {"a": 5}, relative_tolerance=0.3).value == 1.0
    assert judged("tool_use_parameterization", {"a": 5.5}, {"a": 5}, relative_tolerance=0.05).value == 0.0


def test_rebalancing_weighs_its_parts_as_the_truth_names_them() -> None:
    weights = {"new_weights": EXPECTED["rebalancing"]["new_weights"]}
    assert judged("rebalancing", weights).value == 0.5
    assert judged("rebalancing", weights, weight_l2_component_weight=0.8).value == 0.8
    only_trades = {"weight_l2_component_weight": 0, "turnover_component_weight": 0, "trade_list_component_weight": 1}
    assert judged("rebalancing", weights, **only_trades).value == 0.0
    assert judged("rebalancing", EXPECTED["rebalancing"], **only_trades).value == 1.0


@pytest.mark.parametrize(
    ("answer", "expected", "score"),
    [
        ({}, {}, 1.0),
        ({"a": {}}, {"a": {}}, 1.0),
        ({"a": {}}, {"a": {"b": 1, "c": 2}}, 0.0),
        ({"a": {}, "d": 1}, {"d": 1}, 0.5),
        ({"a": True}, {"a": 1}, 0.0),
        ({"a": 1}, {"a": True}, 0.0),
        ({"a": "1"}, {"a": 1}, 0.0),
        ({"a": None}, {"a": None}, 1.0),
        ({}, {"a": None}, 0.0),
        ({"a": ["x", 1]}, {"a": ["x", 1.0]}, 1.0),
        ({"a": ["x", 1.1]}, {"a": ["x", 1.0]}, 0.0),
        ({"a": "Max_Sharpe"}, {"a": "max_sharpe"}, 0.0),
    ],
)
def test_parameters_at_the_edges(answer: dict[str, object], expected: dict[str, object], score: float) -> None:
    assert judged("tool_use_parameterization", answer, expected).value == score


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


def test_rebalancing_needs_weights_and_takes_the_alias() -> None:
    name, right = "rebalancing", EXPECTED["rebalancing"]
    assert judged(name, {"turnover": 0.1, "trade_list": right["trade_list"]}).value == 0.0
    alias = {"weights": right["new_weights"], "turnover": 0.1, "trade_list": right["trade_list"]}
    assert judged(name, alias).value == 1.0
    assert judged(name, right, alias).value == 1.0


def test_rebalancing_without_expected_trades_grants_them() -> None:
    still = {"new_weights": {"AAA": 1.0}, "turnover": 0.0, "trade_list": {}}
    assert judged("rebalancing", still, still).value == 1.0
    assert judged("rebalancing", still | {"turnover": 0.5e-9}, still).value == pytest.approx(0.875)


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


def test_black_litterman_threshold_comes_from_the_verification() -> None:
    moved = {"optimal_weights": {"AAA": 0.6, "BBB": 0.4}}
    assert judged("black_litterman", moved, weight_l2_threshold=0.05).value == pytest.approx(1 - HALF / 0.2)


@pytest.mark.parametrize(
    ("given", "score"), [(True, 1.0), (False, 0.0), (1, 0.0), ("true", 0.0), (None, 0.0), ([True], 0.0)]
)
def test_infeasibility_is_the_verdict_alone(given: object, score: float) -> None:
    assert judged("infeasibility_detection", {"feasible": given}).value == score
    assert judged("infeasibility_detection", {"least_attainable": 0.1}).value == 0.0
