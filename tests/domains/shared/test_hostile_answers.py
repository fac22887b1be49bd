"""Whatever an agent submits: no scorer raises, no score leaves its range, nothing is earned by a wrong type."""

import math
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sampling import THOROUGH
from tests.scoring.examples import EXPECTED, judged, unproved
from tests.scoring.strategies import ANY_VALUE, hostile_answers, wrong_types

from finskillbench.domains import subtasks
from finskillbench.episode import Profile, Score

pytestmark = pytest.mark.slow

NAMES = [subtask.name for subtask in subtasks() if subtask.interactive is None]
"""Cases with a budget are judged against a world; their own tests attack their scorers with one."""
HEAVY = settings(
    max_examples=80 if THOROUGH else 10, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
JUDGED = [(name, profile) for name in NAMES for profile in unproved(name)]
IMPORTED = [name for name in NAMES if Profile.PAPER in unproved(name)]
"""Subtasks of which a published release may carry labels, whatever is in them."""


def _ceiling(name: str, profile: Profile) -> float:
    """Most that any answer can earn: `paper` pays repeats in a ranked list, everything else stops at 1."""
    return 2.0 if (name, profile) == ("risk_identification", Profile.PAPER) else 1.0


def _check(score: Score, ceiling: float) -> None:
    assert isinstance(score.value, float)
    assert math.isfinite(score.value)
    assert 0.0 <= score.value <= ceiling + 1e-12
    assert orjson.dumps(dict(score.details))


@pytest.mark.parametrize(("name", "profile"), JUDGED)
@HEAVY
@given(data=st.data())
def test_any_object_gets_a_finite_score_in_range(name: str, profile: Profile, data: st.DataObject) -> None:
    answer = data.draw(hostile_answers(EXPECTED[name]))
    _check(judged(name, answer, profile=profile), _ceiling(name, profile))


@pytest.mark.parametrize(("name", "profile"), JUDGED)
@HEAVY
@given(data=st.data())
def test_an_answer_of_wrong_types_earns_what_an_empty_one_earns(
    name: str, profile: Profile, data: st.DataObject
) -> None:
    answer: dict[str, Any] = {key: data.draw(wrong_types(value)) for key, value in EXPECTED[name].items()}
    assert judged(name, answer, profile=profile).value == judged(name, {}, profile=profile).value


@pytest.mark.parametrize("name", IMPORTED)
@HEAVY
@given(data=st.data())
def test_a_damaged_truth_gives_no_score_out_of_range(name: str, data: st.DataObject) -> None:
    """Imported truths may lack anything: the right answer to them must still be judged without a crash."""
    expected = data.draw(hostile_answers(EXPECTED[name]))
    for profile in unproved(name):
        score = judged(name, EXPECTED[name], expected, profile)
        assert math.isfinite(score.value)


@pytest.mark.parametrize("name", NAMES)
@HEAVY
@given(data=st.data())
def test_a_damaged_verification_falls_back_on_the_defaults(name: str, data: st.DataObject) -> None:
    keys = ["weight_l2_threshold", "tolerance_pct", "top_k", "tolerance", "metric_tolerances", "metrics"]
    keys += ["component_weight", "piotroski_weight", "numeric_ratio_weight"]
    rules = data.draw(st.dictionaries(st.sampled_from(keys), ANY_VALUE))
    for profile in unproved(name):
        assert math.isfinite(judged(name, EXPECTED[name], None, profile, **rules).value)


@pytest.mark.parametrize(("name", "profile"), [case for case in JUDGED if case[0] != "risk_identification"])
def test_the_right_answer_scores_one(name: str, profile: Profile) -> None:
    assert judged(name, EXPECTED[name], profile=profile).value == pytest.approx(1.0, abs=1e-12)
