"""How a monitoring answer is judged: breaches found, values measured, nothing for a constant."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tests.domains.risk.judging.cases import MARKET, Json, judged, mandate, monitoring, portfolio

from finskillbench.domains import subtask_named
from finskillbench.domains.examples import Label
from finskillbench.engines.risk.mandate import mandate_from
from finskillbench.engines.risk.monitor import constraint_report
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.episode import Truth

CM = "constraint_monitoring"


def monitored(change: Callable[[Json], None]) -> float:
    truth, task_input = monitoring()
    answer = copy.deepcopy(dict(truth.expected_output))
    change(answer)
    return judged(CM, answer, truth, task_input).value


def test_a_status_without_its_value_earns_nothing() -> None:
    def valueless(answer: Json) -> None:
        for row in answer["constraints"]:
            del row["value"]

    assert monitored(valueless) == 0.0


def test_a_value_of_nothing_still_has_to_be_given() -> None:
    def zeros(answer: Json) -> None:
        for row in answer["constraints"]:
            row["value"] = 0.0

    assert monitored(zeros) == 0.0


@pytest.mark.parametrize("field", ["overall_compliant", "violations_count"])
def test_the_summary_is_worth_a_fifth_and_only_as_a_whole(field: str) -> None:
    assert monitored(lambda answer: answer.pop(field)) == pytest.approx(0.8)


def test_the_summary_alone_earns_nothing() -> None:
    assert monitored(lambda answer: answer.pop("constraints")) == 0.0


@pytest.mark.parametrize("field", ["limit", "min", "max", "worst_symbol", "worst_sector"])
def test_a_report_may_leave_out_what_the_mandate_and_the_portfolio_say(field: str) -> None:
    def without(answer: Json) -> None:
        for row in answer["constraints"]:
            row.pop(field, None)

    def null(answer: Json) -> None:
        for row in answer["constraints"]:
            row[field] = None

    assert monitored(without) == monitored(null) == 1.0


def test_limits_may_be_stated_in_any_way_that_says_the_same() -> None:
    def stated(answer: Json) -> None:
        rows = {row["type"]: row for row in answer["constraints"]}
        rows["long_only"] |= {"limit": True, "min": 0}
        rows["position_limit_max"] |= {"limit": 0.3001, "max": 0.3, "worst_symbol": "AAA", "worst_sector": ""}
        rows["sector_limit_max"] |= {"worst_sector": "Technology", "worst_symbol": "AAA"}
        rows["name_count"] |= {"limit": 4, "min": 4}

    assert monitored(stated) == 1.0


@pytest.mark.parametrize(
    ("symbol", "credit"), [("BBB", 1.0), ("EEE", 1.0), (" bbb", 1.0), ("AAA", 0.5), ("N/A", 1.0), ("none", 1.0)]
)
def test_of_several_worst_names_any_will_do(symbol: str, credit: float) -> None:
    task_input = MARKET | {
        "portfolio": portfolio(AAA=0.5, BBB=0.1, EEE=0.1),
        "mandate": mandate({"type": "position_limit_min", "value": 0.2}),
    }
    market = market_from(task_input)
    report = constraint_report(portfolio_from(task_input, market), mandate_from(task_input["mandate"]), market)
    truth = Truth("rm_cm_t", CM, report, {"method": "exact_match"}, {"kind": "hand"})
    answer = copy.deepcopy(report)
    answer["constraints"][0]["worst_symbol"] = symbol
    assert judged(CM, answer, truth, task_input).value == credit


def test_types_and_statuses_may_be_spelt_in_other_ways() -> None:
    def spelt(answer: Json) -> None:
        answer["constraints"].reverse()
        for row in answer["constraints"]:
            row["type"] = row["type"].upper().replace("_", " ")
            row["status"] = {"PASS": "ok", "FAIL": "breach"}[row["status"]]

    assert monitored(spelt) == 1.0


def _set(kind: str, **fields: object) -> Callable[[Json], None]:
    def change(answer: Json) -> None:
        next(row for row in answer["constraints"] if row["type"] == kind).update(fields)
        failed = sum(row["status"] == "FAIL" for row in answer["constraints"])
        answer.update(overall_compliant=failed == 0, violations_count=failed)

    return change


def test_two_limits_are_broken_and_five_kept() -> None:
    """position_limit_max and sector_limit_max; tracking error weighs 5 of 11."""
    rows = {row["type"]: row["status"] for row in monitoring()[0].expected_output["constraints"]}
    assert [kind for kind, status in rows.items() if status == "FAIL"] == ["position_limit_max", "sector_limit_max"]
    assert len(rows) == 7


def _sent_back(line: float) -> float:
    """What is left where one of seven lines earns less than 1."""
    return 0.3 * (6 + line) / 7 + 0.7 * line


def test_a_missed_breach_costs_more_than_half_and_two_cost_everything() -> None:
    assert monitored(_set("sector_limit_max", status="PASS")) == pytest.approx(
        10 / 11 * _sent_back(0) * 0.4 * 1 / 2 * 0.8
    )

    def both(answer: Json) -> None:
        _set("sector_limit_max", status="PASS")(answer)
        _set("position_limit_max", status="PASS")(answer)

    assert monitored(both) == 0.0


def test_a_limit_left_out_is_a_breach_missed_or_its_own_weight() -> None:
    def without(kind: str) -> Callable[[Json], None]:
        def change(answer: Json) -> None:
            answer["constraints"] = [row for row in answer["constraints"] if row["type"] != kind]

        return change

    assert monitored(without("cash_max")) == pytest.approx(10 / 11 * _sent_back(0))
    assert monitored(without("tracking_error_max")) == pytest.approx(6 / 11 * _sent_back(0))
    assert monitored(without("sector_limit_max")) == pytest.approx(10 / 11 * _sent_back(0) * 0.4 * 1 / 2)


def test_a_false_alarm_sends_the_report_back() -> None:
    one = monitored(_set("cash_max", status="FAIL"))
    assert one == pytest.approx(10 / 11 * _sent_back(0) * 0.8)

    def all_of_them(answer: Json) -> None:
        for row in answer["constraints"]:
            row["status"] = "FAIL"
        answer.update(overall_compliant=False, violations_count=7)

    assert monitored(all_of_them) == pytest.approx(2 / 11 * 0.3 * 2 / 7 * 0.8)


@pytest.mark.parametrize(("error", "credit"), [(9e-5, 1.0), (-9e-5, 1.0), (5.5e-4, 0.5), (1e-3, 0.0), (0.2, 0.0)])
def test_a_value_earns_by_its_error(error: float, credit: float) -> None:
    assert monitored(_set("cash_max", value=0.05 + error)) == pytest.approx(
        (10 + credit) / 11 * _sent_back(credit), abs=1e-9
    )


@pytest.mark.parametrize(
    ("error", "credit", "shown"),
    [(9e-4, 1, 1), (-9e-4, 1, 1), (5.5e-3, 0.5, 0.7), (0.01, 0, 0.25), (0.0125, 0, 0), (0.2, 0, 0)],
)
def test_a_breach_is_found_by_the_value_beside_its_flag(error: float, credit: float, shown: float) -> None:
    """One of two breaches: a flag whose value is 2.5 % off is worth no more than a flag that is missing."""
    left = _sent_back(credit) * (0.4 * (1 + shown) / 2 + 0.6 * shown)
    assert monitored(_set("position_limit_max", value=0.5 + error)) == pytest.approx((10 + credit) / 11 * left)


@pytest.mark.parametrize(
    "fields",
    [
        {"violation_magnitude": None},
        {"violation_magnitude": 0.2},
        {"violation_magnitude": -0.2},
        {"worst_symbol": "N/A", "worst_sector": "none", "min": "-", "limit": "n/a"},
    ],
)
def test_what_is_optional_costs_nothing(fields: Json) -> None:
    assert monitored(_set("position_limit_max", **fields)) == 1.0


@pytest.mark.parametrize("headroom", [None, 0, -0.05, 0.05])
def test_the_headroom_of_a_limit_that_is_kept_costs_nothing(headroom: float | None) -> None:
    assert monitored(_set("cash_max", violation_magnitude=headroom)) == 1.0


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({"violation_magnitude": 0.3}, 0.5),
        ({"worst_symbol": "NOBODY"}, 0.5),
        ({"worst_symbol": "BBB"}, 0.5),
        ({"worst_sector": "Gold"}, 0.5),
        ({"limit": 99.0}, 0.0),
        ({"limit": "a lot"}, 0.0),
        ({"min": 0.1}, 0.0),
    ],
)
def test_what_contradicts_the_mandate_or_the_portfolio_costs(fields: Json, left: float) -> None:
    assert monitored(_set("position_limit_max", **fields)) == pytest.approx((10 + left) / 11)


@pytest.mark.parametrize("invented", [-123.0, -0.02, 0.3])
def test_a_headroom_that_is_not_that_of_the_portfolio_costs_half_of_its_limit(invented: float) -> None:
    assert monitored(_set("cash_max", violation_magnitude=invented)) == pytest.approx(10.5 / 11)


def test_entries_that_the_mandate_does_not_have_dilute() -> None:
    extra = {"type": "hhi_max", "status": "FAIL", "value": 0.3}
    assert monitored(lambda answer: answer["constraints"].append(extra)) == pytest.approx(7 / 8)


def test_a_search_for_the_right_entries_is_no_report() -> None:
    def search(answer: Json, entries: int) -> None:
        answer["constraints"].extend({"type": f"guess {n}", "status": "FAIL", "value": 0.3} for n in range(entries))

    assert monitored(lambda answer: search(answer, 63)) == pytest.approx(7 / 70)
    assert monitored(lambda answer: search(answer, 64)) == 0.0


def test_contradictory_duplicates_are_no_breach_found_while_a_repeat_is_nothing() -> None:
    def both(answer: Json) -> None:
        answer["constraints"].append(answer["constraints"][1] | {"status": "PASS"})

    assert monitored(both) == pytest.approx(10 / 11 * 7 / 8 * _sent_back(0) * 0.4 * 1 / 2)
    assert monitored(lambda answer: answer["constraints"].extend(list(answer["constraints"]))) == 1.0


def test_the_ladder_falls_and_every_rung_is_in_its_band() -> None:
    truth, task_input = monitoring()
    ladder = subtask_named(CM).examples.graded
    assert ladder is not None
    episode: Any = None
    scores = [
        (rung, judged(CM, rung.answer, truth, task_input).value)
        for rung in ladder(Label(episode, task_input, truth, {}))
    ]
    assert all(rung.least - 1e-9 <= score <= rung.most + 1e-9 for rung, score in scores)
    assert [score for _, score in scores] == sorted((score for _, score in scores), reverse=True)
