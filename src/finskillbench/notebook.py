"""Static HTML output for notebooks: tables and progress bars, without scripts or downloads."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from typing import Any


class Markup(str):
    """Cell text that is already HTML; all other text is escaped."""

    __slots__ = ()


_CELL = 'style="text-align:left;white-space:nowrap"'
_WIDTH, _HEIGHT = 160, 14


def html_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str = "", notes: Sequence[str] = ()
) -> str:
    """Render a table with caption and notes."""
    head = "".join(f"<th {_CELL}>{escape(name)}</th>" for name in columns)
    body = "\n".join(f"<tr>{''.join(f'<td {_CELL}>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    above = f"<p>{escape(caption)}</p>\n" if caption else ""
    below = "".join(f"\n<p><small>{escape(line)}</small></p>" for line in notes)
    return f"{above}<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>{below}"


def drawn_interval(mean: float, interval: tuple[float, float] | None, extent: float) -> Markup:
    """Draw `mean` as a dot and `interval` as a line on an axis from -extent to extent, with a mark at 0."""

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
    """A progress bar in the running cell; shows nothing outside of notebooks."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str, done: int = 0, total: int | None = None) -> None:
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
