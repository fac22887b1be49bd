"""The `certified` scorers of fundamental analysis, on answers worked by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sampling import examples
from tests.scoring.strategies import hostile_answers, wrong_types

from finskillbench.domains import subtask_named
from finskillbench.episode import Profile, Score, Truth

pytestmark = pytest.mark.slow

Json = dict[str, Any]
NORM, EQ, DD = "normalization", "earnings_quality", "driver_decomposition"

SIGNALS = {
    "roa_positive": 1,
    "cfo_positive": 1,
    "delta_roa_positive": 0,
    "accruals_negative": 1,
    "delta_leverage_negative": 0,
    "delta_current_ratio_positive": 0,
    "no_dilution": 1,
    "delta_gross_margin_positive": 1,
    "delta_asset_turnover_positive": 1,
}


def revenue_driver(name: str, size: float, share: float) -> Json:
    return {
        "driver": name,
        "type": "product_segment",
        "direction": "increase" if size > 0 else "decrease",
        "magnitude_usd": size,
        "contribution_pct": share,
    }


def margin_driver(name: str, delta: float) -> Json:
    return {
        "driver": name,
        "type": "margin" if name.endswith("margin") else "expense_ratio",
        "direction": "increase" if delta > 0 else "decrease",
        "delta_pp": delta,
    }


TRUTHS: dict[str, Json] = {
    NORM: {
        "metrics": {
            "revenue": 90_753e6,
            "operating_income": 27_900e6,
            "net_income": -23_636e6,
            "eps_diluted": 1.53,
            "total_assets": 337_411e6,
            "total_liabilities": None,
            "stockholders_equity": 74_194e6,
            "operating_cash_flow": 22_690e6,
            "operating_margin": 0.30742785362467357,
            "ebitda": 30_736e6,
        }
    },
    EQ: {
        "piotroski_score": 6,
        "piotroski_components": SIGNALS,
        "beneish_m_score": -2.3108123,
        "beneish_flag": False,
        "accruals_ratio": -0.009655123,
        "income_quality_ratio": 1.164412,
        "flags": [],
    },
    DD: {
        "revenue_delta": -7_488e6,
        "top_revenue_drivers": [
            revenue_driver("iPhone", -9_000e6, 120.19230769230769),
            revenue_driver("Mac", 1_512e6, -20.192307692307693),
        ],
        "margin_drivers": [
            margin_driver("operating_margin", -2.94123456),
            margin_driver("sga_ratio", 1.3),
            margin_driver("rnd_ratio", 0.0312),
        ],
    },
}


def judged(sub_task: str, answer: Any, expected: Json | None = None) -> float:
    truth = Truth("t", sub_task, TRUTHS[sub_task] if expected is None else expected, {}, {"kind": "hand"})
    score = subtask_named(sub_task).scorers[Profile.CERTIFIED](answer, truth, {})
    assert isinstance(score, Score)
    assert isinstance(score.value, float)
    assert 0.0 <= score.value <= 1.0  # False for NaN
    return score.value


def changed(sub_task: str, change: Callable[[Json], object]) -> float:
    answer = copy.deepcopy(TRUTHS[sub_task])
    change(answer)
    return judged(sub_task, answer)


# --- every subtask -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sub_task", TRUTHS)
def test_the_truth_earns_one_and_nothing_earns_nothing(sub_task: str) -> None:
    assert judged(sub_task, TRUTHS[sub_task]) == 1.0
    assert judged(sub_task, {}) == 0.0
    assert judged(sub_task, dict.fromkeys(TRUTHS[sub_task])) == 0.0


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


@pytest.mark.parametrize("sub_task", TRUTHS)
def test_six_decimals_are_enough(sub_task: str) -> None:
    assert judged(sub_task, rounded(TRUTHS[sub_task])) == 1.0


@pytest.mark.parametrize("sub_task", TRUTHS)
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_any_object_gets_a_score_in_range(sub_task: str, data: st.DataObject) -> None:
    judged(sub_task, data.draw(hostile_answers(TRUTHS[sub_task])))


@pytest.mark.parametrize("sub_task", TRUTHS)
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_wrong_types_earn_nothing(sub_task: str, data: st.DataObject) -> None:
    assert judged(sub_task, {key: data.draw(wrong_types(value)) for key, value in TRUTHS[sub_task].items()}) == 0.0


@pytest.mark.parametrize("sub_task", TRUTHS)
@pytest.mark.parametrize("value", [0, 1e308, -1e308, 5e-324, 2**63, -(10**300), float(10**6)])
def test_an_absurd_number_anywhere_is_judged(sub_task: str, value: float) -> None:
    def absurd(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: absurd(item) for key, item in part.items()}
        if isinstance(part, list):
            return [absurd(item) for item in part]
        return value if isinstance(part, int | float) and not isinstance(part, bool) else part

    assert judged(sub_task, absurd(TRUTHS[sub_task])) <= 0.05


# --- normalisation -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "worth"), [(1.0009, 1.0), (0.9991, 1.0), (1.0255, 0.5), (1.05, 0.0), (0.5, 0.0), (-1.0, 0.0)]
)
def test_a_metric_earns_by_its_error(factor: float, worth: float) -> None:
    def off(answer: Json) -> None:
        answer["metrics"]["net_income"] *= factor

    assert changed(NORM, off) == pytest.approx((8 + worth) / 9)


def test_a_margin_is_worth_no_more_than_its_parts() -> None:
    def off(answer: Json) -> None:
        answer["metrics"]["revenue"] *= 1.0255

    assert changed(NORM, off) == pytest.approx((7 + 2 * 0.5) / 9)


@pytest.mark.parametrize(("error", "worth"), [(0.0049, 1.0), (-0.0049, 1.0), (0.04075, 0.5), (0.0766, 0.0)])
def test_earnings_per_share_may_be_rounded_to_the_cent(error: float, worth: float) -> None:
    """5 % of 1.53 is 0.0765: full to 0.005, nothing from 0.0765 on."""

    def off(answer: Json) -> None:
        answer["metrics"]["eps_diluted"] += error

    assert changed(NORM, off) == pytest.approx((8 + worth) / 9)


def test_a_metric_left_out_is_nothing_and_one_invented_costs_as_much_as_a_wrong_one() -> None:
    assert changed(NORM, lambda answer: answer["metrics"].pop("ebitda")) == pytest.approx(8 / 9)
    assert changed(NORM, lambda answer: answer["metrics"].update(ebitda=None)) == pytest.approx(8 / 9)
    assert changed(NORM, lambda answer: answer["metrics"].update(total_liabilities=5.0)) == pytest.approx(8 / 9)
    assert changed(NORM, lambda answer: answer["metrics"].pop("total_liabilities")) == pytest.approx(8 / 9)


def test_quarter_and_half_year_are_told_apart_as_are_dollars_and_millions() -> None:
    assert changed(NORM, lambda answer: answer["metrics"].update(operating_cash_flow=62_585e6)) == pytest.approx(8 / 9)
    thousands = {key: value / 1e3 if value else value for key, value in TRUTHS[NORM]["metrics"].items()}
    assert judged(NORM, {"metrics": thousands}) == 0.0


def test_a_metric_of_exactly_nothing_has_to_be_given() -> None:
    expected = {"metrics": TRUTHS[NORM]["metrics"] | {"revenue": 0.0, "operating_margin": None}}
    assert judged(NORM, expected, expected) == 1.0
    assert judged(NORM, {"metrics": expected["metrics"] | {"revenue": None}}, expected) == pytest.approx(7 / 8)


# --- earnings quality --------------------------------------------------------------------------------------------


WRONG_TOTAL = 0.8


def test_a_constant_verdict_earns_no_signals() -> None:
    for signal in (0, 1):
        same = dict.fromkeys(SIGNALS, signal)
        assert changed(EQ, lambda answer, same=same: answer.update(piotroski_components=same)) == pytest.approx(0.36)


def test_a_wrong_signal_costs_four_times_its_share() -> None:
    def wrong(answer: Json, *names: str) -> None:
        for name in names:
            answer["piotroski_components"][name] = 1 - answer["piotroski_components"][name]

    assert changed(EQ, lambda answer: wrong(answer, "no_dilution")) == pytest.approx(0.36 + 0.64 / 3)
    two = ("no_dilution", "delta_roa_positive")
    assert changed(EQ, lambda answer: wrong(answer, *two)) == pytest.approx(0.36)
    assert changed(EQ, lambda answer: wrong(answer, *SIGNALS)) == pytest.approx(0.36)
    assert changed(EQ, lambda answer: answer["piotroski_components"].pop("no_dilution")) == pytest.approx(
        0.36 + 0.64 / 3
    )


def test_signals_count_by_class() -> None:
    """The only unfavourable signal is missed: a constant knows as much."""
    favourable = dict.fromkeys(SIGNALS, 1)
    expected = TRUTHS[EQ] | {"piotroski_components": favourable | {"no_dilution": 0}}
    given = expected | {"piotroski_components": favourable}
    assert judged(EQ, given, expected) == pytest.approx(0.36)


def test_signals_may_be_booleans_and_an_invented_one_is_a_wrong_one() -> None:
    spelt = {name: bool(value) for name, value in SIGNALS.items()}
    assert changed(EQ, lambda answer: answer.update(piotroski_components=spelt)) == 1.0
    expected = TRUTHS[EQ] | {"piotroski_components": SIGNALS | {"no_dilution": None}, "piotroski_score": None}
    invented = expected | {"piotroski_components": SIGNALS}
    assert judged(EQ, invented, expected) == pytest.approx(0.36 + 0.64 / 3)
    assert judged(EQ, expected | {"piotroski_score": 5}, expected) == pytest.approx(0.36 + 0.64 * WRONG_TOTAL)


def test_a_score_that_is_not_the_sum_costs_a_fifth_of_the_signals_and_the_flags_that_rest_on_it() -> None:
    worth = pytest.approx(0.27 + 0.64 * WRONG_TOTAL)
    assert changed(EQ, lambda answer: answer.update(piotroski_score=7)) == worth
    assert changed(EQ, lambda answer: answer.pop("piotroski_score")) == worth


def test_nothing_hangs_on_a_figure_that_it_does_not_rest_on() -> None:
    def bare(answer: Json) -> None:
        for name in ("beneish_m_score", "accruals_ratio", "income_quality_ratio"):
            answer[name] = None

    assert changed(EQ, bare) == pytest.approx(0.64)
    assert changed(EQ, lambda answer: answer.pop("accruals_ratio")) == pytest.approx(1 - 0.09 / 2 - 0.09 - 0.18 / 2)
    assert changed(EQ, lambda answer: answer.pop("beneish_m_score")) == pytest.approx(1 - 0.18 - 0.09)


def test_the_flag_of_beneish_must_be_given_with_its_score() -> None:
    for wrong in (True, 0, None):
        assert changed(EQ, lambda answer, wrong=wrong: answer.update(beneish_flag=wrong)) == pytest.approx(0.91)
    assert changed(EQ, lambda answer: answer.pop("beneish_flag")) == pytest.approx(0.91)
    off = -2.3108123 * 1.0255
    assert changed(EQ, lambda answer: answer.update(beneish_m_score=off)) == pytest.approx(1 - (0.18 + 0.09) / 2)


def test_an_invented_m_score_costs_what_a_wrong_one_costs() -> None:
    expected = TRUTHS[EQ] | {"beneish_m_score": None, "beneish_flag": None}
    assert judged(EQ, expected, expected) == 1.0
    for invented in ({"beneish_m_score": -2.5}, {"beneish_flag": False}):
        assert judged(EQ, expected | invented, expected) == pytest.approx(0.82)
    del expected["beneish_flag"]
    assert judged(EQ, expected, TRUTHS[EQ] | {"beneish_m_score": None, "beneish_flag": None}) == pytest.approx(0.82)


def test_flags_are_judged_as_sets_and_must_be_there() -> None:
    expected = TRUTHS[EQ] | {"flags": ["low_piotroski", "high_accruals"]}
    assert judged(EQ, expected | {"flags": ["high_accruals", "low_piotroski", "low_piotroski"]}, expected) == 1.0
    assert judged(EQ, expected | {"flags": ["low_piotroski"]}, expected) == pytest.approx(0.91 + 0.09 * 2 / 3)
    assert judged(EQ, expected | {"flags": []}, expected) == pytest.approx(0.91)
    for wrong in (["high_accruals"], None):
        assert changed(EQ, lambda answer, wrong=wrong: answer.update(flags=wrong)) == pytest.approx(0.91)
    assert changed(EQ, lambda answer: answer.pop("flags")) == pytest.approx(0.91)


# --- driver decomposition ----------------------------------------------------------------------------------------


def first(answer: Json) -> Json:
    return answer["top_revenue_drivers"][0]


def test_the_change_of_revenue_earns_by_its_error() -> None:
    assert changed(DD, lambda answer: answer.update(revenue_delta=-7_488e6 * 1.0255)) == pytest.approx(0.9)
    assert changed(DD, lambda answer: answer.update(revenue_delta=7_488e6)) == pytest.approx(0.8)
    assert changed(DD, lambda answer: answer.pop("revenue_delta")) == pytest.approx(0.8)


def test_a_revenue_driver_needs_name_type_direction_and_sizes() -> None:
    assert changed(DD, lambda answer: first(answer).update(driver=" IPHONE ")) == 1.0
    for wrong in ({"driver": "iPad"}, {"type": "geographic_segment"}, {"direction": "increase"}):
        assert changed(DD, lambda answer, wrong=wrong: first(answer).update(wrong)) == pytest.approx(0.8)
    assert changed(DD, lambda answer: first(answer).pop("contribution_pct")) == pytest.approx(0.9)
    assert changed(DD, lambda answer: first(answer).update(magnitude_usd=9_000e6)) == pytest.approx(0.9)
    assert changed(DD, lambda answer: first(answer).update(magnitude_usd=-9_000e6 * 1.0255)) == pytest.approx(0.95)
    assert changed(DD, lambda answer: first(answer).update(contribution_pct=120.19)) == 1.0


def test_missing_invented_and_repeated_drivers_cost() -> None:
    assert changed(DD, lambda answer: answer["top_revenue_drivers"].pop()) == pytest.approx(0.8)
    extra = revenue_driver("iPad", 1.0, 0.0)
    assert changed(DD, lambda answer: answer["top_revenue_drivers"].extend([extra] * 2)) == pytest.approx(0.8)
    hedged = revenue_driver("Mac", -1_512e6, 20.19)
    assert changed(DD, lambda answer: answer["top_revenue_drivers"].append(hedged)) == pytest.approx(0.6 + 0.4 / 3)


def test_the_order_of_drivers_does_not_matter() -> None:
    def turned(answer: Json) -> None:
        answer["top_revenue_drivers"].reverse()
        answer["margin_drivers"].reverse()

    assert changed(DD, turned) == 1.0


def test_without_segments_the_weight_goes_to_the_others_unless_they_are_invented() -> None:
    expected = TRUTHS[DD] | {"top_revenue_drivers": []}
    assert judged(DD, expected, expected) == 1.0
    assert judged(DD, expected | {"revenue_delta": None}, expected) == pytest.approx(0.4 / 0.6)
    del expected["top_revenue_drivers"]
    assert judged(DD, expected, TRUTHS[DD] | {"top_revenue_drivers": []}) == pytest.approx(0.6)
    assert judged(DD, TRUTHS[DD], expected) == pytest.approx(0.6)


@pytest.mark.parametrize(("delta", "worth"), [(-2.94, 1.0), (-3.0162, 0.5), (-3.2, 0.0), (2.94, 0.0), (None, 0.0)])
def test_a_margin_driver_earns_by_its_points(delta: float | None, worth: float) -> None:
    """5 % of 2.94 pp is 0.147 pp: full to 0.005 pp, nothing from there on."""

    def off(answer: Json) -> None:
        answer["margin_drivers"][0]["delta_pp"] = delta

    assert changed(DD, off) == pytest.approx(0.6 + 0.4 * (2 + worth) / 3, abs=0.003)


def test_no_change_is_no_answer_to_a_small_change() -> None:
    assert changed(DD, lambda answer: answer["margin_drivers"][2].update(delta_pp=0.0)) == pytest.approx(1 - 0.4 / 3)
    assert changed(DD, lambda answer: answer["margin_drivers"][2].update(delta_pp=0.03)) == 1.0
