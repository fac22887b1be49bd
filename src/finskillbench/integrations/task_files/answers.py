"""Import answers from exported task folders or from trials of a Harbor job, as rows of a run."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec

from finskillbench.domains import subtask_named
from finskillbench.edition import Edition
from finskillbench.errors import Cause, InputError
from finskillbench.harness.conditions import parse_condition
from finskillbench.harness.model import Usage
from finskillbench.harness.models import canonical
from finskillbench.harness.trace import Ended, Trace
from finskillbench.integrations.task_files import Layout
from finskillbench.integrations.task_files.write import ANSWER, FORMAT, RECORD, ExportRecord
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.rows import Row, make_row
from finskillbench.runs.verdicts import judge
from finskillbench.scoring.strict_json import MAX_BYTES

RESULT = Path("result.json")
KEPT = Path("artifacts") / ANSWER
"""Path of the answer that Harbor keeps, below the folder of a trial."""
_MOST_RESULT_BYTES = 1 << 26
_TIMEOUT = "AgentTimeoutError"

_Tokens = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedAnswer:
    """Answer of one task folder, if any; `error` is the reason why the agent did not start."""

    folder: str
    model: str
    text: str | None
    run_idx: int = 0
    ended: Ended = "submitted"
    error: str | None = None
    usage: Usage = field(default_factory=Usage)
    started: datetime | None = None
    seconds: float = 0.0

    @property
    def incidents(self) -> tuple[str, ...]:
        """Causes by their names in the table of failures."""
        if self.error is not None:
            return (Cause.ADAPTER.value,)
        return () if self.ended == "submitted" else (self.ended,)


def read_folders(folder: Path, names: Iterable[str], model: str) -> list[ImportedAnswer]:
    """Read the answers in the named task folders.

    Raises
    ------
    InputError : an answer is not a regular file, such as a link out of the folder, or cannot be read.
    """
    found: list[ImportedAnswer] = []
    for name in names:
        path = folder / name / ANSWER
        if path.parent.is_symlink():
            raise InputError(f"{path.parent}: is a link; put the folder itself there")
        text = _text(read_plain(path, MAX_BYTES + 1))
        found.append(
            ImportedAnswer(folder=name, model=model, text=text, ended="no_answer" if text is None else "submitted")
        )
    return found


class _Context(msgspec.Struct):
    n_input_tokens: _Tokens | None = None
    n_cache_tokens: _Tokens | None = None
    n_output_tokens: _Tokens | None = None
    cost_usd: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None


class _Timing(msgspec.Struct):
    """Start and end; times without a zone are UTC."""

    started_at: datetime | None = None
    finished_at: datetime | None = None

    def __post_init__(self) -> None:
        self.started_at, self.finished_at = map(_in_utc, (self.started_at, self.finished_at))

    @property
    def seconds(self) -> float:
        """Seconds from start to end; 0 if either is unknown."""
        if self.started_at is None or self.finished_at is None:
            return 0.0
        return (self.finished_at - self.started_at).total_seconds()


def _in_utc(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    if not 1970 <= moment.year < 9999:
        raise ValueError(f"the year {moment.year}")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class _Failure(msgspec.Struct):
    exception_type: str


class _ModelInfo(msgspec.Struct):
    name: str
    provider: str | None = None


class _AgentInfo(msgspec.Struct):
    name: str
    model_info: _ModelInfo | None = None


class _Trial(msgspec.Struct):
    task_name: str
    agent_info: _AgentInfo
    agent_result: _Context | None = None
    agent_execution: _Timing | None = None
    exception_info: _Failure | None = None


def read_trials(job: Path, names: Iterable[str], model: str | None) -> list[ImportedAnswer]:
    """Read the answers of a Harbor job; a task without a finished trial of an agent has no answer of that agent.

    Parameters
    ----------
    job : folder of the job, with one folder for each trial.
    names : the exported tasks.
    model : model name in rows; None takes agent and model from Harbor.

    Raises
    ------
    InputError : no trial has finished, or one is damaged or of another task.
    """
    tasks = tuple(names)
    found: list[ImportedAnswer] = []
    repeats: Counter[tuple[str, str]] = Counter()
    folders = sorted(path for path in job.iterdir() if path.is_dir()) if job.is_dir() else []
    for folder in folders:
        data = read_plain(folder / RESULT, _MOST_RESULT_BYTES)
        if data is None:
            continue
        try:
            trial = msgspec.json.decode(data, type=_Trial)
        except (msgspec.MsgspecError, ValueError) as error:
            raise InputError(
                f"{folder / RESULT}: not a result of a trial ({error}); pass the folder of one job"
            ) from None
        if trial.task_name not in tasks:
            raise InputError(f"{folder / RESULT}: is of the task {trial.task_name!r}, which is not in this export")
        name = model or _name(trial.agent_info)
        found.append(_answered(folder, trial, name, repeats[name, trial.task_name]))
        repeats[name, trial.task_name] += 1
    if not found:
        raise InputError(f"{job}: holds no finished trial of Harbor; pass the folder of one job")
    missing = [(name, task) for name in dict.fromkeys(one.model for one in found) for task in tasks]
    found += [
        ImportedAnswer(folder=task, model=name, text=None, ended="no_answer")
        for name, task in missing
        if not repeats[name, task]
    ]
    return found


def _name(agent: _AgentInfo) -> str:
    model = agent.model_info
    parts = [agent.name, *((model.provider, model.name) if model is not None else ())]
    return "/".join(part for part in parts if part)


def _answered(folder: Path, trial: _Trial, model: str, run_idx: int) -> ImportedAnswer:
    text = read_answer(folder / KEPT)
    failure = None if trial.exception_info is None else trial.exception_info.exception_type
    ran = trial.agent_execution or _Timing()
    ended: Ended = "submitted"
    error = None
    if text is None and failure is not None and ran.started_at is None:
        ended, error = "error", f"Harbor: {failure} before the agent started"
    elif text is None:
        ended = "out_of_time" if failure == _TIMEOUT else "no_answer"
    used = trial.agent_result or _Context()
    return ImportedAnswer(
        folder=trial.task_name,
        model=model,
        text=text,
        run_idx=run_idx,
        ended=ended,
        error=error,
        usage=Usage(
            input_tokens=used.n_input_tokens,
            cached_tokens=used.n_cache_tokens,
            output_tokens=used.n_output_tokens,
            cost_usd=used.cost_usd,
        ),
        started=ran.started_at,
        seconds=ran.seconds,
    )


def read_answer(path: Path) -> str | None:
    """Return the text of an answer file, valid or not; None if it is empty or not a regular file."""
    if not path.is_file() or path.is_symlink() or path.parent.is_symlink():
        return None
    return _text(read_plain(path, MAX_BYTES + 1))


def _text(data: bytes | None) -> str | None:
    # An invalid byte of UTF-8 becomes a lone surrogate, which the judge refuses.
    return None if data is None or not data.strip() else data.decode("utf-8", "surrogateescape")


def read_plain(path: Path, most: int) -> bytes | None:
    """Read the first bytes of a regular file; None if nothing is there.

    Raises
    ------
    InputError : it is something else, such as a link or a pipe, or cannot be read.
    """
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise InputError(f"{path}: not a regular file; put the answer file itself there")
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(most)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


HARNESS = "handout"
"""Harness name of rows from plain folders; for Harbor it is `Layout.HARBOR`."""
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
    jobs: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[Row]:
    """Judge every exported episode; one without an answer is an incomplete submission and scores 0.

    Parameters
    ----------
    edition : the exported edition, with its truth.
    folder : the export, with an `answer.json` in the folders of answered episodes.
    model : model name in rows; None takes the name of the folder, or that of Harbor.
    jobs : folder of the Harbor job, if the layout is Harbor's.
    progress : called with the number of judged answers and their total.

    Raises
    ------
    InputError : the export or a trial is damaged, an answer cannot be read, or `jobs` does not fit the layout.
    EditionError : the edition has no truth.
    """
    record = _read_record(folder, edition)
    if (jobs is None) is (record.layout is Layout.HARBOR):
        remedy = "add --jobs with the folder of the job" if jobs is None else "leave out --jobs"
        raise InputError(f"{folder} was exported as {record.layout.value}; {remedy}")
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
        trace = _trace(item, one, harness, record.mounts[episode.skill])
        verdict = judge(trace.submission, edition.truth(episode.task_id), edition.full_input(episode))
        method = subtask_named(verdict.sub_task).verification.method
        yield make_row(item, episode, trace, verdict, method=method, edition_digest=edition.digest)
        progress(done, len(answered))


def _trace(item: Item, one: ImportedAnswer, harness: str, mount: str) -> Trace:
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
