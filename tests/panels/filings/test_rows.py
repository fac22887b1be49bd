"""Rows as JSON objects: the literals carry the fields that they stand for, each with its own value."""

import pytest

from finskillbench.panels.filings.rows import AS_FILED, MEMBERS, VISIBLE, as_rows


@pytest.mark.parametrize("fields", [AS_FILED, VISIBLE, MEMBERS, ("tag", "value"), (*VISIBLE, "taxonomy")])
def test_every_value_stands_under_its_field(fields: tuple[str, ...]) -> None:
    rows = as_rows(fields, [[f"{name} {number}" for number in range(3)] for name in fields])
    assert [list(row.items()) for row in rows] == [
        [(name, f"{name} {number}") for name in fields] for number in range(3)
    ]


@pytest.mark.parametrize("fields", [AS_FILED, VISIBLE, MEMBERS, ("tag", "value")])
def test_a_column_that_is_too_short_is_no_shorter_answer(fields: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="longer"):
        as_rows(fields, [["only one"], *([["one", "two"]] * (len(fields) - 1))])
