"""How the checks name what they find: rows of a panel, and the period that an episode is about."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import polars as pl

from finskillbench.episode import Episode
from finskillbench.findings import Findings

_SHOWN = 10
"""Rows of a panel that are named before the rest are only counted."""
_NAMED_BY = ("symbol", "metric", "axis", "start", "end", "filed", "accession")


def period_end(episode: Episode) -> date:
    """Last day of the period that an episode is about; KeyError or ValueError if it does not say."""
    field = "current_period_end" if episode.sub_task == "driver_decomposition" else "period_end"
    return date.fromisoformat(episode.input[field])


def fail_rows(frame: pl.DataFrame, message: str, findings: Findings) -> None:
    """Add a defect for each row, as `add_rows` does."""
    add_rows(frame, message, findings.fail)


def add_rows(frame: pl.DataFrame, message: str, add: Callable[[object, str], None]) -> None:
    """Add a finding for each row, by company, subject and period; of many the first few and their number."""
    names = [name for name in _NAMED_BY if name in frame.columns]
    for row in frame.head(_SHOWN).select(names).iter_rows():
        add(" ".join(str(value) for value in row if value is not None), message)
    if frame.height > _SHOWN:
        add(message.split(":")[0], f"{frame.height} rows in all: {message}")
