"""`certified` on real task inputs: whatever is submitted, no scorer raises, leaves [0, 1] or pays for nonsense."""

from __future__ import annotations

import copy
import math
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.domains.portfolio.attacks import ATTACKS
from tests.scoring.strategies import hostile_answers, wrong_types

from finskillbench.domains import by_name
from finskillbench.domains.portfolio.constrained_optimization import ConstraintSatisfaction
from finskillbench.edition import Edition
from finskillbench.episode import Profile, Score, Truth

SUB_TASKS = tuple(ATTACKS)
HEAVY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
Case = tuple[Truth, dict[str, Any]]


@pytest.fixture(scope="module")
def cases(synthetic_edition: Edition) -> dict[str, list[Case]]:
    """Every truth with its resolved input, by subtask."""
    return {
        name: [(synthetic_edition.truth(e.task_id), synthetic_edition.full_input(e)) for e in chosen]
        for name in SUB_TASKS
        for chosen in [synthetic_edition.episodes([name])]
    }


def _judged(sub_task: str, answer: dict[str, Any], case: Case) -> Score:
    score = by_name(sub_task).scorers[Profile.CERTIFIED](answer, *case)
    assert isinstance(score.value, float)
    assert math.isfinite(score.value)
    assert 0.0 <= score.value <= 1.0
    assert orjson.dumps(dict(score.details))
    return score


@pytest.mark.parametrize("sub_task", SUB_TASKS)
@HEAVY
@given(data=st.data())
def test_any_object_gets_a_finite_score_in_range(cases: Any, sub_task: str, data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(range(40)).map(cases[sub_task].__getitem__))
    _judged(sub_task, data.draw(hostile_answers(dict(case[0].expected_output))), case)


@pytest.mark.parametrize("sub_task", SUB_TASKS)
@HEAVY
@given(data=st.data())
def test_wrong_types_earn_nothing(cases: Any, sub_task: str, data: st.DataObject) -> None:
    case = cases[sub_task][data.draw(st.integers(0, 39))]
    answer = {key: data.draw(wrong_types(value)) for key, value in case[0].expected_output.items()}
    assert _judged(sub_task, answer, case).value == 0.0


@pytest.mark.parametrize("sub_task", SUB_TASKS)
@HEAVY
@given(
    data=st.data(),
    value=st.sampled_from([1e308, -1e308, 5e-324, 1e6, -1e6, 1e-300, 1.7976931348623157e308, 2**63, -(10**300)]),
)
def test_one_absurd_number_anywhere_never_earns_more_than_the_right_answer(
    cases: Any, sub_task: str, data: st.DataObject, value: float
) -> None:
    case = cases[sub_task][data.draw(st.integers(0, 39))]
    answer = copy.deepcopy(dict(case[0].expected_output))
    field = data.draw(st.sampled_from(sorted(answer)))
    if isinstance(answer[field], dict):
        answer[field][data.draw(st.sampled_from(sorted(answer[field])))] = value
    else:
        answer[field] = value
    _judged(sub_task, answer, case)


@pytest.mark.parametrize("sub_task", ["unconstrained_optimization", "constrained_optimization", "rebalancing"])
@HEAVY
@given(data=st.data())
def test_weights_that_break_a_limit_score_zero(cases: Any, sub_task: str, data: st.DataObject) -> None:
    case = cases[sub_task][data.draw(st.integers(0, 39))]
    answer = copy.deepcopy(dict(case[0].expected_output))
    weights = answer["new_weights" if sub_task == "rebalancing" else "weights"]
    amount = data.draw(st.floats(0.002, 10.0)) * data.draw(st.sampled_from([-1, 1]))
    weights[data.draw(st.sampled_from(sorted(weights)))] += amount
    assert _judged(sub_task, answer, case).value == 0.0  # the budget at least is broken


@HEAVY
@given(data=st.data())
def test_flags_of_any_kind_never_raise_a_score(cases: Any, data: st.DataObject) -> None:
    case = cases["constrained_optimization"][data.draw(st.integers(0, 39))]
    names = st.sampled_from([*ConstraintSatisfaction.model_fields, "fully_invested", "cash"])
    values = st.one_of(st.booleans(), st.none(), st.integers(0, 1), st.text(max_size=5))
    flags = data.draw(st.dictionaries(names, values))
    answer = {"weights": case[0].expected_output["weights"], "constraint_satisfaction": flags}
    expected = case[0].expected_output["constraint_satisfaction"]
    right = sum(flags.get(name) is True for name in expected) / len(expected)
    assert _judged("constrained_optimization", answer, case).value == pytest.approx(right)
