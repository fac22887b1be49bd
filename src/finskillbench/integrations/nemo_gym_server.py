"""Resources server of NeMo Gym over an edition, and the rows of its data set.

NeMo Gym starts the server with a configuration that names `edition` and `condition`, as one worker. A row holds prompt
and tools in the Responses format, and the task, which `/seed_session` receives.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from nemo_gym.server_utils import SESSION_ID_KEY
from pydantic import ConfigDict, PrivateAttr

from finskillbench.edition import load_edition
from finskillbench.harness.conditions import Condition
from finskillbench.harness.environment import Environment
from finskillbench.harness.model import ToolCall
from finskillbench.integrations.environments import BlockingEnvironment, EditionTasks


class ServerConfig(BaseResourcesServerConfig):
    """Configuration of the server: folder of the edition, and condition."""

    edition: Path
    condition: str = Condition.NO_SKILL


class TaskRequest(BaseSeedSessionRequest):
    """Row of the data set as far as a session needs it."""

    task: str


class RewardResponse(BaseVerifyResponse):
    """Raw reward, with the benchmark's score and the parts."""

    model_config = ConfigDict(extra="allow")


class FinSkillBenchServer(SimpleResourcesServer):
    """Server of episodes; a session is one episode, and each call of a tool one turn."""

    config: ServerConfig
    _source: EditionTasks = PrivateAttr()
    _sessions: dict[str, Environment] = PrivateAttr(default_factory=dict)

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        self._source = EditionTasks(load_edition(self.config.edition), self.config.condition)

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/{tool}")(self.call)
        return app

    async def seed_session(self, request: Request, body: TaskRequest) -> BaseSeedSessionResponse:
        """Begin the episode of a row."""
        environment = self._sessions[request.session[SESSION_ID_KEY]] = Environment(self._source)
        await environment.reset(body.task)
        return BaseSeedSessionResponse()

    async def call(self, tool: str, request: Request) -> Response:
        """Play one turn with a call of a tool."""
        call = ToolCall("1", tool, (await request.body()).decode())
        return Response((await self._sessions[request.session[SESSION_ID_KEY]].step(call)).text)

    async def verify(self, request: Request, body: BaseVerifyRequest) -> RewardResponse:
        """End the episode and return its raw reward."""
        environment = self._sessions.pop(request.session[SESSION_ID_KEY])
        environment.close()
        reward = environment.reward
        assert reward is not None
        return RewardResponse(**body.model_dump(), reward=reward.raw, score=reward.score, parts=dict(reward.parts))


def rows(source: EditionTasks) -> Iterator[dict[str, Any]]:
    """Yield the row of each task of a source, as JSON values."""
    environment = BlockingEnvironment(source)
    for task in source.tasks:
        seen = environment.reset(task)
        tools = [
            {"type": "function", "strict": False, "parameters": dict(one.parameters)}
            | {"name": one.name, "description": one.description}
            for one in seen.tools
        ]
        messages = [{"role": message.role, "content": message.content} for message in seen.messages]
        request = {"input": messages, "tools": tools, "parallel_tool_calls": False}
        yield json.loads(json.dumps({"responses_create_params": request, "task": task}))
    environment.close()
