"""Models and agents on their way to other processes: by name, or pickled; no key travels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias, cast

from finskillbench.errors import InputError
from finskillbench.harness.models import BASELINES, ModelConfig, ModelOptions, Participant, get_participant
from finskillbench.harness.providers.prices import PriceTable
from finskillbench.redaction import redactor_of_process, without_keys

Sendable: TypeAlias = tuple[str, ModelOptions] | bytes
"""A model or an agent by name, which each process makes with its own keys, or a pickled object."""


def serializable(given: ModelConfig, entrant: Participant) -> Sendable:
    """Return a model as it is sent to workers; raises `InputError` if it cannot be sent or holds a key."""
    if isinstance(given.model, str) or entrant.name in BASELINES:
        name, options = given.model if isinstance(given.model, str) else entrant.name, given.options or ModelOptions()
        if options.response_cache is not None and name not in BASELINES:
            raise InputError("--response-cache is a file of one process; leave it out under --cluster")
        text = f"{name} {replace(options, prices=PriceTable({}, ''))!r}"
        if without_keys(redactor_of_process()(text)) != text:
            raise InputError("a model's name or an option of it holds a key; set keys in every worker's environment")
        return name, replace(options, model_args=dict(options.model_args))
    import cloudpickle

    remedy = "give it by where it is defined, as package.module:name, and each worker makes its own"
    try:
        data = cast("bytes", cast("Any", cloudpickle).dumps(entrant))
    except Exception as error:  # pickling runs code of the object's author, which may raise anything
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{entrant.name} cannot be sent to workers ({reason}); {remedy}") from error
    if redactor_of_process()(text := data.decode("latin-1")) != text:
        raise InputError(f"{entrant.name} holds a key of the environment, which never leaves this process; {remedy}")
    return data


def deserialized(sent: Sendable) -> Participant:
    """Make a model in this process; raises `InputError` if its package or its key is missing."""
    if isinstance(sent, tuple):
        return get_participant(*sent)
    import cloudpickle

    try:
        return cast("Any", cloudpickle).loads(sent)
    except Exception as error:  # importing a module of the object's author may raise anything
        remedy = "install its package on every worker"
        raise InputError(f"a model given as an object cannot be made here ({error}); {remedy}") from error
