"""From a run to the board: what is submitted is judged again, and says what a report of the run says."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import polars as pl
import pytest
from tests.publish.conftest import CONDITIONS, EPISODES, SUBTASKS, Bundled

from finskillbench import run
from finskillbench.analysis.results import collect
from finskillbench.cli import main
from finskillbench.edition import Edition
from finskillbench.harness.programs.reference import Reference
from finskillbench.publish.bundle import Submitter
from finskillbench.publish.bundle.judge import headline_tasks
from finskillbench.publish.bundle.read import read_bundle
from finskillbench.publish.bundle.write import submit_run
from finskillbench.publish.leaderboard import gather_bundles, write_site
from finskillbench.publish.leaderboard.ranking import make_leaderboard
from finskillbench.reports.read import join_runs, read_runs
from finskillbench.reports.report import report
from finskillbench.runs.postprocess.rescore import rescore_run


def board_of(edition: Edition, *paths: Path, **more):
    return make_leaderboard(gather_bundles(paths, edition, **more), headline_tasks(edition.episodes()))


def tables(board) -> dict:
    (suite,) = board.suites
    return {table.name: table for table in suite.tables}


def test_the_same_run_makes_the_same_bytes(bundled: Bundled) -> None:
    first = bundled(trajectories=True)
    content = first.read_bytes()
    first.unlink()
    assert bundled(trajectories=True).read_bytes() == content


def test_an_archive_is_opened_once_whatever_it_holds(bundled: Bundled, monkeypatch: pytest.MonkeyPatch) -> None:
    path, opened = bundled(trajectories=True), []
    monkeypatch.setattr(zipfile, "ZipFile", lambda *a, real=zipfile.ZipFile, **k: opened.append(a) or real(*a, **k))
    assert read_bundle(path).trajectories == len(SUBTASKS) * EPISODES * len(CONDITIONS)
    assert len(opened) == 1


def test_the_figures_are_those_of_the_report(bundled: Bundled, runs: dict[str, Path], small: Edition) -> None:
    paths = [bundled("strong"), bundled("weak"), bundled("middle", "Bob", "bob")]
    found = tables(board_of(small, *paths))
    rows = join_runs(read_runs([runs["strong"], runs["weak"], runs["middle"]]))
    said = {table.name: table for table in report(rows).tables()}["models"]
    ours = {(row[1], condition): row for condition in CONDITIONS for row in found[f"ranking_{condition}"].rows}
    for model, no_skill, curated, gain in zip(
        *(said.column(name) for name in ("model", "mean_no_skill", "mean_curated", "curated_minus_no_skill")),
        strict=True,
    ):
        assert ours[model, "no_skill"][3].value == pytest.approx(no_skill, abs=1e-12)
        assert ours[model, "curated"][3].value == pytest.approx(curated, abs=1e-12)
        assert ours[model, "curated"][4] == pytest.approx(gain, abs=1e-12)
    # And they are what was played: the weak one knows 1 of 12, the strong one 10 and with skills all.
    assert ours["lab/weak", "no_skill"][3].value == pytest.approx(1 / 12)
    assert ours["lab/strong", "curated"][3].value == 1.0


def test_places_are_no_finer_than_the_episodes_can_tell(bundled: Bundled, small: Edition) -> None:
    paths = [bundled("strong"), bundled("weak"), bundled("middle", "Bob", "bob")]
    found = tables(board_of(small, *paths))
    assert list(zip(*(found["ranking_no_skill"].column(name) for name in ("place", "model")), strict=True)) == [
        ("1-2", "lab/strong"),
        ("1-2", "other/middle"),
        ("3", "lab/weak"),
    ]
    pairs = {(row[0], row[1]): row for row in found["pairs_no_skill"].rows}
    assert pairs["lab/strong", "other/middle"][6] > 0.05 > pairs["lab/strong", "lab/weak"][6]


def test_planted_faults_are_judged_again(synthetic_edition: Edition, tmp_path: Path) -> None:
    class Follower(Reference):
        name = "lab/follower"

    run(synthetic_edition, [Follower()], ["faulty:sign"], ["rebalancing"], limit=2, out=tmp_path / "run")
    submit_run(tmp_path / "run", synthetic_edition, tmp_path / "b", Submitter(name="Ann"), key=None, partial="a test")
    found = tables(board_of(synthetic_edition, tmp_path / "b", unsigned=True))["faults"]
    figures = ("condition", "episodes", "faulty")
    (condition,), (episodes,), (share,) = (found.column(name) for name in figures)
    assert (condition, episodes, share.value) == ("faulty:sign", 2, 1.0)


def test_the_programs_stand_beside(bundled: Bundled, small: Edition) -> None:
    programs = bundled("baselines", "The house", None)
    found = tables(board_of(small, bundled("strong"), programs=programs))
    assert found["programs"].column("program") == ("baseline/trivial", "baseline/nop")
    assert found["ranking_curated"].column("model") == ("lab/strong",)


@pytest.mark.slow
def test_a_run_without_the_truth_is_judged_where_it_is(
    public: Edition, small: Edition, keys: dict[str, Path], tmp_path: Path, runs: dict[str, Path], bundled: Bundled
) -> None:
    from tests.publish.conftest import Player

    result = run(public, [Player("lab/strong", 10)], CONDITIONS, out=tmp_path / "run")
    assert set(result.rows["status"]) == {"unjudged"}
    assert result.rows["score"].null_count() == result.rows.height == 2 * EPISODES * len(SUBTASKS)
    # It resumes as any other.
    assert run(public, [Player("lab/strong", 10)], CONDITIONS, out=tmp_path / "run").kept == result.rows.height
    submit_run(tmp_path / "run", public, tmp_path / "b.zip", Submitter(name="Ann"), key=keys["ann"])
    ours = tables(board_of(small, tmp_path / "b.zip"))
    # Where the truth is at hand later, the run is judged as any other.
    rescore_run(tmp_path / "run", small)
    judged, known = (pl.read_parquet(folder / "rows.parquet") for folder in (tmp_path / "run", runs["strong"]))
    assert judged["scores"].to_list() == known["scores"].to_list()
    theirs = tables(board_of(small, bundled("strong")))
    assert ours["ranking_curated"].rows == theirs["ranking_curated"].rows


def test_the_commands_from_end_to_end(
    runs: dict[str, Path], small: Edition, keys: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle, site = tmp_path / "b.zip", tmp_path / "site"
    said = ["--name", "Ann's lab", "--url", "https://lab.example/a?b=1&c", "--contact", "ann@lab.example"]
    assert main(["submit", str(runs["strong"]), "--out", str(bundle), *said, "--key", str(keys["ann"])]) == 0
    assert f"{bundle}: 72 episodes, signed with" in capsys.readouterr().out
    signers = tmp_path / "allowed"
    signers.write_text(f"ann@lab.example {keys['ann'].with_suffix('.pub').read_text()}")
    asked = ["--edition", str(small.path), "--out", str(site), "--signers", str(signers)]
    assert main(["leaderboard", "build", str(bundle), *asked]) == 0
    page = (site / "index.html").read_text()
    assert "Ann&#39;s lab" in page
    assert 'href="https://lab.example/a?b=1&amp;c"' in page
    assert "of ann@lab.example" in page
    told = json.loads((site / "leaderboard.json").read_bytes())
    assert told["edition"] == small.digest
    with (site / "tables" / "paper" / "ranking_curated.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["place"], row["model"], float(row["score"])) == ("1", "lab/strong", 1.0)
    # A second time is refused, and nothing of the first is touched.
    assert main(["leaderboard", "build", str(bundle), *asked]) == 2
    assert (site / "index.html").read_text() == page


def test_a_cut_off_says_which_episodes_come_after_it(bundled: Bundled, small: Edition) -> None:
    from datetime import date

    found = tables(board_of(small, bundled(cutoff=lambda _: date(2025, 3, 15))))
    assert found["ranking_curated"].column("after_cutoff") == ("27 of 36 (2025-03-15)",)


def test_a_folder_is_a_bundle_too(
    small: Edition, runs: dict[str, Path], keys: dict[str, Path], tmp_path: Path, bundled: Bundled
) -> None:
    from finskillbench.publish.bundle import Submitter
    from finskillbench.publish.bundle.write import submit_run

    submit_run(runs["strong"], small, tmp_path / "b", Submitter(name="Ann"), key=keys["ann"])
    assert read_bundle(tmp_path / "b").digest == read_bundle(bundled()).digest


def test_a_page_is_written_whole_or_not_at_all(
    bundled: Bundled, small: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import date

    from finskillbench.publish import leaderboard

    def broken(*_: object) -> None:
        raise OSError("no space")

    gathered = gather_bundles([bundled()], small)
    monkeypatch.setattr(leaderboard, "write_atomic", broken)
    with pytest.raises(OSError, match="no space"):
        write_site(gathered, small, tmp_path / "site", today=date(2026, 1, 2))
    assert not (tmp_path / "site").exists()


@pytest.mark.slow
def test_what_a_report_of_rows_without_scores_says(public: Edition, tmp_path: Path, capsys) -> None:
    assert main(["run", "--edition", str(public.path), "--model", "baseline/nop", "--out", str(tmp_path / "r")]) == 0
    assert "No scores" in capsys.readouterr().out
    assert collect(join_runs(read_runs([tmp_path / "r"]))).episodes.is_empty()
