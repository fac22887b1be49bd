"""Cells in words: the same figures in every format that people read."""

from __future__ import annotations

from finskillbench.reports.tables.base import ABSENT, Cell, Column, Estimate, Kind


def cell_text(column: Column, cell: Cell, *, absent: str = ABSENT) -> str:
    """One cell as text: `absent` for an unknown value; an interval follows its value, "[n/a]" stands for none."""
    if cell is None:
        return absent
    if isinstance(cell, str):
        return "".join(each if each.isprintable() else "?" for each in " ".join(cell.split()))
    if not isinstance(cell, Estimate):
        return _number(column, cell, column.decimals)
    if cell.low is None or cell.high is None or cell.low == cell.high:  # a width of nothing is no certainty
        return f"{_number(column, cell.value, column.decimals)} [n/a]"
    decimals = _enough(column, cell.low, cell.high)
    value, low, high = (_number(column, each, decimals) for each in (cell.value, cell.low, cell.high))
    return f"{value} [{low}, {high}]"


def difference_text(difference: Estimate | None) -> str:
    """A difference of scores outside of a table."""
    return cell_text(Column("difference", "Difference", Kind.DIFFERENCE, interval=True), difference)


def titled(column: Column) -> str:
    """The title of a column with its unit."""
    return f"{column.title} ({column.unit})" if column.unit else column.title


def _enough(column: Column, low: float, high: float) -> int:
    """Decimals with which the two ends of an interval are not the same: one that has width must show it."""
    decimals = column.decimals
    while decimals < 12 and _number(column, low, decimals) == _number(column, high, decimals):
        decimals += 1
    return decimals


def _number(column: Column, value: float, decimals: int) -> str:
    value += 0.0  # a negative zero is none
    match column.kind:
        case Kind.COUNT:
            return f"{value:,.0f}"
        case Kind.DIFFERENCE:
            return f"{value:+.{decimals}f}"
        case Kind.SHARE:
            return f"{100 * value:.{decimals}f} %"
        case Kind.NUMBER if 0.0 < value < 0.5 * 10.0**-decimals:
            return f"<{10.0**-decimals:.{decimals}f}"
        case _:
            return f"{value:,.{decimals}f}"
