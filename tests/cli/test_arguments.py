"""Arguments are checked before anything large is read: the edition and the run of these commands are empty folders."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from finskillbench import cli

E = "edition"
DRIVE = ["drive", E, "--name", "x", "--out", "out", "--agent-command", "true {mcp_config}"]
EVAL = ["skills", "eval", "package", "--edition", E, "--model", "baseline/nop"]
WRONG = [
    *(["export-tasks", E, "out", *each] for each in (
        ("--condition", "nonsense"), ("--subtask", "nonsense"), ("--suite", "nonsense"), ("--skills", "nonsense"),
        ("--image", "nonsense"),
    )),
    *([*DRIVE, *each] for each in (
        ("--condition", "nonsense"), ("--subtask", "nonsense"), ("--suite", "nonsense"), ("--skills", "nonsense"),
    )),
    *([command, "--edition", E, *each] for command in ("run", "plan") for each in (
        ("--condition", "nonsense"), ("--subtask", "nonsense"), ("--suite", "nonsense"), ("--skills", "nonsense"),
        ("--model", "nonsense"), ("--shard", "nonsense"), ("--limit-for", "nonsense"),
        ("--prices", "nonsense"), ("--harness", "nonsense"),
    )),
    *(["inspect", E, "task", *each] for each in (("--condition", "nonsense"), ("--skills", "nonsense"))),
    ["inspect", E, "--field", "nonsense"],
    ["serve", E, "task", "--out", "out", "--condition", "nonsense"],
    *(["audit", E, *each] for each in (("--check", "nonsense"), ("--suite", "nonsense"))),
    *(["data", "validate", E, *each] for each in (("--suite", "nonsense"),)),
    *(["data", "info", E, *each] for each in (("--cutoff", "nonsense"),)),
    *([*EVAL, *each] for each in (("--domain", "nonsense"), ("--against", "nonsense"), ("--model", "nonsense"))),
    *(["report", "run", *each] for each in (
        ("--by", "nonsense"), ("--suite", "nonsense"), ("--profile", "nonsense"), ("--cutoff", "nonsense"),
        ("--fail-under", "nonsense"), ("--format", "html", "--trajectories", "nonsense"), ("--format", "nonsense"),
    )),
    *(["compare", "run", "run", *each] for each in (
        ("--fail-under", "nonsense"),
    )),
    *(["export", "run", "--out", "out", *each] for each in (("--to", "nonsense"),)),
]  # fmt: skip


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_wrong_argument_is_refused_before_anything_is_read(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (E, "run"):
        Path(folder).mkdir()
    assert cli.main(["skills", "new", "package"]) == 0
    capsys.readouterr()
    assert cli.main(arguments) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert {arguments[-1], arguments[-2], "--image"} & set(re.split(r"[\s;,:']+", line)), line
    assert not Path("out").exists()
