"""Language models behind a provider's API, through Inspect's model layer.

One call of `Hosted.generate` is one HTTP request, without retries by the provider's package or Inspect, since the loop
retries. Three exceptions are outside Inspect's settings. Anthropic gets a free request that counts reasoning tokens,
Google is called again after a malformed function call with both answers counted, and Bedrock's package retries.

Inspect and its 80 packages are imported with the first model. Keys come from the environment; Inspect's `.env` file is
not read. Inspect repairs broken JSON in tool calls. Here the original text is taken from the raw answer, so that
answers are scored as written.
"""

from __future__ import annotations

import asyncio
import re
import warnings
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import orjson

from finskillbench.errors import Cause, InputError, ProviderError
from finskillbench.harness.model import FREE, Message, ToolCall, ToolSpec, Turn, Usage, clean_turn, is_possible
from finskillbench.harness.providers import bounds
from finskillbench.harness.providers.bounds import MAX_ANSWER_BYTES, MAX_BATCH_BYTES, bound_answers
from finskillbench.harness.providers.errors import failed_call, is_overflow, provider_error
from finskillbench.harness.providers.prices import NO_CHARGE, Price
from finskillbench.harness.providers.replies import CachedAnswer, ResponseCache
from finskillbench.harness.providers.settings import (
    CallSettings,
    check_constructor,
    check_model_args,
    constructor_arguments,
    fixed_config,
)
from finskillbench.redaction import logger, redactor_of_process
from finskillbench.scoring.values import is_array

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessageAssistant, ModelCall, ModelOutput

    from finskillbench.harness.models import ModelOptions

_LOG = logger(__name__)

EXTRA = 'make llm, or: pip install "finskillbench[llm]"'
_NO_KEY = "none"
"""Key for a server given by address if the environment has none."""
_MODEL_ARGUMENTS: dict[str, dict[str, Any]] = {"grok": {"disable_retry": True}}
"""Constructor arguments of single providers; xAI's package retries inside gRPC by default."""


@dataclass(slots=True)
class _Exchange:
    """Raw data of one request that Inspect does not return."""

    call: ModelCall | None = None
    error: Exception | None = None
    seconds: float | None = None


_exchange: ContextVar[_Exchange] = ContextVar("finskillbench_exchange")


def _add_seconds(seconds: float) -> None:
    exchange = _exchange.get()
    exchange.seconds = (exchange.seconds or 0.0) + seconds


def _ignore_seconds(seconds: float) -> None:
    """Ignore the duration of a request that serves several calls."""


class Hosted:
    """A language model behind an API, called by its Inspect name `provider/model`.

    It serves concurrent episodes. Close it in the event loop that used it; afterwards another event loop can use it.
    """

    def __init__(self, name: str, options: ModelOptions) -> None:
        """Construct the model without a request; raises `InputError` for a missing extra, package or key."""
        self.name = name
        self.provider = name.partition("/")[0]
        if options.batch and self.provider not in bounds.BATCH_PROVIDERS:
            raise InputError(
                f"model {name!r}: its provider has no batch interface; use one of {', '.join(bounds.BATCH_PROVIDERS)}"
            )
        self.price: Price | None = options.charged.price_of(name)
        self.arguments, self._seed = options.arguments, options.seed
        self._deadline = options.attempt_timeout or (bounds.BATCH_SECONDS if options.batch else options.request_timeout)
        self._request_timeout, self._batch = options.request_timeout, options.batch
        self._cache = None if options.response_cache is None else ResponseCache(options.response_cache)
        self._model = _inspect_model(name, options)
        self._settings = CallSettings(self._model.api, fixed_config(options))
        self._provider_generate = self._model.api.generate
        self._model.api.generate = self._generate_once
        self._closed = False

    async def generate(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        tool_choice: str,
        *,
        max_tokens: int | None = None,
        repeat: int = 0,
    ) -> Turn:
        """Answer the conversation with exactly one request; raises `ProviderError` without a usable answer."""
        turn = await self._request_turn(messages, tools, tool_choice, max_tokens, repeat)
        if self._cache is not None and turn.usage.input_tokens:
            redact = redactor_of_process()
            turn = clean_turn(turn, redact)
            replay = _replayed(turn.replay)
            if replay is None or redact(replay) == replay:
                request = self._request_key(messages, tools, tool_choice, max_tokens, repeat)
                self._cache.store(self.name, request, CachedAnswer(replace(turn, replay=None), replay))
        return turn

    def recall(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        tool_choice: str,
        max_tokens: int | None,
        repeat: int,
    ) -> Turn | None:
        """Return the cached answer to the same request, as `finskillbench.harness.model.Recalling`."""
        if self._cache is None:
            return None
        cached = self._cache.find(self._request_key(messages, tools, tool_choice, max_tokens, repeat))
        if cached is None:
            return None
        from inspect_ai.model import ChatMessageAssistant
        from pydantic import ValidationError

        try:
            replay = None if cached.replay is None else ChatMessageAssistant.model_validate_json(cached.replay)
        except ValidationError:
            _LOG.warning("%s: a cached answer cannot be read; requesting it again", self.name)
            return None
        cost = None if self.price is None else self.price.cost(cached.turn.usage)
        usage = replace(cached.turn.usage, cost_usd=cost, reused_calls=1, saved_usd=cost or 0.0)
        return replace(cached.turn, usage=usage, replay=replay, seconds=0.0)

    def _request_key(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        tool_choice: str,
        max_tokens: int | None,
        repeat: int,
    ) -> bytes:
        """Return everything that determines an answer, as bytes in a canonical form."""
        conversation = [
            (each.role, each.content, each.tool_calls, each.tool_call_id, _replayed(each.replay)) for each in messages
        ]
        # The address may come from the environment and is then missing in the arguments.
        address = str(getattr(getattr(self._model.api, "client", None), "base_url", self._model.api.base_url))
        request = (
            self.name,
            address,
            self.arguments,
            version("inspect-ai"),
            conversation,
            tools,
            tool_choice,
            max_tokens,
            repeat,
        )
        return orjson.dumps(request, option=orjson.OPT_SORT_KEYS)

    async def _request_turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        tool_choice: str,
        max_tokens: int | None,
        repeat: int,
    ) -> Turn:
        from finskillbench.harness.providers.inspect_words import to_chat, to_choice, to_tool

        if self._closed:
            self._model.api.initialize()
            self._closed = False
        exchange = _Exchange()
        token = _exchange.set(exchange)
        try:
            # A separate task: Inspect keeps an unbounded transcript of calls in the context of the caller.
            request = asyncio.create_task(
                self._model.generate(
                    to_chat(messages),
                    [to_tool(spec) for spec in tools],
                    to_choice(tool_choice, tools),
                    self._settings.of(max_tokens, None if self._seed is None else self._seed + repeat),
                )
            )
        finally:
            _exchange.reset(token)
        try:
            async with asyncio.timeout(self._deadline):
                output = await request
            if exchange.error is not None:
                raise exchange.error
        except Exception as error:
            if is_overflow(error):
                return Turn(stop="context_overflow", usage=FREE)
            if (text := failed_call(error)) is not None:
                return Turn(text)
            if self._batch and (failure := bounds.batch_failure(error, self.name)) is not None:
                raise failure from error
            raise provider_error(error, self.name) from error
        return replace(self._turn(output, exchange.call), seconds=exchange.seconds)

    async def close(self) -> None:
        """Close the connections."""
        if not self._closed:
            self._closed = True
            await self._model.api.aclose()

    async def _generate_once(self, *args: Any, **kwargs: Any) -> ModelOutput:
        """Replace the adapter's `generate`: make a single request, keep its raw answer, defer its failure.

        Only the adapter's caller gets the raw answer with the tool calls as written. Inspect would render an exception
        with all local variables, in 0.3 to 1.6 s of CPU time.
        """
        from inspect_ai.model import ModelOutput

        client: Any = getattr(self._model.api, "client", None)
        # Set on each call: Inspect creates some clients late, and again when keys are renewed.
        if client is not None and hasattr(client, "max_retries"):
            client.max_retries, client.timeout = 0, self._request_timeout
        # A batch is awaited in the context of its first caller; its duration belongs to no single call.
        if self._batch:
            bound_answers(client, _ignore_seconds, MAX_BATCH_BYTES)
        else:
            bound_answers(client, _add_seconds, MAX_ANSWER_BYTES)
        exchange = _exchange.get()
        try:
            result: Any = await self._provider_generate(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - raised again by `generate`
            exchange.error = error
            return ModelOutput()
        if isinstance(result, tuple):
            result, exchange.call = cast("tuple[Any, ModelCall]", result)
        if isinstance(result, Exception):
            exchange.error = result
            return ModelOutput()
        return result

    def _turn(self, output: ModelOutput, call: ModelCall | None) -> Turn:
        from finskillbench.harness.providers.inspect_words import from_stop

        if not output.choices:
            raise ProviderError(f"{self.name}: an answer without choices", Cause.EMPTY)
        message = output.choices[0].message
        return Turn(
            text=message.text,
            tool_calls=_tool_calls(message, call),
            usage=self._usage(output),
            stop=from_stop(output),
            served_model=output.model or None,
            replay=message,
        )

    def _usage(self, output: ModelOutput) -> Usage:
        from finskillbench.harness.providers.inspect_words import from_usage

        if output.usage is None:
            # A refused request is not billed; for other answers the price is unknown, unless the model is free.
            if output.stop_reason == "model_length":
                return FREE
            return Usage(cost_usd=0.0 if self.price == NO_CHARGE else None)
        usage = from_usage(output.usage)
        message = output.message
        if not is_possible(usage) or not usage.input_tokens or not (usage.output_tokens or _is_empty(message)):
            return Usage()  # impossible counts give no price
        return replace(usage, cost_usd=None if self.price is None else self.price.cost(usage))


def _inspect_model(name: str, options: ModelOptions) -> Any:
    if find_spec("inspect_ai") is None:
        raise InputError(f"model {name!r} needs the extra llm; install it: {EXTRA}")
    from finskillbench.harness.providers.inspect_words import disable_strict_tools

    # Pydantic prints answers of unexpected shape to standard error, including any key in them.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings")
    check_model_args(options.model_args)
    if options.batch:
        bounds.prepare_batches()
    # Inspect cannot unset for one call an option that is set for all.
    config = fixed_config(options).model_copy(update={"reasoning_tokens": None})
    arguments = _MODEL_ARGUMENTS.get(name.partition("/")[0], {})
    model = _constructed(name, options.base_url, config=config, **arguments)
    if constructor := constructor_arguments(options):
        check_constructor(name, constructor, model.api)
        model = _constructed(name, options.base_url, config=config, **arguments, **constructor)
    disable_strict_tools(model)
    return model


def _constructed(name: str, base_url: str | None, **arguments: Any) -> Any:
    from inspect_ai.model import get_model

    # Local servers often need no key, but every package sends one.
    keys = [None] if base_url is None else [None, _NO_KEY]
    failures: list[str] = []
    for key in keys:
        try:
            return get_model(name, base_url=base_url, api_key=key, memoize=False, **arguments)
        except Exception as error:  # noqa: BLE001 - constructors may raise anything
            _LOG.debug("model %s cannot be constructed", name, exc_info=True)
            failures.append(_plain(error))
    raise InputError(f"model {name!r} cannot be used: {failures[0]}")


def _plain(error: Exception) -> str:
    text = " ".join(re.sub(r"\[/?[a-z][a-z ]*\]", "", str(error)).split())
    return text.removeprefix("ERROR: ") or type(error).__name__


def _replayed(replay: object | None) -> str | None:
    return None if replay is None else cast("ChatMessageAssistant", replay).model_dump_json()


def _is_empty(message: ChatMessageAssistant) -> bool:
    return not message.text and not message.tool_calls


def _tool_calls(message: ChatMessageAssistant, call: ModelCall | None) -> tuple[ToolCall, ...]:
    """Return the calls as the model wrote them; parsed arguments (Anthropic, Google) are serialized again."""
    from finskillbench.harness.providers.inspect_words import from_call

    raw = list(_raw_calls(call.response)) if call is not None and call.response is not None else []
    made = message.tool_calls or []
    texts = [text for _, text in raw] if [name for name, _ in raw] == [each.function for each in made] else None
    if texts is None:
        return tuple(map(from_call, made))
    return tuple(ToolCall(each.id, each.function, text) for each, text in zip(made, texts, strict=True))


def _raw_calls(response: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and argument text of each call in a raw answer of OpenAI's two protocols."""
    choices = response.get("choices")
    items: list[Any] = []
    if is_array(choices) and choices:
        first = min(choices, key=lambda choice: choice.get("index") or 0)
        message: dict[str, Any] = first.get("message") or {}
        calls: list[dict[str, Any]] = message.get("tool_calls") or []
        items = [each.get("function") or {} for each in calls]
    elif is_array(output := response.get("output")):
        items = [each for each in output if each.get("type") == "function_call"]
    for item in items:
        name, arguments = item.get("name"), item.get("arguments")
        if isinstance(name, str) and isinstance(arguments, str):
            yield name, arguments
