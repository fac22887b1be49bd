"""The published scorers of fundamental analysis, by hand from the specification."""

from typing import Any

import pytest
from tests.scoring.examples import EXPECTED, judged

from finskillbench.episode import Profile

STRICT = Profile.STRICT
NORM, EQ, DD = "normalization", "earnings_quality", "driver_decomposition"


# --- normalisation ---------------------------------------------------------------------------------------------


def test_normalisation_is_the_share_of_metrics_within_tolerance() -> None:
    right = EXPECTED[NORM]["metrics"]
    assert judged(NORM, {"metrics": right | {"revenue": right["revenue"] * 1.049}}).value == 1.0
    assert judged(NORM, {"metrics": right | {"revenue": right["revenue"] * 1.051}}).value == pytest.approx(2 / 3)
    assert judged(NORM, {"metrics": {"revenue": right["revenue"]}}).value == pytest.approx(1 / 3)
    off = {"metrics": right | {"revenue": right["revenue"] * 1.08}}
    assert judged(NORM, off, tolerance_pct=10).value == 1.0
    assert judged(NORM, off, metric_tolerances={"revenue": 0.1}).value == 1.0
    assert judged(NORM, right | off, metric_tolerances={"net_income": 0.1}).value == pytest.approx(2 / 3)
    for absent in (None, "0.3074", True, {}, []):
        assert judged(NORM, {"metrics": right | {"operating_margin": absent}}).value == pytest.approx(2 / 3)


def test_normalisation_at_the_tolerance_matches() -> None:
    assert judged(NORM, {"metrics": {"a": 125.0}}, {"metrics": {"a": 100.0}}, tolerance_pct=25).value == 1.0
    assert judged(NORM, {"metrics": {"a": 4e-10}}, {"metrics": {"a": 0}}).value == 1.0  # floored at 1e-8
    assert judged(NORM, {"metrics": {"a": 6e-10}}, {"metrics": {"a": 0}}).value == 0.0


def test_normalisation_steps_inside_only_where_both_have_the_wrapper() -> None:
    right = EXPECTED[NORM]["metrics"]
    assert judged(NORM, right).value == 0.0
    assert judged(NORM, right, right).value == 1.0
    assert judged(NORM, {"metrics": right}, right).value == 0.0
    assert judged(NORM, {"metrics": right, "note": "as filed"}).value == 1.0
    two = {"metrics": right, "revenue": 1}
    assert judged(NORM, {"metrics": right, "revenue": 1}, two).value == 0.5


def test_normalisation_ignores_metadata_and_counts_unknown_labels_against() -> None:
    metadata = {"source": "x", "confidence": "high", "tier": 1, "xbrl_fmp_agreement": True}
    right = EXPECTED[NORM]["metrics"]
    assert judged(NORM, {"metrics": right}, {"metrics": right | metadata}).value == 1.0
    nulled: dict[str, Any] = {"metrics": right | {"ebitda": None}}
    assert judged(NORM, nulled, nulled).value == pytest.approx(3 / 4)


# --- earnings quality ------------------------------------------------------------------------------------------


def test_earnings_quality_weights_the_active_terms() -> None:
    right = EXPECTED[EQ]
    three = right["piotroski_components"] | {"roa_positive": 0, "cfo_positive": 0}  # 3 of 5
    assert judged(EQ, right | {"piotroski_components": three}).value == pytest.approx(0.4 * 0.6 + 0.6)
    assert judged(EQ, right | {"beneish_flag": True}).value == pytest.approx(0.7)
    assert judged(EQ, right | {"flags": ["high_accruals"]}).value == pytest.approx(0.7)
    assert judged(EQ, right | {"flags": None}).value == 1.0


def test_earnings_quality_of_nothing_is_paid_as_published() -> None:
    assert judged(EQ, {}).value == 0.4286  # 0.3 / 0.7, rounded to 4 decimals
    assert judged(EQ, {}, profile=STRICT).value == 0.4286  # ratios that the answer lacks drop out as well
    flagged = EXPECTED[EQ] | {"flags": ["low_piotroski"]}
    assert judged(EQ, {}, flagged).value == 0.0


def test_earnings_quality_drops_a_flag_that_either_side_lacks() -> None:
    right = EXPECTED[EQ]
    without = {key: value for key, value in right.items() if key != "beneish_flag"}
    three = right["piotroski_components"] | {"roa_positive": 0, "cfo_positive": 0}
    by_hand = round((0.4 * 0.6 + 0.3) / 0.7, 4)
    assert judged(EQ, without | {"piotroski_components": three}).value == by_hand == 0.7714
    assert judged(EQ, right | {"piotroski_components": three, "beneish_flag": 0}).value == by_hand
    assert judged(EQ, right | {"piotroski_components": three}, without).value == by_hand


def test_earnings_quality_flags_are_sets() -> None:
    expected = EXPECTED[EQ] | {"flags": ["low_piotroski", "high_accruals"]}
    answer = expected | {"flags": ["high_accruals", "high_accruals", 1]}  # precision 1, recall 1/2
    assert judged(EQ, answer, expected).value == pytest.approx(0.7 + 0.3 * 2 / 3, abs=5e-5)


def test_earnings_quality_takes_booleans_as_binary_signals() -> None:
    signals = {key: bool(value) for key, value in EXPECTED[EQ]["piotroski_components"].items()}
    assert judged(EQ, EXPECTED[EQ] | {"piotroski_components": signals}).value == 1.0
    assert judged(EQ, EXPECTED[EQ], EXPECTED[EQ] | {"piotroski_components": signals}).value == 1.0
    texts = {key: str(value) for key, value in EXPECTED[EQ]["piotroski_components"].items()}
    assert judged(EQ, EXPECTED[EQ] | {"piotroski_components": texts}).value == 0.6


def test_earnings_quality_matches_an_unknown_signal_by_null_or_absence() -> None:
    signals = EXPECTED[EQ]["piotroski_components"]
    expected = EXPECTED[EQ] | {"piotroski_components": signals | {"no_dilution": None}, "beneish_m_score": None}
    for right in (expected, expected | {"piotroski_components": signals}):
        assert judged(EQ, right, expected).value == judged(EQ, right, expected, STRICT).value == 1.0
    invented = expected | {"piotroski_components": signals | {"no_dilution": 1}}  # 5 of 6
    assert judged(EQ, invented, expected).value == pytest.approx(0.6 + 0.4 * 5 / 6, abs=5e-5)


def test_earnings_quality_component_weight_may_be_set() -> None:
    answer = EXPECTED[EQ] | {"piotroski_components": {}}
    assert judged(EQ, answer, component_weight=0.2).value == 0.75
    assert judged(EQ, answer, component_weight=0.2, piotroski_weight=0.6).value == 0.5
    assert judged(EQ, answer, flag_f1_weight=0.6, beneish_flag_weight=0.0).value == 0.6


def test_earnings_quality_ratios_count_on_request_and_under_strict() -> None:
    # M-score 2.5 % off: 1/2; accruals 25 % off: 0; income quality right: 1; mean 1/2
    answer = EXPECTED[EQ] | {"beneish_m_score": -2.05, "accruals_ratio": -0.0125}
    assert judged(EQ, answer).value == 1.0
    assert judged(EQ, answer, numeric_ratio_weight=1.0).value == 0.75
    assert judged(EQ, answer, profile=STRICT).value == round((1.0 + 0.15) / 1.3, 4) == 0.8846
    assert judged(EQ, answer, profile=STRICT, numeric_ratio_weight=1.0).value == 0.8846
    near = EXPECTED[EQ] | {"accruals_ratio": -0.0075 - 1e-12, "income_quality_ratio": 1.23}  # 0 and 1/2
    assert judged(EQ, near, numeric_ratio_weight=1.0).value == 0.75
    lacking = {key: value for key, value in EXPECTED[EQ].items() if key != "income_quality_ratio"}
    assert judged(EQ, lacking, numeric_ratio_weight=0.5).value == 1.0  # only ratios that both sides give
    wide = {"beneish_m_score": 0.1, "accruals_ratio": 0.5}  # 3/4, 1/2 and 1
    assert judged(EQ, answer, numeric_ratio_weight=1.0, numeric_tolerances=wide).value == 0.875


# --- driver decomposition --------------------------------------------------------------------------------------

EUROPE, JAPAN = EXPECTED[DD]["top_revenue_drivers"]
MARGIN, SGA = EXPECTED[DD]["margin_drivers"]


def test_drivers_by_hand_term_by_term() -> None:
    answer = {
        "revenue_delta": -900.0,  # (f) 0.9
        "top_revenue_drivers": [
            # (b) 1/2; (c) Europe 7.5 % and 0 % off: 0.5 and 1; Korea is not matched
            EUROPE | {"driver": " EUROPE ", "magnitude_usd": -645.0},
            JAPAN | {"direction": "increase", "magnitude_usd": None, "contribution_pct": 50.0},  # (c) 0 and 0
            {"driver": "Korea"},  # (a) recall 1, precision 2/3
        ],
        "margin_drivers": [
            MARGIN | {"driver": "Operating_Margin", "delta_pp": -2.03}  # (d) recall 1/2, direction 1; (e) 0.9
        ],
    }
    terms = {
        "revenue_drivers": 0.5 + 0.5 * 2 / 3,
        "revenue_direction": 0.5,
        "revenue_magnitude": 1.5 / 4,
        "margin_drivers": 0.75,
        "margin_delta": 0.9,
        "revenue_delta": 0.9,
    }
    score = judged(DD, answer)
    assert score.details == pytest.approx(terms)
    assert score.value == pytest.approx(sum(terms.values()) / 6)


def test_drivers_of_nothing_earn_nothing() -> None:
    assert judged(DD, {}).value == 0.0
    assert set(judged(DD, {}).details) == {"revenue_drivers", "margin_drivers"}


def test_drivers_drop_terms_without_a_match() -> None:
    answer = {"top_revenue_drivers": [{"driver": "Korea"}], "margin_drivers": [], "revenue_delta": -1000}
    assert judged(DD, answer).details == {"revenue_drivers": 0.0, "margin_drivers": 0.0, "revenue_delta": 1.0}
    assert judged(DD, answer).value == pytest.approx(1 / 3)


def test_drivers_expecting_none_pay_none() -> None:
    bare = {"revenue_delta": -1000.0}
    assert judged(DD, EXPECTED[DD], bare).details == {"revenue_drivers": 0.0, "revenue_delta": 1.0}
    assert judged(DD, bare, bare | {"revenue_delta": 0}).details == {"revenue_drivers": 0.0}


def test_drivers_beyond_the_fifth_do_not_count() -> None:
    others = [{"driver": f"other {i}"} for i in range(5)]
    answer = {"top_revenue_drivers": [*others, EUROPE, JAPAN]}
    assert judged(DD, answer).details["revenue_drivers"] == 0.0
    expected = EXPECTED[DD] | {"top_revenue_drivers": [*others, EUROPE]}
    assert judged(DD, {"top_revenue_drivers": [EUROPE]}, expected).details["revenue_drivers"] == 0.0


def test_drivers_names_are_sets_but_each_matched_item_is_judged() -> None:
    wrong = EUROPE | {"direction": "increase"}
    details = judged(DD, {"top_revenue_drivers": [EUROPE, wrong, JAPAN]}).details
    assert details["revenue_drivers"] == 1.0
    assert details["revenue_direction"] == pytest.approx(2 / 3)


def test_drivers_without_a_name_share_the_empty_name() -> None:
    nameless = [{"direction": "decrease"}, {"driver": 1}, "Europe"]
    details = judged(DD, {"top_revenue_drivers": [*nameless, EUROPE]}).details
    assert details["revenue_drivers"] == pytest.approx(0.5 * 1 / 2 + 0.5 * 1 / 2)
    assert details["revenue_direction"] == 1.0


def test_drivers_sizes_may_be_judged_otherwise_or_left_out() -> None:
    off = {"top_revenue_drivers": [EUROPE | {"magnitude_usd": 1.3 * EUROPE["magnitude_usd"]}]}  # 30 % and 0 % off
    assert judged(DD, off).details["revenue_magnitude"] == 0.5
    assert judged(DD, off, revenue_magnitude_rel_tol=0.6).details["revenue_magnitude"] == pytest.approx(0.75)
    assert "revenue_magnitude" not in judged(DD, off, include_driver_numeric_terms=False).details
    wide = {"margin_drivers": [MARGIN | {"delta_pp": 1.3 * MARGIN["delta_pp"]}]}
    assert judged(DD, wide).details["margin_delta"] == 0.0
    assert judged(DD, wide, margin_delta_pp_tol=0.6).details["margin_delta"] == pytest.approx(0.5)
    assert "margin_delta" not in judged(DD, wide, include_driver_numeric_terms=False).details


def test_drivers_a_huge_revenue_delta_scores_zero() -> None:
    assert judged(DD, {"revenue_delta": 1e308}, {"revenue_delta": -1e308}).value == 0.0
