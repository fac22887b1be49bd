"""Hidden fields of a case are checked before it is played: `stages/` may come from a stranger."""

from __future__ import annotations

import base64
import tracemalloc
import zlib
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from desk_tests.trade_over_time.cases import case

from finskillbench.cli import main
from finskillbench.edition import Edition, load_edition
from finskillbench.edition.checks.engine import validate_edition
from finskillbench.edition.parts import write_subtask
from finskillbench.edition.references import References
from finskillbench.edition.store import write_lines, write_manifest
from finskillbench.errors import EditionError
from finskillbench_desk.trade_over_time.subtask import SUBTASK

Row = dict[str, Any]
NAME = SUBTASK.name


def edition_of(folder: Path, change: Callable[[Row], object]) -> Edition:
    """An edition of one case, sealed after the line of its stage was changed."""
    task = case("easy", 0)
    write_subtask(folder, SUBTASK, iter([task]), References(folder, ()))
    line = {"task_id": task.episode.task_id, "hidden": deepcopy(task.hidden)}
    change(line)
    write_lines(folder / "stages" / f"{NAME}.jsonl", [line])
    source = {"kind": "synthetic", "names": 2}
    rest: Row = {"seed": 1, "universe": ["A", "B"], "as_of_dates": ["2025-01-31"], "parameters": {}, "notes": []}
    write_manifest(folder, {"source": source, "counts": {NAME: 1}, "versions": {}, **rest})
    return load_edition(folder)


def put(*keys: str, to: Any) -> Callable[[Row], object]:
    def change(row: Row) -> None:
        for key in keys[:-1]:
            row = row[key]
        row[keys[-1]] = to

    return change


def zeros(count: int) -> str:
    return base64.b64encode(zlib.compress(bytes(count), 9)).decode()


WRONG = {
    "an empty line": lambda row: row.clear(),
    "no hidden": lambda row: row.pop("hidden"),
    "an empty hidden": put("hidden", to={}),
    "a hidden that is text": put("hidden", to="none"),
    "no outage": lambda row: row["hidden"].pop("outage"),
    "one field more": put("hidden", "more", to=1),
    "a week that is text": put("hidden", "week", to="one"),
    "a day of no calendar": put("hidden", "first_day", to="2024-02-31"),
    "notices of another shape": put("hidden", "notices", to=[["one"]]),
    "signals that are no text": put("hidden", "signals", to=7),
    "signals that are not compressed": put("hidden", "signals", to="AAAA"),
    "too few signals": put("hidden", "signals", to=zeros(2)),
    "a desk of nothing": put("hidden", "desk", to={}),
    "a clip of nothing": put("hidden", "desk", "clip", to=0),
    "impact of one name": put("hidden", "desk", "impact", to=[1.0]),
    "a sector that is not there": put("hidden", "desk", "sectors", to=[]),
    "exposures of one factor": put("hidden", "desk", "exposures", to=[[1.0]] * 120),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_malformed_stage_is_refused_by_its_file(name: str, tmp_path: Path) -> None:
    edition = edition_of(tmp_path / "edition", WRONG[name])
    with pytest.raises(EditionError, match=rf"stages/{NAME}\.jsonl.*rebuild the edition"):
        edition.open_interactive_state(edition.episodes()[0])


def test_a_run_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edition = edition_of(tmp_path / "edition", lambda row: row.clear())
    arguments = ["--edition", f"{edition.path}", "--model", "baseline/heuristic", "--out", f"{tmp_path / 'run'}"]
    assert main(["run", "--suite", "desk", "--condition", "no_skill", *arguments]) == 2
    assert f"stages/{NAME}.jsonl, line 1: no hidden of a task" in capsys.readouterr().err


def test_no_more_is_unpacked_than_there_should_be(tmp_path: Path) -> None:
    edition = edition_of(tmp_path / "edition", put("hidden", "signals", to=zeros(2**26)))
    tracemalloc.start()
    try:
        with pytest.raises(EditionError, match="signals must contain"):
            edition.open_interactive_state(edition.episodes()[0])
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (put("hidden", "outage", to=5), ["hidden.outage differs from the label"]),
        (put("hidden", "week", to=7), ["hidden.week differs from the label"]),
        (put("hidden", "desk", "clip", to=1.0), ["hidden.desk differs from the label"]),
        (put("task_id", to="another"), ["stages/ has no entry"]),
        (lambda row: None, []),
    ],
)
def test_validation_holds_a_stage_against_its_label(
    change: Callable[[Row], object], found: list[str], tmp_path: Path
) -> None:
    report = validate_edition(edition_of(tmp_path / "edition", change))
    messages = [finding.message for check in report.checks for finding in check.findings]
    stages = [message for message in messages if "stage" in message or "hidden" in message]
    assert len(stages) == len(found)
    assert all(words in message for words, message in zip(found, stages, strict=True))
