"""What a driver makes of workers that go and come, and of letters that nobody can read; no cluster is needed."""

from __future__ import annotations

import asyncio

import pytest

from finskillbench.runs.cluster import driver as module
from finskillbench.runs.cluster.driver import Desk, Driver

WORKER = "tcp://worker:1"


class Closable:
    """Stands for a queue and for a task of Dask."""

    def close(self) -> None: ...

    def release(self) -> None: ...


class Scene:
    """A driver with one desk on one worker, and who joined it later."""

    address = "tcp://scheduler:1"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
        self.there = {WORKER}
        self.joined: list[str] = []
        self.driver = object.__new__(Driver)
        vars(self.driver).update(
            _connection=self, _job=self, _seen={WORKER}, _chores=set(), _gone="", _changed=asyncio.Event(), _outbox=self
        )
        self.driver._clock = asyncio.get_running_loop().time
        self.driver._join = self.join
        self.desk = Desk(WORKER, "desk", Closable(), Closable(), self.driver._clock())
        self.desk.opened.set_result(None)
        self.driver._desks = {"desk": self.desk}

    async def workers(self) -> tuple[str, ...]:
        return tuple(self.there)

    def notify(self, text: str) -> None:
        """What a user would be told."""

    async def join(self, worker: str) -> None:
        self.joined.append(worker)

    async def get(self) -> bytes:
        return b"no letter"


def test_a_worker_that_comes_back_under_its_address_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> list[str]:
        scene = Scene(monkeypatch)
        look = asyncio.create_task(scene.driver._look())
        await asyncio.sleep(0.1)
        assert scene.joined == []
        scene.there = set()
        await asyncio.sleep(0.1)
        assert scene.driver._desks == {}
        scene.there = {WORKER}
        await asyncio.sleep(0.1)
        look.cancel()
        return scene.joined

    assert asyncio.run(main()) == [WORKER]


def test_a_worker_that_was_silent_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> list[str]:
        scene = Scene(monkeypatch)
        scene.desk.heard -= 2 * module.SILENCE_SECONDS
        look = asyncio.create_task(scene.driver._look())
        await asyncio.sleep(0.1)
        look.cancel()
        return scene.joined

    assert asyncio.run(main()) == [WORKER]


def test_a_letter_that_nobody_can_read_is_not_a_scheduler_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> str:
        scene = Scene(monkeypatch)
        scene.driver._chore(scene.driver._hear())
        await asyncio.sleep(0.1)
        return scene.driver._gone

    assert asyncio.run(main()).startswith("the driver failed (")
