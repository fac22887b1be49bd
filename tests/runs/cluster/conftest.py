"""A real scheduler with worker processes on loopback, and players that write down what they play."""

from __future__ import annotations

import asyncio
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_socket
from distributed import Client, LocalCluster
from tests.sampling import THOROUGH

from finskillbench.edition import Edition
from finskillbench.harness.agents import Agent
from finskillbench.harness.model import ToolCall, Turn, Usage
from finskillbench.harness.providers.prices import Price

WORKERS = 4 if THOROUGH else 3


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Address of a scheduler whose workers are processes of their own; a nanny starts a killed one again."""
    pytest_socket.enable_socket()  # the mark enables it only for the tests themselves
    with LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def pids(scheduler: str) -> Callable[[], list[int]]:
    """The process ids of the workers that are there."""

    def ask() -> list[int]:
        with Client(scheduler, set_as_default=False) as client:
            return sorted(client.run(os.getpid).values())

    return ask


@pytest.fixture
def writer() -> Callable[[Path, float], Agent]:
    """Makes an agent that appends each task it plays to a file; defined within, so that it travels by value.

    Each task takes from nothing to `seconds`, by its name, so that not all of them end at once.
    """

    def make(file: Path, seconds: float = 0.0) -> Agent:
        async def solve(task: Any, tools: Any) -> str:
            with file.open("a") as out:
                out.write(f"{task.task_id}\n")
            await asyncio.sleep(seconds * zlib.crc32(task.task_id.encode()) / 2**32)
            return "{}"

        return Agent("writer", solve)

    return make


def paid_model(file: Path, seconds: float = 0.01, *, submits: bool = True) -> Any:
    """A model with a price that writes down when each of its calls began and ended, in nanoseconds.

    One that never submits makes a call in each of its turns.
    """

    class Paid:
        name = "fake/paid"
        provider = "fake"
        price = Price(input=1.0, cached_input=1.0, cache_write=1.0, output=1.0)

        async def generate(self, messages: Any, tools: Any, tool_choice: str) -> Turn:
            begun = time.monotonic_ns()
            await asyncio.sleep(seconds)
            with file.open("a") as out:
                out.write(f"{begun} {time.monotonic_ns()} {os.getpid()}\n")
            call = ToolCall("s", "submit_answer", json.dumps({"answer": "{}"}))
            return Turn(tool_calls=(call,) if submits else (), usage=Usage(input_tokens=1_000, output_tokens=50))

    return Paid()


@pytest.fixture
def paid() -> Callable[..., Any]:
    """Makes `paid_model`."""
    return paid_model


@pytest.fixture
def edition(synthetic_edition: Edition) -> Edition:
    """An edition on disk, where workers can read it."""
    return synthetic_edition
