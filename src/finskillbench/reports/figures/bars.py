"""Draw stacked bars, marks on a line, and heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from finskillbench.reports.figures.forest import NARROW
from finskillbench.reports.figures.scatter import Scale, short
from finskillbench.reports.figures.svg import Drawing, difference_step, lines_of, score_step

Values: TypeAlias = Sequence[float | None]
_LABELS, _TALL = 300, 22
_ABOVE = 16
"""Height of a name above its line, in a narrow drawing."""


def draw_shares(rows: Sequence[tuple[str, Sequence[int]]], series: Sequence[str], counts: str, width: float) -> Drawing:
    """Draw a stacked bar per row; `counts` titles the row totals at the right."""
    left, above = (4, _ABOVE) if width <= NARROW else (_LABELS, 0)
    drawing = Drawing(width, 0)
    y = 24 + _boxes(drawing, series, left)
    scale = Scale(0.0, 1.0, left, width - 76)
    drawing.text((width, y - 6), counts, "quiet small", "end")
    for name, numbers in rows:
        total, done = sum(numbers), 0
        _name(drawing, name, y, left)
        y += above
        drawing.text((width, y + _TALL / 2 + 4), f"{total:,}", "quiet small", "end")
        for place, number in enumerate(numbers):
            if not number:
                continue
            start, stop = scale(done / total), scale((done + number) / total)
            done += number
            with drawing.tooltip(f"{name}: {number:,} of {total:,} {series[place]} ({number / total:.1%})"):
                drawing.rect((start, y + 4), stop - start, _TALL - 8, f"f{place % 8} edge")
        y += _TALL
    for value in (0.0, 0.5, 1.0):
        drawing.text((scale(value), y + 16), f"{value:.0%}", "quiet small", "middle" if value else "start")
    drawing.height = y + 22
    return drawing


def draw_marks(
    rows: Sequence[tuple[str, Values]], series: Sequence[str], across: str, width: float, *, log: bool = False
) -> Drawing:
    """Draw a line per row with a mark per series; a logarithmic axis needs positive values."""
    left, above = (4, _ABOVE) if width <= NARROW else (_LABELS, 0)
    values = [value for _, each in rows for value in each if value is not None]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    low = low / 1.3 if log else 0.0
    drawing = Drawing(width, 0)
    top = y = 10 + drawing.legend(series, (left + 10, 12), width=width - left)
    scale = Scale(low, high * (1.3 if log else 1.05) or 1.0, left, width - 20, log)
    for name, each in rows:
        _name(drawing, name, y, left)
        y += above
        known = [scale(value) for value in each if value is not None]
        if len(known) > 1:
            drawing.line((min(known), y + _TALL / 2), (max(known), y + _TALL / 2), "zero")
        for place, value in enumerate(each):
            if value is not None:
                with drawing.tooltip(f"{name}, {series[place]}: {value:,.4g}"):
                    drawing.mark((scale(value), y + _TALL / 2), place)
        y += _TALL
    for value in scale.ticks:
        drawing.line((scale(value), top), (scale(value), y), "rule", behind=True)
        drawing.text((scale(value), y + 15), short(value), "quiet small", "middle")
    drawing.centred(((scale.start + scale.end) / 2, y + 34), across, scale.end - scale.start)
    drawing.height = y + 42 + 15 * (len(lines_of(across, scale.end - scale.start)) - 1)
    return drawing


def _name(drawing: Drawing, name: str, y: float, left: float) -> None:
    """Write a row's name at its left, or above it in narrow drawings."""
    if left == _LABELS:
        drawing.text((left - 10, y + _TALL / 2 + 4), name, "ink", "end", most=_LABELS - 14)
    else:
        drawing.text((0, y + 13), name, "ink", most=NARROW)


def _boxes(drawing: Drawing, series: Sequence[str], left: float) -> float:
    x, y = left, 4.0
    for place, name in enumerate(series):
        width = 26 + len(name) * 7.6
        if x > left and x + width > drawing.width:
            x, y = left, y + 18
        drawing.rect((x, y), 12, 12, f"f{place % 8}")
        drawing.text((x + 17, y + 10.5), name, "ink")
        x += width
    return y + 14


_HEAT_LABELS, _CELL, _HEAT_TALL, _SLANT = 220, 62, 30, 112


def draw_heat(rows: Sequence[str], columns: Sequence[str], values: Sequence[Values], *, differences: bool) -> Drawing:
    """Draw `values` row by row, as wide as needed; None is an empty cell with "n/a"."""
    drawing = Drawing(_HEAT_LABELS + _CELL * len(columns) + 90, _SLANT + _HEAT_TALL * len(rows) + 8)
    for place, name in enumerate(columns):
        drawing.slanted((_HEAT_LABELS + _CELL * (place + 0.45), _SLANT - 8), name)
    for place, row in enumerate(rows):
        y = _SLANT + _HEAT_TALL * place
        drawing.text((_HEAT_LABELS - 10, y + _HEAT_TALL / 2 + 4), row, "ink", "end", most=_HEAT_LABELS - 16)
        for column, value in enumerate(values[place]):
            x = _HEAT_LABELS + _CELL * column
            step = None if value is None else difference_step(value) if differences else score_step(value)
            text = "n/a" if value is None else heat_text(value, differences=differences)
            with drawing.tooltip(f"{row}, {columns[column]}: {text}"):
                drawing.rect((x + 1, y + 1), _CELL - 2, _HEAT_TALL - 2, step or "none")
                drawing.text((x + _CELL / 2, y + _HEAT_TALL / 2 + 4), text, f"on-{step}" if step else "quiet", "middle")
    return drawing


def heat_text(value: float, *, differences: bool) -> str:
    """Format a heat map cell, without negative zero."""
    value = round(value, 2) + 0.0
    return f"{value:+.2f}" if differences else f"{value:.2f}"
