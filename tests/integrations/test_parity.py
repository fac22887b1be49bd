"""Both ways to run an episode, ours and `inspect eval`, end in the same statuses and scores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog, read_eval_log
from tests.harness.programs.faulty import Faulty
from tests.integrations.reading import members, numbers, written_numbers
from tests.registry import SUBTASKS
from tests.sampling import THOROUGH, sampled, thorough

from finskillbench.edition import Edition
from finskillbench.harness.allowance import DEFAULT_ALLOWANCE, Remaining
from finskillbench.harness.models import BASELINES
from finskillbench.harness.prompts.compose import remaining_text
from finskillbench.harness.tools.contracts import GET_TASK_DATA, READ_TABLE, budget_of
from finskillbench.integrations.logs import export_run
from finskillbench.integrations.tasks import EVERYTHING, TASKS
from finskillbench.runs.execute.run import RunResult, run

MODELS = sampled(("baseline/reference", "baseline/trivial", "baseline/nop", Faulty.name), 3)
CONDITIONS = ("no_skill", "curated") if THOROUGH else ("curated",)
LIMIT = 2 if THOROUGH else 1


@pytest.fixture(scope="module", autouse=True)
def faulty() -> Iterator[None]:
    """Both ways know a model that does everything wrong."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BASELINES, Faulty.name, Faulty)
        yield


@pytest.fixture(scope="module")
def ours(synthetic_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    out = tmp_path_factory.mktemp("parity") / "run"
    return run(synthetic_edition, MODELS, CONDITIONS, limit=LIMIT, out=out)


@pytest.fixture(scope="module")
def theirs(synthetic_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> list[EvalLog]:
    folder = tmp_path_factory.mktemp("logs")
    path = str(synthetic_edition.path)
    tasks = [TASKS[EVERYTHING](condition=condition, edition=path, limit=LIMIT) for condition in CONDITIONS]
    models = [f"finskillbench/{name.replace('/', '-')}" for name in MODELS]
    logs = inspect_eval(tasks, model=models, log_dir=str(folder), display="none", log_realtime=False)
    assert sorted(Path(log.location).parent for log in logs) == [folder] * len(MODELS) * len(CONDITIONS)
    return logs


def _outcomes(log: EvalLog) -> Iterator[tuple[tuple[str, str, str, int], Any]]:
    model = log.eval.model.removeprefix("finskillbench/").replace("-", "/", 1)
    for sample in log.samples or ():
        assert sample.error is None
        assert sample.scores is not None
        score = sample.scores["verdict"]
        assert score.metadata is not None
        key = (model, log.eval.task_args["condition"], str(sample.id), sample.epoch - 1)
        yield key, (score.metadata["status"], score.as_dict())


def _judged(outcomes: dict[Any, Any]) -> dict[Any, Any]:
    """Outcomes without the profiles that a subtask lacks: a table has null there, and Inspect NaN."""
    return {
        key: (status, {name: score for name, score in scores.items() if score is not None and not math.isnan(score)})
        for key, (status, scores) in outcomes.items()
    }


@thorough
def test_statuses_and_scores_are_the_same(ours: RunResult, theirs: list[EvalLog]) -> None:
    expected = {
        (row["model"], row["condition"], row["task_id"], row["run_idx"]): (row["status"], row["scores"])
        for row in ours.rows.iter_rows(named=True)
    }
    assert len(expected) == len(MODELS) * len(CONDITIONS) * LIMIT * len(SUBTASKS)
    assert {status for status, _ in expected.values()} >= {"scored", "max_turns_exhausted"}
    found = dict(outcome for log in theirs for outcome in _outcomes(log))
    assert _judged(found) == _judged(expected)


def _told(sub_task: str) -> str:
    """What our loop says of a budget at the end of the task, which an exported run keeps as it was sent."""
    allowance = DEFAULT_ALLOWANCE.within(budget_of(sub_task))
    return f"\n\n{remaining_text(Remaining(allowance), [GET_TASK_DATA.name, READ_TABLE], allowance.data_calls)}"


@thorough
def test_so_are_the_conversations(ours: RunResult, theirs: list[EvalLog], tmp_path: Path) -> None:
    """What `inspect view` shows of an exported run is what it shows of the same episodes under `inspect eval`."""
    exported = [read_eval_log(str(path)) for path in export_run(ours.folder, tmp_path / "logs")]
    ours_by_arm = {(log.eval.model, log.eval.task_args["condition"]): log for log in exported}
    for log in theirs:
        model = log.eval.model.removeprefix("finskillbench/").replace("-", "/", 1)
        twin = ours_by_arm[model, log.eval.task_args["condition"]]
        assert log.eval.task == twin.eval.task
        assert twin.results is not None
        assert log.results is not None
        means = [
            {
                f"{score.name} {name}": metric.value
                for score in each.results.scores
                for name, metric in score.metrics.items()
            }
            for each in (log, twin)
        ]
        assert list(means[0]) == list(means[1])
        assert means[0] == pytest.approx(means[1])
        twins = {sample.id: sample for sample in twin.samples or ()}
        for sample in log.samples or ():
            same = twins[sample.id]
            assert [(m.role, m.text) for m in sample.messages] == [(m.role, m.text) for m in same.messages]
            assert sample.input + _told(sample.metadata["sub_task"]) == same.input
            for key in ("mount", "prompt", "incidents", "skills_loaded", "scripts_run", "ended"):
                assert sample.metadata[key] == same.metadata[key], key


def _said(logs: list[EvalLog], task_id: str) -> set[str]:
    """Numbers in the tool calls of those agents that do not compute the labels; one may be right by chance."""
    samples = [each for log in logs if "reference" not in log.eval.model for each in log.samples or ()]
    messages = [message for each in samples if each.id == task_id for message in each.messages]
    calls = [call for message in messages if message.role == "assistant" for call in message.tool_calls or ()]
    return set().union(*(written_numbers(str(call.arguments)) for call in calls), set())


@thorough
def test_no_log_holds_the_truth(
    ours: RunResult, theirs: list[EvalLog], synthetic_edition: Edition, tmp_path: Path
) -> None:
    """Numbers of the labels that the agents neither saw nor said stand nowhere in the bytes of a log."""
    export_run(ours.folder, tmp_path / "logs")
    # The reference agent computes the labels itself and says them, so its logs are left out.
    paths = [Path(log.location) for log in theirs if "reference" not in log.eval.model]
    paths += [path for path in (tmp_path / "logs").iterdir() if "reference" not in path.name]
    assert len(paths) == 2 * (len(MODELS) - 1) * len(CONDITIONS)
    printed = {path.name: written_numbers(members(path)) for path in paths}
    episodes = {episode.task_id: episode for episode in synthetic_edition.episodes()}
    hidden = 0
    for task_id in ours.rows["task_id"].unique():
        truth = synthetic_edition.truth(task_id)
        known = numbers(synthetic_edition.full_input(episodes[task_id]))
        secret = numbers([truth.expected_output, truth.verification, truth.proof]) - known
        secret -= _said(theirs, task_id)
        hidden += len(secret)
        for name, said in printed.items():
            assert not sorted(secret & said), (task_id, name)
    assert hidden > 100
