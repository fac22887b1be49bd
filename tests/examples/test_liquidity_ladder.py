"""The example package, installed beside ours: every command knows its subtask, and nothing of ours was changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import orjson
import polars as pl
import pytest
from tests.sampling import thorough

from finskillbench.edition.store import read_lines, write_lines, write_manifest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "liquidity-ladder"
NAME = "liquidity_ladder"
pytestmark = pytest.mark.slow
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """The command line in a process that finds the package as if pip had installed it."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE / NAME, site / NAME, ignore=shutil.ignore_patterns("__pycache__"))
    info = site / "finskillbench_liquidity_ladder-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: finskillbench-liquidity-ladder\nVersion: 0.1.0\n")
    groups = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in of.items()) for group, of in groups.items()
    )
    (info / "entry_points.txt").write_text("".join(lines))
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])

    def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        driver = Path(__file__).with_name("driver.py")
        done = subprocess.run(
            [sys.executable, driver, *map(str, arguments)],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": path},
            cwd=site,
            check=False,
        )
        assert done.returncode == code, done.stderr[-2000:] + done.stdout[-2000:]
        return done

    return run


@pytest.fixture(scope="module")
def built(command: Command, alone: Callable[[str], AbstractContextManager[Path]]) -> Path:
    """An edition with the ladder and one of our own subtasks, built once for all processes of a test run."""
    with alone("ladder") as shared:
        folder = shared / "ladder" / "edition"
        if not folder.exists():
            command("data", "build", "--out", folder)
        return folder


def _checks(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, object]]:
    return {check["check"]: check for check in orjson.loads(done.stdout)["checks"]}


@thorough
def test_its_labels_are_built_and_derived_again(command: Command, built: Path) -> None:
    assert len(list(read_lines(built / "episodes" / f"{NAME}.jsonl"))) == 40
    checks = _checks(command("data", "validate", built, "--json"))
    assert checks[NAME]["state"] == "PASS"
    assert checks[NAME]["figures"]["labels"] == 40  # type: ignore[index]


@thorough
def test_labels_that_are_all_999_days_fail_the_edition(command: Command, built: Path, tmp_path: Path) -> None:
    altered = tmp_path / "altered"
    shutil.copytree(built, altered)
    file = altered / "truth" / f"{NAME}.jsonl"
    rows = list(read_lines(file))
    for row in rows:
        row["expected_output"]["days_to_liquidate"] = dict.fromkeys(row["expected_output"]["days_to_liquidate"], 999.0)
    write_lines(file, rows)
    manifest = orjson.loads((altered / "manifest.json").read_bytes())
    derived = ("format", "digest", "files", "seal")
    write_manifest(altered, {name: value for name, value in manifest.items() if name not in derived})
    checks = _checks(command("data", "validate", altered, "--json", code=1))
    assert [name for name, check in checks.items() if check["state"] == "FAIL"] == [NAME]
    assert {finding["where"] for finding in checks[NAME]["findings"]} == {row["task_id"] for row in rows}  # type: ignore[index, attr-defined]


@thorough
def test_a_run_judges_it_and_the_tables_know_it(command: Command, built: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    table = command("run", "--edition", built, "--subtask", NAME, "--limit", 4, "--out", out).stdout
    assert NAME in table
    rows = pl.read_parquet(out / "rows.parquet").unnest("scores")
    means = dict(rows.group_by("model", "condition").agg(pl.col("certified").mean()).map_rows(_pair).iter_rows())
    # Its conventions print every step, and nothing is done by hand: the reference needs no skill to follow them.
    of_the_reference = {name: means.pop(name) for name in list(means) if name.startswith("baseline/reference ")}
    assert of_the_reference == {
        f"baseline/reference {condition}": pytest.approx(1.0) for condition in ("no_skill", "curated", "self_generated")
    }
    assert {name.partition(" ")[0] for name in means} == {"baseline/heuristic", "baseline/trivial", "baseline/nop"}
    assert max(means.values()) < 0.05
    report = command("report", out, "--format", "ladder", "--out", tmp_path / "report").stdout.strip()
    assert pl.read_csv(report).filter(model="baseline/reference")["score"].unique().to_list() == [1.0]


def _pair(row: tuple[str, str, float]) -> tuple[str, float]:
    return f"{row[0]} {row[1]}", row[2]


@thorough
def test_answers_from_elsewhere_are_scored(command: Command, built: Path, tmp_path: Path) -> None:
    labels = list(read_lines(built / "truth" / f"{NAME}.jsonl"))[:3]
    answers = [{"task_id": row["task_id"], "answer": orjson.dumps(row["expected_output"]).decode()} for row in labels]
    write_lines(tmp_path / "answers.jsonl", answers)
    command("score", built, tmp_path / "answers.jsonl", "--out", tmp_path / "scored.jsonl")
    judged = list(read_lines(tmp_path / "scored.jsonl"))
    assert {row["sub_task"] for row in judged} == {NAME}
    # What was not answered of an answered subtask scores nothing.
    assert [row["scores"]["certified"] for row in judged] == [pytest.approx(1.0)] * 3 + [0.0] * 37


@thorough
def test_its_command_and_no_other_needs_the_edition(command: Command, built: Path) -> None:
    lines = command("ladder", built).stdout.splitlines()
    assert len(lines) == 40
    assert "within_5_days" in lines[0]


def test_its_command_is_listed(command: Command) -> None:
    assert "ladder " in command("--help").stdout


def test_its_skill_package_is_listed_and_clean(command: Command) -> None:
    assert "liquidity-ladder (" in command("skills", "list").stdout
    assert "liquidity-ladder: clean" in command("skills", "lint").stdout
