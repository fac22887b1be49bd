"""The failures of a whole run as a table, and how its scripts' outputs were used.

One trajectory that did not earn full marks: every cause that applies, the primary one first.
"""

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
from finskillbench.runs.postprocess.failures.attempt import Attempt, Known, OutputUse, output_use
from finskillbench.runs.postprocess.failures.counts import place_of
from finskillbench.runs.postprocess.failures.rules import RULES
from finskillbench.runs.postprocess.failures.rules.matching import Found
from finskillbench.runs.postprocess.rescore import read_run
from finskillbench.runs.store.journal import Trajectory, read_history, read_trajectory
from finskillbench.runs.store.rows import Row


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one episode did not earn full marks.

    cause : the primary one, by the order of `FailureCause`.
    causes : all that apply, in that order.
    evidence : one sentence with the values, of the primary cause.
    output_use : what of the scripts' outputs was submitted.
    not_tried : causes that no rule could look for without the edition's truth.
    """

    cause: str
    causes: tuple[str, ...]
    evidence: str
    output_use: OutputUse
    not_tried: tuple[str, ...]


def explain(trajectory: Trajectory, status: Status, known: Known | None = None) -> Failure:
    """Say why an episode that did not earn full marks failed; whether it did is for its row to say.

    Parameters
    ----------
    trajectory : what was said and done.
    status : that of its row.
    known : what its edition knows of the task; without it the rules that need a label are left out.
    """
    attempt = Attempt(trajectory, status, known)
    found: list[Found] = []
    not_tried: set[str] = set()
    for rule in RULES:
        if rule.needs_truth and known is None:
            not_tried.update(rule.causes)
        else:
            found.extend(rule.find(attempt, found))
    found.sort(key=lambda each: place_of(each.cause))
    causes = tuple(dict.fromkeys(each.cause for each in found))
    return Failure(
        cause=causes[0],
        causes=causes,
        # Names that a model wrote may hold what no text file can.
        evidence=found[0].evidence.encode("utf-8", "backslashreplace").decode(),
        output_use=output_use(attempt.answer, attempt.runs),
        not_tried=tuple(sorted(not_tried - set(causes), key=place_of)),
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
    """Why the episodes of a run failed: a line for each whose row is not fully right.

    Parameters
    ----------
    run_folder : the folder of a run, with its trajectories.
    edition : the one it was run on; None takes the one that the run was made from, if it is still there. Without its
        truth the rules that need it are not tried, and `not_tried` names their causes.

    Returns
    -------
    The columns of `FAILURES`, in the order of the plan: the keys of the row, its domain, subtask, status and score
    (certified where there is one), then those of `Failure`.

    Raises
    ------
    InputError : no run, another edition, or a trajectory that is missing, damaged or of another episode.
    """
    found = edition_of(run_folder, edition)
    failed = [row for row in rows_of(run_folder) if not is_right(row)]
    known: dict[str, Known] = {}
    if found is not None:
        wanted = {row.task_id for row in failed}
        known = {each.task_id: known_of(found, each) for each in found.episodes() if each.task_id in wanted}
    lines: list[tuple[object, ...]] = []
    with relaxed_gc():
        for row in failed:
            failure = explain(trajectory_of(run_folder, row), row.status, known.get(row.task_id))
            lines.append((*_key(row), row.domain, row.sub_task, row.status.value, _certified(row), *_values(failure)))
    return _frame(lines, FAILURES)


def use_of(run_folder: Path) -> pl.DataFrame:
    """How skills were used in a run: a line for each row, right or wrong, with the columns of `USE`.

    `output_use` is "unchanged", "altered" or "none", as of `calls.output_use`.

    Raises
    ------
    InputError : no run, or a trajectory that is missing, damaged or of another episode.
    """
    lines: list[tuple[object, ...]] = []
    with relaxed_gc():
        for row in rows_of(run_folder):
            use = "none"
            if row.scripts_run:  # no other trajectory holds an output
                attempt = Attempt(trajectory_of(run_folder, row), row.status)
                use = output_use(attempt.answer, attempt.runs)
            lines.append((*_key(row), bool(row.skills_loaded), bool(row.scripts_run), use))
    return _frame(lines, USE)


def rows_of(run_folder: Path) -> list[Row]:
    """The rows of a run in the order of its plan.

    Raises
    ------
    InputError : no run, or its journal is damaged or was altered.
    """
    record = read_run(run_folder)
    rows = read_history(run_folder).rows
    return [rows[item] for item in record.in_order(rows)]


def is_right(row: Row) -> bool:
    """Whether a row earned full marks: under `certified`, or the first profile that its subtask has."""
    score = _certified(row)
    return row.status is Status.SCORED and score is not None and score >= FULL_MARKS


def _certified(row: Row) -> float | None:
    """The score under `certified`, else the row's own; None under the status `error`."""
    score = row.scores.get(Profile.CERTIFIED)
    return row.score if score is None else score


def edition_of(run_folder: Path, edition: Edition | Path | None) -> Edition | None:
    """The edition of a run with its truth; None where it is no longer there, was replaced, or has no truth.

    Raises
    ------
    InputError : the edition that was named is another one.
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


def known_of(edition: Edition, episode: Episode) -> Known:
    """What an edition with its truth knows of an episode."""
    return Known(edition.truth(episode.task_id), edition.full_input(episode))


def trajectory_of(run_folder: Path, row: Row) -> Trajectory:
    """The trajectory of a row.

    Raises
    ------
    InputError : it is missing, damaged or of another episode.
    """
    path = run_folder / row.item.trajectory
    trajectory = read_trajectory(path)
    if (trajectory.item, trajectory.edition) != (row.item, row.edition):
        raise InputError(f"{path}: is the trajectory of another episode; restore it or run the episode again")
    return trajectory


def _frame(lines: Sequence[Sequence[object]], schema: Mapping[str, type[pl.DataType] | pl.DataType]) -> pl.DataFrame:
    """A table of lines; by columns, as Polars takes rows with lists one by one."""
    return pl.DataFrame(
        {name: [line[place] for line in lines] for place, name in enumerate(schema)}, schema=dict(schema)
    )


def _values(failure: Failure) -> Iterator[object]:
    yield from (failure.cause, list(failure.causes), failure.evidence, failure.output_use, list(failure.not_tried))


def _key(row: Row) -> tuple[object, ...]:
    return (row.model, row.arguments, row.condition, row.task_id, row.run_idx)
