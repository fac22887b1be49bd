"""Import of a published release: a small one written here, and the real sample where it is present."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from finskillbench.edition import load_edition
from finskillbench.edition.checks.engine import validate_edition
from finskillbench.edition.release import REPORT, Reason, import_published_release
from finskillbench.episode import Profile, Status, Submission
from finskillbench.errors import InputError
from finskillbench.findings import CheckState
from finskillbench.runs.postprocess.scoring import score

REF = "data/portfolio_construction/processed/covariance/2025-01-31.npz"
UNCONSTRAINED = "data/portfolio_construction/episodes/layer_a/unconstrained/pc_uncon_1.json"
MONITORING = "data/risk_management/episodes/layer_a/constraint_monitoring/task_rm_cm_1.json"
MANDATE = "data/risk_management/constructed/mandates/mandate_simple.json"


def _optimisation() -> dict[str, Any]:
    return {
        "task_id": "pc_uncon_1",
        "skill": "portfolio_construction",
        "sub_task": "unconstrained_optimization",
        "as_of_date": "2025-01-31",
        "difficulty": "easy",
        "input": {
            "expected_returns": {"A": 0.1, "B": 0.2},
            "covariance_matrix": {"tickers": ["A", "B"], "ref": REF},
            "objective": "max_return",
        },
        "expected_output": {"weights": {"A": 0.0, "B": 1.0}},
        "verification": {"method": "l2_distance_and_objective"},
        "metadata": {"n_assets": 2},
        "prompt": {"task_description": "Optimise.", "output_instructions": "Answer as JSON."},
    }


def _monitoring() -> dict[str, Any]:
    return {
        "task_id": "rm_cm_1",
        "skill": "risk_management",
        "sub_task": "constraint_monitoring",
        "as_of_date": "2024-01-01",
        "input": {
            "portfolio": {"portfolio_id": "p", "holdings": [{"symbol": "A", "weight": 1.0}], "total_nav": 1},
            "mandate": {"mandate_id": "mandate_simple"},
            "market_data": {"covariance": "data/risk_management/processed/covariance/"},
        },
        "expected_output": {"overall_compliant": True, "violations_count": 0, "constraints": []},
        "verification": {"method": "exact_match"},
        "metadata": {"difficulty": "hard"},
    }


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Two tasks: one whose covariance is absent, one with a mandate's id alone, no prompt and no difficulty."""
    folder = tmp_path / "release"
    _write(folder / UNCONSTRAINED, _optimisation())
    _write(folder / MONITORING, _monitoring())
    return folder


def _problems(report: Any, task_id: str) -> set[tuple[str, str]]:
    episode = next(each for each in report.episodes if each.task_id == task_id)
    assert episode.resolves is not bool(episode.problems)
    return {(problem.reason.value, problem.field) for problem in episode.problems}


def test_published_tasks_become_episodes(release: Path, tmp_path: Path) -> None:
    report = import_published_release(release, tmp_path / "edition")
    edition = load_edition(tmp_path / "edition")
    assert edition.manifest["source"]["kind"] == "release"
    assert edition.manifest["counts"] == {"unconstrained_optimization": 1, "constraint_monitoring": 1}
    first, second = edition.episodes()
    published = _optimisation()
    assert first.input == published["input"]
    assert first.prompt.task_description == "Optimise."
    assert edition.truth("pc_uncon_1").expected_output == published["expected_output"]
    assert edition.truth("pc_uncon_1").verification == published["verification"]
    assert edition.truth("pc_uncon_1").proof == {}
    assert second.difficulty == "hard"
    assert "every constraint of the mandate" in second.prompt.task_description
    assert _problems(report, "pc_uncon_1") == {("missing_file", "covariance_matrix")}
    assert _problems(report, "rm_cm_1") == {("no_definition", "mandate"), ("missing_file", "market_data.covariance")}
    assert json.loads((tmp_path / "edition" / REPORT).read_text()) == report.to_json()
    assert edition.manifest["import"] == report.summary()
    assert report.summary()["by_reason"] == {"missing_file": 2, "no_definition": 1}


def test_the_same_release_gives_the_same_edition(release: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        import_published_release(release, tmp_path / name)
    assert load_edition(tmp_path / "one").manifest == load_edition(tmp_path / "two").manifest


def test_a_covariance_that_is_there_is_copied_and_resolves(release: Path, tmp_path: Path) -> None:
    matrix = np.array([[0.04, 0.01], [0.01, 0.09]])
    (release / REF).parent.mkdir(parents=True)
    np.savez(release / REF, symbols=np.array(["A", "B"]), cov=matrix)
    report = import_published_release(release, tmp_path / "edition")
    edition = load_edition(tmp_path / "edition")
    episode = edition.episodes(["unconstrained_optimization"])[0]
    assert _problems(report, "pc_uncon_1") == set()
    assert report.episodes[0].copied == (episode.input["covariance_matrix"]["ref"],)
    assert (edition.path / episode.input["covariance_matrix"]["ref"]).read_bytes() == (release / REF).read_bytes()
    assert edition.full_input(episode)["covariance_matrix"] == {"tickers": ["A", "B"], "matrix": matrix.tolist()}


def test_a_file_that_is_no_covariance_is_reported(release: Path, tmp_path: Path) -> None:
    (release / REF).parent.mkdir(parents=True)
    np.savez(release / REF, something=np.ones(2))
    report = import_published_release(release, tmp_path / "edition")
    assert _problems(report, "pc_uncon_1") == {("unreadable_file", "covariance_matrix")}


def test_a_reference_that_leads_out_of_the_release_is_not_followed(release: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "secret.npz", symbols=np.array(["A", "B"]), cov=np.eye(2))
    task = _optimisation()
    task["input"]["covariance_matrix"]["ref"] = "data/../../secret.npz"
    _write(release / UNCONSTRAINED, task)
    report = import_published_release(release, tmp_path / "edition")
    assert _problems(report, "pc_uncon_1") == {("missing_file", "covariance_matrix")}


def test_a_mandate_that_is_defined_is_inlined(release: Path, tmp_path: Path) -> None:
    mandate = {"mandate_id": "mandate_simple", "constraints": [{"type": "position_limit_max", "value": 0.05}]}
    _write(release / MANDATE, mandate)
    report = import_published_release(release, tmp_path / "edition")
    assert _problems(report, "rm_cm_1") == {("missing_file", "market_data.covariance")}
    assert report.episodes[1].inlined == ("mandate",)
    assert load_edition(tmp_path / "edition").episodes(["constraint_monitoring"])[0].input["mandate"] == mandate


def test_empty_and_absent_inputs_are_told_apart(release: Path, tmp_path: Path) -> None:
    task = _optimisation()
    task["input"]["expected_returns"] = {}
    del task["input"]["covariance_matrix"]
    _write(release / UNCONSTRAINED, task)
    report = import_published_release(release, tmp_path / "edition")
    assert _problems(report, "pc_uncon_1") == {
        ("empty_input", "expected_returns"),
        ("absent_input", "covariance_matrix"),
    }


def test_a_number_that_is_none_becomes_null_and_is_counted(release: Path, tmp_path: Path) -> None:
    task = _optimisation()
    task["metadata"]["beta"] = float("nan")
    _write(release / UNCONSTRAINED, task)
    report = import_published_release(release, tmp_path / "edition")
    assert report.episodes[0].nulls == 1
    assert load_edition(tmp_path / "edition").episodes()[0].metadata["beta"] is None


def _truncate(release: Path) -> None:
    file = release / UNCONSTRAINED
    file.write_bytes(file.read_bytes()[:-20])


def _without(field: str) -> Callable[[Path], None]:
    def spoil(release: Path) -> None:
        task = _optimisation()
        del task[field]
        _write(release / UNCONSTRAINED, task)

    return spoil


def _with(**fields: object) -> Callable[[Path], None]:
    return lambda release: _write(release / UNCONSTRAINED, _optimisation() | fields)


def _swollen(release: Path) -> None:
    _write(release / MANDATE, {})
    os.truncate(release / MANDATE, 2**30)


def _twice(release: Path) -> None:
    shutil.copy(release / UNCONSTRAINED, (release / UNCONSTRAINED).with_name("pc_uncon_2.json"))


REQUIRED = ("task_id", "skill", "sub_task", "as_of_date", "input", "expected_output", "verification", "prompt")
BAD = {
    "truncated": (_truncate, r"pc_uncon_1\.json: not JSON"),
    "without an end": (
        lambda release: os.truncate(release / UNCONSTRAINED, 2**30),
        r"pc_uncon_1\.json: has 1,073,741,824",
    ),
    "no object": (lambda release: _write(release / UNCONSTRAINED, []), r"pc_uncon_1\.json: not a JSON object"),
    **{f"without {field}": (_without(field), rf"pc_uncon_1\.json: .*{field}") for field in REQUIRED},
    "without difficulty": (_without("difficulty"), r"pc_uncon_1\.json: has no difficulty"),
    "a wrong type": (_with(input=[]), r"pc_uncon_1\.json: is not dict: input"),
    "no date": (_with(as_of_date="31 January"), r"pc_uncon_1\.json: as_of_date '31 January' is not a date"),
    "an unknown subtask": (_with(sub_task="alchemy"), r"pc_uncon_1\.json: sub_task 'alchemy' is unknown"),
    "another domain": (_with(skill="risk_management"), r"pc_uncon_1\.json: skill 'risk_management' is not"),
    "another folder": (_with(sub_task="rebalancing"), r"its sub_task is rebalancing, but its folder is unconstrained"),
    "an id twice": (_twice, r"pc_uncon_2\.json: task_id 'pc_uncon_1' is also used by .*pc_uncon_1\.json"),
    "a broken mandate": (
        lambda release: _write(release / MANDATE, {"mandate_id": "other"}),
        r"mandate_simple\.json: does not define mandate_id",
    ),
    "a mandate without an end": (_swollen, r"mandate_simple\.json: .*larger"),
    "no release": (lambda release: shutil.rmtree(release / "data"), "is not a published release"),
}


@pytest.mark.parametrize(("spoil", "told"), BAD.values(), ids=BAD)
def test_bad_input_is_one_error_that_names_the_file(
    spoil: Callable[[Path], None], told: str, release: Path, tmp_path: Path
) -> None:
    spoil(release)
    with pytest.raises(InputError, match=told) as caught:
        import_published_release(release, tmp_path / "edition")
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


def test_an_occupied_place_is_left_alone(release: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not an empty folder"):
        import_published_release(release, release)


def test_a_place_in_an_edition_is_refused(release: Path, tmp_path: Path) -> None:
    import_published_release(release, tmp_path / "edition")
    with pytest.raises(InputError, match="is inside the edition"):
        import_published_release(release, tmp_path / "edition" / "x")
    load_edition(tmp_path / "edition")


@pytest.fixture(scope="module")
def imported(release_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The report and the edition of the published sample."""
    out = tmp_path_factory.mktemp("release") / "edition"
    return import_published_release(release_sample, out), load_edition(out)


def test_the_sample_imports_whole(imported: tuple[Any, Any]) -> None:
    report, edition = imported
    assert len(edition.episodes()) == 22
    assert len(edition.sub_tasks) == 12
    told = report.summary()
    assert (told["episodes"], told["resolve"]) == (22, 2)
    assert told["by_sub_task"]["tool_use_parameterization"] == {"episodes": 2, "resolve": 2}
    assert told["by_reason"] == {"missing_file": 20, "empty_input": 4, "absent_input": 3}
    assert (told["inlined"], told["prompts_written"], told["copied"]) == (5, 7, 0)
    assert (Reason.EMPTY_INPUT.value, "benchmark_weights") in _problems(report, "pc_con_2025-01-31_medium_max_return")


def test_every_published_label_is_worth_one_after_import(imported: tuple[Any, Any]) -> None:
    _, edition = imported
    labels = [
        Submission(episode.task_id, json.dumps(edition.truth(episode.task_id).expected_output))
        for episode in edition.episodes()
    ]
    rows = list(score(edition, labels))
    assert len(rows) == 22
    for row in rows:
        assert row["status"] == Status.SCORED
        assert set(row["scores"]) == {Profile.PAPER, Profile.STRICT}
        assert row["scores"][Profile.STRICT] == pytest.approx(1.0, abs=1e-9), row["task_id"]
        if row["task_id"].startswith("pc_"):
            assert row["details"][Profile.CERTIFIED] == {"not_judged": "the label carries no proof"}


def test_labels_and_inputs_are_as_published(imported: tuple[Any, Any], release_sample: Path) -> None:
    report, edition = imported
    episodes = {episode.task_id: episode for episode in edition.episodes()}
    for told in report.episodes:
        published = json.loads((release_sample / told.file).read_text())
        episode, truth = episodes[told.task_id], edition.truth(told.task_id)
        assert truth.expected_output == published["expected_output"]
        assert truth.verification == published["verification"]
        kept = {name: value for name, value in episode.input.items() if name not in told.inlined}
        assert kept == {name: value for name, value in published["input"].items() if name not in told.inlined}


def test_validation_tells_what_the_sample_cannot_prove(imported: tuple[Any, Any]) -> None:
    checks = {check.name: check for check in validate_edition(imported[1]).checks}
    assert checks["prices"].state is CheckState.SKIP
    labels = [check.findings for name, check in checks.items() if name in imported[1].sub_tasks]
    assert len(labels) == len(imported[1].sub_tasks)
    assert all(finding.state is CheckState.WARN for findings in labels for finding in findings)
    assert all(findings for findings in labels)
    assert checks["taxonomy"].state is CheckState.FAIL
    assert any("Financials" in finding.message for finding in checks["taxonomy"].findings)
