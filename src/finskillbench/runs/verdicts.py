"""Judge submissions against truth once the agent has finished; no other module combines the two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from finskillbench.domains import Subtask, by_method, subtask_named
from finskillbench.domains.faults import DETAIL, LEAST_LOSS, differing, in_order, matches
from finskillbench.domains.interactive import RECORD
from finskillbench.edition.checks.labels import defects
from finskillbench.episode import LEAST_REWARD, JsonObject, Profile, Reward, Score, Status, Submission, Truth, Verdict
from finskillbench.errors import EditionError, InputError, InternalError
from finskillbench.garbage import relaxed_gc
from finskillbench.harness.conditions import Condition, arm_of
from finskillbench.harness.skills.faults import blind_answer, fault_of
from finskillbench.scoring.strict_json import InvalidSubmission, parse_submission


def judge(submission: Submission, truth: Truth, task_input: JsonObject, condition: str = Condition.NO_SKILL) -> Verdict:
    """Judge one submission under every profile that its subtask defines.

    Parameters
    ----------
    submission : answer and end of an episode; only this module parses its text.
    truth : label of the same task.
    task_input : input of the episode at full precision, references resolved, for scorers that recompute.
    condition : of a planted fault that concerns the episode, the details state its effect under `DETAIL`.

    Returns
    -------
    Verdict with one finite score per profile. A missing or malformed submission scores 0. A failure of the harness
    (`ended` "error") has no score. `certified` needs a proof in the label; without one, as in an imported release, the
    verdict omits the profile and its details state that.

    Raises
    ------
    InputError : the truth names no known subtask or verification method.
    EditionError : a scorer failed, and the label fails its independent derivation or proof.
    InternalError : submission and truth belong to different tasks, or a scorer failed on a correct label.
    """
    verdict = _judged(submission, truth, task_input)[0]
    effect = _fault(submission, truth, task_input, arm_of(condition).fault)
    return verdict if effect is None else replace(verdict, details={**verdict.details, DETAIL: effect})


def reward_of(submission: Submission, truth: Truth, task_input: JsonObject) -> Reward:
    """Return the reward of a submission for training; parameters and errors as for `judge`."""
    verdict, scored = _judged(submission, truth, task_input, (Profile.CERTIFIED,))
    score = scored.get(Profile.CERTIFIED)
    if score is None:
        return Reward(0.0, LEAST_REWARD, {}, verdict.status)
    raw = score.value if score.raw is None else score.raw
    if raw < 0.0:
        raw = LEAST_REWARD if math.isinf(raw) else raw / (1.0 - raw)
    parts = {name: float(value) for name, value in score.details.items() if isinstance(value, bool | int | float)}
    return Reward(score.value, raw, parts, verdict.status)


def _judged(
    submission: Submission, truth: Truth, task_input: JsonObject, among: Sequence[Profile] = tuple(Profile)
) -> tuple[Verdict, Mapping[Profile, Score]]:
    """Return the verdict, and the scores behind it among some profiles: none for a missing or malformed submission."""
    if submission.task_id != truth.task_id:
        raise InternalError(f"submission is for task {submission.task_id}, truth for task {truth.task_id}")
    subtask = _subtask(truth)
    judged = [profile for profile in subtask.scorers if profile is not Profile.CERTIFIED or truth.proof]
    profiles = [profile for profile in judged if profile in among]
    verdict = partial(Verdict, truth.task_id, subtask.name)
    if submission.ended == "error":
        return verdict(Status.ERROR, True, {}, {"reason": "the harness failed; run it again"}), {}
    zeros = dict.fromkeys(profiles, 0.0)
    if submission.ended == "budget_exhausted":
        return verdict(Status.BUDGET_EXHAUSTED, True, zeros, {"reason": "no submission within its tokens"}), {}
    if submission.answer is None:
        exhausted = submission.ended in ("max_turns", "out_of_calls")
        status = Status.MAX_TURNS_EXHAUSTED if exhausted else Status.INCOMPLETE_SUBMISSION
        return verdict(status, True, zeros, {"reason": f"no submission: {submission.ended}"}), {}
    with relaxed_gc():  # 300,000 empty lists would trigger 500 collections
        try:
            answer = judged_answer(submission, subtask)
        except InvalidSubmission as failure:
            return verdict(Status.INVALID_SUBMISSION, False, zeros, {"reason": failure.reason}), {}
        scored = _scored(subtask, profiles, answer, truth, task_input)
    if all(value is None for value in answer.values()):
        scored = {profile: replace(score, raw=score.value or -math.inf) for profile, score in scored.items()}
    scores = {profile: score.value for profile, score in scored.items()}
    details = {profile.value: dict(score.details) for profile, score in scored.items()}
    for profile in subtask.scorers.keys() - set(judged):
        details[profile.value] = {"not_judged": "the label carries no proof"}
    return verdict(Status.SCORED, True, scores, details), scored


def judged_answer(submission: Submission, subtask: Subtask | None) -> dict[str, Any]:
    """Return the answer as scorers receive it, including the record of an interactive episode; {} without submission.

    Raises `InvalidSubmission` if the text is not a JSON object.
    """
    answer = {} if submission.answer is None else parse_submission(submission.answer)
    # The record of the episode replaces one in the answer.
    if subtask is not None and subtask.open_interactive_state is not None:
        answer = {**answer, RECORD: submission.record or {}}
    return answer


def unjudged(submission: Submission, sub_task: str) -> Verdict:
    """Return a verdict without score, for an edition without truth; only the JSON syntax of the answer is checked."""
    if submission.ended == "error":
        reason = "the harness failed; run it again"
        return Verdict(submission.task_id, sub_task, Status.ERROR, True, {}, {"reason": reason})
    try:
        parse_submission(submission.answer or "{}")
        valid = True
    except InvalidSubmission:
        valid = False
    return Verdict(submission.task_id, sub_task, Status.UNJUDGED, valid, {}, {"reason": "the truth is withheld"})


def _fault(submission: Submission, truth: Truth, task_input: JsonObject, kind: str) -> JsonObject | None:
    """Compare a submission with the answer to which a planted fault leads; None if it does not concern the episode."""
    found = fault_of(kind, truth.sub_task)
    if found is None or submission.ended == "error":
        return None
    domain, fault = found
    subtask, right = subtask_named(truth.sub_task), truth.expected_output
    followed = blind_answer(fault, truth.sub_task, task_input)
    profile = Profile.CERTIFIED if truth.proof else Profile.PAPER
    if followed is None or _score(subtask, profile, followed, truth, task_input).value > 1.0 - LEAST_LOSS:
        return None
    try:
        answer = judged_answer(submission, subtask)
    except InvalidSubmission:
        answer = {}
    priced = domain.losses.get(truth.sub_task)
    loss = priced.of(task_input, answer, right) if priced is not None and answer else None
    equal = matches(in_order(answer, followed), differing(followed, right))
    return {"package": fault.package, "equal": equal, "loss": loss, "unit": None if priced is None else priced.unit}


def _subtask(truth: Truth) -> Subtask:
    """Return the subtask by name, or by verification method for imported truths under another name."""
    try:
        return subtask_named(truth.sub_task)
    except InputError:
        method = truth.verification.get("method")
        if not isinstance(method, str):
            raise
        return by_method(method)


def _scored(
    subtask: Subtask, profiles: Sequence[Profile], answer: JsonObject, truth: Truth, task_input: JsonObject
) -> dict[Profile, Score]:
    """Score each profile; profiles with the same scorer share one call."""
    found: dict[object, Score] = {}
    for profile in profiles:
        scorer = subtask.scorers[profile]
        if scorer not in found:
            found[scorer] = _score(subtask, profile, answer, truth, task_input)
    return {profile: found[subtask.scorers[profile]] for profile in profiles}


def _score(subtask: Subtask, profile: Profile, answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """Run one scorer and check that its score is finite.

    A failure is an `EditionError` if `data validate` would reject the label or input, else an `InternalError`.
    """
    cause: Exception | None = None
    try:
        score = subtask.scorers[profile](answer, truth, task_input)
        if math.isfinite(score.value):
            return score
        problem = f"returned {score.value}"
    except Exception as error:  # noqa: BLE001 - raised again below
        cause, problem = error, f"failed: {type(error).__name__}: {error}"
    if wrong := defects(subtask, truth, task_input):
        raise EditionError(f"{truth.task_id}: the label cannot be judged: {wrong[0]}; rebuild the edition") from cause
    raise InternalError(f"the {profile} scorer of {subtask.name} on {truth.task_id} {problem}") from cause
