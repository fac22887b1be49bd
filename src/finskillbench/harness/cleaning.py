"""Clean a model's answer before anything of it is stored, served or counted.

No answer of a provider may end more than its episode: texts are made storable and lose this process's secrets, calls
beyond a bound are cut off, and token counts that cannot be are taken as unknown. A call whose name or arguments are
not as offered is served where they can have one meaning only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import replace

import orjson

from finskillbench.harness.model import ToolCall, Turn, Usage
from finskillbench.scoring.values import is_object

MAX_CALLS_PER_TURN = 64
"""Calls of one turn beyond this are cut off, so that a model in a rut cannot fill the memory."""
_LONGEST_NAME = 200
"""Characters of the id or the name of a call, or of the name of the model that answered."""
_MOST_TOKENS = 10**9
_MOST_USD = 1e6
"""More than any one call can use or cost."""
_BEFORE_A_NAME = (".", "__", ":", "/")
"""Ends of prefixes that models put before the name of a tool: functions.NAME, mcp__server__NAME."""
_AFTER_A_NAME = "<|"
"""Start of a control token that a server left after the name."""


def clean_text(text: str) -> str:
    """Return `text` with lone surrogates replaced by "?", so that it can be stored as UTF-8; else unchanged."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def clean_turn(turn: Turn, redact: Callable[[str], str] = lambda text: text) -> Turn:
    """Return `turn` with every text storable and without secrets, and with calls and token counts in their bounds.

    The same object when nothing had to change. What had to be changed in texts or calls is not replayed to the provider
    in its own form.
    """

    def cleaned(text: str) -> str:
        return redact(clean_text(text))

    def name(text: str) -> str:
        return cleaned(text)[:_LONGEST_NAME]

    calls = tuple(
        ToolCall(name(call.id), name(call.name), cleaned(call.arguments))
        for call in turn.tool_calls[:MAX_CALLS_PER_TURN]
    )
    text = cleaned(turn.text)
    served = None if turn.served_model is None else name(turn.served_model)
    usage = turn.usage if possible(turn.usage) else Usage()
    seconds = turn.seconds if turn.seconds is not None and 0.0 <= turn.seconds < math.inf else None
    said = text == turn.text and calls == turn.tool_calls
    if said and served == turn.served_model and usage is turn.usage and seconds == turn.seconds:
        return turn
    replay = turn.replay if said else None
    return replace(turn, text=text, tool_calls=calls, served_model=served, usage=usage, replay=replay, seconds=seconds)


def understood(call: ToolCall, offered: Collection[str]) -> ToolCall:
    """Return a call with the one meaning that it can have; the same object where it is as offered, or has several."""
    name, arguments = _offered_name(call.name, offered), _decoded(call.arguments)
    if name == call.name and arguments == call.arguments:
        return call
    return replace(call, name=name, arguments=arguments)


def _offered_name(name: str, offered: Collection[str]) -> str:
    """Return the only tool on offer that a name can mean: without prefix, control token, spaces and capitals."""
    if name in offered:
        return name
    bare = name.partition(_AFTER_A_NAME)[0].strip().casefold()
    found = [each for each in offered if bare == each or bare.endswith(tuple(end + each for end in _BEFORE_A_NAME))]
    return found[0] if len(found) == 1 else name


def _decoded(arguments: str) -> str:
    """Return arguments that were encoded once more, as a JSON string of an object, as that object's text."""
    text = arguments
    try:
        while text.lstrip().startswith('"') and isinstance(inner := orjson.loads(text), str):
            text = inner
        return text if text != arguments and is_object(orjson.loads(text)) else arguments
    except orjson.JSONDecodeError:
        return arguments


def possible(usage: Usage) -> bool:
    """Return True if counts and price are possible: whole, not negative, some input, parts within wholes."""
    counts = (
        usage.input_tokens,
        usage.cached_tokens,
        usage.cache_write_tokens,
        usage.output_tokens,
        usage.reasoning_tokens,
    )
    # Values of an adapter that nobody has checked: their types are part of the question.
    if not all(count is None or (type(count) is int and 0 <= count <= _MOST_TOKENS) for count in counts):
        return False
    cost = usage.cost_usd
    if cost is not None and not (math.isfinite(cost) and 0 <= cost <= _MOST_USD):
        return False
    if usage.input_tokens is None:
        return True
    if usage.input_tokens == 0 and cost is None:
        return False
    return (usage.cached_tokens or 0) + (usage.cache_write_tokens or 0) <= usage.input_tokens
