"""Rescore a run from its trajectories after a scorer changed.

Trajectories stay as they are, including old verdicts in later prompts under persistent memory. Changed rows are
appended to the journal, then the table of rows and the record with its scorer version are written. If the process is
killed in between, the record still names the old scorers, and rescoring again completes the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from finskillbench.domains import subtask_named
from finskillbench.edition import Edition
from finskillbench.episode import Episode, Profile, Status
from finskillbench.errors import InputError
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.journal import Journal, exclusive, read_history, read_trajectory
from finskillbench.runs.store.record import FILE, Rescored, RunRecord, read_record, write_record
from finskillbench.runs.store.rows import ROWS, Row, answer_digest, to_frame, with_digest, with_verdict, write_rows
from finskillbench.runs.store.version import scorer_version
from finskillbench.runs.verdicts import judge

Progress = Callable[[int, int], None]
"""Called with `(done, total)` after each episode."""


@dataclass(frozen=True, slots=True)
class Change:
    """Score of one profile of one finished episode before and now; None: no score."""

    item: Item
    sub_task: str
    profile: Profile
    before: float | None
    after: float | None
    status_before: Status
    status_after: Status

    @property
    def moved(self) -> bool:
        return (self.before, self.status_before) != (self.after, self.status_after)


@dataclass(frozen=True, slots=True)
class Group:
    """Changes of one subtask and profile: number of episodes, number that changed, and mean scores (None: no score)."""

    sub_task: str
    profile: Profile
    episodes: int
    moved: int
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Rescoring:
    """Scorer versions before and now, and the change of each profile of each episode in plan order."""

    folder: Path
    scorers_before: str
    scorers_after: str
    changes: tuple[Change, ...]

    @property
    def moved(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.moved)

    def groups(self) -> list[Group]:
        """Return changes by subtask and profile, in the order of the plan."""
        found: dict[tuple[str, Profile], list[Change]] = {}
        for change in self.changes:
            found.setdefault((change.sub_task, change.profile), []).append(change)
        return [
            Group(
                sub_task,
                profile,
                episodes=len(changes),
                moved=sum(change.moved for change in changes),
                before=_mean([change.before for change in changes]),
                after=_mean([change.after for change in changes]),
            )
            for (sub_task, profile), changes in found.items()
        ]


def read_run(folder: Path) -> RunRecord:
    """Read the record of a run folder; raise `InputError` if there is none or it is damaged."""
    if not (folder / FILE).is_file():
        raise InputError(f"{folder}: holds no run (there is no {FILE}); name the folder of a run")
    return read_record(folder)


def rescore_run(
    folder: Path, edition: Edition, *, dry_run: bool = False, progress: Progress | None = None
) -> Rescoring:
    """Judge every finished episode again with the current scorers; store changed rows and the table.

    Parameters
    ----------
    folder : run folder.
    edition : its edition, with truth.
    dry_run : write nothing.
    progress : called after each episode.

    Raises
    ------
    InputError : no run, a run in progress, another edition, or a trajectory that is missing, damaged or of another
        episode. Nothing is written then.
    EditionError : the edition has no truth.
    """
    read_run(folder)  # before the lock, which would write into a foreign folder
    with exclusive(folder):
        record = read_run(folder)
        if record.edition_digest != edition.digest:
            raise InputError(
                f"{folder}: was run on another edition ({record.edition_digest[:12]}, {edition.path} is "
                f"{edition.digest[:12]}); name its edition with --edition"
            )
        episodes = {episode.task_id: episode for episode in edition.episodes()}
        found = read_history(folder, allow_altered=True).rows
        before = {item: found[item] for item in record.in_order(found)}
        after: dict[Item, Row] = {}
        # Episode by episode, to resolve each full input once.
        for number, item in enumerate(sorted(before, key=lambda item: item.task_id), 1):
            after[item] = _rejudge(folder, before[item], edition, episodes[item.task_id])
            if progress is not None:
                progress(number, len(before))
        if not dry_run:
            with Journal(folder) as journal:
                for item, row in before.items():
                    if after[item] != row:
                        journal.append(Rescored(after[item]))
            write_rows(folder / ROWS, to_frame(after[item] for item in before))
            write_record(folder, replace(record, scorer_version=scorer_version()))
    changes = tuple(change for item in before for change in _changes(before[item], after[item]))
    return Rescoring(folder, record.scorer_version, scorer_version(), changes)


def _rejudge(folder: Path, row: Row, edition: Edition, episode: Episode) -> Row:
    """Judge the episode of a row again; an error has nothing to judge."""
    item = row.item
    path = folder / item.trajectory
    trajectory = read_trajectory(path)
    if (trajectory.item, trajectory.edition) != (item, edition.digest):
        raise InputError(f"{path}: is the trajectory of another episode; restore it or run the episode again")
    if row.status is Status.ERROR:
        return with_digest(replace(row, scorer_version=scorer_version()))
    answer = trajectory.trace.answer
    if row.answer_digest != (None if answer is None else answer_digest(answer)):
        raise InputError(f"{path}: holds another answer than the one that was judged; restore it")
    task_input = edition.full_input(episode)
    verdict = judge(trajectory.trace.submission, edition.truth(item.task_id), task_input, item.condition)
    if verdict.status is Status.ERROR:
        raise InputError(f"{path}: records an error, but its journal line has status {row.status}; restore one of them")
    return with_verdict(row, verdict, subtask_named(verdict.sub_task).verification.method)


def _changes(before: Row, after: Row) -> list[Change]:
    """Return one change per profile that has or had a score."""
    scores = [(profile, before.scores.get(profile), after.scores.get(profile)) for profile in Profile]
    return [
        Change(before.item, after.sub_task, profile, old, new, before.status, after.status)
        for profile, old, new in scores
        if old is not None or new is not None
    ]


def _mean(scores: list[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return fmean(known) if known else None
