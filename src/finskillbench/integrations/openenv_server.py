"""Episodes as an OpenEnv server.

app = application(EditionTasks(load_edition("editions/seven"), "curated"))   # then: uvicorn MODULE:app
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment as OpenEnvironment
from openenv.core.env_server.types import Action, State
from openenv.core.env_server.types import Observation as OpenObservation
from pydantic import Field

from finskillbench.harness.environment import Environment, Observation, TaskSource
from finskillbench.harness.model import ToolCall

SESSIONS = 512
"""Most sessions of a server, by default."""


class CallAction(Action):
    """A call of a tool."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class TextObservation(OpenObservation):
    """Observation as text; `reward` is raw and unfloored, `metadata` holds score and parts at the end."""

    text: str
    tools: list[dict[str, Any]] = Field(default_factory=list)


class EpisodeServerEnvironment(OpenEnvironment[CallAction, TextObservation, State]):
    """One session of a server over a source of tasks."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, source: TaskSource) -> None:
        super().__init__()
        self._environment, self._state = Environment(source), State()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any) -> TextObservation:
        raise NotImplementedError("use reset_async")

    def step(self, action: CallAction, timeout_s: float | None = None, **kwargs: Any) -> TextObservation:
        raise NotImplementedError("use step_async")

    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, task: str | None = None, **kwargs: Any
    ) -> TextObservation:
        """Begin the episode of a task, or of a seed."""
        self._state = State(episode_id=episode_id)
        return _seen(await self._environment.reset(task if task is not None else seed or 0))

    async def step_async(self, action: CallAction, timeout_s: float | None = None, **kwargs: Any) -> TextObservation:
        self._state.step_count += 1
        return _seen(await self._environment.step(ToolCall("1", action.tool, json.dumps(action.arguments))))

    @property
    def state(self) -> State:
        return self._state

    def close(self) -> None:
        self._environment.close()


def application(source: TaskSource, sessions: int = SESSIONS) -> FastAPI:
    """Return the web application of a server over a source of tasks."""
    return create_fastapi_app(
        lambda: EpisodeServerEnvironment(source),
        CallAction,
        TextObservation,
        max_concurrent_envs=sessions,
        env_name="finskillbench",
    )


def _seen(observation: Observation) -> TextObservation:
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        for tool in observation.tools
    ]
    reward = observation.reward
    found: dict[str, Any] = {} if reward is None else {"score": reward.score, "parts": dict(reward.parts)}
    return TextObservation(
        text=observation.text,
        tools=tools,
        done=reward is not None,
        reward=None if reward is None else reward.raw,
        metadata=found,
    )
