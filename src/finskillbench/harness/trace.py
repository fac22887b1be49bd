"""What an episode leaves behind: the whole conversation, each tool call with its outcome, and the counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from finskillbench.episode import JsonObject, Submission
from finskillbench.harness.conditions import ArmName
from finskillbench.harness.model import Message, Stop, Usage

OURS = "finskillbench"
"""The harness of rows whose episodes ran in our own loop."""
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
"""What came of a tool call; `not_run` are calls after the submission or beyond a budget."""


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """One tool call as it was made; its result is the content of `messages[message]` (None: it was not run).

    `fate` is its outcome, under the name that trajectories use.
    """

    turn: int
    id: str
    name: str
    arguments: str
    fate: CallOutcome
    seconds: float
    message: int | None


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One answered model call: its tokens, who answered and why it stopped.

    `seconds` is what the provider took to answer, `queue_seconds` how long the call waited for a place, for the budget
    or for this process, `retry_seconds` what failed tries and the waits after them took.
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
    """The full record of one episode with one model under one arm.

    `harness` says whose loop it was, `provider` who served the model (None: a program, or an agent's own affair).
    `turns` counts model calls that were answered (of an agent that does not tell them, its tool calls), `retries` the
    failures that were tried again; `incidents` names, in order, every failure of `finskillbench.harness.failures` that
    was met. `error_cause` is the cause of the failure that ended the episode, if one did.

    `started` is in UTC, None where nobody looked at a clock. `queue_seconds` is what model calls waited for a place,
    for the budget or for this process, `retry_seconds` what failed calls and the waits after them took,
    `latency_seconds` the rest of the time: answered calls and tools.

    `skills_loaded` names each skill once, in the order in which a document of it was first read.

    `prompt_digest` covers the system and the task prompt, `mount_digest` the arm and its packages. `saved_skills` are
    the texts of the skills that the agent had saved when it ended, by name. `record` is what was done in an episode
    that is played move by move.
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
        """When it was over, in UTC; the three times together lie between the start and this."""
        seconds = self.latency_seconds + self.queue_seconds + self.retry_seconds
        return None if self.started is None else self.started + timedelta(seconds=seconds)

    @property
    def submission(self) -> Submission:
        """What the verdict is made of."""
        return Submission(self.task_id, self.answer, self.ended, self.record)
