"""The episodes of a page as compact JSON: columns of numbers that name entries of lists, some 45 bytes an episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import polars as pl

from finskillbench.analysis.results import distinct
from finskillbench.reports.page.trajectories import Located
from finskillbench.reports.page.view import View
from finskillbench.runs.afterwards.show import printable
from finskillbench.runs.store.files import file_name

_NAMED = ("entry", "condition", "sub_task", "difficulty", "task_id", "status", "cause", "arm")
"""Columns whose values are kept once and named by their place."""


def packed(
    view: View, causes: Sequence[str | None], located: Sequence[Located | None], pages: Mapping[int, str]
) -> bytes:
    """The rows of a view for the script of the page.

    Parameters
    ----------
    view : whose rows are packed.
    causes : why each row failed, where somebody looked and it did.
    located : where the trajectory of each row lies.
    pages : the trajectories that are packed with the report, by the place of their row.

    Returns
    -------
    UTF-8 JSON that can stand in an element of a page: `<`, `>` and `&` are written as escapes.
    """
    arms = [None if each is None else f"{each.run.path}/trajectories/{each.item.arm}" for each in located]
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
    names["file"] = [file_name(each) for each in distinct(rows, "task_id")]
    data = orjson.dumps({"names": names, "columns": columns}, option=orjson.OPT_NON_STR_KEYS)
    return data.replace(b"&", b"\\u0026").replace(b"<", b"\\u003c").replace(b">", b"\\u003e")


def _whole(rows: pl.DataFrame, name: str) -> list[int] | None:
    return rows[name].to_list() if name in rows.columns else None


def _decimals(rows: pl.DataFrame, name: str, digits: int) -> list[float] | None:
    return rows[name].round(digits).to_list() if name in rows.columns else None
