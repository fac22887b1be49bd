"""Scatter plots with a frontier or bound, axis scales and ticks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from finskillbench.reports.figures.svg import Drawing, Point, lines_of

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps `low` to pixel `start` and `high` to `end`, linearly or logarithmically."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the pixel of a value, clipped to the scale."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        part = 0.5 if high == low else (at - low) / (high - low)
        return self.start + (self.end - self.start) * part

    @property
    def ticks(self) -> list[float]:
        """Round values to mark, as many as fit: four to nine on a long axis."""
        length = abs(self.end - self.start)
        if not self.log:
            return ticks(self.low, self.high, min(5, int(length / 45)))
        found = log_ticks(self.low, self.high)
        return found[:: 1 + int(len(found) * 36 / length)]


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round values between two ends, inclusive."""
    if high <= low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in _STEPS if power * each >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(each * step, 12) for each in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2, 5 (or only 1) of every power of ten between two values."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    dense = [each * 10.0**power for power in powers for each in (1, 2, 5)]
    inside = [each for each in dense if low * (1 - 1e-9) <= each <= high * (1 + 1e-9)]
    if len(inside) > 9:
        inside = [each for each in inside if f"{each:.0e}".startswith("1")]
    return inside or [low, high]


def short(value: float) -> str:
    """Format a number for an axis: 0.25, 40, 16k, 2.5M."""
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{suffix}"
    return f"{value:.3g}"


_LEFT, _RIGHT, _BOTTOM = 62, 28, 52


class Dot(NamedTuple):
    """One point with its series, visible label (may be empty) and description."""

    x: float
    y: float
    series: int
    label: str
    description: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Plane:
    """Axis titles and ranges of a scatter plot, and lines across it.

    `levels` are named horizontal lines; `bound` is a line through points, such as a frontier or a maximum.
    """

    across: str
    up: str
    horizontal: tuple[float, float]
    vertical: tuple[float, float]
    log: bool = False
    levels: Sequence[tuple[float, str]] = ()
    bound: Sequence[Point] = ()
    bound_kind: str = "zero"
    series: Sequence[str] = ()
    first: int = 0
    """Series of the first name."""


def draw_scatter(dots: Sequence[Dot], plane: Plane, width: float) -> Drawing:
    """Draw points with their intervals over the lines of the plane."""
    drawing = Drawing(width, 0)
    top = 14 + drawing.legend(plane.series, (_LEFT + 10, 14), first=plane.first, width=width - _LEFT - _RIGHT)
    across = Scale(*plane.horizontal, _LEFT, width - _RIGHT, plane.log)
    up = Scale(*plane.vertical, top + max(0.4 * width, 220.0), top)
    draw_axes(drawing, across, up, plane.across, plane.up)
    drawing.height = up.start + _BOTTOM + 15 * (len(lines_of(plane.across, across.end - across.start)) - 1)
    _draw_levels(drawing, [(up(value), name) for value, name in sorted(plane.levels)], across)
    if plane.bound:
        drawing.path([(across(x), up(y)) for x, y in plane.bound], plane.bound_kind)
    taken: list[tuple[float, float, float]] = []
    for dot in dots:
        x, y = across(dot.x), up(dot.y)
        with drawing.tooltip(dot.description):
            if dot.low is not None and dot.high is not None:
                drawing.line((x, up(dot.low)), (x, up(dot.high)), f"o{dot.series}")
            drawing.mark((x, y), dot.series)
        if dot.label:
            _label(drawing, dot.label, x, y, across.end, taken)
    return drawing


def _draw_levels(drawing: Drawing, levels: Sequence[tuple[float, str]], across: Scale) -> None:
    """Draw level lines; names of close lines are stacked above the highest."""
    names: list[str] = []
    for (y, name), above in itertools.zip_longest(levels, [y for y, _ in levels[1:]]):
        drawing.line((across.start, y), (across.end, y), "level")
        names.append(name)
        if above is None or y - above > 13 * len(names) + 5:
            for place, each in enumerate(names):
                drawing.text((across.end, y - 5 - 13 * place), each, "quiet small", "end")
            names = []


def draw_axes(drawing: Drawing, across: Scale, up: Scale, across_title: str, up_title: str) -> None:
    """Draw rules, numbers and titles for two scales."""
    for value in up.ticks:
        drawing.line((across.start, up(value)), (across.end, up(value)), "zero" if value == 0 else "rule")
        drawing.text((across.start - 8, up(value) + 4), short(value), "quiet small", "end")
    for value in across.ticks:
        drawing.line((across(value), up.start), (across(value), up.start + 4), "zero")
        drawing.text((across(value), up.start + 18), short(value), "quiet small", "middle")
    if across_title:
        drawing.centred(((across.start + across.end) / 2, up.start + 38), across_title, across.end - across.start)
    if up_title:
        drawing.upright((14, (up.start + up.end) / 2), up_title)


def _label(
    drawing: Drawing, name: str, x: float, y: float, end: float, taken: list[tuple[float, float, float]]
) -> None:
    """Write a point's name next to it if there is space; otherwise only the tooltip and the table show it."""
    wide = len(name) * 6.2
    for left, base in ((x - 6 - wide, y - 5), (x + 8, y + 15), (x + 8, y - 7), (x - 6 - wide, y + 15)):
        free = all(abs(base - other) > 11 or left > stop or left + wide < start for start, stop, other in taken)
        if free and left + wide < end + 20 and left > _LEFT:
            taken.append((left, left + wide, base))
            drawing.text((left, base), name, "ink small")
            return
