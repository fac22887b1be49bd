"""Headline of a suite: key figures, summary sentences and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from finskillbench.analysis.inference import cluster_signs
from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.results import distinct_values
from finskillbench.reports.page.view import View, many
from finskillbench.reports.tables.base import Estimate, difference_text
from finskillbench.reports.tables.common import available_marks, mark_means


class MeanEstimate(NamedTuple):
    """A mean with its interval, number of episodes and number of clusters.

    `p` is from the exact sign test over clusters, for a difference without an interval; else None.
    """

    mean: Estimate
    pairs: int
    clusters: int
    p: float | None = None


def estimates(frame: pl.DataFrame, by: Sequence[str], value: str = "difference") -> dict[str, MeanEstimate]:
    """Return the mean of a column by group; group names are joined by a line feed."""
    if frame.is_empty():
        return {}
    found: dict[str, MeanEstimate] = {}
    signs = cluster_signs(frame, by) if value == "difference" else {}
    for line in estimate_means(frame, value=value, by=by).iter_rows(named=True):
        if line["mean"] is not None:
            mean = Estimate(line["mean"], line["low"], line["high"])
            group = tuple(line[name] for name in by)
            p = signs[group].p(mean.value) if group in signs and mean.low is None else None
            found["\n".join(map(str, group))] = MeanEstimate(mean, line["pairs"], line["clusters"], p)
    return found


CALIBRATION = "Calibration run: programs only"
"""Title of a page without a language model."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A key figure with its name and a line below it."""

    name: str
    value: str
    below: str


@dataclass(frozen=True, slots=True)
class Headline:
    """Tiles, sentences and warnings of a suite."""

    tiles: tuple[Tile, ...]
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]


def headline_of(view: View) -> Headline:
    """Return the headline of a suite, over its headline subtasks, or over all if there are none."""
    warnings = tuple(_warnings(view))
    if view.only_programs:
        return Headline(tuple(_marks(view)), tuple(_calibration(view)), warnings)
    means = estimates(_counted(view.contending), ["condition"], "score")
    tiles = [
        Tile(f"Mean score, {name}", f"{means[name].mean.value:.3f}", _interval(means[name]))
        for name in view.conditions
        if name in means
    ]
    gain = None
    if view.main is not None:
        gain = estimates(_counted(view.paired(view.main)).with_columns(all=pl.lit("")), ["all"]).get("")
        name = f"{view.main.treated} − {view.main.reference}"
        value, below = (f"{gain.mean.value:+.3f}", _interval(gain)) if gain else ("n/a", "no pairs")
        tiles.insert(0, Tile(name, value, below))
    return Headline(tuple(tiles), tuple(_sentences(view, means, gain)), warnings)


def _sentences(view: View, means: dict[str, MeanEstimate], gain: MeanEstimate | None) -> Iterator[str]:
    counted = _counted(view.contending)
    if not means:
        yield "No episode was scored. The statuses below show how the episodes ended."
        return
    size = (
        f"{view.named(view.pooled)} on {many(counted['episode'].n_unique(), 'episode')} of "
        f"{many(counted['sub_task'].n_unique(), 'subtask')} of the {view.suite}"
    )
    if view.main is None or gain is None:
        scores = ", ".join(f"{found.mean.value:.3f} under {name}" for name, found in means.items())
        yield f"{size}: mean score {scores}. No two conditions share scored episodes: a difference is not available."
        return
    treated, _reference = view.main
    direction = "raised" if gain.mean.value > 0 else "lowered" if gain.mean.value < 0 else "did not change"
    both = _counted(view.paired(view.main))
    before, after = both["reference"].mean(), both["treated"].mean()
    moved = f" from {before:.3f} to {after:.3f}" if isinstance(before, float) and gain.mean.value else ""
    yield (
        f"With {size}, {treated} {direction} the mean score{moved}: {_difference(gain)} on the same "
        f"{many(gain.pairs, 'pair')}, in {many(gain.clusters, 'cluster')}."
    )
    groups = estimates(view.paired(view.main), ["sub_task"])
    if len(groups) > 1:
        most, least = (pick(groups, key=lambda name: groups[name].mean.value) for pick in (max, min))
        if groups[most].mean.value != groups[least].mean.value:
            raised = f"{most} most ({_difference(groups[most])})"
            yield f"It changed {raised} and {least} least ({_difference(groups[least])})."
    by_entry = estimates(both, ["entry"])
    if len(by_entry) > 1:
        sure = [name for name, found in by_entry.items() if found.mean.low is not None and found.mean.low > 0]
        yield f"{len(sure)} of {len(by_entry)} gained with an interval above 0."
    marks = [f"{tile.name.lower()} {tile.value} ({tile.below})" for tile in _marks(view)]
    if marks:
        yield f"For comparison, programs score: {', '.join(marks)}."


def _marks(view: View) -> Iterator[Tile]:
    """Yield mean scores of the programs that mark the scale."""
    for mark in available_marks(view.results):
        value = mark_means(view.results, mark, ()).get(())
        if value is not None:
            yield Tile(mark.title, f"{value:.3f}", f"{mark.model}, {mark.condition}")


def _calibration(view: View) -> Iterator[str]:
    rows = _counted(view.rows)
    yield (
        f"No language model took part. {many(len(view.entries), 'baseline program')} ran "
        f"{many(rows['episode'].n_unique(), 'episode')} of {many(rows['sub_task'].n_unique(), 'subtask')} of the "
        f"{view.suite}. Their scores calibrate the scale; they do not show what skills are worth to a model."
    )


def _warnings(view: View) -> Iterator[str]:
    results, rows = view.results, view.rows
    if results.excluded:
        yield f"Without {', '.join(results.excluded)}."
    failed = rows.filter(pl.col("failed")).height
    if failed:
        yield f"{failed:,} of {rows.height:,} episodes ended in an error and are excluded from means."
    if other := results.other_profiles:
        yield f"No {results.profile.value} scores for: {', '.join(other)}."
    for column, noun in {"edition": "editions", "scorer_version": "scorers", "commit": "states of the code"}.items():
        if column in rows.columns and len(distinct_values(rows, column)) > 1:
            yield f"The rows have {len(distinct_values(rows, column))} {noun}; means may mix unlike rows."
    aside = distinct_values(rows.filter(~pl.col("headline")), "sub_task")
    if aside:
        yield f"Not in the headline: {', '.join(aside)}."


def _counted(frame: pl.DataFrame) -> pl.DataFrame:
    counted = frame.filter(pl.col("headline"))
    return frame if counted.is_empty() else counted


def _difference(found: MeanEstimate) -> str:
    """Format a difference with its interval, or with the p-value of its sign test."""
    test = "" if found.p is None else f", exact sign test over clusters p = {found.p:.2g}"
    return difference_text(found.mean) + test


def _interval(found: MeanEstimate) -> str:
    mean: Estimate = found.mean
    if mean.low is None or mean.high is None:
        return "95 % interval n/a" + ("" if found.p is None else f"; sign test p = {found.p:.2g}")
    sign = "+" if mean.low < 0 else ""
    return f"95 % interval {mean.low:{sign}.3f} to {mean.high:{sign}.3f}"
