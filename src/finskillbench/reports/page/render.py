"""Render pages to HTML with escaped text, and pack episode rows as JSON.

The content security policy allows only our style and script, by digest. Text that escaped the escaping could neither
run nor load anything. Episode data are columns of indices into lists, some 45 bytes an episode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import polars as pl
from markupsafe import Markup

from finskillbench.analysis.results import distinct_values
from finskillbench.reports.figures.bars import heat_text
from finskillbench.reports.figures.svg import difference_step, rules, score_step
from finskillbench.reports.page.view import Located, View
from finskillbench.reports.report import environment, source_digest
from finskillbench.reports.tables.base import Cell, Estimate, Kind, cell_text, titled
from finskillbench.runs.postprocess.show import printable
from finskillbench.runs.store.version import file_name

if TYPE_CHECKING:
    from finskillbench.reports.page.lineage import Block

_TEMPLATES = Path(__file__).with_name("templates")


def index_page(content: Mapping[str, object], data: bytes) -> str:
    """Render the report page with the episodes of `pack_episodes`."""
    # Safe: `pack_episodes` writes <, > and & as escapes of JSON.
    style = f"{_text('page.css')}\n{rules(dark=None)}"
    return _page("index.html", style, _text("page.js"), {**content, "data": Markup(data.decode())})


def episode_page(title: str, blocks: Sequence[Block], command: str, *, truth: bool) -> str:
    """Render the page of one episode; `command` shows it in a terminal."""
    content = {"title": title, "blocks": blocks, "command": command, "truth": truth}
    return _page("episode.html", _text("episode.css"), "", content)


def leaderboard_page(content: Mapping[str, object]) -> str:
    return _page("board.html", f"{_text('page.css')}\n{_text('board.css')}", "", content)


def human_page(content: Mapping[str, object]) -> str:
    """Render the page on which one participant solves episodes; `content` is that of `task_files.human`."""
    return _page("human.html", _text("human.css"), _text("human.js"), content)


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
        "titled": titled,
        "newline": Markup("\n"),
    }
    return environment(_TEMPLATES).get_template(template).render(**content, **ours, **helpers)


def sorting(cell: Cell) -> str:
    """Return the sort key of a cell for the page's script."""
    value = cell.value if isinstance(cell, Estimate) else cell
    return "" if value is None else str(value)


def step(value: float, differences: bool) -> str:
    return difference_step(value) if differences else score_step(value)


@cache
def _text(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


_NAMED = ("entry", "condition", "sub_task", "difficulty", "task_id", "status", "cause", "arm")
"""Columns stored as indices into a list of distinct values."""


def pack_episodes(
    view: View, causes: Sequence[str | None], located: Sequence[Located | None], pages: Mapping[int, str]
) -> bytes:
    """Pack the rows of a view for the page's script.

    Parameters
    ----------
    causes : cause of failure by row, if classified.
    located : trajectory of each row.
    pages : trajectory pages in the report, by row.

    Returns
    -------
    UTF-8 JSON for an HTML element: `<`, `>` and `&` are escaped.
    """
    arms = [None if each is None else f"{each.run.path}/trajectories/{each.item.arm_folder}" for each in located]
    rows = view.rows.with_columns(cause=pl.Series(causes, dtype=pl.String), arm=pl.Series(arms, dtype=pl.String))
    names: dict[str, list[str | None]] = {}
    columns: dict[str, Any] = {}
    for name in _NAMED:
        values: Sequence[str | None] = rows[name].unique(maintain_order=True).to_list()
        place = {value: index for index, value in enumerate(values)}
        names[name] = [None if value is None else printable(value) for value in values]
        columns[name] = [place[value] for value in rows[name]]
    met = sorted({each for incidents in rows["incidents"] for each in incidents}) if "incidents" in rows.columns else []
    names["incident"] = [printable(each) for each in met]
    columns |= {
        "score": rows["score"].round(4).to_list(),
        "repeat": rows["run_idx"].to_list(),
        "turns": _whole(rows, "turns"),
        "output": _whole(rows, "total_output_tokens"),
        "seconds": _decimals(rows, "latency_seconds", 1),
        "cost": _decimals(rows, "cost_usd", 5),
        "incidents": {
            place: [met.index(each) for each in dict.fromkeys(incidents)]
            for place, incidents in enumerate(rows["incidents"] if "incidents" in rows.columns else ())
            if len(incidents)
        },
        "page": pages,
    }
    names["file"] = [file_name(each) for each in distinct_values(rows, "task_id")]
    data = orjson.dumps({"names": names, "columns": columns}, option=orjson.OPT_NON_STR_KEYS)
    return data.replace(b"&", b"\\u0026").replace(b"<", b"\\u003c").replace(b">", b"\\u003e")


def _whole(rows: pl.DataFrame, name: str) -> list[int] | None:
    return rows[name].to_list() if name in rows.columns else None


def _decimals(rows: pl.DataFrame, name: str, digits: int) -> list[float] | None:
    return rows[name].round(digits).to_list() if name in rows.columns else None
