"""What an episode leaves behind: the whole conversation, each tool call with its fate, and the counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from finskillbench.episode import Submission
from finskillbench.harness.model import Message, Usage

Ended = Literal["submitted", "max_turns", "error"]
Fate = Literal["ok", "error", "not_run"]


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """One tool call as it was made; its result is the content of `messages[message]` (None: it was not run)."""

    turn: int
    id: str
    name: str
    arguments: str
    fate: Fate
    seconds: float
    message: int | None


@dataclass(frozen=True, slots=True)
class Trace:
    """The full record of one episode with one model under one arm.

    `turns` counts model calls that were answered, `retries` the transient failures that were tried again;
    `latency_seconds` is the wall time of the whole episode. `prompt_digest` covers the system and the task prompt,
    `mount_digest` the arm and its packages.
    """

    task_id: str
    model: str
    condition: str
    ended: Ended
    answer: str | None
    error: str | None
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    tool_calls: tuple[ToolRecord, ...]
    turns: int
    retries: int
    usage: Usage
    latency_seconds: float
    skills_loaded: tuple[str, ...]
    scripts_run: tuple[str, ...]
    mount_digest: str
    prompt_digest: str

    @property
    def submission(self) -> Submission:
        """What the verdict is made of."""
        return Submission(self.task_id, self.answer, self.ended)


def add_usage(total: Usage, usage: Usage) -> Usage:
    """Sum two usages; a price is known only if both are."""
    known = total.cost_usd is not None and usage.cost_usd is not None
    return Usage(
        total.input_tokens + usage.input_tokens,
        total.output_tokens + usage.output_tokens,
        (total.cost_usd or 0.0) + (usage.cost_usd or 0.0) if known else None,
    )
