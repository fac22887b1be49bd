"""Who answers: the registry of models by name.

`baseline/...` names are programs, not language models. They use no key and no network and are driven through the
same loop and the same tools as everybody else; reports label them as programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType

from finskillbench.errors import InputError
from finskillbench.harness.model import Model
from finskillbench.harness.prices import PriceTable

MODELS: Mapping[str, str] = MappingProxyType(
    {
        "baseline/reference": "finskillbench.harness.models.reference:Reference",
        "baseline/trivial": "finskillbench.harness.models.trivial:Trivial",
        "baseline/nop": "finskillbench.harness.models.baselines:Nop",
        "baseline/cheat": "finskillbench.harness.models.cheat:Cheat",
        "baseline/faulty": "finskillbench.harness.models.baselines:Faulty",
    }
)
"""Name to "module:class"; a class takes no arguments. Loaded on first use, so that an optional one costs nothing."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """STUB of this branch: the real one comes with the adapter."""

    base_url: str | None = None
    seed: int | None = None
    max_tokens: int = 8192
    request_timeout: float = 600
    attempt_timeout: float | None = None
    reasoning_effort: str | None = None
    prices: PriceTable = field(default_factory=PriceTable)


def get_model(name: str, options: ModelOptions | None = None) -> Model:
    """Return the model called `name`.

    Raises
    ------
    InputError : no such model; the message lists the known ones.
    """
    try:
        module, _, attribute = MODELS[name].partition(":")
    except KeyError:
        raise InputError(f"model {name!r} is unknown; choose from: {', '.join(MODELS)}") from None
    return getattr(import_module(module), attribute)()


def check_model(name: str) -> None:
    """Check a name; raise `InputError` where nobody could answer to it."""
    provider, slash, model = name.partition("/")
    if name not in MODELS and (provider == "baseline" or not (provider and slash and model)):
        raise InputError(f"model {name!r} is unknown; choose provider/name, or one of: {', '.join(MODELS)}")
