"""Judging a run again after a scorer changed, from its trajectories alone.

What an agent did and saw stays as it was; the persistent arm's later prompts told it the old verdicts. Order of
writing: each journal, then the rows, then the record with its scorer version, each beside and then renamed. Killed in
between, the record still names the old scorers, and judging again mends the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import orjson

from finskillbench.domains import by_name
from finskillbench.edition import Edition
from finskillbench.episode import Episode, Profile, Status
from finskillbench.errors import InputError
from finskillbench.harness.conditions import parse_condition
from finskillbench.runs.plan.items import Item, make_plan
from finskillbench.runs.store import record
from finskillbench.runs.store.files import write_beside
from finskillbench.runs.store.journal import exclusive, key_of, read_journal
from finskillbench.runs.store.rows import ROWS, judged_columns, to_frame, write_rows
from finskillbench.runs.store.trajectories import item_of, read_trajectory, submission_of
from finskillbench.runs.store.version import scorer_version
from finskillbench.runs.verdicts import judge

Progress = Callable[[int, int], None]
"""`(done, total)` after each episode."""


@dataclass(frozen=True, slots=True)
class Change:
    """How one profile of one finished episode was scored before and is scored now; None: the profile had no score."""

    item: Item
    sub_task: str
    profile: Profile
    before: float | None
    after: float | None
    status_before: str
    status_after: str

    @property
    def moved(self) -> bool:
        """Whether the score or the status differs."""
        return (self.before, self.status_before) != (self.after, self.status_after)


@dataclass(frozen=True, slots=True)
class Group:
    """The changes of one subtask and profile: scored episodes, how many moved, and the means (None: no score)."""

    sub_task: str
    profile: Profile
    episodes: int
    moved: int
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Rescored:
    """What judging again found: scorer versions before and now, and every profile of every episode in plan order."""

    folder: Path
    scorers_before: str
    scorers_after: str
    changes: tuple[Change, ...]

    @property
    def moved(self) -> tuple[Change, ...]:
        """The changes that are some."""
        return tuple(change for change in self.changes if change.moved)

    def groups(self) -> list[Group]:
        """Changes by subtask and profile, in the order of the plan."""
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


def read_record(folder: Path) -> dict[str, Any]:
    """The record of a run folder.

    Raises
    ------
    InputError : the folder holds no run, or its record is damaged.
    """
    path = folder / record.FILE
    if not path.is_file():
        raise InputError(f"{folder}: holds no run (there is no {record.FILE}); name the folder of a run")
    content = record.read_record(path)
    for name in ("edition_path", "edition_digest", "scorer_version"):
        if not isinstance(content.get(name), str):
            raise InputError(f"{path}: not a run record ({name} is {content.get(name)!r:.60}); restore it")
    return content


def rescore(folder: Path, edition: Edition, *, dry_run: bool = False, progress: Progress | None = None) -> Rescored:
    """Judge every finished episode of a run again with today's scorers, and write its journals and rows anew.

    Parameters
    ----------
    folder : the run folder.
    edition : the edition it was run on, with its truth.
    dry_run : write nothing.
    progress : called after each episode.

    Raises
    ------
    InputError : no run, a run in progress, another edition, or a trajectory that is missing, damaged or of another
        episode. Nothing is written then.
    EditionError : the edition was handed out without its truth.
    """
    read_record(folder)  # before the lock, which would be a file in a folder that holds no run
    with exclusive(folder):
        begun = read_record(folder)
        if begun["edition_digest"] != edition.digest:
            raise InputError(
                f"{folder}: was run on another edition ({begun['edition_digest'][:12]}, {edition.path} is "
                f"{edition.digest[:12]}); name its edition with --edition"
            )
        episodes = {episode.task_id: episode for episode in edition.episodes()}
        lines = _lines(folder, begun, edition)
        rows: dict[Item, dict[str, Any]] = {}
        changes: list[Change] = []
        # Episode by episode, so that an input at full precision is resolved once.
        for number, item in enumerate(sorted(lines, key=lambda item: item.task_id), 1):
            rows[item] = _judged(folder, item, lines[item], edition, episodes[item.task_id])
            if progress is not None:
                progress(number, len(lines))
        for item, line in lines.items():
            changes += _changes(item, line, rows[item])
        if not dry_run:
            for path in sorted((folder / "journal").glob("*.jsonl")):
                _rewrite(path, rows)
            write_rows(folder / ROWS, to_frame([rows[item] for item in lines]))
            now = {**begun, "scorer_version": scorer_version()}
            option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
            write_beside(folder / record.FILE, orjson.dumps(now, option=option), durable=True)
    return Rescored(folder, begun["scorer_version"], scorer_version(), tuple(changes))


def _lines(folder: Path, begun: Mapping[str, Any], edition: Edition) -> dict[Item, dict[str, Any]]:
    """The last journal line of every planned item, in plan order."""
    try:
        arguments = begun["arguments"]
        plan = make_plan(
            edition.episodes(arguments["subtasks"]),
            arguments["models"],
            [parse_condition(name) for name in arguments["conditions"]],
            limit=arguments["limit"],
            epochs=arguments["epochs"],
        )
        planned = begun["plan"]["digest"]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder / record.FILE}: not a run record ({error!r}); restore it") from error
    if plan.digest != planned:
        raise InputError(f"{folder / record.FILE}: its arguments are not those of its plan; restore it")
    found: dict[Item, dict[str, Any]] = {}
    for arm in sorted({item.arm for item in plan.items}):
        found.update(read_journal(folder / "journal" / f"{arm}.jsonl"))
    return {item: found[item] for item in plan.items if item in found}


def _judged(folder: Path, item: Item, line: Mapping[str, Any], edition: Edition, episode: Episode) -> dict[str, Any]:
    """The row of an item as today's scorers judge it; an episode that ended in an error has nothing to judge."""
    path = folder / item.trajectory
    content = read_trajectory(path)
    if (item_of(content), content["edition"]) != (item, edition.digest):
        raise InputError(f"{path}: is the trajectory of another episode; restore it or run the episode again")
    if line["status"] == Status.ERROR.value:
        return {**line, "scorer_version": scorer_version()}
    verdict = judge(submission_of(content), edition.truth(item.task_id), edition.full_input(episode))
    if verdict.status is Status.ERROR:
        raise InputError(f"{path}: ended in an error and its journal line says {line['status']}; restore one of them")
    return {**line, **judged_columns(verdict, by_name(verdict.sub_task).method)}


def _changes(item: Item, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """One change per profile that has or had a score."""
    scores = [(profile, before["scores"].get(profile.value), after["scores"].get(profile.value)) for profile in Profile]
    return [
        Change(item, after["sub_task"], profile, old, new, before["status"], after["status"])
        for profile, old, new in scores
        if old is not None or new is not None
    ]


def _rewrite(path: Path, rows: Mapping[Item, Mapping[str, Any]]) -> None:
    """Put new rows into a journal in the place of each item's last line; the lines before it stay, a torn one goes."""
    read_journal(path, mend=True)
    lines = path.read_bytes().splitlines()
    last: dict[Item, int] = {}
    for number, line in enumerate(lines):
        last[key_of(orjson.loads(line))] = number
    for item, number in last.items():
        if item in rows:
            lines[number] = orjson.dumps(rows[item])
    write_beside(path, b"".join(line + b"\n" for line in lines), durable=True)


def _mean(scores: list[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return fmean(known) if known else None
