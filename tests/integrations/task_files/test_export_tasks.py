"""Episodes as folders: all that the tools serve and nothing later, and answers that come back as rows."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from tests.sampling import THOROUGH, thorough

from finskillbench import cli
from finskillbench.domains import subtask_named
from finskillbench.domains.tables import EpisodeTable
from finskillbench.edition import Edition
from finskillbench.edition.store import CANARY
from finskillbench.edition.withheld import export_public
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition
from finskillbench.harness.models import NO_ARGUMENTS
from finskillbench.harness.skills.faults import faulty, followed
from finskillbench.harness.skills.template import package_files
from finskillbench.integrations.task_files import ANSWER
from finskillbench.integrations.task_files.answers import HARNESS, import_answers
from finskillbench.integrations.task_files.write import RECORD, export_tasks
from finskillbench.runs.config import EpisodeSelection
from finskillbench.runs.execute.run import run
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.journal import read_trajectory
from finskillbench.runs.store.rows import SCHEMA

MOST = 10_000 if THOROUGH else 2
"""Episodes of each subtask that are read byte by byte."""
APPOINTED = ("trade_date", "settle_date", "pay_date", "ex_date")
"""Days of a committee's tables that were appointed by its day; what is of a later one is to be left out."""
DAY = re.compile(rb"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")


@pytest.fixture(scope="module")
def handed(synthetic_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / "out"
    export_tasks(synthetic_edition, out, "curated", chosen=EpisodeSelection(limit=1))
    return out


def _record(folder: Path) -> Mapping[str, Any]:
    return orjson.loads((folder / RECORD).read_bytes())


def _foldable(edition: Edition) -> list[str]:
    """The subtasks that are not interactive, which a folder cannot hold."""
    return [name for name in edition.sub_tasks if subtask_named(name).open_interactive_state is None]


def test_a_folder_holds_what_an_agent_would_be_served(synthetic_edition: Edition, handed: Path) -> None:
    record = _record(handed)
    assert len(record["tasks"]) == len(_foldable(synthetic_edition))
    for name, task_id in record["tasks"].items():
        (episode,) = [one for one in synthetic_edition.episodes() if one.task_id == task_id]
        folder = handed / name
        files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        resolved = synthetic_edition.full_input(episode)
        kinds = {field: "csv" if isinstance(value, EpisodeTable) else "json" for field, value in resolved.items()}
        assert {f"data/{field}.{kind}" for field, kind in kinds.items()} <= files
        assert {"prompt.md", "schema.json", "skills/portfolio-construction/SKILL.md"} <= files
        assert not [name for name in files if "truth" in name or "certificate" in name]
        assert CANARY in (folder / "CANARY.txt").read_text()
        words = (folder / "prompt.md").read_text()
        assert episode.prompt.task_description in words
        assert "read `data/<field>.json`" in words
    covariance = next(handed.glob("pc_uncon*/data/covariance_matrix.json"))
    assert len(orjson.loads(covariance.read_bytes())["matrix"]) >= 10


def _but_appointed(path: Path) -> bytes:
    """A file without the days in a table that were appointed by its day: orders ahead, settlements, payments."""
    if path.suffix != ".csv":
        return path.read_bytes()
    table = pl.read_csv(path, infer_schema=False)
    return table.drop(APPOINTED, strict=False).write_csv().encode()


@thorough
@pytest.mark.slow
@pytest.mark.parametrize("which", ["synthetic", "real"])
def test_nothing_in_it_is_later_than_its_day(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Every byte of the episodes, written from a copy without truth and certificates: there is none to export."""
    edition = export_public(request.getfixturevalue(f"{which}_edition"), tmp_path / "public")
    record = export_tasks(edition, tmp_path / "out", chosen=EpisodeSelection(limit=MOST))
    days = {episode.task_id: episode.as_of_date.isoformat().encode() for episode in edition.episodes()}
    assert len(record.tasks) == sum(min(edition.manifest["counts"][name], MOST) for name in _foldable(edition))
    for name, task_id in record.tasks.items():
        for path in (tmp_path / "out" / name).rglob("*"):
            if path.is_file():
                said = path.relative_to(tmp_path / "out").as_posix().encode() + b"\n" + _but_appointed(path)
                later = [day for day in DAY.findall(said) if day > days[task_id]]
                assert not later, (path, later[:3])


@pytest.mark.parametrize("condition", ["curated", "placebo"])
def test_skills_hold_no_dates(synthetic_edition: Edition, tmp_path: Path, condition: str) -> None:
    """They are the same bytes for every day."""
    export_tasks(
        synthetic_edition, tmp_path / "out", condition, chosen=EpisodeSelection(subtasks=["rebalancing"], limit=1)
    )
    skills = [path for path in (tmp_path / "out").glob("*/skills/**/*") if path.is_file()]
    assert skills
    assert not [path for path in skills if DAY.search(path.read_bytes())]


def test_answers_come_back_as_rows_of_a_run(
    synthetic_edition: Edition, handed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = _foldable(synthetic_edition)
    ours = run(synthetic_edition, ["baseline/reference"], ["curated"], names, limit=1, out=tmp_path / "run").rows
    tasks = {task_id: name for name, task_id in _record(handed)["tasks"].items()}
    left_out = sorted(tasks)[0]
    for task_id, name in tasks.items():
        if task_id != left_out:
            item = Item("baseline/reference", NO_ARGUMENTS, Condition.CURATED, task_id, 0)
            answer = read_trajectory(tmp_path / "run" / item.trajectory).trace.answer
            assert answer is not None
            (handed / name / ANSWER).write_text(answer)
    out = tmp_path / "rows.parquet"
    assert cli.main(["score", str(synthetic_edition.path), str(handed), "--model", "mine", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "(1 unanswered: 0)" in printed
    assert "mine" in printed
    rows = pl.read_parquet(out)
    assert rows.columns == list(SCHEMA)
    assert set(rows["harness"]) == {HARNESS}
    same = ["task_id", "sub_task", "condition", "score", "status", "answer_digest", "mount", "edition"]
    answered = pl.col("task_id") != left_out
    assert rows.filter(answered).sort("task_id").select(same).equals(ours.filter(answered).sort("task_id").select(same))
    (missing,) = rows.filter(~answered).to_dicts()
    assert (missing["status"], missing["score"]) == ("incomplete_submission", 0.0)


def test_answers_to_a_planted_fault_come_back_with_its_effect(synthetic_edition: Edition, tmp_path: Path) -> None:
    chosen = EpisodeSelection(subtasks=["rebalancing"], limit=1)
    record = export_tasks(synthetic_edition, tmp_path / "out", "faulty:sign", chosen=chosen)
    ((name, task_id),) = record.tasks.items()
    (episode,) = (each for each in synthetic_edition.episodes(["rebalancing"]) if each.task_id == task_id)
    answer = followed(faulty("sign").values(), "rebalancing", synthetic_edition.full_input(episode))
    (tmp_path / "out" / name / ANSWER).write_bytes(orjson.dumps(answer))
    (row,) = import_answers(synthetic_edition, tmp_path / "out", "mine")
    assert orjson.loads(row.scoring_details)["fault"]["equal"] is True


def test_what_comes_back_spoiled_is_told(synthetic_edition: Edition, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export_tasks(synthetic_edition, out, chosen=EpisodeSelection(subtasks=["normalization"], limit=4))
    first, second, third, _ = sorted(path for path in out.iterdir() if path.is_dir())
    (first / ANSWER).write_bytes(b'{"a": "\xff"}')
    (second / ANSWER).write_text(" \n")
    statuses = {row.task_id: row.status.value for row in import_answers(synthetic_edition, out, "mine")}
    assert sorted(statuses.values()) == ["incomplete_submission"] * 3 + ["invalid_submission"]
    (third / ANSWER).symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="not a regular file"):
        list(import_answers(synthetic_edition, out, "mine"))
    (third / ANSWER).unlink()
    os.mkfifo(third / ANSWER)
    with pytest.raises(InputError, match="not a regular file"):
        list(import_answers(synthetic_edition, out, "mine"))
    (third / ANSWER).unlink()
    third.rename(tmp_path / "elsewhere")
    third.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a link"):
        list(import_answers(synthetic_edition, out, "mine"))
    whole = (out / RECORD).read_bytes()
    for change, words in (
        ({"edition": "0" * 64}, "exported from edition 000000000000"),
        ({"format": 2}, "format 2 is of another version"),
        ({"condition": "none"}, "condition 'none' is unknown"),
        ({"tasks": {"x": "nobody"}}, "names the task 'nobody'"),
        ({"tasks": {"../x": synthetic_edition.episodes()[0].task_id}}, "is not a folder of the export"),
        ({"tasks": 1}, "not a record of exported tasks"),
    ):
        (out / RECORD).write_bytes(orjson.dumps({**orjson.loads(whole), **change}))
        with pytest.raises(InputError, match=words):
            list(import_answers(synthetic_edition, out, "mine"))
    (out / RECORD).write_bytes(b"{")
    with pytest.raises(InputError, match="not a record of exported tasks"):
        list(import_answers(synthetic_edition, out, "mine"))


@pytest.mark.parametrize("condition", ["self_generated", "inline", "scripts_only", "code", "code_curated", "none"])
def test_an_arm_that_no_folder_can_give_is_refused(synthetic_edition: Edition, tmp_path: Path, condition: str) -> None:
    with pytest.raises(InputError, match="condition"):
        export_tasks(synthetic_edition, tmp_path / "out", condition)
    assert not (tmp_path / "out").exists()


def test_skills_of_somebodys_own_go_along(
    synthetic_edition: Edition, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = tmp_path / "notes"
    for name, text in package_files("notes").items():
        (skill / name).parent.mkdir(parents=True, exist_ok=True)
        (skill / name).write_text(text)
    script = (skill / "scripts" / "total.py").read_text()
    # Needs of a script are met where it is to run, which is not here.
    (skill / "scripts" / "total.py").write_text(f'# /// script\n# dependencies = ["no-such-thing"]\n# ///\n{script}')
    out = tmp_path / "out"
    export = ["export-tasks", str(synthetic_edition.path), str(out), "--subtask", "rebalancing", "--limit", "1"]
    assert cli.main([*export, "--skills", f"mine={skill}"]) == 0
    assert "1 episodes under skill:mine" in capsys.readouterr().out
    files = {path.relative_to(out).as_posix().partition("/")[2] for path in out.rglob("*") if path.is_file()}
    skills = {name for name in files if name.startswith("skills/")}
    assert skills == {f"skills/notes/{name}" for name in package_files("notes") if not name.startswith("evals")}
    (row,) = import_answers(synthetic_edition, out, "mine")
    assert (row.condition, {row.domain: row.mount}) == ("skill:mine", _record(out)["mounts"])
    assert cli.main([*export, "--skills", f"mine={skill}", "--condition", "curated"]) == 2
    assert "leave out --condition" in capsys.readouterr().err


def test_the_arms_differ_in_their_skills_alone(synthetic_edition: Edition, tmp_path: Path) -> None:
    for condition in ("no_skill", "docs_only", "curated"):
        export_tasks(
            synthetic_edition,
            tmp_path / condition,
            condition,
            chosen=EpisodeSelection(subtasks=["rebalancing"], limit=1),
        )
    (plain,), (documents,), (whole,) = (
        [path for path in (tmp_path / name).iterdir() if path.is_dir()] for name in ("no_skill", "docs_only", "curated")
    )
    assert not (plain / "skills").exists()
    assert "skills/" not in (plain / "prompt.md").read_text()
    assert not list(documents.rglob("scripts"))
    assert "scripts" not in (documents / "prompt.md").read_text().partition("# Task")[0]
    assert "tested scripts" in (whole / "prompt.md").read_text()
    assert list(whole.rglob("scripts/*.py"))
    for path in (plain / "data").iterdir():
        assert path.read_bytes() == (whole / "data" / path.name).read_bytes()
