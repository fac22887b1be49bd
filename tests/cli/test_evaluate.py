"""`finskillbench skills eval`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from tests.scoring.examples import EXPECTED

from finskillbench import cli
from finskillbench.cli import evaluate as evaluation
from finskillbench.harness.model import ToolCall, Turn, Usage
from finskillbench.harness.programs.program import result_of

NAME = "filing-notes"
DOCUMENT = f"""---
name: {NAME}
description: Reads filings. Use for fundamental_analysis.
---
Run `scripts/answer.py`.
"""
SCRIPT = f'''"""The answer."""


def main(payload: dict) -> dict:
    """Know it."""
    return {{"answer": {EXPECTED["normalization"]!r}}}
'''


class Careful:
    """Loads a skill where the task is of its domain and runs its script; else submits nothing."""

    name = "test/careful"

    async def generate(self, messages, tools, tool_choice):
        results = [json.loads(result_of(message)) for message in messages if message.role == "tool"]
        listed = any(f"- {NAME}:" in tool.description for tool in tools)
        step = ToolCall("3", "submit_answer", json.dumps({"answer": "{}"}))
        if listed and "Subtask: normalization" in messages[1].content:
            step = (
                ToolCall("1", "load_skill", json.dumps({"skill_name": NAME})),
                ToolCall("2", "run_skill_script", json.dumps({"script_path": "scripts/answer.py"})),
                ToolCall("3", "submit_answer", json.dumps({"answer": json.dumps(results[-1]["output"]["answer"])}))
                if len(results) == 2
                else step,
            )[len(results)]
        return Turn(tool_calls=(step,), usage=Usage(input_tokens=10, output_tokens=5, cost_usd=0.25))


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "skills" / "Filing Notes"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(DOCUMENT)
    (folder / "scripts" / "answer.py").write_text(SCRIPT)
    return folder


def evaluate(*words: object) -> int:
    return cli.main(["skills", "eval", *map(str, words)])


@pytest.mark.slow
def test_a_skill_against_none(skill: Path, edition: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "figures.json", tmp_path / "run"
    words = (skill, "--edition", edition, "--out", out, "--json", file, "--model", f"{__name__}:Careful")
    assert evaluate(*words) == 0
    shown = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert lines[0] == f"{NAME}: skill:filing-notes against no_skill, test/careful"
    assert "its domain 1 0.000 1.000 +1.000 [n/a]" in lines
    assert "all 3 0.000 0.333 +0.333 [n/a]" in lines
    assert "skill:filing-notes 3 1.7 1.7 17 8 1.25" in lines
    assert "Meant for: fundamental_analysis (from its documents; --domain overrides)" in lines
    assert "Trigger: 1.00 (1 of 1) of the episodes of its domain" in lines
    assert "False trigger: 0.00 (0 of 2) of the others" in lines
    assert "Scores that went up: 1" in lines
    assert "Scores that went down: 0" in lines
    (command,) = (line for line in lines if "finskillbench show" in line)
    assert cli.main(shlex.split(command.partition("finskillbench ")[2])) == 0
    assert f"scripts:   {NAME}/scripts/answer.py" in capsys.readouterr().out
    figures = json.loads(file.read_text())
    assert figures["trigger"] == {"loaded": 1, "episodes": 1, "rate": 1.0}
    assert [part["name"] for part in figures["parts"]] == ["its domain", "other domains", "all"]
    (flip,) = figures["flips"]
    assert (flip["task_id"], flip["reference"], flip["treated"]) == ("fa_norm_1", 0.0, 1.0)
    for command in flip["show"]:
        assert cli.main(shlex.split(command)[1:]) == 0
    capsys.readouterr()
    assert evaluate(*words) == 0
    assert "6 kept from before" in capsys.readouterr().out


def test_one_folder_against_another(skill: Path, edition: Path, tmp_path: Path, capsys) -> None:
    older = tmp_path / "older" / skill.name
    older.mkdir(parents=True)
    (older / "SKILL.md").write_text(DOCUMENT.replace("Run `scripts/answer.py`.", "Think."))
    words = ("--edition", edition, "--model", f"{__name__}:Careful", "--domain", "portfolio_construction")
    assert evaluate(skill, "--against", older, "--out", tmp_path / "run", *words) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{NAME}: skill:filing-notes against skill:filing-notes-2, ")
    assert "Trigger:       0.00 (0 of 2) of the episodes of its domain" in shown
    assert "False trigger: 1.00 (1 of 1) of the others" in shown
    assert "Meant for:     portfolio_construction (from --domain)" in shown


@pytest.mark.slow
def test_a_new_package_can_be_evaluated_at_once(edition: Path, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "my-notes"
    assert cli.main(["skills", "new", str(folder)]) == 0
    assert f"finskillbench skills eval {folder} --model MODEL" in capsys.readouterr().out
    words = ("--edition", edition, "--model", "baseline/reference", "--out", tmp_path / "run")
    assert evaluate(folder, "--keep-curated", "--against", "curated", *words) == 0
    shown = capsys.readouterr().out
    assert "my-notes: skill:my-notes against curated, baseline/reference (program)" in shown
    assert "set it with --domain" in shown
    (command,) = (line.split() for line in shown.splitlines() if "finskillbench skills eval" in line)
    assert command[1:4] == ["skills", "eval", str(folder)]


def test_repeats_show_noise_and_a_gain_its_sample_size(skill: Path, edition: Path, tmp_path: Path, capsys) -> None:
    words = (skill, "--edition", edition, "--model", f"{__name__}:Careful", "--domain", "fundamental_analysis")
    words = (*words, "--domain", "portfolio_construction", "--epochs", "2", "--gain", "0.1", "--out", tmp_path / "run")
    assert evaluate(*words) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "Two identical runs, its domain" in lines
    assert any(line.startswith("skill:filing-notes 3 2.0 0.0 % [0.0 %,") for line in lines)
    assert not any(line.startswith("Episodes for a gain") for line in lines)  # three clusters have no interval
    assert evaluate(*words, "--json") == 0
    assert [table["name"] for table in json.loads(capsys.readouterr().out)["tables"]] == ["noise"]


def test_a_sequential_run_ends_and_resumes(skill: Path, edition: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)  # the default run folder
    words = (skill, "--edition", edition, "--model", f"{__name__}:Careful", "--sequential")
    assert evaluate(*words) == 0
    shown = capsys.readouterr().out
    assert "difference, always-valid 95 % interval" in shown
    assert "Sequential run: 3 of 3 episodes; no decision." in shown
    assert "Episodes:     6 run\n" in shown
    (line,) = (line for line in shown.splitlines() if line.startswith("all "))
    assert line.split()[-3:-2] == ["+0.250"]  # of the means 0.5 and 0 of two clusters
    assert evaluate(*words) == 0
    assert "Episodes:     0 run, 6 kept from before\n" in capsys.readouterr().out


def test_a_sequential_run_stops_at_a_decision(skill: Path, edition: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(evaluation, "_decision", lambda found, gain: f"stopped at {gain} with {len(found.parts)} parts")
    words = (skill, "--edition", edition, "--model", f"{__name__}:Careful", "--gain", "0.2", "--sequential")
    assert evaluate(*words, "--out", tmp_path / "run") == 0
    assert "Sequential run: 1 of 3 episodes; stopped at 0.2 with 3 parts." in capsys.readouterr().out
    assert pl.read_parquet(tmp_path / "run" / "rows.parquet")["condition"].to_list() == [
        "no_skill",
        "skill:filing-notes",
    ]


@pytest.mark.parametrize(
    ("interval", "reason"),
    [
        (None, None),
        ((-0.1, 0.3), None),
        ((-0.1, 0.06), None),
        ((0.01, 0.3), "stopped: the interval of its domain excludes 0"),
        ((-0.3, -0.01), "stopped: the interval of its domain excludes 0"),
        ((-0.1, 0.04), "stopped: the interval of its domain excludes a gain of 0.05"),
    ],
)
def test_decisions(interval: tuple[float, float] | None, reason: str | None) -> None:
    found = SimpleNamespace(parts=[SimpleNamespace(name="its domain", interval=interval)])
    assert evaluation._decision(found, 0.05) == reason


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["{skill}", "--sequential", "--against", "self_generated_persistent"],
            "--sequential needs independent episodes",
        ),
        (["{empty}"], "no SKILL.md in it or in a folder below it"),
        (["{skill}", "--against", "nowhere"], "nowhere: no such folder of skills"),
        (["{skill}", "--domain", "nowhere"], "unknown domain 'nowhere'"),
        (["{skill}", "--python", "/bin/false"], "/bin/false: not an interpreter of Python"),
    ],
)
def test_an_error_is_one_line_and_nothing_is_run(
    skill: Path, edition: Path, tmp_path: Path, capsys, words: list[str], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    filled = [word.format(empty=tmp_path / "empty", skill=skill) for word in words]
    out = tmp_path / "run"
    assert evaluate(*filled, "--model", "baseline/nop", "--edition", edition, "--out", out) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_plan_and_run_take_skills(skill: Path, edition: Path, tmp_path: Path, capsys) -> None:
    words = [
        "--edition",
        str(edition),
        "--model",
        "baseline/nop",
        "--condition",
        "no_skill",
        "--skills",
        f"mine={skill}",
    ]
    assert cli.main(["plan", *words]) == 0
    assert "skill:mine" in capsys.readouterr().out
    assert cli.main(["run", *words, "--out", str(tmp_path / "run")]) == 0
    assert "skill:mine - no_skill" in capsys.readouterr().out
