"""Rules on the shape of a submission: JSON, keys, types, emptiness."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ValidationError

from finskillbench.episode import Status
from finskillbench.runs.postprocess.failures.attempt import FinishedAttempt
from finskillbench.runs.postprocess.failures.counts import FailureCause
from finskillbench.runs.postprocess.failures.rules.matching import DetectedCause, FailureRule, several, shown
from finskillbench.scoring.values import as_number, is_array, is_object

_MISSING, _UNKNOWN = "missing", "extra_forbidden"


def malformed(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect the status `invalid_submission`."""
    del before
    submitted = attempt.trajectory.trace.answer
    if attempt.status is Status.INVALID_SUBMISSION and submitted is not None:
        yield DetectedCause(FailureCause.MALFORMED_JSON, f"the submission begins {shown(submitted[:50])}")


def wrong_keys(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect an object with an unknown key in place of a schema key, or a value of another type."""
    del before
    if attempt.answer is None or attempt.subtask is None:
        return
    problems = _problems(attempt.subtask.answer, attempt.answer)
    for where in sorted(problems[_UNKNOWN].keys() & problems[_MISSING].keys()):
        unknown, missing = (sorted(problems[kind][where]) for kind in (_UNKNOWN, _MISSING))
        subject = f"{where} has" if where else "the answer has"
        yield DetectedCause(
            FailureCause.WRONG_KEYS, f"{subject} {several(unknown)}, and lacks {several(missing)}", explains_all=True
        )
        return
    for where, messages in problems["type"].items():
        names = sorted(messages)
        yield DetectedCause(FailureCause.WRONG_KEYS, f"{where or 'the answer'}: {names[0]}", explains_all=True)
        return
    for leaf in attempt.leaves:  # inside objects whose keys the schema leaves open
        if as_number(leaf.left) is not None and isinstance(leaf.right, str):
            evidence = f"{leaf.path}: {shown(leaf.right)} where the label has a number"
            yield DetectedCause(FailureCause.WRONG_KEYS, evidence, explains_all=True)
            return


def empty(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect an answer in which every leaf is null or empty."""
    del before
    if attempt.answer is not None and _is_empty(attempt.answer):
        shown_answer = shown(json.dumps(attempt.answer))
        yield DetectedCause(FailureCause.EMPTY_ANSWER, f"the whole answer is {shown_answer}", explains_all=True)


def _problems(schema: type[BaseModel], answer: dict[str, object]) -> dict[str, dict[str, set[str]]]:
    """Return names by place and kind of problem: missing keys, unknown keys, wrong types."""
    found: dict[str, dict[str, set[str]]] = {kind: defaultdict(set) for kind in (_MISSING, _UNKNOWN, "type")}
    try:
        schema.model_validate_json(json.dumps(answer), strict=True)
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_context=False):
            *parents, last = [""] + [str(step) for step in problem["loc"]]
            kind = problem["type"]
            if kind in (_MISSING, _UNKNOWN):
                found[kind][".".join(parents[1:])].add(last)
            elif (
                kind.endswith("_type")
                and not _is_absent(problem["input"])
                and not _both_numbers(kind, problem["input"])
            ):
                place = ".".join([*parents[1:], last])
                found["type"][place].add(
                    f"{shown(problem['input'])} where the schema says {kind.removesuffix('_type')}"
                )
    return found


def _is_absent(value: object) -> bool:
    return value is None or (isinstance(value, dict | list | str) and not value)


def _both_numbers(kind: str, value: object) -> bool:
    """Return True if a number of one kind replaces another, such as 4.0 for 4."""
    return kind in ("int_type", "float_type") and isinstance(value, int | float) and not isinstance(value, bool)


def _is_empty(value: object) -> bool:
    if is_object(value):
        return all(map(_is_empty, value.values()))
    return all(map(_is_empty, value)) if is_array(value) else value is None


RULES = (
    FailureRule((FailureCause.MALFORMED_JSON,), malformed),
    FailureRule((FailureCause.WRONG_KEYS,), wrong_keys),
    FailureRule((FailureCause.EMPTY_ANSWER,), empty),
)
