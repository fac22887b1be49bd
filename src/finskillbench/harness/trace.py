"""Record of an episode: conversation, tool calls with their outcomes, and counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from finskillbench.episode import JsonObject, Submission
from finskillbench.harness.conditions import ArmName
from finskillbench.harness.model import Message, Stop, Usage

BUILTIN_HARNESS = "finskillbench"
Ended = Literal[
    "submitted",
    "no_answer",
    "max_turns",
    "budget_exhausted",
    "out_of_calls",
    "out_of_time",
    "context_overflow",
    "adapter_failed",
    "error",
]
CallOutcome = Literal["ok", "invalid_arguments", "unknown_tool", "tool_failed", "not_run"]
"""Outcome of a tool call; `not_run` marks calls after the submission or beyond a budget."""


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """One tool call; its result is `messages[message]` (None: not run), `fate` its outcome as named in trajectories."""

    turn: int
    id: str
    name: str
    arguments: str
    fate: CallOutcome
    seconds: float
    message: int | None


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One answered model call. `seconds` is the provider's answering time.

    `queue_seconds` is the wait for a slot, the budget or this process, `retry_seconds` failed attempts and their waits.
    """

    turn: int
    seconds: float
    queue_seconds: float
    retry_seconds: float
    stop: Stop
    served_model: str | None
    usage: Usage


@dataclass(frozen=True, slots=True)
class Trace:
    """Full record of one episode with one model under one condition.

    `provider` is None for a program or an agent. `turns` counts answered model calls, or tool calls of agents that do
    not report model calls. `incidents` lists failures of `finskillbench.harness.failures` in order.

    `started` is in UTC, None if unknown. `queue_seconds` is the wait of model calls for a slot, the budget or this
    process. `retry_seconds` covers failed calls and the waits after them, `latency_seconds` answered calls and tools.

    `skills_loaded` names each skill once, in the order of first reading. `prompt_digest` covers the system and the task
    prompt, `mount_digest` the condition and its packages. `saved_skills` maps names to texts at the end. `record` is
    the record of an interactive episode.
    """

    task_id: str
    model: str
    harness: str
    provider: str | None
    condition: ArmName
    ended: Ended
    answer: str | None
    error: str | None
    error_cause: str | None
    incidents: tuple[str, ...]
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    tool_calls: tuple[ToolRecord, ...]
    model_calls: tuple[CallRecord, ...]
    turns: int
    retries: int
    usage: Usage
    started: datetime | None
    latency_seconds: float
    queue_seconds: float
    retry_seconds: float
    skills_loaded: tuple[str, ...]
    scripts_run: tuple[str, ...]
    saved_skills: Mapping[str, str]
    mount_digest: str
    prompt_digest: str
    record: JsonObject | None = None

    @property
    def finished(self) -> datetime | None:
        """Return the end in UTC: the start plus the three durations."""
        seconds = self.latency_seconds + self.queue_seconds + self.retry_seconds
        return None if self.started is None else self.started + timedelta(seconds=seconds)

    @property
    def submission(self) -> Submission:
        """Return the submission, which the verdict is based on."""
        return Submission(self.task_id, self.answer, self.ended, self.record)
