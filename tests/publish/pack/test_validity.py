"""The statements on validity: as documented, and saturation counted from the rows."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.rows import synthetic_rows
from tests.small_rows import table as rows_of

from finskillbench.analysis.results import collect
from finskillbench.domains import domains
from finskillbench.publish.pack.validity import saturation_table, statement_tables
from finskillbench.reports.formats import Format, render

ROOT = Path(__file__).parents[3]


def test_the_page_prints_the_tables_of_the_pack() -> None:
    page = (ROOT / "docs" / "validity.md").read_text(encoding="utf-8")
    for table in statement_tables():
        rows = [line for line in render([table], Format.MARKDOWN).splitlines() if line.startswith("|")][2:]
        missing = [row for row in rows if " ".join(row.split()) not in " ".join(page.split())]
        assert missing == [], f"docs/validity.md lacks these rows of {table.name}"


def test_every_demand_has_evidence_and_every_subtask_has_its_work() -> None:
    work, _, demands = statement_tables()
    assert len(demands.rows) >= 20
    assert {row[2] for row in demands.rows} == {"met", "partly", "not met"}
    named = " ".join(str(row[1]) for row in work.rows)
    assert [each.name for one in domains() for each in one.subtasks if each.name not in named] == []


def test_saturation_counts_models_near_the_ceiling_under_their_best_condition() -> None:
    rows = synthetic_rows(2, episodes=4, repeats=1)
    results = collect(rows)
    first, *_ = results.models
    perfect = results.episodes.with_columns(
        score=pl.when((pl.col("model") == first) & (pl.col("condition") == "curated")).then(1.0).otherwise(0.2)
    )
    table = saturation_table(replace(results, episodes=perfect))
    assert {row[2] for row in table.rows} == {1.0}
    assert {row[4] for row in table.rows} == {0.5}


def test_the_ceiling_is_the_reference_program_with_curated_skills() -> None:
    scores = {("baseline/reference", "curated"): 0.6, ("baseline/reference", "no_skill"): 0.2, ("m", "no_skill"): 0.56}
    rows = [(model, condition, "rebalancing", f"r{item}", score, score) for (model, condition), score in scores.items()
            for item in range(3)]  # fmt: skip
    subtask, *_ = saturation_table(collect(rows_of(*rows))).rows
    assert subtask[1:] == (1, pytest.approx(0.56), pytest.approx(0.6), 1.0)
