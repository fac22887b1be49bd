"""Who answers: the registry of models by name.

`baseline/...` names are programs, not language models. They use no key and no network and are driven through the
same loop and the same tools as everybody else; reports label them as programs. Any other `provider/model` is a
language model that is called through Inspect's model layer, which is imported when the first one is made.

Who takes part in a run: a model, and the arguments that it was called with.

One model may take part several times with different arguments, say with more and with less reasoning; rows, journal
and trajectories tell such entries apart by `Entry.arguments`.
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
from finskillbench.harness.allowance import FULL, Allowance
from finskillbench.harness.model import Model
from finskillbench.harness.programs.program import Heuristic, Nop, Textbook, Trapped, Trivial
from finskillbench.harness.programs.reference import Reference
from finskillbench.harness.providers.prices import PROGRAMS, PriceTable

NO_ARGUMENTS = "{}"


@dataclass(frozen=True, slots=True, order=True)
class ModelKey:
    """A model by name, and its arguments as canonical JSON: keys in order, and none for what was not said."""

    model: str
    arguments: str = NO_ARGUMENTS

    def __str__(self) -> str:
        return self.model if self.arguments == NO_ARGUMENTS else f"{self.model} {self.arguments}"

    @property
    def named_arguments(self) -> dict[str, Any]:
        """The arguments by name."""
        return orjson.loads(self.arguments)

    def under(self, harness: str) -> ModelKey:
        """The same played by another harness than ours, which goes without saying."""
        return ModelKey(self.model, canonical({**self.named_arguments, "harness": harness}))


def canonical(arguments: Mapping[str, Any]) -> str:
    """Arguments as they identify an entry."""
    said = {name: value for name, value in arguments.items() if value is not None}
    return orjson.dumps(said, option=orjson.OPT_SORT_KEYS).decode()


def allowance_of(entry: ModelKey) -> Allowance:
    """The turns and tokens that an entry has for an episode."""
    said = entry.named_arguments
    return Allowance(said.get("turns", FULL.turns), said.get("token_budget", FULL.tokens))


def labels(entries: Iterable[ModelKey]) -> dict[ModelKey, str]:
    """What a table calls each entry: its model, and where a model has several entries the arguments that differ."""
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


_PROGRAMS = (Reference, Heuristic, Trivial, Nop, Textbook, Trapped)
BASELINES: dict[str, Callable[[], Model]] = {model.name: model for model in _PROGRAMS}
"""The programs by name."""
# fmt: off
PROVIDERS = (
    "anthropic", "azureai", "bedrock", "cloudflare", "deepseek", "fireworks", "google", "grok", "groq", "hf",
    "hf-inference-providers", "litellm-proxy", "llama-cpp-python", "meta", "mistral", "mockllm", "moonshot", "nnterp",
    "none", "ollama", "openai", "openai-api", "openai-api-completions", "openrouter", "perplexity", "sagemaker",
    "sambanova", "sglang", "together", "transformer_lens", "vllm", "vllm-completions",
)
# fmt: on
"""Providers that the pinned Inspect knows, listed here because asking it takes 2.4 s."""


ARGUMENTS = ("base_url", "seed", "temperature", "max_tokens", "reasoning_effort", "model_args")
"""The options that distinguish two entries of one model in a run; the others change no result."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How language models are called; programs ignore all of it.

    `base_url` : address of an OpenAI-compatible server, or another address of the provider.
    `seed` : sent where the provider takes one, in the first repeat of an episode; one more in each further repeat.
    `temperature` : sent where the model takes one.
    `max_tokens` : limit of one answer, reasoning included.
    `request_timeout` : seconds without a byte from the provider after which a request fails.
    `attempt_timeout` : seconds after which a request fails in any case; None: the same as `request_timeout`.
    `reasoning_effort` : sent to models that reason; None leaves it to the provider.
    `model_args` : further settings of a call and arguments of the adapter's constructor, see
        `finskillbench.harness.providers.settings`.
    `prices` : what tokens cost.
    `batch` : whether requests go through the provider's batch interface, which takes up to a day and costs less.
    `response_cache` : file of answers that are not asked twice, see `finskillbench.harness.providers.replies`.
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
        """What tokens cost in requests of this kind."""
        return self.prices.batched() if self.batch else self.prices

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The options of `ARGUMENTS`, by name."""
        return {name: getattr(self, name) for name in ARGUMENTS if getattr(self, name) != {}}


Participant: TypeAlias = Model | Agent
"""What can be run: a model in our loop, or an agent with a loop of its own."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A model or an agent, by name or as it is, with options and an allowance of its own; None: those of the run."""

    model: str | Participant
    options: ModelOptions | None = None
    allowance: Allowance | None = None


_IMPORTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
"""`package.module:name`."""


def check_model(name: str) -> None:
    """Refuse a name that no model can have, without importing Inspect.

    Raises
    ------
    InputError : an unknown program, a name without provider, an unknown provider, the extra is not installed, or
        nothing can be imported under the name.
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
    """Return the model called `name`, or the model or agent that is imported from `package.module:name`.

    Raises
    ------
    InputError : no such model, or something that it needs is missing: one line says what.
    """
    return _imported(name) if _IMPORTED.fullmatch(name) else get_model(name, options)


def key_of(entrant: Participant, allowance: Allowance = FULL) -> ModelKey:
    """How a run files a model or an agent that has an allowance for each episode.

    A model that says no `arguments` of its own has none; of an agent it is the harness that counts.
    """
    said = {"harness": entrant.harness} if isinstance(entrant, Agent) else getattr(entrant, "arguments", {})
    return ModelKey(entrant.name, canonical({**said, **allowance.arguments}))


def key_of_name(name: str, options: ModelOptions, allowance: Allowance = FULL) -> ModelKey:
    """How a run files the model or agent called `name`; a hosted one is not made, so that it needs no key.

    Raises
    ------
    InputError : as of `check_model`.
    """
    check_model(name)
    if name in BASELINES or _IMPORTED.fullmatch(name):
        return key_of(get_participant(name, options), allowance)
    return ModelKey(name, canonical({**options.arguments, **allowance.arguments}))


def _imported(name: str) -> Participant:
    """A model or an agent, or what a function of no arguments makes, from where it is defined.

    The working folder is looked in as well, as `python -m` does.
    """
    module, _, attribute = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
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
    """Return the model called `name`.

    Raises
    ------
    InputError : no such model, or something that it needs is missing: one line says what.
    """
    check_model(name)
    if name in BASELINES:
        return BASELINES[name]()
    from finskillbench.harness.providers.hosted import Hosted

    return Hosted(name, options or ModelOptions())


def _extended() -> bool:
    """Whether a package other than Inspect and this one may have brought providers of its own."""
    return any(point.name not in {"inspect_ai", "finskillbench"} for point in entry_points(group="inspect_ai"))
