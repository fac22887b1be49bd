"""The same actions earn the same rewards through each adapter, in the environments of the real packages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.integrations.training.actions import actions_of

from finskillbench.edition import Edition
from finskillbench.episode import LEAST_REWARD
from finskillbench.harness.environment import Environment
from finskillbench.harness.model import ToolCall
from finskillbench.integrations.environments import EditionTasks


@pytest.fixture(scope="session")
def ours(training_edition: Edition) -> list[tuple[float, float]]:
    """Score and raw reward of each task through our environment."""
    source = EditionTasks(training_edition)

    async def play(seed: int) -> tuple[float, float]:
        environment = Environment(source)
        await environment.reset(seed)
        for tool, arguments in actions_of(source, seed):
            await environment.step(ToolCall("1", tool, json.dumps(arguments)))
        assert environment.reward is not None
        return environment.reward.score, environment.reward.raw

    async def play_all() -> list[tuple[float, float]]:
        return [await play(seed) for seed in range(len(source.tasks))]

    return asyncio.run(play_all())


def test_rewards_differ_by_the_quality_of_answers(ours: list[tuple[float, float]]) -> None:
    scores = [score for score, _ in ours]
    assert max(scores) == 1.0
    assert min(raw for _, raw in ours) == LEAST_REWARD
    assert any(0.0 < score < 1.0 for score in scores)


@pytest.mark.parametrize(
    ("package", "script"),
    [("openenv", "openenv_plays.py"), ("openenv", "gymnasium_plays.py"), ("nemo-gym", "nemo_gym_plays.py")],
)
def test_parity(foreign: Callable[[str, str], Any], ours: list[tuple[float, float]], package: str, script: str) -> None:
    assert [tuple(each) for each in foreign(package, script)] == ours


@pytest.mark.slow
def test_grpo_takes_two_steps_and_gets_rewards_that_differ(
    foreign: Callable[[str, str], Any], ours: list[tuple[float, float]]
) -> None:
    found = foreign("trl", "trl_steps.py")
    assert found["steps"] == 2
    assert len(set(found["rewards"])) > 1
    assert [tuple(each) for each in found["played"]] == ours
