"""A heat map: one number for each row and column, on its colour."""

from __future__ import annotations

from collections.abc import Sequence

from finskillbench.reports.figures.style import difference_step, score_step
from finskillbench.reports.figures.svg import Drawing

_LABELS, _CELL, _TALL, _SLANT = 220, 62, 30, 112


def draw_heat(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    differences: bool,
) -> Drawing:
    """Draw `values` row by row, as wide as they need; None is an empty cell with "n/a"."""
    drawing = Drawing(_LABELS + _CELL * len(columns) + 90, _SLANT + _TALL * len(rows) + 8)
    for place, name in enumerate(columns):
        drawing.slanted((_LABELS + _CELL * (place + 0.45), _SLANT - 8), name)
    for place, row in enumerate(rows):
        y = _SLANT + _TALL * place
        drawing.text((_LABELS - 10, y + _TALL / 2 + 4), row, "ink", "end", most=_LABELS - 16)
        for column, value in enumerate(values[place]):
            x = _LABELS + _CELL * column
            step = None if value is None else difference_step(value) if differences else score_step(value)
            said = "n/a" if value is None else heat_text(value, differences=differences)
            with drawing.told(f"{row}, {columns[column]}: {said}"):
                drawing.rect((x + 1, y + 1), _CELL - 2, _TALL - 2, step or "none")
                drawing.text((x + _CELL / 2, y + _TALL / 2 + 4), said, f"on-{step}" if step else "quiet", "middle")
    return drawing


def heat_text(value: float, *, differences: bool) -> str:
    """One number as its cell shows it; what rounds to zero has no minus."""
    value = round(value, 2) + 0.0
    return f"{value:+.2f}" if differences else f"{value:.2f}"
