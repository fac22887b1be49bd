"""What the README shows must work: its Python runs, its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from finskillbench.cli import app
from finskillbench.edition import Edition

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def test_its_python_runs(edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """The model of the README is played over two episodes of each subtask and the table is printed."""
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "editions").mkdir()
    (tmp_path / "editions" / "seven").symlink_to(edition.path)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "mine/always-equal" in printed
    assert "curated - no_skill" in printed


def test_its_commands_exist() -> None:
    """Each `finskillbench ...` line of the README names a command that has a help page."""
    commands = set(re.findall(r"^    finskillbench (data \w+|skills \w+|run|score)", README, re.MULTILINE))
    assert len(commands) >= 8
    for command in sorted(commands):
        result = CliRunner().invoke(app, [*command.split(), "--help"])
        assert result.exit_code == 0, command


def test_its_make_targets_exist() -> None:
    """Each `make ...` that the README mentions is a target of the Makefile."""
    makefile = (Path(__file__).resolve().parents[1] / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"(?:`|^    )make (\w+)", README, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
