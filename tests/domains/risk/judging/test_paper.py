"""The published risk scorers and their stricter variants, by hand from the specification."""

import math

import pytest
from tests.scoring.examples import EXPECTED, judged

from finskillbench.domains.risk.constraint_monitoring import normal_status, normal_type
from finskillbench.episode import Profile

STRICT = Profile.STRICT
CM, RI, ST, RR = "constraint_monitoring", "risk_identification", "stress_testing", "risk_remediation"


# --- constraint monitoring -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        *((alias, "position_limit") for alias in ("position_limit_max", "max_position", "Max Position-Weight")),
        *((alias, "position_limit") for alias in ("max_single_position_weight", "MAX_WEIGHT", "position_limit")),
        *((alias, "sector_limit") for alias in ("sector_limit_max", "max_sector", "max_sector_concentration")),
        ("Sector Concentration", "sector_limit"),
        ("beta", "beta_range"),
        ("portfolio-beta", "beta_range"),
        ("no_short", "long_only"),
        *((alias, "turnover") for alias in ("turnover_max_monthly", "turnover_max", "max_turnover")),
        ("position_limit_min", "position_limit_min"),
        ("Tracking Error-Max", "tracking_error_max"),
    ],
)
def test_types_are_normalised(given: str, normal: str) -> None:
    assert normal_type(given) == normal


def test_statuses_are_normalised() -> None:
    assert {normal_status(s) for s in ("pass", "True", "COMPLIANT", "ok", "Satisfied", "PASS")} == {"PASS"}
    fails = ("fail", "FALSE", "violation", "violated", "breach", "Breached", "non-compliant")
    assert {normal_status(s) for s in fails} == {"FAIL"}
    assert normal_status("unknown") == "UNKNOWN"


def _rows(*pairs: tuple[object, object]) -> list[dict[str, object]]:
    return [{"type": kind, "status": status} for kind, status in pairs]


def test_monitoring_pays_compliance_and_the_share_of_types() -> None:
    rows = _rows(("max_weight", "violated"), ("sector_limit", "pass"), ("beta", "ok"))  # 2 of 4, one missing
    assert judged(CM, {"overall_compliant": False, "constraints": rows}).value == pytest.approx(0.4 + 0.6 * 0.5)
    assert judged(CM, {"overall_compliant": True, "constraints": rows}).value == pytest.approx(0.3)
    assert judged(CM, {"constraints": rows}).value == pytest.approx(0.3)
    assert judged(CM, {"overall_compliant": 0, "constraints": rows}).value == pytest.approx(0.3)


def test_monitoring_extra_types_cost_nothing() -> None:
    rows = [*EXPECTED[CM]["constraints"], *_rows(("cash_max", "FAIL"))]
    assert judged(CM, {"overall_compliant": False, "constraints": rows}).value == 1.0


def test_monitoring_takes_the_last_of_duplicates_and_strict_refuses_contradictions() -> None:
    rows = [*_rows(("max_position", "PASS")), *EXPECTED[CM]["constraints"]]
    answer = {"overall_compliant": False, "constraints": rows}
    assert judged(CM, answer).value == 1.0
    assert judged(CM, answer, profile=STRICT).value == pytest.approx(0.4 + 0.6 * 0.75)
    agreeing = {"overall_compliant": False, "constraints": [*_rows(("beta", "true")), *EXPECTED[CM]["constraints"]]}
    assert judged(CM, agreeing, profile=STRICT).value == 1.0
    swapped = {"overall_compliant": False, "constraints": [*rows[1:], rows[0]]}
    assert judged(CM, swapped).value == pytest.approx(0.4 + 0.6 * 0.75)
    assert judged(CM, swapped, profile=STRICT).value == pytest.approx(0.4 + 0.6 * 0.75)


@pytest.mark.parametrize("constraints", [None, [], {}, "FAIL", [1], [{"status": "FAIL"}]])
def test_monitoring_strict_pays_no_compliance_without_a_list(constraints: object) -> None:
    answer = {"overall_compliant": False, "constraints": constraints}
    assert judged(CM, answer).value == pytest.approx(0.4)
    assert judged(CM, answer, profile=STRICT).value == 0.0


def test_monitoring_everything_fails_is_worth_as_much_as_published() -> None:
    rows = _rows(*((row["type"], "FAIL") for row in EXPECTED[CM]["constraints"]))
    assert judged(CM, {"overall_compliant": False, "constraints": rows}).value == pytest.approx(0.7)


def test_monitoring_status_of_a_wrong_type_is_absent() -> None:
    rows = _rows(("max_position", False), ("sector_limit", None), ("beta", 1), ("long_only", True))
    assert judged(CM, {"constraints": rows}).value == 0.0


# --- risk identification ---------------------------------------------------------------------------------------


def _list(*types: object) -> dict[str, object]:
    return {"top_risk_exposures": [{"rank": i + 1, "type": kind} for i, kind in enumerate(types)]}


LOG3 = math.log2(3)


def test_ranked_list_by_hand() -> None:
    # expected factor_tilt 1.0, factor_tilt 0.8, sector 0.6; predicted sector, single_name
    dcg, ideal = 0.6, 1.0 + 0.6 / LOG3
    score = judged(RI, _list("sector_concentration", "single_name"))
    assert score.value == pytest.approx(0.4 / 3 + 0.3 / 2 + 0.3 * dcg / ideal)
    strict = judged(RI, _list("sector_concentration", "single_name"), profile=STRICT)
    strict_ideal = 1.0 + 0.8 / LOG3 + 0.6 / 2
    assert strict.value == pytest.approx(0.4 / 3 + 0.3 / 2 + 0.3 * dcg / strict_ideal)
    assert strict.details["dcg"] == pytest.approx(dcg)
    assert strict.details["idcg"] == pytest.approx(strict_ideal)


def test_ranked_list_with_repeated_types_exceeds_one_as_published_but_never_under_strict() -> None:
    right = EXPECTED[RI]
    ndcg = (1.0 + 1.0 / LOG3 + 0.6 / 2) / (1.0 + 0.6 / LOG3)
    assert judged(RI, right).value == pytest.approx(0.7 + 0.3 * ndcg)
    assert judged(RI, right).value > 1.04
    assert judged(RI, right, profile=STRICT).value == 1.0
    repeats = _list(*["factor_tilt"] * 5)
    ndcg = sum(1 / math.log2(i + 2) for i in range(5)) / (1.0 + 0.6 / LOG3)
    assert judged(RI, repeats).value == pytest.approx(0.4 * 2 / 3 + 0.3 * 2 / 5 + 0.3 * ndcg)
    strict = (1.0 + 0.8 / LOG3) / (1.0 + 0.8 / LOG3 + 0.3)
    assert judged(RI, repeats, profile=STRICT).value == pytest.approx(0.4 * 2 / 3 + 0.3 * 2 / 5 + 0.3 * strict)


def test_ranked_list_looks_at_the_first_k_of_each_side() -> None:
    padded = _list("x", "x", "x", "x", "x", "factor_tilt", "factor_tilt", "sector_concentration")
    assert judged(RI, padded).value == 0.0
    # k = 1: expected factor_tilt alone
    assert judged(RI, _list("factor_tilt", "x", "x"), top_k=1).value == pytest.approx(1.0)
    assert judged(RI, padded, top_k=8).value > 0.5


def test_ranked_list_takes_the_alias_and_needs_items() -> None:
    alias = {"risks": EXPECTED[RI]["top_risk_exposures"]}
    assert judged(RI, alias).value == judged(RI, EXPECTED[RI]).value
    assert judged(RI, alias | {"top_risk_exposures": []}).value == judged(RI, EXPECTED[RI]).value
    for empty in ({}, {"top_risk_exposures": []}, {"top_risk_exposures": ["factor_tilt"]}, {"risks": {}}):
        assert judged(RI, empty).value == judged(RI, empty, profile=STRICT).value == 0.0


def test_ranked_list_types_are_compared_as_written_and_a_missing_one_keeps_its_place() -> None:
    assert judged(RI, _list("Factor_Tilt")).value == 0.0
    with_gap = judged(RI, _list(None, "factor_tilt"))
    assert with_gap.value == pytest.approx(0.4 / 3 + 0.3 / 2 + 0.3 * (1.0 / LOG3) / (1.0 + 0.6 / LOG3))


# --- stress testing --------------------------------------------------------------------------------------------


def _pnl(value: object) -> dict[str, object]:
    return EXPECTED[ST] | {"estimated_pnl_pct": value}


@pytest.mark.parametrize(
    ("pnl", "s"),
    [(-0.1, 1.0), (-0.101, 1.0), (-0.116, 0.5), (-0.131, 0.0), (-0.2, 0.0), (0.1, 0.0), ("-0.1", 0.0), (None, 0.0)],
)
def test_stress_pnl_is_full_within_a_tenth_of_tolerance_and_gone_at_three(pnl: object, s: float) -> None:
    given = isinstance(pnl, float)
    assert judged(ST, _pnl(pnl)).value == pytest.approx(0.7 * s + 0.3 if given else 0.0)
    alone = {"estimated_pnl_pct": -0.1}
    assert judged(ST, {"estimated_pnl_pct": pnl}, alone).value == pytest.approx(s)


def test_stress_tolerance_is_in_percent() -> None:
    assert judged(ST, {"estimated_pnl_pct": -0.132}, {"estimated_pnl_pct": -0.1}, tolerance_pct=2).value == (
        pytest.approx(0.5)
    )


def test_stress_weights_and_attribution_tolerance_may_be_set() -> None:
    answer = _sectors(Energy=-0.066, Utilities=-0.04)  # 10 % off, exact
    assert judged(ST, answer).value == pytest.approx(0.7 + 0.3 * 0.5)
    assert judged(ST, answer, attribution_tolerance_pct=20).value == pytest.approx(0.7 + 0.3 * 0.75)
    assert judged(ST, answer, pnl_score_weight=0.4, attribution_score_weight=0.6).value == pytest.approx(0.7)


def _sectors(**contributions: object) -> dict[str, object]:
    rows = [{"sector": name, "contribution_pct": value} for name, value in contributions.items()]
    return {"estimated_pnl_pct": -0.1, "attribution": {"by_sector": rows}}


def test_stress_sectors_by_relative_error_under_paper() -> None:
    # Energy 2.5 % off earns a half, Utilities is absent, Technology is extra: mean 0.25
    answer = _sectors(Energy=-0.0615, Technology=5.0)
    assert judged(ST, answer).value == pytest.approx(0.7 + 0.3 * 0.25)
    assert judged(ST, answer, metrics=[]).value == pytest.approx(0.7 + 0.3 * 0.25)
    assert judged(ST, {"estimated_pnl_pct": -0.1}).value == pytest.approx(0.7)


def test_stress_sectors_by_mean_absolute_error_under_strict() -> None:
    # errors 0.002, 0, 0.004 over the union of three sectors: MAE 0.002, a fifth of τ
    answer = _sectors(Energy=-0.058, Utilities=-0.04, Technology=0.004)
    assert judged(ST, answer, profile=STRICT).value == pytest.approx(0.7 + 0.3 * 0.8)
    assert judged(ST, answer, profile=STRICT, metrics=["pnl_absolute_error"]).value == pytest.approx(1.0)
    assert judged(ST, _sectors(Energy=-0.06), profile=STRICT).value == pytest.approx(0.7)  # MAE 0.02 = 2τ


# --- remediation -----------------------------------------------------------------------------------------------


def _trades(*pairs: tuple[object, object]) -> list[dict[str, object]]:
    return [{"symbol": symbol, "action": action} for symbol, action in pairs]


def test_remediation_adds_compliance_turnover_and_trades() -> None:
    right = EXPECTED[RR]
    assert judged(RR, right | {"post_trade_compliant": False}).value == pytest.approx(0.7)
    assert judged(RR, right | {"post_trade_compliant": 1}).value == pytest.approx(0.7)
    assert judged(RR, right | {"total_turnover": 0.15}).value == pytest.approx(1.0)
    assert judged(RR, right | {"total_turnover": 0.1501}).value == pytest.approx(0.7)
    assert judged(RR, right | {"total_turnover": 0.15}, tolerance={"turnover_excess_pct": 40}).value == (
        pytest.approx(0.7)
    )
    # one of two right and one extra: F1 = 2*1/(2+2)
    half = right | {"trades": _trades(("aaa", "SELL"), ("BBB", "sell"))}
    assert judged(RR, half).value == pytest.approx(0.6 + 0.4 * 0.5)
    assert judged(RR, {}).value == 0.0


def test_remediation_absent_turnover_is_zero_turnover() -> None:
    small = EXPECTED[RR] | {"total_turnover": 0.004}
    answer = {"trades": EXPECTED[RR]["trades"], "post_trade_compliant": True}
    assert judged(RR, answer, small).value == pytest.approx(1.0)  # 0.004 <= 0.5 * 0.01
    assert judged(RR, answer).value == pytest.approx(0.7)


def test_remediation_repeats_cost_under_paper_and_not_under_strict() -> None:
    answer = EXPECTED[RR] | {"trades": _trades(("AAA", "sell"), ("AAA", "sell"), ("BBB", "buy"))}
    assert judged(RR, answer).value == pytest.approx(0.6 + 0.4 * 4 / 5)
    assert judged(RR, answer, profile=STRICT).value == pytest.approx(1.0)


def test_remediation_trades_without_symbol_or_action_count_and_match_nothing() -> None:
    answer = EXPECTED[RR] | {"trades": [*EXPECTED[RR]["trades"], {"symbol": "CCC"}, {"action": 1}, "CCC buy"]}
    assert judged(RR, answer).value == pytest.approx(0.6 + 0.4 * 4 / 6)
