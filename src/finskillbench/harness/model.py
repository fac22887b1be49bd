"""Messages, tools and turns between the loop and a model. No provider package is imported here.

A provider adapter converts these types to its wire format and raises `finskillbench.errors.ProviderError` with a cause.
It never retries; the loop does. Answers are cleaned before they are stored, served or counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from inspect import signature
from typing import Any, Literal, Protocol, TypeGuard, TypeVar, runtime_checkable

import orjson

from finskillbench.scoring.values import is_object

Role = Literal["system", "user", "assistant", "tool"]
AUTO = "auto"
"""Tool choice that leaves the model free; any other value names the one required tool."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it: name, description, and the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's tool call; `arguments` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and price in US dollars of one or more model calls; None is unknown (a program costs 0).

    `input_tokens` includes `cached_tokens` (read) and `cache_write_tokens`, `output_tokens` includes
    `reasoning_tokens`. `reused_calls` counts answers from the response cache
    (`finskillbench.harness.providers.replies`). Their tokens and price count as if requested anew; `saved_usd` is the
    unpaid part.
    """

    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    reused_calls: int = 0
    saved_usd: float = 0.0

    @property
    def paid_usd(self) -> float:
        """Return the known US dollars paid to the provider."""
        return (self.cost_usd or 0.0) - self.saved_usd

    @property
    def is_known(self) -> bool:
        """Return True if input and output are known, or the price; every answered call has input."""
        return self.cost_usd is not None or (bool(self.input_tokens) and self.output_tokens is not None)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=_sum(self.input_tokens, other.input_tokens),
            cached_tokens=_sum(self.cached_tokens, other.cached_tokens),
            cache_write_tokens=_sum(self.cache_write_tokens, other.cache_write_tokens),
            output_tokens=_sum(self.output_tokens, other.output_tokens),
            reasoning_tokens=_sum(self.reasoning_tokens, other.reasoning_tokens),
            cost_usd=_sum(self.cost_usd, other.cost_usd),
            reused_calls=self.reused_calls + other.reused_calls,
            saved_usd=self.saved_usd + other.saved_usd,
        )


N = TypeVar("N", int, float)


def _sum(left: N | None, right: N | None) -> N | None:
    return None if left is None or right is None else left + right


FREE = Usage(input_tokens=0, cached_tokens=0, cache_write_tokens=0, output_tokens=0, reasoning_tokens=0, cost_usd=0.0)
"""Usage of a program; also the initial value of sums."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message; a `tool` message answers the call `tool_call_id`.

    `replay` is the adapter's own form of its turn, returned unchanged because providers sign reasoning. Trajectories
    omit it.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    _replay: object | None = field(default=None, repr=False, compare=False)  # orjson skips names with a leading _

    @property
    def replay(self) -> object | None:
        """Return the adapter's own form of the message, None if it has only text."""
        return self._replay


Stop = Literal["done", "max_tokens", "context_overflow", "refused"]
"""Reason for stopping: finished, output limit, context limit, or declined by the model or a filter."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Result of one model call: text, tool calls in their order of execution, and usage.

    `served_model` is the provider's name of the answering model, `replay` as in `Message`. `seconds` is the answering
    time, if known more precisely than by a clock around the call.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    stop: Stop = "done"
    served_model: str | None = None
    replay: object | None = field(default=None, repr=False, compare=False)
    seconds: float | None = None


@runtime_checkable
class Model(Protocol):
    """A model. Implementations keep no state between calls and depend only on the conversation.

    Optional attributes: `provider`, its name; `price`, a `finskillbench.harness.providers.prices.Price` for upper
    bounds under `max_cost`; `arguments`, a mapping that distinguishes entries of the same name in a run.
    """

    @property
    def name(self) -> str:
        """Name of this model in rows and journals, e.g. "baseline/nop"."""
        ...

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Answer the conversation; raises `ProviderError` with a cause.

        `tool_choice` is "auto" or the name of the one required tool; messages are ordered from oldest to newest.
        """
        ...


class Recalling(Protocol):
    """A model with a cache of its answers."""

    def recall(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        tool_choice: str,
        max_tokens: int | None,
        repeat: int,
    ) -> Turn | None:
        """Return the cached answer with `reused_calls` of 1, None if there is none; sends nothing."""
        ...


class Tuned(Protocol):
    """A model whose calls take an output limit and the number of the repetition, as hosted ones do."""

    async def generate(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        tool_choice: str,
        *,
        max_tokens: int | None = None,
        repeat: int = 0,
    ) -> Turn:
        """Answer as `Model.generate`, generating at most `max_tokens`, in repetition `repeat` (from 0)."""
        ...


def is_tuned(model: Model) -> TypeGuard[Tuned]:
    """Return True if a model's calls take `max_tokens` and `repeat`."""
    generate = model.generate
    return _takes_both(getattr(generate, "__func__", generate))


@lru_cache(maxsize=64)
def _takes_both(generate: Callable[..., object]) -> bool:
    return {"max_tokens", "repeat"} <= signature(generate).parameters.keys()


def is_recalling(model: Model) -> TypeGuard[Recalling]:
    """Return True if a model may have cached answers; checks one name, as protocol checks are slow."""
    return hasattr(model, "recall")


MAX_CALLS_PER_TURN = 64
"""Limit of calls in one turn; more are dropped, so that a looping model cannot exhaust the memory."""
_LONGEST_NAME = 200
"""Maximum characters of a call's id or name, and of a served model's name."""
_MOST_TOKENS = 10**9
_MOST_USD = 1e6
_BEFORE_A_NAME = (".", "__", ":", "/")
"""Ends of prefixes that models add to a tool's name: functions.NAME, mcp__server__NAME."""
_AFTER_A_NAME = "<|"
"""Start of a control token that some servers leave after the name."""


def clean_text(text: str) -> str:
    """Replace lone surrogates by "?", so that `text` can be stored as UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


def clean_turn(turn: Turn, redact: Callable[[str], str] = lambda text: text) -> Turn:
    """Make every text of `turn` storable and free of secrets, and bound its calls and token counts.

    A turn with changed texts or calls loses its `replay`; an unchanged one is returned as the same object.
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
    usage = turn.usage if is_possible(turn.usage) else Usage()
    seconds = turn.seconds if turn.seconds is not None and 0.0 <= turn.seconds < math.inf else None
    unchanged = text == turn.text and calls == turn.tool_calls
    if unchanged and served == turn.served_model and usage is turn.usage and seconds == turn.seconds:
        return turn
    replay = turn.replay if unchanged else None
    return replace(turn, text=text, tool_calls=calls, served_model=served, usage=usage, replay=replay, seconds=seconds)


def repair_call(call: ToolCall, offered: Collection[str]) -> ToolCall:
    """Return a call with its only possible meaning; unchanged if it is valid or ambiguous."""
    name, arguments = _offered_name(call.name, offered), _decoded(call.arguments)
    if name == call.name and arguments == call.arguments:
        return call
    return replace(call, name=name, arguments=arguments)


def _offered_name(name: str, offered: Collection[str]) -> str:
    if name in offered:
        return name
    bare = name.partition(_AFTER_A_NAME)[0].strip().casefold()
    found = [each for each in offered if bare == each or bare.endswith(tuple(end + each for end in _BEFORE_A_NAME))]
    return found[0] if len(found) == 1 else name


def _decoded(arguments: str) -> str:
    """Decode arguments that are a JSON string of an object."""
    text = arguments
    try:
        while text.lstrip().startswith('"') and isinstance(inner := orjson.loads(text), str):
            text = inner
        return text if text != arguments and is_object(orjson.loads(text)) else arguments
    except orjson.JSONDecodeError:
        return arguments


def is_possible(usage: Usage) -> bool:
    """Return True if counts and price are possible: whole, not negative, some input, parts within wholes."""
    counts = (
        usage.input_tokens,
        usage.cached_tokens,
        usage.cache_write_tokens,
        usage.output_tokens,
        usage.reasoning_tokens,
    )
    # Values of third-party adapters may have any type.
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
