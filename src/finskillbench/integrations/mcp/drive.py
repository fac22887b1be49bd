"""Any command-line agent over the episodes of an edition: a run like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.agents import CALLS, SECONDS, Agent
from finskillbench.harness.allowance import MAX_TURNS
from finskillbench.harness.skills.given import SkillFolder
from finskillbench.integrations.mcp import HARNESS
from finskillbench.integrations.mcp.command import USAGE_FILE, Command, parse_command, watching
from finskillbench.runs.execute.board import Progress
from finskillbench.runs.execute.run import DEFAULT_CONDITIONS, RunResult, run

MAX_CONCURRENCY = 4
"""Commands at a time, unless it is said otherwise: each is some process with a memory of its own."""


# Longer than a screen for its arguments, each of which is named and handed on once, here.
def drive(
    edition: Edition,
    command: str,
    name: str,
    conditions: Sequence[str] = DEFAULT_CONDITIONS,
    subtasks: Sequence[str] | None = None,
    *,
    skills: Mapping[str, SkillFolder | Path | str] = MappingProxyType({}),
    limit: int | None = None,
    sample: int | None = None,
    tasks: Sequence[str] | None = None,
    epochs: int = 1,
    turns: int = MAX_TURNS,
    token_budget: int | None = None,
    seconds: float = SECONDS,
    calls: int = CALLS,
    max_cost: float | None = None,
    max_concurrency: int = MAX_CONCURRENCY,
    allow_unconfined: bool = False,
    out: Path,
    progress: Progress | None = None,
) -> RunResult:
    """Start a command once for each episode, or go on where an earlier call stopped.

    Parameters
    ----------
    edition, conditions, subtasks, skills, limit, sample, tasks, epochs, turns, token_budget, max_concurrency : as of
        `finskillbench.runs.execute.run.run`, and so are `allow_unconfined`, `out` and `progress`.
    command : the command line, with the places of `finskillbench.integrations.mcp.command`.
    name : under which rows file the agent.
    seconds, calls : an episode that takes longer, or calls more tools, ends without an answer.
    max_cost : US dollars that the run folder may cost, as the agent tells it: nothing is begun that would not fit if it
        cost as much as the dearest episode so far.

    Raises
    ------
    InputError : the command cannot be started, or has no place to tell its cost under `max_cost`, or as of `run`.
    EditionError : as of `run`.
    """
    words = parse_command(command)
    tells_cost = USAGE_FILE in command
    if max_cost is not None and not tells_cost:
        raise InputError(f"--max-cost needs {USAGE_FILE} in --agent-command, where the agent tells what it has spent")
    with watching() as watch:
        agent = Agent(name, Command(words, watch), seconds, calls, HARNESS, tells_cost)
        return run(
            edition,
            conditions=conditions,
            subtasks=subtasks,
            agents=[agent],
            skills=skills,
            limit=limit,
            sample=sample,
            tasks=tasks,
            epochs=epochs,
            turns=turns,
            token_budget=token_budget,
            max_concurrency=max_concurrency,
            max_cost=max_cost,
            allow_unconfined=allow_unconfined,
            out=out,
            progress=progress,
        )
