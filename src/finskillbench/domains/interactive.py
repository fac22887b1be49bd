"""Interactive cases: episodes of many tool calls, with a budget, tools, a state and programs that play them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from finskillbench.episode import JsonObject

RECORD = "record"
"""The key under which scorers find what was done in an episode that is played move by move."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What an episode may cost: model calls, tokens generated over all of them, and calls that read data."""

    turns: int
    output_tokens: int
    data_calls: int


@dataclass(frozen=True, slots=True)
class ToolContract:
    """A tool that a subtask brings: its name, its words for the agent, and its parameters as a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class InvalidActionError(Exception):
    """A call that a stage refuses, in words for the agent; its state is as it was."""


class InteractiveState(Protocol):
    """The state of one episode that its own tools move on.

    `fields` are input fields as they are now, in place of those that the episode began with; `record` is what was done,
    a JSON object, which whoever judges gets as `record` beside the answer.
    """

    @property
    def fields(self) -> Mapping[str, Any]: ...
    @property
    def record(self) -> JsonObject: ...
    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """What a tool of the subtask returns; StageError where it refuses."""
        ...


OpenState: TypeAlias = Callable[[Any, JsonObject], InteractiveState]
"""`(task input, hidden) -> stage`: a fresh one; `hidden` is what the task keeps from every agent.

It may come from a stranger: a ValueError says what is wrong with it.
"""


@dataclass(frozen=True, slots=True)
class Ask:
    """One tool call of a procedure."""

    tool: str
    arguments: JsonObject


Procedure: TypeAlias = Callable[[], Generator[tuple[Ask, ...], list[JsonObject], JsonObject]]
"""Yields the calls of a turn, is sent their results in order, and returns the answer; deterministic, since a program
that keeps no state plays it again from the start in every turn."""


@dataclass(frozen=True, slots=True)
class InteractiveCase:
    """Tools, state and limits of an interactive subtask.

    Attributes
    ----------
    budget : the limits of an episode.
    procedures : program ("reference", "textbook", "trapped") to how it plays an episode, call by call.
    tools : tools that its episodes offer in addition to those of the domain.
    open_stage : opens the state that `tools` change; None where no tool changes anything.
    filled : fields of the input that may begin empty, since the stage fills them.
    appointed : table to column to calendar days: dates that were agreed or announced by the day of the episode and lie
        at most so many days after it (settlement, payment). All other dates lie on or before that day.
    """

    budget: Budget
    procedures: Mapping[str, Procedure] = field(repr=False)
    tools: tuple[ToolContract, ...] = field(default=(), repr=False)
    open_state: OpenState | None = field(default=None, repr=False)
    filled: tuple[str, ...] = ()
    appointed: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]], repr=False)
