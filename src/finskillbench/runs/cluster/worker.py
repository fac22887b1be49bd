"""Dask tasks of a worker on one event loop: one builds the context of a run, others run episodes in it.

The context lasts while the scheduler keeps its task for the client: model calls stop once the driver is lost.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, cast
from uuid import uuid4

from distributed import CancelledError, Semaphore, get_worker
from distributed.worker_state_machine import SecedeEvent
from threadpoolctl import threadpool_limits

from finskillbench.edition import Edition, PublicEdition, load_edition
from finskillbench.errors import EditionError, InputError, RunStoppedError
from finskillbench.harness.agents import Agent
from finskillbench.harness.conditions import mount_all
from finskillbench.harness.models import ModelKey
from finskillbench.harness.programs.program import Program
from finskillbench.harness.providers.hosted import Hosted
from finskillbench.harness.serialization import Sendable, deserialize
from finskillbench.harness.skills.runner import check_guards
from finskillbench.harness.skills.user_skills import Memory, SkillFolder, read_user_skills
from finskillbench.harness.trace import Trace
from finskillbench.runs.execute.backend import AttemptLimits, LocalBackend, open_resources
from finskillbench.runs.execute.limiter import SharedLimiter
from finskillbench.runs.execute.metered import Budget
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.record import Expense

EDITION = "FINSKILLBENCH_CLUSTER_EDITION"
"""Environment variable of a worker with the path of the edition there, if it differs from the driver's."""
POLL_SECONDS = 0.5
AttemptRequest: TypeAlias = tuple[Item, Memory, float | None]
"""Episode to run, and its reserve in US dollars (None without a budget)."""


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Settings that all workers of a run share; `mounts` are digests, `max_concurrency` limits calls of a model."""

    run: str
    edition: str
    digest: str
    models: tuple[tuple[ModelKey, Sendable], ...]
    mounts: Mapping[str, str]
    skills: Mapping[str, SkillFolder]
    library: Path | None
    max_tokens: int
    max_concurrency: int
    max_cost: float | None
    allow_unconfined: bool


@dataclass(frozen=True, slots=True)
class Result:
    """Outcome of an attempt: its trace without messages, or the reason why the budget `stopped` it."""

    expense: Expense
    calls_begun: int
    trace: Trace | None = None
    trajectory: bytes = b""
    stopped: str = ""


class _Context:
    """State of a run in this process, for as long as a client holds the Dask task of this `key`."""

    def __init__(self, config: WorkerConfig, key: str, worker: Any, backend: LocalBackend) -> None:
        self._config, self.token, self.begun = config, uuid4().hex, set[object]()
        self._key, self._worker, self._backend, self._tasks = key, worker, backend, set[asyncio.Task[Any]]()
        models = [name for name, each in backend.participants.items() if not isinstance(each, Agent | Program)]
        self._limiters = {name: self._limiter(name.model) for name in models}

    @property
    def is_active(self) -> bool:
        """True while the client holds the future of this context."""
        task = self._worker.state.tasks.get(self._key)
        return task is not None and task.state in ("executing", "memory")

    def _limiter(self, model: str) -> SharedLimiter:
        most, name = self._config.max_concurrency, f"{self._config.run}-{model}"
        return SharedLimiter(most, cast("Any", Semaphore)(most, name=name), lambda: self.is_active)

    def start(self, coroutine: Any) -> asyncio.Task[Any]:
        """Start a task that ends with the context."""
        self._tasks.add(task := asyncio.create_task(coroutine))
        task.add_done_callback(self._tasks.discard)
        return task

    async def keep(self, resources: ExitStack) -> None:
        """Cancel all tasks and close resources once the context is no longer active."""
        with resources:
            while self.is_active:
                await asyncio.sleep(POLL_SECONDS)
            del _contexts[self.token]
            for task in (running := self._tasks - {asyncio.current_task()}):
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            for participant in self._backend.participants.values():
                if isinstance(participant, Hosted):
                    await participant.close()

    async def play(self, request: AttemptRequest) -> Result:
        """Run an episode within its share of the budget."""
        (item, memory, share), most = request, self._config.max_cost
        is_agent = isinstance(self._backend.participants[item.model_key], Agent)
        budget = None if most is None or share is None else Budget(share) if is_agent else Budget(most, most - share)
        limits = AttemptLimits(self._limiters.get(item.model_key), budget, share or 0.0, lambda expense: None)
        attempt = self._backend.attempt(item, limits)
        cost = attempt.cost
        try:
            played = await attempt.play(memory)
        except RunStoppedError as error:
            return Result(cost.expense(), cost.calls_begun, stopped=str(error))
        return Result(cost.expense(), cost.calls_begun, replace(played.trace, messages=()), played.trajectory())


_contexts: dict[str, _Context] = {}


async def build_context(config: WorkerConfig, key: str) -> tuple[str, Mapping[str, bool]]:
    """Build the context of a run in this process; return its token and the guards of its sandbox."""
    edition = await asyncio.to_thread(open_edition, config.edition, config.digest)
    mounts = mount_all(config.mounts, read_user_skills(config.skills), config.library)
    allow = config.allow_unconfined
    if differing := [name for name, each in mounts.items() if each.digest != config.mounts[name]]:
        raise InputError(f"the skills of {differing[0]} differ from the driver's; copy the same folder to every worker")
    guards = check_guards(mounts.values(), allow_unconfined=allow)
    participants = {model_key: deserialize(each) for model_key, each in config.models}
    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))  # a machine has a worker per core
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="finskillbench-worker-")))
        resources = stack.enter_context(open_resources(edition, mounts.values(), scratch, allow_unconfined=allow))
        backend = LocalBackend(edition, participants, mounts, resources, config.max_tokens)
        context = _Context(config, key, get_worker(), backend)
        _contexts[context.token] = context
        context.start(context.keep(stack.pop_all()))
    return context.token, dict(guards)


async def play(token: str, key: object, requests: Sequence[AttemptRequest]) -> list[Result]:
    """Run episodes once; refuse what Dask starts again or elsewhere as cancelled, since it may have been paid."""
    context = _contexts.get(token)
    if context is None or key in context.begun:
        raise CancelledError
    context.begun.add(key)
    # Equivalent of `distributed.secede`, which works for threads only: other tasks may start while this one waits.
    secede = cast("Any", SecedeEvent)(key=key, compute_duration=0.0, stimulus_id=f"secede-{key}")
    cast("Any", get_worker()).handle_stimulus(secede)
    return await asyncio.gather(*(context.start(context.play(each)) for each in requests))


@lru_cache(maxsize=4)
def open_edition(path: str, digest: str) -> Edition:
    """Load the edition of a run, once per process; raise `EditionError` if it is missing or has another digest."""
    folder = Path(os.environ.get(EDITION, path))
    try:
        loaded = load_edition(folder)
    except (EditionError, OSError) as error:
        remedy = f"put the edition at {folder} on every worker, or set {EDITION} to its folder there"
        raise EditionError(f"{error}; {remedy} (truth/ and certificates/ may be left out)") from None
    if loaded.digest != digest:
        found = f"{folder} is another edition ({loaded.digest[:12]}, the driver's is {digest[:12]})"
        raise EditionError(f"{found}; copy the same one there")
    return PublicEdition(loaded.path, loaded.manifest)
