"""A desk: the task on a worker that plays episodes for as long as the run lasts.

It plays them in an event loop of its own, in the thread that Dask gave it; a second thread reads its letters, a third
writes them. It ends when it is told to, when the scheduler is gone, or when it has heard nothing of the driver for a
minute: then somebody killed it, and no model is called for nobody.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from threadpoolctl import threadpool_limits

from finskillbench import errors
from finskillbench.cluster.connection import GONE
from finskillbench.errors import FinSkillBenchError, RunStoppedError
from finskillbench.harness.providers.hosted import Hosted
from finskillbench.redaction import logger
from finskillbench.runs.cluster import messages as m
from finskillbench.runs.cluster.remote import RemoteBudget, RemoteSlots
from finskillbench.runs.cluster.room import Furnished, Room, furnish
from finskillbench.runs.execute.here import Here, Sitting, Terms, surrounded
from finskillbench.runs.store.record import Expense

_log = logger(__name__)

BEAT_SECONDS = 5.0
SILENCE_SECONDS = 60.0
"""Who has not been heard of for so long is taken for dead."""
_GATHERED_SECONDS = 0.005
"""How long a letter waits for more to say: a letter of one message costs as much as one of fifty."""
_UNHURRIED_SECONDS = 0.1
"""How long what nobody waits for stays for a letter: episodes that are over, while others are in play here."""


class Post(Protocol):
    """One of Dask's queues, which comes without types; `get` raises TimeoutError."""

    def get(self, timeout: str) -> bytes: ...

    def put(self, value: bytes) -> None: ...


def examine(room: Room) -> dict[str, bool] | str:
    """Whether this worker can play what a room says: the guards of its sandbox, or what is wrong in words."""
    try:
        return dict(furnish(room).guards)
    except FinSkillBenchError as error:
        return str(error)


def serve(room: Room, name: str, outbox: str) -> None:
    """Play what the letters of the queue of this name ask for and answer in the other, until told to end."""
    import distributed

    dask: Any = distributed  # it comes without types
    client, make = dask.get_client(), dask.Queue
    with threadpool_limits(1), _unsampled(dask.get_worker()):  # many desks share a machine
        asyncio.run(_Desk(room, name, make(name, client=client), make(outbox, client=client)).serve())


@contextmanager
def _unsampled(worker: Any) -> Generator[None]:
    """Have Dask not look every 10 ms at what this worker runs: of a task that lasts a run it says nothing.

    It walks the whole stack each time, and the episodes of this process wait meanwhile.
    """
    sampling = worker.periodic_callbacks.get("profile")
    if sampling is None or not sampling.is_running():
        yield
        return
    worker.loop.add_callback(sampling.stop)
    try:
        yield
    finally:
        worker.loop.add_callback(sampling.start)


class _Desk:
    """One desk while it serves."""

    def __init__(self, room: Room, name: str, inbox: Post, outbox: Post) -> None:
        self._room, self._name, self._in, self._out = room, name, inbox, outbox
        self._playing: dict[int, asyncio.Task[None]] = {}
        self._budgets: dict[int, RemoteBudget] = {}
        self._slots: dict[int, RemoteSlots] = {}
        self._waiting: list[m.FromDesk] = []
        self._news = asyncio.Event()
        self._hurry = asyncio.Event()
        self._over = asyncio.Event()

    async def serve(self) -> None:
        """Serve until it is over."""
        loop = asyncio.get_running_loop()
        furnished = furnish(self._room)
        with tempfile.TemporaryDirectory(prefix="finskillbench-desk-") as scratch, ThreadPoolExecutor(1) as writing:
            mounts = furnished.mounts.values()
            allow = self._room.allow_unconfined
            with surrounded(furnished.edition, mounts, Path(scratch), allow_unconfined=allow) as around:
                here = Here(furnished.edition, furnished.entrants, furnished.mounts, around, self._room.max_tokens)
                self._here = here
                self.say(m.Opened())
                reader = threading.Thread(target=self._read, args=(loop,), daemon=True, name="letters to a desk")
                reader.start()
                chores = [asyncio.create_task(self._write(writing)), asyncio.create_task(self._beat())]
                await self._over.wait()
                await self._end([*chores, *self._playing.values()], furnished)

    async def _end(self, tasks: list[asyncio.Task[None]], furnished: Furnished) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for entrant in furnished.entrants.values():
            if isinstance(entrant, Hosted):
                await entrant.close()

    def say(self, message: m.FromDesk) -> None:
        """Have a message sent with the next letter."""
        self._waiting.append(message)
        self._news.set()
        if not isinstance(message, m.Done | m.Beat):
            self._hurry.set()

    async def _write(self, writing: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._news.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(_UNHURRIED_SECONDS):
                    await self._hurry.wait()
            await asyncio.sleep(_GATHERED_SECONDS)
            self._news.clear()
            self._hurry.clear()
            said, self._waiting = self._waiting, []
            for data in self._letters(said):
                try:
                    await loop.run_in_executor(writing, self._out.put, data)
                except GONE:  # nobody is left to be told
                    _log.debug("a desk lost its scheduler", exc_info=True)
                    self._over.set()
                    return

    async def _beat(self) -> None:
        while True:
            self.say(m.Beat())
            await asyncio.sleep(BEAT_SECONDS)

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand letters over to the loop, in a thread of its own."""
        closed = False
        while not closed:
            try:
                found = m.read_at_desk(self._in.get(timeout=f"{SILENCE_SECONDS}s"))
            except GONE:  # TimeoutError, an OSError, too: nothing was heard for so long
                _log.debug("a desk heard nothing of its driver", exc_info=True)
                found = list[m.ToDesk]([m.Close()])
            closed = any(isinstance(message, m.Close) for message in found)
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._take, found)

    def _take(self, found: list[m.ToDesk]) -> None:
        for message in found:
            match message:
                case m.Play(number=number):
                    task = self._playing[number] = asyncio.create_task(self._play(message))
                    task.add_done_callback(partial(self._played, number))
                case m.Drop(number=number):
                    if (task := self._playing.get(number)) is not None:
                        task.cancel()
                case m.Granted(number=number, round=begun):
                    self._answer(number, begun)
                case m.Refused(number=number, why=why):
                    if number in self._budgets:
                        self._budgets[number].asked.refuse(why)
                case m.Close():
                    self._over.set()
                case m.Beat():
                    pass

    def _answer(self, number: int, begun: int) -> None:
        """A model call asks the budget before it asks for a slot, and one thing at a time."""
        if number in self._budgets and self._budgets[number].asked.waits:
            self._budgets[number].asked.grant(0)
        elif number in self._slots:
            self._slots[number].asked.grant(begun)

    async def _play(self, order: m.Play) -> None:
        number = order.number
        try:
            sitting = self._sit(order)
            played = await sitting.play(order.memory)
            self.say(m.Done(number, played.trajectory(), m.packed(played.trace), sitting.lost_usd))
        except RunStoppedError as stop:
            self.say(m.Stopped(number, str(stop)))
        except FinSkillBenchError as error:
            self.say(
                m.Failed(number, type(error).__name__ if hasattr(errors, type(error).__name__) else "", str(error))
            )

    def _played(self, number: int, task: asyncio.Task[None]) -> None:
        """An episode is over; a bug is told to the driver, since nobody would hear of it here."""
        for kept in (self._playing, self._budgets, self._slots):
            kept.pop(number, None)
        if not self._playing:
            self._hurry.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self.say(m.Failed(number, "", f"{type(error).__name__}: {error}"))

    def _sit(self, order: m.Play) -> Sitting:
        number = order.number

        def note(expense: Expense) -> None:
            self.say(m.Note(number, expense))

        budget = RemoteBudget(number, self.say) if self._room.budgeted else None
        slots = RemoteSlots(number, self.say) if order.limited else None
        sitting = self._here.sitting(order.item, Terms(slots, budget, order.dearest, note))
        if budget is not None:
            self._budgets[number] = budget
        if slots is not None:
            slots.tells(sitting.expense)
            self._slots[number] = slots
        return sitting

    def _letters(self, said: list[m.FromDesk]) -> Iterator[bytes]:
        """Messages as letters that are not too long."""
        part: list[m.FromDesk] = []
        size = 0
        for message in said:
            part.append(message)
            size += len(message.trajectory) if isinstance(message, m.Done) else 0
            if size >= m.LARGEST_LETTER:
                yield m.letter_from_desk(self._name, part)
                part, size = [], 0
        if part:
            yield m.letter_from_desk(self._name, part)
