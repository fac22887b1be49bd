"""`finskillbench score`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from finskillbench import cli


def test_rows_for_what_was_submitted(edition: Path, answers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = answers.with_name("rows.jsonl")
    assert cli.main(["score", str(edition), str(answers), "--out", str(out)]) == 0
    right, wrong = (json.loads(line) for line in out.read_text().splitlines())
    assert list(right) == ["task_id", "sub_task", "status", "valid_json", "scores", "details"]
    assert (right["task_id"], right["sub_task"], right["status"]) == ("fa_norm_1", "normalization", "scored")
    assert right["scores"]["paper"] == pytest.approx(1.0)
    assert (wrong["status"], wrong["valid_json"]) == ("invalid_submission", False)
    assert set(wrong["scores"].values()) == {0.0}
    assert "2 of 3 episodes: 1 invalid_submission, 1 scored" in capsys.readouterr().out


def test_a_bad_line_is_named_and_nothing_is_written(
    edition: Path, answers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answers.open("a") as file:
        file.write('{"task_id": "pc_tool_1", "ans')
    out = answers.with_name("rows.jsonl")
    assert cli.main(["score", str(edition), str(answers), "--out", str(out)]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {answers}, line 3: not JSON")
    assert sorted(entry.name for entry in answers.parent.iterdir()) == ["answers.jsonl", "edition", "work"]


def test_places_that_cannot_take_the_rows(edition: Path, answers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = answers.read_text()
    for out, printed in ((answers, "is the file of submissions"), (edition, "is a folder"), (answers / "x", "")):
        assert cli.main(["score", str(edition), str(answers), "--out", str(out)]) == 2
        line = capsys.readouterr().err.splitlines()[-1]
        assert line.startswith(f"error: {out}: {printed}")
    assert answers.read_text() == before
    assert sorted(entry.name for entry in answers.parent.iterdir()) == ["answers.jsonl", "edition", "work"]


def test_an_edition_is_never_written_into(edition: Path, answers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in edition.rglob("*") if path.is_file()}
    for out in (edition / "truth" / "rebalancing.jsonl", edition / "rows.jsonl"):
        assert cli.main(["score", str(edition), str(answers), "--out", str(out)]) == 2
        assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {out} is inside the edition {edition}")
    assert {path: path.read_bytes() for path in edition.rglob("*") if path.is_file()} == before


def test_a_file_of_submissions_that_is_not_there(edition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    absent = edition.with_name("absent.jsonl")
    assert cli.main(["score", str(edition), str(absent), "--out", str(edition.with_name("rows.jsonl"))]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {absent}: No such file or directory")
