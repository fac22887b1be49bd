"""A run: a plan worked off concurrently, journalled, resumable, and closed with a table of rows.

Order of writing for one episode: trajectory (beside, then renamed), then the journal line. Killed in between, the
episode is run again and its trajectory replaced; killed anywhere else, nothing is lost and nothing is run twice.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from finskillbench.edition import Edition
from finskillbench.edition.store import LARGEST, refuse_inside_edition
from finskillbench.episode import Episode, Status
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition, Mount, mount, parse_condition
from finskillbench.harness.loop import Surroundings, run_episode
from finskillbench.harness.model import Model
from finskillbench.harness.models import get_model
from finskillbench.harness.prompts import task_prompt
from finskillbench.harness.toolbox import Runner
from finskillbench.runs.files import make_folder
from finskillbench.runs.journal import Journal, exclusive, read_journal
from finskillbench.runs.plan import Item, Plan, make_plan
from finskillbench.runs.record import check_folder, make_record, settle_record
from finskillbench.runs.rows import make_row, to_frame, write_rows
from finskillbench.runs.trajectories import remove_parts, write_trajectory
from finskillbench.runs.verdicts import judge
from finskillbench.skills.loader import curated, placebo
from finskillbench.skills.runner import ScriptRunner
from finskillbench.subtasks import by_method, by_name
from finskillbench.subtasks.base import Subtask

DEFAULT_MODELS = ("baseline/reference", "baseline/trivial", "baseline/nop")
DEFAULT_CONDITIONS = (Condition.NO_SKILL, Condition.CURATED, Condition.SELF_GENERATED)
DEFAULT_CONCURRENCY = 64
ROWS = "rows.parquet"
_CACHED_EPISODES = 512
"""Episodes whose prompt and full input are kept: a covariance of 30 names takes some 30 KB."""

Progress = Callable[[int, int, Mapping[str, Any] | None], None]
"""`(done, total, row)` after each episode, and once at the start with the number already done and no row."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """A finished run: its folder, its rows in plan order, and how many episodes were run now, kept, and failed.

    `errors` counts rows of status `error`: the same command runs them again.
    """

    folder: Path
    rows: pl.DataFrame
    ran: int
    kept: int
    errors: int


def run(
    edition: Edition,
    models: Sequence[str | Model] = DEFAULT_MODELS,
    conditions: Sequence[str] = DEFAULT_CONDITIONS,
    subtasks: Sequence[str] | None = None,
    *,
    limit: int | None = None,
    epochs: int = 1,
    seed: int = 0,
    max_concurrency: int = DEFAULT_CONCURRENCY,
    out: Path,
    progress: Progress | None = None,
    sleep: Callable[[float], Any] = asyncio.sleep,
) -> RunResult:
    """Run models over an edition, or go on where an earlier call with the same arguments stopped.

    Parameters
    ----------
    edition : what to run on, with its truth.
    models : names of `finskillbench.harness.models`, or model objects.
    conditions : names of arms.
    subtasks : names; None takes every subtask of the edition.
    limit : first episodes of each subtask; None takes the full-run protocol (40; 100 for fundamental analysis).
    epochs : repeats of each episode.
    seed : part of the run's identity; the loop and the baselines draw nothing, the table's intervals do.
    max_concurrency : episodes in flight; may differ when resuming.
    out : the run folder, made if absent.
    progress : called after each episode.
    sleep : waits between retries of a provider; tests pass their own.

    Returns
    -------
    The rows, also in `out/rows.parquet`.

    Raises
    ------
    InputError : a wrong argument, a folder of another run, in use or in an edition, a path that cannot be written.
    EditionError : the edition was handed out without its truth, or is damaged.
    """
    if max_concurrency < 1:
        raise InputError(f"max_concurrency is {max_concurrency}; it must be at least 1")
    if seed < 0:
        raise InputError(f"seed is {seed}; it must not be negative")
    for name, value in (("seed", seed), ("limit", limit), ("epochs", epochs)):
        if value is not None and value > LARGEST:
            raise InputError(f"{name} is too large; it must not be above {LARGEST}")
    refuse_inside_edition(out)
    cast = _cast(models)
    arms = [parse_condition(name) for name in conditions]
    wanted = None if subtasks is None else [by_name(name).name for name in subtasks]
    episodes = edition.episodes(wanted)
    plan = make_plan(episodes, list(cast), arms, limit=limit, epochs=epochs)
    edition.truth(plan.items[0].task_id)  # an edition handed out without truth is refused before anything is run
    packages, placebos = curated(), placebo()
    mounts = {condition: mount(condition, packages, placebos) for condition in arms}
    arguments = {
        "models": list(cast),
        "conditions": [condition.value for condition in arms],
        "subtasks": wanted,
        "limit": limit,
        "epochs": epochs,
        "seed": seed,
    }
    record = make_record(arguments, edition.digest, edition.path, plan, mounts)
    check_folder(out, record)  # before the lock, which would be a file in somebody else's folder
    make_folder(out)
    with exclusive(out):
        settle_record(out, record)
        work = _Work(edition, plan, cast, mounts, out, progress or _silent, sleep)
        asyncio.run(work.finish(max_concurrency))
        frame = to_frame([work.lines[item] for item in plan.items])
        write_rows(out / ROWS, frame)
    errors = frame.filter(pl.col("status") == Status.ERROR.value).height
    return RunResult(out, frame, ran=work.ran, kept=work.kept, errors=errors)


def _silent(done: int, total: int, row: Mapping[str, Any] | None) -> None:
    """Report nothing."""


def _cast(models: Sequence[str | Model]) -> dict[str, Model]:
    objects = [get_model(model) if isinstance(model, str) else model for model in models]
    cast = {model.name: model for model in objects}
    if len(cast) < len(objects):
        raise InputError(f"a model was given twice: {', '.join(model.name for model in objects)}")
    return cast


@dataclass(frozen=True, slots=True)
class _Material:
    """An episode ready to be run: its prompt, and its input at full precision."""

    episode: Episode
    prompt: str
    full_input: Mapping[str, Any]


class _Work:
    """Works off what is missing from the journals of a run folder that this process holds."""

    def __init__(
        self,
        edition: Edition,
        plan: Plan,
        models: Mapping[str, Model],
        mounts: Mapping[Condition, Mount],
        out: Path,
        progress: Progress,
        sleep: Callable[[float], Any],
    ) -> None:
        self.edition, self.plan, self.models, self.mounts, self.out = edition, plan, models, mounts, out
        self.progress, self.sleep = progress, sleep
        self.by_id = {episode.task_id: episode for episode in plan.episodes}
        self.material = lru_cache(maxsize=_CACHED_EPISODES)(self._material)
        self.lines = self._read_journals()
        self.kept = sum(item in self.lines for item in plan.items)
        self.ran = 0
        self.missing = [item for item in plan.items if item not in self.lines]

    async def finish(self, max_concurrency: int) -> None:
        """Run every missing item; on return the journals are complete and on disk."""
        total = len(self.plan.items)
        self.progress(self.kept, total, None)
        if not self.missing:
            return
        scratch = self.out / "scratch"
        with ExitStack() as stack:
            remove_parts(self.out)
            shutil.rmtree(scratch, ignore_errors=True)
            make_folder(scratch)
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            for arm in {item.arm for item in self.missing}:
                make_folder(self.out / "trajectories" / arm)
            runner: Runner | None = None
            if any(self.mounts[item.condition].arm.scripts for item in self.missing):
                runner = stack.enter_context(ScriptRunner())
            around = Surroundings(
                runner=runner,
                filings=self.edition.filings,
                scratch_root=scratch,
                clock=time.perf_counter,
                sleep=self.sleep,
            )
            journals = self._open_journals(stack)
            queue = iter(self.missing)
            workers = min(max_concurrency, len(self.missing))
            tasks = [asyncio.create_task(self._worker(queue, journals, around)) for _ in range(workers)]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _worker(self, queue: Iterator[Item], journals: Mapping[str, Journal], around: Surroundings) -> None:
        for item in queue:
            row = await self._episode(item, around)
            journals[item.arm].append(row)
            self.lines[item] = row
            self.ran += 1
            self.progress(self.kept + self.ran, len(self.plan.items), row)
            await asyncio.sleep(0)  # models that never wait must not starve the others or an interrupt

    async def _episode(self, item: Item, around: Surroundings) -> dict[str, Any]:
        material = self.material(item.task_id)
        trace = await run_episode(
            self.models[item.model],
            material.episode,
            material.prompt,
            lambda: material.full_input,
            self.mounts[item.condition],
            around,
        )
        # The loop is over: only now does the truth come in.
        truth = self.edition.truth(item.task_id)
        verdict = judge(trace.submission, truth, material.full_input)
        write_trajectory(self.out, item, trace)
        return make_row(
            item,
            material.episode,
            trace,
            verdict,
            method=by_name(verdict.sub_task).method,
            edition_digest=self.edition.digest,
        )

    def _material(self, task_id: str) -> _Material:
        episode = self.by_id[task_id]
        subtask = _subtask(episode.sub_task)
        prompt = task_prompt(episode, subtask.answer if subtask is not None else None)
        return _Material(episode, prompt, self.edition.full_input(episode))

    def _open_journals(self, stack: ExitStack) -> dict[str, Journal]:
        journals = {}
        for arm in sorted({item.arm for item in self.missing}):
            journals[arm] = Journal(self._journal_path(arm))
            stack.callback(journals[arm].close)
        return journals

    def _read_journals(self) -> dict[Item, dict[str, Any]]:
        """Lines of finished items of this plan.

        An item that ended in an error counts as missing, and so does one whose trajectory is gone.
        """
        make_folder(self.out / "journal")
        lines: dict[Item, dict[str, Any]] = {}
        for arm in sorted({item.arm for item in self.plan.items}):
            lines.update(read_journal(self._journal_path(arm), mend=True))
        planned = set(self.plan.items)
        return {
            item: line
            for item, line in lines.items()
            if item in planned and line["status"] != Status.ERROR.value and (self.out / item.trajectory).is_file()
        }

    def _journal_path(self, arm: str) -> Path:
        return self.out / "journal" / f"{arm}.jsonl"


def _subtask(name: str) -> Subtask | None:
    """The subtask of an episode; None for an imported episode under a name that is not registered."""
    for find in (by_name, by_method):
        try:
            return find(name)
        except InputError:
            continue
    return None
