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
from tests.sampling import examples
from tests.scoring.strategies import hostile_answers, wrong_types

from finskillbench.domains import subtask_named
from finskillbench.domains.portfolio.constrained_optimization import ConstraintSatisfaction
from finskillbench.edition import Edition
from finskillbench.episode import Profile, Score, Truth

SUB_TASKS = tuple(ATTACKS)
HEAVY = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
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
    score = subtask_named(sub_task).scorers[Profile.CERTIFIED](answer, *case)
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
def test_a_budget_missed_costs_in_proportion_and_everything_from_one_per_cent(
    cases: Any, sub_task: str, data: st.DataObject
) -> None:
    """Half a percent is the rounding of a list of weights; twice as much is cash or credit, and worth nothing."""
    case = cases[sub_task][data.draw(st.integers(0, 39))]
    answer = copy.deepcopy(dict(case[0].expected_output))
    weights = answer["new_weights" if sub_task == "rebalancing" else "weights"]
    missed = data.draw(st.floats(0.005, 0.01) | st.floats(0.01, 10.0))
    weights[data.draw(st.sampled_from(sorted(weights)))] += missed * data.draw(st.sampled_from([-1, 1]))
    value = _judged(sub_task, answer, case).value
    assert value <= max(0.0, 2.0 - missed / 0.005) + 1e-9
    assert missed < 0.010001 or value == 0.0


@pytest.mark.parametrize("sub_task", ["unconstrained_optimization", "constrained_optimization", "rebalancing"])
@HEAVY
@given(data=st.data())
def test_a_short_position_of_a_tenth_of_a_percent_scores_zero(cases: Any, sub_task: str, data: st.DataObject) -> None:
    case = cases[sub_task][data.draw(st.integers(0, 39))]
    answer = copy.deepcopy(dict(case[0].expected_output))
    weights = answer["new_weights" if sub_task == "rebalancing" else "weights"]
    short, long = data.draw(st.lists(st.sampled_from(sorted(weights)), min_size=2, max_size=2, unique=True))
    moved = weights[short] + data.draw(st.floats(0.001001, 10.0))
    weights[short] -= moved
    weights[long] += moved  # the budget is kept
    assert _judged(sub_task, answer, case).value == 0.0


@HEAVY
@given(data=st.data())
def test_flags_of_any_kind_never_move_a_score(cases: Any, data: st.DataObject) -> None:
    """Not that of the right weights, nor of weights that lose something on the way to equal ones."""
    case = cases["constrained_optimization"][data.draw(st.integers(0, 39))]
    names = st.sampled_from([*ConstraintSatisfaction.model_fields, "fully_invested", "cash"])
    values = st.one_of(st.booleans(), st.none(), st.integers(0, 1), st.text(max_size=5))
    flags = data.draw(st.one_of(st.dictionaries(names, values), values))
    right = case[0].expected_output["weights"]
    share = data.draw(st.sampled_from([0.0, 0.02, 0.1, 1.0]))
    weights = {ticker: (1 - share) * weight + share / len(right) for ticker, weight in right.items()}
    silent = _judged("constrained_optimization", {"weights": weights}, case)
    assert share or silent.value == 1.0
    told = _judged("constrained_optimization", {"weights": weights, "constraint_satisfaction": flags}, case)
    assert told == silent
