"""The second floor: the recipe that each subtask names is the best it has, and earns little."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from statistics import fmean

import orjson
import pytest
from tests.registry import SUBTASKS

from finskillbench.edition import Edition
from finskillbench.episode import Profile
from finskillbench.harness.conditions import Condition, mount
from finskillbench.harness.episode_state import EpisodeSpec, Resources
from finskillbench.harness.loop import run_episode
from finskillbench.harness.programs.program import Heuristic, heuristic_answer
from finskillbench.harness.prompts.compose import task_prompt

FITTED = [subtask for subtask in SUBTASKS if subtask.baselines.heuristic]
EPISODES = 40
DERIVED = {"normalization": {"the oldest figure of every metric"}}
"""Recipes on derived figures, which `get_task_data` does not hand out and the program therefore cannot follow."""


@pytest.mark.parametrize("subtask", FITTED, ids=lambda subtask: subtask.name)
def test_the_fitted_recipe_is_about_the_best_on_another_seed_too_and_earns_little(subtask, edition: Edition) -> None:
    earned: dict[str, list[float]] = defaultdict(list)
    for episode in edition.episodes([subtask.name])[:EPISODES]:
        task_input, truth = edition.full_input(episode), edition.truth(episode.task_id)
        for name, answer in subtask.examples.exploits(task_input).items():
            plain = orjson.loads(orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY))
            earned[name].append(subtask.scorers[Profile.CERTIFIED](plain, truth, task_input).value)
    means = {name: fmean(scores) for name, scores in earned.items()}
    assert max(means.values()) <= 0.25
    followed = [mean for name, mean in means.items() if name not in DERIVED.get(subtask.name, ())]
    assert means[subtask.baselines.heuristic] >= max(followed) - 0.05


@pytest.mark.parametrize("subtask", FITTED, ids=lambda subtask: subtask.name)
def test_the_program_answers_from_what_tools_hand_out(subtask, edition: Edition) -> None:
    episode = edition.episodes([subtask.name])[0]
    task_input = edition.full_input(episode)
    prompt = task_prompt(episode, subtask.answer)
    arm = mount(Condition.NO_SKILL, {}, {})
    around = Resources(filings=edition.filings)
    trace = asyncio.run(run_episode(Heuristic(), EpisodeSpec(episode, prompt, lambda: task_input, arm), around))
    assert trace.ended == "submitted"
    assert trace.answer is not None
    wanted = orjson.loads(orjson.dumps(heuristic_answer(subtask, task_input)))
    assert orjson.loads(trace.answer) == wanted != {}


def test_every_subtask_of_the_headline_has_a_second_floor() -> None:
    assert not [subtask.name for subtask in SUBTASKS if subtask.headline and not subtask.baselines.heuristic]
