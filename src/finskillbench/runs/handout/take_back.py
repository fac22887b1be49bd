"""Answers that come back in the folders of a hand-out, as the rows of a run."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from finskillbench.domains import by_name
from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.conditions import parse_condition
from finskillbench.harness.model import Usage
from finskillbench.harness.trace import Trace
from finskillbench.runs.handout.write import ANSWER, FORMAT, RECORD, Record
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.rows import Row, make_row
from finskillbench.runs.verdicts import judge
from finskillbench.scoring.strict_json import MAX_BYTES

HARNESS = "handout"
"""The harness of rows whose episodes were handed out as folders."""
_MOST_RECORD_BYTES = 1 << 26


def is_handout(path: Path) -> bool:
    """Whether a path is a hand-out that came back."""
    return (path / RECORD).is_file()


def read_record(folder: Path, edition: Edition) -> Record:
    """The record of a hand-out of an edition.

    Raises
    ------
    InputError : it is damaged, of another edition or of a later format, or names what the edition does not have.
    """
    path = folder / RECORD
    try:
        record = msgspec.json.decode(_plain(path, _MOST_RECORD_BYTES) or b"", type=Record)
        parse_condition(record.condition)
    except (msgspec.MsgspecError, ValueError) as error:
        raise InputError(f"{path}: no record of a hand-out ({error}); restore it") from None
    if record.format != FORMAT:
        raise InputError(f"{path}: format {record.format} is of another version, this one reads {FORMAT}")
    if record.edition != edition.digest:
        raise InputError(f"{path}: handed out of edition {record.edition[:12]}, not of {edition.path}; score with that")
    known = {episode.task_id for episode in edition.episodes()}
    if strange := sorted(set(record.tasks.values()) - known):
        raise InputError(f"{path}: names the task {strange[0]!r}, which is not in {edition.path}")
    if bad := sorted(name for name in record.tasks if Path(name).name != name):
        raise InputError(f"{path}: {bad[0]!r} is no folder of a hand-out")
    if len(set(record.tasks.values())) < len(record.tasks):
        raise InputError(f"{path}: names a task twice")
    return record


def take_back(
    edition: Edition,
    folder: Path,
    model: str,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[Row]:
    """Judge every episode of a hand-out; one without an answer is an incomplete submission, whose scores are 0.

    Parameters
    ----------
    edition : the one that was handed out, with its truth.
    folder : the hand-out, with an `answer.json` in the folders of the episodes that were answered.
    model : under which rows file whoever answered.
    progress : called with the episodes that are judged, and all of them.

    Raises
    ------
    InputError : as of `read_record`, or an answer that cannot be read.
    EditionError : the edition was handed out without its truth.
    """
    record = read_record(folder, edition)
    episodes = {episode.task_id: episode for episode in edition.episodes()}
    for done, (name, task_id) in enumerate(record.tasks.items(), 1):
        episode = episodes[task_id]
        item = Item(model, parse_condition(record.condition), task_id, 0)
        trace = _trace(item, _answer(folder / name / ANSWER), record.mount)
        verdict = judge(trace.submission, edition.truth(task_id), edition.full_input(episode))
        method = by_name(verdict.sub_task).method
        yield make_row(item, episode, trace, verdict, method=method, edition_digest=edition.digest)
        progress(done, len(record.tasks))


def _trace(item: Item, answer: str | None, mount: str) -> Trace:
    """What is known of an episode that somebody played elsewhere: its answer."""
    return Trace(
        task_id=item.task_id,
        model=item.model,
        harness=HARNESS,
        condition=item.condition,
        ended="no_answer" if answer is None else "submitted",
        answer=answer,
        error=None,
        error_cause=None,
        incidents=("no_answer",) if answer is None else (),
        messages=(),
        tools=(),
        tool_calls=(),
        model_calls=(),
        turns=0,
        retries=0,
        usage=Usage(),
        latency_seconds=0.0,
        skills_loaded=(),
        scripts_run=(),
        saved_skills={},
        mount_digest=mount,
        prompt_digest="",
    )


def _answer(path: Path) -> str | None:
    """The text of an answer; None where there is none. What no submission can be is judged as one that is none."""
    data = _plain(path, MAX_BYTES + 1)
    # A byte that is no UTF-8 becomes a lone surrogate, which the judge refuses.
    return None if data is None or not data.strip() else data.decode("utf-8", "surrogateescape")


def _plain(path: Path, most: int) -> bytes | None:
    """The first bytes of a plain file; None where nothing is there.

    Raises
    ------
    InputError : it is something else, such as a link out of the folder or a pipe, or it cannot be read.
    """
    try:
        if not path.parent.is_symlink() and not stat.S_ISREG(path.lstat().st_mode):
            raise InputError(f"{path}: no plain file; put the answer itself there")
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(most)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
