"""Environment class for the `environment_factory` of TRL's `GRPOTrainer`, which this module does not import.

    source = SeedTasks("curated", subtasks=["stress_testing"])
    factory = environment_class(source, offered_tools("curated", ["stress_testing"]))
    GRPOTrainer(model, args=..., train_dataset=Dataset.from_list(rows), environment_factory=factory)

A row of the data set has an empty `prompt` and a `seed` or a `task`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from typing import Any

from finskillbench.harness.environment import TaskSource
from finskillbench.harness.model import ToolCall, ToolSpec
from finskillbench.integrations.environments import BlockingEnvironment

_TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list[str], "object": dict[str, Any]}
"""Python types of the JSON types in tools' schemas."""


class TrainingEnvironment:
    """An environment whose further public methods are the tools; `environment_class` adds them."""

    _source: TaskSource
    _raw = True

    def __init__(self) -> None:
        self._environment = BlockingEnvironment(self._source)

    def reset(self, seed: int = 0, task: str | None = None, **row: Any) -> str:
        """Begin the episode of a row; return system prompt and task."""
        return self._environment.reset(seed if task is None else task).text

    def get_reward(self) -> float:
        """Return the reward; an unfinished episode ends without a submission."""
        self._environment.close()
        reward = self._environment.reward
        assert reward is not None
        return reward.raw if self._raw else reward.score

    def _call(self, name: str, arguments: dict[str, Any]) -> str:
        stated = {key: value for key, value in arguments.items() if value is not None}
        return self._environment.step(ToolCall("1", name, json.dumps(stated))).text


def environment_class(source: TaskSource, tools: Iterable[ToolSpec], *, raw: bool = True) -> type[TrainingEnvironment]:
    """Return a class without arguments whose methods are tools of `offered_tools`, with types and descriptions.

    raw : rewards are raw and unfloored; else the benchmark's score.
    """
    methods = {tool.name: _method(tool) for tool in tools}
    return type("FinSkillBench", (TrainingEnvironment,), {"_source": source, "_raw": raw, **methods})


def _method(tool: ToolSpec) -> Callable[..., str]:
    def call(self: TrainingEnvironment, *args: Any, **arguments: Any) -> str:
        return self._call(tool.name, {**dict(zip(properties, args, strict=False)), **arguments})  # pyright: ignore[reportPrivateUsage]

    properties: dict[str, Any] = tool.parameters["properties"]
    required = set(tool.parameters["required"])
    types = {name: _TYPES[each["type"]] for name, each in properties.items()}
    empty = inspect.Parameter.empty
    call.__name__ = call.__qualname__ = tool.name
    call.__annotations__ = {name: kind if name in required else kind | None for name, kind in types.items()}
    call.__annotations__["return"] = str
    call.__signature__ = inspect.Signature(  # pyright: ignore[reportFunctionMemberAccess]
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        + [
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=empty if name in required else None,
                annotation=call.__annotations__[name],
            )
            for name in sorted(properties, key=lambda each: each not in required)
        ]
    )
    lines = [f"    {name}: {properties[name].get('description', name)}" for name in properties]
    call.__doc__ = "\n".join([tool.description, "", "Args:", *lines])
    return call
