"""The `certified` scorer of stress testing: the P&L and its two splits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.domains.risk.judging.cases import Json, judged, stress, stress_answer

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


@pytest.mark.parametrize(("error", "earned"), [(5e-4, 1.0), (7.555e-4, 0.5), (1.001e-3, 0.0), (-7.555e-4, 0.5)])
def test_pnl_earns_by_its_error_and_a_tenth_of_a_per_cent_is_rounding(error: float, earned: float) -> None:
    off = stressed(lambda pnl, s, f: {"estimated_pnl_pct": pnl + error})
    assert off == pytest.approx(0.5 * earned, abs=1e-9)


def test_an_attribution_counts_as_far_as_its_pnl_is_right() -> None:
    def off(pnl: float, sectors: dict[str, float], factors: dict[str, float]) -> Json:
        error = 7.55e-4
        return stress_answer(pnl + error, sectors | {"Energy": 0.01 + error}, factors | {"hml": 0.004 + error})

    assert stressed(off) < 0.5


@pytest.mark.parametrize(
    ("var", "earned"),
    [(0.0254, 1.0), (0.02544, 1.0), (None, 0.25), (0.0231, 0.25), (-0.0254, 0.25), (0.0255524, 0.625)],
)
def test_where_a_var_is_asked_for_it_is_worth_three_quarters(var: float | None, earned: float) -> None:
    truth, task_input = stress()
    wanted = replace(truth, expected_output={**truth.expected_output, "stressed_var_pct": 0.0254})
    answer = {**truth.expected_output, "stressed_var_pct": var}
    assert judged(ST, answer, wanted, task_input).value == pytest.approx(earned, abs=2e-3)
    assert judged(ST, {**answer, "estimated_pnl_pct": 0.0}, wanted, task_input).value == 0.0


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
