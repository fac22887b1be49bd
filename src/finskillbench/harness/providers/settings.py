"""Call settings of hosted models: limits, seed, temperature, and the user's model arguments.

Model arguments are call settings of Inspect (`SETTINGS`) or arguments of the adapter's constructor. They cannot repeat
other options or hold secrets, as run folders store them.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args

from finskillbench.errors import InputError
from finskillbench.harness.providers.bounds import BATCH_RETRIES
from finskillbench.redaction import named_like_a_secret, redactor_of_process
from finskillbench.scoring.values import is_array, is_object

if TYPE_CHECKING:
    from inspect_ai.model import GenerateConfig

    from finskillbench.harness.models import ModelOptions

SETTINGS = (
    *("top_p", "top_k", "frequency_penalty", "presence_penalty", "logit_bias", "parallel_tool_calls", "verbosity"),
    *("effort", "reasoning_mode", "reasoning_tokens", "reasoning_summary", "reasoning_history", "cache_prompt"),
    "extra_body",
)
"""Call settings, by Inspect's names, that no other option sets."""
_FIXED_IN_BODY = frozenset(
    {
        *("model", "messages", "input", "system", "contents", "tools", "tool_choice", "stream", "n", "seed"),
        *("max_tokens", "max_completion_tokens", "max_output_tokens", "temperature"),
    }
)
"""Keys that `extra_body` cannot set, because an option or the harness does."""
_FIXED_IN_CONSTRUCTOR = frozenset(
    {"self", "model_name", "base_url", "service_base_url", "api_key", "config", "client_timeout", "strict_tools"}
)
_NO_LIMIT = 10_000
"""Inspect's limit on open requests, above any concurrency of a run, which has its own limit."""
_LEAST_THINKING = 1_024
"""Anthropic's smallest reasoning budget, used for all providers."""


def parse_model_args(text: str) -> dict[str, Any]:
    """Read model arguments from JSON text; raises `InputError` for other text or refused arguments."""
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"--model-args is not JSON ({error}); pass an object such as '{{\"top_p\": 0.9}}'") from None
    if not is_object(value):
        raise InputError(f"--model-args must be a JSON object such as '{{\"top_p\": 0.9}}', not {text[:60]}")
    check_model_args(value)
    return dict(value)


def check_model_args(arguments: Mapping[str, Any]) -> None:
    """Raise `InputError` for arguments that hold a secret, which run.json would store, or that are set elsewhere."""
    redact = redactor_of_process()
    for name, value in _texts(arguments):
        # Numbers are exempt: "tokens" in a name is usually a count.
        if named_like_a_secret(name) or "auth" in name.lower() or redact(value) != value:
            raise InputError(
                f"model_args: {name} holds a secret, and run.json would store it; set keys in the environment"
            )
    body = arguments.get("extra_body")
    if is_object(body) and (fixed := sorted(_FIXED_IN_BODY & body.keys())):
        raise InputError(
            f"model_args: extra_body.{fixed[0]} is set by an option of run or by the harness; leave it out"
        )


def fixed_config(options: ModelOptions) -> GenerateConfig:
    """Return the settings common to all calls of a model; raises `InputError` for an invalid one."""
    from inspect_ai.model import GenerateConfig
    from pydantic import ValidationError

    efforts = _efforts(GenerateConfig)
    if options.reasoning_effort is not None and options.reasoning_effort not in efforts:
        raise InputError(f"reasoning effort {options.reasoning_effort!r} is unknown; choose from: {', '.join(efforts)}")
    settings = {name: value for name, value in options.model_args.items() if name in SETTINGS}
    try:
        made = GenerateConfig(
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            reasoning_effort=options.reasoning_effort,  # pyright: ignore[reportArgumentType]
            timeout=math.ceil(options.request_timeout),
            max_retries=BATCH_RETRIES if options.batch else 0,
            max_connections=_NO_LIMIT,
            batch=options.batch or None,
            **settings,
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"model_args: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return made


def constructor_arguments(options: ModelOptions) -> dict[str, Any]:
    """Return the model arguments that are not call settings."""
    return {name: value for name, value in options.model_args.items() if name not in SETTINGS}


def check_constructor(name: str, arguments: Mapping[str, Any], adapter: object) -> None:
    """Raise `InputError` for arguments unknown to the adapter of model `name`; most adapters forward them silently."""
    parameters = inspect.signature(type(adapter).__init__).parameters.values()
    known = {each.name for each in parameters if each.kind is not each.VAR_KEYWORD} - _FIXED_IN_CONSTRUCTOR
    for each in arguments:
        if each not in known:
            like = get_close_matches(each, [*SETTINGS, *known], n=1)
            nearest = f"; did you mean {like[0]}?" if like else f"; it has {', '.join([*SETTINGS, *sorted(known)])}"
            raise InputError(f"model_args: {name} has no argument {each!r}{nearest}")


@dataclass(frozen=True, slots=True)
class CallSettings:
    """Settings of single calls, for one adapter of Inspect."""

    adapter: Any
    fixed: GenerateConfig

    def of(self, max_tokens: int | None, seed: int | None) -> GenerateConfig:
        """Return the settings of a call of at most `max_tokens`, if that is below the model's own limit.

        A separate reasoning budget is reduced to leave tokens for an answer, or dropped if too little remains.
        """
        most = self.fixed.max_tokens or 0
        limit = most if max_tokens is None else min(most, max_tokens)
        made = self.fixed.model_copy(update={"max_tokens": limit, "seed": seed})
        thinking = _thinking_tokens(self.adapter, made)
        if not thinking or thinking < 0:
            return made
        budget = min(thinking, limit * 3 // 4)
        if budget < _LEAST_THINKING:
            return made.model_copy(update={"reasoning_tokens": None, "reasoning_effort": "none"})
        return made.model_copy(update={"reasoning_tokens": budget})


def _thinking_tokens(adapter: Any, config: GenerateConfig) -> int | None:
    """Return the reasoning budget that an adapter would send; None for most providers."""
    if config.reasoning_tokens is not None:
        return config.reasoning_tokens
    if hasattr(adapter, "is_using_extended_thinking"):  # Anthropic
        return adapter.bridged_reasoning_tokens(config) if adapter.is_using_extended_thinking(config) else None
    if hasattr(adapter, "chat_thinking_config"):  # Google
        thinking = adapter.chat_thinking_config(config)
        return None if thinking is None else thinking.thinking_budget
    return None


def _texts(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif is_object(value):
        for key, member in value.items():
            yield from _texts(member, key)
    elif is_array(value):
        for member in value:
            yield from _texts(member, name)


def _efforts(config: Any) -> tuple[str, ...]:
    annotation = config.model_fields["reasoning_effort"].annotation
    return tuple(value for part in get_args(annotation) for value in get_args(part))
