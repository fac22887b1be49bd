"""A table holds what its columns say, and is written within any width without inventing a figure."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from finskillbench.errors import InternalError
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table, render_text

COLUMNS = (
    Column("model", "Model"),
    Column("episodes", "Episodes", Kind.COUNT),
    Column("mean", "Mean", Kind.SCORE),
    Column("difference", "Difference", Kind.DIFFERENCE, interval=True),
    Column("share", "Share", Kind.SHARE),
    Column("latency", "Latency", Kind.NUMBER, unit="s"),
)


def test_the_rendered_table() -> None:
    rows: tuple[tuple[Cell, ...], ...] = (
        ("gpt-4.1", 5280, 0.366, Estimate(0.162, 0.152, 0.171), 0.0361, 59.75),
        ("other", 3, None, Estimate(0.5), None, -0.0),
    )
    text = render_text(Table("pooled", "Means", COLUMNS, rows, ("A note.",)))
    assert text.splitlines()[-4:] == [
        "gpt-4.1     5,280  0.366  +0.162 [+0.152, +0.171]  3.6 %        59.75",
        "other           3      -             +0.500 [n/a]      -         0.00",
        "",
        "A note.",
    ]


def test_a_narrow_interval_shows_its_width() -> None:
    """Three decimals would show +0.000 [+0.000, +0.000], which says that there is no width."""
    table = Table("t", "T", COLUMNS[3:4], ((Estimate(1e-5, 1e-6, 2e-5),), (Estimate(0.1, 0.1, 0.1),)))
    assert render_text(table).splitlines()[-2:] == ["+0.00001 [+0.00000, +0.00002]", "                 +0.100 [n/a]"]


def test_a_number_that_is_too_small_to_be_written_is_not_written_as_0() -> None:
    table = Table("t", "T", (COLUMNS[5],), ((0.001,), (0.0,), (0.005,)))
    assert [line.strip() for line in render_text(table).splitlines()[-3:]] == ["<0.01", "0.00", "0.01"]


def test_one_row_is_transposed() -> None:
    table = Table("t", "T", COLUMNS, (("m", 2, 0.5, None, 1.0, None),))
    assert render_text(table).splitlines() == [
        *("T", "", "Model        m", "Episodes     2", "Mean         0.500"),
        *("Difference   -", "Share        100.0 %", "Latency (s)  -"),
    ]


def test_an_interval_is_three_columns_of_a_frame() -> None:
    rows: tuple[tuple[Cell, ...], ...] = (
        ("m", 2, 0.5, Estimate(0.1, 0.0, 0.2), 1.0, 3),
        ("n", 0, None, None, None, None),
    )
    frame = Table("t", "T", COLUMNS, rows).to_polars()
    assert frame.rows() == [("m", 2, 0.5, 0.1, 0.0, 0.2, 1.0, 3.0), ("n", 0, None, None, None, None, None, None)]
    assert frame.schema == Table("t", "T", COLUMNS, ()).to_polars().schema
    assert frame.schema["difference_high"] == pl.Float64


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        (COLUMNS[0], 1.0),
        (COLUMNS[1], 1.5),
        (COLUMNS[2], math.nan),
        (COLUMNS[2], "0.5"),
        (COLUMNS[3], 0.5),
        (COLUMNS[2], Estimate(0.5)),
        (COLUMNS[3], Estimate(0.5, 0.1, None)),
        (COLUMNS[3], Estimate(0.5, math.nan, math.nan)),
    ],
)
def test_a_cell_that_does_not_fit_its_column_is_refused(column: Column, cell: Cell) -> None:
    with pytest.raises(InternalError, match="row 0"):
        Table("t", "T", (column,), ((cell,),))


NUMBERS = st.floats(-1, 1, allow_nan=False)
ROWS = st.tuples(
    st.text(max_size=60),
    st.none() | st.integers(0, 10**9),
    st.none() | NUMBERS,
    st.none() | NUMBERS.map(Estimate) | st.builds(Estimate, NUMBERS, NUMBERS, NUMBERS),
    st.none() | NUMBERS,
    st.none() | st.floats(-1e9, 1e9, allow_nan=False),
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(ROWS, max_size=5), st.sampled_from([40, 60, 80, 120, 200]))
def test_no_line_is_longer_than_the_width_and_absence_is_no_figure(rows, width) -> None:
    table = Table("t", "A title of some words " * 4, COLUMNS, tuple(rows), ("A note " * 30,))
    text = render_text(table, width)
    assert max(map(len, text.splitlines())) <= width
    bare = Table("t", "T", COLUMNS[1:], tuple((None,) * 5 for _ in rows))
    assert not set(render_text(bare, width)) & set("0123456789")
