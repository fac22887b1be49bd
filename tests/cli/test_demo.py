"""`finskillbench demo`, from the small edition to the page, and in a thorough run from an empty cache."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import SUBTASKS
from tests.editions import one_process
from tests.sampling import thorough

from finskillbench import cli
from finskillbench.domains import subtasks, suite_of
from finskillbench.edition import load_edition
from finskillbench.episode import PAPER_SUITE
from finskillbench.reports.figures.forest import Figure


@pytest.mark.slow
def test_it_plays_the_small_edition_with_and_without_skills_and_writes_the_page(
    edition: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Figure, "png", lambda figure: b"")  # which takes most of the time of a page
    monkeypatch.setattr("finskillbench.runs.plan.streams.default_edition", lambda progress, *, small: edition)
    assert cli.main(["demo", "--out", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert f"Page:         {tmp_path / 'run' / 'report' / 'index.html'}\n" in printed
    assert f"Episodes:     {2 * len(SUBTASKS)} run\n" in printed
    rows = pl.read_parquet(tmp_path / "run" / "rows.parquet")
    assert set(rows.select("sub_task", "condition").rows()) == {*product(SUBTASKS, ("no_skill", "curated"))}
    assert (tmp_path / "run" / "report" / "index.html").is_file()


@thorough
@pytest.mark.slow
def test_it_builds_the_small_edition_and_plays_each_subtask_with_and_without_skills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(Figure, "png", lambda figure: b"")  # which takes most of the time of a page
    with one_process():
        assert cli.main(["demo", "--out", str(tmp_path / "run")]) == 0
    names = {one.name for one in subtasks() if one.build is not None and suite_of(one.name) == PAPER_SUITE}
    (folder,) = (path for path in tmp_path.glob("cache/finskillbench/editions/small-*") if path.is_dir())
    edition = load_edition(folder)
    assert edition.manifest["counts"] == dict.fromkeys(names, 1)
    assert len(edition.manifest["universe"]) == 15
    printed = capsys.readouterr().out
    assert f"Page:         {tmp_path / 'run' / 'report' / 'index.html'}\n" in printed
    assert f"Episodes:     {2 * len(names)} run\n" in printed
    rows = pl.read_parquet(tmp_path / "run" / "rows.parquet")
    assert set(rows["status"]) == {"scored"}
    assert set(rows.select("sub_task", "condition").rows()) == {
        (name, condition) for name in names for condition in ("no_skill", "curated")
    }
    means = dict(rows.group_by("condition").agg(pl.col("score").mean()).iter_rows())
    assert means["curated"] > means["no_skill"]
    assert (tmp_path / "run" / "report" / "index.html").is_file()
