"""What `inspect eval finskillbench/...` offers: the episodes of a run, judged by the truth that no sample holds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai import score as inspect_score
from inspect_ai.log import EvalLog, EvalSample, read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.solver import generate
from tests import registry
from tests.harness.programs.faulty import Faulty
from tests.integrations.conftest import PLANTED, SUBTASKS
from tests.integrations.reading import members

from finskillbench.domains import domain_of, domains, subtasks
from finskillbench.edition import Edition
from finskillbench.errors import EditionError, InputError
from finskillbench.harness.models import BASELINES
from finskillbench.integrations import tasks as tasks_module
from finskillbench.integrations.logs import export_run
from finskillbench.integrations.tasks import EVERYTHING, TASKS, verdict
from finskillbench.runs.execute.run import run
from finskillbench.runs.plan.items import choose_episodes


def _ids(task: Task) -> list[Any]:
    return [sample.id for sample in task.dataset]


def _play(task: Task, folder: Path, model: Any = "finskillbench/baseline-nop", **options: Any) -> EvalLog:
    (log,) = inspect_eval(task, model=model, log_dir=str(folder), display="none", log_realtime=False, **options)
    return log


def _samples(log: EvalLog) -> list[EvalSample]:
    assert log.samples is not None
    return log.samples


def test_there_is_a_task_for_every_subtask_and_domain() -> None:
    names = {subtask.name for subtask in subtasks()} | {domain.name for domain in domains()}
    assert set(TASKS) == names | {EVERYTHING}


def test_a_task_holds_the_episodes_of_a_run(synthetic_edition: Edition) -> None:
    path = str(synthetic_edition.path)
    for name in (subtask.name for subtask in registry.SUBTASKS):
        for limit in (3, None):
            chosen = choose_episodes(synthetic_edition.episodes([name]), limit)
            assert _ids(TASKS[name](edition=path, limit=limit)) == [episode.task_id for episode in chosen]
    domain = "risk_management"
    held = [subtask.name for subtask in subtasks() if domain_of(subtask.name).name == domain]
    chosen = choose_episodes(synthetic_edition.episodes(held), 2)
    assert _ids(TASKS[domain](edition=path, limit=2)) == [episode.task_id for episode in chosen]


def test_a_sample_is_what_the_agent_sees(small_edition: Edition) -> None:
    task = TASKS["rebalancing"](condition="self_generated", edition=str(small_edition.path))
    sample = task.dataset[0]
    assert "Do task 0." in str(sample.input)
    assert "write skills first" in str(sample.input)
    assert (sample.target, sample.metadata) == (
        "",
        {
            "domain": "portfolio_construction",
            "sub_task": "rebalancing",
            "difficulty": "easy",
            "as_of_date": "2025-01-31",
        },
    )


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"edition": "nowhere"}, EditionError, "nowhere is not an edition"),
        ({"condition": "none"}, InputError, "condition 'none' is unknown"),
        ({"condition": "self_generated_persistent"}, InputError, "use: finskillbench run --condition"),
        ({"condition": "skill:mine"}, InputError, "use: finskillbench run --skills mine=DIR"),
        ({"limit": 0}, InputError, "limit is 0"),
    ],
)
def test_what_cannot_be_run_is_refused(
    small_edition: Edition, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        TASKS["rebalancing"](**{"edition": str(small_edition.path), **arguments})


def test_without_a_path_it_is_the_default_edition(small_edition: Edition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("finskillbench.runs.plan.streams.default_edition", lambda progress, suite: small_edition.path)
    assert TASKS["rebalancing"]().metadata["edition"] == small_edition.digest


def test_a_subtask_that_the_edition_lacks_is_refused(small_edition: Edition) -> None:
    with pytest.raises(InputError, match="has no subtask stress_testing"):
        TASKS["stress_testing"](edition=str(small_edition.path))


def test_an_edition_without_truth_is_refused_before_a_model_is_asked(small_edition: Edition, tmp_path: Path) -> None:
    shutil.copytree(small_edition.path, tmp_path / "open")
    shutil.rmtree(tmp_path / "open" / "truth")
    with pytest.raises(EditionError, match="has no truth/"):
        TASKS["rebalancing"](edition=str(tmp_path / "open"))


def test_a_model_that_is_no_baseline_is_refused() -> None:
    with pytest.raises(InputError, match=r"'finskillbench/openai-x' is unknown; choose from: finskillbench/baseline-"):
        get_model("finskillbench/openai-x")


@pytest.mark.slow
def test_nothing_planted_in_the_truth_is_logged(small_edition: Edition, tmp_path: Path) -> None:
    log = _play(TASKS[EVERYTHING](edition=str(small_edition.path)), tmp_path / "logs")
    assert [sample.scores is not None for sample in _samples(log)] == [True] * 2 * len(SUBTASKS)
    # Nor what the scorers say of an answer, which tells of the truth.
    scores = [score for sample in _samples(log) for score in (sample.scores or {}).values()]
    assert [score.metadata for score in scores] == [{"status": "scored"}] * len(scores)
    text = members(Path(log.location))
    assert not [word for word in PLANTED if word in text]
    assert {sample.target for sample in _samples(log)} == {""}
    assert {key for sample in _samples(log) for key in sample.store} == {tasks_module.ENDED, tasks_module.ANSWER}
    # Beside the log there is nothing but the traces and markers that Inspect keeps in the user's data folder.
    assert [path.name for path in (tmp_path / "logs").iterdir()] == [Path(log.location).name]
    beside = [path for path in tmp_path.rglob("*") if path.is_file() and path.parent.name != "logs"]
    assert all(path.is_relative_to(tmp_path / "home" / "inspect_ai") for path in beside), beside
    assert not [word for word in PLANTED for path in beside if word.encode() in path.read_bytes()]


def test_a_log_can_be_judged_again(small_edition: Edition, tmp_path: Path) -> None:
    """From the log alone and the edition, as `inspect score` does after a scorer has changed."""
    path = str(small_edition.path)
    log = _play(TASKS["rebalancing"](edition=path), tmp_path, "finskillbench/baseline-trivial")
    again = inspect_score(read_eval_log(log.location), verdict(path), action="overwrite", display="none")
    for before, after in zip(_samples(log), _samples(again), strict=True):
        assert before.scores is not None
        assert after.scores is not None
        assert (before.scores["verdict"].metadata, before.scores["verdict"].answer) == (
            after.scores["verdict"].metadata,
            after.scores["verdict"].answer,
        )
        assert str(before.scores["verdict"].value) == str(after.scores["verdict"].value)


def test_a_log_states_whether_a_planted_fault_was_followed_and_not_its_loss(
    synthetic_edition: Edition, tmp_path: Path
) -> None:
    task = TASKS["rebalancing"](condition="faulty:sign", edition=str(synthetic_edition.path), limit=1)
    (sample,) = _samples(_play(task, tmp_path, "finskillbench/baseline-reference"))
    assert sample.scores is not None
    stated = {"status": "scored", "fault": {"package": "portfolio-construction", "equal": True}}
    assert sample.scores["verdict"].metadata == stated
    run(synthetic_edition, ["baseline/reference"], ["faulty:sign"], ["rebalancing"], limit=1, out=tmp_path / "run")
    (path,) = export_run(tmp_path / "run", tmp_path / "logs")
    (exported,) = _samples(read_eval_log(str(path)))
    assert exported.scores is not None
    assert exported.scores["verdict"].metadata == stated


def test_a_provider_that_refuses_is_an_error_of_the_sample(small_edition: Edition, tmp_path: Path) -> None:
    class RefusedError(Exception):
        status_code = 401

    def give(messages: Any, *_: Any) -> ModelOutput:
        if "Do task 0." in messages[1].text:
            raise RefusedError("no such key")
        answer = ModelOutput.for_tool_call("m", "submit_answer", {"answer": "{}"})
        answer.usage = ModelUsage()  # else Inspect downloads a vocabulary to count
        return answer

    model = get_model("mockllm/model", custom_outputs=give)
    log = _play(TASKS["rebalancing"](edition=str(small_edition.path)), tmp_path, model)
    refused, answered = _samples(log)
    assert refused.error is not None
    assert "HTTP 401: RefusedError: no such key" in refused.error.message
    assert not refused.scores
    assert [message.role for message in refused.messages] == ["system", "user"]
    assert answered.error is None
    assert answered.scores is not None
    assert answered.scores["verdict"].explanation == "scored"
    assert log.status == "error"


def test_a_limit_of_inspect_leaves_an_incomplete_submission(
    small_edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BASELINES, Faulty.name, Faulty)
    task = TASKS["rebalancing"](edition=str(small_edition.path), limit=1)
    log = _play(task, tmp_path, "finskillbench/baseline-faulty", turn_limit=2)
    (sample,) = _samples(log)
    assert sample.limit is not None
    assert sample.limit.type == "turn"
    assert sample.scores is not None
    assert sample.scores["verdict"].explanation == "incomplete_submission"
    assert [message.role for message in sample.messages if message.role == "assistant"] == ["assistant"] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("completion", "explanation", "score"),
    [
        ('Sure:\n```json\n{"new_weights": {"AAA": 0.51234567891}}\n```', "scored", None),
        ("I would rather not.", "invalid_submission", 0.0),
        ("", "incomplete_submission", 0.0),
    ],
)
def test_under_a_solver_of_somebodys_own_the_completion_is_judged(
    small_edition: Edition, tmp_path: Path, completion: str, explanation: str, score: float | None
) -> None:
    def give(*_: Any) -> ModelOutput:
        output = ModelOutput.from_content("m", completion)
        output.usage = ModelUsage()
        return output

    model = get_model("mockllm/model", custom_outputs=give)
    task = TASKS["rebalancing"](edition=str(small_edition.path), limit=1)
    (sample,) = _samples(_play(task, tmp_path, model, solver=[generate()]))
    assert sample.scores is not None
    judged = sample.scores["verdict"]
    assert (judged.explanation, judged.answer) == (explanation, completion.strip() or None)
    if score is not None:
        assert judged.value["paper"] == score
    else:
        assert judged.value["paper"] > 0


def test_the_commands_do_not_pay_for_inspect() -> None:
    code = "import sys, finskillbench.cli, finskillbench.integrations; sys.exit('inspect_ai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
