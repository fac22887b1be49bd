"""The `certified` scorer of risk remediation: cures, their cost and what they leave."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from tests.domains.risk.judging.cases import MARKET, Json, cure, judged, mandate, portfolio, remediation, trading_terms

from finskillbench.domains.risk.remediation.scoring import BREACH, ROUNDING, definitions
from finskillbench.episode import Truth

RR = "risk_remediation"


def remedied(answer: Json, *, curable: bool = True) -> float:
    return judged(RR, answer, *remediation(curable=curable)).value


def test_any_equally_cheap_list_earns_one() -> None:
    assert remedied(cure(AAA=-0.2, CCC=0.1)) == 1.0
    assert remedied(cure(AAA=-0.2, BBB=0.05, CCC=0.05)) == 1.0
    assert remedied({**cure(AAA=-0.2, BBB=0.1), "trades": cure(AAA=-0.2, BBB=0.1)["trades"][::-1]}) == 1.0


def test_cost_beyond_the_least_costs_in_proportion_and_twice_it_everything() -> None:
    assert remedied(cure(AAA=-0.2, BBB=0.16)) == pytest.approx(0.8)
    assert remedied(cure(AAA=-0.25, BBB=0.2)) == pytest.approx(0.5)
    assert remedied(cure(AAA=-0.3, BBB=0.2, CCC=0.1)) == pytest.approx(0.0, abs=1e-12)
    assert remedied(cure(AAA=-0.46, BBB=0.19, CCC=0.19, DDD=0.08)) == 0.0


def test_a_cure_without_headroom_earns_nothing() -> None:
    def earned(answer: Json) -> float:
        truth, task_input = remediation(headroom=0.01)
        truth = replace(truth, verification={"least_cost": 0.032})
        return judged(RR, answer, truth, task_input).value

    assert earned(cure(AAA=-0.2, BBB=0.1)) == 0.0
    assert earned(cure(AAA=-0.21, BBB=0.11)) == 1.0
    assert earned(cure(AAA=-0.2096, BBB=0.11)) == pytest.approx(0.25, abs=1e-9)


@pytest.mark.parametrize(
    "trades",
    [
        {},
        {"AAA": -0.199},  # still above the limit, beyond the tolerance
        {"AAA": -0.2},  # too much cash
        {"AAA": -0.2, "BBB": 0.1, "CCC": 0.005, "DDD": -0.005},  # two trades too small
        {"AAA": -0.2, "BBB": 0.25},  # another name too large
        {"AAA": -0.2, "BBB": 0.2, "CCC": 0.2},  # cash below 0
        {"AAA": -0.2, "BBB": -0.09, "CCC": 0.2},  # BBB below the least position
        {"AAA": -0.2, "BBB": -0.11, "CCC": 0.2, "DDD": 0.05},  # short
        {"AAA": -0.48, "BBB": 0.2, "CCC": 0.2, "DDD": -0.08, "EEE": 0.16},  # beyond the turnover that is left
    ],
)
def test_what_breaks_the_mandate_earns_nothing(trades: dict[str, float]) -> None:
    assert remedied(cure(**trades)) == 0.0


def test_rounding_to_four_decimals_and_dust_are_forgiven() -> None:
    assert remedied(cure(AAA=-0.19996, BBB=0.1)) == 1.0
    # CCC sold but for a rounding: dearer, yet compliant.
    assert remedied(cure(AAA=-0.2, BBB=0.2, CCC=-0.099995)) == pytest.approx(1 / 3, abs=1e-3)


def test_a_sale_to_a_target_of_zero_is_in_full_however_its_size_is_rounded() -> None:
    answer = cure(AAA=-0.2, BBB=0.2, CCC=-0.1)
    exact = remedied(answer)
    for size in (-0.09999, -0.0999, -0.0995):
        answer["trades"][2]["trade_pct"] = size
        assert remedied(answer) == exact == pytest.approx(1 / 3)


@pytest.mark.parametrize(("left", "share"), [(5e-5, 1.0), (1e-4, 1.0), (3e-4, 0.5), (6e-4, 0.0)])
def test_what_is_left_of_a_position_is_a_breach_of_its_own_size(left: float, share: float) -> None:
    answer = cure(AAA=-0.2, BBB=0.2, CCC=-0.1 + left)
    assert remedied(answer) == pytest.approx(share / 3, abs=2e-3)


@pytest.mark.parametrize("stated", [False, None, "yes"])
def test_a_false_statement_to_compliance_leaves_a_fifth(stated: object) -> None:
    assert remedied(cure(AAA=-0.2, BBB=0.1) | {"post_trade_compliant": stated}) == pytest.approx(0.2)


@pytest.mark.parametrize("stated", [0.21, None])
def test_another_turnover_than_that_of_the_trades_costs_a_third(stated: float | None) -> None:
    assert remedied(cure(AAA=-0.2, BBB=0.1) | {"total_turnover": stated}) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "change",
    [{"action": "buy"}, {"action": None}, {"target_weight": 0.4}, {"target_weight": None}, {"current_weight": 0.4}],
)
def test_a_trade_that_contradicts_itself_costs_a_third(change: Json) -> None:
    answer = cure(AAA=-0.2, BBB=0.1)
    answer["trades"][0] |= change
    assert remedied(answer) == pytest.approx(2 / 3)


def test_a_trade_can_be_read_from_its_target_and_duplicates_add_up_but_disagree() -> None:
    answer = cure(AAA=-0.2, BBB=0.1)
    del answer["trades"][0]["trade_pct"]
    assert remedied(answer) == 1.0
    halves = cure(AAA=-0.1, BBB=0.1)
    halves["trades"].append(copy.deepcopy(halves["trades"][0]))
    assert remedied(halves | {"total_turnover": 0.2}) == pytest.approx(2 / 3)


def test_a_name_outside_the_universe_earns_nothing() -> None:
    answer = cure(AAA=-0.2, BBB=0.1)
    answer["trades"].append({"symbol": "ZZZ", "action": "buy", "target_weight": 0.0, "trade_pct": 0.0})
    assert remedied(answer) == 0.0


def test_where_no_cure_exists_the_least_shortfall_is_asked_for() -> None:
    def honest(**trades: float) -> float:
        return remedied(cure(**trades) | {"post_trade_compliant": False}, curable=False)

    shed = 0.2 / 0.3 - (0.08 / 0.3 + 0.014)
    assert honest(AAA=-0.12, BBB=0.02) == 1.0
    assert honest(AAA=-0.12, BBB=0.12) == pytest.approx(1 - 0.01 / (0.4 * shed))
    assert honest(AAA=-0.1) == pytest.approx(1 - (0.02 / 0.3 - 0.004) / (0.4 * shed))
    assert honest(AAA=-0.06, BBB=0.06) == 0.0  # half of what can be shed
    assert honest(BBB=-0.05, CCC=0.05) == 0.0  # nothing gained
    assert honest(AAA=-0.13, BBB=0.03) == 0.0  # beyond the budget
    assert remedied(cure(AAA=-0.12, BBB=0.02), curable=False) == pytest.approx(0.2)  # says it is compliant
    assert remedied(cure(AAA=-0.2, BBB=0.2), curable=False) == 0.0


def left_by(constraint: Json, book: dict[str, float]) -> float:
    """What a limit leaves of the credit of a submission that leads to a book; the book's own merit is nothing here."""
    unbroken: list[str] = []
    stated = {"portfolio": portfolio(**book), "mandate": mandate(constraint), "violations": unbroken}
    task_input = MARKET | stated | {"trading_terms": trading_terms()}
    truth = Truth("rm_rr_t", RR, {"post_trade_compliant": True}, {"least_cost": 0.2}, {"kind": "x"})
    answer = {"trades": [{"symbol": "AAA", "action": "buy", "target_weight": book["AAA"], "trade_pct": 0.0}]}
    return judged(RR, answer, truth, task_input).details["broken"].get(constraint["type"], 1.0)


@pytest.mark.parametrize(
    ("constraint", "weight", "left"),
    [
        ({"type": "cash_max", "value": 0.2}, 0.7999, 1.0),
        ({"type": "cash_max", "value": 0.2}, 0.7997, 0.5),
        ({"type": "cash_max", "value": 0.2}, 0.7994, 0.0),
        ({"type": "cash_max", "value": 0.0}, 0.9999, 1.0),
        ({"type": "hhi_max", "value": 0.01}, 0.1004, 1.0),
        ({"type": "hhi_max", "value": 0.01}, 0.1025, 0.0),
        ({"type": "position_limit_min", "value": 0.05}, 0.04991, 1.0),
        ({"type": "position_limit_min", "value": 0.05}, 0.0497, 0.5),
        ({"type": "position_limit_min", "value": 0.05}, 9e-5, 1.0),
        ({"type": "position_limit_min", "value": 0.05}, 3e-4, 0.5),
        ({"type": "position_limit_min", "value": 0.05}, 6e-4, 0.0),
        ({"type": "long_only", "value": True}, -9e-5, 1.0),
        ({"type": "long_only", "value": True}, -3e-4, 0.5),
        ({"type": "name_count", "min": 1, "max": None}, 0.00095, 1.0),
        ({"type": "name_count", "min": 1, "max": None}, 0.00085, 0.0),
        ({"type": "name_count", "min": None, "max": 0}, 0.00105, 1.0),
        ({"type": "name_count", "min": None, "max": 0}, 0.00115, 0.0),
    ],
)
def test_an_excess_of_rounding_is_free_and_a_breach_costs_everything(
    constraint: Json, weight: float, left: float
) -> None:
    assert left_by(constraint, {"AAA": weight}) == pytest.approx(left)


def test_conventions_speak_of_the_limits_of_the_case_only() -> None:
    _, task_input = remediation()
    told = definitions(task_input)
    assert f"{ROUNDING:.4f}" in told["rounding"]
    assert f"{BREACH:.4f}" in told["rounding"]
    assert "keep long_only, position_limit_min, turnover_max_monthly, minimum_trade and cash" in told["out_of_reach"]
    assert "tracking error" not in told["units"]
    task_input["mandate"]["constraints"].pop()
    told = definitions(task_input)
    assert "out_of_reach" not in told
    assert not any("turnover_max_monthly" in text for text in told.values())
