"""`finskillbench skills`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from finskillbench import cli

DOCUMENT = """---
name: sums
description: Adds numbers. Use when numbers must be added.
---
Call `scripts/add.py`.
"""
SCRIPT = '"""Add the numbers."""\n\n\ndef main(payload: dict) -> dict:\n    return {"sum": sum(payload["numbers"])}\n'


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "sums"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(DOCUMENT)
    (folder / "scripts" / "add.py").write_text(SCRIPT)
    return folder


def test_show_prints_what_an_agent_reads(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["skills", "show", str(package)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Call `scripts/add.py`.\n")
    assert "References: none\nScripts: scripts/add.py\n" in shown


def test_lint_tells_clean_from_faulty(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["skills", "lint", str(package)]) == 0
    assert capsys.readouterr().out == "sums: clean\n"
    (package / "scripts" / "add.py").unlink()
    assert cli.main(["skills", "lint", str(package)]) == 1
    assert capsys.readouterr().out.startswith("sums: 1 problem\n  SKILL.md mentions scripts/add.py")


def test_the_curated_packages_are_listed_and_clean(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["skills", "list"]) == 0
    assert "portfolio-construction (" in capsys.readouterr().out
    assert cli.main(["skills", "lint"]) == 0
    assert "portfolio-construction: clean\n" in capsys.readouterr().out
    assert cli.main(["skills", "show", "portfolio-construction"]) == 0
    assert "Scripts: scripts/" in capsys.readouterr().out


def test_a_new_package_lints_clean_and_its_script_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine" / "portfolio-notes"
    assert cli.main(["skills", "new", str(folder)]) == 0
    assert cli.main(["skills", "lint", str(folder)]) == 0
    assert "portfolio-notes: clean\n" in capsys.readouterr().out
    program: dict[str, Any] = {}
    exec((folder / "scripts" / "total.py").read_text(), program)
    assert program["main"]({"values": {"a": 1, "b": 2.5}}) == {"total": 3.5}
    with pytest.raises(ValueError, match="b is no number"):
        program["main"]({"values": {"a": 1, "b": "2"}})
    cases = json.loads((folder / "evals" / "evals.json").read_text())
    assert cases["skill_name"] == "portfolio-notes"
    assert [case["expected_skill"] for case in cases["evals"]] == ["portfolio-notes", None]
    assert cli.main(["skills", "new", str(folder)]) == 2
    assert "already exists" in capsys.readouterr().err
