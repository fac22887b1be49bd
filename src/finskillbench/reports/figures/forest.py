"""A forest plot: differences with their intervals, a line for each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from finskillbench.reports.figures.base import NARROW
from finskillbench.reports.figures.scale import Scale
from finskillbench.reports.figures.svg import Drawing, lines_of
from finskillbench.reports.formats.cells import difference_text
from finskillbench.reports.tables.base import Estimate

_LABELS, _NUMBERS = 210, 206
_LEAST = 0.1
"""The axis reaches at least so far, so that differences of nothing look like nothing."""


class ForestLine(NamedTuple):
    """One group: its name, an estimate for each series, and whether it sums up others.

    `signs` are p-values of the sign test, by series, for estimates without an interval.
    """

    name: str
    estimates: Sequence[Estimate | None]
    bold: bool = False
    signs: Sequence[float | None] = ()


def draw_forest(
    sections: Sequence[tuple[str, Sequence[ForestLine]]], series: Sequence[str], axis: str, width: float
) -> Drawing:
    """Draw sections of lines, a mark for each series; `axis` names the quantity.

    An estimate without an interval is a mark alone. A narrow drawing has the names above their lines.
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
    room = width if narrow else 2 * min(scale.end - left, width - scale.end)
    drawing.centred((width / 2 if narrow else (scale.start + scale.end) / 2, y + 42), axis, room)
    drawing.height = y + 50 + 15 * (len(lines_of(axis, room)) - 1)
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
        with drawing.told(f"{line.name}, {series[place]}: {shown}"):
            if each.low is not None and each.high is not None:
                low, high = scale(each.low), scale(each.high)
                drawing.line((low, y), (high, y), f"o{place + 1}")
                for end in (low, high):
                    drawing.line((end, y - 3), (end, y + 3), f"o{place + 1}")
            drawing.mark((scale(each.value), y), place + 1, 5 if line.bold else 4)


def _scale(estimates: Sequence[Estimate], start: float, end: float) -> Scale:
    ends = [end for each in estimates for end in each if end is not None]
    low, high = min([0.0, *ends]), max([_LEAST, *ends])
    room = (high - low) * 0.04
    return Scale(low - room if low < 0 else -room, high + room, start, end)
