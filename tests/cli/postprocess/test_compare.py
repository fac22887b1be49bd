"""`finskillbench compare`: what it prints, and its exit codes."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

from finskillbench import cli


@pytest.fixture
def run(edition: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Two baselines over three episodes under one condition."""
    folder = edition.with_name("my run")
    models = ["--model", "baseline/nop", "--model", "baseline/trivial"]
    arguments = ["run", "--edition", str(edition), *models, "--condition", "no_skill", "--out", str(folder)]
    assert cli.main(arguments) == 0
    capsys.readouterr()
    return folder


OVER = ("--compare", "model", "baseline/trivial", "baseline/nop")


def compared(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.main(["compare", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_table_with_flips_whose_commands_run(run: Path, capsys) -> None:
    code, text, _ = compared(capsys, run, *OVER)
    assert code == 0
    assert text.startswith("Scores on the same episodes: A is baseline/trivial, B is baseline/nop\n")
    assert all(len(line) <= 100 for line in text.splitlines() if "finskillbench show" not in line)
    commands = [line.partition("finskillbench ")[2] for line in text.splitlines() if "finskillbench show" in line]
    assert commands
    for command in commands:
        assert cli.main(shlex.split(command)) == 0


def test_json_has_every_table_and_the_gates(run: Path, capsys) -> None:
    code, text, error = compared(capsys, run, *OVER, "--format", "json", "--fail-under", "headline=0.5")
    assert code == 1
    assert [table["name"] for table in json.loads(text)] == [
        "moved",
        "noise",
        "within",
        "cheaper",
        "took",
        "flips",
        "gates",
    ]
    assert error.splitlines()[-1] == "failed: headline of baseline/nop under no_skill is 0.0000, below 0.5"


def test_two_equal_runs_report_no_changes(run: Path, capsys) -> None:
    shutil.copytree(run, run.with_name("again"))
    code, text, _ = compared(capsys, run, run.with_name("again"))
    assert code == 0
    assert text.startswith("Scores on the same episodes: ")
    assert "lines without changes are omitted" in " ".join(text.split())


def test_gates_that_hold_exit_with_0(run: Path, capsys) -> None:
    gates = ("--fail-under", "headline=0", "--fail-on-regression", "--margin", "1")
    code, _, error = compared(capsys, run, *OVER, *gates)
    assert code == 0
    assert error.splitlines()[-1] == "passed: no significant fall of more than 1"


@pytest.mark.slow
def test_a_run_that_stopped_half_way_passes_no_gate(run: Path, capsys) -> None:
    half = run.with_name("half")
    shutil.copytree(run, half)
    (half / "rows.parquet").unlink()
    journal = half / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:2]))
    for gate in (("--fail-on-regression",), ("--fail-under", "headline=0")):
        code, _, error = compared(capsys, run, half, *gate)
        assert code == 1
        assert "failed: " in error
        assert "is not finished" in error
    assert cli.main(["report", str(half), "--fail-under", "headline=0"]) == 1
    assert compared(capsys, half, run, "--fail-on-regression")[0] == 0


def test_what_cannot_be_compared_exits_with_2_in_one_line(run: Path, capsys) -> None:
    for arguments, message in {
        (run,): "compare takes two different runs; to compare within one, add --compare model A B",
        (run, run): "compare takes two different runs",
        (run, "--compare", "colour", "a", "b"): "choose one of model, harness, condition",
        (run, *OVER, "--format", "pdf"): "--format 'pdf' is unknown; choose from: table, md, csv",
        (run, *OVER, "--fail-under", "headline"): "write headline=0.6",
        (run.parent, *OVER): "neither a run folder",
    }.items():
        code, text, error = compared(capsys, *arguments)
        assert (code, text) == (2, "")
        assert message in error.splitlines()[-1]
