"""What the README shows must work: its Python runs, its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from finskillbench.cli import app
from finskillbench.edition import Edition
from finskillbench.harness.conditions import Condition
from finskillbench.harness.failures import OTHERS, PROVIDER

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
    commands = set(re.findall(r"^    finskillbench (data \w+|skills \w+|run|plan|score)", README, re.MULTILINE))
    assert len(commands) >= 8
    for command in sorted(commands):
        result = CliRunner().invoke(app, [*command.split(), "--help"])
        assert result.exit_code == 0, command


def test_its_make_targets_exist() -> None:
    """Each `make ...` that the README mentions is a target of the Makefile."""
    makefile = (Path(__file__).resolve().parents[1] / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"(?:`|^    )make (\w+)", README, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_its_table_of_failures_is_the_table() -> None:
    """Every row of the failure policy stands in the README as the code has it, and no other."""
    yes = {True: "yes", False: "no"}
    wanted = [
        f"| {name} | {each.meaning} | {yes[each.retried]} | {yes[each.graded]} | {each.stops} | {each.shown} |"
        for name, each in {**PROVIDER, **OTHERS}.items()
    ]
    start = README.index("| cause | what it is |")
    assert README[start:].split("\n\n")[0].splitlines()[2:] == wanted


def test_its_conditions_are_the_conditions() -> None:
    """The table of arms names each of them once."""
    assert re.findall(
        r"^\| `(\w+)` \| .*\|$", README[README.index("### Conditions") :].split("### Runs")[0], re.MULTILINE
    ) == [condition.value for condition in Condition]
