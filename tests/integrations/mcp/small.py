"""Command lines of the small agent beside this file, and what happened in its episodes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from finskillbench.harness.trace import Trace
from finskillbench.runs.execute.run import RunResult
from finskillbench.runs.store.journal import read_trajectory

AGENT = f"{sys.executable} -I {Path(__file__).with_name('agent.py')}"
NAME = "agent/small"


def over_stdio(behaviour: str) -> str:
    """The command line of a behaviour, its tools reached by the program that its file names."""
    return f"{AGENT} {shlex.quote(behaviour)} {{mcp_config}} {{prompt_file}} {{usage_file}}"


def traces(result: RunResult) -> list[Trace]:
    """What happened in the episodes of a run."""
    paths = sorted((result.folder / "trajectories").rglob("*.json.gz"))
    return [read_trajectory(path).trace for path in paths]
