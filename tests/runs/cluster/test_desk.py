"""What a desk writes when, and what it leaves of the worker it is on; no cluster is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from finskillbench.runs.cluster import desk as module
from finskillbench.runs.cluster import messages as m

OVER = m.Done(1, b"", b"", 0.0)


class Letters:
    """Stands for the queue to the driver; keeps what was said, letter by letter."""

    def __init__(self) -> None:
        self.said: list[list[m.FromDesk]] = []

    def put(self, value: bytes) -> None:
        self.said.append(m.read_from_desk(value).messages)


def written(monkeypatch: pytest.MonkeyPatch, act: Callable[[Any], None]) -> list[list[m.FromDesk]]:
    """The letters of a desk that plays two episodes, for which nobody is in a hurry ever, while something happens."""
    monkeypatch.setattr(module, "_UNHURRIED_SECONDS", 3600.0)

    async def main() -> list[list[m.FromDesk]]:
        letters = Letters()
        desk: Any = object.__new__(module._Desk)
        desk.__init__(None, "desk", letters, letters)
        with ThreadPoolExecutor(1) as writing:
            desk._playing = {number: asyncio.create_task(asyncio.sleep(3600)) for number in (1, 2)}
            chore = asyncio.create_task(desk._write(writing))
            act(desk)
            await asyncio.sleep(0.1)
            for task in (chore, *desk._playing.values()):
                task.cancel()
        return letters.said

    return asyncio.run(main())


def test_an_episode_that_is_over_waits_for_company_while_others_are_in_play(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written(monkeypatch, lambda desk: desk.say(OVER)) == []


def test_a_call_that_waits_for_the_driver_takes_all_that_is_over_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def act(desk: Any) -> None:
        desk.say(OVER)
        desk.say(m.Acquire(2))

    assert written(monkeypatch, act) == [[OVER, m.Acquire(2)]]


def test_a_desk_with_nothing_left_to_play_says_so_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def act(desk: Any) -> None:
        desk.say(OVER)
        for number, task in tuple(desk._playing.items()):
            task.cancel()
            task.add_done_callback(lambda task, number=number: desk._played(number, task))

    assert written(monkeypatch, act) == [[OVER]]


class Sampling:
    """Stands for the callback by which Dask samples what a worker runs."""

    def __init__(self, *, runs: bool) -> None:
        self.runs = runs
        self.done: list[str] = []

    def is_running(self) -> bool:
        return self.runs

    def stop(self) -> None:
        self.done.append("stop")

    def start(self) -> None:
        self.done.append("start")


class Worker:
    """Stands for a worker of Dask; its loop does at once what it is given."""

    def __init__(self, **callbacks: Sampling) -> None:
        self.periodic_callbacks, self.loop = callbacks, self

    def add_callback(self, function: Callable[[], None]) -> None:
        function()


def test_dask_does_not_sample_a_worker_while_a_desk_is_there_and_does_so_again_afterwards() -> None:
    sampling = Sampling(runs=True)

    def serve() -> None:
        with module._unsampled(Worker(profile=sampling)):
            assert sampling.done == ["stop"]
            raise KeyError

    with pytest.raises(KeyError):
        serve()
    assert sampling.done == ["stop", "start"]


@pytest.mark.parametrize("callbacks", [{}, {"profile": Sampling(runs=False)}], ids=["never", "not-now"])
def test_a_worker_that_is_not_sampled_is_not_sampled_afterwards_either(callbacks: dict[str, Sampling]) -> None:
    with module._unsampled(Worker(**callbacks)):
        pass
    assert all(each.done == [] for each in callbacks.values())
