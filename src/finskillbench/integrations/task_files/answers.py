"""Answers as they come back in the folders of a hand-out or in the trials of a Harbor job, as the rows of a run."""

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
from finskillbench.integrations.task_files.write import ANSWER, FORMAT, RECORD, Record
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.rows import Row, make_row
from finskillbench.runs.verdicts import judge
from finskillbench.scoring.strict_json import MAX_BYTES

RESULT = Path("result.json")
KEPT = Path("artifacts") / ANSWER
"""What Harbor keeps of a trial, below its folder."""
_MOST_RESULT_BYTES = 1 << 26
_TIMEOUT = "AgentTimeoutError"

_Tokens = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One answer, or that there is none: `folder` is that of the hand-out, `error` what kept an agent from starting."""

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
        """What went wrong, by the names of the table of failures."""
        if self.error is not None:
            return (Cause.ADAPTER.value,)
        return () if self.ended == "submitted" else (self.ended,)


def read_folders(folder: Path, names: Iterable[str], model: str) -> list[Answered]:
    """The answers in the folders of a hand-out, `names`.

    Raises
    ------
    InputError : one is no plain file, such as a link out of the folder, or cannot be read.
    """
    found: list[Answered] = []
    for name in names:
        path = folder / name / ANSWER
        if path.parent.is_symlink():
            raise InputError(f"{path.parent}: is a link; put the folder itself there")
        text = _text(read_plain(path, MAX_BYTES + 1))
        found.append(Answered(folder=name, model=model, text=text, ended="no_answer" if text is None else "submitted"))
    return found


class _Context(msgspec.Struct):
    n_input_tokens: _Tokens | None = None
    n_cache_tokens: _Tokens | None = None
    n_output_tokens: _Tokens | None = None
    cost_usd: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None


class _Timing(msgspec.Struct):
    """Times of the day are in UTC where they do not say."""

    started_at: datetime | None = None
    finished_at: datetime | None = None

    def __post_init__(self) -> None:
        self.started_at, self.finished_at = map(_in_utc, (self.started_at, self.finished_at))

    @property
    def seconds(self) -> float:
        """From start to end; 0 where one of them is not known."""
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
    """What is read of a trial's result."""

    task_name: str
    agent_info: _AgentInfo
    agent_result: _Context | None = None
    agent_execution: _Timing | None = None
    exception_info: _Failure | None = None


def read_trials(job: Path, names: Iterable[str], model: str | None) -> list[Answered]:
    """The answers that Harbor kept of a job; a task that an agent of the job has no finished trial of has none.

    Parameters
    ----------
    job : its folder, with one folder for each trial.
    names : the tasks of the hand-out.
    model : under which rows file the answers; None takes agent and model as Harbor says them.

    Raises
    ------
    InputError : there is no finished trial, or one is of another task or damaged.
    """
    tasks = tuple(names)
    found: list[Answered] = []
    repeats: Counter[tuple[str, str]] = Counter()
    folders = sorted(path for path in job.iterdir() if path.is_dir()) if job.is_dir() else []
    for folder in folders:
        data = read_plain(folder / RESULT, _MOST_RESULT_BYTES)
        if data is None:
            continue
        try:
            trial = msgspec.json.decode(data, type=_Trial)
        except (msgspec.MsgspecError, ValueError) as error:
            raise InputError(f"{folder / RESULT}: no result of a trial ({error}); name the folder of one job") from None
        if trial.task_name not in tasks:
            raise InputError(f"{folder / RESULT}: is of the task {trial.task_name!r}, which was not handed out here")
        name = model or _name(trial.agent_info)
        found.append(_answered(folder, trial, name, repeats[name, trial.task_name]))
        repeats[name, trial.task_name] += 1
    if not found:
        raise InputError(f"{job}: holds no finished trial of Harbor; name the folder of one job")
    missing = [(name, task) for name in dict.fromkeys(one.model for one in found) for task in tasks]
    found += [
        Answered(folder=task, model=name, text=None, ended="no_answer")
        for name, task in missing
        if not repeats[name, task]
    ]
    return found


def _name(agent: _AgentInfo) -> str:
    model = agent.model_info
    parts = [agent.name, *((model.provider, model.name) if model is not None else ())]
    return "/".join(part for part in parts if part)


def _answered(folder: Path, trial: _Trial, model: str, run_idx: int) -> Answered:
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
    return Answered(
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
    """The answer that an agent left; None where there is none.

    What is no plain file is no answer, and no reason to judge nobody; what no submission can be is judged as such.
    """
    if not path.is_file() or path.is_symlink() or path.parent.is_symlink():
        return None
    return _text(read_plain(path, MAX_BYTES + 1))


def _text(data: bytes | None) -> str | None:
    # A byte that is no UTF-8 becomes a lone surrogate, which the judge refuses.
    return None if data is None or not data.strip() else data.decode("utf-8", "surrogateescape")


def read_plain(path: Path, most: int) -> bytes | None:
    """The first bytes of a plain file; None where nothing is there.

    Raises
    ------
    InputError : it is something else, such as a link or a pipe, or it cannot be read.
    """
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise InputError(f"{path}: no plain file; put the answer itself there")
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(most)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


HARNESS = "handout"
"""The harness of rows whose episodes were handed out as plain folders; that of tasks of Harbor is `Layout.HARBOR`."""
_MOST_RECORD_BYTES = 1 << 26


def is_handout(path: Path) -> bool:
    """Whether a path is a hand-out that came back."""
    return (path / RECORD).is_file()


def _read_record(folder: Path, edition: Edition) -> Record:
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
    record = _read_record(folder, edition)
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
        trace = _trace(item, one, harness, record.mounts[episode.skill])
        verdict = judge(trace.submission, edition.truth(episode.task_id), edition.full_input(episode))
        method = subtask_named(verdict.sub_task).verification.method
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
