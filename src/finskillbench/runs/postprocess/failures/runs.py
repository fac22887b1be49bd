"""Tables of failures and of script use in a run, and the explanation of one trajectory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from finskillbench.edition import Edition, load_edition
from finskillbench.edition.store import MANIFEST
from finskillbench.episode import Episode, Profile, Status
from finskillbench.errors import InputError
from finskillbench.garbage import relaxed_gc
from finskillbench.runs.postprocess.failures.attempt import FinishedAttempt, LabelledTask, OutputUse, output_use
from finskillbench.runs.postprocess.failures.counts import cause_rank
from finskillbench.runs.postprocess.failures.rules import RULES
from finskillbench.runs.postprocess.failures.rules.matching import DetectedCause
from finskillbench.runs.postprocess.rescore import read_run
from finskillbench.runs.store.journal import Trajectory, read_history, read_trajectory
from finskillbench.runs.store.rows import Row


@dataclass(frozen=True, slots=True)
class Failure:
    """Causes of one failed episode.

    cause, causes : primary cause and all causes, in the order of `FailureCause`.
    evidence : one sentence with values for the primary cause.
    output_use : use of script outputs in the submission.
    not_tried : causes that need the edition's truth.
    """

    cause: str
    causes: tuple[str, ...]
    evidence: str
    output_use: OutputUse
    not_tried: tuple[str, ...]


def explain_failure(trajectory: Trajectory, status: Status, task: LabelledTask | None = None) -> Failure:
    """Explain an episode without full marks, given the status of its row; without `task`, omit rules on the label."""
    attempt = FinishedAttempt(trajectory, status, task)
    found: list[DetectedCause] = []
    not_tried: set[str] = set()
    for rule in RULES:
        if rule.needs_truth and task is None:
            not_tried.update(rule.causes)
        else:
            found.extend(rule.find(attempt, found))
    found.sort(key=lambda each: cause_rank(each.cause))
    causes = tuple(dict.fromkeys(each.cause for each in found))
    return Failure(
        cause=causes[0],
        causes=causes,
        # Names written by a model may contain characters that no text file can.
        evidence=found[0].evidence.encode("utf-8", "backslashreplace").decode(),
        output_use=output_use(attempt.answer, attempt.runs),
        not_tried=tuple(sorted(not_tried - set(causes), key=cause_rank)),
    )


FULL_MARKS = 1.0 - 1e-9
_KEYS = {"model": pl.String, "arguments": pl.String, "condition": pl.String, "task_id": pl.String, "run_idx": pl.Int64}
FAILURES = {
    **_KEYS,
    "domain": pl.String,
    "sub_task": pl.String,
    "status": pl.String,
    "score": pl.Float64,
    "cause": pl.String,
    "causes": pl.List(pl.String),
    "evidence": pl.String,
    "output_use": pl.String,
    "not_tried": pl.List(pl.String),
}
"""Columns of `failures_of`."""
USE = {**_KEYS, "skill_loaded": pl.Boolean, "script_run": pl.Boolean, "output_use": pl.String}
"""Columns of `use_of`."""


def failures_of(run_folder: Path, edition: Edition | Path | None = None) -> pl.DataFrame:
    """Explain each episode of a run without full marks.

    Parameters
    ----------
    run_folder : run folder with trajectories.
    edition : edition of the run; None: the folder that the run used, if it still exists. Without truth, rules that need
        it are omitted and `not_tried` lists their causes.

    Returns
    -------
    Table with the columns of `FAILURES`, in the order of the plan; `score` is certified if available.

    Raises
    ------
    InputError : no run, another edition, or a trajectory that is missing, damaged or of another episode.
    """
    found = edition_of(run_folder, edition)
    failed = [row for row in rows_of(run_folder) if not is_right(row)]
    tasks: dict[str, LabelledTask] = {}
    if found is not None:
        wanted = {row.task_id for row in failed}
        tasks = {each.task_id: labelled_task(found, each) for each in found.episodes() if each.task_id in wanted}
    lines: list[tuple[object, ...]] = []
    with relaxed_gc():
        for row in failed:
            failure = explain_failure(trajectory_of(run_folder, row), row.status, tasks.get(row.task_id))
            lines.append((*_key(row), row.domain, row.sub_task, row.status.value, _certified(row), *_values(failure)))
    return _frame(lines, FAILURES)


def use_of(run_folder: Path) -> pl.DataFrame:
    """Tabulate the use of skills, one line per row, with the columns of `USE`; see `attempt.output_use`.

    Raises `InputError` if there is no run, or a trajectory is missing, damaged or of another episode.
    """
    lines: list[tuple[object, ...]] = []
    with relaxed_gc():
        for row in rows_of(run_folder):
            use = "none"
            if row.scripts_run:  # other trajectories have no outputs
                attempt = FinishedAttempt(trajectory_of(run_folder, row), row.status)
                use = output_use(attempt.answer, attempt.runs)
            lines.append((*_key(row), bool(row.skills_loaded), bool(row.scripts_run), use))
    return _frame(lines, USE)


def rows_of(run_folder: Path) -> list[Row]:
    """Return the rows of a run in the order of its plan; raise `InputError` for a damaged or altered journal."""
    record = read_run(run_folder)
    rows = read_history(run_folder).rows
    return [rows[item] for item in record.in_order(rows)]


def is_right(row: Row) -> bool:
    """Return True if a row has full marks under `certified`, else under its own profile."""
    score = _certified(row)
    return row.status is Status.SCORED and score is not None and score >= FULL_MARKS


def _certified(row: Row) -> float | None:
    """Return the score under `certified`, else the score of the row; None for errors."""
    score = row.scores.get(Profile.CERTIFIED)
    return row.score if score is None else score


def edition_of(run_folder: Path, edition: Edition | Path | None) -> Edition | None:
    """Return the edition of a run with its truth; None if it is gone, replaced or without truth.

    Raises `InputError` if the named edition is not that of the run.
    """
    record = read_run(run_folder)
    if isinstance(edition, Edition):
        found = edition
    else:
        path = edition or Path(record.edition_path)
        if edition is None and not (path / MANIFEST).is_file():
            return None
        found = load_edition(path)
    if found.digest != record.edition_digest:
        if edition is None:
            return None
        raise InputError(
            f"{found.path}: is another edition ({found.digest[:12]}) than that of {run_folder} "
            f"({record.edition_digest[:12]}); name the edition that it was run on"
        )
    return found if found.has_truth else None


def labelled_task(edition: Edition, episode: Episode) -> LabelledTask:
    """Return label and input of an episode."""
    return LabelledTask(edition.truth(episode.task_id), edition.full_input(episode))


def trajectory_of(run_folder: Path, row: Row) -> Trajectory:
    """Read the trajectory of a row; raise `InputError` if it is missing, damaged or of another episode."""
    path = run_folder / row.item.trajectory
    trajectory = read_trajectory(path)
    if (trajectory.item, trajectory.edition) != (row.item, row.edition):
        raise InputError(f"{path}: is the trajectory of another episode; restore it or run the episode again")
    return trajectory


def _frame(lines: Sequence[Sequence[object]], schema: Mapping[str, type[pl.DataType] | pl.DataType]) -> pl.DataFrame:
    """Build the table by columns, since Polars takes rows with lists one by one."""
    return pl.DataFrame(
        {name: [line[place] for line in lines] for place, name in enumerate(schema)}, schema=dict(schema)
    )


def _values(failure: Failure) -> Iterator[object]:
    yield from (failure.cause, list(failure.causes), failure.evidence, failure.output_use, list(failure.not_tried))


def _key(row: Row) -> tuple[object, ...]:
    return (row.model, row.arguments, row.condition, row.task_id, row.run_idx)
