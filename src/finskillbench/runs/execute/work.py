"""The work of a run: streams worked off concurrently, each finished episode written before the next begins.

Order of writing for one episode: trajectory (beside, then renamed), then its event in the journal. Killed in between,
the episode is run again and its trajectory replaced; killed anywhere else, nothing is lost and nothing is run twice.

Ctrl-C twice: the first is a request, the second an order; so is a request to terminate.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from finskillbench.domains import by_name
from finskillbench.edition import Edition
from finskillbench.episode import Episode, JsonObject, Status, Submission, Truth, Verdict
from finskillbench.errors import Cause, InputError, RunStoppedError
from finskillbench.garbage import frozen
from finskillbench.harness.agents import Agent
from finskillbench.harness.failures import PROVIDER
from finskillbench.harness.model import Usage
from finskillbench.harness.models import ModelKey, Participant, labels
from finskillbench.harness.programs.program import Program
from finskillbench.harness.providers.prices import PROGRAMS, PriceTable
from finskillbench.harness.skills.user_skills import EMPTY, Memory
from finskillbench.harness.tools.contracts import budget_of
from finskillbench.redaction import logger
from finskillbench.runs.execute.board import Progress, make_board
from finskillbench.runs.execute.here import Place, Played, Sitting, Terms
from finskillbench.runs.execute.limiter import Limiter
from finskillbench.runs.execute.metered import Budget, price_of
from finskillbench.runs.plan.items import Item, Plan
from finskillbench.runs.plan.streams import Stream, feedback, missing, remembered, with_past
from finskillbench.runs.store.journal import Journal, read_history, remove_parts, write_trajectory
from finskillbench.runs.store.record import AnyEvent, Call, Dropped, Expense, Finished
from finskillbench.runs.store.rows import ROWS, Row, make_row
from finskillbench.runs.store.version import make_folder
from finskillbench.runs.verdicts import judge, unjudged


@contextmanager
def interrupts(ask: Callable[[], None], order: Callable[[], None]) -> Generator[None]:
    """While this lasts, the first SIGINT calls `ask`, each later one and SIGTERM call `order`, in the running loop.

    Outside the main thread, which alone receives signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    asked = False

    def interrupted() -> None:
        nonlocal asked
        (order if asked else ask)()
        asked = True

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    loop.add_signal_handler(signal.SIGINT, interrupted)
    loop.add_signal_handler(signal.SIGTERM, order)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            if handler is not None:
                signal.signal(number, handler)


_log = logger(__name__)

RUN = "run"
"""The key of `stopped` for what stopped all models."""
INTERRUPTED = "interrupted"
_VERDICTS_KEPT = 256
_PROGRAMS_AT_ONCE = 8
"""Episodes of programs in flight in a process, at most: enough for every core, few for the memory of their tables."""
_WRITERS = 2
"""Threads that pack and write trajectories."""
_LONG_ANSWER = 32 * 1024
"""Characters from which on an answer is judged in a thread; the longest that a task calls for is a tenth of it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What decides how far and how fast a run goes, and what it may do on this machine, but no result.

    `max_concurrency` counts episodes in flight for each model (programs together count as one, with eight at most);
    `max_cost` is in US dollars, for the whole run folder, and `prices` are for what it holds of other models;
    `max_tokens` is the most that one call may generate.
    """

    max_concurrency: int
    max_cost: float | None
    prices: PriceTable
    max_tokens: int
    retry_errors: bool
    allow_unconfined: bool


@dataclass(frozen=True, slots=True)
class Job:
    """What a place has to know of the work: its conditions, a scratch folder, and whom to tell what.

    `note` writes an event into the journal, `notify` says something to the user.
    """

    conditions: Set[str]
    scratch: Path
    note: Callable[[AnyEvent], None]
    notify: Callable[[str], None]


Where = Callable[[Job], AbstractAsyncContextManager[Place]]
"""Opens the place where the episodes of some work are played."""


class Work:
    """Works off what the journal of a run folder, which this process holds, lacks of a plan.

    After `finish`, `rows` are all rows of the folder by item, `ran`, `kept` and `dropped` count episodes of the plan,
    and `stopped` says, by model or for `RUN`, why something was not run.

    Raises
    ------
    InputError : the journal is damaged, the folder cannot grow so, or its cost so far is not known under `max_cost`.
    """

    def __init__(
        self,
        edition: Edition,
        plan: Plan,
        streams: Sequence[Stream],
        models: Mapping[ModelKey, Participant],
        out: Path,
        limits: Limits,
        progress: Progress,
        sleep: Callable[[float], Awaitable[None]],
        where: Where,
    ) -> None:
        self.edition, self.models, self.out = edition, models, out
        self.limits, self.progress, self.sleep, self._where = limits, progress, sleep, where
        self.by_id = {episode.task_id: episode for episode in plan.episodes}
        self.labels = labels(models)
        self._has_truth = edition.has_truth
        self.planned = frozenset(item for stream in streams for item in stream.items)
        self._history = read_history(out)
        # An item whose trajectory is gone counts as not run.
        found = self._history.rows
        self.rows = {item: row for item, row in found.items() if (out / item.trajectory).is_file()}
        self.to_run = {
            stream: rest
            for stream in with_past(streams, self.rows, edition.episodes())
            if (rest := missing(stream, self.rows, self.planned, retry_errors=limits.retry_errors))
        }
        self._pending = {item for rest in self.to_run.values() for item in rest}
        kept = [row for item, row in self.rows.items() if item in self.planned and item not in self._pending]
        self.kept, self.ran, self.dropped = len(kept), 0, 0
        self.stopped: dict[str, str] = {}
        self.board = make_board((item.model for item in plan.items if item in self.planned), kept)
        self.budget = None if limits.max_cost is None else Budget(limits.max_cost, self._spent())
        played = (row for item, row in found.items() if isinstance(models.get(item.entry), Agent))
        self._dearest = max((row.cost_usd or 0.0 for row in played), default=0.0)
        self._verdicts: dict[tuple[str, str | None, str], Verdict] = {}
        self._in_flight = 0
        self._why_dropped = "stopped"
        self._tasks: list[asyncio.Task[None]] = []

    def _spent(self) -> float:
        """US dollars that the folder has cost, also for models that are not run now."""
        amounts = self._history.amounts()
        prices = {model: self.limits.prices.of(model) for model, _ in amounts}
        prices |= {entry.model: price_of(model) for entry, model in self.models.items()}
        for model, expense in amounts:
            if expense.usage.cost_usd is None and prices[model] is None and expense.usage.input_tokens:
                raise InputError(
                    f"--max-cost needs the price of {model}, of which {self.out} has episodes of unknown cost; name it "
                    "in a --prices file"
                )
        return self._history.spent(prices)

    def _other_arguments(self) -> str:
        """Which models the folder has under other arguments alone: whoever resumes may not have meant to."""
        known = {item.entry for item in self.rows}
        models = {entry.model for entry in known}
        names = labels([*known, *self.models])
        anew = [names[entry] for entry in self.models if entry not in known and entry.model in models]
        return f"run anew, since {self.out} has other arguments of the model: {', '.join(anew)}" if anew else ""

    async def finish(self) -> None:
        """Run every missing item that may be run; on return all that was finished is on disk."""
        self._notify(self._other_arguments())
        if not self.to_run:
            return
        _log.info("%s: %d episodes to run, %d finished before", self.out, len(self._pending), self.kept)
        # The table says all that the journal says, or is not there: a process killed from here on leaves none.
        (self.out / ROWS).unlink(missing_ok=True)
        scratch = self.out / "scratch"
        async with AsyncExitStack() as stack:
            remove_parts(self.out)
            shutil.rmtree(scratch, ignore_errors=True)
            make_folder(scratch)
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            for arm in {item.arm for item in self._pending}:
                make_folder(self.out / "trajectories" / arm)
            self._writing = stack.enter_context(ThreadPoolExecutor(_WRITERS, "writing"))
            self._judging = stack.enter_context(ThreadPoolExecutor(1, "judging"))
            self._journal = stack.enter_context(Journal(self.out))
            for event in self._history.killed():
                self._journal.append(event)
            job = Job({item.condition for item in self._pending}, scratch, self._journal.append, self._notify)
            self._place = await stack.enter_async_context(self._where(job))
            stack.enter_context(frozen())
            stack.enter_context(interrupts(self._ask_to_stop, self._drop_all))
            await self._work_off()

    async def _work_off(self) -> None:
        """Run the streams, those of each model beside those of the others: none waits for a slower one.

        Programs share a queue, since they share the processor: episode by episode, whose material is then made once.
        """
        queues: dict[str, list[Stream]] = {}
        for stream in self.to_run:
            item = stream.items[0]
            queues.setdefault(PROGRAMS if isinstance(self.models[item.entry], Program) else item.model, []).append(
                stream
            )
        most = self.limits.max_concurrency
        for name, streams in queues.items():
            limiter = None if name == PROGRAMS else Limiter(most, self.sleep)
            queue = iter(streams)
            # Programs wait for nothing but a processor, and each machine has its own.
            at_once = min(most, _PROGRAMS_AT_ONCE) * self._place.machines if name == PROGRAMS else most
            for _ in range(min(at_once, len(streams))):
                self._tasks.append(asyncio.create_task(self._worker(queue, limiter)))
        try:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in self._tasks:
                task.cancel()
            ends = await asyncio.gather(*self._tasks, return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException) and not isinstance(end, asyncio.CancelledError):
                raise end

    async def _worker(self, queue: Iterator[Stream], limiter: Limiter | None) -> None:
        for stream in queue:
            if self._may_start(stream.items[0].entry):
                await self._stream(stream, limiter)

    async def _stream(self, stream: Stream, limiter: Limiter | None) -> None:
        memory = remembered(stream, self.rows, self.out)
        for item in self.to_run[stream]:
            if not self._may_start(item.entry):
                return
            sitting = self._sitting(item, limiter)
            before = self.rows.get(item)
            self._in_flight += 1
            try:
                row, skills = await self._episode(item, sitting, memory)
            except RunStoppedError as stop:
                self._stop(RUN, str(stop))
                self._drop(item, "budget", sitting)
                return
            except BaseException:
                if self.rows.get(item) is before:
                    try:
                        self._drop(item, self._why_dropped, sitting)
                    except InputError:  # the disk that stopped the run may not take this line either
                        _log.debug("%s: not noted as dropped", item, exc_info=True)
                raise
            finally:
                self._in_flight -= 1
            if stream.has_memory:
                if row.status is Status.ERROR:
                    return  # what follows would have another past
                memory = Memory(skills, (*memory.verdicts, feedback(row)))
            await asyncio.sleep(0)  # models that never wait must not starve the others or an interrupt

    def _sitting(self, item: Item, limiter: Limiter | None) -> Sitting:
        def note(expense: Expense) -> None:
            self._journal.append(Call(item, expense))

        return self._place.sitting(item, Terms(limiter, self.budget, self._dearest, note))

    def _paid(self, item: Item, entrant: Agent, usage: Usage) -> None:
        """Take in what an agent says that its episode has cost."""
        self._dearest = max(self._dearest, usage.cost_usd or 0.0)
        if self.budget is not None and usage.cost_usd is None and not self._dearest:
            self._stop(RUN, f"--max-cost cannot be kept: {entrant.name} has not said what {item.task_id} cost")

    async def _episode(self, item: Item, sitting: Sitting, memory: Memory = EMPTY) -> tuple[Row, Mapping[str, str]]:
        """Run, judge and write one episode; returns its row and the skills that it left."""
        episode, entrant = self.by_id[item.task_id], self.models[item.entry]
        played = await sitting.play(memory)
        trace = played.trace
        if isinstance(entrant, Agent):
            self._paid(item, entrant, trace.usage)
        # The loop is over: only now does the truth come in.
        verdict = await self._verdict(trace.submission, episode, played.full_input)
        digest = self.edition.digest
        await asyncio.get_running_loop().run_in_executor(self._writing, self._write, item, played)
        method = by_name(verdict.sub_task).verification.method
        row = make_row(item, episode, trace, verdict, method=method, edition_digest=digest)
        self._journal.append(Finished(row, sitting.lost_usd))
        self.rows[item] = row
        self.ran += 1
        self.board.models[item.model].ran += 1
        self.board.models[item.model].add(row)
        self.progress(self.board, row)
        if trace.error_cause is not None and PROVIDER[Cause(trace.error_cause)].stops == "model":
            self._stop(self.labels[item.entry], f"{trace.error_cause}: {trace.error}")
        return row, trace.saved_skills

    def _write(self, item: Item, played: Played) -> None:
        """Write a trajectory; in a thread, since packing and the disk take a quarter of an episode of a program."""
        write_trajectory(self.out, item, played.trajectory())

    async def _verdict(self, submission: Submission, episode: Episode, full_input: JsonObject) -> Verdict:
        """What the truth says of a submission; without a score where the edition was handed out without it."""
        if not self._has_truth:
            return unjudged(submission, episode.sub_task)
        return await self._judged(submission, self.edition.truth(submission.task_id), full_input)

    async def _judged(self, submission: Submission, truth: Truth, full_input: JsonObject) -> Verdict:
        """Judge, a long answer and a case with a budget in a thread: what is slow to judge must hold up no other."""
        short = len(submission.answer or "") < _LONG_ANSWER
        if short and submission.record is None and budget_of(truth.sub_task) is None:
            # Programs hand in the same answer under several conditions, one after another.
            known = (submission.task_id, submission.answer, submission.ended)
            if known not in self._verdicts:
                self._verdicts[known] = judge(submission, truth, full_input)
                if len(self._verdicts) > _VERDICTS_KEPT:
                    del self._verdicts[next(iter(self._verdicts))]
            return self._verdicts[known]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._judging, judge, submission, truth, full_input)

    def _may_start(self, entry: ModelKey) -> bool:
        return RUN not in self.stopped and self.labels[entry] not in self.stopped

    def _stop(self, what: str, why: str) -> None:
        if what not in self.stopped:
            self.stopped[what] = why
            if any(map(self._may_start, self.labels)):  # else the end of the run follows, and states it
                self._notify(f"{what} is stopped: {why}")

    def _notify(self, notice: str) -> None:
        self.board.notice = notice
        self.progress(self.board, None)

    def _ask_to_stop(self) -> None:
        """Start nothing more, and let what is in flight finish."""
        self.stopped[RUN] = INTERRUPTED
        self._why_dropped = INTERRUPTED
        self._notify(f"interrupted: finishing {self._in_flight} episodes in flight; interrupt again to drop them")

    def _drop_all(self) -> None:
        """Start nothing more, and drop what is in flight."""
        self.stopped[RUN] = INTERRUPTED
        self._why_dropped = INTERRUPTED
        for task in self._tasks:
            task.cancel()

    def _drop(self, item: Item, why: str, sitting: Sitting) -> None:
        if not sitting.asked:
            return  # the budget stood before its first call: the episode was not begun
        self.dropped += 1
        self._journal.append(Dropped(item, why, sitting.expense()))
