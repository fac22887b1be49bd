"""Import answers to exported tasks, of agents or people, as rows of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from finskillbench.domains import subtask_named
from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.conditions import parse_condition
from finskillbench.harness.model import Usage
from finskillbench.harness.models import canonical
from finskillbench.harness.trace import Trace
from finskillbench.integrations.task_files import ANSWER
from finskillbench.integrations.task_files.human import HumanAnswer, read_pages
from finskillbench.integrations.task_files.verify import read_plain, text_of
from finskillbench.integrations.task_files.write import FORMAT, RECORD, ExportRecord
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.rows import Row, make_row
from finskillbench.runs.verdicts import judge


def read_folders(folder: Path, names: Iterable[str]) -> dict[str, str | None]:
    """Read the answers in the named task folders; None for an absent one.

    Raises
    ------
    InputError : an answer is not a regular file, such as a link out of the folder, or cannot be read.
    """
    found: dict[str, str | None] = {}
    for name in names:
        path = folder / name / ANSWER
        if path.parent.is_symlink():
            raise InputError(f"{path.parent}: is a link; put the folder itself there")
        found[name] = text_of(read_plain(path))
    return found


HARNESS, HUMAN_HARNESS = "handout", "human"
"""Harness names of rows from task folders, and from pages for people."""
_MOST_RECORD_BYTES = 1 << 26


def is_task_export(path: Path) -> bool:
    """Return True for a folder that `export_tasks` has written."""
    return (path / RECORD).is_file()


def _read_record(folder: Path, edition: Edition) -> ExportRecord:
    """Read the record of an export; refuse a damaged one and those of another edition or format."""
    path = folder / RECORD
    try:
        record = msgspec.json.decode(read_plain(path, _MOST_RECORD_BYTES) or b"", type=ExportRecord)
        parse_condition(record.condition)
    except (msgspec.MsgspecError, ValueError) as error:
        raise InputError(f"{path}: not a record of exported tasks ({error}); restore it") from None
    if record.format != FORMAT:
        raise InputError(f"{path}: format {record.format} is of another version; this version reads format {FORMAT}")
    if record.edition != edition.digest:
        raise InputError(
            f"{path}: exported from edition {record.edition[:12]}, not from {edition.path}; pass that edition"
        )
    known = {episode.task_id for episode in edition.episodes()}
    if strange := sorted(set(record.tasks.values()) - known):
        raise InputError(f"{path}: names the task {strange[0]!r}, which is not in {edition.path}")
    if bad := sorted(name for name in record.tasks if Path(name).name != name):
        raise InputError(f"{path}: {bad[0]!r} is not a folder of the export")
    if len(set(record.tasks.values())) < len(record.tasks):
        raise InputError(f"{path}: names a task twice")
    return record


def import_answers(
    edition: Edition,
    folder: Path,
    model: str | None = None,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[Row]:
    """Judge every exported episode; one without an answer is an incomplete submission and scores 0.

    Parameters
    ----------
    edition : the exported edition, with its truth.
    folder : the export, with an `answer.json` in the folders of answered episodes, or with the files that pages saved.
    model : model name in rows; None takes the name of the folder. Rows of a participant have `human/PARTICIPANT`.
    progress : called with the number of judged answers and their total.

    Raises
    ------
    InputError : the export is damaged, an answer cannot be read, or pages were exported and a model is named.
    EditionError : the edition has no truth.
    """
    record = _read_record(folder, edition)
    if record.participants and model is not None:
        raise InputError(f"{folder}: rows of people are named after the participants; leave out --model")
    episodes = {episode.task_id: episode for episode in edition.episodes()}
    condition = parse_condition(record.condition)
    answers = list(_human_answers(folder, record) if record.participants else _folder_answers(folder, record, model))
    for done, (name, harness, task_id, answer) in enumerate(answers, 1):
        episode = episodes[task_id]
        item = Item(name, canonical({"harness": harness}), condition, task_id, 0)
        trace = _trace(item, harness, answer, record.mounts[episode.skill])
        verdict = judge(trace.submission, edition.truth(task_id), edition.full_input(episode), condition)
        method = subtask_named(verdict.sub_task).verification.method
        yield make_row(item, episode, trace, verdict, method=method, edition_digest=edition.digest)
        progress(done, len(answers))


_Answered = tuple[str, str, str, HumanAnswer | str | None]
"""Model, harness, task id and answer."""


def _folder_answers(folder: Path, record: ExportRecord, model: str | None) -> Iterator[_Answered]:
    for name, text in read_folders(folder, record.tasks).items():
        yield model or folder.absolute().name, HARNESS, record.tasks[name], text


def _human_answers(folder: Path, record: ExportRecord) -> Iterator[_Answered]:
    for participant, saved in read_pages(folder, record).items():
        for name, task_id in record.tasks.items():
            yield f"human/{participant}", HUMAN_HARNESS, task_id, saved.get(name)


def _trace(item: Item, harness: str, answer: HumanAnswer | str | None, mount: str) -> Trace:
    timed = answer if isinstance(answer, HumanAnswer) else None
    text = answer.answer if isinstance(answer, HumanAnswer) else answer
    return Trace(
        task_id=item.task_id,
        model=item.model,
        harness=harness,
        provider=None,
        condition=item.condition,
        ended="no_answer" if text is None else "submitted",
        answer=text,
        error=None,
        error_cause=None,
        incidents=("no_answer",) if text is None else (),
        messages=(),
        tools=(),
        tool_calls=(),
        model_calls=(),
        turns=0,
        retries=0,
        usage=Usage(),
        started=timed and timed.started,
        latency_seconds=timed.seconds if timed else 0.0,
        queue_seconds=timed.paused if timed else 0.0,
        retry_seconds=0.0,
        skills_loaded=(),
        scripts_run=(),
        saved_skills={},
        mount_digest=mount,
        prompt_digest="",
    )
