"""Hostile files of strangers' packages: handled or refused in one line, within stated limits, by lint and by a run."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.skills.hostile import cases, fill, sound
from tests.sampling import examples
from typer.testing import CliRunner

from finskillbench.analysis.skills import domains_of
from finskillbench.cli import app
from finskillbench.errors import FinSkillBenchError, SkillError
from finskillbench.harness.conditions import mount_all
from finskillbench.harness.proof import prove_arms
from finskillbench.harness.skills import outline
from finskillbench.harness.skills.lint import MAX_PROBLEMS, lint, script_blocks
from finskillbench.harness.skills.loader import load_package
from finskillbench.harness.skills.outline import outlines
from finskillbench.harness.skills.user_skills import read_user_skills

HOSTILE = dict(cases())


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_handled_or_refused_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outline, "PARSE_SECONDS", 0.1)
    root = sound(tmp_path / "my-notes")
    HOSTILE[name](root)
    problems = lint(root)
    assert len(problems) <= MAX_PROBLEMS + 1
    assert all(line.isprintable() for line in problems)
    refusal = ""
    try:
        given = read_user_skills({"mine": root})
        prove_arms(mount_all(given, given), ("risk_management",))
        domains_of(given["skill:mine"].packages.values())
    except FinSkillBenchError as error:
        refusal = str(error)
    assert "\n" not in refusal
    # Lint names each package that a run refuses.
    assert problems or not refusal


def test_there_are_enough_of_them_put_into_a_sound_package(tmp_path: Path) -> None:
    assert len(HOSTILE) >= 60
    assert lint(sound(tmp_path / "my-notes")) == []


@pytest.mark.parametrize("name", ["script: a sum of 300,000 terms", "script: an f-string", "PEP 723: deep lists"])
def test_the_command_ends_without_a_traceback(name: str, tmp_path: Path) -> None:
    root = sound(tmp_path / "my-notes")
    HOSTILE[name](root)
    result = CliRunner().invoke(app, ["skills", "lint", str(root)])
    assert (result.exit_code, result.output.count("\n")) == (1, 2), result.output


SLOW: dict[str, str] = {"time": 'f"' + fill("{1}") + '"', "memory": "import " + fill("a.") + "a"}


@pytest.mark.parametrize("limit", SLOW)
def test_a_script_is_parsed_within_limits(limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either limit alone ends a parse that would take minutes or 16 GiB."""
    root = sound(tmp_path / "my-notes")
    (root / "scripts" / "total.py").write_text(SLOW[limit])
    if limit == "memory":
        monkeypatch.setattr(outline, "PARSE_SECONDS", 60.0)
    with pytest.raises(SkillError, match=r"scripts/total\.py: cannot be parsed, .*; make it shorter or simpler$"):
        outlines(load_package(root))


REFERENCE = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
"""The expression of PEP 723."""
lines = st.lists(st.sampled_from(["# /// script", "# /// other", "# ///", "#", "# a = 1", "#a", "", "x = 1", " # ///"]))


@settings(max_examples=examples(500))
@given(lines=lines)
def test_blocks_are_those_of_the_expression_of_pep_723(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = [match for match in REFERENCE.finditer(text) if match["type"] == "script"]
    expected = ["".join(line[2:] or "\n" for line in match["content"].splitlines(keepends=True)) for match in found]
    assert script_blocks(text) == expected
