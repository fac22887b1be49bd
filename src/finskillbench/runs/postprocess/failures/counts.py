"""Causes of failure, their counts and examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from finskillbench.harness.models import NO_ARGUMENTS
from finskillbench.runs.plan.items import Item, condition_rank


class FailureCause(StrEnum):
    """Cause of less than full marks, in the order of fixing; the first that applies is the primary one.

    Earlier causes hide later ones: without a submission, for example, its values are unknown. A subtask's own causes
    (`Examples.misreadings`) rank with `wrong_period`.
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
    FailureCause.STOPPED_EARLY: "the agent ended without a submission",
    FailureCause.MALFORMED_JSON: "the submission is not a JSON object",
    FailureCause.WRONG_KEYS: "keys or types of values differ from the schema",
    FailureCause.EMPTY_ANSWER: "every value is null, or the answer is empty",
    FailureCause.SKILL_NOT_LOADED: "the skill of the task was available and not loaded",
    FailureCause.SKILL_IGNORED: "the skill was loaded and no script run, or the script's right result not submitted",
    FailureCause.WRONG_SCRIPT: "scripts were run, but never the one of the task",
    FailureCause.WRONG_FIELD: "the script of the task got a wrong field or lacked one",
    FailureCause.PRECISION_LOST: "numbers were rounded or truncated, in the answer or in the input of a script",
    FailureCause.WRONG_UNIT: "numbers are off by a factor of units or by the sign",
    FailureCause.WRONG_PERIOD: "the answer is that of another period on file",
    FailureCause.LOOK_AHEAD: "a tool was queried for data after the task's date",
    FailureCause.DATA_NOT_READ: "fields that the prompt does not print were never read",
    FailureCause.WRONG_CHOICE: "verdicts, names or counts are wrong, and every other number is right",
    FailureCause.ARITHMETIC: "numbers are wrong, and nothing above explains them",
    FailureCause.PARTIAL_ANSWER: "some parts are right, others omitted or null",
    FailureCause.UNEXPLAINED: "no applicable rule explains it",
}
"""Description of each cause."""

_PLACES = {cause.value: place for place, cause in enumerate(FailureCause)}


def cause_rank(cause: str) -> tuple[int, str]:
    """Sort key of a cause; a subtask's own causes rank with `wrong_period`."""
    return _PLACES.get(cause, _PLACES[FailureCause.WRONG_PERIOD]), cause


def meaning(cause: str) -> str:
    """Describe a cause; the name of a subtask's own cause is its description."""
    return MEANINGS[FailureCause(cause)] if cause in _PLACES else cause.replace("_", " ")


_GROUP = ["model", "arguments", "cause", "condition"]


class _Example(NamedTuple):
    """Failed episode with its primary cause, the evidence, and the command that shows it."""

    cause: str
    model: str
    condition: str
    task_id: str
    evidence: str
    command: str


def count_causes(failures: pl.DataFrame) -> pl.DataFrame:
    """Count episodes by primary cause (`primary`) and by any cause (`applies`), from the result of `failures_of`.

    Rows are per model, arguments, cause and condition; models in order of appearance, causes in that of `FailureCause`.
    """
    applies = failures.drop("cause").explode("causes").rename({"causes": "cause"})
    counted = applies.group_by(_GROUP).agg(applies=pl.len().cast(pl.Int64))
    first = failures.group_by(_GROUP).agg(primary=pl.len().cast(pl.Int64))
    both = counted.join(first, on=_GROUP, how="left").with_columns(pl.col("primary").fill_null(0))
    model_order = {
        key: index
        for index, key in enumerate(failures.select("model", "arguments").unique(maintain_order=True).iter_rows())
    }
    lines = sorted(
        both.select(*_GROUP, "primary", "applies").rows(),
        key=lambda line: (model_order[line[0], line[1]], cause_rank(line[2]), condition_rank(line[3])),
    )
    return pl.DataFrame(lines, schema=both.select(*_GROUP, "primary", "applies").schema, orient="row")


def examples(run_folder: Path, failures: pl.DataFrame, most: int) -> Iterator[_Example]:
    """Yield up to `most` episodes per primary cause, from as many subtasks as possible, in the order of causes."""
    for cause in sorted(failures["cause"].unique(), key=cause_rank):
        lines = failures.filter(pl.col("cause") == cause)
        varied = lines.with_columns(turn=pl.int_range(pl.len()).over("sub_task")).sort("turn", maintain_order=True)
        for line in varied.head(most).iter_rows(named=True):
            yield _Example(
                cause,
                line["model"],
                line["condition"],
                line["task_id"],
                line["evidence"],
                show_command(run_folder, line),
            )


def show_command(run_folder: Path, line: dict[str, Any]) -> str:
    """Return the command that shows the episode of a line of `failures_of`."""
    if line["arguments"] != NO_ARGUMENTS:  # `show` separates arguments of one model by file only
        item = Item(*(line[name] for name in ("model", "arguments", "condition", "task_id", "run_idx")))
        return f"finskillbench show {run_folder / item.trajectory}"
    which = f"--model {line['model']} --condition {line['condition']} --run-idx {line['run_idx']}"
    return f"finskillbench show {run_folder} {line['task_id']} {which}"


def select_failures(failures: pl.DataFrame, models: Sequence[str], conditions: Sequence[str]) -> pl.DataFrame:
    """Return the failures of some models and conditions; all if none is named."""
    for column, names in (("model", models), ("condition", conditions)):
        if names:
            failures = failures.filter(pl.col(column).is_in(list(names)))
    return failures
