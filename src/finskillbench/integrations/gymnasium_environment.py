"""Gymnasium environment for programs: actions are calls of tools as JSON text, observations are texts."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
from typing import Any, ClassVar

import gymnasium

from finskillbench.harness.environment import Observation, TaskSource
from finskillbench.harness.model import ToolCall
from finskillbench.integrations.environments import BlockingEnvironment


class AnyText(gymnasium.Space[str]):
    """The space of all texts."""

    def __init__(self) -> None:
        super().__init__((), str)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return a call without effect."""
        return json.dumps({"tool": "get_task_data", "arguments": {"field": ""}})

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)


class GymnasiumEnvironment(gymnasium.Env[str, str]):
    """An environment over a source of tasks.

    An action is `{"tool": ..., "arguments": {...}}` as JSON text; anything else is a turn without a call. The reward is
    0 before the end, then raw and unfloored. `info` holds the tools, and at the end `score` and `parts`.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self, source: TaskSource) -> None:
        self.action_space = self.observation_space = AnyText()
        self._environment = BlockingEnvironment(source)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin the episode of a seed, or of `options["task"]`; without either a random one."""
        super().reset(seed=seed)
        chosen = int(self.np_random.integers(2**31)) if seed is None else seed
        return _seen(self._environment.reset((options or {}).get("task", chosen)))

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        try:
            call = json.loads(action)
            made = [ToolCall("1", str(call["tool"]), json.dumps(call.get("arguments", {})))]
        except (ValueError, TypeError, KeyError, AttributeError):
            made = []
        seen = self._environment.step(*made, text="" if made else action)
        text, info = _seen(seen)
        return text, 0.0 if seen.reward is None else seen.reward.raw, seen.is_final, False, info

    def close(self) -> None:
        self._environment.close()


def _seen(observation: Observation) -> tuple[str, dict[str, Any]]:
    info: dict[str, Any] = {"tools": [tool.name for tool in observation.tools]}
    if observation.reward is not None:
        info |= {"score": observation.reward.score, "parts": dict(observation.reward.parts)}
    return observation.text, info
