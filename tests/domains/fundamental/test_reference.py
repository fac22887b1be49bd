"""The scripts of fundamental analysis in the real runner, and the reference program that follows their table."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.domains.fundamental.test_package import PACKAGE, ROOT, SUB_TASKS, quarters, recipe_of, run
from tests.domains.package import solved

from finskillbench.domains import subtask_named
from finskillbench.episode import JsonObject
from finskillbench.harness.conditions import Condition
from finskillbench.harness.programs.program import naive_answer
from finskillbench.sandbox.runner import ScriptRunner


@pytest.fixture
def task() -> JsonObject:
    return quarters()


@pytest.mark.parametrize("sub_task", SUB_TASKS)
def test_the_runner_returns_what_the_script_returns(sub_task: str, task: JsonObject, warm: ScriptRunner) -> None:
    payload = json.dumps(PACKAGE.payload_of(sub_task, task)).encode()
    result = asyncio.run(warm.run(ROOT / recipe_of(sub_task).script, payload))
    assert result.error is None
    assert result.output == run(sub_task, task)


@pytest.mark.parametrize("sub_task", SUB_TASKS)
def test_the_reference_program_follows_the_table(
    sub_task: str, task: JsonObject, warm: ScriptRunner, tmp_path: Path
) -> None:
    answer = solved(sub_task, task, Condition.CURATED, warm, tmp_path)
    assert answer == {key: run(sub_task, task)[key] for key in subtask_named(sub_task).answer.model_fields}


@pytest.mark.parametrize("condition", [Condition.NO_SKILL, Condition.SELF_GENERATED])
@pytest.mark.parametrize("sub_task", SUB_TASKS)
def test_without_the_package_it_answers_by_hand(
    sub_task: str, condition: Condition, task: JsonObject, warm: ScriptRunner, tmp_path: Path
) -> None:
    assert solved(sub_task, task, condition, warm, tmp_path) == naive_answer(
        subtask_named(sub_task).baselines.no_skill, task
    )
