"""`finskillbench report`: runs finished or not, several of them, every format, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest
from tests.oracles.report.rows import Shape, table

from finskillbench import cli
from finskillbench.reports.figures.forest import Figure
from finskillbench.reports.formats import render_latex
from finskillbench.reports.read import RunRows, join_runs
from finskillbench.reports.tables.base import Column, Kind, Table
from finskillbench.runs.store.rows import SCHEMA


def rows(**shape) -> pl.DataFrame:
    # Rows that no run of ours has written have no digests to be checked.
    return pl.DataFrame(table(Shape(1, **shape)), schema=dict(SCHEMA), orient="row").drop("digest")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    rows().write_parquet(path)
    return path


def printed(capsys, *arguments: object) -> str:
    assert cli.main(["report", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def refused(capsys, *arguments: object) -> str:
    assert cli.main(["report", *map(str, arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()[-1]


def test_tables_are_printed(file: Path, capsys) -> None:
    text = printed(capsys, file)
    for title in ("Mean score of each condition over all models", "Mean score by subtask", "Status of episodes"):
        assert title in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "title"),
    [
        ("domain", "Mean score by domain"),
        ("subtask", "Mean score by subtask"),
        ("difficulty", "Mean score by difficulty"),
        ("model", "Mean score by model"),
        ("condition", "Mean score of each condition over all models"),
        ("status", "Status of episodes"),
        ("harness", "Mean score by harness, curated against no_skill"),
    ],
)
def test_tables_are_chosen(file: Path, capsys, by: str, title: str) -> None:
    assert printed(capsys, file, "--by", by).splitlines()[0] == title


def test_every_format_holds_the_same_means(file: Path, capsys, tmp_path: Path) -> None:
    (found,) = json.loads(printed(capsys, file, "--by", "domain", "--format", "json"))
    place = [column["name"] for column in found["columns"]].index("mean_curated")
    means = [row[place] for row in found["rows"]]
    lines = list(csv.DictReader(io.StringIO(printed(capsys, file, "--by", "domain", "--format", "csv"))))
    assert [float(line["mean_curated"]) for line in lines] == means
    shown = [f"{mean:.3f}" for mean in means]
    for form in ("table", "md", "latex"):
        text = printed(capsys, file, "--by", "domain", "--format", form)
        assert all(mean in text for mean in shown)
    out = tmp_path / "out"
    assert printed(capsys, file, "--by", "domain", "--format", "latex", "--out", out).split() == [
        str(out / "domains.tex")
    ]
    assert (out / "domains.tex").read_text() == printed(capsys, file, "--by", "domain", "--format", "latex")


def test_latex_has_the_rules_of_booktabs_and_minus_signs(file: Path, capsys) -> None:
    text = printed(capsys, file, "--by", "difficulty", "--format", "latex")
    head = text.split("\\\\", 1)[0]
    aligned = head.split("\\begin{tabular}{")[1].split("}")[0]
    for line in text.splitlines():
        if line.endswith("\\\\"):
            assert line.replace("\\&", "").count("&") == len(aligned) - 1
    for rule in ("toprule", "midrule", "bottomrule", "label{tab:difficulty}"):
        assert f"\\{rule}" in text
    assert "no\\_skill" in text
    assert "_skill" not in text.replace("\\_skill", "")


def test_latex_has_no_sign_that_it_sets_as_another_or_takes_for_an_argument() -> None:
    columns = (Column("who", "Who", Kind.TEXT), Column("p", "p", Kind.NUMBER, digits=4))
    text = render_latex(Table("t", "T", columns, (("[a|b<c]", 0.00001),), ()))
    assert "\n{[}a\\textbar{}b\\textless{}c] & $<$0.0001 \\\\\n" in text


def test_a_model_is_left_out_and_named_and_stands_in_the_first_table(file: Path, capsys) -> None:
    text = printed(capsys, file, "--exclude", "lab/model-1")
    first, second = text.split("\n\n")[0], "Mean score of each condition over all models"
    assert first == f"{second}, with lab/model-1"
    assert text.count(second) == 2
    assert "Without lab/model-1." in text
    assert "x has no rows; models: lab/model-0, lab/model-1" in refused(capsys, file, "--exclude", "x")


def test_the_papers_values_stand_beside_ours(file: Path, capsys) -> None:
    text = printed(capsys, file, "--paper", "--by", "condition", "--format", "md")
    assert "| Mean, paper |" in text
    assert "+0.162 \\[+0.152, +0.171\\]" in text
    assert "profile paper" not in refused(capsys, file, "--profile", "x")


def test_runs_are_joined_and_a_row_counts_once(tmp_path: Path) -> None:
    whole = rows()
    parts = [RunRows(tmp_path / name, part) for name, part in (("a", whole.head(20)), ("b", whole.tail(30)))]
    both = join_runs([*parts, RunRows(tmp_path / "c", whole)])
    assert both.sort("task_id", "model", "condition").equals(whole.sort("task_id", "model", "condition"))


def test_an_error_gives_way_to_what_another_run_has(tmp_path: Path) -> None:
    one = rows(models=1, subtasks=1, tasks=1)
    failed = one.with_columns(status=pl.lit("error"))
    for order in ([one, failed], [failed, one]):
        found = join_runs([RunRows(tmp_path / str(place), part) for place, part in enumerate(order)])
        assert "error" not in found["status"].to_list()
        assert found.height == one.height


def test_different_rows_of_one_episode_are_refused(file: Path, capsys, tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    rows().with_columns(status=pl.lit("invalid_submission")).write_parquet(other)
    told = refused(capsys, file, other)
    assert "different rows of" in told
    assert "report one of the two" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--by", "x"], "--by 'x' is unknown; choose from: domain, subtask"),
        (["--format", "x"], "--format 'x' is unknown; choose from: table, md, csv, latex"),
        (["--profile", "x"], "profile 'x' is unknown; choose from: paper, strict, certified"),
        (["--out", ""], "--out is empty"),
    ],
)
def test_what_is_none_is_refused(file: Path, capsys, arguments, told) -> None:
    assert told in refused(capsys, file, *arguments)


@pytest.mark.slow
def test_a_page_is_written(file: Path, capsys, tmp_path: Path) -> None:
    pytest.importorskip("font_lato")
    out = tmp_path / "page"
    assert printed(capsys, file, "--format", "html", "--out", out).strip() == str(out / "index.html")
    assert "needs --out DIR" in refused(capsys, file, "--format", "html")
    assert "leave out --by and --paper" in refused(capsys, file, "--format", "html", "--by", "model", "--out", out)


def test_what_is_no_run_is_refused(tmp_path: Path, capsys) -> None:
    assert "neither a run folder" in refused(capsys, tmp_path)
    assert "neither a run folder" in refused(capsys, tmp_path / "absent")


def test_a_cutoff_splits_every_table(file: Path, tmp_path: Path, capsys) -> None:
    whole = printed(capsys, file, "--by", "subtask")
    text = printed(capsys, file, "--by", "subtask", "--cutoff", "2025-02-15")
    assert "Scores before and after the cut-off" in text
    assert "Mean score by subtask, after the cut-off" in text
    assert "before the cut-off" not in whole
    assert max(map(len, text.splitlines())) <= 100
    out = tmp_path / "tables"
    printed(capsys, file, "--cutoff", "lab/model-0=2025-02-15", "--format", "csv", "--out", out)
    before, after = (list(csv.DictReader((out / f"coverage_{side}.csv").open())) for side in ("before", "after"))
    assert {line["model"] for line in (*before, *after)} == {"lab/model-0"}
    told = {path.stem for path in out.iterdir()}
    assert "contamination" in told
    assert not any(name == "subtasks" for name in told)


def test_models_of_unlike_cutoffs_are_not_compared(file: Path, capsys) -> None:
    alike = printed(capsys, file, "--by", "model", "--cutoff", "2025-02-15")
    assert "Models have different cut-offs" not in alike
    unlike = printed(capsys, file, "--by", "model", "--cutoff", "2025-02-15", "--cutoff", "lab/model-0=2025-01-15")
    assert "Models have different cut-offs" in unlike


def test_a_side_without_an_episode_is_left_out(file: Path, capsys) -> None:
    text = printed(capsys, file, "--by", "subtask", "--cutoff", "2024-12-31")
    assert "after the cut-off" in text
    assert "subtask, before the cut-off" not in text


def test_a_cutoff_makes_two_pages(file: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(Figure, "png", lambda figure: b"")  # which takes most of the time of a page
    out = tmp_path / "pages"
    lines = printed(capsys, file, "--format", "html", "--cutoff", "2025-02-15", "--out", out).split()
    assert lines == [str(out / side / "index.html") for side in ("before", "after")]


def test_a_cutoff_that_is_none(file: Path, tmp_path: Path, capsys) -> None:
    assert "not DATE or MODEL=DATE" in refused(capsys, file, "--cutoff", "summer")
    assert "gpt has no rows" in refused(capsys, file, "--cutoff", "gpt=2025-01-01")
    pack = refused(capsys, file, "--format", "validation", "--cutoff", "2025-01-01", "--out", tmp_path / "pack")
    assert "leave out --by, --paper and --cutoff" in pack
