"""What came out, in numbers and in a few sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from finskillbench.analysis.results import distinct
from finskillbench.reports.formats.cells import difference_said
from finskillbench.reports.page.estimates import Said, estimates
from finskillbench.reports.page.view import View, whose_of
from finskillbench.reports.tables.base import ABSENT, Estimate
from finskillbench.reports.tables.programs import mark_means, marks_run


@dataclass(frozen=True, slots=True)
class Tile:
    """One number with what it is, and what belongs below it."""

    name: str
    value: str
    below: str


@dataclass(frozen=True, slots=True)
class Headline:
    """Tiles, the sentences of the result, and what limits it."""

    tiles: tuple[Tile, ...]
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]


def headline_of(view: View) -> Headline:
    """The headline of a page: over the subtasks that count towards it, or over all where none does."""
    scored = _counted(view.contending)
    means = estimates(scored, ["condition"], "score")
    tiles = [
        Tile(f"Mean score, {name}", f"{means[name].mean.value:.3f}", _interval(means[name].mean))
        for name in view.conditions
        if name in means
    ]
    gain = (
        estimates(_counted(view.paired(view.main)).with_columns(all=pl.lit("")), ["all"]).get("") if view.main else None
    )
    if view.main is not None:
        name = f"{view.main.treated} − {view.main.reference}"
        value, below = (f"{gain.mean.value:+.3f}", _interval(gain.mean)) if gain else (ABSENT, "no pairs")
        tiles.insert(0, Tile(name, value, below))
    return Headline(tuple(tiles), tuple(_sentences(view, means, gain)), tuple(_warnings(view)))


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _sentences(view: View, means: dict[str, Said], gain: Said | None) -> Iterator[str]:
    counted = _counted(view.contending)
    episodes, sub_tasks = counted["episode"].n_unique(), counted["sub_task"].n_unique()
    if not means:
        yield "No episode was scored, so nothing can be said of skills; the statuses below tell how they ended."
        return
    size = f"{whose_of(view)} on {_many(episodes, 'episode')} of {_many(sub_tasks, 'subtask')}"
    if view.main is None or gain is None:
        told = ", ".join(f"{said.mean.value:.3f} under {name}" for name, said in means.items())
        yield f"{size}: mean score {told}. No two conditions share scored episodes, so no difference can be said."
        return
    treated, _reference = view.main
    direction = "raised" if gain.mean.value > 0 else "lowered" if gain.mean.value < 0 else "did not change"
    both = _counted(view.paired(view.main))
    before, after = both["reference"].mean(), both["treated"].mean()
    moved = f" from {before:.3f} to {after:.3f}" if isinstance(before, float) and gain.mean.value else ""
    yield (
        f"With {size}, {treated} {direction} the mean score{moved}: {difference_said(gain.mean)} on the same "
        f"{_many(gain.pairs, 'pair')}, in {_many(gain.clusters, 'cluster')}."
    )
    groups = estimates(view.paired(view.main), ["sub_task"])
    if len(groups) > 1:
        most, least = (pick(groups, key=lambda name: groups[name].mean.value) for pick in (max, min))
        yield (
            f"It changed {most} most ({difference_said(groups[most].mean)}) and {least} least "
            f"({difference_said(groups[least].mean)})."
        )
    by_entry = estimates(both, ["entry"])
    if len(by_entry) > 1:
        sure = [name for name, said in by_entry.items() if said.mean.low is not None and said.mean.low > 0]
        yield f"{len(sure)} of {len(by_entry)} gained with an interval above 0."
    yield from _marks(view)


def _marks(view: View) -> Iterator[str]:
    said = ((mark, mark_means(view.results, mark, ()).get(())) for mark in marks_run(view.results))
    known = [
        f"{mark.title.lower()} {value:.3f} ({mark.model}, {mark.condition})"
        for mark, value in said
        if value is not None
    ]
    if view.only_programs:
        yield (
            "No language model took part: these are baseline programs, the marks that models are held against"
            f"{': ' if known else ''}{', '.join(known)}."
        )
    elif known:
        yield f"Beside them stand programs: {', '.join(known)}."


def _warnings(view: View) -> Iterator[str]:
    results, rows = view.results, view.rows
    if results.excluded:
        yield f"Without {', '.join(results.excluded)}."
    failed = rows.filter(pl.col("failed")).height
    if failed:
        yield f"{failed:,} of {rows.height:,} episodes ended in an error: they have no score and are in no mean."
    other = [
        f"{name} ({profile.value})" for name, profile in results.profiles.items() if profile is not results.profile
    ]
    if other:
        yield f"No {results.profile.value} scores for: {', '.join(other)}."
    for column, what in {"edition": "editions", "scorer_version": "scorers", "commit": "states of the code"}.items():
        if column in rows.columns and len(distinct(rows, column)) > 1:
            yield f"The rows are of {len(distinct(rows, column))} {what}; means over them mix what may not be alike."
    aside = distinct(rows.filter(~pl.col("headline")), "sub_task")
    if aside:
        yield f"Not in the headline: {', '.join(aside)}."


def _counted(frame: pl.DataFrame) -> pl.DataFrame:
    counted = frame.filter(pl.col("headline"))
    return frame if counted.is_empty() else counted


def _interval(mean: Estimate) -> str:
    if mean.low is None or mean.high is None:
        return "no interval can be said"
    sign = "+" if mean.low < 0 else ""
    return f"95 % interval {mean.low:{sign}.3f} to {mean.high:{sign}.3f}"
