"""The published risk scorers and their stricter variants, by hand from the specification."""

import math

import pytest
from tests.scoring.examples import EXPECTED, judged

from finskillbench.episode import Profile

STRICT = Profile.STRICT
CM, RI, ST, RR = "constraint_monitoring", "risk_identification", "stress_testing", "risk_remediation"


# --- constraint monitoring -------------------------------------------------------------------------------------


def _rows(*pairs: tuple[object, object]) -> list[dict[str, object]]:
    return [{"type": kind, "status": status} for kind, status in pairs]


def test_monitoring_pays_compliance_and_the_share_of_types() -> None:
    rows = _rows(("max_weight", "violated"), ("sector_limit", "pass"), ("beta", "ok"))  # 2 of 4, one missing
    assert judged(CM, {"overall_compliant": False, "constraints": rows}).value == pytest.approx(0.4 + 0.6 * 0.5)
    assert judged(CM, {"overall_compliant": True, "constraints": rows}).value == pytest.approx(0.3)
    assert judged(CM, {"constraints": rows}).value == pytest.approx(0.3)
    assert judged(CM, {"overall_compliant": 0, "constraints": rows}).value == pytest.approx(0.3)


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
