"""`finskillbench inspect`: what it prints is what a model gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from finskillbench import cli
from finskillbench.runs.store.journal import read_trajectory


@pytest.fixture
def task_id(edition: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["inspect", str(edition)]) == 0
    return capsys.readouterr().out.split()[0]


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["no_skill", "curated", "self_generated", "inline"])
def test_it_is_what_a_run_shows(edition, condition, tmp_path, capsys) -> None:
    out = tmp_path / "run"
    what = ["--condition", condition, "--model", "baseline/nop", "--sample", "1"]
    assert cli.main(["run", "--edition", str(edition), *what, "--out", str(out)]) == 0
    (path,) = out.glob("trajectories/*/*.json.gz")
    trace = read_trajectory(path).trace
    task_id = trace.task_id
    capsys.readouterr()
    assert cli.main(["inspect", str(edition), task_id, "--condition", condition, "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert [each["content"] for each in seen["messages"]] == [each.content for each in trace.messages[:2]]
    assert [each["name"] for each in seen["tools"]] == list(trace.tools)
    assert cli.main(["inspect", str(edition), task_id, "--condition", condition]) == 0
    text = capsys.readouterr().out
    assert all(line in text for line in trace.messages[1].content.splitlines())
    assert all(f"\n{name}(" in text for name in trace.tools)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["TASK", "--condition", "nope"], "condition 'nope' is unknown"),
        (["nope"], "has no task 'nope'; its tasks include "),
        (["--field", "prices"], "--field and --json need a task; add TASK_ID"),
    ],
)
def test_an_unknown_name_is_one_error_line(edition, task_id, more, words, capsys) -> None:
    assert cli.main(["inspect", str(edition), *(task_id if each == "TASK" else each for each in more)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_a_field_is_what_the_tool_returns(synthetic_edition, capsys) -> None:
    path, episode = str(synthetic_edition.path), synthetic_edition.episodes()[0]
    field = next(iter(episode.input))
    assert cli.main(["inspect", path, episode.task_id, "--field", field]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"field": field, "value": synthetic_edition.full_input(episode)[field]}
    assert cli.main(["inspect", path, episode.task_id, "--field", "nope"]) == 2
    assert f"there is no field 'nope'; fields: {field}" in capsys.readouterr().err
