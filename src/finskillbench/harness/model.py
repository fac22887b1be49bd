"""What the loop and a model say to each other: messages, tools and turns. No provider package is imported here.

A provider adapter translates these few types to its own wire format and raises
`finskillbench.errors.ProviderError`, naming the cause. It never tries again by itself: the loop does.

Clean a model's answer before anything of it is stored, served or counted.

No answer of a provider may end more than its episode: texts are made storable and lose this process's secrets, calls
beyond a bound are cut off, and token counts that cannot be are taken as unknown. A call whose name or arguments are
not as offered is served where they can have one meaning only.
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
"""The tool choice that leaves the model free; any other value names the one tool that it must call."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it: name, description, and the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to call a tool; `arguments` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one or more model calls, and their price in US dollars; None is unknown (a program costs 0).

    `input_tokens` is the whole input, of which `cached_tokens` were read from the provider's cache and
    `cache_write_tokens` written to it; `output_tokens` is all that was generated, `reasoning_tokens` included.

    `reused_calls` are those answered from our own cache of responses
    (`finskillbench.harness.providers.replies`). Their tokens and their price are counted as if they had been asked
    anew, so that what an episode takes does not hang on who asked first; `saved_usd` is the part of the price that was
    not paid.
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
        """US dollars that went to the provider, as far as they are known."""
        return (self.cost_usd or 0.0) - self.saved_usd

    @property
    def is_known(self) -> bool:
        """True if input and output are known, or the price: no call is answered without input."""
        return self.cost_usd is not None or (bool(self.input_tokens) and self.output_tokens is not None)

    def __add__(self, other: Usage) -> Usage:
        """Sum; a count or the price of a sum is known only if both are."""
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
"""What a program uses, and where sums begin."""


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of the conversation; a `tool` message answers the call named by `tool_call_id`.

    `replay` is the adapter's own form of a turn that it made, to be sent back as it came: providers sign reasoning.
    It is no part of a trajectory.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    _replay: object | None = field(default=None, repr=False, compare=False)  # orjson leaves out names with a _

    @property
    def replay(self) -> object | None:
        """What the adapter wants back, None where there is nothing but the words."""
        return self._replay


Stop = Literal["done", "max_tokens", "context_overflow", "refused"]
"""Why a model stopped: it was done, its output limit cut it off, the conversation outgrew it, or it (or a filter of
the provider) declined."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one model call returned: text, tool calls in the order the model wants them run, and usage.

    `served_model` is the name that the provider says answered, where it says so; `replay` is what the adapter wants
    back in the conversation, see `Message`. `seconds` is what the provider took, where whoever called it knows that
    better than a clock around the call.
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
    """Whoever answers. Implementations keep no state between calls: the conversation is all they know.

    One whose `generate` also takes `max_tokens` and `repeat` is given them with each call, see `Tuned`. Three more
    attributes are read where a model has them. `provider` : the name of whoever serves it. `price` : a
    `finskillbench.harness.providers.prices.Price`, by which an upper bound is set aside under `max_cost`. `arguments` :
    a mapping of what distinguishes it from other entries of its name in a run.
    """

    @property
    def name(self) -> str:
        """The name under which rows and journals file this model, e.g. "baseline/nop"."""
        ...

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Answer the conversation so far.

        Parameters
        ----------
        messages : the conversation, oldest first.
        tools : the tools on offer.
        tool_choice : "auto", or the name of the one tool that must be called.

        Raises
        ------
        ProviderError : the provider failed; its `cause` decides what follows.
        """
        ...


class Recalling(Protocol):
    """A model that may have answered the same request before, and kept the answer."""

    def recall(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        tool_choice: str,
        max_tokens: int | None,
        repeat: int,
    ) -> Turn | None:
        """The answer that was kept, with `reused_calls` of 1; None where there is none. Nothing is sent."""
        ...


class Tuned(Protocol):
    """A model whose calls take a limit of the answer, and say which repeat they belong to, as hosted ones do."""

    async def generate(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        tool_choice: str,
        *,
        max_tokens: int | None = None,
        repeat: int = 0,
    ) -> Turn:
        """Answer the conversation so far.

        Parameters
        ----------
        messages, tools, tool_choice : as of `Model`.
        max_tokens : the most that this call may generate, reasoning included, where that is less than the model's own.
        repeat : of the episode, from 0, so that what the model draws is not the same in each.
        """
        ...


def is_tuned(model: Model) -> TypeGuard[Tuned]:
    """Whether the calls of a model take both; those of another are not limited, and their repeats not told apart."""
    generate = model.generate
    return _takes_both(getattr(generate, "__func__", generate))


@lru_cache(maxsize=64)
def _takes_both(generate: Callable[..., object]) -> bool:
    return {"max_tokens", "repeat"} <= signature(generate).parameters.keys()


def is_recalling(model: Model) -> TypeGuard[Recalling]:
    """Whether a model may have kept answers; a look at one name, as checks against protocols are slow."""
    return hasattr(model, "recall")


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
