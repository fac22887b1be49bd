"""The driver: opens a desk on each worker, hands episodes out, and keeps count of who is still there.

A worker is lost when the scheduler no longer knows it, when its desk ends, or when the desk has said nothing for a
minute. What was in play there is played again elsewhere; whatever the lost one still says is not heard any more. A
worker that comes later is looked at as the first ones were, and gets a desk; one that will not do is passed over with a
notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from itertools import count
from typing import Any
from uuid import uuid4

from finskillbench.cluster.connection import GONE, Connection
from finskillbench.edition import Edition
from finskillbench.errors import FinSkillBenchError, InputError, RunStoppedError
from finskillbench.harness.agents import Agent
from finskillbench.harness.models import Entrant, Entry
from finskillbench.harness.programs.program import Program
from finskillbench.redaction import logger
from finskillbench.runs.cluster import messages as m
from finskillbench.runs.cluster.desk import BEAT_SECONDS, SILENCE_SECONDS, examine, serve
from finskillbench.runs.cluster.room import Room
from finskillbench.runs.cluster.ticket import DeskLostError, Ticket
from finskillbench.runs.execute.here import CACHED_EPISODES, Played, Terms
from finskillbench.runs.execute.work import Job
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.record import AnyEvent

_log = logger(__name__)

LOOK_SECONDS = 1.0
"""How often the scheduler is asked who is there."""
WAIT_SECONDS = 60.0
"""How long a run without a single worker waits for one: a nanny starts a killed worker again within seconds."""
_KEPT_TOGETHER = 16
"""Tries more than the least that a desk may have and still get the next of the same episode, whose prompt it holds."""


class Desk:
    """A desk as the driver knows it; `tickets` are the tries in play there by number, `heard` is when it last spoke."""

    def __init__(self, worker: str, name: str, inbox: Any, future: Any, now: float) -> None:
        self.worker, self.name, self.future, self.heard = worker, name, future, now
        self.tickets: dict[int, Ticket] = {}
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.inbox = inbox
        self._letter: list[m.ToDesk] = []
        self._posting: asyncio.Task[None] | None = None

    def send(self, message: m.ToDesk) -> None:
        """Have a message sent with the next letter."""
        self._letter.append(message)
        if self._posting is None or self._posting.done():
            self._posting = asyncio.create_task(self._post())

    @property
    def is_open(self) -> bool:
        """Whether it can play."""
        return self.opened.done() and not self.opened.cancelled() and self.opened.exception() is None

    async def flushed(self) -> None:
        """Wait until everything is sent."""
        if self._posting is not None:
            await self._posting

    async def _post(self) -> None:
        while self._letter:
            await asyncio.sleep(0)  # whoever else has something to say in this turn of the loop
            said, self._letter = self._letter, []
            try:
                await self.inbox.put(m.letter_to_desk(said))
            except GONE:  # who looks for the scheduler says so
                _log.debug("%s: a letter was not sent", self.worker, exc_info=True)
                return


class Driver:
    """The desks of a run as a place where episodes are played; see `finskillbench.runs.execute.here.Place`."""

    def __init__(
        self, connection: Connection, room: Room, edition: Edition, entrants: Mapping[Entry, Entrant], job: Job
    ) -> None:
        self._connection, self._room, self._entrants, self._job = connection, room, entrants, job
        self._run = f"finskillbench-{uuid4().hex[:12]}"
        self._numbers = count(1)
        self._desks: dict[str, Desk] = {}
        self._seen: set[str] = set()
        self._changed = asyncio.Event()
        self._gone = ""
        self._last: tuple[str, Desk] | None = None
        self._chores: set[asyncio.Task[None]] = set()
        self._clock = asyncio.get_running_loop().time
        by_id = {each.task_id: each for each in edition.episodes()}

        def full_input(task_id: str) -> Mapping[str, Any]:
            return edition.full_input(by_id[task_id])

        self._full_input = lru_cache(CACHED_EPISODES)(full_input)

    @property
    def machines(self) -> int:
        """How many workers play side by side."""
        return max(len(self._desks), 1)

    def sitting(self, item: Item, terms: Terms) -> Ticket:
        """A place for one try at an episode, and for further ones where a worker is lost."""
        entrant = self._entrants[item.entry]
        return Ticket(self, item, terms, calls=not isinstance(entrant, Agent | Program))

    def number(self) -> int:
        """The number of a new try."""
        return next(self._numbers)

    def note(self, event: AnyEvent) -> None:
        """Write an event into the journal."""
        self._job.note(event)

    def played(self, item: Item, done: m.Done) -> Played:
        """What came back of an episode, with what it is judged by."""
        return Played(m.unpacked(done.trace), lambda: done.trajectory, self._full_input(item.task_id))

    async def choose(self, item: Item) -> Desk:
        """The desk for an episode: where others of the same are, else where the fewest are.

        Raises
        ------
        RunStoppedError : there is none, and none came in a minute; or the scheduler is gone.
        """
        until = self._clock() + WAIT_SECONDS
        while True:
            if self._gone:
                raise RunStoppedError(self._gone)
            if ready := [desk for desk in self._desks.values() if desk.is_open]:
                break
            self._changed.clear()
            try:
                async with asyncio.timeout(max(until - self._clock(), 0.0)):
                    await self._changed.wait()
            except TimeoutError:
                raise RunStoppedError(
                    f"no worker is left at {self._connection.address}; start some, the same command goes on"
                ) from None
        least = min(ready, key=lambda desk: len(desk.tickets))
        if self._last is not None and self._last[0] == item.task_id and self._last[1].name in self._desks:
            desk = self._last[1]
            if len(desk.tickets) <= len(least.tickets) + _KEPT_TOGETHER:
                return desk
        self._last = item.task_id, least
        return least

    async def open(self) -> None:
        """Open a desk on every worker.

        Raises
        ------
        InputError : a worker cannot play this run, or there is none.
        """
        make = self._queue
        self._outbox = await make(f"{self._run}-driver")
        self._chore(self._hear())
        workers = await self._connection.first_workers()
        self._seen.update(workers)
        for chore in (self._look(), self._beat()):
            self._chore(chore)
        ends = await asyncio.gather(*map(self._seat, workers), return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException) and not isinstance(end, DeskLostError):
                raise end

    async def close(self) -> None:
        """End every desk, and what is kept on the scheduler."""
        desks = tuple(self._desks.values())
        for task in self._chores:
            task.cancel()
        await asyncio.gather(*self._chores, return_exceptions=True)
        for desk in desks:
            desk.send(m.Close())
        with suppress(TimeoutError):
            async with asyncio.timeout(BEAT_SECONDS):
                await asyncio.gather(*(desk.flushed() for desk in desks))
                await asyncio.gather(*(desk.future for desk in desks), return_exceptions=True)
        for desk in desks:
            self._forget(desk)
        self._outbox.close()

    async def _queue(self, name: str) -> Any:
        from distributed import Queue

        make: Any = Queue
        return await make(name, client=self._connection.client)

    def _chore(self, doing: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(doing)
        self._chores.add(task)
        task.add_done_callback(self._done)

    def _done(self, chore: asyncio.Task[None]) -> None:
        """A chore has ended; one that failed would leave everybody waiting for ever."""
        self._chores.discard(chore)
        if not chore.cancelled() and (error := chore.exception()) is not None:
            _log.error("the driver of %s failed", self._connection.address, exc_info=error)
            self._end(f"the driver failed ({type(error).__name__}: {error})")

    async def _seat(self, worker: str) -> None:
        """Open a desk on a worker; raises `InputError` where that is not possible there."""
        name = f"{self._run}-{self.number()}"
        inbox = await self._queue(name)
        future = self._connection.on(worker, serve, self._room, name, self._outbox.name)
        desk = Desk(worker, name, inbox, future, self._clock())
        self._desks[name] = desk
        self._chore(self._mind(desk))
        try:
            await desk.opened
        except FinSkillBenchError as error:
            raise InputError(f"worker {worker}: {error}") from None
        self._changed.set()

    async def _mind(self, desk: Desk) -> None:
        """Wait until a desk ends, which it does not do by itself."""
        end = await self._connection.outcome(desk.future)
        self._lose(desk, end if isinstance(end, BaseException) else None)

    def _lose(self, desk: Desk, error: BaseException | None) -> None:
        if self._desks.pop(desk.name, None) is None:
            return
        known = isinstance(error, FinSkillBenchError)
        told = str(error) if error is not None and str(error) else "it is gone"
        if not desk.opened.done():
            desk.opened.set_exception(error if known and error else DeskLostError(told.splitlines()[0]))
            desk.opened.exception()  # whoever waits for it hears of it, if anybody does
        else:
            self._job.notify(f"worker {desk.worker} is lost: {told.splitlines()[0]}; its episodes are played elsewhere")
        for ticket in tuple(desk.tickets.values()):
            ticket.fail(DeskLostError())
        self._forget(desk)

    def _forget(self, desk: Desk) -> None:
        self._desks.pop(desk.name, None)
        with suppress(*GONE):  # a scheduler that is gone keeps nothing either
            desk.future.release()
            desk.inbox.close()

    async def _hear(self) -> None:
        """Read what the desks say, and hand it to whom it concerns."""
        while True:
            try:
                arrived = await self._outbox.get()
            except GONE as error:
                self._end(f"the scheduler at {self._connection.address} is gone ({error})")
                return
            letter = m.read_from_desk(arrived)
            desk = self._desks.get(letter.desk)
            if desk is None:
                continue  # of a worker that was taken for lost: what it played is played elsewhere
            desk.heard = self._clock()
            for message in letter.messages:
                if isinstance(message, m.Opened):
                    self._opened(desk)
                elif not isinstance(message, m.Beat) and (ticket := desk.tickets.get(message.number)) is not None:
                    try:
                        ticket.hear(desk, message.number, message)
                    except FinSkillBenchError as error:  # the journal cannot be written
                        ticket.fail(error)
            await asyncio.sleep(0)

    def _opened(self, desk: Desk) -> None:
        if not desk.opened.done():
            desk.opened.set_result(None)
            return
        # Dask has run the task again, on a worker that came back under the same address: the first desk is lost.
        for ticket in tuple(desk.tickets.values()):
            ticket.fail(DeskLostError())

    def _end(self, why: str) -> None:
        """Nothing more can be played."""
        self._gone = f"{why}; the same command goes on"
        self._changed.set()
        for desk in tuple(self._desks.values()):
            for ticket in tuple(desk.tickets.values()):
                ticket.fail(RunStoppedError(self._gone))

    async def _look(self) -> None:
        """See who is gone and who has come."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                there = set(await self._connection.workers())
            except (InputError, *GONE) as error:
                self._end(str(error))
                return
            for desk in tuple(self._desks.values()):
                if desk.worker not in there:
                    self._lose(desk, None)
                elif self._clock() - desk.heard > SILENCE_SECONDS:
                    self._lose(desk, InputError(f"nothing was heard of it for {SILENCE_SECONDS:g} seconds"))
                    self._seen.discard(desk.worker)  # it may only have been slow: it is asked to take part again
            self._seen &= there  # whoever comes back under its address is new
            for worker in there - self._seen:
                self._seen.add(worker)
                self._chore(self._join(worker))

    async def _join(self, worker: str) -> None:
        """Take in a worker that came later."""
        try:
            await self._connection.check([worker])
            await examined(self._connection, self._room, [worker])
            await self._seat(worker)
        except (FinSkillBenchError, DeskLostError, *GONE) as error:  # it may be gone again
            self._job.notify(f"worker {worker} takes no part: {str(error).splitlines()[0] if str(error) else error!r}")
        else:
            self._job.notify(f"worker {worker} takes part")

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            for desk in self._desks.values():
                desk.send(m.Beat())

    def lost(self, item: Item) -> None:
        """Note that a try was lost with its worker."""
        _log.info("%s: lost with its worker, and played again", item)


async def examined(connection: Connection, room: Room, workers: tuple[str, ...] | list[str]) -> Mapping[str, bool]:
    """The guards that scripts have on every one of some workers.

    Raises
    ------
    InputError : a worker cannot play what the room says; the first that says so is named.
    """
    found = await connection.ask(workers, examine, room)
    guards: dict[str, bool] = {}
    for worker, told in zip(workers, found, strict=True):
        if isinstance(told, str):
            raise InputError(f"worker {worker}: {told}")
        for name, held in told.items():
            guards[name] = guards.get(name, True) and held
    return guards


@asynccontextmanager
async def seated(
    connection: Connection, room: Room, edition: Edition, entrants: Mapping[Entry, Entrant], job: Job
) -> AsyncGenerator[Driver]:
    """The desks of a cluster, as the place where the episodes of some work are played."""
    driver = Driver(connection, room, edition, entrants, job)
    try:
        await driver.open()
        yield driver
    finally:
        await driver.close()
