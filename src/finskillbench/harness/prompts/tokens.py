"""An estimate of tokens from characters, where no provider counts them: for programs, plans and budgets.

Every provider cuts text differently. Prompts and tool results here are mostly JSON with numbers, which models cut
finer than prose: three characters a token is close to what they count, and errs on the high side for prose.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from finskillbench.harness.model import Message, ToolSpec, Turn

CHARACTERS_PER_TOKEN = 3
MESSAGE_CHARACTERS = 12
"""What role and separators of one message add."""


def input_tokens(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> int:
    """Estimated tokens of what a model is sent."""
    characters = sum(map(_characters, messages)) + sum(map(_tool_characters, tools))
    return -(-characters // CHARACTERS_PER_TOKEN)


def output_tokens(turn: Turn) -> int:
    """Estimated tokens of what a model answered."""
    characters = len(turn.text) + sum(len(call.name) + len(call.arguments) for call in turn.tool_calls)
    return -(-characters // CHARACTERS_PER_TOKEN)


def _characters(message: Message) -> int:
    calls = sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    return len(message.content) + calls + MESSAGE_CHARACTERS


def _tool_characters(tool: ToolSpec) -> int:
    return len(tool.name) + len(tool.description) + len(orjson.dumps(dict(tool.parameters)))
