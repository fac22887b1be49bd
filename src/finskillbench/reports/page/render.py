"""From what a page says to HTML: every text is escaped, and nothing may be fetched or run but our own few lines.

The security policy of a page names our style and script by their digests. A text that found its way past the escaping
would still not run, and no address in it would be asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from finskillbench.reports.figures.heat import heat_text
from finskillbench.reports.figures.style import difference_step, rules, score_step
from finskillbench.reports.formats.cells import cell_text
from finskillbench.reports.tables.base import Cell, Estimate, Kind
from finskillbench.reports.templates import environment, source_digest

if TYPE_CHECKING:
    from finskillbench.reports.page.episodes import Block

_TEMPLATES = Path(__file__).with_name("templates")


def index_page(content: Mapping[str, object], data: bytes) -> str:
    """The page, from what its template names, with the episodes of `packed` in it."""
    # Safe: `packed` writes <, > and & as escapes of JSON.
    style = f"{_text('page.css')}\n{rules(dark=None)}"
    return _page("index.html", style, _text("page.js"), {**content, "data": Markup(data.decode())})


def episode_page(title: str, blocks: Sequence[Block], command: str, *, truth: bool) -> str:
    """The page of one episode; `command` shows it in a terminal."""
    return _page(
        "episode.html", _text("episode.css"), "", {"title": title, "blocks": blocks, "command": command, "truth": truth}
    )


def board_page(content: Mapping[str, object]) -> str:
    """The page of a leaderboard, from what its template names."""
    return _page("board.html", f"{_text('page.css')}\n{_text('board.css')}", "", content)


def _page(template: str, style: str, script: str, content: Mapping[str, object]) -> str:
    style = f"{_text('base.css')}\n{style}"
    theme = _text("theme.js")
    policy = (
        f"default-src 'none'; style-src '{source_digest(style)}'; "
        f"script-src '{source_digest(theme)}' '{source_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    ours = {"style": Markup(style), "theme": Markup(theme), "script": Markup(script), "policy": policy}
    helpers = {
        "cell_text": cell_text,
        "heat_text": heat_text,
        "sorting": sorting,
        "step": step,
        "TEXT": Kind.TEXT,
        "newline": Markup("\n"),
    }
    return environment(_TEMPLATES).get_template(template).render(**content, **ours, **helpers)


def sorting(cell: Cell) -> str:
    """What a cell is sorted by, as the script reads it."""
    value = cell.value if isinstance(cell, Estimate) else cell
    return "" if value is None else str(value)


def step(value: float, differences: bool) -> str:
    """The class of a cell of the heat map."""
    return difference_step(value) if differences else score_step(value)


@cache
def _text(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")
