"""The causes of failure, in the order in which they would have to be mended."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class FailureCause(StrEnum):
    """Why an episode did not earn full marks; the first that applies is the primary one.

    What comes earlier hides what comes later: where nothing was submitted nobody can say what was computed. A subtask's
    own causes (`Examples.misreadings`) stand where `wrong_period` does.
    """

    HARNESS_ERROR = "harness_error"
    TOOL_ERROR_LOOP = "tool_error_loop"
    OUT_OF_TURNS = "out_of_turns"
    OUT_OF_BUDGET = "out_of_budget"
    STOPPED_EARLY = "stopped_early"
    MALFORMED_JSON = "malformed_json"
    WRONG_KEYS = "wrong_keys"
    EMPTY_ANSWER = "empty_answer"
    SKILL_NOT_LOADED = "skill_not_loaded"
    SKILL_IGNORED = "skill_ignored"
    WRONG_SCRIPT = "wrong_script"
    WRONG_FIELD = "wrong_field"
    PRECISION_LOST = "precision_lost"
    WRONG_UNIT = "wrong_unit"
    WRONG_PERIOD = "wrong_period"
    LOOK_AHEAD = "look_ahead"
    DATA_NOT_READ = "data_not_read"
    WRONG_CHOICE = "wrong_choice"
    ARITHMETIC = "arithmetic"
    PARTIAL_ANSWER = "partial_answer"
    UNEXPLAINED = "unexplained"


MEANINGS: Mapping[FailureCause, str] = {
    FailureCause.HARNESS_ERROR: "the harness or the provider failed; run it again",
    FailureCause.TOOL_ERROR_LOOP: "the same failing call three times or more",
    FailureCause.OUT_OF_TURNS: "turns or calls used up without a submission",
    FailureCause.OUT_OF_BUDGET: "tokens, time or the model's context used up without a submission",
    FailureCause.STOPPED_EARLY: "ended by itself without a submission",
    FailureCause.MALFORMED_JSON: "the submission is no JSON object",
    FailureCause.WRONG_KEYS: "other keys, or other types of values, than the schema's",
    FailureCause.EMPTY_ANSWER: "every value is null, or nothing is there",
    FailureCause.SKILL_NOT_LOADED: "the skill of the task was on offer and not loaded",
    FailureCause.SKILL_IGNORED: "the skill was loaded and no script run, or the script's right result not submitted",
    FailureCause.WRONG_SCRIPT: "scripts were run, and never the one of the task",
    FailureCause.WRONG_FIELD: "the script of the task got a wrong field, or lacked one",
    FailureCause.PRECISION_LOST: "numbers were rounded or cut off, in the answer or on the way into a script",
    FailureCause.WRONG_UNIT: "numbers are off by a factor of units or by the sign",
    FailureCause.WRONG_PERIOD: "the answer is that of another period on file",
    FailureCause.LOOK_AHEAD: "a tool was asked for what lies after the task's date",
    FailureCause.DATA_NOT_READ: "fields that the prompt does not print were never read",
    FailureCause.WRONG_CHOICE: "verdicts, names or counts are wrong, and every other number right",
    FailureCause.ARITHMETIC: "numbers are wrong, and nothing above explains them",
    FailureCause.PARTIAL_ANSWER: "some parts are right, others left out or null",
    FailureCause.UNEXPLAINED: "no rule that could be tried explains it",
}
"""What each cause means, in one phrase."""

_PLACES = {cause.value: place for place, cause in enumerate(FailureCause)}


def place_of(cause: str) -> tuple[int, str]:
    """Where a cause stands among others; one of a subtask's own stands with `wrong_period`."""
    return _PLACES.get(cause, _PLACES[FailureCause.WRONG_PERIOD]), cause


def meaning(cause: str) -> str:
    """What a cause means; one of a subtask's own says it by its name."""
    return MEANINGS[FailureCause(cause)] if cause in _PLACES else cause.replace("_", " ")
