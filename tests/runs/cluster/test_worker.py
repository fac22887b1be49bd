"""Attempts that Dask would make again, limits shared by processes, and a scheduler that goes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from distributed import CancelledError, LocalCluster
from tests.sampling import thorough

from finskillbench.edition import Edition
from finskillbench.errors import RunStoppedError
from finskillbench.runs.cluster import worker as module
from finskillbench.runs.execute.limiter import SharedLimiter
from finskillbench.runs.execute.run import run


class Stub:
    """Stands for a worker of Dask, for a context on it and for a semaphore."""

    def __init__(self) -> None:
        self.begun: set[object] = set()
        self.held = 0

    def handle_stimulus(self, event: object) -> None: ...

    async def acquire(self) -> None:
        self.held += 1

    async def release(self) -> None:
        self.held -= 1


def test_an_attempt_is_refused_where_it_was_begun_before_or_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "get_worker", Stub)
    monkeypatch.setitem(module._contexts, "here", Stub())

    async def main() -> None:
        assert await module.play("here", "first", []) == []
        for token, key in (("here", "first"), ("elsewhere", "second")):
            with pytest.raises(CancelledError):
                await module.play(token, key, [])

    asyncio.run(main())


def test_a_shared_limiter_makes_no_call_once_the_run_is_not_wanted() -> None:
    async def main() -> None:
        semaphore, wanted = Stub(), True
        limiter = SharedLimiter(1, semaphore, lambda: wanted)
        begun = await limiter.acquire()
        assert semaphore.held == 1
        limiter.release(begun, "answered")
        wanted = False
        with pytest.raises(RunStoppedError, match="the driver is lost"):
            await limiter.acquire()
        await asyncio.sleep(0)
        assert semaphore.held == 0

    asyncio.run(main())


@thorough
@pytest.mark.enable_socket
@pytest.mark.slow
def test_a_run_whose_scheduler_goes_ends_and_another_one_finishes_it(
    edition: Edition, writer: Callable[[Path, float], Any], tmp_path: Path
) -> None:
    rows = 0

    def progress(board: Any, row: Any) -> None:
        nonlocal rows
        rows += row is not None
        if rows == 5 and row is not None:
            cluster.close()

    arguments: dict[str, Any] = {"agents": [writer(tmp_path / "played", 1.0)], "limit": 1, "out": tmp_path / "run"}
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        address = cluster.scheduler_address
        first = run(edition, None, ["no_skill"], cluster=address, progress=progress, max_concurrency=2, **arguments)
    assert "rerun the command to resume" in first.stopped["run"]
    assert "the scheduler is gone" in first.stopped["run"]
    assert not run(edition, None, ["no_skill"], **arguments).not_run
