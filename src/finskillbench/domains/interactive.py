"""Interactive cases: episodes of many tool calls, with a budget, tools, a state and scripted procedures."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from finskillbench.episode import JsonObject

RECORD = "record"
"""Key of the record of an interactive episode in the answer that scorers read."""


@dataclass(frozen=True, slots=True)
class EpisodeBudget:
    """Limits of an episode: model calls, generated tokens in total, and calls that read data."""

    turns: int
    output_tokens: int
    data_calls: int


@dataclass(frozen=True, slots=True)
class ToolContract:
    """Tool of a subtask: name, description for the agent, and parameters as a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class InvalidActionError(Exception):
    """Rejected tool call, with a message for the agent; the state is unchanged."""


class InteractiveState(Protocol):
    """State of one episode: current values of input fields, and the log of actions (JSON), which scorers read as
    `record`.
    """

    @property
    def fields(self) -> Mapping[str, Any]: ...
    @property
    def record(self) -> JsonObject: ...
    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """Run a tool of the subtask; raise InvalidActionError if the call is invalid."""
        ...


OpenState: TypeAlias = Callable[[Any, JsonObject], InteractiveState]
"""`(task input, hidden) -> state`: opens a new state; raises ValueError if the untrusted `hidden` data is invalid."""


@dataclass(frozen=True, slots=True)
class ProcedureCall:
    tool: str
    arguments: JsonObject


Procedure: TypeAlias = Callable[[], Generator[tuple[ProcedureCall, ...], list[JsonObject], JsonObject]]
"""Generator that yields the calls of a turn, receives their results, and returns the answer.

It must be deterministic: programs without memory replay it from the start in every turn.
"""


@dataclass(frozen=True, slots=True)
class InteractiveCase:
    """Tools, state and limits of an interactive subtask.

    procedures : program ("reference", "textbook", "trapped") to its procedure.
    tools : tools in addition to those of the domain.
    open_state : opens the state that `tools` change; None if no tool changes state.
    filled : input fields that may start empty because the state fills them.
    appointed : table to column to maximum calendar days by which agreed dates (settlement, payment) may follow the day
        of the episode. All other dates are on or before that day.
    """

    budget: EpisodeBudget
    procedures: Mapping[str, Procedure] = field(repr=False)
    tools: tuple[ToolContract, ...] = field(default=(), repr=False)
    open_state: OpenState | None = field(default=None, repr=False)
    filled: tuple[str, ...] = ()
    appointed: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]], repr=False)
