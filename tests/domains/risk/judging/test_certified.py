"""The `certified` scorers of all risk subtasks: the truth earns one, and whatever else is judged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.domains.risk.judging.cases import CASES, WORDS, judged
from tests.sampling import examples
from tests.scoring.strategies import hostile_answers, wrong_types

pytestmark = pytest.mark.slow


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
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_any_object_gets_a_score_in_range(sub_task: str, data: st.DataObject) -> None:
    truth, task_input = CASES[sub_task]()
    judged(sub_task, data.draw(hostile_answers(dict(truth.expected_output))), truth, task_input)


@pytest.mark.parametrize("sub_task", CASES)
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
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
