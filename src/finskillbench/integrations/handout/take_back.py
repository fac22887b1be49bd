"""Answers that come back in the folders of a hand-out, as the rows of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from finskillbench.domains import by_name
from finskillbench.edition import Edition
from finskillbench.errors import Cause, InputError
from finskillbench.harness.conditions import parse_condition
from finskillbench.harness.models import canonical
from finskillbench.harness.trace import Trace
from finskillbench.integrations.handout import Layout
from finskillbench.integrations.handout.answers import Answered, read_folders, read_plain, read_trials
from finskillbench.integrations.handout.write import FORMAT, RECORD, Record
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.rows import Row, make_row
from finskillbench.runs.verdicts import judge

HARNESS = "handout"
"""The harness of rows whose episodes were handed out as plain folders; that of tasks of Harbor is `Layout.HARBOR`."""
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
        record = msgspec.json.decode(read_plain(path, _MOST_RECORD_BYTES) or b"", type=Record)
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
    model: str | None = None,
    *,
    jobs: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[Row]:
    """Judge every episode of a hand-out; one without an answer is an incomplete submission, whose scores are 0.

    Parameters
    ----------
    edition : the one that was handed out, with its truth.
    folder : the hand-out, with an `answer.json` in the folders of the episodes that were answered.
    model : under which rows file whoever answered; None takes the name of the folder, or what Harbor says.
    jobs : the folder that Harbor made of a job, where the hand-out was of its tasks.
    progress : called with the answers that are judged, and all of them.

    Raises
    ------
    InputError : as of `read_record` and `read_trials`, an answer that cannot be read, or a hand-out of Harbor's tasks
        without a job, or the other way round.
    EditionError : the edition was handed out without its truth.
    """
    record = read_record(folder, edition)
    if (jobs is None) is (record.layout is Layout.HARBOR):
        told = "add --jobs with the folder of the job" if jobs is None else "leave out --jobs"
        raise InputError(f"{folder} was handed out as {record.layout.value}; {told}")
    if jobs is None:
        answered = read_folders(folder, record.tasks, model or folder.absolute().name)
    else:
        answered = read_trials(jobs, record.tasks, model)
    episodes = {episode.task_id: episode for episode in edition.episodes()}
    condition = parse_condition(record.condition)
    for done, one in enumerate(answered, 1):
        episode = episodes[record.tasks[one.folder]]
        harness = HARNESS if jobs is None else Layout.HARBOR.value
        item = Item(one.model, canonical({"harness": harness}), condition, episode.task_id, one.run_idx)
        trace = _trace(item, one, harness, record.mount)
        verdict = judge(trace.submission, edition.truth(episode.task_id), edition.full_input(episode))
        method = by_name(verdict.sub_task).method
        yield make_row(item, episode, trace, verdict, method=method, edition_digest=edition.digest)
        progress(done, len(answered))


def _trace(item: Item, one: Answered, harness: str, mount: str) -> Trace:
    """What is known of an episode that somebody played elsewhere."""
    return Trace(
        task_id=item.task_id,
        model=item.model,
        harness=harness,
        provider=None,
        condition=item.condition,
        ended=one.ended,
        answer=one.text,
        error=one.error,
        error_cause=None if one.error is None else Cause.ADAPTER.value,
        incidents=one.incidents,
        messages=(),
        tools=(),
        tool_calls=(),
        model_calls=(),
        turns=0,
        retries=0,
        usage=one.usage,
        started=one.started,
        latency_seconds=one.seconds,
        queue_seconds=0.0,
        retry_seconds=0.0,
        skills_loaded=(),
        scripts_run=(),
        saved_skills={},
        mount_digest=mount,
        prompt_digest="",
    )
