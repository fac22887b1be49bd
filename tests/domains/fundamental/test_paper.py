"""The published scorers of fundamental analysis, by hand from the specification."""

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


# --- earnings quality ------------------------------------------------------------------------------------------


def test_earnings_quality_weights_the_active_terms() -> None:
    right = EXPECTED[EQ]
    three = right["piotroski_components"] | {"roa_positive": 0, "cfo_positive": 0}  # 3 of 5
    assert judged(EQ, right | {"piotroski_components": three}).value == pytest.approx(0.4 * 0.6 + 0.6)
    assert judged(EQ, right | {"beneish_flag": True}).value == pytest.approx(0.7)
    assert judged(EQ, right | {"flags": ["high_accruals"]}).value == pytest.approx(0.7)
    assert judged(EQ, right | {"flags": None}).value == 1.0


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
            EUROPE | {"driver": " EUROPE ", "direction": "Decrease ", "magnitude_usd": -645.0},
            JAPAN | {"direction": "increase", "magnitude_usd": None, "contribution_pct": 50.0},  # (c) 0 and 0
            {"driver": "Korea"},  # (a) recall 1, precision 2/3
        ],
        "margin_drivers": [
            MARGIN
            | {
                "driver": "Operating_Margin",
                "direction": "DECREASE",
                "delta_pp": -2.03,
            }  # (d) recall 1/2, direction 1; (e) 0.9
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


def test_drivers_drop_terms_without_a_match() -> None:
    answer = {"top_revenue_drivers": [{"driver": "Korea"}], "margin_drivers": [], "revenue_delta": -1000}
    assert judged(DD, answer).details == {"revenue_drivers": 0.0, "margin_drivers": 0.0, "revenue_delta": 1.0}
    assert judged(DD, answer).value == pytest.approx(1 / 3)
