"""Suites: the part of an edition that a command works on, and the command that builds a missing one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import SUBTASKS
from tests.editions import write_edition
from tests.scoring.examples import truth

from finskillbench import cli
from finskillbench.analysis.results import collect
from finskillbench.domains import catalog_files, domain_of
from finskillbench.edition import build_edition, load_edition
from finskillbench.episode import Episode, Prompt
from finskillbench.errors import CatalogError, InputError
from finskillbench.reports.tables import common

NOP = ["--model", "baseline/nop", "--condition", "no_skill"]
DESK = ("allocate", "committee_case")
Make = Callable[[Collection[str]], Path]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Write an edition with an episode of each of some subtasks."""
    monkeypatch.chdir(tmp_path)

    def made(names: Collection[str]) -> Path:
        tasks = [
            (
                Episode(
                    f"{name}_1", domain_of(name).name, name, date(2025, 1, 31), "easy", {}, Prompt("Do it.", "JSON.")
                ),
                replace(truth("rebalancing"), task_id=f"{name}_1", sub_task=name),
            )
            for name in names
        ]
        folder = write_edition(Path("both"), tasks)
        shutil.rmtree(folder / "truth")  # what is played, not what it earns
        return folder

    return made


def _played(folder: str) -> set[str]:
    return set(pl.read_parquet(Path(folder) / "rows.parquet")["sub_task"])


def test_a_run_plays_the_paper_unless_another_suite_is_named(make: Make) -> None:
    edition = make([*SUBTASKS, *DESK])
    run = ["run", "--edition", str(edition), *NOP]
    assert cli.main([*run, "--out", "a"]) == 0
    assert cli.main([*run, "--suite", "desk", "--out", "b"]) == 0
    assert cli.main([*run, "--suite", "all", "--out", "c"]) == 0
    assert cli.main([*run, "--subtask", "allocate", "--out", "d"]) == 0
    assert [_played(name) for name in "abcd"] == [{*SUBTASKS}, {*DESK}, {*SUBTASKS, *DESK}, {"allocate"}]


def test_an_edition_of_another_suite_alone_is_run_as_it_is(make: Make) -> None:
    assert cli.main(["run", "--edition", str(make(DESK)), *NOP, "--out", "a"]) == 0
    assert _played("a") == {*DESK}


@pytest.mark.parametrize(
    "command",
    [["run", *NOP, "--edition"], ["plan", *NOP, "--edition"], ["data", "validate"], ["audit"], ["export-tasks"]],
)
@pytest.mark.parametrize("suite", ["desk", "all"])
def test_a_missing_suite_is_refused_with_the_command_that_builds_it(
    suite: str, command: list[str], make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    edition = make(SUBTASKS)
    out = ["out"] if command == ["export-tasks"] else []
    assert cli.main([*command, str(edition), *out, "--suite", suite]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: both has no episodes of the suite desk; build them: "
        f"finskillbench data build --suite {suite} --seed 1 --companies 2 --out both-{suite}"
    )


def test_a_report_of_one_suite(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "--edition", str(make([*SUBTASKS, *DESK])), *NOP, "--out", "a"]
    assert cli.main(run) == 0
    assert cli.main(["report", "a", "--suite", "desk"]) == 2
    assert "a: has no episodes of the suite desk; use finskillbench run --suite desk" in capsys.readouterr().err
    assert cli.main([*run, "--suite", "desk"]) == 0
    assert cli.main(["report", "a", "--suite", "desk", "--by", "subtask"]) == 0
    told = capsys.readouterr().out
    assert "allocate" in told
    assert "rebalancing" not in told


def test_a_committee_case_ranks_no_model(make: Make) -> None:
    """Its score stands in the tables; the suite's mean is that of the other kinds."""
    assert cli.main(["run", "--edition", str(make([*SUBTASKS, *DESK])), *NOP, "--suite", "all", "--out", "a"]) == 0
    rows = pl.read_parquet("a/rows.parquet").with_columns(
        scores=pl.struct(certified=(pl.col("sub_task") == "committee_case").cast(pl.Float64))
    )
    assert set(rows["sub_task"]) >= {*DESK}
    with_headline = common.with_headline(collect(rows).episodes)
    assert with_headline.filter(sub_task="desk")["stratum"].to_list() == ["allocate"]
    assert collect(rows.filter(sub_task="committee_case")).rows["headline"].all()


def test_exported_tasks_are_of_one_suite(make: Make) -> None:
    edition = make([*SUBTASKS, *DESK])
    assert cli.main(["export-tasks", str(edition), "paper"]) == 0
    assert cli.main(["export-tasks", str(edition), "desk", "--suite", "desk"]) == 0
    assert not {path.name for path in Path("paper").iterdir()} & {
        path.name for path in Path("desk").iterdir() if path.is_dir()
    }


def test_a_part_is_the_same_edition(make: Make) -> None:
    edition = load_edition(make([*SUBTASKS, *DESK]))
    part = edition.part("desk")
    assert edition.suites == ("paper", "desk")
    assert (part.digest, part.suites, set(part.sub_tasks)) == (edition.digest, ("desk",), {*DESK})
    assert "2 episodes of 2 subtasks" in repr(part)
    with pytest.raises(InputError, match="has no subtask rebalancing"):
        part.episodes(["rebalancing"])


def test_a_catalog_file_of_a_suite_that_is_not_built_is_refused(tmp_path: Path) -> None:
    for kind in catalog_files():
        if kind.name == "scenarios.json":
            for name, text in kind.example().items():
                (tmp_path / "catalog").mkdir(exist_ok=True)
                (tmp_path / "catalog" / name).write_text(text)
    with pytest.raises(CatalogError, match=r"scenarios.json: only the suite paper reads it; build that suite"):
        build_edition(suite="desk", catalog=tmp_path / "catalog", out=tmp_path / "edition")
