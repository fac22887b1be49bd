"""The scripts of fundamental analysis in the real runner, and the reference program that follows their table."""

import asyncio
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from tests.domains.fundamental.test_package import ROOT, SUB_TASKS, payload_of, quarters, recipe_of, run

from finskillbench.domains import by_name
from finskillbench.episode import Episode, JsonObject, Prompt
from finskillbench.harness.conditions import Condition, mount
from finskillbench.harness.loop import Surroundings, run_episode
from finskillbench.harness.models import get_model
from finskillbench.harness.programs.reading import naive_answer
from finskillbench.harness.skills.loader import curated, placebo
from finskillbench.harness.skills.runner import script_runner
from finskillbench.sandbox.runner import ScriptRunner


@pytest.fixture
def task() -> JsonObject:
    return quarters()


@pytest.fixture(scope="module")
def warm() -> Iterator[ScriptRunner]:
    """A runner as the harness starts it."""
    with script_runner() as runner:
        yield runner


@pytest.mark.parametrize("sub_task", SUB_TASKS)
def test_the_runner_returns_what_the_script_returns(sub_task: str, task: JsonObject, warm: ScriptRunner) -> None:
    payload = json.dumps(payload_of(sub_task, task)).encode()
    result = asyncio.run(warm.run(ROOT / recipe_of(sub_task).script, payload))
    assert result.error is None
    assert result.output == run(sub_task, task)


def solved(sub_task: str, task: JsonObject, condition: Condition, warm: ScriptRunner, scratch: Path) -> JsonObject:
    """What `baseline/reference` submits, through the real loop, tools and runner."""
    episode = Episode(
        task_id=f"{sub_task}_test",
        skill="fundamental_analysis",
        sub_task=sub_task,
        as_of_date=date(2024, 5, 1),
        difficulty="medium",
        input=task,
        prompt=Prompt("Do it.", "Respond with a JSON object."),
        metadata={},
    )
    trace = asyncio.run(
        run_episode(
            get_model("baseline/reference"),
            episode,
            f"Subtask: {sub_task}\nDo it.",
            lambda: task,
            mount(condition, curated(), placebo()),
            Surroundings(runner=warm, scratch_root=scratch),
        )
    )
    assert trace.ended == "submitted"
    assert trace.answer is not None
    return json.loads(trace.answer)


@pytest.mark.parametrize("sub_task", SUB_TASKS)
def test_the_reference_program_follows_the_table(
    sub_task: str, task: JsonObject, warm: ScriptRunner, tmp_path: Path
) -> None:
    answer = solved(sub_task, task, Condition.CURATED, warm, tmp_path)
    assert answer == {key: run(sub_task, task)[key] for key in by_name(sub_task).answer.model_fields}


@pytest.mark.parametrize("condition", [Condition.NO_SKILL, Condition.SELF_GENERATED])
@pytest.mark.parametrize("sub_task", SUB_TASKS)
def test_without_the_package_it_answers_by_hand(
    sub_task: str, condition: Condition, task: JsonObject, warm: ScriptRunner, tmp_path: Path
) -> None:
    assert solved(sub_task, task, condition, warm, tmp_path) == naive_answer(by_name(sub_task).by_hand, task)
