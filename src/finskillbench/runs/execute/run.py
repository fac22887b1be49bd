"""Run a configuration: validate arguments, execute the plan, write the table of rows."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

import polars as pl
from threadpoolctl import threadpool_limits

from finskillbench import notebook
from finskillbench.domains import subtask_named
from finskillbench.edition import Edition
from finskillbench.episode import Status
from finskillbench.errors import InputError
from finskillbench.harness.agents import Agent, Solve, as_agent
from finskillbench.harness.allowance import MAX_TURNS
from finskillbench.harness.conditions import arm_of, mount_all, parse_condition
from finskillbench.harness.loop import BuiltinLoop, Harness
from finskillbench.harness.models import ModelConfig, ModelKey, ModelOptions, Participant, get_participant, key_of
from finskillbench.harness.proof import prove_arms
from finskillbench.harness.providers.hosted import Hosted
from finskillbench.harness.providers.prices import PROGRAMS
from finskillbench.harness.skills.user_skills import SkillFolder, read_user_skills
from finskillbench.harness.trace import BUILTIN_HARNESS
from finskillbench.redaction import redactor_of_process, without_keys
from finskillbench.runs.config import (
    DEFAULT_CONCURRENCY,
    DEFAULT_CONDITIONS,
    DEFAULT_LIMITS,
    DEFAULT_MODELS,
    EpisodeSelection,
    RunConfig,
    RunLimits,
)
from finskillbench.runs.execute.executor import INTERRUPTED, RUN, Executor
from finskillbench.runs.execute.metered import price_of
from finskillbench.runs.execute.open_backend import Participants, open_backend
from finskillbench.runs.execute.progress import NotebookProgress, Progress
from finskillbench.runs.plan.items import playable
from finskillbench.runs.plan.streams import Shard
from finskillbench.runs.store.journal import exclusive
from finskillbench.runs.store.record import make_record, merge_record, write_record
from finskillbench.runs.store.rows import ROWS, to_frame, write_rows
from finskillbench.runs.store.version import make_folder


@dataclass(frozen=True, slots=True, repr=False)
class RunResult:
    """Result of a run: its folder with all rows, and the number of planned episodes by outcome.

    Episodes were run now (`ran`, including errors), finished before (`kept`), cancelled in flight (`dropped`) or not
    begun (`not_run`). `errors` counts rows of status `error`; the same command repeats them. `other_rows` counts rows
    of the folder outside this plan. `stopped` gives the reason why episodes were dropped or not run, by model or under
    "run" for all of them.
    """

    folder: Path
    rows: pl.DataFrame
    ran: int
    kept: int
    errors: int
    dropped: int = 0
    not_run: int = 0
    other_rows: int = 0
    stopped: Mapping[str, str] = field(default_factory=dict[str, str])

    def __repr__(self) -> str:
        counts = {"ran": self.ran, "kept": self.kept, "errors": self.errors, "dropped": self.dropped}
        outcome = ", ".join(f"{name} {count}" for name, count in {**counts, "not run": self.not_run}.items() if count)
        return f"RunResult({str(self.folder)!r}: {self.rows.height} rows; {outcome or 'nothing planned'})"

    def _repr_html_(self) -> str:
        counts = self.rows.group_by("model", "condition", "status", maintain_order=True).len("rows")
        return notebook.html_table(counts.columns, counts.iter_rows(), caption=repr(self))

    def to_polars(self) -> pl.DataFrame:
        """Return the rows, one per episode, model, condition and repeat."""
        return self.rows

    @property
    def interrupted(self) -> bool:
        """True if a signal stopped the run."""
        return self.stopped.get(RUN) == INTERRUPTED


# Exceeds a screen because each argument is documented here, and only here.
async def arun(
    edition: Edition,
    models: Sequence[str | Participant | ModelConfig] | None = None,
    conditions: Sequence[str] = DEFAULT_CONDITIONS,
    subtasks: Sequence[str] | None = None,
    *,
    agents: Sequence[Agent | Solve] = (),
    skills: Mapping[str, SkillFolder | Path | str] = MappingProxyType({}),
    library: Path | None = None,
    limit: int | None = None,
    sample: int | None = None,
    limits: Mapping[str, int] = MappingProxyType({}),
    tasks: Sequence[str] | None = None,
    epochs: int = 1,
    seed: int = 0,
    turns: int = MAX_TURNS,
    token_budget: int | None = None,
    max_concurrency: int = DEFAULT_CONCURRENCY,
    max_cost: float | None = None,
    shard: Shard | None = None,
    retry_errors: bool = True,
    allow_unconfined: bool = False,
    options: ModelOptions | None = None,
    harness: Harness | None = None,
    cluster: str | None = None,
    out: Path,
    progress: Progress | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> RunResult:
    """Run models over an edition, except for episodes that `out` already has.

    In the main thread, the first SIGINT starts no more episodes and lets those in flight finish; the second, or
    SIGTERM, cancels them. In both cases the call returns a result.

    Parameters
    ----------
    edition : edition to run. Without its truth the rows have no score, and interactive episodes are omitted.
    models : names from `finskillbench.harness.models`, model objects, or `ModelConfig`s with their own options; None:
        the baselines, or only the agents.
    conditions : names of conditions.
    skills : skill folders by NAME; each adds the condition `skill:NAME`, see
        `finskillbench.harness.skills.user_skills`.
    library : folder of public packages for the conditions `library:N`; None: all distractors are generated.
    agents : async functions of `(task, tools)`, or `Agent` objects: see `finskillbench.harness.agents`.
    subtasks : names; None: every subtask of the edition.
    limit, sample, tasks : see `finskillbench.runs.plan.items.choose_episodes`.
    limits : replaces `limit` for single conditions.
    epochs : repeats of each episode.
    seed : repeat r sends `seed` + r to providers that accept one.
    turns : model calls of an episode.
    token_budget : tokens that a model may generate in an episode, reasoning included; None: no limit.
    max_concurrency : episodes in flight for each model. This and the next three may change on resuming.
    max_cost : US dollars that the run folder may cost in total, including earlier calls; None: no limit.
    retry_errors : True repeats episodes that ended in an error.
    allow_unconfined : True runs scripts of third-party packages where the sandbox lacks a guard.
    shard : part of the plan to run, in its own run folder; None: all of it.
    options : options of hosted models.
    harness : loop between models and tools, a `finskillbench.harness.loop.Harness`; None: the built-in loop.
    cluster : address of a Dask scheduler whose workers run the episodes; None: this process runs them.
    out : run folder; created if absent.
    progress : called after each episode; None: a bar in a notebook.
    sleep : waits between retries of a provider; replaced in tests.

    Returns
    -------
    Rows of all finished episodes of `out`, also in its `rows.parquet`, and counts of the planned episodes.

    Raises
    ------
    InputError : an invalid argument; a folder that is in use, inside an edition, cannot be written, or holds another
        edition, other scorers, prompts or skills; `max_cost` with a model of unknown price; third-party scripts that
        cannot be confined; or a cluster that cannot be reached or cannot run this configuration.
    EditionError : the edition is damaged, or a named subtask cannot run without its truth.
    """
    wanted = list(DEFAULT_MODELS if models is None and not agents else models or ())
    config = RunConfig(
        models=[_configured(each) for each in (*wanted, *map(as_agent, agents))],
        conditions=conditions,
        skills=skills,
        library=library,
        episodes=EpisodeSelection(
            subtasks=subtasks, limit=limit, sample=sample, tasks=tasks, limits=limits, epochs=epochs, shard=shard
        ),
        limits=RunLimits(
            turns=turns,
            token_budget=token_budget,
            max_concurrency=max_concurrency,
            max_cost=max_cost,
            retry_errors=retry_errors,
            allow_unconfined=allow_unconfined,
        ),
        options=options or ModelOptions(seed=seed),
        harness=harness or BuiltinLoop(),
        cluster=cluster,
        out=out,
    )
    return await aexecute(edition, config, progress=progress, sleep=sleep)


async def aexecute(
    edition: Edition,
    config: RunConfig,
    *,
    progress: Progress | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> RunResult:
    """Run a configuration; arguments, result and errors are those of `arun`."""
    chosen, harness, out = config.episodes, config.harness, config.out
    models = _keyed_by_harness(harness, make_models(config.models, config.options, config.limits))
    user_skills = read_user_skills(config.skills)
    added = [each for each in user_skills if each not in config.conditions]
    conditions = [parse_condition(name) for name in (*config.conditions, *added)]
    for condition in conditions:
        harness.check(arm_of(condition))
    subtasks = None if chosen.subtasks is None else tuple(subtask_named(name).name for name in chosen.subtasks)
    plan = chosen.plan(playable(edition, subtasks), list(models), conditions)
    mounts = mount_all(conditions, user_skills, config.library)
    proof = prove_arms(mounts, sorted({episode.skill for episode in plan.episodes}))
    interpreters = {name: str(each.python) for name, each in user_skills.items()}
    async with open_backend(Participants(edition, models, mounts), config, sleep) as (opened, guards):
        library = None if config.library is None else config.library.resolve().name
        record = make_record(edition, plan, proof, guards, interpreters, library)
        merge_record(out, record)  # before the lock, which would write into a foreign folder
        make_folder(out)
        with exclusive(out):
            record = merge_record(out, record)
            executor = Executor(edition, plan, models, config, opened, progress or NotebookProgress(), sleep)
            write_record(out, record)
            await _run(executor)
            frame = to_frame(executor.rows[item] for item in record.in_order(executor.rows))
            write_rows(out / ROWS, frame)
    planned = [row for item, row in executor.rows.items() if item in executor.planned]
    return RunResult(
        out,
        frame,
        ran=executor.ran,
        kept=executor.kept,
        errors=sum(row.status is Status.ERROR for row in planned),
        dropped=executor.dropped,
        not_run=len(executor.planned) - executor.ran - executor.kept - executor.dropped,
        other_rows=frame.height - len(planned),
        stopped=executor.stopped,
    )


P = ParamSpec("P")
T = TypeVar("T")


def _blocking(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return a blocking version of a coroutine function; in a running loop, as in a notebook, it uses a thread."""

    name, signature = function.__name__.removeprefix("a"), inspect.signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # leave the block, or each later error would have this context
            start = asyncio.run
        else:
            start = _in_thread
        return start(function(*args, **kwargs))

    call.__name__ = call.__qualname__ = name
    return call


def _in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new loop and thread; an interrupt of the caller cancels it."""
    loop = asyncio.new_event_loop()
    try:
        with ThreadPoolExecutor(1, "run") as pool:
            task = loop.create_task(coroutine)
            done = pool.submit(loop.run_until_complete, task)
            try:
                return done.result()
            except KeyboardInterrupt:
                loop.call_soon_threadsafe(task.cancel)
                raise
    finally:
        loop.close()


run = _blocking(arun)
execute = _blocking(aexecute)
"""Blocking forms of `arun` and `aexecute`."""


async def _run(executor: Executor) -> None:
    """Run, then close connections, which belong to the event loop."""
    try:
        with threadpool_limits(1):  # judging solves small systems, where BLAS threads only add waits
            await executor.run()
    finally:
        for model in executor.models.values():
            if isinstance(model, Hosted):
                await model.close()


def _keyed_by_harness(harness: Harness, participants: Mapping[ModelKey, Participant]) -> dict[ModelKey, Participant]:
    """Return the models under the keys of a harness; raise `InputError` for an agent, which has its own loop."""
    if harness.name == BUILTIN_HARNESS:
        return dict(participants)
    for participant in participants.values():
        if isinstance(participant, Agent):
            raise InputError(f"{participant.name} is an agent; the harness {harness.name} takes models only")
    return {key.under(harness.name): participant for key, participant in participants.items()}


def _check_addresses(configs: Iterable[ModelConfig], options: ModelOptions) -> None:
    providers: dict[str, set[str]] = {}
    redact = redactor_of_process()
    for each in configs:
        if (address := (each.options or options).base_url) is not None:
            named = providers.setdefault(address, set())
            if isinstance(each.model, str) and not each.model.startswith(PROGRAMS):
                named.add(each.model.partition("/")[0])
    for address, named in providers.items():
        if "@" in address or without_keys(redact(address)) != address:
            raise InputError(
                "base_url contains a password or key, which run.json would store; pass keys in the environment"
            )
        if "?" in address or "#" in address:
            raise InputError(
                "base_url must not contain `?` or `#`, since run.json would store it; pass keys in the environment"
            )
        if len(named) > 1:
            these = ", ".join(sorted(named))
            raise InputError(
                f"base_url is shared by {these}, so one server would receive all their keys; use one per provider"
            )


def _configured(model: str | Participant | ModelConfig) -> ModelConfig:
    return model if isinstance(model, ModelConfig) else ModelConfig(model)


def make_models(
    models: Sequence[str | Participant | ModelConfig], options: ModelOptions, limits: RunLimits = DEFAULT_LIMITS
) -> dict[ModelKey, Participant]:
    """Create the models and agents of a run, in the given order, without any network call.

    Raises `InputError` for an unknown or duplicate model, a missing package or key, `max_cost` with an unknown price,
    or a `base_url` that contains a password or would receive the keys of several providers.
    """
    configs = [_configured(each) for each in models]
    _check_addresses(configs, options)
    participants: dict[ModelKey, Participant] = {}
    for each in configs:
        model = get_participant(each.model, each.options or options) if isinstance(each.model, str) else each.model
        key = key_of(model, each.allowance or limits.allowance)
        if key in participants:
            raise InputError(f"a model was given twice: {key}")
        participants[key] = model
    if limits.max_cost is not None:
        for model in participants.values():
            if price_of(model) is None and not (isinstance(model, Agent) and model.tells_cost):
                raise InputError(
                    f"--max-cost needs the price of {model.name}, which is unknown; add it to a --prices file, "
                    f'such as {{"{model.name}": {{"input": 0.1, "output": 0.4}}}} in USD per million tokens'
                )
    return participants
