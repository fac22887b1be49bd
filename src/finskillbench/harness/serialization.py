"""Serialize models and agents for other processes, by name or pickled; keys are never sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias, cast

from finskillbench.errors import InputError
from finskillbench.harness.models import BASELINES, ModelConfig, ModelOptions, Participant, get_participant
from finskillbench.harness.providers.prices import PriceTable
from finskillbench.redaction import redactor_of_process, without_keys

Sendable: TypeAlias = tuple[str, ModelOptions] | bytes
"""A name with options, constructed by each process with its own keys, or a pickled object."""


def serialize(config: ModelConfig, participant: Participant) -> Sendable:
    """Return a model in a form for workers; raises `InputError` if it cannot be sent or holds a key."""
    if isinstance(config.model, str) or participant.name in BASELINES:
        name, options = (
            config.model if isinstance(config.model, str) else participant.name,
            config.options or ModelOptions(),
        )
        if options.response_cache is not None and name not in BASELINES:
            raise InputError("--response-cache works in one process only; leave it out with --cluster")
        text = f"{name} {replace(options, prices=PriceTable({}, ''))!r}"
        if without_keys(redactor_of_process()(text)) != text:
            raise InputError("a model's name or an option of it holds a key; set keys in every worker's environment")
        return name, replace(options, model_args=dict(options.model_args))
    import cloudpickle

    remedy = "pass it as package.module:name, so that each worker imports it"
    try:
        data = cast("bytes", cast("Any", cloudpickle).dumps(participant))
    except Exception as error:  # pickling runs user code, which may raise anything
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{participant.name} cannot be sent to workers ({reason}); {remedy}") from error
    if redactor_of_process()(text := data.decode("latin-1")) != text:
        raise InputError(
            f"{participant.name} holds a key of the environment, and keys are never sent to workers; {remedy}"
        )
    return data


def deserialize(sent: Sendable) -> Participant:
    """Construct a model in this process; raises `InputError` if its package or its key is missing."""
    if isinstance(sent, tuple):
        return get_participant(*sent)
    import cloudpickle

    try:
        return cast("Any", cloudpickle).loads(sent)
    except Exception as error:  # importing a user's module may raise anything
        remedy = "install its package on every worker"
        raise InputError(f"a model passed as an object cannot be loaded by this worker ({error}); {remedy}") from error
