"""Any command-line agent over the episodes of an edition: a run like any other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from finskillbench.edition import Edition
from finskillbench.harness.agents import CALLS, SECONDS, Agent
from finskillbench.interop.mcp import HARNESS
from finskillbench.interop.mcp.command import Command, parse_command, watching
from finskillbench.runs.execute.board import Progress, silent
from finskillbench.runs.execute.run import DEFAULT_CONDITIONS, RunResult, run

MAX_CONCURRENCY = 4
"""Commands at a time, unless it is said otherwise: each is some process with a memory of its own."""


def drive(
    edition: Edition,
    command: str,
    name: str,
    conditions: Sequence[str] = DEFAULT_CONDITIONS,
    subtasks: Sequence[str] | None = None,
    *,
    limit: int | None = None,
    epochs: int = 1,
    seconds: float = SECONDS,
    calls: int = CALLS,
    max_concurrency: int = MAX_CONCURRENCY,
    out: Path,
    progress: Progress = silent,
) -> RunResult:
    """Start a command once for each episode, or go on where an earlier call stopped.

    Parameters
    ----------
    edition, conditions, subtasks, limit, epochs, max_concurrency, out, progress : as of
        `finskillbench.runs.execute.run.run`.
    command : the command line, with the places of `finskillbench.interop.mcp.command`.
    name : under which rows file the agent.
    seconds, calls : an episode that takes longer, or calls more tools, ends without an answer.

    Raises
    ------
    InputError : the command cannot be started, or as of `run`.
    EditionError : as of `run`.
    """
    words = parse_command(command)
    with watching() as watch:
        agent = Agent(name, Command(words, watch), seconds, calls, HARNESS)
        return run(
            edition,
            conditions=conditions,
            subtasks=subtasks,
            agents=[agent],
            limit=limit,
            epochs=epochs,
            max_concurrency=max_concurrency,
            out=out,
            progress=progress,
        )
