"""Shares as stacked bars, and quantities as marks on a line."""

from __future__ import annotations

from collections.abc import Sequence

from finskillbench.reports.figures.scale import Scale, short
from finskillbench.reports.figures.svg import Drawing

_WIDTH, _LABELS, _TALL = 860, 300, 22


def draw_shares(rows: Sequence[tuple[str, Sequence[int]]], series: Sequence[str], counts: str) -> Drawing:
    """A bar for each row, parted by the counts of the series; `counts` says what is counted, at the right end."""
    drawing = Drawing(_WIDTH, 60 + 18 * _legend_rows(series) + _TALL * len(rows))
    top = 14 + _boxes(drawing, series)
    scale = Scale(0.0, 1.0, _LABELS, _WIDTH - 76)
    drawing.text((_WIDTH, top - 6), counts, "quiet small", "end")
    for place, (name, numbers) in enumerate(rows):
        y, total, done = top + _TALL * place, sum(numbers), 0
        drawing.text((_LABELS - 10, y + _TALL / 2 + 4), name, "ink", "end", most=_LABELS - 14)
        drawing.text((_WIDTH, y + _TALL / 2 + 4), f"{total:,}", "quiet small", "end")
        for series_place, number in enumerate(numbers):
            if not number:
                continue
            left, right = scale(done / total), scale((done + number) / total)
            done += number
            with drawing.told(f"{name}: {number:,} of {total:,} {series[series_place]} ({number / total:.1%})"):
                drawing.rect((left, y + 4), right - left, _TALL - 8, f"f{series_place % 8} edge")
    bottom = top + _TALL * len(rows)
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        drawing.text((scale(value), bottom + 16), f"{value:.0%}", "quiet small", "middle")
    return drawing


def draw_marks(
    rows: Sequence[tuple[str, Sequence[float | None]]], series: Sequence[str], across: str, *, log: bool = False
) -> Drawing:
    """A line for each row with a mark for each series; on a logarithmic axis all values must be above 0."""
    values = [value for _, each in rows for value in each if value is not None]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    low = low / 1.3 if log else 0.0
    drawing = Drawing(_WIDTH, 66 + 18 * _legend_rows(series) + _TALL * len(rows))
    top = 10 + drawing.legend(series, (_LABELS + 10, 12), width=_WIDTH - _LABELS)
    scale = Scale(low, high * (1.3 if log else 1.05) or 1.0, _LABELS, _WIDTH - 20, log)
    bottom = top + _TALL * len(rows)
    for value in scale.ticks:
        drawing.line((scale(value), top), (scale(value), bottom), "rule")
        drawing.text((scale(value), bottom + 15), short(value), "quiet small", "middle")
    drawing.text(((scale.start + scale.end) / 2, bottom + 34), across, "quiet", "middle")
    for place, (name, each) in enumerate(rows):
        y = top + _TALL * (place + 0.5)
        drawing.text((_LABELS - 10, y + 4), name, "ink", "end", most=_LABELS - 14)
        known = [scale(value) for value in each if value is not None]
        if len(known) > 1:
            drawing.line((min(known), y), (max(known), y), "zero")
        for series_place, value in enumerate(each):
            if value is not None:
                with drawing.told(f"{name}, {series[series_place]}: {value:,.4g}"):
                    drawing.mark((scale(value), y), series_place)
    return drawing


def _legend_rows(series: Sequence[str]) -> int:
    return 1 + sum(30 + len(name) * 8 for name in series) // (_WIDTH - _LABELS)


def _boxes(drawing: Drawing, series: Sequence[str]) -> float:
    x, y = float(_LABELS), 4.0
    for place, name in enumerate(series):
        room = 26 + len(name) * 7.6
        if x > _LABELS and x + room > _WIDTH:
            x, y = float(_LABELS), y + 18
        drawing.rect((x, y), 12, 12, f"f{place % 8}")
        drawing.text((x + 17, y + 10.5), name, "ink")
        x += room
    return y + 24
