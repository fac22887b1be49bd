"""`finskillbench rescore`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from finskillbench import cli
from finskillbench import domains as subtasks
from finskillbench.episode import Profile, Score
from finskillbench.runs.store.journal import exclusive


@pytest.fixture
def run(edition: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A run of the baseline that submits nulls over three episodes."""
    folder = edition.with_name("run")
    arguments = ["--edition", str(edition), "--model", "baseline/nop", "--condition", "no_skill", "--out", str(folder)]
    assert cli.main(["run", *arguments]) == 0
    capsys.readouterr()
    return folder


def pay(monkeypatch: pytest.MonkeyPatch, name: str, value: float) -> None:
    """Let the strict scorer of a subtask pay a fixed score."""
    subtask = subtasks.subtask_named(name)
    scorers = {**subtask.scorers, Profile.STRICT: lambda answer, truth, task_input: Score(value)}
    monkeypatch.setitem(subtasks._subtasks_by_name(), name, replace(subtask, scorers=scorers))


def test_a_table_of_what_moved(run: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    pay(monkeypatch, "rebalancing", 0.25)
    before = (run / "rows.parquet").read_bytes()
    assert cli.main(["rescore", str(run), "--dry-run", "--list"]) == 0
    printed = capsys.readouterr().out
    (line,) = [line for line in printed.splitlines() if line.startswith("rebalancing") and " strict " in line]
    assert line.split() == ["rebalancing", "strict", "1", "1", "0.0000", "0.2500"]
    assert "baseline/nop no_skill pc_rebal_1 0 strict 0.000000 -> 0.250000\n" in printed
    assert "Moved:   1 of 3 scored episodes\n" in printed
    assert "Nothing was written" in printed
    assert (run / "rows.parquet").read_bytes() == before

    assert cli.main(["rescore", str(run)]) == 0
    printed = capsys.readouterr().out
    assert "pc_rebal_1" not in printed
    assert f"Rows:    {run / 'rows.parquet'}\n" in printed
    rows = pl.read_parquet(run / "rows.parquet")
    assert rows.filter(sub_task="rebalancing")["score"].to_list() == [0.25]

    assert cli.main(["rescore", str(run)]) == 0
    assert "Moved:   0 of 3 scored episodes\n" in capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert cli.main(["rescore", *map(str, arguments)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (*_, printed) = captured.err.splitlines()
    assert printed.startswith("error: ")
    return printed


def test_what_cannot_be_judged_again_is_one_line(run: Path, edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "holds no run" in refused(capsys, run / "trajectories")
    assert "holds no run" in refused(capsys, run / "absent")
    assert "is not an edition" in refused(capsys, run, "--edition", run)
    with exclusive(run):
        assert "another process is writing this run" in refused(capsys, run)
    (victim, *_) = (run / "trajectories").rglob("*.json.gz")
    victim.unlink()
    assert str(victim) in refused(capsys, run)


def test_an_edition_that_moved_is_found_by_option(run: Path, edition: Path, capsys, monkeypatch) -> None:
    """The default edition, a different one, is used if the recorded folder is gone."""
    moved = edition.rename(edition.with_name("moved"))
    other = edition.with_name("other")
    (moved / "truth").rename(edition.with_name("withheld"))
    monkeypatch.setattr("finskillbench.runs.plan.streams.default_edition", lambda progress: other)
    assert f"{other} is not an edition" in refused(capsys, run)
    assert "has no truth/" in refused(capsys, run, "--edition", moved)
    edition.with_name("withheld").rename(moved / "truth")
    assert cli.main(["rescore", str(run), "--edition", str(moved)]) == 0
