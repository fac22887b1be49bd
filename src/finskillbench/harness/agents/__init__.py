"""Agents with a loop of their own: a function that is given a task and its tools, and returns an answer.

    async def my_agent(task, tools):
        data = await tools.call("get_task_data", field="expected_returns")
        return {"weights": {...}}

    run(edition, agents=[my_agent], out=Path("runs/mine"))

It runs in this process and is trusted as much as whoever wrote it: nothing keeps it from reading the edition's files.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from finskillbench.errors import InputError
from finskillbench.harness.model import ToolSpec, Usage

HARNESS = "python"
"""The harness of rows whose episodes a Python function has played."""
SECONDS, CALLS = 1800.0, 200
"""How long an episode of an agent may take, and how many tool calls, unless it says otherwise."""
_PREFIX = "agent/"
_NAME = re.compile(r"[\w./:@+-]{1,120}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Task:
    """What an agent is given of an episode: the words that a model would read, and the tools on offer."""

    task_id: str
    sub_task: str
    condition: str
    system: str
    prompt: str
    tools: Sequence[ToolSpec]


class Tools(Protocol):
    """The tools of one episode, by name."""

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """What a tool answers; whatever goes wrong comes back as `{"error": ...}`. `submit_answer` ends the episode."""
        ...

    async def call_text(self, name: str, arguments: str, /) -> str:
        """The same in text, as models write and read it: one line of JSON, and below it what is left of the budget."""
        ...

    def spent(self, usage: Usage, *, served_model: str | None = None) -> None:
        """Note a model call that the agent has made; what is not told has an unknown price."""
        ...

    def said(self, text: str) -> None:
        """Note words of the agent beside its calls; they are shown in its trajectory and judged by nobody."""
        ...


Solve = Callable[[Task, Tools], Awaitable[str | Mapping[str, Any] | None]]
"""Solves one task: returns the answer as JSON text or as an object, or None where it called `submit_answer` itself."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent of a run.

    name : under which rows file it.
    solve : plays one episode; several run at once, in one event loop.
    seconds, calls : an episode that takes longer, or calls more tools, ends without an answer.
    harness : whose loop it is, as rows say it.
    tells_cost : whether it tells what it spends, so that a run may have a limit on that.
    """

    name: str
    solve: Solve
    seconds: float = SECONDS
    calls: int = CALLS
    harness: str = HARNESS
    tells_cost: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(f"an agent is called {self.name[:60]!r}; letters, digits and ./:@+-_ make a name")
        if not (self.seconds > 0 and self.calls > 0):
            raise InputError(f"{self.name}: seconds and calls must be above 0, not {self.seconds} and {self.calls}")


def as_agent(given: Agent | Solve) -> Agent:
    """An agent as it is, or one made of an async function and called after it.

    Raises
    ------
    InputError : it is neither.
    """
    if isinstance(given, Agent):
        return given
    name = getattr(given, "__name__", type(given).__name__)
    if not is_solver(given):
        raise InputError(f"{name} is no agent: give an async function of (task, tools), or an Agent")
    return Agent(f"{_PREFIX}{name.strip('<>')}", given)


def is_solver(value: object) -> bool:
    """Whether a value is an async function, or an object that is called like one."""
    return inspect.iscoroutinefunction(value) or (callable(value) and inspect.iscoroutinefunction(type(value).__call__))
