"""Episodes as tasks of Harbor: the places that it reads, no truth in any of them, and its trials as rows."""

from __future__ import annotations

import os
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from finskillbench import cli
from finskillbench.domains import domains
from finskillbench.edition import Edition
from finskillbench.edition.store import CANARY
from finskillbench.edition.withheld import export_public
from finskillbench.episode import PAPER_SUITE
from finskillbench.errors import InputError
from finskillbench.integrations.task_files import Layout
from finskillbench.integrations.task_files.answers import import_answers
from finskillbench.integrations.task_files.write import ANSWER, PLACE, ExportRecord, export_tasks
from finskillbench.runs.config import EpisodeSelection

STARTED = {"started_at": "2026-11-22T10:00:00Z", "finished_at": "2026-11-22T10:01:30Z"}


@pytest.fixture(scope="module")
def tasks(synthetic_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("harbor") / "tasks"
    export_tasks(
        synthetic_edition,
        out,
        "curated",
        chosen=EpisodeSelection(limit=1),
        layout=Layout.HARBOR,
        image="house/finskillbench:1",
    )
    return out


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_task_has_what_harbor_reads(tasks: Path) -> None:
    for name, task_id in orjson.loads((tasks / "handout.json").read_bytes())["tasks"].items():
        files = _files(tasks / name)
        assert {"task.toml", "instruction.md", "environment/Dockerfile", "tests/test.sh", "CANARY.txt"} <= files.keys()
        assert not [path for path in files if "solution" in path]
        config = tomllib.loads(files["task.toml"].decode())
        assert config["artifacts"] == [{"source": f"{PLACE}/{ANSWER}", "destination": ANSWER}]
        assert (config["metadata"]["task_id"], config["metadata"]["canary"]) == (task_id, CANARY)
        assert config["environment"]["skills_dir"] == f"{PLACE}/skills"
        assert "environment/workspace/skills/risk-management/SKILL.md" in files
        assert "environment/workspace/schema.json" in files
        # Harbor takes a first line with the word off, so that no agent reads it.
        first, words = files["instruction.md"].decode().split("\n", 1)
        assert first == f"<!-- {CANARY} -->"
        assert "canary" not in words
        assert f"The working directory `{PLACE}` is one task" in words
        assert files["environment/Dockerfile"].startswith(b"FROM house/finskillbench:1\n")


def test_tools_around_harbor_find_the_tasks(tasks: Path) -> None:
    names = set(orjson.loads((tasks / "handout.json").read_bytes())["tasks"])
    dataset = tomllib.loads((tasks / "dataset.toml").read_text())
    assert {task["name"] for task in dataset["tasks"]} == {f"finskillbench/{name}" for name in names}
    evals = orjson.loads((tasks / "evals.json").read_bytes())
    assert {case["id"] for case in evals["evals"]} == names
    skills = {skill.name for domain in domains() if domain.suite == PAPER_SUITE for skill in domain.skills}
    assert {case["expected_skill"] for case in evals["evals"]} == skills
    for case in evals["evals"]:
        assert case["prompt"] in (tasks / case["id"] / "instruction.md").read_text()


def test_no_truth_is_in_it(synthetic_edition: Edition, tasks: Path, tmp_path: Path) -> None:
    """An edition that has none gives the same bytes."""
    public = export_public(synthetic_edition, tmp_path / "public")
    out = tmp_path / "tasks"
    export_tasks(
        public, out, "curated", chosen=EpisodeSelection(limit=1), layout=Layout.HARBOR, image="house/finskillbench:1"
    )
    assert _files(out) == _files(tasks)


@pytest.mark.parametrize(("left", "answered"), [("{}", 1), ("", 0), (None, 0)])
def test_the_verifier_says_whether_there_is_an_answer(
    tasks: Path, tmp_path: Path, left: str | None, answered: int
) -> None:
    (script,) = {path.read_text() for path in tasks.glob("*/tests/test.sh")}
    (tmp_path / "workspace").mkdir()
    if left is not None:
        (tmp_path / "workspace" / ANSWER).write_text(left)
    # In place of the root of a container.
    moved = script.replace(PLACE, f"{tmp_path}{PLACE}").replace("/logs", f"{tmp_path}/logs")
    subprocess.run(["sh", "-c", moved], check=True)
    assert orjson.loads((tmp_path / "logs/verifier/reward.json").read_bytes()) == {"answered": answered}
    assert all(os.access(path, os.X_OK) for path in tasks.glob("*/tests/test.sh"))


def _trial(job: Path, name: str, task: str, answer: str | None = None, **result: Any) -> Path:
    """The folder of a trial, with the parts of Harbor's that are read."""
    kept = job / name / "artifacts" / ANSWER
    kept.parent.mkdir(parents=True)
    if answer is not None:
        kept.write_text(answer)
    agent = {"name": "codex", "version": "1", "model_info": {"name": "gpt-5", "provider": "openai"}}
    told = {"task_name": task, "trial_name": name, "agent_info": agent, "agent_execution": STARTED, **result}
    (job / name / "result.json").write_bytes(orjson.dumps(told))
    return kept


@pytest.fixture
def handed(synthetic_edition: Edition, tmp_path: Path) -> tuple[Path, ExportRecord]:
    out = tmp_path / "out"
    return out, export_tasks(
        synthetic_edition, out, chosen=EpisodeSelection(subtasks=["normalization"], limit=6), layout=Layout.HARBOR
    )


def test_what_harbor_kept_comes_back_as_rows(
    synthetic_edition: Edition, handed: tuple[Path, ExportRecord], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, record = handed
    job = tmp_path / "job"
    right, late, crashed, unstarted, linked, _ = record.tasks
    answer = orjson.dumps(synthetic_edition.truth(record.tasks[right]).expected_output).decode()
    used = {"n_input_tokens": 900, "n_cache_tokens": 100, "n_output_tokens": 50, "cost_usd": 0.25}
    _trial(job, "a", right, answer, agent_result=used)
    _trial(job, "b", right, "{}")
    _trial(job, "c", late, exception_info={"exception_type": "AgentTimeoutError"})
    _trial(job, "d", crashed, exception_info={"exception_type": "RuntimeError"})
    _trial(job, "e", unstarted, agent_execution=None, exception_info={"exception_type": "BuildError"})
    _trial(job, "f", linked).symlink_to(out / "handout.json")
    (job / "unfinished").mkdir()
    rows = tmp_path / "rows.parquet"
    assert cli.main(["score", str(synthetic_edition.path), str(out), "--jobs", str(job), "--out", str(rows)]) == 0
    assert "7 episodes: 1 error, 4 incomplete_submission, 2 scored (5 unanswered: 0)" in capsys.readouterr().out
    frame = pl.read_parquet(rows)
    assert set(frame["model"]) == {"codex/openai/gpt-5"}
    assert set(frame["harness"]) == {"harbor"}
    found: Mapping[Any, Mapping[str, Any]] = {(row["task_id"], row["run_idx"]): row for row in frame.to_dicts()}
    first, second = (found[record.tasks[right], repeat] for repeat in (0, 1))
    assert (first["score"], first["cost_usd"], first["latency_seconds"]) == (1.0, 0.25, 90.0)
    assert (first["total_input_tokens"], first["total_cached_tokens"], first["total_output_tokens"]) == (900, 100, 50)
    assert (second["score"], second["cost_usd"]) == (0.0, None)
    ends = {task: found[record.tasks[task], 0] for task in (late, crashed, unstarted, linked)}
    assert [ends[task]["incidents"] for task in (late, crashed, linked)] == [
        ["out_of_time"],
        ["no_answer"],
        ["no_answer"],
    ]
    # What kept an agent from starting is none of its failures.
    assert (ends[unstarted]["status"], ends[unstarted]["score"]) == ("error", None)
    assert ends[unstarted]["error"] == "Harbor: BuildError before the agent started"


def test_what_does_not_fit_is_refused(
    synthetic_edition: Edition, handed: tuple[Path, ExportRecord], tmp_path: Path
) -> None:
    out, record = handed
    with pytest.raises(InputError, match="add --jobs"):
        list(import_answers(synthetic_edition, out))
    with pytest.raises(InputError, match="holds no finished trial"):
        list(import_answers(synthetic_edition, out, jobs=tmp_path / "nothing"))
    job = tmp_path / "job"
    _trial(job, "a", "another-task")
    with pytest.raises(InputError, match="'another-task', which is not in this export"):
        list(import_answers(synthetic_edition, out, jobs=job))
    _trial(job, "0", next(iter(record.tasks)), agent_result={"n_input_tokens": -1})
    with pytest.raises(InputError, match="not a result of a trial"):
        list(import_answers(synthetic_edition, out, jobs=job))
    plain = tmp_path / "plain"
    export_tasks(synthetic_edition, plain, chosen=EpisodeSelection(subtasks=["normalization"], limit=1))
    with pytest.raises(InputError, match="leave out --jobs"):
        list(import_answers(synthetic_edition, plain, jobs=job))
    for layout, condition, image, words in (
        (Layout.HARBOR, "curated", None, "an image that can run them"),
        (Layout.HARBOR, "no_skill", "a b", "is not an image name"),
        (Layout.FOLDERS, "no_skill", "house", "add --format harbor"),
    ):
        with pytest.raises(InputError, match=words):
            export_tasks(
                synthetic_edition,
                tmp_path / "new",
                condition,
                chosen=EpisodeSelection(limit=1),
                layout=layout,
                image=image,
            )
    assert not (tmp_path / "new").exists()
