"""Run streams concurrently, and write each finished episode before its stream continues.

For one episode the trajectory is written first (atomically), then its journal line. If the process is killed between
the two, the episode runs again and its trajectory is replaced; at any other time nothing is lost or repeated.

The first Ctrl-C lets episodes in flight finish; a second one, or SIGTERM, cancels them.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from finskillbench.domains import subtask_named
from finskillbench.edition import Edition
from finskillbench.episode import Episode, JsonObject, Status, Submission, Truth, Verdict
from finskillbench.errors import Cause, InputError, RunStoppedError
from finskillbench.garbage import frozen
from finskillbench.harness.agents import Agent
from finskillbench.harness.conditions import arm_of
from finskillbench.harness.failures import PROVIDER_POLICIES
from finskillbench.harness.model import Usage
from finskillbench.harness.models import ModelKey, Participant, labels
from finskillbench.harness.programs.program import Program
from finskillbench.harness.providers.prices import PROGRAMS
from finskillbench.harness.skills.user_skills import EMPTY, Memory
from finskillbench.harness.tools.contracts import budget_of
from finskillbench.redaction import logger
from finskillbench.runs.config import RunConfig
from finskillbench.runs.execute.backend import Attempt, AttemptLimits, Backend, PlayedEpisode
from finskillbench.runs.execute.limiter import Limiter
from finskillbench.runs.execute.metered import Budget, price_of
from finskillbench.runs.execute.progress import Progress, start_progress
from finskillbench.runs.plan.items import Item, Plan
from finskillbench.runs.plan.streams import Stream, extend_streams, feedback, make_streams, missing, restore_memory
from finskillbench.runs.store.journal import Journal, read_history, remove_parts, write_trajectory
from finskillbench.runs.store.record import AnyEvent, Call, Dropped, Expense, Finished
from finskillbench.runs.store.rows import ROWS, Row, make_row
from finskillbench.runs.store.version import make_folder
from finskillbench.runs.verdicts import judge, unjudged


@contextmanager
def signal_handlers(on_first_interrupt: Callable[[], None], on_repeat: Callable[[], None]) -> Generator[None]:
    """Call `on_first_interrupt` on the first SIGINT, `on_repeat` on each later one and on SIGTERM; main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    already_interrupted = False

    def on_interrupt() -> None:
        nonlocal already_interrupted
        (on_repeat if already_interrupted else on_first_interrupt)()
        already_interrupted = True

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    loop.add_signal_handler(signal.SIGINT, on_interrupt)
    loop.add_signal_handler(signal.SIGTERM, on_repeat)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            if handler is not None:
                signal.signal(number, handler)


_log = logger(__name__)

RUN = "run"
"""Key of `stopped` for a reason that stops all models."""
INTERRUPTED = "interrupted"
_VERDICTS_KEPT = 256
_PROGRAMS_AT_ONCE = 8
"""Maximum number of program episodes in flight per process: enough for every core, limited by memory."""
_WRITERS = 2
"""Threads that compress and write trajectories."""
_LONG_ANSWER = 32 * 1024
"""Characters from which an answer is judged in a thread; the longest answer a task needs is a tenth of it."""


@dataclass(frozen=True, slots=True)
class Job:
    """Request to a backend: conditions to mount, a scratch folder, and callbacks.

    `on_event` writes an event to the journal, `notify` shows a message to the user.
    """

    conditions: Set[str]
    scratch: Path
    on_event: Callable[[AnyEvent], None]
    notify: Callable[[str], None]


OpenBackend = Callable[[Job], AbstractAsyncContextManager[Backend]]
"""Opens the backend for a job."""


class Executor:
    """Runs the items of a plan that the journal of the run folder lacks.

    After `run`, `rows` holds all rows of the folder by item; `ran`, `kept` and `dropped` count episodes of the plan;
    `stopped` gives reasons, by model or under `RUN` for all. Raises `InputError` if the journal is damaged, the folder
    cannot grow by this plan, or its cost so far is unknown under `max_cost`.
    """

    def __init__(
        self,
        edition: Edition,
        plan: Plan,
        models: Mapping[ModelKey, Participant],
        config: RunConfig,
        open_backend: OpenBackend,
        progress: Progress,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.edition, self.models, self.config, self.out = edition, models, config, (out := config.out)
        self.on_progress, self.sleep, self._open_backend = progress, sleep, open_backend
        limits, streams = config.limits, make_streams(plan, config.episodes.shard)
        self.by_id = {episode.task_id: episode for episode in plan.episodes}
        self.labels = labels(models)
        self._has_truth = edition.has_truth
        self.planned = frozenset(item for stream in streams for item in stream.items)
        self._history = read_history(out)
        # An item without trajectory counts as not run.
        found = self._history.rows
        self.rows = {item: row for item, row in found.items() if (out / item.trajectory).is_file()}
        self.to_run = {
            stream: rest
            for stream in extend_streams(streams, self.rows, edition.episodes())
            if (rest := missing(stream, self.rows, self.planned, retry_errors=limits.retry_errors))
        }
        self._pending = {item for rest in self.to_run.values() for item in rest}
        kept = [row for item, row in self.rows.items() if item in self.planned and item not in self._pending]
        self.kept, self.ran, self.dropped = len(kept), 0, 0
        self.stopped: dict[str, str] = {}
        self.progress = start_progress((item.model for item in plan.items if item in self.planned), kept)
        self.budget = None if limits.max_cost is None else Budget(limits.max_cost, self._spent())
        played = (row for item, row in found.items() if isinstance(models.get(item.model_key), Agent))
        self._largest_cost = max((row.cost_usd or 0.0 for row in played), default=0.0)
        self._verdicts: dict[tuple[str, str | None, str], Verdict] = {}
        self._in_flight = 0
        self._drop_reason = "stopped"
        self._tasks: list[asyncio.Task[None]] = []

    def _spent(self) -> float:
        """Return US dollars spent in the folder, including models that are not in this run."""
        amounts = self._history.amounts()
        prices = {model: self.config.options.charged.price_of(model) for model, _ in amounts}
        prices |= {key.model: price_of(model) for key, model in self.models.items()}
        for model, expense in amounts:
            if expense.usage.cost_usd is None and prices[model] is None and expense.usage.input_tokens:
                raise InputError(
                    f"--max-cost needs the price of {model}: {self.out} has episodes of it whose cost is unknown; "
                    "add it to a --prices file"
                )
        return self._history.spent(prices)

    def _changed_arguments_notice(self) -> str:
        """Return a notice about models that the folder has with other arguments only; the user may not expect this."""
        known = {item.model_key for item in self.rows}
        models = {key.model for key in known}
        names = labels([*known, *self.models])
        changed = [names[key] for key in self.models if key not in known and key.model in models]
        return (
            f"{self.out} has these models with other arguments; they run again: {', '.join(changed)}" if changed else ""
        )

    async def run(self) -> None:
        """Run every missing item of the plan; on return all finished episodes are on disk."""
        self._notify(self._changed_arguments_notice())
        if not self.to_run:
            return
        _log.info("%s: %d episodes to run, %d finished before", self.out, len(self._pending), self.kept)
        # A table must match the journal, so it is absent if the process is killed from here on.
        (self.out / ROWS).unlink(missing_ok=True)
        scratch = self.out / "scratch"
        async with AsyncExitStack() as stack:
            remove_parts(self.out)
            shutil.rmtree(scratch, ignore_errors=True)
            make_folder(scratch)
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            for arm in {item.arm_folder for item in self._pending}:
                make_folder(self.out / "trajectories" / arm)
            self._writers = stack.enter_context(ThreadPoolExecutor(_WRITERS, "writing"))
            self._judge_thread = stack.enter_context(ThreadPoolExecutor(1, "judging"))
            self._journal = stack.enter_context(Journal(self.out))
            for event in self._history.killed():
                self._journal.append(event)
            job = Job({item.condition for item in self._pending}, scratch, self._journal.append, self._notify)
            self._backend = await stack.enter_async_context(self._open_backend(job))
            stack.enter_context(frozen())
            stack.enter_context(signal_handlers(self._finish_in_flight, self._cancel_in_flight))
            await self._run_queues()

    async def _run_queues(self) -> None:
        """Run one queue of streams for each model, in parallel, so that no model waits for a slower one.

        Programs share a queue, since they share the processor, and go episode by episode to prepare each only once.
        """
        queues: dict[str, list[Stream]] = {}
        for stream in self.to_run:
            item = stream.items[0]
            name = PROGRAMS if isinstance(self.models[item.model_key], Program) else item.model
            queues.setdefault(name, []).append(stream)
        most = self.config.limits.max_concurrency
        for name, streams in queues.items():
            limiter = None if name == PROGRAMS else Limiter(most, self.sleep)
            queue = iter(streams)
            # Programs are bound by processors, so each machine adds concurrency.
            concurrency = min(most, _PROGRAMS_AT_ONCE) * self._backend.machines if name == PROGRAMS else most
            for _ in range(min(concurrency, len(streams))):
                self._tasks.append(asyncio.create_task(self._take_streams(queue, limiter)))
        try:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in self._tasks:
                task.cancel()
            outcomes = await asyncio.gather(*self._tasks, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, asyncio.CancelledError):
                raise outcome

    async def _take_streams(self, queue: Iterator[Stream], limiter: Limiter | None) -> None:
        for stream in queue:
            if self._may_start(stream.items[0].model_key):
                await self._run_stream(stream, limiter)

    async def _run_stream(self, stream: Stream, limiter: Limiter | None) -> None:
        memory = restore_memory(stream, self.rows, self.out)
        for item in self.to_run[stream]:
            if not self._may_start(item.model_key):
                return
            attempt = self._attempt(item, limiter)
            before = self.rows.get(item)
            self._in_flight += 1
            try:
                row, skills = await self._run_item(item, attempt, memory)
            except RunStoppedError as stop:
                self._stop(RUN, str(stop))
                self._drop(item, "budget", attempt)
                return
            except BaseException:
                if self.rows.get(item) is before:
                    try:
                        self._drop(item, self._drop_reason, attempt)
                    except InputError:  # the disk that stopped the run may reject this line too
                        _log.debug("%s: could not be journalled as dropped", item, exc_info=True)
                raise
            finally:
                self._in_flight -= 1
            if stream.has_memory:
                if row.status is Status.ERROR:
                    return  # later episodes would have another history
                memory = Memory(skills, (*memory.verdicts, feedback(row)))
            await asyncio.sleep(0)  # models that never wait must not block others or an interrupt

    def _attempt(self, item: Item, limiter: Limiter | None) -> Attempt:
        def on_expense(expense: Expense) -> None:
            self._journal.append(Call(item, expense))

        return self._backend.attempt(item, AttemptLimits(limiter, self.budget, self._largest_cost, on_expense))

    def _record_agent_cost(self, item: Item, agent: Agent, usage: Usage) -> None:
        self._largest_cost = max(self._largest_cost, usage.cost_usd or 0.0)
        if self.budget is not None and usage.cost_usd is None and not self._largest_cost:
            self._stop(RUN, f"--max-cost cannot be enforced: {agent.name} did not report the cost of {item.task_id}")

    async def _run_item(self, item: Item, attempt: Attempt, memory: Memory = EMPTY) -> tuple[Row, Mapping[str, str]]:
        """Run, judge and store one episode; return its row and the skills that it saved."""
        episode, participant = self.by_id[item.task_id], self.models[item.model_key]
        played = await attempt.play(memory)
        trace = played.trace
        if isinstance(participant, Agent):
            self._record_agent_cost(item, participant, trace.usage)
        # The truth is read only after the loop has ended.
        verdict = await self._verdict_on(trace.submission, episode, played.full_input, item.condition)
        digest = self.edition.digest
        await asyncio.get_running_loop().run_in_executor(self._writers, self._write, item, played)
        method = subtask_named(verdict.sub_task).verification.method
        row = make_row(item, episode, trace, verdict, method=method, edition_digest=digest)
        self._journal.append(Finished(row, attempt.cost.lost_usd))
        self.rows[item] = row
        self.ran += 1
        self.progress.models[item.model].ran += 1
        self.progress.models[item.model].add(row)
        self.on_progress(self.progress, row)
        if trace.error_cause is not None and PROVIDER_POLICIES[Cause(trace.error_cause)].stops == "model":
            self._stop(self.labels[item.model_key], f"{trace.error_cause}: {trace.error}")
        return row, trace.saved_skills

    def _write(self, item: Item, played: PlayedEpisode) -> None:
        """Write a trajectory; called in a thread, since this takes a quarter of a program's episode."""
        write_trajectory(self.out, item, played.trajectory())

    async def _verdict_on(
        self, submission: Submission, episode: Episode, full_input: JsonObject, condition: str
    ) -> Verdict:
        """Judge a submission; without truth, return a verdict without score."""
        if not self._has_truth:
            return unjudged(submission, episode.sub_task)
        return await self._judge(submission, self.edition.truth(submission.task_id), full_input, condition)

    async def _judge(self, submission: Submission, truth: Truth, full_input: JsonObject, condition: str) -> Verdict:
        """Judge in a thread what may be slow: long answers, interactive episodes, own budgets, planted faults."""
        short = len(submission.answer or "") < _LONG_ANSWER
        fast = budget_of(truth.sub_task) is None and not arm_of(condition).fault
        if short and submission.record is None and fast:
            # Programs submit equal answers under several conditions in succession.
            known = (submission.task_id, submission.answer, submission.ended)
            if known not in self._verdicts:
                self._verdicts[known] = judge(submission, truth, full_input)
                if len(self._verdicts) > _VERDICTS_KEPT:
                    del self._verdicts[next(iter(self._verdicts))]
            return self._verdicts[known]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._judge_thread, judge, submission, truth, full_input, condition)

    def _may_start(self, model_key: ModelKey) -> bool:
        return RUN not in self.stopped and self.labels[model_key] not in self.stopped

    def _stop(self, scope: str, reason: str) -> None:
        if scope not in self.stopped:
            self.stopped[scope] = reason
            if any(map(self._may_start, self.labels)):  # otherwise the end of the run states the reason
                self._notify(f"{scope} is stopped: {reason}")

    def _notify(self, notice: str) -> None:
        self.progress.notice = notice
        self.on_progress(self.progress, None)

    def _finish_in_flight(self) -> None:
        """Start no more episodes; those in flight finish."""
        self.stopped[RUN] = self._drop_reason = INTERRUPTED
        self._notify(f"interrupted: finishing {self._in_flight} episodes in flight; interrupt again to drop them")

    def _cancel_in_flight(self) -> None:
        """Start no more episodes, and cancel those in flight."""
        self.stopped[RUN] = self._drop_reason = INTERRUPTED
        for task in self._tasks:
            task.cancel()

    def _drop(self, item: Item, reason: str, attempt: Attempt) -> None:
        if not attempt.cost.calls_begun:
            return  # the budget was exhausted before the first call
        self.dropped += 1
        self._journal.append(Dropped(item, reason, attempt.cost.expense()))
