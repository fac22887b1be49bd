"""A forest plot: differences with their intervals, a line for each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from finskillbench.reports.figures.scale import Scale
from finskillbench.reports.figures.svg import Drawing
from finskillbench.reports.formats.cells import difference_text
from finskillbench.reports.tables.base import Estimate

_WIDTH, _LABELS, _NUMBERS = 860, 210, 206
_LEAST = 0.1
"""The axis reaches at least so far, so that differences of nothing look like nothing."""


class ForestLine(NamedTuple):
    """One group: its name, an estimate for each series, and whether it sums up others."""

    name: str
    estimates: Sequence[Estimate | None]
    bold: bool = False


def draw_forest(sections: Sequence[tuple[str, Sequence[ForestLine]]], series: Sequence[str], axis: str) -> Drawing:
    """Draw sections of lines, a mark for each series; `axis` says what is measured.

    An estimate without an interval is a mark alone, and its numbers end in "-".
    """
    tall = 17 * max(len(series), 1) + 9
    lines = sum(len(each) for _, each in sections)
    legend = 26 if len(series) > 1 else 6
    height = legend + lines * tall + len(sections) * 30 + 48
    drawing = Drawing(_WIDTH, height)
    if len(series) > 1:
        drawing.legend(series, (_LABELS + 8, 12), first=1, width=_WIDTH - _LABELS)
    scale = _scale([each for _, section in sections for line in section for each in line.estimates if each])
    bottom = height - 42
    for value in scale.ticks:
        x = scale(value)
        drawing.line((x, legend + 4), (x, bottom), "zero" if value == 0 else "rule")
        drawing.text((x, bottom + 17), f"{value:+.2g}" if value else "0", "quiet", "middle")
    drawing.text(((scale.start + scale.end) / 2, bottom + 36), axis, "quiet", "middle")
    y = float(legend)
    for title, section in sections:
        y += 22
        drawing.text((0, y), title, "quiet small")
        y += 8
        for line in section:
            _draw_line(drawing, line, series, scale, y, tall)
            y += tall
    return drawing


def _draw_line(
    drawing: Drawing, line: ForestLine, series: Sequence[str], scale: Scale, top: float, tall: float
) -> None:
    weight = " bold" if line.bold else ""
    drawing.text((10, top + tall / 2 + 4), line.name, f"ink{weight}", most=_LABELS - 14)
    for place, each in enumerate(line.estimates):
        y = top + 13 + 17 * place
        said = difference_text(each)
        drawing.text((_WIDTH - _NUMBERS + 8, y + 4), said, f"ink{weight}" if each else "quiet")
        if each is None:
            continue
        with drawing.told(f"{line.name}, {series[place]}: {said}"):
            if each.low is not None and each.high is not None:
                low, high = scale(each.low), scale(each.high)
                drawing.line((low, y), (high, y), f"o{place + 1}")
                for end in (low, high):
                    drawing.line((end, y - 3), (end, y + 3), f"o{place + 1}")
            drawing.mark((scale(each.value), y), place + 1, 5 if line.bold else 4)


def _scale(estimates: Sequence[Estimate]) -> Scale:
    ends = [end for each in estimates for end in each if end is not None]
    low, high = min([0.0, *ends]), max([_LEAST, *ends])
    room = (high - low) * 0.04
    return Scale(low - room if low < 0 else -room, high + room, _LABELS + 8, _WIDTH - _NUMBERS)
