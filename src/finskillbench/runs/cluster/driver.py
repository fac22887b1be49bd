"""Driver of a distributed run: reserve budget, submit futures, and submit again if a worker is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import lru_cache, partial
from itertools import count
from typing import Any, cast

from distributed import CancelledError, KilledWorker

from finskillbench.cluster.connection import GONE, Connection
from finskillbench.edition import Edition
from finskillbench.errors import FinSkillBenchError, InputError, InternalError, RunStoppedError
from finskillbench.harness.agents import Agent
from finskillbench.harness.models import ModelKey, Participant
from finskillbench.harness.programs.program import Program
from finskillbench.harness.providers.prices import NO_CHARGE
from finskillbench.harness.skills.user_skills import Memory
from finskillbench.runs.cluster.worker import AttemptRequest, Result, WorkerConfig, build_context, play
from finskillbench.runs.execute.backend import CACHED_EPISODES, AttemptLimits, PlayedEpisode
from finskillbench.runs.execute.executor import Job
from finskillbench.runs.execute.metered import Reservation, price_of, reserve_of_attempt
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.record import NOTHING, Dropped, Expense

MAX_ATTEMPTS = 4
"""Maximum number of attempts at an episode; one that loses four workers may be killing them."""
POLL_WORKERS_SECONDS = 1.0
WORKER_WAIT_SECONDS = 60.0
"""Seconds that a run waits for a worker when it has none; a nanny restarts a killed worker within seconds."""
_LOAD_STEP = 16
"""Difference in episodes that is ignored when workers are compared by load, so that tasks return to the same worker."""


class WorkerHandle:
    """Worker with the future and token of its context, and its load; at most two batches of programs run at once."""

    def __init__(self, address: str, context: Any, token: str) -> None:
        self.address, self.context, self.token = address, context, token
        self.playing, self.futures, self.turns = 0, set[Any](), asyncio.Semaphore(2)
        self.waiting: list[tuple[AttemptRequest, asyncio.Future[Result | None]]] = []


class RemoteAttempt:
    """Attempt on a worker, repeated on another one if that is lost; it is its own `cost`."""

    def __init__(self, backend: DaskBackend, item: Item, limits: AttemptLimits) -> None:
        self.calls_begun, self.lost_usd, self._expense = 0, 0.0, NOTHING
        self._backend, self._item, self._limits = backend, item, limits

    @property
    def cost(self) -> RemoteAttempt:
        return self

    def expense(self) -> Expense:
        """Return the cost so far; under a budget, what is reserved while the episode is in play."""
        return self._expense

    async def play(self, memory: Memory) -> PlayedEpisode:
        """Run the episode; raise `RunStoppedError` if the budget is exhausted or no worker is left."""
        item, limits, backend = self._item, self._limits, self._backend
        participant = backend.participants[item.model_key]
        sub_task, max_tokens = backend.by_id[item.task_id].sub_task, backend.config.max_tokens
        reserve = reserve_of_attempt(participant, item.model_key, sub_task, max_tokens, limits.largest_cost)
        budget, is_agent = None if price_of(participant) == NO_CHARGE else limits.budget, isinstance(participant, Agent)
        for _ in range(MAX_ATTEMPTS):
            holding = nullcontext(Reservation()) if budget is None else budget.holding(reserve, partial=not is_agent)
            async with holding as reservation:
                handle = await backend.choose(item.task_id)
                self.calls_begun, reservation.unanswered = 1, reservation.amount
                self._expense = Expense(lost_usd=reservation.amount)
                if reservation.amount:
                    limits.on_expense(self._expense)
                share = None if budget is None else reservation.amount
                result = await backend.submit(handle, (item, memory, share), participant)
                if result is not None:  # else the worker is lost, and the reserve counts as spent
                    self.calls_begun, self._expense = result.calls_begun, result.expense
                    reservation.cost = ((result.trace if is_agent else None) or result.expense).usage.paid_usd
                    self.lost_usd = reservation.unanswered = result.expense.lost_usd
            if result is not None and result.trace is not None:
                return PlayedEpisode(result.trace, partial(bytes, result.trajectory), backend.full_input(item.task_id))
            if result is not None and reservation.amount < reserve:
                raise RunStoppedError(result.stopped)
            if self._expense != NOTHING:
                why = "worker lost" if result is None else "share of the budget spent"
                backend.job.on_event(Dropped(item, why, self._expense))
            reserve, self.calls_begun, self._expense = reserve if result is None else float("inf"), 0, NOTHING
        reason = f"{MAX_ATTEMPTS} workers were lost while playing {item.task_id}; check why they died (memory?)"
        raise RunStoppedError(f"{reason}, then rerun the command to resume")


class DaskBackend:
    """Backend on the workers of a cluster; `guards` are those that every worker has."""

    job: Job

    def __init__(
        self,
        connection: Connection,
        config: WorkerConfig,
        edition: Edition,
        participants: Mapping[ModelKey, Participant],
    ) -> None:
        self.config, self.participants, self.guards = config, participants, dict[str, bool]()
        self.by_id = by_id = {each.task_id: each for each in edition.episodes()}

        def full_input(task_id: str) -> Mapping[str, Any]:
            return edition.full_input(by_id[task_id])

        self.full_input = lru_cache(CACHED_EPISODES)(full_input)
        self._connection, self._numbers, self._failure = connection, count(1), ""
        self._handles, self._seen, self._ready = dict[str, WorkerHandle](), set[str](), asyncio.Event()

    @property
    def machines(self) -> int:
        """Number of groups of programs in play: four for each worker, in two batches."""
        return max(4 * len(self._handles), 1)

    def attempt(self, item: Item, limits: AttemptLimits) -> RemoteAttempt:
        return RemoteAttempt(self, item, limits)

    async def attach(self, *workers: str) -> None:
        """Build a context on each worker; raise `InputError` if one cannot run the configuration."""
        self._seen.update(workers)
        keys = {worker: f"{self.config.run}-context-{next(self._numbers)}" for worker in workers}
        submit_to, config = self._connection.on, self.config
        futures = {worker: submit_to(worker, build_context, config, key, key=key) for worker, key in keys.items()}
        for worker, outcome in (await self._connection.outcomes(futures)).items():
            if isinstance(outcome, FinSkillBenchError):
                raise InputError(f"worker {worker}: {outcome}")
            if not isinstance(outcome, BaseException):  # else the worker is lost
                self._handles[worker] = WorkerHandle(worker, futures[worker], outcome[0])
                self.guards = {name: held and self.guards.get(name, True) for name, held in outcome[1].items()}
        self._ready.set()

    @asynccontextmanager
    async def playing(self, job: Job) -> AsyncGenerator[DaskBackend]:
        """Run the episodes of a job."""
        self.job = job
        watch = asyncio.create_task(self._watch_workers())
        try:
            yield self
        finally:
            watch.cancel()
            for model in {key.model for key in self.participants}:
                with suppress(*GONE):
                    await self._connection.client.scheduler.semaphore_close(name=f"{self.config.run}-{model}")

    async def choose(self, task_id: str) -> WorkerHandle:
        """Return a worker with a low load, if possible the same for a task; raise `RunStoppedError` without workers."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ready.wait(), WORKER_WAIT_SECONDS)
        if self._failure or not self._handles:
            reason = self._failure or f"no worker is left at {self._connection.address}; start workers"
            raise RunStoppedError(f"{reason}; rerun the command to resume")
        return min(self._handles.values(), key=lambda each: (each.playing // _LOAD_STEP, hash((task_id, each.address))))

    def _has(self, handle: WorkerHandle) -> bool:
        return self._handles.get(handle.address) is handle

    async def submit(self, handle: WorkerHandle, request: AttemptRequest, participant: Participant) -> Result | None:
        """Run an episode on a worker; return None if the worker is lost. Programs share futures in batches."""
        handle.playing += 1
        try:
            if not isinstance(participant, Program):
                return (await self._submit(handle, [request]))[0]
            handle.waiting.append(queued := (request, asyncio.get_running_loop().create_future()))
            await asyncio.sleep(0)  # collect requests of the same iteration of the loop
            async with handle.turns:
                if queued in handle.waiting:
                    batch, handle.waiting = handle.waiting, []
                    results = await self._submit(handle, [each for each, _ in batch])
                    for (_, done), result in zip(batch, results, strict=True):
                        done.set_result(result)
            return await queued[1]
        finally:
            handle.playing -= 1

    async def _submit(self, handle: WorkerHandle, requests: list[AttemptRequest]) -> list[Result] | list[None]:
        if not self._has(handle):
            return [None] * len(requests)
        key = f"play-{self.config.run}", requests[0][0].trajectory, next(self._numbers)
        handle.futures.add(future := self._connection.on(handle.address, play, handle.token, key, requests, key=key))
        try:
            outcome = await self._connection.outcome(future)
        finally:
            handle.futures.discard(future)
        if isinstance(outcome, list):
            return cast("list[Result]", outcome)
        if isinstance(outcome, FinSkillBenchError):
            raise type(outcome)(f"worker {handle.address}: {outcome}")
        if not isinstance(outcome, CancelledError | KilledWorker):
            raise InternalError(f"worker {handle.address}: {outcome!r}")
        await self._drop_worker(handle)
        return [None] * len(requests)

    async def _drop_worker(self, handle: WorkerHandle) -> None:
        if self._has(handle):
            del self._handles[handle.address]
            if not self._handles:
                self._ready.clear()
            self._seen.discard(handle.address)
            self.job.notify(f"worker {handle.address} is lost; its episodes are played elsewhere")
            with suppress(*GONE):
                await self._connection.client.cancel([handle.context, *handle.futures], force=True)

    async def _watch_workers(self) -> None:
        """Detect lost and new workers until the scheduler is lost."""
        try:
            async with asyncio.TaskGroup() as joining:
                while True:
                    await asyncio.sleep(POLL_WORKERS_SECONDS)
                    there = set(await self._connection.workers())
                    for handle in [each for each in self._handles.values() if each.address not in there]:
                        await self._drop_worker(handle)
                    self._seen &= there
                    for worker in there - self._seen:
                        self._seen.add(worker)
                        joining.create_task(self._join(worker))
        except* Exception as errors:  # noqa: BLE001 - without this task the driver would wait forever
            self._failure = str(errors.exceptions[0]).removesuffix("; start it and rerun the command to resume")
            for handle in tuple(self._handles.values()):
                await self._drop_worker(handle)
            self._ready.set()

    async def _join(self, worker: str) -> None:
        """Add a worker that started during the run."""
        try:
            await self._connection.check([worker])
            await self.attach(worker)
            self.job.notify(f"worker {worker} {'joined' if worker in self._handles else 'did not join: it is gone'}")
        except (FinSkillBenchError, *GONE) as error:
            self.job.notify(f"worker {worker} did not join: {(str(error) or repr(error)).splitlines()[0]}")
