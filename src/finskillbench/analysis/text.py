"""A summary as plain text."""

from __future__ import annotations

from finskillbench.analysis.intervals import Difference
from finskillbench.analysis.summary import ABSENT, Cell, Line, Summary


def header(summary: Summary, *, differences: bool = True) -> list[str]:
    """Titles of the columns; the profile is a column only where subtasks differ in it."""
    changes = [f"{each.treated} - {each.reference}" for each in summary.comparisons] if differences else []
    return ["model", "subtask", *_profile_column(summary, "profile"), "episodes", *summary.conditions, *changes]


def cells(summary: Summary, line: Line, *, differences: bool = True) -> list[str]:
    """One line's texts, in the order of `header`."""
    changes = [format_difference(each) for each in line.differences] if differences else []
    model = f"{line.model} (program)" if line.program else line.model
    most = max(cell.episodes for cell in line.cells)
    profile = _profile_column(summary, line.profile)
    return [model, line.sub_task, *profile, str(most), *(format_cell(cell, most) for cell in line.cells), *changes]


def format_cell(cell: Cell, episodes: int) -> str:
    """The mean with three decimals, "-" where nothing was scored; behind it, how many of the line's `episodes` it
    covers where those are not all, and the rows in error.
    """
    mean = ABSENT if cell.mean is None else f"{cell.mean:.3f}"
    partly = [f"n={cell.episodes}"] if cell.episodes < episodes and cell.mean is not None else []
    behind = ", ".join([*partly, *([f"{cell.errors} err"] if cell.errors else [])])
    return f"{mean} ({behind})" if behind else mean


def format_difference(difference: Difference | None) -> str:
    """The difference with its interval, "-" where either cannot be said."""
    if difference is None:
        return ABSENT
    if difference.interval is None:
        return f"{difference.mean:+.3f} {ABSENT}"
    low, high = difference.interval
    return f"{difference.mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def render_text(summary: Summary, *, differences: bool = True) -> str:
    """The whole table as aligned plain text under a title, a model's name on its first line, the notes below."""
    rows = [cells(summary, line, differences=differences) for line in summary.lines]
    table = [header(summary, differences=differences), *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    before = ""
    for row in rows:
        before, row[0] = row[0], "" if row[0] == before else row[0]
    texts = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in table]
    texts.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([f"Mean score, profile {summary.profile}", "", *texts, "", *summary.notes]) + "\n"


def _profile_column(summary: Summary, text: str) -> list[str]:
    return [] if all(line.profile == summary.profile for line in summary.lines) else [text]
