"""Figures with their descriptions; forest plots and panels of curves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from finskillbench.reports.figures.scatter import Scale, draw_axes
from finskillbench.reports.figures.svg import Drawing, lines_of, png
from finskillbench.reports.tables.base import Estimate, Kind, Table, difference_text

WIDE, NARROW = 860.0, 360.0
"""Figure widths in pixels, for windows and for phones."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing of `table` at any width; `description` is its text for screen readers."""

    table: Table
    description: str
    draw: Callable[[float], Drawing]

    @property
    def varies(self) -> bool:
        """True if two rows differ in a drawn quantity; counts are drawn only if there is nothing else."""
        kinds = [column.kind for column in self.table.columns]
        measured = {kind for kind in kinds if kind not in (Kind.TEXT, Kind.COUNT)} or {Kind.COUNT}
        drawn = {
            tuple(cell for kind, cell in zip(kinds, row, strict=True) if kind in measured) for row in self.table.rows
        }
        return len(drawn) > 1

    @property
    def name(self) -> str:
        return self.table.name

    def svg(self) -> str:
        return self.draw(WIDE).file(self.table.title, self.description)

    def png(self) -> bytes:
        return png(self.svg())

    def inline(self) -> str:
        """Return the figure for a page at both widths; the page's style shows one of them."""
        widths = {"wide": WIDE, "narrow": NARROW}
        return "".join(
            self.draw(width).inline(f"figure-{self.name}-{kind}", self.table.title, self.description, kind)
            for kind, width in widths.items()
        )


_LABELS, _NUMBERS = 210, 206
_LEAST = 0.1
"""Minimum extent of the axis, so that negligible differences look negligible."""


class ForestLine(NamedTuple):
    """One group: its name, an estimate per series, and True in `bold` for summaries.

    `signs` are p-values of the sign test, by series, for estimates without an interval.
    """

    name: str
    estimates: Sequence[Estimate | None]
    bold: bool = False
    signs: Sequence[float | None] = ()


def draw_forest(
    sections: Sequence[tuple[str, Sequence[ForestLine]]], series: Sequence[str], axis: str, width: float
) -> Drawing:
    """Draw sections of lines with a mark per series; `axis` names the quantity.

    An estimate without an interval is a mark only. Narrow drawings have names above their lines.
    """
    narrow = width <= NARROW
    left, numbers = (6, _NUMBERS - 10) if narrow else (_LABELS + 8, _NUMBERS)
    above = 16 if narrow else 0
    tall = 17 * max(len(series), 1) + 9 + above
    drawing = Drawing(width, 0)
    top = 8 + drawing.legend(series, (left, 12), first=1, width=width - left) if len(series) > 1 else 6
    estimates = [each for _, section in sections for line in section for each in line.estimates if each]
    scale = _scale(estimates, left, width - numbers)
    y = float(top)
    for title, section in sections:
        y += 22
        drawing.text((0, y), title, "quiet small")
        y += 8
        for line in section:
            if narrow:
                drawing.text((0, y + 14), line.name, "ink bold" if line.bold else "ink", most=width)
            else:
                drawing.text((10, y + tall / 2 + 4), line.name, "ink bold" if line.bold else "ink", most=_LABELS - 14)
            _draw_line(drawing, line, series, scale, y + above, width - numbers + 8)
            y += tall
    for value in scale.ticks:
        x = scale(value)
        drawing.line((x, top + 4), (x, y + 6), "zero" if value == 0 else "rule", behind=True)
        drawing.text((x, y + 23), f"{value:+.2g}" if value else "0", "quiet", "middle")
    text_width = width if narrow else 2 * min(scale.end - left, width - scale.end)
    drawing.centred((width / 2 if narrow else (scale.start + scale.end) / 2, y + 42), axis, text_width)
    drawing.height = y + 50 + 15 * (len(lines_of(axis, text_width)) - 1)
    return drawing


def _draw_line(
    drawing: Drawing, line: ForestLine, series: Sequence[str], scale: Scale, top: float, numbers: float
) -> None:
    weight = " bold" if line.bold else ""
    for place, each in enumerate(line.estimates):
        y = top + 13 + 17 * place
        sign = line.signs[place] if place < len(line.signs) else None
        shown = difference_text(each) + ("" if sign is None else f" p {sign:.2g}")
        drawing.text((numbers, y + 4), shown, f"ink{weight}" if each else "quiet")
        if each is None:
            continue
        with drawing.tooltip(f"{line.name}, {series[place]}: {shown}"):
            if each.low is not None and each.high is not None:
                low, high = scale(each.low), scale(each.high)
                drawing.line((low, y), (high, y), f"o{place + 1}")
                for end in (low, high):
                    drawing.line((end, y - 3), (end, y + 3), f"o{place + 1}")
            drawing.mark((scale(each.value), y), place + 1, 5 if line.bold else 4)


def _scale(estimates: Sequence[Estimate], start: float, end: float) -> Scale:
    ends = [end for each in estimates for end in each if end is not None]
    low, high = min([0.0, *ends]), max([_LEAST, *ends])
    margin = (high - low) * 0.04
    return Scale(low - margin if low < 0 else -margin, high + margin, start, end)


_TALL, _LEFT, _GAP, _ABOVE, _BELOW = 150, 44, 18, 30, 26


class Curve(NamedTuple):
    """A line through `points`, with a band between `low` and `high` if known."""

    series: int
    points: Sequence[tuple[float, float]]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


Panel: TypeAlias = tuple[str, Sequence[Curve]]


def draw_panels(
    panels: Sequence[Panel], series: Sequence[str], across: str, width: float, *, log: bool = False, steps: bool = False
) -> Drawing:
    """Draw one panel per name with a vertical axis from 0 to 1; `steps` draws a step function."""
    columns = min(len(panels), 3 if width > NARROW else 2) or 1
    rows = math.ceil(len(panels) / columns) or 1
    drawing = Drawing(width, 0)
    used = drawing.legend(series, (_LEFT + 10, 12), lines=True, width=width - _LEFT)
    xs = [x for _, curves in panels for curve in curves for x, _ in curve.points]
    low, high = (min(xs), max(xs)) if xs else (0.0, 1.0)
    wide = (width - _LEFT - _GAP * (columns - 1) - 10) / columns
    for place, (name, curves) in enumerate(panels):
        left = _LEFT + (place % columns) * (wide + _GAP)
        top = 10 + used + (place // columns) * (_TALL + _ABOVE + _BELOW) + _ABOVE
        horizontal = Scale(low, high, left + (12 if place % columns else 0), left + wide, log)
        vertical = Scale(0.0, 1.0, top + _TALL, top)
        drawing.text((horizontal.start, top - 8), name, "ink bold", most=wide)
        draw_axes(drawing, horizontal, vertical, "", "")
        for curve in curves:
            _draw_curve(drawing, curve, horizontal, vertical, steps=steps)
    bottom = 10 + used + rows * (_TALL + _ABOVE + _BELOW)
    drawing.centred((width / 2, bottom + 16), across, width)
    drawing.height = bottom + 24 + 15 * (len(lines_of(across, width)) - 1)
    return drawing


def _draw_curve(drawing: Drawing, curve: Curve, across: Scale, up: Scale, *, steps: bool) -> None:
    band = [
        (x, low, high)
        for (x, _), low, high in zip(curve.points, curve.low, curve.high, strict=False)
        if low is not None and high is not None
    ]
    if len(band) > 1:
        edge = [(across(x), up(high)) for x, _, high in band]
        edge += [(across(x), up(low)) for x, low, _ in reversed(band)]
        drawing.path(edge, f"b{curve.series}", closed=True)
    points = [(across(x), up(y)) for x, y in curve.points]
    if steps:
        points = [each for one, other in itertools.pairwise(points) for each in (one, (other[0], one[1]))]
        points += [(across(curve.points[-1][0]), up(curve.points[-1][1]))] if curve.points else []
    if len(points) > 1:
        drawing.path(points, f"d{curve.series}")
    elif points:
        drawing.mark(points[0], curve.series)
