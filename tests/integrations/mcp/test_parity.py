"""The same logic as an agent over MCP and as a model in our loop: the same calls, statuses and scores."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from tests.integrations.mcp.agent import next_call
from tests.integrations.mcp.small import NAME, over_stdio, traces
from tests.registry import SUBTASKS
from tests.sampling import THOROUGH, sampled

from finskillbench.edition import Edition
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage
from finskillbench.integrations.mcp.drive import drive_agent
from finskillbench.runs.execute.run import run

CONDITIONS = ["no_skill", "curated"]
LIMIT = 4 if THOROUGH else 1
SAME = (
    *("task_id", "condition", "status", "valid_json", "score", "scores", "scoring_details", "answer_digest"),
    *("tool_calls", "skills_loaded", "scripts_run", "incidents", "edition", "mount"),
)


class Follower:
    """The logic of the small agent as a model."""

    name = "model/small"

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        index = next((tool.description for tool in tools if tool.name == "load_skill"), "")
        calls = [call for message in messages for call in message.tool_calls]
        # What is left of a budget stands after the newest result.
        results = [json.JSONDecoder().raw_decode(message.content)[0] for message in messages if message.role == "tool"]
        named = [(call.name, result) for call, result in zip(calls, results, strict=True)]
        name, arguments = next_call(messages[1].content, index, named)
        return Turn(
            tool_calls=(ToolCall(str(len(calls) + 1), name, json.dumps(arguments)),), usage=Usage(output_tokens=1)
        )


def _without_budget(message: Message) -> Message:
    """A message without what is left: turns in our loop, tool calls of an agent with a loop of its own."""
    return replace(
        message, content=re.sub(r"\n\n(You have|Tool calls left|Calls left that read data).*", "", message.content)
    )


def test_statuses_scores_and_conversations_are_the_same(synthetic_edition: Edition, tmp_path) -> None:
    """A hundred episodes of all subtasks in a thorough run."""
    names = sampled([subtask.name for subtask in SUBTASKS], one_in=4)
    ours = run(synthetic_edition, [Follower()], CONDITIONS, names, limit=LIMIT, out=tmp_path / "ours")
    theirs = drive_agent(
        synthetic_edition,
        over_stdio("solve"),
        NAME,
        conditions=CONDITIONS,
        subtasks=names,
        limit=LIMIT,
        out=tmp_path / "theirs",
    )
    assert theirs.ran == ours.ran == len(names) * LIMIT * len(CONDITIONS)
    order = ["condition", "task_id"]
    assert theirs.rows.sort(order).select(SAME).equals(ours.rows.sort(order).select(SAME))
    assert set(ours.rows["status"]) == {"scored"}
    assert ours.rows["score"].min() < ours.rows["score"].max() == 1.0
    for one, other in zip(traces(theirs), traces(ours), strict=True):
        assert tuple(map(_without_budget, one.messages)) == tuple(map(_without_budget, other.messages))
        assert one.tool_calls != ()
