"""Traps avoided and cases signed, from rows of a suite that has a headline of its own."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from tests.rows import synthetic_rows

from finskillbench.analysis import results as module
from finskillbench.analysis.results import collect
from finskillbench.domains import domains
from finskillbench.reports.report import report

SUITE = "risk_management"


@pytest.fixture
def rows() -> pl.DataFrame:
    """Of each subtask of one domain two episodes fell into a trap, and every other case is signed."""
    made = synthetic_rows(3, episodes=6)
    number = pl.int_range(pl.len()).over("model", "condition", "sub_task")
    risk = pl.col("domain") == SUITE
    fallen = pl.when(number < 2).then(pl.lit("fallen")).otherwise(pl.lit("avoided"))
    return made.with_columns(
        signed=pl.when(risk).then(number % 2 == 0),
        traps=pl.when(risk)
        .then(pl.concat_list(pl.format("stale_price@X={}", fallen), pl.lit("unit_slip@Y=untested")))
        .otherwise(pl.lit([], pl.List(pl.String))),
    )


@pytest.fixture
def a_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [replace(one, suite="second") if one.name == SUITE else one for one in domains()]
    monkeypatch.setattr(module, "domains", lambda: made)


@pytest.mark.slow
def test_shares_are_those_of_the_rows(rows: pl.DataFrame) -> None:
    found = report(rows)
    table = found["traps"]
    lines = [dict(zip((column.name for column in table.columns), row, strict=True)) for row in table.rows]
    assert {line["kind"] for line in lines} == {"stale_price", "unit_slip"}
    for line in lines:
        if line["kind"] == "unit_slip":
            assert (line["avoided"], line["fallen"]) == (0, 0)
        else:
            assert line["fallen"] == pytest.approx(2 / line["places"])
            assert line["avoided"] == pytest.approx(1 - 2 / line["places"])
    signed = found["signed"]
    for row in signed.rows:
        assert row[-3] == -(-row[-2] // 2)


def test_rows_without_traps_have_no_such_table() -> None:
    names = {table.name for table in report(synthetic_rows(3, episodes=6)).tables()}
    assert not {"traps", "signed"} & names


@pytest.mark.usefixtures("a_suite")
def test_a_suite_is_summed_up_apart(rows: pl.DataFrame) -> None:
    """Its subtasks are in no headline but their own, which is the mean of theirs."""
    found = collect(rows)
    assert not found.rows.filter(pl.col("domain") == SUITE)["headline"].any()
    one = rows.filter(pl.col("model") == rows["model"][0])
    table = report(one).overview
    by_name = {str(row[0]): row for row in table.rows}
    place = [column.name for column in table.columns].index("mean_curated")
    scores = collect(one).episodes.filter(pl.col("condition") == "curated")
    theirs = scores.filter(pl.col("domain") == SUITE)["score"].mean()
    assert by_name["second"][place] == pytest.approx(theirs)
    others = scores.filter(pl.col("domain") != SUITE, pl.col("headline"))["score"].mean()
    assert by_name["headline"][place] == pytest.approx(others)


@pytest.mark.usefixtures("a_suite")
def test_of_a_suite_alone_the_headline_is_its_own(rows: pl.DataFrame) -> None:
    alone = collect(rows.filter(pl.col("domain") == SUITE))
    assert alone.rows["headline"].all()
    assert "second" not in {str(row[0]) for row in report(rows.filter(pl.col("domain") == SUITE)).overview.rows}
