"""Planted defects of a package, each named by the linter."""

from pathlib import Path

import pytest

from finskillbench.harness.skills.lint import lint
from finskillbench.harness.skills.loader import curated

SKILL = """---
name: bond-ladder
description: Builds bond ladders. Use when rungs are asked for.
---
# Steps

Read references/rungs.md, then run `scripts/build.py`.
"""
SCRIPT = '"""Build a ladder."""\n\n\ndef main(payload: dict) -> dict:\n    return payload\n'
FILES = {"SKILL.md": SKILL, "references/rungs.md": "rungs\n", "scripts/build.py": SCRIPT}


def problems(folder: Path, name: str = "bond-ladder", **changed: str) -> list[str]:
    root = folder / name
    for file, text in (FILES | changed).items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text, encoding="utf-8")
    return lint(root)


def test_a_clean_package_has_no_problems(tmp_path: Path) -> None:
    assert problems(tmp_path) == []


@pytest.mark.parametrize("folder", [package.root for package in curated().values()], ids=lambda path: path.name)
def test_the_shipped_packages_are_clean(folder: Path) -> None:
    assert lint(folder) == []


DEFECTS = [
    ({"SKILL.md": SKILL.replace("bond-ladder", "bond-steps")}, "must match skill name"),
    ({"SKILL.md": SKILL.replace("bond-ladder", "Bond_Ladder")}, "must be lowercase"),
    ({"SKILL.md": SKILL.replace("Builds", "Builds " + "x" * 1024)}, "exceeds 1024 character limit"),
    ({"SKILL.md": SKILL.replace("Use when rungs are asked for.", "")}, "not when to use it"),
    ({"SKILL.md": SKILL.replace("---\n#", "colour: red\n---\n#")}, "Unexpected fields"),
    ({"SKILL.md": SKILL + "x\n" * 500}, "lines, the limit is 500"),
    ({"SKILL.md": SKILL + "x" * 20_000}, "tokens, the limit is 5000"),
    ({"SKILL.md": SKILL.split("# Steps")[0]}, "has no instructions"),
    ({"SKILL.md": "no front matter"}, "must start with YAML frontmatter"),
    ({"references/deep/er.md": "x"}, "references/deep/er.md lies deeper than one level"),
    ({"references/lost.md": "x"}, "references/lost.md is not mentioned"),
    ({"SKILL.md": SKILL + "See references/gone.md\n"}, "mentions references/gone.md, which is not there"),
    ({"scripts/deep/er.py": SCRIPT}, "scripts/deep/er.py lies deeper than one level"),
    ({"scripts/lost.py": SCRIPT}, "scripts/lost.py is not documented"),
    ({"scripts/build.py": SCRIPT.replace("main", "start")}, "has no function main"),
    ({"scripts/build.py": SCRIPT.replace("payload: dict", "payload: dict, more: int")}, "main must take one argument"),
    ({"scripts/build.py": SCRIPT.replace("payload: dict", "*payload: dict")}, "main must take one argument"),
    ({"scripts/build.py": SCRIPT.replace("-> dict", "-> list")}, "must be annotated"),
    ({"scripts/build.py": SCRIPT.replace(": dict)", ")")}, "must be annotated"),
    ({"scripts/build.py": SCRIPT.split("\n", 1)[1]}, "has no module docstring"),
    ({"scripts/build.py": "def main(:\n"}, "is not Python"),
    ({".hidden": "x"}, "is hidden"),
]


@pytest.mark.parametrize(("changed", "problem"), DEFECTS, ids=[problem for _, problem in DEFECTS])
def test_a_planted_defect_is_named(changed: dict[str, str], problem: str, tmp_path: Path) -> None:
    found = problems(tmp_path, **changed)
    assert any(problem in line for line in found), found
    assert all("\n" not in line for line in found)


def test_nothing_is_executed(tmp_path: Path) -> None:
    touch = SCRIPT + f"\nopen({str(tmp_path / 'executed')!r}, 'w')\n"
    assert problems(tmp_path, **{"scripts/build.py": touch}) == []
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("annotation", ["dict[str, object]", "JsonObject"])
def test_dictionaries_may_say_what_they_hold(annotation: str, tmp_path: Path) -> None:
    assert problems(tmp_path, **{"scripts/build.py": SCRIPT.replace(": dict)", f": {annotation})")}) == []


def test_a_folder_that_is_none_is_a_problem(tmp_path: Path) -> None:
    assert lint(tmp_path / "nothing") != []
    (tmp_path / "SKILL.md").write_bytes(b"---\nname: \xff")
    assert lint(tmp_path) != []
