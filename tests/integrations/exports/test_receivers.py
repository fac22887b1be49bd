"""Exports for receivers of results: accepted by their own validators, the same every time, without truth and keys."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from tests.integrations.conftest import PLANTED
from tests.integrations.test_export import ANSWER, Busy
from tests.rows import synthetic_rows

from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.results import collect
from finskillbench.cli import main
from finskillbench.edition import Edition
from finskillbench.edition.store import CANARY
from finskillbench.episode import Profile
from finskillbench.errors import InputError
from finskillbench.harness.models import ModelKey
from finskillbench.integrations import receivers
from finskillbench.integrations.exports import read_arms
from finskillbench.runs.execute.run import RunResult, run
from finskillbench.runs.store.journal import read_trajectory
from finskillbench.runs.store.rows import to_frame

ROOT = Path(__file__).parents[3]
ATIF_CHECK = """
import sys
from harbor.utils.trajectory_validator import TrajectoryValidator
for path in sys.argv[1:]:
    checked = TrajectoryValidator()
    assert checked.validate(path), (path, checked.errors)
"""
REGISTER_CHECK = """
import sys
from pathlib import Path
from inspect_evals import metadata
entry = metadata._load_single_eval_yaml(Path(sys.argv[1]))
print(metadata.ExternalEvalMetadata(**entry).model_dump_json())
"""
ADDRESS = "https://github.com/example/finskillbench"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Flat(Busy):
    """The same model under a name without a developer."""


@pytest.fixture(scope="module")
def finished(small_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    out = tmp_path_factory.mktemp("run") / "run"
    return run(small_edition, [Busy(), Flat("flat"), "baseline/nop"], ["no_skill"], out=out)


def receiver(name: str, program: str, *arguments: object, cwd: Path) -> str:
    """Return what a program of a receiver prints, skip where its environment is absent."""
    path = ROOT / f".venv-{name}" / "bin" / program
    if not path.exists():
        pytest.skip(f"needs make {name}")
    done = subprocess.run([path, *arguments], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def export(finished: RunResult, out: Path, to: str, *options: str) -> dict[Path, str]:
    assert main(["export", str(finished.folder), "--to", to, "--out", str(out), *options]) == 0
    return {path: path.read_text() for path in sorted(out.rglob("*.*")) if path.is_file()}


def test_trajectories_tell_the_whole_attempt(finished: RunResult, tmp_path: Path) -> None:
    files = export(finished, tmp_path / "atif", "atif")
    assert len(files) == finished.rows.height
    document = json.loads((tmp_path / "atif" / "test-busy__no_skill" / "pc_rebal_0__0.json").read_text())
    system, user, first, last = document["steps"]
    assert (system["source"], user["source"], first["source"], last["step_id"]) == ("system", "user", "agent", 4)
    assert [each["arguments"] for each in first["tool_calls"]] == [{"field": "cash"}, {"unparsed": "broken"}]
    results = first["observation"]["results"]
    assert [each["source_call_id"] for each in results] == ["a", "b"]
    assert json.loads(results[0]["content"]) == {"field": "cash", "value": 1}
    assert (first["metrics"]["prompt_tokens"], first["model_name"]) == (100, "busy-2026")
    assert last["tool_calls"][0]["arguments"] == {"answer": ANSWER}
    total = document["final_metrics"]
    assert (total["total_prompt_tokens"], total["total_cost_usd"], total["total_steps"]) == (200, 1.0, 4)
    assert (total["total_completion_tokens"], total["total_cached_tokens"]) == (10, 120)
    assert (document["notes"], document["extra"]["status"]) == (CANARY, "scored")
    program = json.loads((tmp_path / "atif" / "baseline-nop__no_skill" / "pc_rebal_0__0.json").read_text())
    turns = [step for step in program["steps"] if step["source"] == "agent"]
    assert all(step["llm_call_count"] == 0 and "metrics" not in step for step in turns)


def test_harbor_accepts_every_trajectory(finished: RunResult, tmp_path: Path) -> None:
    files = export(finished, tmp_path / "atif", "atif")
    receiver("harbor", "python", "-c", ATIF_CHECK, *files, cwd=tmp_path)


def records(files: dict[Path, str]) -> dict[str, dict[str, Any]]:
    found = [json.loads(text) for path, text in files.items() if path.suffix == ".json"]
    return {each["model_info"]["id"]: each for each in found}


def test_records_hold_the_scores_of_the_rows(finished: RunResult, tmp_path: Path) -> None:
    files = export(finished, tmp_path / "eee", "every-eval-ever", "--organization", "Example Lab")
    found = records(files)
    assert found.keys() == {"test/busy", "baseline/nop", "Example-Lab/flat"}
    record = found["test/busy"]
    rows = finished.rows.filter(model="test/busy", status="scored")
    means = dict(rows.group_by("sub_task").agg(pl.col("score").mean()).iter_rows())
    results = {each["evaluation_name"]: each["score_details"] for each in record["evaluation_results"]}
    assert {name: each["score"] for name, each in results.items() if "headline" not in name} == {
        f"finskillbench.{name}": pytest.approx(mean) for name, mean in means.items()
    }
    assert results["finskillbench.rebalancing"]["details"] == {"rows_in_error": "1"}
    assert results["finskillbench.headline"]["details"] == {"rows_in_error": "3"}
    samples = tmp_path / "eee" / record["detailed_evaluation_results"]["file_path"]
    assert record["detailed_evaluation_results"]["checksum"] == hashlib.sha256(samples.read_bytes()).hexdigest()
    lines = [json.loads(line) for line in samples.read_text().splitlines()]
    assert {line["sample_id"]: line["evaluation"]["score"] for line in lines} == dict(
        rows.select("task_id", "score").iter_rows()
    )
    assert {line["evaluation"]["is_correct"] for line in lines} == {False}
    ids = {each["evaluation_result_id"] for each in record["evaluation_results"]}
    assert {line["evaluation_result_id"] for line in lines} < ids
    (answer,) = lines[0]["answer_attribution"]
    assert (answer["extracted_value"], answer["turn_idx"]) == (ANSWER, 5)
    assert export(finished, tmp_path / "eee", "every-eval-ever", "--organization", "Example Lab") == files
    paper = export(finished, tmp_path / "p", "every-eval-ever", "--organization", "Example Lab", "--profile", "paper")
    assert '"finskillbench.paper"' in "".join(paper.values())


@pytest.mark.parametrize(("profile", "most"), [(Profile.CERTIFIED, 1.0), (Profile.PAPER, "Infinity")])
def test_results_of_a_record_have_the_intervals_of_a_report(profile: Profile, most: object) -> None:
    rows = synthetic_rows(3, ("no_skill",), 8).filter(model="provider/model-2")
    results = collect(rows, profile)
    headline, first, *_ = receivers._results("key", results)
    of_first = results.episodes.filter(sub_task=results.sub_tasks[0])
    for found, episodes in ((headline, results.episodes), (first, of_first)):
        expected = estimate_means(episodes, "score").row(0, named=True)
        details = found["score_details"]
        spread = details["uncertainty"]
        assert (details["score"], spread["num_samples"]) == (expected["mean"], episodes.height)
        assert spread["standard_error"]["value"] == expected["error"]
        ends = spread["confidence_interval"]
        assert (ends["lower"], ends["upper"]) == (expected["low"], expected["high"])
        assert found["metric_config"]["max_score"] == most


def test_every_eval_ever_accepts_every_record(finished: RunResult, tmp_path: Path) -> None:
    export(finished, tmp_path / "eee", "every-eval-ever", "--organization", "Example Lab")
    printed = receiver("receivers", "every_eval_ever", "validate", "data/*/*/*/*", cwd=tmp_path / "eee")
    assert "6 passed, 0 warning-only, 0 failed" in printed


def test_nothing_that_is_published_holds_truth_or_keys(
    finished: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXAMPLE_API_KEY", "Let me see.")
    for to in ("atif", "every-eval-ever"):
        files = export(finished, tmp_path / to, to, "--organization", "Example Lab")
        assert any("[redacted]" in text for text in files.values())
        for path, text in files.items():
            assert not [word for word in (*PLANTED, "Let me see.", "scoring_details") if word in text], path
            assert CANARY in text
    monkeypatch.setenv("EXAMPLE_API_KEY", "Example Lab")
    words = "".join(export(finished, tmp_path / "record", "every-eval-ever", "--organization", "Example Lab").values())
    monkeypatch.setenv("EXAMPLE_API_KEY", ADDRESS)
    given = ("--repository", ADDRESS, "--commit", COMMIT)
    words += "".join(export(finished, tmp_path / "register", "inspect-evals", *given).values())
    assert not [key for key in ("Example Lab", ADDRESS) if key in words]


def test_a_result_of_no_call_of_its_turn_belongs_to_none(finished: RunResult, tmp_path: Path) -> None:
    row = read_arms(finished.folder, tmp_path)[1][ModelKey("test/busy"), "no_skill"][0]
    trace = read_trajectory(finished.folder / row.item.trajectory).trace
    place = next(place for place, each in enumerate(trace.messages) if each.role == "tool")
    messages = [*trace.messages]
    messages[place] = replace(messages[place], tool_call_id="unknown")
    *_, first, _ = receivers.to_atif(row, replace(trace, messages=tuple(messages)))["steps"]
    assert [each["source_call_id"] for each in first["observation"]["results"]] == [None, "b"]


def test_only_the_full_score_is_a_correct_answer(finished: RunResult, tmp_path: Path) -> None:
    rows = read_arms(finished.folder, tmp_path)[1][ModelKey("test/busy"), "no_skill"]
    results = collect(to_frame(rows))
    scores = pl.when(pl.col("sub_task") == "rebalancing").then(1.0).otherwise(0.99)
    scored = results.rows.with_columns(pl.when(pl.col("score").is_not_null()).then(scores).alias("score"))
    document = {"evaluation_id": "key", "model_info": {"id": "test/busy"}}
    lines = receivers._samples(finished.folder, document, rows, replace(results, rows=scored))
    correct = {line["evaluation_name"]: line["evaluation"]["is_correct"] for line in lines}
    assert correct.pop("finskillbench.rebalancing") is True
    assert set(correct.values()) == {False}


def test_the_register_reports_the_headline_alone(finished: RunResult, tmp_path: Path) -> None:
    rows = read_arms(finished.folder, tmp_path)[1][ModelKey("test/busy"), "no_skill"]
    apart = [replace(rows[0], task_id="another", sub_task="infeasibility_detection", score=1.0)]
    key = ModelKey("test/busy")
    assert [*receivers._reported(key, "no_skill", [*rows, *apart])] == [*receivers._reported(key, "no_skill", rows)]
    assert [*receivers._reported(key, "no_skill", apart)] == []


def test_a_register_entry_pins_the_commit_and_reports_models(finished: RunResult, tmp_path: Path) -> None:
    given = ("--repository", ADDRESS, "--commit", COMMIT)
    ((path, text),) = export(finished, tmp_path / "register", "inspect-evals", *given).items()
    entry = yaml.safe_load(text)
    assert entry["source"] == {"repository_url": ADDRESS, "repository_commit": COMMIT}
    (task,) = entry["tasks"]
    assert (task["name"], task["dataset_samples"], (ROOT / task["task_path"]).is_file()) == ("all", 6, True)
    assert [each["model"] for each in entry["evaluation_report"]["results"]] == ["flat", "test/busy"]
    assert path.relative_to(tmp_path) == Path("register/finskillbench/eval.yaml")
    printed = json.loads(receiver("receivers", "python", "-c", REGISTER_CHECK, path, cwd=tmp_path))
    assert (printed["id"], printed["source"]["maintainers"]) == ("finskillbench", ["example"])


def test_rows_of_several_commits_need_a_named_one(
    finished: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, arms = read_arms(finished.folder, tmp_path)
    commits = (f"{number}" * 40 for number in range(len(arms)))
    mixed = {
        arm: [replace(row, commit=commit) for row in rows]
        for (arm, rows), commit in zip(arms.items(), commits, strict=True)
    }
    monkeypatch.setattr(receivers, "read_arms", lambda *_: (record, mixed))
    with pytest.raises(InputError, match="do not share one clean commit"):
        receivers.export_register_entry(finished.folder, tmp_path / "register", ADDRESS)


def test_the_task_of_the_entry_is_found_by_its_file() -> None:
    """Inspect reads the names of a file's tasks from its source."""
    from inspect_ai._util.decorator import parse_decorators

    path = ROOT / "src" / "finskillbench" / "integrations" / "tasks.py"
    assert [name for name, _ in parse_decorators(path, "task")] == ["all"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("every-eval-ever",), "every-eval-ever needs --organization"),
        (("inspect-evals",), "inspect-evals needs --repository"),
        (("inspect-evals", "--repository", "example"), "not an address like https://github.com/OWNER"),
        (("inspect-evals", "--repository", ADDRESS, "--commit", f"{COMMIT}-dirty"), "not the 40 hexadecimal digits"),
        (("every-eval-ever", "--organization", " "), "--organization has no name"),
    ],
)
def test_exports_without_what_they_need_are_refused(
    options: tuple[str, ...], words: str, finished: RunResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(finished.folder), "--out", str(tmp_path / "out"), "--to", *options]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options", [("atif",), ("every-eval-ever", "--organization", "Example Lab")])
def test_a_damaged_trajectory_leaves_nothing_half_written(
    options: tuple[str, ...], finished: RunResult, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished.folder, folder)
    for path in folder.glob("trajectories/test-busy*/*"):
        path.write_bytes(b"")
    assert main(["export", str(folder), "--out", str(tmp_path / "out"), "--to", *options]) == 2
    assert not (tmp_path / "out").exists()
