"""Episodes as a taskset of verifiers 0.4: `vf-eval finskillbench-verifiers --env.agent.runtime.type subprocess -n 20`.

Training seeds give tasks without end, an edition its own tasks. One process serves the tools of all rollouts. An
episode begins when its tools are listed, and ends with a submission, at its limits, or after a time without a call. A
call counts as a turn. The harness is `null` by default, since tools of other harnesses reach the files of their
machine; it offers the tools of the episode alone.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import verifiers.v1 as vf
from mcp.types import CallToolResult, TextContent, Tool
from pydantic import field_validator
from pydantic_config import BaseConfig
from verifiers.v1.harnesses.null import NullHarness

from finskillbench.edition import load_edition
from finskillbench.episode import LEAST_REWARD, PAPER_SUITE, Reward, Status
from finskillbench.errors import InputError
from finskillbench.harness.allowance import MAX_TURNS, Allowance
from finskillbench.harness.conditions import Condition, parse_condition
from finskillbench.harness.environment import IDLE_SECONDS, Environment
from finskillbench.harness.model import ToolCall
from finskillbench.integrations.environments import EPISODES, BlockingEnvironment, EditionTasks, SeedTasks
from finskillbench.splits import Split

__all__ = ["FinSkillBenchTaskset", "NullHarness"]


class TaskOptions(BaseConfig):
    """Choice of tasks and their limits, which taskset and tools share."""

    condition: str = Condition.NO_SKILL
    """Condition: the skills that an episode offers."""
    edition: Path | None = None
    """Folder of an edition whose tasks are played once each; unset: editions of seeds, without end."""
    split: Split | None = None
    """Split of the tasks; unset: train, or all tasks of an edition."""
    suite: str = PAPER_SUITE
    """Suite of the editions of seeds."""
    subtasks: list[str] | None = None
    """Subtasks; unset: all."""
    episodes: int = EPISODES
    """Most episodes of each subtask in the edition of a seed."""
    turns: int = MAX_TURNS
    """Most turns of an episode, where its subtask sets no limit."""
    idle_seconds: float = IDLE_SECONDS
    """Seconds without a call after which an episode ends."""

    @field_validator("condition")
    @classmethod
    def _known(cls, condition: str) -> str:
        try:
            return parse_condition(condition)
        except InputError as error:
            raise ValueError(str(error)) from None

    @field_validator("edition")
    @classmethod
    def _absolute(cls, edition: Path | None) -> Path | None:
        return None if edition is None else edition.resolve()

    def source(self) -> EditionTasks | SeedTasks:
        """Return the source of the tasks; raises `InputError` for unknown names, `EditionError` for a bad edition."""
        if self.edition is not None:
            edition = load_edition(self.edition)
            return EditionTasks(edition, self.condition, subtasks=self.subtasks, split=self.split)
        split = self.split or Split.TRAIN
        return SeedTasks(self.condition, split, suite=self.suite, subtasks=self.subtasks, episodes=self.episodes)


class FinSkillBenchConfig(vf.TasksetConfig, TaskOptions):
    """Configuration of the taskset (`--env.taskset.*`)."""


class ToolsConfig(vf.SharedToolsetConfig, TaskOptions):
    """Configuration of the process that serves the tools."""


class RolloutState(vf.State):
    """State of one rollout that task and tools share; `reward` is set once the episode has ended."""

    session: str = ""
    task: str = ""
    begun: bool = False
    ended: bool = False
    reward: Reward = Reward(0.0, LEAST_REWARD, {}, Status.INCOMPLETE_SUBMISSION)


class Session(NamedTuple):
    """Environment of one rollout, and the tools it began with; calls run one at a time."""

    environment: Environment
    tools: list[Tool]
    lock: asyncio.Lock


class EpisodeTools(vf.Toolset[ToolsConfig, RolloutState]):
    """Tools of all rollouts, with one environment each."""

    TOOL_PREFIX = None

    async def setup(self) -> None:
        self._source = self.config.source()
        self._exit_stack.callback(self._source.close)
        self.sessions: dict[str, Session] = {}

    def register(self, mcp: Any) -> None:
        """Replace the fixed list of tools, since episodes offer different ones."""
        mcp.list_tools = self._with_state(self.list_tools)
        mcp.call_tool = self._with_state(self.call_tool)

    async def list_tools(self) -> list[Tool]:
        session = await self._session()
        return [] if session is None else session.tools

    async def call_tool(self, name: str, arguments: dict[str, Any], context: object = None) -> CallToolResult:
        text, session = "", await self._session()
        if session is not None:
            async with session.lock:
                call = ToolCall("call", name, json.dumps(arguments, ensure_ascii=False))
                seen = await session.environment.step(call)
            text = seen.text
            if seen.reward is not None:
                self.state.ended, self.state.reward = True, seen.reward
                self.sessions.pop(self.state.session, None)
        text = text or '{"error": "the episode has ended"}'
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=text.startswith('{"error"'))

    async def _session(self) -> Session | None:
        """Return the session of the calling rollout, begun at its first request; None after its end."""
        state = self.state
        if not state.begun:
            self.sessions = {key: each for key, each in self.sessions.items() if each.environment.trace is None}
            environment = Environment(self._source, Allowance(self.config.turns), self.config.idle_seconds)
            offered = (await environment.reset(state.task)).tools
            tools = [Tool(name=t.name, description=t.description, input_schema=dict(t.parameters)) for t in offered]
            self.sessions[state.session] = Session(environment, tools, asyncio.Lock())
            state.begun = True
        return self.sessions.get(state.session)


class EpisodeTask(vf.Task[vf.TaskData, RolloutState, vf.TaskConfig]):
    """One episode; its reward is the score under `certified`."""

    async def setup(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        trace.state.session, trace.state.task = trace.id, self.data.id

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Keep the reward with the trace, so that `vf-replay` finds it."""
        trace.info["reward"] = asdict(trace.state.reward)

    @vf.stop
    async def ended(self, trace: vf.Trace) -> bool:
        return trace.state.ended

    @vf.reward
    async def certified(self, trace: vf.Trace) -> float:
        return trace.info["reward"]["score"]

    @vf.metric
    async def reward_parts(self, trace: vf.Trace) -> dict[str, float]:
        """Return the raw reward, 1 for the status and 0 for others, and the named parts of the score."""
        reward = trace.info["reward"]
        parts = {f"part_{name}": value for name, value in reward["parts"].items()}
        return {"raw": reward["raw"], **{f"status_{each}": float(each == reward["status"]) for each in Status}, **parts}


class FinSkillBenchTaskset(vf.Taskset[EpisodeTask, FinSkillBenchConfig]):
    """Tasks of a split or an edition under one condition."""

    def __init__(self, config: FinSkillBenchConfig) -> None:
        super().__init__(config)
        self.INFINITE = config.edition is None

    def load(self) -> Iterator[EpisodeTask]:
        source = self.config.source()
        environment = BlockingEnvironment(source, Allowance(self.config.turns))
        try:
            for task in source.tasks if isinstance(source, EditionTasks) else map(source.task_of, count()):
                system, prompt = environment.reset(task).messages
                texts = {"prompt": prompt.content, "system_prompt": system.content}
                yield EpisodeTask(vf.TaskData(id=task, name=task, **texts), self.config.task)
        finally:
            environment.close()
            source.close()

    @classmethod
    def toolsets(cls, config: FinSkillBenchConfig) -> list[vf.Toolset]:
        return [EpisodeTools(ToolsConfig(**{name: getattr(config, name) for name in TaskOptions.model_fields}))]


if __name__ == "__main__":
    EpisodeTools.run()
