"""Whatever rows come: every table says what it can, absence is no figure, and nothing but InputError is raised."""

from __future__ import annotations

import math
import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.report.rows import Shape, shapes, table
from tests.sampling import THOROUGH

from finskillbench.errors import InputError
from finskillbench.reports.formats import Format, render
from finskillbench.reports.report import By, report
from finskillbench.reports.tables.base import Estimate, Table
from finskillbench.runs.store.rows import SCHEMA

NOTHING = re.compile(r"[+-]?(0\.\d+) \[[+-]?\1, [+-]?\1\]")


def rows(shape: Shape) -> pl.DataFrame:
    return pl.DataFrame(table(shape), schema=dict(SCHEMA), orient="row")


def ends(found: Table) -> list[float]:
    cells = [cell for row in found.rows for cell in row]
    parts = [part for cell in cells for part in (cell if isinstance(cell, Estimate) else (cell,))]
    return [part for part in parts if isinstance(part, float)]


@pytest.mark.slow
@settings(max_examples=10 if THOROUGH else 4)
@given(shapes(("no_skill", "curated", "docs_only", "scripts_only")), st.sampled_from([60, 100, 200]))
def test_every_table_of_any_rows(shape, width) -> None:
    """Some seconds: each example makes twenty tables and writes them in every format."""
    tables = report(rows(shape), paper=True).tables()
    assert all(math.isfinite(end) for found in tables for end in ends(found))
    text = render(tables, Format.TABLE, width)
    assert max(map(len, text.splitlines())) <= width
    assert not NOTHING.search(text)
    assert "nan" not in text.lower().split()
    for form in Format:
        assert render(tables, form)


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        (Shape(1, errors=100), "ended in an error: there is no score"),
        (Shape(2, arms=("curated",)), "No differences"),
        (Shape(3, models=1, subtasks=1, tasks=1, arms=("no_skill",)), "No differences"),
    ],
)
def test_rows_that_say_little_say_so(shape, told) -> None:
    found = report(rows(shape)).tables()
    assert any(told in note for note in found[0].notes)
    assert all(table.rows for table in found)
    if shape.errors:
        scores = [cell for each in found for name in ("mean", "overall", "mean_no_skill")
                  if name in [column.name for column in each.columns] for cell in each.column(name)]  # fmt: skip
        assert set(scores) == {None}


def test_mixed_rows_are_marked() -> None:
    one = rows(Shape(4, models=1))
    other = one.with_columns(edition=pl.lit("f" * 64), scorer_version=pl.lit("b" * 12), code_version=pl.lit("2.0"))
    notes = " ".join(report(pl.concat([one, other])).overview.notes)
    for told in ("several editions: eeeeeeee, ffffffff", "several scorers: aaaaaaaa, bbbbbbbb", "by 2.0 (no commit)"):
        assert told in notes


@pytest.mark.slow
def test_a_hundred_models_fit_any_width() -> None:
    found = report(rows(Shape(5, models=100, subtasks=2, tasks=2)))
    assert len(found.overview.rows) == 100
    text = render(found.tables(By.MODEL), Format.TABLE, 80)
    assert max(map(len, text.splitlines())) <= 80


def test_no_rows_are_refused() -> None:
    with pytest.raises(InputError, match="empty"):
        report(rows(Shape(6)).clear())
    with pytest.raises(InputError, match="profile 'x' is unknown; choose from: paper, strict, certified"):
        report(rows(Shape(6)), "x")
