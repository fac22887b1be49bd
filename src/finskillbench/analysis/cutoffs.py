"""Episodes before and after the day up to which a model's training data reach, and what differs between the two.

An episode asked as of a day after the cut-off rests on at least one figure, a price or a filing, that was not out when
the training data ended; most of what it rests on may have been. One asked as of an earlier day may have been read with
its answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum

import polars as pl

from finskillbench.analysis.clusters import Cells, gather, spread, tells_enough
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


class Side(StrEnum):
    """On which side of the cut-off an episode is asked; on the day itself it is before."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """The last day of training data: `models` of single ones, `every` of all others (None: they have none)."""

    every: date | None = None
    models: Mapping[str, date] = field(default_factory=dict[str, date])

    def of(self, model: str) -> date | None:
        """The cut-off of a model, None where none was given."""
        return self.models.get(model, self.every)


def parse_cutoffs(texts: Sequence[str]) -> Cutoffs:
    """Read `DATE` and `MODEL=DATE`, in any order.

    Raises
    ------
    InputError : a date that is none, or two for the same.
    """
    found: dict[str, date] = {}
    for text in texts:
        model, _, day = text.rpartition("=")
        try:
            cutoff = date.fromisoformat(day)
        except ValueError:
            raise InputError(f"--cutoff {text!r} is no DATE or MODEL=DATE; write it as 2025-06-30") from None
        if found.setdefault(model, cutoff) != cutoff:
            raise InputError(f"--cutoff: two dates for {model or 'every model'}; leave one out")
    return Cutoffs(found.pop("", None), found)


def dated(rows: pl.DataFrame, cutoffs: Cutoffs) -> pl.DataFrame:
    """Rows with `cutoff`, that of their model; those of a model without one are left out.

    Raises
    ------
    InputError : the rows do not say as of which day they were asked, a model that is not in them, or no model of
        theirs has a cut-off.
    """
    if _AS_OF not in rows.columns:
        raise InputError(f"rows: --cutoff needs the column {_AS_OF!r}; give the rows.parquet of a run")
    there = rows["model"].unique(maintain_order=True).to_list()
    if unknown := [model for model in cutoffs.models if model not in there]:
        raise InputError(f"--cutoff: no row is of {unknown[0]}; the models are {', '.join(sorted(there))}")
    days = pl.DataFrame(
        {"model": there, "cutoff": [cutoffs.of(model) for model in there]},
        schema={"model": pl.String, "cutoff": pl.Date},
    )
    told = rows.join(days, on="model", how="left", maintain_order="left").filter(pl.col("cutoff").is_not_null())
    if told.is_empty():
        raise InputError(f"--cutoff: none was given of {', '.join(sorted(there))}; add --cutoff DATE for all of them")
    return told


def side(rows: pl.DataFrame, which: Side) -> pl.DataFrame:
    """The rows of `dated` that lie on one side of the cut-off."""
    after = pl.col(_AS_OF) > pl.col("cutoff")
    return rows.filter(after if which is Side.AFTER else ~after)


def changes(results: Results) -> pl.DataFrame:
    """What each model scores before and after its cut-off under each condition, every subtask weighing alike.

    Only subtasks of the headline count, or where there is none those of the suite, that have at least two clusters on
    either side. The episodes of the two sides are not the same, but may be of the same company or mandate: the interval
    is that of one contrast of stratified means, whose parts are the subtasks of each side, clusters that lie on both
    counted once (CR2, Satterthwaite).

    Parameters
    ----------
    results : of rows as from `dated`.

    Returns
    -------
    A line for each model, harness and condition: `cutoff`, the means `before` and `after` with the
    episodes behind them, `change` (after less before) with `low` and `high`, and `sub_tasks`, how many are counted.
    Null where nothing can be said.
    """
    asked = results.rows.select("model", "harness", "episode", _AS_OF, "cutoff").unique(maintain_order=True)
    scored = results.episodes.filter("headline").join(asked, on=["model", "harness", "episode"], how="left")
    grouped = scored.group_by("model", "harness", "condition", "cutoff", maintain_order=True)
    lines = [(*keys[:3], str(keys[3]), *_contrast(group)) for keys, group in grouped]
    return pl.DataFrame(lines, schema=_SCHEMA, orient="row")


def _contrast(group: pl.DataFrame) -> tuple[float | int | None, ...]:
    """The figures of one line, from `before` on."""
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
    if tells_enough(cells):
        half = spread(cells).half_width
        low, high = max(-1.0, cells.mean - half), min(1.0, cells.mean + half)
    return (float(before), counts[0], float(after), counts[1], cells.mean, low, high, cells.means.size // 2)


def _cells(kept: pl.DataFrame) -> Cells:
    """The parts are subtasks before and after in turn; their weights add up to the change of the mean."""
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
    cells = gather(*columns, alike=True)
    signs = cells.weights * 2.0
    signs[::2] *= -1.0
    return replace(cells, weights=signs)
