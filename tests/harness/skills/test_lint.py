"""Planted defects of a package, each named by the linter."""

import re
from pathlib import Path

import pytest

from finskillbench.harness.skills.lint import MAX_PROBLEMS, lint
from finskillbench.harness.skills.loader import curated, placebo
from finskillbench.harness.skills.template import package_files

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


def test_authors_have_the_form_that_skillevaluator_asks_for() -> None:
    shipped = [package.root / "SKILL.md" for package in (*curated().values(), *placebo().values())]
    texts = [*(path.read_text(encoding="utf-8") for path in shipped), package_files("my-notes")["SKILL.md"]]
    for text in texts:
        assert re.search(r"^  author: [^<>\n]+ <[^\s<>@]+@[^\s<>@]+\.\w+>$", text, re.MULTILINE), text[:300]


DEFECTS = [
    ({"SKILL.md": SKILL.replace("bond-ladder", "bond-steps")}, "must match skill name"),
    ({"SKILL.md": SKILL.replace("bond-ladder", "Bond_Ladder")}, "must be lowercase"),
    ({"SKILL.md": SKILL.replace("Builds", "Builds " + "x" * 1024)}, "exceeds 1024 character limit"),
    ({"SKILL.md": SKILL.replace("Use when rungs are asked for.", "")}, "does not say when to use"),
    ({"SKILL.md": SKILL.replace("---\n#", "colour: red\n---\n#")}, "Unexpected fields"),
    ({"SKILL.md": SKILL + "x\n" * 500}, "lines of instructions, keep it under 500"),
    ({"SKILL.md": SKILL + "x" * 20_000}, "tokens of instructions, keep it under 5000"),
    ({"SKILL.md": SKILL.split("# Steps")[0]}, "has no instructions"),
    ({"SKILL.md": "no front matter"}, "must start with YAML front matter"),
    ({"references/lost.md": "See lost.md."}, "references/lost.md is mentioned neither in SKILL.md nor in"),
    ({"references/data.md": "\0"}, "references/data.md is not text in UTF-8"),
    ({"SKILL.md": SKILL + "See ./references/gone.md.\n"}, "mentions references/gone.md, which is not in the package"),
    ({"SKILL.md": SKILL + "`scripts/gone.sh`\n"}, "mentions scripts/gone.sh, which is not in the package"),
    ({"SKILL.md": SKILL + "(bond-ladder/assets/gone.png)\n"}, "mentions assets/gone.png, which is not in the package"),
    ({"scripts/deep/lost.py": SCRIPT}, "scripts/deep/lost.py is not mentioned in SKILL.md"),
    ({"scripts/build.py": "# /// script\n# dependencies = [1]\n# ///\n" + SCRIPT}, "(PEP 723) cannot be read"),
    (
        {"scripts/build.py": "x = " + "1+" * 300_000 + "1"},
        "build.py: cannot be parsed, an expression is nested too deeply",
    ),
    ({"evals/evals.json": "[" * 100_000}, "evals/evals.json is nested too deeply"),
    ({"evals/evals.json": "{"}, "evals/evals.json is not JSON"),
    ({"evals/evals.json": '{"evals": 1}'}, "evals/evals.json: no list 'evals' of cases"),
    ({"evals/evals.json": '{"skill_name": "x", "evals": []}'}, "skill_name is 'x', the package is named bond-ladder"),
    (
        {"evals/evals.json": '{"evals": [{}, {"expected_script": "gone.py"}]}'},
        "case 2: 'gone.py' is not in the package",
    ),
    ({"evals/evals.json": '[{"files": ["evals/a.csv"]}]'}, "case 1: 'evals/a.csv' is not in the package"),
    ({"evals/evals.json": '[{"files": ["../other/a.csv"]}]', "../other/a.csv": ""}, "'../other/a.csv' is not in the"),
    ({"scripts/build.py": SCRIPT.replace("main", "start")}, "has no function main"),
    ({"scripts/build.py": SCRIPT.replace("payload: dict", "payload: dict, more: int")}, "main must take one argument"),
    ({"scripts/build.py": SCRIPT.replace("payload: dict", "*payload: dict")}, "main must take one argument"),
    ({"scripts/build.py": SCRIPT.replace("-> dict", "-> list")}, "must be annotated"),
    ({"scripts/build.py": SCRIPT.replace(": dict)", ")")}, "must be annotated"),
    (
        {"scripts/helper.py": SCRIPT.replace("main", "start"), "scripts/build.py": SCRIPT},
        "helper.py has no function main",
    ),
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


USES = ["Use for sums.", "Used to add up.", "Best suited for sums.", "Triggers on sums.", "Invoke it for sums."]


@pytest.mark.parametrize(
    "changed",
    [
        *({"SKILL.md": SKILL.replace("Use when rungs are asked for.", use)} for use in USES),
        # Files of every kind, in any depth, and files elsewhere.
        {"SKILL.md": f"{SKILL}scripts/run.sh assets/a/b.png\n", "scripts/run.sh": "", "assets/a/b.png": "\0"},
        {
            "SKILL.md": SKILL
            + "other/references/a.md ../references/a.md $DIR/scripts/b.py <a>/scripts/b.py scripts/*.py\n"
        },
        {"references/rungs.md": "See [more](deep/more.md).", "references/deep/more.md": "more"},
        {
            "scripts/build.py": SCRIPT + "from lib import helper\n",
            "scripts/lib/helper.py": "",
            "scripts/lib/__init__.py": "",
        },
        {"scripts/tests/test_build.py": "def test_build():\n    pass\n", "scripts/conftest.py": ""},
        {
            "evals/evals.json": '{"evals": [{"expected_script": "build.py", "files": ["files/a.csv"]}]}',
            "evals/files/a.csv": "",
        },
        {"evals/evals.json": '[{"expected_script": null}, {"expected_script": "skills/bond-ladder/scripts/build.py"}]'},
    ],
)
def test_what_is_sound_is_no_problem(changed: dict[str, str], tmp_path: Path) -> None:
    assert problems(tmp_path, **changed) == []


def test_a_text_cannot_control_the_terminal_and_a_list_has_an_end(tmp_path: Path) -> None:
    found = problems(tmp_path, **{"evals/evals.json": '[{"files": ["\\u001b[2J\\u202e"]}]'})
    assert found
    assert all(line.isprintable() for line in found)
    many = "".join(f"references/{number}.md\n" for number in range(1000))
    found = problems(tmp_path, **{"SKILL.md": SKILL + many, "evals/evals.json": "[]"})
    assert (len(found), found[-1]) == (MAX_PROBLEMS + 1, "and 801 more problems")


def test_a_folder_that_is_none_is_a_problem(tmp_path: Path) -> None:
    assert lint(tmp_path / "nothing") != []
    (tmp_path / "SKILL.md").write_bytes(b"---\nname: \xff")
    assert lint(tmp_path) != []
