"""`finskillbench report --format html`."""

from __future__ import annotations

from pathlib import Path

import pytest

from finskillbench import cli
from finskillbench.reports.read import RunRows


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert cli.main(["report", *map(str, arguments)]) == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.usefixtures("no_pictures")
def test_a_page_is_written_and_named(hostile_run: RunRows, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page"
    arguments = ["report", str(hostile_run.path), "--format", "html", "--out", str(out)]
    assert cli.main([*arguments, "--trajectories", "1", "--no-truth"]) == 0
    assert capsys.readouterr().out == f"{out / 'index.html'}\n"
    assert len(list((out / "episodes").iterdir())) == 12
    assert cli.main([*arguments, "--trajectories", "none"]) == 0
    assert not (out / "episodes").exists()
    assert cli.main([*arguments, "--trajectories", "all"]) == 0
    assert "This page has every trajectory." in (out / "index.html").read_text()


def test_what_cannot_be_meant_is_refused(
    hostile_run: RunRows, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = [hostile_run.path, "--format", "html"]
    many = refused(capsys, *wanted, "--out", tmp_path / "page", "--trajectories", "many")
    assert many == "error: --trajectories 'many' is unknown; give all, none or a number"
    assert not (tmp_path / "page").exists()
