"""`finskillbench show`."""

from __future__ import annotations

import gzip
from pathlib import Path

import orjson
import pytest

from finskillbench import cli
from finskillbench.harness.trace import Trace
from finskillbench.runs.store.journal import read_trajectory


@pytest.fixture
def run(edition: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Two baselines over three episodes under two conditions."""
    folder = edition.with_name("run")
    models = ["--model", "baseline/nop", "--model", "baseline/reference"]
    conditions = ["--condition", "no_skill", "--condition", "self_generated"]
    assert cli.main(["run", "--edition", str(edition), *models, *conditions, "--out", str(folder)]) == 0
    capsys.readouterr()
    return folder


ONE = ["--model", "baseline/reference", "--condition", "self_generated"]


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert cli.main(["show", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert cli.main(["show", *map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


def test_a_conversation_with_its_verdict(run: Path, capsys) -> None:
    text = printed(capsys, run, "pc_rebal_1", *ONE)
    lines = text.splitlines()
    assert lines[0] == "pc_rebal_1: rebalancing, easy, as of 2025-01-31"
    assert lines[1] == "baseline/reference, self_generated, repeat 0"
    speakers = [line for line in lines if line.startswith("--- ")]
    assert speakers[:2] == ["--- system", "--- user"]
    assert speakers[2].startswith("--- assistant, turn 1 (")
    assert speakers[3].startswith("--- result of save_skill (ok, ")
    assert speakers[-3:] == [
        "--- ended: max_turns",
        "--- points lost under paper: 1.0000",
        "--- expected and submitted",
    ]
    assert '-> load_skill {"skill_name":"working-notes"}' in lines
    assert "verdict:   max_turns_exhausted" in lines
    assert any(line.startswith("incidents: tool_failed, ") for line in lines)
    assert any(line.startswith("tokens:    ") and line.endswith("0.0000 USD") for line in lines)
    assert "\x1b" not in text
    assert max(map(len, lines[: lines.index("--- ended: max_turns")])) <= 100


def test_shortened_unless_all_is_asked_for(run: Path, capsys) -> None:
    short = printed(capsys, run, "pc_rebal_1", *ONE, "--lines", 2)
    full = printed(capsys, run, "pc_rebal_1", *ONE, "--full")
    left_out = "one submission"
    assert "--full shows them" in short
    assert left_out not in short
    assert left_out in full
    assert "--full" not in full
    assert short.count("--full") == 1


def test_a_file_is_readable_alone(run: Path, tmp_path: Path, capsys) -> None:
    path = run / "trajectories" / "baseline-nop__no_skill" / "pc_rebal_1__0.json.gz"
    assert "verdict:   scored" in printed(capsys, path)
    alone = tmp_path / "a" / "b" / "alone.json.gz"
    alone.parent.mkdir(parents=True)
    alone.write_bytes(path.read_bytes())
    text = printed(capsys, alone)
    assert text.startswith("pc_rebal_1: rebalancing, easy, as of 2025-01-31\nbaseline/nop, no_skill, repeat 0\n")
    assert "verdict:   not known" in text


def test_what_to_choose_by_is_listed(run: Path, capsys) -> None:
    assert refused(capsys, run, "pc_rebal_1").endswith(
        "has 4 trajectories of pc_rebal_1; choose with --model baseline/nop | baseline/reference, "
        "--condition no_skill | self_generated"
    )
    assert refused(capsys, run, "pc_rebal_1", "--model", "baseline/nop").endswith(
        "choose with --condition no_skill | self_generated"
    )
    line = refused(capsys, run, "pc_rebal_1", "--model", "baseline/trivial")
    assert "has no such trajectory of pc_rebal_1; choose from --model baseline/nop | baseline/reference" in line
    assert refused(capsys, run, "pc_rebal_1", *ONE, "--run-idx", 7).startswith(f"error: {run}: has no such trajectory")


def test_bad_input_is_one_line(run: Path, capsys) -> None:
    assert refused(capsys, run, "pc_rebal_9").endswith(
        "has no trajectory of task 'pc_rebal_9'; its 3 tasks include pc_rebal_1"
    )
    assert refused(capsys, run).endswith("is a folder; add a task id; there are fa_norm_1, pc_rebal_1, pc_tool_1")
    assert "does not exist" in refused(capsys, run / "absent", "x")
    assert "holds no trajectories" in refused(capsys, run / "trajectories", "x")
    (path, *_) = sorted((run / "trajectories").rglob("*.json.gz"))
    assert "leave out the task and the options" in refused(capsys, path, "pc_rebal_1")
    path.write_bytes(path.read_bytes()[:50])
    assert "not a readable trajectory" in refused(capsys, path)
    path.write_bytes(gzip.compress(b"{}"))
    assert "not a trajectory" in refused(capsys, path)


def test_what_a_model_wrote_cannot_command_the_terminal(run: Path, capsys) -> None:
    path = run / "trajectories" / "baseline-nop__no_skill" / "pc_rebal_1__0.json.gz"
    content = orjson.loads(gzip.decompress(path.read_bytes()))
    content["trace"]["messages"][2]["content"] = "\x1b]0;owned\x07 and\r\x1b[2Jgone"
    path.write_bytes(gzip.compress(orjson.dumps(content)))
    text = printed(capsys, path)
    assert "\\x1b]0;owned\\x07 and" in text
    assert not set(text) & {"\x1b", "\x07", "\r"}


def test_a_trace_is_read_back_as_it_was(run: Path) -> None:
    for path in (run / "trajectories").rglob("*.json.gz"):
        trajectory = read_trajectory(path)
        assert isinstance(trajectory.trace, Trace)
        assert orjson.dumps(trajectory) == gzip.decompress(path.read_bytes())
        assert trajectory.item.trajectory == str(path.relative_to(run))
        assert hash(trajectory.trace.messages)


def test_expected_is_shown_next_to_given(run: Path, edition: Path, capsys) -> None:
    task = "pc_rebal_1"
    text = printed(capsys, run, task, "--model", "baseline/nop", "--condition", "no_skill")
    assert "--- expected and submitted" in text
    assert "--- points lost under paper: 1.0000" in text
    assert any(line.startswith("! ") for line in text.splitlines())
    moved = edition.rename(edition.with_name("moved"))
    assert "expected:  the edition of the run is no longer where it was" in printed(capsys, run, task, *ONE)
    assert "--- expected and submitted" in printed(capsys, run, task, *ONE, "--edition", moved)
