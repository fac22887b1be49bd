"""Scores before and after the training cut-off of a model.

An episode dated after the cut-off depends on at least one price or filing that the training data cannot contain. An
earlier one may be in the training data with its answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum

import polars as pl

from finskillbench.analysis.clusters import Cells, gather_cells, standard_error, supports_interval
from finskillbench.analysis.results import Results
from finskillbench.errors import InputError

_AS_OF = "as_of_date"
_SCHEMA = {
    "model": pl.String,
    "harness": pl.String,
    "condition": pl.String,
    "cutoff": pl.String,
    "before": pl.Float64,
    "episodes_before": pl.Int64,
    "after": pl.Float64,
    "episodes_after": pl.Int64,
    "change": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "sub_tasks": pl.Int64,
}


class CutoffSide(StrEnum):
    """Side of the cut-off; the day itself is before."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """Last day of training data: `models` by name, `every` for all others (None: no cut-off)."""

    every: date | None = None
    models: Mapping[str, date] = field(default_factory=dict[str, date])

    def of(self, model: str) -> date | None:
        return self.models.get(model, self.every)


def parse_cutoffs(texts: Sequence[str]) -> Cutoffs:
    """Parse `DATE` and `MODEL=DATE`; raise `InputError` for an invalid date or two dates for the same model."""
    found: dict[str, date] = {}
    for text in texts:
        model, _, day = text.rpartition("=")
        try:
            cutoff = date.fromisoformat(day)
        except ValueError:
            raise InputError(f"--cutoff {text!r}: not DATE or MODEL=DATE; write a date as 2025-06-30") from None
        if found.setdefault(model, cutoff) != cutoff:
            raise InputError(f"--cutoff: two dates for {model or 'every model'}; remove one")
    return Cutoffs(found.pop("", None), found)


def dated(rows: pl.DataFrame, cutoffs: Cutoffs) -> pl.DataFrame:
    """Add the column `cutoff` and drop models without one; raise `InputError` if no model has one."""
    if _AS_OF not in rows.columns:
        raise InputError(f"rows: --cutoff needs the column {_AS_OF!r}; give the rows.parquet of a run")
    there = rows["model"].unique(maintain_order=True).to_list()
    if unknown := [model for model in cutoffs.models if model not in there]:
        raise InputError(f"--cutoff: {unknown[0]} has no rows; models: {', '.join(sorted(there))}")
    days = pl.DataFrame(
        {"model": there, "cutoff": [cutoffs.of(model) for model in there]},
        schema={"model": pl.String, "cutoff": pl.Date},
    )
    dated_rows = rows.join(days, on="model", how="left", maintain_order="left").filter(pl.col("cutoff").is_not_null())
    if dated_rows.is_empty():
        raise InputError(f"--cutoff: no date for {', '.join(sorted(there))}; add --cutoff DATE for all models")
    return dated_rows


def side(rows: pl.DataFrame, which: CutoffSide) -> pl.DataFrame:
    """Return the rows of `dated` on one side of the cut-off."""
    after = pl.col(_AS_OF) > pl.col("cutoff")
    return rows.filter(after if which is CutoffSide.AFTER else ~after)


def changes(results: Results) -> pl.DataFrame:
    """Compare scores before and after the cut-off by model and condition, for rows as from `dated`.

    Subtasks of the headline (else of the suite) with two clusters on either side weigh equally. Both sides can share a
    company or mandate, so the interval is that of one contrast of stratified means (CR2, Satterthwaite).

    Returns one row per model, harness and condition: `cutoff`, means `before` and `after` with their episodes, `change`
    with `low` and `high`, and the number of `sub_tasks`; null if undefined.
    """
    dates = results.rows.select("model", "harness", "episode", _AS_OF, "cutoff").unique(maintain_order=True)
    scored = results.episodes.filter("headline").join(dates, on=["model", "harness", "episode"], how="left")
    grouped = scored.group_by("model", "harness", "condition", "cutoff", maintain_order=True)
    lines = [(*keys[:3], str(keys[3]), *_contrast(group)) for keys, group in grouped]
    return pl.DataFrame(lines, schema=_SCHEMA, orient="row")


def _contrast(group: pl.DataFrame) -> tuple[float | int | None, ...]:
    sided = group.with_columns(side=(pl.col(_AS_OF) > pl.col("cutoff")).cast(pl.Int64))
    clusters = sided.group_by("sub_task", "side").agg(pl.col("cluster").n_unique())
    enough = clusters.filter(pl.col("cluster") > 1).group_by("sub_task").len().filter(pl.col("len") == 2)["sub_task"]
    kept = sided.filter(pl.col("sub_task").is_in(enough.to_list()))
    if kept.is_empty():
        return (None, 0, None, 0, None, None, None, 0)
    cells = _cells(kept)
    counts = [kept.filter(pl.col("side") == side).height for side in (0, 1)]
    before, after = cells.means[::2].mean(), cells.means[1::2].mean()
    low = high = None
    if supports_interval(cells):
        half = standard_error(cells).half_width
        low, high = max(-1.0, cells.mean - half), min(1.0, cells.mean + half)
    return (float(before), counts[0], float(after), counts[1], cells.mean, low, high, cells.means.size // 2)


def _cells(kept: pl.DataFrame) -> Cells:
    """Group by subtask and side, with weights that give the change of the mean."""
    sums = (
        kept.with_columns(
            _part=2 * pl.col("sub_task").rank("dense").cast(pl.Int64) + pl.col("side"),
            _cluster=pl.col("cluster").rank("dense"),
        )
        .group_by("_part", "_cluster")
        .agg(pl.col("score").sum(), _count=pl.len().cast(pl.Float64))
        .sort("_part", "_cluster")
    )
    columns = (sums[name].to_numpy() for name in ("_part", "_cluster", "_count", "score"))
    cells = gather_cells(*columns, alike=True)
    signs = cells.weights * 2.0
    signs[::2] *= -1.0
    return replace(cells, weights=signs)
