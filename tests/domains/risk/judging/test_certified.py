"""The `certified` scorers of the risk subtasks, on a market small enough to be worked by hand."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.scoring.strategies import hostile_answers, wrong_types

from finskillbench.domains import by_name
from finskillbench.domains.risk.remediation.scoring import BREACH, REMEDIATION, ROUNDING
from finskillbench.engines.risk.exposures import ranked
from finskillbench.engines.risk.mandate import mandate_from
from finskillbench.engines.risk.monitor import constraint_report
from finskillbench.engines.risk.report import exposure_list
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.episode import Profile, Score, Truth

Json = dict[str, Any]
FACTORS = ("mkt_rf", "smb", "hml", "rmw", "cma", "mom")
TICKERS = ("AAA", "BBB", "CCC", "DDD", "EEE", "FFF")
SECTORS = dict(zip(TICKERS, ["Technology", "Technology", "Energy", "Energy", "Utilities", "Healthcare"], strict=True))
BETAS = {
    ticker: dict(zip(FACTORS, (0.9 + 0.1 * i, 0.1 * i, 0.4 - 0.1 * i, 0.05, -0.02 * i, 0.2), strict=True))
    for i, ticker in enumerate(TICKERS)
}
MARKET: Json = {
    "sector_mapping": SECTORS,
    "factor_exposures": BETAS,
    "benchmark_weights": dict.fromkeys(TICKERS, 1 / 6),
    "covariance_matrix": {"tickers": list(TICKERS), "matrix": (0.04 * np.eye(6) + 0.01).tolist()},
}
WORDS = {
    "constraint_monitoring": ("overall_compliant", "violations_count", "constraints"),
    "risk_identification": ("top_risk_exposures",),
    "stress_testing": ("estimated_pnl_pct", "attribution"),
    "risk_remediation": ("trades", "total_turnover", "post_trade_compliant"),
}


def portfolio(**weights: float) -> Json:
    return {
        "portfolio_id": "P001",
        "holdings": [{"symbol": symbol, "weight": weight} for symbol, weight in weights.items()],
        "cash_weight": 1 - math.fsum(weights.values()),
        "total_nav": 1e9,
        "trades_this_month": {"AAA": 0.03, "BBB": -0.01},
    }


def mandate(*constraints: Json) -> Json:
    return {"mandate_id": "m", "name": "M", "constraints": list(constraints)}


def judged(sub_task: str, answer: Any, truth: Truth, task_input: Json) -> Score:
    score = by_name(sub_task).scorers[Profile.CERTIFIED](answer, truth, task_input)
    assert isinstance(score.value, float)
    assert 0.0 <= score.value <= 1.0  # False for NaN
    return score


Case = tuple[Truth, Json]


def monitoring() -> Case:
    task_input = MARKET | {
        "portfolio": portfolio(AAA=0.5, BBB=0.1, CCC=0.1, DDD=0.1, EEE=0.1, FFF=0.05),
        "mandate": mandate(
            {"type": "long_only", "value": True},
            {"type": "position_limit_max", "value": 0.3},
            {"type": "sector_limit_max", "value": 0.55},
            {"type": "tracking_error_max", "value": 0.2},
            {"type": "turnover_max_monthly", "value": 0.2},
            {"type": "cash_max", "value": 0.1},
            {"type": "name_count", "min": 4, "max": None},
        ),
    }
    market = market_from(task_input)
    report = constraint_report(portfolio_from(task_input, market), mandate_from(task_input["mandate"]), market)
    return Truth("rm_cm_t", "constraint_monitoring", report, {"method": "exact_match"}, {"kind": "hand"}), task_input


def identification(*, fifth: bool = True, **weights: float) -> Case:
    task_input = MARKET | {
        "portfolio": portfolio(**(weights or {"AAA": 0.45, "BBB": 0.15, "CCC": 0.2, "EEE": 0.15})),
        "average_daily_volume_usd": dict.fromkeys(TICKERS, 2e8 if fifth else 1e12),
        "factor_volatility": dict.fromkeys(FACTORS, 0.1),
    }
    market = market_from(task_input)
    expected = {"top_risk_exposures": exposure_list(ranked(portfolio_from(task_input, market), market))}
    return Truth("rm_ri_t", "risk_identification", expected, {"top_k": 5}, {"kind": "hand"}), task_input


def stress() -> Case:
    by_sector = {"Technology": -0.05, "Energy": 0.01, "Utilities": 0.0, "Healthcare": -0.0601}
    by_factor = {"mkt_rf": -0.08, "smb": -0.01, "hml": 0.004, "rmw": 0.0, "cma": -0.0001, "mom": 0.0}
    pnl = math.fsum(by_sector.values())
    by_factor["sector_sensitivity"] = pnl - math.fsum(by_factor.values())
    expected = stress_answer(pnl, by_sector, by_factor)
    return Truth("rm_st_t", "stress_testing", expected, {"method": "absolute_error"}, {"kind": "hand"}), {}


def stress_answer(pnl: float | None, by_sector: dict[str, float], by_factor: dict[str, float]) -> Json:
    return {
        "estimated_pnl_pct": pnl,
        "attribution": {
            "by_sector": [{"sector": name, "contribution_pct": x} for name, x in by_sector.items()],
            "by_factor": [{"factor": name, "contribution_pct": x} for name, x in by_factor.items()],
        },
    }


BOOK = {"AAA": 0.5, "BBB": 0.1, "CCC": 0.1, "DDD": 0.1, "EEE": 0.1, "FFF": 0.1}


def remediation(*, curable: bool = True) -> Case:
    """AAA has to fall from 50 % to 30 %, at most 10 % in cash: turnover 0.2. With 0.12 left V falls to 4/15."""
    limits = [
        {"type": "long_only", "value": True},
        {"type": "position_limit_max", "value": 0.3},
        {"type": "position_limit_min", "value": 0.02},
        {"type": "cash_max", "value": 0.1},
        {"type": "turnover_max_monthly", "value": 0.5 if curable else 0.15},
    ]
    broken: list[str] = []
    task_input = MARKET | {"portfolio": portfolio(**BOOK), "mandate": mandate(*limits), "violations": broken}
    if curable:
        known = {"least_turnover": 0.2}
        expected = cure(AAA=-0.2, BBB=0.2)
    else:
        known = {"least_excess": 0.08 / 0.3, "excess_before": 0.2 / 0.3}
        expected = cure(AAA=-0.12, BBB=0.06, CCC=0.06) | {"post_trade_compliant": False}
    return Truth("rm_rr_t", "risk_remediation", expected, known, {"kind": "hand"}), task_input


def cure(**trades: float) -> Json:
    net = math.fsum(trades.values())
    return {
        "trades": [
            {
                "symbol": symbol,
                "action": "buy" if trade > 0 else "sell",
                "current_weight": BOOK[symbol],
                "target_weight": BOOK[symbol] + trade,
                "trade_pct": trade,
            }
            for symbol, trade in trades.items()
        ],
        "total_turnover": (math.fsum(map(abs, trades.values())) + abs(net)) / 2,
        "post_trade_compliant": True,
    }


CASES: dict[str, Callable[[], Case]] = {
    "constraint_monitoring": monitoring,
    "risk_identification": identification,
    "stress_testing": stress,
    "risk_remediation": remediation,
}


# --- every subtask -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sub_task", CASES)
def test_the_truth_earns_one_and_nothing_earns_nothing(sub_task: str) -> None:
    truth, task_input = CASES[sub_task]()
    assert judged(sub_task, truth.expected_output, truth, task_input).value == 1.0
    assert judged(sub_task, {}, truth, task_input).value == 0.0
    nulls = dict.fromkeys(WORDS[sub_task])
    assert judged(sub_task, nulls, truth, task_input).value == 0.0


def rounded(value: Any) -> Any:
    if hasattr(value, "items"):
        return {key: rounded(item) for key, item in value.items()}
    if hasattr(value, "append"):
        return [rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


@pytest.mark.parametrize("sub_task", CASES)
def test_six_decimals_are_enough(sub_task: str) -> None:
    truth, task_input = CASES[sub_task]()
    assert judged(sub_task, rounded(truth.expected_output), truth, task_input).value == 1.0


@pytest.mark.parametrize("sub_task", CASES)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_any_object_gets_a_score_in_range(sub_task: str, data: st.DataObject) -> None:
    truth, task_input = CASES[sub_task]()
    judged(sub_task, data.draw(hostile_answers(dict(truth.expected_output))), truth, task_input)


@pytest.mark.parametrize("sub_task", CASES)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_wrong_types_earn_nothing(sub_task: str, data: st.DataObject) -> None:
    truth, task_input = CASES[sub_task]()
    answer = {key: data.draw(wrong_types(value)) for key, value in truth.expected_output.items()}
    assert judged(sub_task, answer, truth, task_input).value == 0.0


@pytest.mark.parametrize("sub_task", CASES)
@pytest.mark.parametrize("value", [1e308, -1e308, 5e-324, 2**63, -(10**300)])
def test_an_absurd_number_anywhere_is_judged(sub_task: str, value: float) -> None:
    truth, task_input = CASES[sub_task]()

    def absurd(part: Any) -> Any:
        if hasattr(part, "items"):
            return {key: absurd(item) for key, item in part.items()}
        if hasattr(part, "append"):
            return [absurd(item) for item in part]
        return value if isinstance(part, int | float) and not isinstance(part, bool) else part

    assert judged(sub_task, absurd(truth.expected_output), truth, task_input).value == 0.0


# --- stress testing ----------------------------------------------------------------------------------------------

ST = "stress_testing"


def stressed(change: Callable[[float, dict[str, float], dict[str, float]], Json]) -> float:
    truth, task_input = stress()
    output = truth.expected_output
    sectors = {row["sector"]: row["contribution_pct"] for row in output["attribution"]["by_sector"]}
    factors = {row["factor"]: row["contribution_pct"] for row in output["attribution"]["by_factor"]}
    return judged(ST, change(output["estimated_pnl_pct"], sectors, factors), truth, task_input).value


def test_zeros_and_market_beta_alone_earn_little() -> None:
    def zeros(pnl: float, sectors: dict[str, float], factors: dict[str, float]) -> Json:
        return stress_answer(0.0, dict.fromkeys(sectors, 0.0), dict.fromkeys(factors, 0.0))

    def market(pnl: float, sectors: dict[str, float], factors: dict[str, float]) -> Json:
        share = {name: factors["mkt_rf"] / len(sectors) for name in sectors}
        return stress_answer(factors["mkt_rf"], share, {"mkt_rf": factors["mkt_rf"]})

    assert stressed(zeros) == 0.0
    assert stressed(market) < 0.1


def test_pnl_alone_is_worth_half_and_the_splits_nothing_without_it() -> None:
    assert stressed(lambda pnl, s, f: {"estimated_pnl_pct": pnl}) == 0.5
    assert stressed(lambda pnl, s, f: stress_answer(None, s, f)) == 0.0
    assert stressed(lambda pnl, s, f: stress_answer(pnl, s, {})) == 0.75
    assert stressed(lambda pnl, s, f: stress_answer(pnl, {}, f)) == 0.75


@pytest.mark.parametrize(("error", "earned"), [(5e-4, 1.0), (1.505e-3, 0.5), (2.5e-3, 0.0), (-1.505e-3, 0.5)])
def test_pnl_earns_by_its_error_and_a_tenth_of_a_per_cent_is_rounding(error: float, earned: float) -> None:
    off = stressed(lambda pnl, s, f: {"estimated_pnl_pct": pnl + error})
    assert off == pytest.approx(0.5 * earned, abs=1e-9)


def test_an_answer_rounded_to_three_decimals_is_right() -> None:
    def rounded(pnl: float, sectors: dict[str, float], factors: dict[str, float]) -> Json:
        near = [{name: round(amount, 3) for name, amount in split.items()} for split in (sectors, factors)]
        return stress_answer(round(pnl, 3), *near)

    assert stressed(rounded) == 1.0


def test_half_of_a_split_is_worth_nothing() -> None:
    def half(pnl: float, sectors: dict[str, float], factors: dict[str, float]) -> Json:
        return stress_answer(pnl, sectors | {"Technology": -0.1, "Healthcare": -0.0101}, factors)

    assert stressed(half) == 0.75


def test_a_split_that_does_not_add_up_earns_nothing() -> None:
    assert stressed(lambda pnl, s, f: stress_answer(pnl, s | {"Energy": 0.0}, f)) == 0.75
    assert stressed(lambda pnl, s, f: stress_answer(pnl, s, f | {"smb": 0.0})) == 0.75


def test_invented_names_and_contradictions_count_against() -> None:
    def moved(pnl: float, sectors: dict[str, float], factors: dict[str, float]) -> Json:
        return stress_answer(pnl, sectors | {"Gold": 0.01, "Silver": -0.01}, factors)

    def twice(pnl: float, sectors: dict[str, float], factors: dict[str, float]) -> Json:
        answer = stress_answer(pnl, sectors, factors)
        rows = answer["attribution"]["by_sector"]
        rows += [{"sector": "Energy", "contribution_pct": 0.0}]
        return answer

    assert stressed(moved) == pytest.approx(0.75 + 0.25 / 3)  # four sectors of six
    assert stressed(twice) == pytest.approx(0.75 + 0.25 / 3)


def test_small_entries_are_worth_having_but_only_beside_the_large_ones() -> None:
    def without(pnl: float, sectors: dict[str, float], factors: dict[str, float]) -> Json:
        small = ("rmw", "mom")
        return stress_answer(pnl, sectors, {name: x for name, x in factors.items() if name not in small})

    def wrong(pnl: float, sectors: dict[str, float], factors: dict[str, float]) -> Json:
        return stress_answer(pnl, sectors, factors | {"rmw": 0.02, "mom": -0.02})

    def small_alone(pnl: float, sectors: dict[str, float], factors: dict[str, float]) -> Json:
        return stress_answer(pnl, {"Utilities": 0.0, "Energy": pnl}, {"smb": pnl, "rmw": 0.0, "mom": 0.0, "cma": 0.0})

    assert stressed(lambda pnl, s, f: stress_answer(pnl, s, f)) == 1.0
    assert stressed(without) == pytest.approx(0.75 + 0.25 * 3 / 7)  # five of seven factors
    assert stressed(wrong) == pytest.approx(0.75 + 0.25 * 3 / 7)
    assert stressed(small_alone) == 0.5


# --- risk remediation --------------------------------------------------------------------------------------------

RR = "risk_remediation"


def remedied(answer: Json, *, curable: bool = True) -> float:
    return judged(RR, answer, *remediation(curable=curable)).value


def test_any_equally_cheap_list_earns_one() -> None:
    assert remedied(cure(AAA=-0.2, CCC=0.1)) == 1.0  # the rest stays in cash
    assert remedied(cure(AAA=-0.2, BBB=0.05, CCC=0.05, DDD=0.05, FFF=0.05)) == 1.0
    assert remedied({**cure(AAA=-0.2, BBB=0.2), "trades": cure(AAA=-0.2, BBB=0.2)["trades"][::-1]}) == 1.0


def test_turnover_beyond_the_least_costs_in_proportion_and_twice_it_everything() -> None:
    assert remedied(cure(AAA=-0.22, BBB=0.12, CCC=0.1)) == pytest.approx(0.9)
    assert remedied(cure(AAA=-0.3, BBB=0.2, CCC=0.1)) == pytest.approx(0.5)
    assert remedied(cure(AAA=-0.38, BBB=0.2, CCC=0.18)) == pytest.approx(0.1)
    assert remedied(cure(AAA=-0.4, BBB=0.2, CCC=0.2)) == pytest.approx(0.0, abs=1e-12)
    assert remedied(cure(AAA=-0.46, BBB=0.19, CCC=0.19, DDD=0.08)) == 0.0


@pytest.mark.parametrize(
    "trades",
    [
        {},
        {"AAA": -0.199},  # still above the limit, beyond the tolerance
        {"AAA": -0.2},  # too much cash
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
    assert remedied(cure(AAA=-0.19996, BBB=0.2)) == 1.0
    rest = {"AAA": -0.2, "BBB": 0.2, "CCC": -0.099995}  # CCC sold but for a rounding: dearer, yet compliant
    assert remedied(cure(**rest, DDD=0.1)) == pytest.approx(0.5, abs=1e-3)


def test_a_sale_to_a_target_of_zero_is_in_full_however_its_size_is_rounded() -> None:
    answer = cure(AAA=-0.2, BBB=0.2, CCC=-0.1, DDD=0.1)
    exact = remedied(answer)
    for size in (-0.09999, -0.0999, -0.0995):
        answer["trades"][2]["trade_pct"] = size
        assert remedied(answer) == exact == pytest.approx(0.5)


@pytest.mark.parametrize(("left", "share"), [(5e-5, 1.0), (1e-4, 1.0), (3e-4, 0.5), (6e-4, 0.0)])
def test_what_is_left_of_a_position_is_a_breach_of_its_own_size(left: float, share: float) -> None:
    answer = cure(AAA=-0.2, BBB=0.2, CCC=-0.1 + left, DDD=0.1 - left)
    assert remedied(answer) == pytest.approx(share / 2, abs=2e-3)


@pytest.mark.parametrize("stated", [False, None, "yes"])
def test_a_false_statement_to_compliance_leaves_a_fifth(stated: object) -> None:
    assert remedied(cure(AAA=-0.2, BBB=0.2) | {"post_trade_compliant": stated}) == pytest.approx(0.2)


@pytest.mark.parametrize("stated", [0.21, None])
def test_another_turnover_than_that_of_the_trades_costs_a_third(stated: float | None) -> None:
    assert remedied(cure(AAA=-0.2, BBB=0.2) | {"total_turnover": stated}) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "change",
    [
        {"action": "buy"},
        {"action": None},
        {"target_weight": 0.4},
        {"target_weight": None},
        {"current_weight": 0.4},
    ],
)
def test_a_trade_that_contradicts_itself_costs_a_third(change: Json) -> None:
    answer = cure(AAA=-0.2, BBB=0.2)
    answer["trades"][0] |= change
    assert remedied(answer) == pytest.approx(2 / 3)


def test_a_trade_can_be_read_from_its_target_and_duplicates_add_up_but_disagree() -> None:
    answer = cure(AAA=-0.2, BBB=0.2)
    del answer["trades"][0]["trade_pct"]
    assert remedied(answer) == 1.0
    halves = cure(AAA=-0.1, BBB=0.2)
    halves["trades"].append(copy.deepcopy(halves["trades"][0]))
    assert remedied(halves | {"total_turnover": 0.2}) == pytest.approx(2 / 3)


def test_a_name_outside_the_universe_earns_nothing() -> None:
    answer = cure(AAA=-0.2, BBB=0.2)
    answer["trades"].append({"symbol": "ZZZ", "action": "buy", "target_weight": 0.0, "trade_pct": 0.0})
    assert remedied(answer) == 0.0


def test_where_no_cure_exists_the_least_excess_is_asked_for() -> None:
    def honest(**trades: float) -> float:
        return remedied(cure(**trades) | {"post_trade_compliant": False}, curable=False)

    assert honest(AAA=-0.12, BBB=0.12) == 1.0
    assert honest(AAA=-0.12, BBB=0.04, CCC=0.04) == 1.0
    assert honest(AAA=-0.1, BBB=0.1) == pytest.approx(1 - (0.02 / 0.12) / 0.4)
    assert honest(AAA=-0.06, BBB=0.06) == 0.0  # half of what can be shed
    assert honest(BBB=-0.05, CCC=0.05) == 0.0  # nothing gained
    assert honest(AAA=-0.13, BBB=0.13) == 0.0  # beyond the budget
    assert remedied(cure(AAA=-0.12, BBB=0.12), curable=False) == pytest.approx(0.2)  # says it is compliant
    assert remedied(cure(AAA=-0.2, BBB=0.2), curable=False) == 0.0


def left_by(constraint: Json, book: dict[str, float]) -> float:
    """What a limit leaves of the credit of a submission that leads to a book; the book's own merit is nothing here."""
    unbroken: list[str] = []
    task_input = MARKET | {"portfolio": portfolio(**book), "mandate": mandate(constraint), "violations": unbroken}
    truth = Truth("rm_rr_t", RR, {"post_trade_compliant": True}, {"least_turnover": 0.2}, {"kind": "x"})
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


def test_what_rounding_may_leave_is_told() -> None:
    assert f"{ROUNDING:.4f}" in REMEDIATION["rounding"]
    assert f"{BREACH:.4f}" in REMEDIATION["rounding"]
