"""A run's failures as a table: with and without the truth, with a subtask's own causes, and what scripts were worth."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.runs.postprocess.failures.recipes import arithmetic, misnamed
from tests.runs.postprocess.failures.scene import Recipe, Scene, Scripted, Step
from tests.runs.postprocess.failures.skilled import second_try

from finskillbench import domains
from finskillbench.domains.examples import Examples, Misreading
from finskillbench.edition import Edition
from finskillbench.episode import Status
from finskillbench.errors import InputError
from finskillbench.runs.execute.run import run
from finskillbench.runs.postprocess.failures import LabelledTask, explain_failure, failures_of, use_of
from finskillbench.runs.store.journal import read_trajectory
from finskillbench.runs.store.version import file_name
from finskillbench.scoring.strict_json import parse_submission

SUBTASK = "stress_testing"


def as_returned(scene: Scene) -> list[Step]:
    return [scene.load(), scene.run(), scene.submit_output()]


def played(edition: Edition, out: Path, recipe: Recipe, condition: str = "no_skill", sub_task: str = SUBTASK) -> str:
    """One episode, by default a stress test, played by a recipe; its task."""
    model = Scripted("one", recipe, edition)
    (task,) = model.study(edition.episodes([sub_task])[:1])
    run(edition, [model], [condition], tasks=[task], out=out)
    return task


@pytest.fixture
def wrong(synthetic_edition: Edition, tmp_path: Path) -> Path:
    played(synthetic_edition, tmp_path / "run", arithmetic)
    return tmp_path / "run"


def test_a_line_for_each_failure(wrong: Path, synthetic_edition: Edition) -> None:
    (line,) = failures_of(wrong).to_dicts()
    assert (line["model"], line["condition"], line["run_idx"]) == ("scripted/one", "no_skill", 0)
    assert line["cause"] == "arithmetic"
    assert line["causes"] == ["arithmetic"]
    assert line["not_tried"] == []
    truth = synthetic_edition.truth(line["task_id"]).expected_output
    assert "should be" in line["evidence"]
    assert line["score"] < 1
    assert truth["estimated_pnl_pct"] != 0


def test_without_the_truth_it_says_what_was_not_tried(wrong: Path, synthetic_edition: Edition, tmp_path: Path) -> None:
    handed_out = tmp_path / "handed-out"
    shutil.copytree(synthetic_edition.path, handed_out)
    shutil.rmtree(handed_out / "truth")
    (line,) = failures_of(wrong, handed_out).to_dicts()
    assert line["causes"] == ["unexplained"]
    assert {"arithmetic", "precision_lost", "wrong_unit", "wrong_period", "partial_answer"} <= set(line["not_tried"])
    assert "malformed_json" not in line["not_tried"]


def test_keys_are_judged_without_the_truth(synthetic_edition: Edition, tmp_path: Path) -> None:
    task = played(synthetic_edition, tmp_path / "run", misnamed(2))
    path = tmp_path / "run" / "trajectories" / "scripted-one__no_skill" / f"{file_name(task)}__0.json.gz"
    (line,) = failures_of(tmp_path / "run").to_dicts()
    alone = explain_failure(read_trajectory(path), Status.SCORED)
    assert alone.causes == ("wrong_keys",)
    assert alone.evidence == line["evidence"]
    assert "result" in alone.evidence


def test_a_subtask_brings_causes_of_its_own(
    wrong: Path, synthetic_edition: Edition, monkeypatch: pytest.MonkeyPatch
) -> None:
    (line,) = failures_of(wrong).to_dicts()
    task = line["task_id"]
    trajectory = read_trajectory(next(wrong.glob("trajectories/*/*.json.gz")))
    assert trajectory.trace.answer is not None
    answer = parse_submission(trajectory.trace.answer)
    trap = Misreading("shock_doubled", "a shock that was counted twice", answer)
    changed = replace(domains.subtask_named(SUBTASK), examples=Examples(misreadings=lambda task_input: [trap]))
    episode = next(each for each in synthetic_edition.episodes([SUBTASK]) if each.task_id == task)
    monkeypatch.setitem(domains._subtasks_by_name(), SUBTASK, changed)
    known = LabelledTask(synthetic_edition.truth(task), synthetic_edition.full_input(episode))
    found = explain_failure(trajectory, Status.SCORED, known)
    assert found.cause == "shock_doubled"
    assert "a shock that was counted twice" in found.evidence


@pytest.mark.parametrize(("recipe", "use"), [(as_returned, "unchanged"), (second_try, "altered"), (arithmetic, "none")])
def test_how_outputs_were_used(synthetic_edition: Edition, tmp_path: Path, recipe: Recipe, use: str) -> None:
    played(synthetic_edition, tmp_path / "run", recipe, "curated")
    (line,) = use_of(tmp_path / "run").to_dicts()
    assert line["output_use"] == use
    assert line["skill_loaded"] is line["script_run"] is (use != "none")


def test_damage_is_named(wrong: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no run"):
        failures_of(tmp_path)
    next(wrong.glob("trajectories/*/*.json.gz")).unlink()
    with pytest.raises(InputError, match="not a readable trajectory"):
        failures_of(wrong)


@pytest.mark.parametrize(
    "answer",
    [
        '{"estimated_pnl_pct": 5e-324, "attribution": {"by_sector": [], "by_factor": []}}',
        '{"estimated_pnl_pct": 1.7e308, "attribution": 3}',
        '{"estimated_pnl_pct": 123456789012345678901234567890, "attribution": null}',
        '{"\\ud800": 1, "estimated_pnl_pct": "\\ud800"}',
        '{"attribution": {"by_sector": [{"sector": {}, "contribution_pct": [1]}, 5, null], "by_factor": {"a": 1}}}',
        '{"a": ' * 60 + "1" + "}" * 60,
    ],
)
def test_no_answer_is_too_strange(wrong: Path, synthetic_edition: Edition, answer: str) -> None:
    trajectory = read_trajectory(next(wrong.glob("trajectories/*/*.json.gz")))
    task = trajectory.item.task_id
    episode = next(each for each in synthetic_edition.episodes([SUBTASK]) if each.task_id == task)
    known = LabelledTask(synthetic_edition.truth(task), synthetic_edition.full_input(episode))
    strange = replace(trajectory, trace=replace(trajectory.trace, answer=answer))
    for given in (known, None):
        found = explain_failure(strange, Status.SCORED, given)
        assert found.causes
        assert found.evidence.encode()
    silent = replace(trajectory, trace=replace(trajectory.trace, messages=(), tool_calls=()))
    assert explain_failure(silent, Status.SCORED, known).causes


def other_limit(scene: Scene) -> list[Step]:
    """A call of the optimiser in which one limit is another."""
    constraints = scene.right["optimizer_call"]["constraints"]
    name = next(name for name, value in constraints.items() if isinstance(value, float))
    return [
        scene.read(),
        scene.submit(
            {
                "optimizer_call": {
                    **scene.right["optimizer_call"],
                    "constraints": {**constraints, name: constraints[name] * 1.3},
                }
            }
        ),
    ]


def zero_left_out(scene: Scene) -> list[Step]:
    """A signal that is 0 is left out, which costs what a wrong one costs."""
    signals = scene.right["piotroski_components"]
    name = next(name for name, value in signals.items() if value == 0)
    return [
        scene.read(),
        scene.submit(
            {**scene.right, "piotroski_components": {key: value for key, value in signals.items() if key != name}}
        ),
    ]


@pytest.mark.parametrize(
    ("sub_task", "recipe", "cause"),
    [("tool_use_parameterization", other_limit, "arithmetic"), ("earnings_quality", zero_left_out, "wrong_choice")],
)
def test_a_wrong_part_is_no_partial_answer(
    synthetic_edition: Edition, tmp_path: Path, sub_task: str, recipe: Recipe, cause: str
) -> None:
    played(synthetic_edition, tmp_path / "run", recipe, sub_task=sub_task)
    (line,) = failures_of(tmp_path / "run").to_dicts()
    assert line["causes"] == [cause]
