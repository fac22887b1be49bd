"""A summary as a notebook shows it: the table of `render_text`, with each interval drawn behind its numbers."""

from __future__ import annotations

from html import escape

from finskillbench.analysis.intervals import Difference
from finskillbench.analysis.summary import Summary
from finskillbench.analysis.text import cells, format_difference, header
from finskillbench.notebook import Markup, drawn_interval, table

_LEAST = 0.1
"""The axis reaches at least so far, so that differences of nothing look like nothing."""


def render_html(summary: Summary) -> str:
    """The table, its intervals on one axis, and the notes."""
    every = [each for line in summary.lines for each in line.differences if each is not None]
    ends = [abs(end) for each in every for end in (each.mean, *(each.interval or ()))]
    extent = max([_LEAST, *ends])
    rows = [
        [*cells(summary, line, differences=False), *(_difference(each, extent) for each in line.differences)]
        for line in summary.lines
    ]
    caption = f"Mean score, profile {summary.profile}; differences from {-extent:+.2f} to {extent:+.2f}"
    return table(header(summary), rows, caption=caption, notes=summary.notes)


def _difference(difference: Difference | None, extent: float) -> str:
    text = format_difference(difference)
    if difference is None:
        return text
    return Markup(f"{drawn_interval(difference.mean, difference.interval, extent)} {escape(text)}")
