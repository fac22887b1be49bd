"""Environments: the loop's turns and messages, limits, errors as observations, and the end of abandoned episodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from finskillbench.episode import Episode, Reward, Status
from finskillbench.errors import InputError
from finskillbench.harness.allowance import MAX_TURNS, Allowance
from finskillbench.harness.conditions import Condition, Mount
from finskillbench.harness.environment import Environment, OpenTask
from finskillbench.harness.episode_state import EpisodeSpec, Resources
from finskillbench.harness.model import ToolCall, Turn
from finskillbench.harness.tools.contracts import SUBMIT_ANSWER
from finskillbench.harness.trace import Trace

READ = ToolCall("r", "get_task_data", '{"field": "objective"}')
UNKNOWN = ToolCall("u", "nonsense", "{}")
SUBMIT = ToolCall("s", "submit_answer", '{"answer": "{}"}')
PROMPT = "Subtask: unconstrained_optimization\nSolve it."


class Source:
    """One task, whose reward tells how the episode ended."""

    def __init__(self, spec: EpisodeSpec) -> None:
        self._spec, self.traces = spec, list[Trace]()

    def task_of(self, seed: int) -> str:
        return "task"

    def open(self, task: str, allowance: Allowance) -> OpenTask:
        if task != "task":
            raise InputError(f"there is no task {task}")
        return OpenTask(replace(self._spec, allowance=allowance), Resources(), self._judge)

    def _judge(self, trace: Trace) -> Reward:
        self.traces.append(trace)
        return Reward(0.0, -1.0 if trace.answer is None else 0.5, {}, Status.SCORED)


@pytest.fixture
def source(episode: Episode, full_input: dict[str, Any], mounts: dict[Condition, Mount]) -> Source:
    data = {**episode.input, **full_input}
    return Source(EpisodeSpec(episode, PROMPT, lambda: data, mounts[Condition.NO_SKILL]))


def played(source: Source, play: Callable[[Environment], Awaitable[Any]], **options: Any) -> Any:
    async def go() -> Any:
        return await play(Environment(source, **options))

    return asyncio.run(go())


def test_turns_and_messages_are_those_of_the_loop(source: Source, scripted: Any, play: Callable[..., Trace]) -> None:
    turns = [(READ, UNKNOWN), (), (SUBMIT, READ)]
    expected = play(scripted([Turn("text", calls) for calls in turns]), base_prompt=PROMPT)

    async def steps(environment: Environment) -> Trace | None:
        seen = list((await environment.reset(0)).messages)
        for calls in turns:
            seen += (await environment.step(*calls, text="text")).messages
        assert environment.trace is not None
        assert seen == [message for message in environment.trace.messages if message.role != "assistant"]
        return environment.trace

    found = played(source, steps)
    assert (found.messages, found.ended, found.answer, found.incidents, found.prompt_digest) == (
        expected.messages, expected.ended, expected.answer, expected.incidents, expected.prompt_digest
    )  # fmt: skip
    assert [record.fate for record in found.tool_calls] == [record.fate for record in expected.tool_calls]


def test_invalid_actions_are_observations(source: Source) -> None:
    async def steps(environment: Environment) -> None:
        await environment.reset("task")
        for call in (
            UNKNOWN,
            ToolCall("b", "get_task_data", "not JSON"),
            ToolCall("c", "submit_answer", '{"answer":1}'),
        ):
            seen = await environment.step(call)
            assert seen.text.startswith('{"error"')
            assert not seen.is_final

    played(source, steps)


def test_the_last_turn_offers_the_submission_alone_and_ends(source: Source) -> None:
    async def steps(environment: Environment) -> None:
        seen = await environment.reset(0)
        for _ in range(MAX_TURNS - 1):
            seen = await environment.step(READ)
        assert seen.tools == (SUBMIT_ANSWER,)
        seen = await environment.step(READ)
        assert seen.reward == Reward(0.0, -1.0, {}, Status.SCORED)
        assert (await environment.step(SUBMIT)) is seen

    played(source, steps)
    assert [trace.ended for trace in source.traces] == ["max_turns"]


def test_a_submission_is_judged_once(source: Source) -> None:
    async def steps(environment: Environment) -> None:
        await environment.reset(0)
        assert (await environment.submit({"weights": {}})) == environment.reward
        environment.close()
        await environment.step(SUBMIT)

    played(source, steps)
    assert [trace.answer for trace in source.traces] == ['{"weights":{}}']


@pytest.mark.parametrize("how", ["reset", "close", "time", "time after a turn"])
def test_an_abandoned_episode_ends_without_a_submission(source: Source, how: str) -> None:
    async def steps(environment: Environment) -> None:
        await environment.reset(0)
        if how == "reset":
            await environment.reset(0)
        elif how == "close":
            environment.close()
        else:
            if how == "time after a turn":
                await environment.step(READ)
            await asyncio.sleep(0.2)
            assert environment.reward is not None
            assert (await environment.step(READ)).reward == environment.reward

    played(source, steps, idle_seconds=0.05)
    assert source.traces[0].ended == ("out_of_time" if how.startswith("time") else "no_answer")


def test_what_cannot_be_opened_is_an_error(source: Source) -> None:
    async def steps(environment: Environment) -> None:
        with pytest.raises(InputError, match="call reset first"):
            await environment.step(READ)
        with pytest.raises(InputError, match="no task other"):
            await environment.reset("other")

    played(source, steps)
