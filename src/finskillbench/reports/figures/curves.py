"""Curves in small panels beside each other, all on the same axes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from finskillbench.reports.figures.base import NARROW
from finskillbench.reports.figures.scale import Scale
from finskillbench.reports.figures.scatter import draw_axes
from finskillbench.reports.figures.svg import Drawing, lines_of

_TALL, _LEFT, _GAP, _ABOVE, _BELOW = 150, 44, 18, 30, 26


class Curve(NamedTuple):
    """A line through `points`, with a band between `low` and `high` where those are known."""

    series: int
    points: Sequence[tuple[float, float]]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


def draw_panels(
    panels: Sequence[tuple[str, Sequence[Curve]]],
    series: Sequence[str],
    across: str,
    width: float,
    *,
    log: bool = False,
    steps: bool = False,
) -> Drawing:
    """Draw a panel for each name; the vertical axis goes from 0 to 1. With `steps`, values hold until the next."""
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
