"""What the loop and a model say to each other: messages, tools and turns. No provider package is imported here.

A provider adapter translates these few types to its own wire format and raises
`finskillbench.errors.ProviderError`, naming the cause. It never tries again by itself: the loop does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import signature
from typing import Any, Literal, Protocol, TypeGuard, TypeVar, runtime_checkable

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
