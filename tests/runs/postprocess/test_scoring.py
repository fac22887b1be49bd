"""Rows in, verdicts out: what a file of submissions may hold, and what comes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.scoring.examples import EXPECTED, truth

from finskillbench.episode import Episode, Prompt, Submission
from finskillbench.errors import InputError
from finskillbench.runs.postprocess import scoring

NAMES = ("unconstrained_optimization", "rebalancing", "normalization")


def fake_edition():
    """Three episodes named after their subtasks, with the labels of the scoring tests."""
    prompt = Prompt("do it", "as JSON")
    episodes = tuple(Episode(name, "skill", name, date(2025, 1, 31), "easy", {}, prompt) for name in NAMES)
    return SimpleNamespace(
        path=Path("fake"),
        episodes=lambda sub_tasks=None: episodes,
        truth=lambda task_id: replace(truth(task_id), task_id=task_id),
        full_input=lambda episode: {},
    )


def write(folder: Path, *lines: object) -> Path:
    file = folder / "answers.jsonl"
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return file


def line(task_id: object = NAMES[0], answer: object = "{}") -> dict[str, object]:
    return {"task_id": task_id, "answer": answer}


def test_a_right_answer_scores_one_under_every_profile_of_its_subtask() -> None:
    submissions = [Submission(name, json.dumps(EXPECTED[name])) for name in reversed(NAMES)]
    rows = list(scoring.score(fake_edition(), submissions))
    assert [row["task_id"] for row in rows] == list(reversed(NAMES))
    for row in rows:
        assert list(row) == ["task_id", "sub_task", "status", "valid_json", "scores", "details"]
        assert (row["sub_task"], row["status"], row["valid_json"]) == (row["task_id"], "scored", True)
        assert row["scores"]["paper"] == pytest.approx(1.0)


def test_what_is_left_out_of_a_subtask_scores_nothing() -> None:
    edition = fake_edition()
    (first, *rest) = edition.episodes()
    edition.episodes = lambda: (first, replace(first, task_id="left out"), *rest)
    edition.truth = lambda task_id: replace(truth(NAMES[0]), task_id=task_id)
    right = Submission(NAMES[0], json.dumps(EXPECTED[NAMES[0]]))
    _, missing = scoring.score(edition, [right])
    assert (missing["task_id"], missing["status"], set(missing["scores"].values())) == (
        "left out",
        "incomplete_submission",
        {0.0},
    )


def test_null_is_no_submission_and_rubbish_is_an_invalid_one(tmp_path: Path) -> None:
    file = write(tmp_path, line(answer=None), "", line(NAMES[1], "\ud800{"), line(NAMES[2], '{"a": NaN}'))
    rows = list(scoring.score(fake_edition(), scoring.read_submissions(file, NAMES)))
    assert [row["status"] for row in rows] == ["incomplete_submission", "invalid_submission", "invalid_submission"]
    assert [row["valid_json"] for row in rows] == [True, False, False]
    assert {value for row in rows for value in row["scores"].values()} == {0.0}


@pytest.mark.parametrize(
    ("bad", "printed"),
    [
        ('{"task_id": "rebalancing", "ans', "line 2: not JSON"),
        ("[1]", "line 2: not a JSON object"),
        ("[" * 100_000, "line 2: "),
        ('{"task_id": "a", "task_id": "b", "answer": ""}', "line 2: not JSON (a key is given twice)"),
        ({"task_id": NAMES[1]}, "line 2: no 'answer'"),
        ({"answer": "{}"}, "line 2: no 'task_id'"),
        (line(7), "line 2: task_id is not a string"),
        ('{"task_id": ' + "9" * 5_000 + ', "answer": ""}', "line 2: task_id is not a string; write"),
        (line(NAMES[1], {"weights": {}}), "line 2: answer is not text"),
        (line("pc_uncon_404"), "line 2: task 'pc_uncon_404' is not in the edition"),
        (line(NAMES[0]), f"line 2: task '{NAMES[0]}' was answered in line 1"),
    ],
)
def test_a_bad_line_is_named_with_its_mend(tmp_path: Path, bad: object, printed: str) -> None:
    file = write(tmp_path, line(), bad)
    with pytest.raises(InputError) as caught:
        scoring.read_submissions(file, NAMES)
    assert str(caught.value).startswith(f"{file}, {printed}")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_empty_or_not_text_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path)
    with pytest.raises(InputError, match="no submissions"):
        scoring.read_submissions(file, NAMES)
    file.write_bytes(b'{"task_id": "\xff"}\n')
    with pytest.raises(InputError, match="line 1: not UTF-8 at byte 13"):
        scoring.read_submissions(file, NAMES)


def test_a_byte_order_mark_is_ignored_at_the_start_alone(tmp_path: Path) -> None:
    file = write(tmp_path, line(), line(NAMES[1]))
    plain = scoring.read_submissions(file, NAMES)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert scoring.read_submissions(file, NAMES) == plain
    write(tmp_path, line(), "\ufeff" + json.dumps(line(NAMES[1])))
    with pytest.raises(InputError, match="line 2: not JSON"):
        scoring.read_submissions(file, NAMES)


def test_submissions_that_no_file_checked_are_checked_too() -> None:
    with pytest.raises(InputError, match="'elsewhere' is not in fake"):
        list(scoring.score(fake_edition(), [Submission("elsewhere", "{}")]))
    with pytest.raises(InputError, match="submitted twice"):
        list(scoring.score(fake_edition(), [Submission(NAMES[0], "{}")] * 2))


def test_rows_are_written_all_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    out.write_text("before\n")

    def failing():
        yield {"task_id": "a"}
        raise InputError("half-way")

    with pytest.raises(InputError, match="half-way"):
        scoring.write_verdicts(failing(), out)
    assert [entry.name for entry in tmp_path.iterdir()] == ["rows.jsonl"]
    assert out.read_text() == "before\n"
    assert scoring.write_verdicts([{"quoted": "\ud800", "big": 10**30}], out) == 1
    assert json.loads(out.read_text()) == {"quoted": "\ud800", "big": 10**30}
