"""How an episode of a subtask is played where it is more than one question: budget, own tools, a state, a procedure."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
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


class StageError(Exception):
    """A call that a stage refuses, in words for the agent; its state is as it was."""


class Stage(Protocol):
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


OpenStage: TypeAlias = Callable[[Any, JsonObject], Stage]
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
