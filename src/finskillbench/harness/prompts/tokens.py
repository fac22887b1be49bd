"""Estimate tokens from characters where no provider counts them: for programs, plans and budgets.

Texts are mostly JSON with numbers, for which three characters per token is close; it is too high for prose.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from finskillbench.harness.model import Message, ToolSpec, Turn

CHARACTERS_PER_TOKEN = 3
MESSAGE_CHARACTERS = 12
"""Characters for the role and separators of one message."""


def input_tokens(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> int:
    """Estimate the input tokens of a model call."""
    characters = sum(map(_characters, messages)) + sum(map(_tool_characters, tools))
    return -(-characters // CHARACTERS_PER_TOKEN)


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def output_tokens(turn: Turn) -> int:
    """Estimate the output tokens of a turn."""
    characters = len(turn.text) + sum(len(call.name) + len(call.arguments) for call in turn.tool_calls)
    return -(-characters // CHARACTERS_PER_TOKEN)


def _characters(message: Message) -> int:
    calls = sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    return len(message.content) + calls + MESSAGE_CHARACTERS


def _tool_characters(tool: ToolSpec) -> int:
    return len(tool.name) + len(tool.description) + len(orjson.dumps(dict(tool.parameters)))
