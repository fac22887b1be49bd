"""Convert messages, tools and tokens to Inspect's types and back; importing it takes seconds.

Inspect keeps the arguments of a tool call as an object, this package the model's text. Other text, or too deeply nested
JSON, is kept in `parse_error`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Model,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolCall as InspectCall
from inspect_ai.tool import ToolChoice, ToolFunction, ToolInfo, ToolParams

from finskillbench.harness.model import AUTO, Message, Stop, ToolCall, ToolSpec, Usage
from finskillbench.scoring.values import is_array, is_object

_MAX_DEPTH = 64
_STOPS: dict[str, Stop] = {"max_tokens": "max_tokens", "model_length": "context_overflow", "content_filter": "refused"}


def to_chat(messages: Sequence[Message]) -> list[ChatMessage]:
    """Convert a conversation to Inspect; turns of Inspect models are unchanged.

    Message ids are positions, so that the same conversation always has the same form.
    """
    names: dict[str | None, str] = {}
    chat: list[ChatMessage] = []
    for number, message in enumerate(messages):
        message_id = f"message-{number}"
        names.update((call.id, call.name) for call in message.tool_calls)
        match message.role:
            case "system":
                chat.append(ChatMessageSystem(id=message_id, content=message.content))
            case "user":
                chat.append(ChatMessageUser(id=message_id, content=message.content))
            case "assistant":
                calls = [to_call(call) for call in message.tool_calls]
                built = ChatMessageAssistant(id=message_id, content=message.content, tool_calls=calls or None)
                chat.append(message.replay if isinstance(message.replay, ChatMessageAssistant) else built)
            case "tool":
                called = message.tool_call_id
                chat.append(
                    ChatMessageTool(
                        id=message_id, content=message.content, tool_call_id=called, function=names.get(called)
                    )
                )
    return chat


def to_call(call: ToolCall) -> InspectCall:
    """Convert a tool call to Inspect."""
    arguments = _object(call.arguments)
    if arguments is None:
        return InspectCall(id=call.id, function=call.name, arguments={}, parse_error=call.arguments)
    return InspectCall(id=call.id, function=call.name, arguments=arguments)


def from_call(call: InspectCall) -> ToolCall:
    """Convert a tool call from Inspect; unparsed arguments stay text, which the tools refuse."""
    if call.parse_error is not None:
        return ToolCall(call.id, call.function, call.parse_error)
    return ToolCall(call.id, call.function, json.dumps(call.arguments, ensure_ascii=False))


def to_choice(choice: str, tools: Sequence[ToolSpec]) -> ToolChoice:
    """Convert a tool choice to Inspect; a tool that is the only one on offer is required without its name.

    llama.cpp ignores a choice by name (ggml-org/llama.cpp#26535), LM Studio refuses it (lmstudio-bug-tracker#670).
    """
    if choice == AUTO:
        return "auto"
    return "any" if len(tools) == 1 else ToolFunction(choice)


def from_choice(choice: ToolChoice, tools: Sequence[ToolInfo]) -> str:
    """Convert a tool choice from Inspect."""
    if isinstance(choice, ToolFunction):
        return choice.name
    return tools[0].name if choice == "any" and len(tools) == 1 else AUTO


def from_chat(message: ChatMessage) -> Message:
    """Convert a message from Inspect, its text only."""
    calls = tuple(map(from_call, message.tool_calls or ())) if isinstance(message, ChatMessageAssistant) else ()
    called = message.tool_call_id if isinstance(message, ChatMessageTool) else None
    return Message(message.role, message.text, calls, called)


def to_tool(spec: ToolSpec) -> ToolInfo:
    """Convert a tool to Inspect."""
    parameters = ToolParams.model_validate(dict(spec.parameters))
    return ToolInfo(name=spec.name, description=spec.description, parameters=parameters)


def from_tool(tool: ToolInfo) -> ToolSpec:
    """Convert a tool from Inspect."""
    return ToolSpec(tool.name, tool.description, tool.parameters.model_dump(exclude_none=True))


def disable_strict_tools(model: Model) -> None:
    """Make a model of Inspect send tool schemas unchanged; strict ones would exclude optional parameters."""
    api: Any = model.api
    if hasattr(api, "strict_tools"):
        api.strict_tools = False


def from_stop(output: ModelOutput) -> Stop:
    """Return why the model stopped; OpenAI's protocols report a refusal inside a finished answer."""
    content = output.message.content
    if not isinstance(content, str) and any(part.type == "text" and part.refusal for part in content):
        return "refused"
    return _STOPS.get(output.stop_reason, "done")


def to_usage(usage: Usage) -> ModelUsage | None:
    """Convert token counts to Inspect, whose input excludes cached tokens; None if input or output is unknown."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return ModelUsage(
        input_tokens=usage.input_tokens - (usage.cached_tokens or 0) - (usage.cache_write_tokens or 0),
        input_tokens_cache_read=usage.cached_tokens,
        input_tokens_cache_write=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        total_cost=usage.cost_usd,
    )


def from_usage(usage: ModelUsage) -> Usage:
    """Convert token counts from Inspect, adding reasoning to the output where a server, such as xAI's, excludes it."""
    read, written = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
    whole, reasoning = usage.input_tokens + read + written, usage.reasoning_tokens or 0
    apart = 0 < usage.output_tokens < reasoning or usage.total_tokens == whole + usage.output_tokens + reasoning
    return Usage(
        input_tokens=whole,
        cached_tokens=usage.input_tokens_cache_read,
        cache_write_tokens=usage.input_tokens_cache_write,
        output_tokens=usage.output_tokens + (reasoning if apart else 0),
        reasoning_tokens=usage.reasoning_tokens,
        cost_usd=usage.total_cost,
    )


def _object(text: str) -> dict[str, Any] | None:
    try:
        value: object = orjson.loads(text) if text.strip() else {}
    except orjson.JSONDecodeError:
        return None
    return dict(value) if is_object(value) and _shallow(value) else None


def _shallow(value: object, depth: int = _MAX_DEPTH) -> bool:
    if is_object(value):
        return depth > 0 and all(_shallow(each, depth - 1) for each in value.values())
    return not is_array(value) or (depth > 0 and all(_shallow(each, depth - 1) for each in value))
