"""Verdicts: the only place where truth meets submissions, after the agent has finished."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from finskillbench.domains import Subtask, by_method, subtask_named
from finskillbench.domains.interactive import RECORD
from finskillbench.edition.checks.labels import defects
from finskillbench.episode import JsonObject, Profile, Score, Status, Submission, Truth, Verdict
from finskillbench.errors import EditionError, InputError, InternalError
from finskillbench.garbage import relaxed_gc
from finskillbench.scoring.strict_json import InvalidSubmission, parse_submission


def judge(submission: Submission, truth: Truth, task_input: JsonObject) -> Verdict:
    """Judge one submission under every profile that its subtask defines.

    Parameters
    ----------
    submission : what came back; its text is parsed here and nowhere else.
    truth : the label of the same task.
    task_input : the episode's input at full precision (references resolved), for scorers that recompute.

    Returns
    -------
    A verdict with one finite score per profile of the subtask. Text that is no submission, or none at all, scores 0.
    A failure of the harness (`ended` "error") has no scores: it is never silently a zero. `certified`
    needs a label that carries a proof: where it does not (an imported release) the profile is left out and the
    details say so.

    Raises
    ------
    InputError : the truth names neither a known subtask nor a known verification method.
    EditionError : a scorer failed, and the label is wrong by its own second derivation or proof.
    InternalError : submission and truth belong to different tasks, or a scorer failed on a label that is right.

    Source: specification, scoring, "Parsing a submission".
    """
    if submission.task_id != truth.task_id:
        raise InternalError(f"submission of {submission.task_id} was brought to the truth of {truth.task_id}")
    subtask = _subtask(truth)
    profiles = [profile for profile in subtask.scorers if profile is not Profile.CERTIFIED or truth.proof]
    verdict = partial(Verdict, truth.task_id, subtask.name)
    if submission.ended == "error":
        return verdict(Status.ERROR, True, {}, {"reason": "the harness failed; run it again"})
    zeros = dict.fromkeys(profiles, 0.0)
    if submission.ended == "budget_exhausted":
        return verdict(Status.BUDGET_EXHAUSTED, True, zeros, {"reason": "no submission within its tokens"})
    if submission.answer is None:
        exhausted = submission.ended in ("max_turns", "out_of_calls")
        status = Status.MAX_TURNS_EXHAUSTED if exhausted else Status.INCOMPLETE_SUBMISSION
        return verdict(status, True, zeros, {"reason": f"no submission: {submission.ended}"})
    try:
        with relaxed_gc():  # 300,000 empty lists would start the search 500 times
            answer = judged_answer(submission, subtask)
            scored = _scored(subtask, profiles, answer, truth, task_input)
    except InvalidSubmission as failure:
        return verdict(Status.INVALID_SUBMISSION, False, zeros, {"reason": failure.reason})
    scores = {profile: score.value for profile, score in scored.items()}
    details = {profile.value: dict(score.details) for profile, score in scored.items()}
    for profile in subtask.scorers.keys() - scored.keys():
        details[profile.value] = {"not_judged": "the label carries no proof"}
    return verdict(Status.SCORED, True, scores, details)


def judged_answer(submission: Submission, subtask: Subtask | None) -> dict[str, Any]:
    """The answer as scorers see it: with the record of an interactive episode; empty where nothing was submitted.

    Raises
    ------
    InvalidSubmission : the text is no JSON object.
    """
    answer = {} if submission.answer is None else parse_submission(submission.answer)
    if (
        subtask is not None and subtask.open_interactive_state is not None
    ):  # an answer cannot put another record in its place
        answer = {**answer, RECORD: submission.record or {}}
    return answer


def unjudged(submission: Submission, sub_task: str) -> Verdict:
    """The verdict on a submission where nobody here holds the truth: no score, and an error of the harness as ever.

    Whether its text is JSON can be told, whether it has the right shape cannot.
    """
    if submission.ended == "error":
        reason = "the harness failed; run it again"
        return Verdict(submission.task_id, sub_task, Status.ERROR, True, {}, {"reason": reason})
    try:
        parse_submission(submission.answer or "{}")
        valid = True
    except InvalidSubmission:
        valid = False
    return Verdict(submission.task_id, sub_task, Status.UNJUDGED, valid, {}, {"reason": "the truth is withheld"})


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
    """The score under each profile; what two profiles judge alike is judged once."""
    found: dict[object, Score] = {}
    for profile in profiles:
        scorer = subtask.scorers[profile]
        if scorer not in found:
            found[scorer] = _score(subtask, profile, answer, truth, task_input)
    return {profile: found[subtask.scorers[profile]] for profile in profiles}


def _score(subtask: Subtask, profile: Profile, answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """Run one scorer; a crash or a value that is not finite must not become a score.

    It is our bug unless the label or its input is one that `data validate` refuses.
    """
    cause: Exception | None = None
    try:
        score = subtask.scorers[profile](answer, truth, task_input)
        if math.isfinite(score.value):
            return score
        problem = f"returned {score.value}"
    except Exception as error:  # noqa: BLE001 - raised again below, as whoever's fault it is
        cause, problem = error, f"failed: {type(error).__name__}: {error}"
    if wrong := defects(subtask, truth, task_input):
        raise EditionError(f"{truth.task_id}: its label cannot be judged: {wrong[0]}; rebuild the edition") from cause
    raise InternalError(f"the {profile} scorer of {subtask.name} on {truth.task_id} {problem}") from cause
