"""Registry of models by name, and the keys of a run's entries.

`baseline/...` names are programs. Any other `provider/model` is a language model, called through Inspect's model layer,
which is imported on first use. A model may be in a run several times with different arguments, see `ModelKey`.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, cast

import orjson

from finskillbench.errors import InputError
from finskillbench.harness.agents import Agent, as_agent, is_solver
from finskillbench.harness.allowance import DEFAULT_ALLOWANCE, Allowance
from finskillbench.harness.model import Model
from finskillbench.harness.programs.checker import Checker
from finskillbench.harness.programs.program import Heuristic, Nop, Textbook, Trapped, Trivial
from finskillbench.harness.programs.random_loader import RandomLoader
from finskillbench.harness.programs.reference import Reference
from finskillbench.harness.providers.prices import PROGRAMS, PriceTable

NO_ARGUMENTS = "{}"


@dataclass(frozen=True, slots=True, order=True)
class ModelKey:
    """A model's name and its arguments as canonical JSON: sorted keys, without unset ones."""

    model: str
    arguments: str = NO_ARGUMENTS

    def __str__(self) -> str:
        return self.model if self.arguments == NO_ARGUMENTS else f"{self.model} {self.arguments}"

    @property
    def named_arguments(self) -> dict[str, Any]:
        """Return the arguments by name."""
        return orjson.loads(self.arguments)

    def under(self, harness: str) -> ModelKey:
        """Return the key under another harness than the built-in one."""
        return ModelKey(self.model, canonical({**self.named_arguments, "harness": harness}))


def canonical(arguments: Mapping[str, Any]) -> str:
    """Return arguments as canonical JSON, without those that are None."""
    stated = {name: value for name, value in arguments.items() if value is not None}
    return orjson.dumps(stated, option=orjson.OPT_SORT_KEYS).decode()


def allowance_of(entry: ModelKey) -> Allowance:
    """Return an entry's turns and tokens per episode."""
    arguments = entry.named_arguments
    return Allowance(
        arguments.get("turns", DEFAULT_ALLOWANCE.turns), arguments.get("token_budget", DEFAULT_ALLOWANCE.tokens)
    )


def labels(entries: Iterable[ModelKey]) -> dict[ModelKey, str]:
    """Return a table label for each entry: its model, and arguments that differ between its entries."""
    by_model: dict[str, list[ModelKey]] = {}
    for entry in dict.fromkeys(entries):
        by_model.setdefault(entry.model, []).append(entry)
    return {entry: _label(entry, alike) for alike in by_model.values() for entry in alike}


def _label(entry: ModelKey, alike: list[ModelKey]) -> str:
    names = sorted({name for each in alike for name in each.named_arguments})
    values = {name: [canonical({name: each.named_arguments.get(name)}) for each in alike] for name in names}
    differing = [name for name in names if len(set(values[name])) > 1]
    return " ".join((entry.model, *(f"{name}={_value(entry.named_arguments.get(name))}" for name in differing)))


def _value(value: object) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


_PROGRAMS = (Reference, Heuristic, Trivial, Nop, Checker, RandomLoader, Textbook, Trapped)
BASELINES: dict[str, Callable[[], Model]] = {model.name: model for model in _PROGRAMS}
# fmt: off
PROVIDERS = (
    "anthropic", "azureai", "bedrock", "cloudflare", "deepseek", "fireworks", "google", "grok", "groq", "hf",
    "hf-inference-providers", "litellm-proxy", "llama-cpp-python", "meta", "mistral", "mockllm", "moonshot", "nnterp",
    "none", "ollama", "openai", "openai-api", "openai-api-completions", "openrouter", "perplexity", "sagemaker",
    "sambanova", "sglang", "together", "transformer_lens", "vllm", "vllm-completions",
)
# fmt: on
"""Providers of the pinned Inspect; a list, because querying Inspect takes 2.4 s."""


ARGUMENTS = ("base_url", "seed", "temperature", "max_tokens", "reasoning_effort", "model_args")
"""Options that distinguish entries of one model in a run; the others change no result."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Call options of language models; programs ignore them.

    `base_url` : address of an OpenAI-compatible server, or another address of the provider.
    `seed` : sent if the provider supports it, incremented with each repetition of an episode.
    `temperature` : sent if the model supports it.
    `max_tokens` : output limit of one call, reasoning included.
    `request_timeout` : a request fails after this many seconds without a byte.
    `attempt_timeout` : a request fails after this many seconds in any case; None: `request_timeout`.
    `reasoning_effort` : sent to reasoning models; None: the provider's default.
    `model_args` : further call settings and constructor arguments, see `finskillbench.harness.providers.settings`.
    `prices` : token prices.
    `batch` : use the provider's batch interface, which takes up to a day and costs less.
    `response_cache` : file of cached answers, see `finskillbench.harness.providers.replies`.
    """

    base_url: str | None = None
    seed: int | None = None
    temperature: float = 0.0
    max_tokens: int = 8192
    request_timeout: float = 600.0
    attempt_timeout: float | None = None
    reasoning_effort: str | None = None
    model_args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    prices: PriceTable = field(default_factory=PriceTable.load)
    batch: bool = False
    response_cache: Path | None = None

    @property
    def charged(self) -> PriceTable:
        """Return the prices of single or of batch requests, as these options use."""
        return self.prices.batched() if self.batch else self.prices

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Return the options in `ARGUMENTS` by name."""
        return {name: getattr(self, name) for name in ARGUMENTS if getattr(self, name) != {}}


Participant: TypeAlias = Model | Agent
"""A model in the built-in loop, or an agent with its own loop."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A model or an agent, by name or as an object; options and allowance default to those of the run."""

    model: str | Participant
    options: ModelOptions | None = None
    allowance: Allowance | None = None


_IMPORTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def check_model(name: str) -> None:
    """Refuse an impossible model name without importing Inspect.

    Raises `InputError` for an unknown program or provider, a missing extra, or a failed import.
    """
    if name in BASELINES:
        return
    if _IMPORTED.fullmatch(name):
        _imported(name)
        return
    provider, _, model = name.partition("/")
    if name.startswith(PROGRAMS) or not provider or not model:
        raise InputError(
            f"model {name!r} is unknown; choose from: {', '.join(BASELINES)}, or give provider/model, or "
            "package.module:name of a model or an agent of yours"
        )
    from finskillbench.harness.providers.hosted import EXTRA

    if find_spec("inspect_ai") is None:
        raise InputError(f"model {name!r} needs the extra llm; install it: {EXTRA}")
    if provider not in PROVIDERS and not _extended():
        raise InputError(f"model {name!r}: provider {provider!r} is unknown; choose from: {', '.join(PROVIDERS)}")


def get_participant(name: str, options: ModelOptions | None = None) -> Participant:
    """Return the model called `name`, or import `package.module:name`; raises `InputError` if that fails."""
    return _imported(name) if _IMPORTED.fullmatch(name) else get_model(name, options)


def key_of(participant: Participant, allowance: Allowance = DEFAULT_ALLOWANCE) -> ModelKey:
    """Return the key of a model or an agent, whose argument is its harness."""
    arguments = (
        {"harness": participant.harness} if isinstance(participant, Agent) else getattr(participant, "arguments", {})
    )
    return ModelKey(participant.name, canonical({**arguments, **allowance.arguments}))


def key_of_name(name: str, options: ModelOptions, allowance: Allowance = DEFAULT_ALLOWANCE) -> ModelKey:
    """Return the key of the model or agent called `name`; constructs no hosted model, raises as `check_model`."""
    check_model(name)
    if name in BASELINES or _IMPORTED.fullmatch(name):
        return key_of(get_participant(name, options), allowance)
    return ModelKey(name, canonical({**options.arguments, **allowance.arguments}))


def _imported(name: str) -> Participant:
    """Import a model, an agent, or a factory without arguments; searches the working folder too."""
    module, _, attribute = name.partition(":")
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = getattr(import_module(module), attribute)
        if not (isinstance(found, Agent) or is_solver(found) or _is_model(found) or _needs_arguments(found)):
            found = found()
    except Exception as error:
        raise InputError(f"model {name!r} cannot be imported: {type(error).__name__}: {error}") from error
    return found if _is_model(found) else as_agent(cast("Any", found))


def _needs_arguments(maker: Any) -> bool:
    parameters = inspect.signature(maker).parameters.values()
    return any(
        each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters
    )


def _is_model(value: object) -> TypeGuard[Model]:
    return isinstance(value, Model) and not isinstance(value, type)


def get_model(name: str, options: ModelOptions | None = None) -> Model:
    """Return the model called `name`; raises `InputError` if it is unknown or a requirement is missing."""
    check_model(name)
    if name in BASELINES:
        return BASELINES[name]()
    from finskillbench.harness.providers.hosted import Hosted

    return Hosted(name, options or ModelOptions())


def _extended() -> bool:
    """Return True if a third-party package may add providers to Inspect."""
    return any(point.name not in {"inspect_ai", "finskillbench"} for point in entry_points(group="inspect_ai"))
