"""Challengers of each model under validation: every other model, condition and baseline program of the runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from finskillbench.analysis.intervals import estimate
from finskillbench.analysis.results import CURATED, Results
from finskillbench.publish.pack.chapters import Chapter, captioned
from finskillbench.reports.tables.base import Column, Estimate, Kind, Table
from finskillbench.reports.tables.common import contenders
from finskillbench.reports.tables.scores.overview import floors_table

_PAIRED = "headline episodes scored for both; unit: difference of scores, model less challenger"


class Challenge(NamedTuple):
    """A challenger against a model on the episodes that both have a score for."""

    model: str
    condition: str
    kind: str
    challenger: str
    difference: Estimate
    pairs: int
    clusters: int

    @property
    def finding(self) -> str:
        """The side that scored higher beyond the 95 % interval, where one did."""
        low, high = self.difference.low, self.difference.high
        if low is None or high is None:
            return "no interval"
        return "model higher" if low > 0 else "challenger higher" if high < 0 else "not distinguished"


def challengers_chapter(results: Results, published: Results | None) -> Chapter:
    """The strongest challenger of each kind, with all of them in the appendix."""
    found = list(_challenges(results))
    strongest: dict[tuple[str, str, str], Challenge] = {}
    for each in sorted(found, key=lambda one: one.difference.value):
        strongest.setdefault((each.model, each.condition, each.kind), each)
    best = [each for each in found if each in strongest.values()]
    programs = bool(results.rows["program"].any())
    words = (
        "Each model is compared, under its main condition (curated, where run), with every other model and baseline "
        "program, and with itself under every other condition. A negative difference favours the challenger. "
        "Intervals are not adjusted for the number of challengers.",
        *([] if found else ["Not assessed: the runs hold no other model, condition or baseline."]),
        *([] if programs else ["No baseline program was run; scores have no reference level (--model baseline/...)."]),
    )
    floors = ()
    if programs:
        table = floors_table(results, published)
        population = "scored episodes of each subtask; unit: score, 0 to 1"
        floors = captioned(table, "Baseline programs by subtask", population, table.notes[0])
    tables = (*captioned(_table(best), "Strongest challenger of each kind", _PAIRED), *floors)
    return Chapter(
        "challengers",
        "Challenger analysis",
        words,
        tables=tables,
        appendix=captioned(_table(found), "All challengers", _PAIRED) if len(found) > len(best) else (),
    )


def _table(found: list[Challenge]) -> Table:
    columns = (
        Column("model", "Model"),
        Column("condition", "Condition"),
        Column("kind", "Kind"),
        Column("challenger", "Challenger"),
        Column("difference", "Difference, 95 % interval", Kind.DIFFERENCE, interval=True),
        Column("pairs", "Pairs", Kind.COUNT),
        Column("clusters", "Clusters", Kind.COUNT),
        Column("finding", "Finding"),
    )
    return Table("challengers", "", columns, tuple((*each, each.finding) for each in found))


def _challenges(results: Results) -> Iterator[Challenge]:
    models = contenders(results)
    sides: dict[tuple[str, str], dict[str, pl.DataFrame]] = {}
    for group, part in results.episodes.filter("headline").group_by(
        "model", "harness", "condition", maintain_order=True
    ):
        model, harness, condition = map(str, group)
        sides.setdefault((model, harness), {})[condition] = part
    for entry, own in sides.items():
        if entry[0] not in models:
            continue
        main = CURATED if CURATED in own else list(own)[-1]
        name = _named(results, *entry)
        for other, parts in sides.items():
            if other == entry:
                for condition in (each for each in parts if each != main):
                    yield from _challenge(own[main], parts[condition], (name, main, "condition", condition))
                continue
            condition = main if main in parts else next(iter(parts))
            under = "" if condition == main else f" under {condition}"
            kind = "model" if other[0] in models else "baseline"
            who = f"{_named(results, *other)}{under}"
            yield from _challenge(own[main], parts[condition], (name, main, kind, who))


def _named(results: Results, model: str, harness: str) -> str:
    return model if results.rows["harness"].n_unique() == 1 else f"{model} in {harness}"


def _challenge(own: pl.DataFrame, other: pl.DataFrame, who: tuple[str, str, str, str]) -> Iterator[Challenge]:
    both = own.join(other.select("episode", challenger="score"), on="episode", how="inner", maintain_order="left")
    if both.height:
        line = estimate(both.with_columns(difference=pl.col("score") - pl.col("challenger"))).row(0, named=True)
        difference = Estimate(line["mean"], line["low"], line["high"])
        yield Challenge(*who, difference, line["pairs"], line["clusters"])
