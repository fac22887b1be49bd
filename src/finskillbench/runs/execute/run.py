"""A run: a plan worked off concurrently, journalled, resumable, and closed with a table of rows.

This is the entry: arguments are checked here, before anything is written; `runs.execute.work` does the work.
"""

from __future__ import annotations

import asyncio
import inspect
import math
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
from finskillbench.domains import by_name
from finskillbench.edition import Edition
from finskillbench.edition.store import LARGEST, refuse_inside_edition
from finskillbench.episode import Status
from finskillbench.errors import InputError
from finskillbench.harness.agents import Agent, Solve, as_agent
from finskillbench.harness.allowance import FULL, LEAST_TOKENS, MAX_TURNS, Allowance
from finskillbench.harness.conditions import Condition, arm_of, mount_all, parse_condition
from finskillbench.harness.loop import Harness, OurLoop
from finskillbench.harness.models import ModelConfig, ModelKey, ModelOptions, Participant, get_participant, key_of
from finskillbench.harness.proof import prove_arms
from finskillbench.harness.providers.hosted import Hosted
from finskillbench.harness.providers.prices import PROGRAMS
from finskillbench.harness.skills.user_skills import SkillFolder, read_user_skills
from finskillbench.harness.trace import OURS
from finskillbench.redaction import redactor_of_process, without_keys
from finskillbench.runs.execute.board import NotebookProgress, Progress
from finskillbench.runs.execute.metered import price_of
from finskillbench.runs.execute.venue import Party, venue
from finskillbench.runs.execute.work import INTERRUPTED, RUN, Limits, Work
from finskillbench.runs.plan.items import make_plan, playable
from finskillbench.runs.plan.streams import Shard, make_streams
from finskillbench.runs.store.journal import exclusive
from finskillbench.runs.store.record import make_record, merge_record, write_record
from finskillbench.runs.store.rows import ROWS, to_frame, write_rows
from finskillbench.runs.store.version import make_folder

DEFAULT_MODELS = ("baseline/reference", "baseline/heuristic", "baseline/trivial", "baseline/nop")
DEFAULT_CONDITIONS = (Condition.NO_SKILL, Condition.CURATED, Condition.SELF_GENERATED)
DEFAULT_CONCURRENCY = 64
BATCH_CONCURRENCY = 1_000
"""In place of it where calls go in batches: what is in flight is the most that a batch can hold."""


@dataclass(frozen=True, slots=True, repr=False)
class RunResult:
    """What a run has come to: its folder with all its rows, and every planned episode in one of four numbers.

    `ran` were run now (errors included), `kept` were finished before, `dropped` were given up in flight, `not_run` were
    not begun. `errors` counts those whose rows are of status `error`: the same command runs them again. `others` are
    rows of the folder that this call did not ask for. `stopped` says why something was dropped or not run: by model, or
    under "run" for all of them.
    """

    folder: Path
    rows: pl.DataFrame
    ran: int
    kept: int
    errors: int
    dropped: int = 0
    not_run: int = 0
    others: int = 0
    stopped: Mapping[str, str] = field(default_factory=dict[str, str])

    def __repr__(self) -> str:
        counts = {"ran": self.ran, "kept": self.kept, "errors": self.errors, "dropped": self.dropped}
        told = ", ".join(f"{name} {count}" for name, count in {**counts, "not run": self.not_run}.items() if count)
        return f"RunResult({str(self.folder)!r}: {self.rows.height} rows; {told or 'nothing planned'})"

    def _repr_html_(self) -> str:
        counts = self.rows.group_by("model", "condition", "status", maintain_order=True).len("rows")
        return notebook.table(counts.columns, counts.iter_rows(), caption=repr(self))

    def to_polars(self) -> pl.DataFrame:
        """The rows, one per episode, model, condition and repeat."""
        return self.rows

    @property
    def interrupted(self) -> bool:
        """Whether a signal stopped the run."""
        return self.stopped.get(RUN) == INTERRUPTED


# Longer than a screen for its arguments, each of which is named and explained once, here.
async def arun(
    edition: Edition,
    models: Sequence[str | Participant | ModelConfig] | None = None,
    conditions: Sequence[str] = DEFAULT_CONDITIONS,
    subtasks: Sequence[str] | None = None,
    *,
    agents: Sequence[Agent | Solve] = (),
    skills: Mapping[str, SkillFolder | Path | str] = MappingProxyType({}),
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
    """Run models over an edition: whatever `out` does not have of it yet, beside what other calls left there.

    In the main thread, the first SIGINT lets the episodes in flight finish and starts no other; the second, or SIGTERM,
    drops them. Either way the call returns, and its result says so.

    Parameters
    ----------
    edition : what to run on. Without its truth the rows have no score, and what only the truth's holder can move on
        is left out.
    models : names of `finskillbench.harness.models`, model objects, or `Contender`s, which have options of their own;
        None takes the baselines, or only the agents.
    conditions : names of arms.
    skills : folders of skills by NAME, each an arm `skill:NAME` after `conditions`: see
        `finskillbench.harness.skills.user_skills`.
    agents : async functions of `(task, tools)`, or `Agent` objects: see `finskillbench.harness.agents`.
    subtasks : names; None takes every subtask of the edition.
    limit, sample, tasks : episodes of each subtask and in all, or single ones, as of
        `finskillbench.runs.plan.items.choose_episodes`.
    limits : in place of `limit` under single conditions.
    epochs : repeats of each episode.
    seed : repeat r hands `seed` + r to providers that take one.
    turns : model calls of an episode.
    token_budget : tokens that a model may generate in an episode, reasoning included; None: as many as its turns take.
    max_concurrency : episodes in flight for each model; may differ when resuming, as may the next four.
    max_cost : US dollars that the run folder may cost in all, earlier calls included; None: no limit.
    retry_errors : whether episodes that ended in an error are run again.
    allow_unconfined : whether scripts of packages that are not ours run also where the sandbox lacks a guard.
    shard : the part of the plan to run, with a run folder of its own; None: all of it.
    options : how hosted models are called.
    harness : the loop between models and tools, an object of `finskillbench.harness.loop.Harness`; None: ours.
    cluster : address of the scheduler of a Dask cluster, whose workers play the episodes; None: this process does.
    out : the run folder, made if absent.
    progress : called after each episode; None: a bar, where a notebook shows it.
    sleep : waits between retries of a provider; tests pass their own.

    Returns
    -------
    The rows of all finished episodes of `out`, also in its `rows.parquet`, and what became of those asked for.

    Raises
    ------
    InputError : a wrong argument, a folder in use, in an edition or of another edition, other scorers, prompts or
        skills, a path that cannot be written, `max_cost` with a model whose price is not known, scripts of others
        that cannot be confined where they run, or a cluster that cannot be reached or cannot play this.
    EditionError : the edition is damaged, or a named subtask cannot be played without its truth.
    """
    _check_numbers(limit=limit, epochs=epochs, seed=seed, max_concurrency=max_concurrency, max_cost=max_cost)
    allowance = _allowance(turns, token_budget)
    refuse_inside_edition(out)
    options, harness = options or ModelOptions(seed=seed), harness or OurLoop()
    wanted_models = list(DEFAULT_MODELS if models is None and not agents else models or ())
    contenders = [*wanted_models, *map(as_agent, agents)]
    entrants = _under(harness, make_models(contenders, options, allowance, max_cost))
    given = read_user_skills(skills)
    arms = [parse_condition(name) for name in (*conditions, *(arm for arm in given if arm not in conditions))]
    for arm in arms:
        harness.check(arm_of(arm))
    wanted = None if subtasks is None else tuple(by_name(name).name for name in subtasks)
    chosen = playable(edition, wanted)
    plan = make_plan(
        *(chosen, list(entrants), arms), limit=limit, sample=sample, tasks=tasks, limits=limits, epochs=epochs
    )
    mounts = mount_all(arms, given)
    proof = prove_arms(mounts, sorted({episode.skill for episode in plan.episodes}))
    interpreters = {name: str(each.python) for name, each in given.items()}
    streams = make_streams(plan, shard)
    bounds = Limits(max_concurrency, max_cost, options.charged, options.max_tokens, retry_errors, allow_unconfined)
    party = Party(edition, entrants, contenders, mounts, skills, options, harness, sleep)
    async with venue(cluster, party, bounds) as (where, guards):
        record = make_record(edition, plan, proof, guards, interpreters)
        merge_record(out, record)  # before the lock, which would be a file in somebody else's folder
        make_folder(out)
        with exclusive(out):
            record = merge_record(out, record)
            work = Work(edition, plan, streams, entrants, out, bounds, progress or NotebookProgress(), sleep, where)
            write_record(out, record)
            await _finish(work, entrants.values())
            frame = to_frame(work.rows[item] for item in record.in_order(work.rows))
            write_rows(out / ROWS, frame)
    asked = [row for item, row in work.rows.items() if item in work.planned]
    return RunResult(
        out,
        frame,
        ran=work.ran,
        kept=work.kept,
        errors=sum(row.status is Status.ERROR for row in asked),
        dropped=work.dropped,
        not_run=len(work.planned) - work.ran - work.kept - work.dropped,
        others=frame.height - len(asked),
        stopped=work.stopped,
    )


P = ParamSpec("P")
T = TypeVar("T")


def _blocking(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The same for callers that do not await; where a loop runs already, as in a notebook, in a thread of its own."""

    name, signature = function.__name__.removeprefix("a"), inspect.signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # left before the run, lest it be the context of every exception in it
            start = asyncio.run
        else:
            start = _beside
        return start(function(*args, **kwargs))

    call.__name__ = call.__qualname__ = name
    return call


def _beside(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns in a loop and a thread of its own; an interruption of the caller ends it first."""
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


async def _finish(work: Work, models: Iterable[Participant]) -> None:
    """Do the work, then close connections, which die with the event loop."""
    try:
        with threadpool_limits(1):  # judging solves small systems: threads of BLAS would wait for each other
            await work.finish()
    finally:
        for model in models:
            if isinstance(model, Hosted):
                await model.close()


def _check_numbers(*, limit: int | None, epochs: int, seed: int, max_concurrency: int, max_cost: float | None) -> None:
    if max_concurrency < 1:
        raise InputError(f"max_concurrency is {max_concurrency}; it must be at least 1")
    if seed < 0:
        raise InputError(f"seed is {seed}; it must not be negative")
    for name, value in (("seed", seed), ("limit", limit), ("epochs", epochs)):
        if value is not None and value > LARGEST:
            raise InputError(f"{name} is too large; it must not be above {LARGEST}")
    if max_cost is not None and not (math.isfinite(max_cost) and max_cost >= 0):
        raise InputError(f"max_cost is {max_cost}; it must be a number of US dollars, 0 or more")


def _under(harness: Harness, entrants: Mapping[ModelKey, Participant]) -> dict[ModelKey, Participant]:
    """The models of a run as those of a harness; ours goes without saying.

    Raises
    ------
    InputError : one is an agent with a loop of its own.
    """
    if harness.name == OURS:
        return dict(entrants)
    for entrant in entrants.values():
        if isinstance(entrant, Agent):
            raise InputError(f"{entrant.name} has a loop of its own; the harness {harness.name} takes models only")
    return {entry.under(harness.name): entrant for entry, entrant in entrants.items()}


def _allowance(turns: int, tokens: int | None) -> Allowance:
    if not 1 <= turns <= LARGEST:
        raise InputError(f"turns is {turns}; it must be at least 1, and not above {LARGEST}")
    if tokens is not None and not LEAST_TOKENS <= tokens <= LARGEST:
        raise InputError(f"token_budget is {tokens}; it must be at least {LEAST_TOKENS}, and not above {LARGEST}")
    return Allowance(turns, tokens)


def _check_addresses(contenders: Iterable[ModelConfig], options: ModelOptions) -> None:
    providers: dict[str, set[str]] = {}
    redact = redactor_of_process()
    for each in contenders:
        if (address := (each.options or options).base_url) is not None:
            named = providers.setdefault(address, set())
            if isinstance(each.model, str) and not each.model.startswith(PROGRAMS):
                named.add(each.model.partition("/")[0])
    for address, named in providers.items():
        if "@" in address or without_keys(redact(address)) != address:
            raise InputError("base_url holds a password or a key, which run.json would keep; give keys by environment")
        if "?" in address or "#" in address:
            raise InputError(
                "base_url ends before `?` and `#`, since run.json would keep them; give keys by environment"
            )
        if len(named) > 1:
            these = ", ".join(sorted(named))
            raise InputError(f"base_url is the address of one provider, not of {these}: it would get all their keys")


def make_models(
    models: Sequence[str | Participant | ModelConfig],
    options: ModelOptions,
    allowance: Allowance = FULL,
    max_cost: float | None = None,
) -> dict[ModelKey, Participant]:
    """Make the models and agents of a run, in the given order; an object stands for itself. Nothing is sent.

    Raises
    ------
    InputError : no such model, a missing package or key, a model given twice, `max_cost` with an unknown price, or a
        `base_url` that would be written down with a password or get the keys of several providers.
    """
    contenders = [each if isinstance(each, ModelConfig) else ModelConfig(each) for each in models]
    _check_addresses(contenders, options)
    entrants: dict[ModelKey, Participant] = {}
    for each in contenders:
        model = get_participant(each.model, each.options or options) if isinstance(each.model, str) else each.model
        entry = key_of(model, each.allowance or allowance)
        if entry in entrants:
            raise InputError(f"a model was given twice: {entry}")
        entrants[entry] = model
    if max_cost is not None:
        for model in entrants.values():
            if price_of(model) is None and not (isinstance(model, Agent) and model.tells_cost):
                raise InputError(
                    f"--max-cost needs the price of {model.name}, which is not known; name it in a --prices file, "
                    f'such as {{"{model.name}": {{"input": 0.1, "output": 0.4}}}} in USD per million tokens'
                )
    return entrants
