"""Commands that play the small agent beside this file, and what became of their episodes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from finskillbench.edition import Edition
from finskillbench.harness.trace import Trace
from finskillbench.interop.mcp import command
from finskillbench.interop.mcp.drive import drive
from finskillbench.runs.execute.run import RunResult
from finskillbench.runs.store.trajectories import read_trajectory

AGENT = f"{sys.executable} -I {Path(__file__).with_name('agent.py')}"
NAME = "agent/small"


def over_stdio(behaviour: str) -> str:
    """The command line of a behaviour, its tools reached by the program that its file names."""
    return f"{AGENT} {behaviour} {{mcp_config}} {{prompt_file}} {{usage_file}}"


def traces(result: RunResult) -> list[Trace]:
    """What happened in the episodes of a run."""
    paths = sorted((result.folder / "trajectories").rglob("*.json.gz"))
    return [read_trajectory(path).trace for path in paths]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that fails at once is started again at once."""
    monkeypatch.setattr(command, "_WAITS", (0.0, 0.0, 0.0))


@pytest.fixture
def driven(small_edition: Edition, tmp_path: Path) -> Callable[..., RunResult]:
    """A run of a behaviour on one episode, or on so many of each subtask."""

    def go(behaviour: str, **options: Any) -> RunResult:
        named = {"subtasks": ["rebalancing"], "limit": 1, "out": tmp_path / "run", **options}
        return drive(small_edition, over_stdio(behaviour), NAME, ["no_skill"], **named)

    return go
