"""Output in notebooks: tables and progress bars as HTML, with nothing to fetch and nothing to run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from typing import Any


class Markup(str):
    """Text of a cell that is HTML already; any other is escaped."""

    __slots__ = ()


_CELL = 'style="text-align:left;white-space:nowrap"'
_WIDTH, _HEIGHT = 160, 14


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str = "", notes: Sequence[str] = ()
) -> str:
    """A table under its caption, with notes below it."""
    head = "".join(f"<th {_CELL}>{escape(name)}</th>" for name in columns)
    body = "\n".join(f"<tr>{''.join(f'<td {_CELL}>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    above = f"<p>{escape(caption)}</p>\n" if caption else ""
    below = "".join(f"\n<p><small>{escape(note)}</small></p>" for note in notes)
    return f"{above}<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>{below}"


def drawn_interval(mean: float, interval: tuple[float, float] | None, extent: float) -> Markup:
    """A dot at `mean` and a line over `interval`, on an axis from -extent to extent with a mark at 0."""

    def place(value: float) -> str:
        return f"{_WIDTH / 2 * (1 + max(-1.0, min(1.0, value / extent))):.1f}"

    middle = _HEIGHT // 2
    zero = f'<line x1="{place(0)}" x2="{place(0)}" y1="0" y2="{_HEIGHT}" stroke="#bbb"/>'
    spread = ""
    if interval is not None:
        low, high = interval
        spread = f'<line x1="{place(low)}" x2="{place(high)}" y1="{middle}" y2="{middle}" stroke="#357"/>'
    dot = f'<circle cx="{place(mean)}" cy="{middle}" r="3" fill="#357"/>'
    return Markup(f'<svg width="{_WIDTH}" height="{_HEIGHT}">{zero}{spread}{dot}</svg>')


def _text(cell: object) -> str:
    return cell if isinstance(cell, Markup) else escape(str(cell))


class Bar:
    """A progress bar in the cell that is being run; outside of notebooks it shows nothing."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str, done: int = 0, total: int | None = None) -> None:
        """Show a text, and how much is done of a total where that is known."""
        if not _in_notebook():
            return
        extent = "" if total is None else f' value="{done}" max="{total}"'
        shown: Any = import_module("IPython.display")
        content = shown.HTML(f"<progress{extent}></progress> {escape(text)}")
        if self._handle is None:
            self._handle = shown.display(content, display_id=True)
        else:
            self._handle.update(content)


def _in_notebook() -> bool:
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell"
