"""Statuses, and the joining of a submission with its truth."""

import gc
import json
from collections.abc import Mapping
from dataclasses import replace

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples
from tests.scoring.examples import EXPECTED, truth, unproved
from tests.scoring.strategies import HOSTILE_TEXTS

from finskillbench.domains import Scorer, subtask_named, subtasks
from finskillbench.episode import JsonObject, Profile, Score, Status, Submission, Truth
from finskillbench.errors import EditionError, InputError, InternalError
from finskillbench.garbage import GC_THRESHOLD
from finskillbench.runs import verdicts
from finskillbench.scoring.strict_json import InvalidSubmission, parse_submission

NAMES = [subtask.name for subtask in subtasks()]
OF_ONE_QUESTION = [subtask.name for subtask in subtasks() if subtask.interactive is None]
"""Cases with a budget are judged against a world, which no example holds."""


@pytest.mark.parametrize("name", OF_ONE_QUESTION)
def test_a_right_answer_is_scored_under_every_profile(name: str) -> None:
    verdict = verdicts.judge(Submission("t1", json.dumps(EXPECTED[name])), truth(name), {})
    assert (verdict.status, verdict.valid_json, verdict.sub_task) == (Status.SCORED, True, name)
    assert set(verdict.scores) == set(unproved(name)) >= {Profile.STRICT}
    assert verdict.scores[Profile.STRICT] == pytest.approx(1.0)
    assert set(verdict.details) == {profile.value for profile in subtask_named(name).scorers}
    assert orjson.dumps(verdict.details)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_texts_are_invalid_and_earn_nothing(name: str) -> None:
    for text in ("", '{"weights": NaN}', "[1]", '{"feasible": true, "feasible": true}', '{"turnover": 1e999}'):
        verdict = verdicts.judge(Submission("t1", text), truth(name), {})
        assert (verdict.status, verdict.valid_json) == (Status.INVALID_SUBMISSION, False)
        assert verdict.scores == dict.fromkeys(unproved(name), 0.0)
        assert verdict.details["reason"]


@pytest.mark.parametrize("text", [json.dumps(EXPECTED["earnings_quality"]), "[1]"])
def test_the_search_for_garbage_is_put_off_and_then_as_it_was_before(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def parse(answer: str) -> object:
        seen.append(gc.get_threshold()[0])
        return parse_submission(answer)

    monkeypatch.setattr(verdicts, "parse_submission", parse)
    before = gc.get_threshold()
    verdicts.judge(Submission("t1", text), truth("earnings_quality"), {})
    assert seen == [GC_THRESHOLD]
    assert gc.get_threshold() == before


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_every_hostile_text_is_invalid(text: str) -> None:
    verdict = verdicts.judge(Submission("t1", text), truth("earnings_quality"), {})
    assert verdict.status is Status.INVALID_SUBMISSION
    assert set(verdict.scores.values()) == {0.0}
    assert len(orjson.dumps(verdict.details)) < 500


@settings(max_examples=examples(200))
@given(text=st.text(alphabet='{}[]",:weights0123456789eE.-+ \n\ud800é'), name=st.sampled_from(NAMES))
def test_any_text_gets_a_verdict(text: str, name: str) -> None:
    submission, label = Submission("t1", text), truth(name)
    try:
        parse_submission(text)
    except InvalidSubmission:
        verdict = verdicts.judge(submission, label, {})
        assert (verdict.status, set(verdict.scores.values())) == (Status.INVALID_SUBMISSION, {0.0})
    else:
        if name in OF_ONE_QUESTION:
            assert verdicts.judge(submission, label, {}).status is Status.SCORED


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        ("max_turns", Status.MAX_TURNS_EXHAUSTED),
        ("budget_exhausted", Status.BUDGET_EXHAUSTED),
        ("stopped", Status.INCOMPLETE_SUBMISSION),
        ("submitted", Status.INCOMPLETE_SUBMISSION),
    ],
)
def test_no_submission_scores_zero_and_nothing_was_malformed(ended: str, status: Status) -> None:
    verdict = verdicts.judge(Submission("t1", None, ended), truth("earnings_quality"), {})
    assert (verdict.status, verdict.valid_json) == (status, True)
    assert set(verdict.scores.values()) == {0.0}


def test_a_failure_of_the_harness_has_no_score() -> None:
    verdict = verdicts.judge(Submission("t1", None, "error"), truth("rebalancing"), {})
    assert verdict.status is Status.ERROR
    assert verdict.scores == {}


def test_an_imported_truth_under_another_name_is_found_by_its_method() -> None:
    imported = replace(truth("normalization"), sub_task="layer_a_normalization")
    verdict = verdicts.judge(Submission("t1", json.dumps(EXPECTED["normalization"])), imported, {})
    assert (verdict.sub_task, verdict.scores[Profile.PAPER]) == ("normalization", 1.0)
    for rules in ({}, {"method": "guesswork"}, {"method": 1}):
        with pytest.raises(InputError, match="unknown"):
            verdicts.judge(Submission("t1", "{}"), replace(imported, verification=rules), {})


def test_a_submission_is_never_brought_to_another_truth() -> None:
    with pytest.raises(InternalError, match="submission is for task t2, truth for task t1"):
        verdicts.judge(Submission("t2", "{}"), truth("normalization"), {})


def _crash(answer: JsonObject, label: Truth, task_input: JsonObject) -> Score:
    raise ZeroDivisionError("division by zero")


def _nan(answer: JsonObject, label: Truth, task_input: JsonObject) -> Score:
    return Score(float("nan"))


@pytest.mark.parametrize(("scorer", "words"), [(_crash, "failed: ZeroDivisionError"), (_nan, "returned nan")])
def test_a_crashed_scorer_is_our_bug_unless_the_label_is_wrong(
    scorer: Scorer, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken: Mapping[Profile, Scorer] = {Profile.PAPER: scorer}
    label = truth("normalization")
    subtask = replace(
        subtask_named("normalization"), scorers=broken, rederive=lambda task_input: label.expected_output, proof=None
    )
    monkeypatch.setattr(verdicts, "subtask_named", lambda name: subtask)
    with pytest.raises(InternalError, match=f"the paper scorer of normalization on t1 {words}"):
        verdicts.judge(Submission("t1", "{}"), label, {})
    wrong = replace(label, expected_output={"metrics": {"net_income": 1.0}})
    with pytest.raises(EditionError, match=r"t1: the label cannot be judged: metrics.*; rebuild the edition"):
        verdicts.judge(Submission("t1", "{}"), wrong, {})


def test_the_task_input_reaches_the_scorers(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[JsonObject] = []

    def spy(answer: JsonObject, label: Truth, task_input: JsonObject) -> Score:
        seen.append(task_input)
        return Score(0.5)

    subtask = replace(subtask_named("normalization"), scorers={Profile.CERTIFIED: spy})
    monkeypatch.setattr(verdicts, "subtask_named", lambda name: subtask)
    proved = replace(truth("normalization"), proof={"kind": "rederived"})
    verdict = verdicts.judge(Submission("t1", "{}"), proved, {"symbol": "AAA"})
    assert (dict(verdict.scores), seen) == ({Profile.CERTIFIED: 0.5}, [{"symbol": "AAA"}])


def test_certified_is_left_out_where_the_label_has_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """An imported label may lack what the profile recomputes: that is no crash, and no zero either."""
    subtask = subtask_named("normalization")
    with_certified = replace(subtask, scorers={**subtask.scorers, Profile.CERTIFIED: _crash})
    monkeypatch.setattr(verdicts, "subtask_named", lambda name: with_certified)
    verdict = verdicts.judge(Submission("t1", "{}"), truth("normalization"), {})
    assert set(verdict.scores) == {Profile.PAPER, Profile.STRICT}
    assert verdict.details["certified"] == {"not_judged": "the label carries no proof"}
    for text in (None, "nonsense"):
        assert set(verdicts.judge(Submission("t1", text), truth("normalization"), {}).scores) == set(
            unproved("normalization")
        )
