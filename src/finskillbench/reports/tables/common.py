"""What several tables share: which episodes they count, means, paired differences, and what must be said below."""

from __future__ import annotations

import polars as pl

from finskillbench.analysis.intervals import paired_difference
from finskillbench.analysis.results import Results
from finskillbench.reports.tables.base import Estimate


def headline(frame: pl.DataFrame) -> pl.DataFrame:
    """The lines of language models on subtasks that count towards the headline; programs are no contenders."""
    return frame.filter(~pl.col("program") & pl.col("headline"))


def means(frame: pl.DataFrame, by: str) -> dict[str, float]:
    """Mean score by the values of one column."""
    grouped = frame.group_by(by, maintain_order=True).agg(pl.col("score").mean())
    return dict(zip(grouped[by].to_list(), grouped["score"].to_list(), strict=True))


def difference(paired: pl.DataFrame) -> tuple[Estimate | None, int | None, int | None]:
    """Mean difference with its interval, the pairs and the clusters behind it; None where fewer than two are paired."""
    names = pl.concat_str("model", "harness", "episode", separator="\n")
    table = paired.select("cluster", "treated", "reference", name=names)
    name = table["name"].to_list()
    sides = [dict(zip(name, table[side].to_list(), strict=True)) for side in ("treated", "reference", "cluster")]
    found = paired_difference(*sides)
    if found is None:
        return None, None, None
    return Estimate(found.mean, *(found.interval or (None, None))), found.pairs, found.clusters


def notes(results: Results) -> tuple[str, ...]:
    """What a reader of any table must know: who was left out, and what an interval is."""
    told: list[str] = []
    if results.excluded:
        told.append(f"Without {', '.join(results.excluded)}.")
    if headline(results.episodes).is_empty():
        told.append("No language model has a score: baseline/... are programs, which stand as floors and ceilings.")
    told.append(
        "Differences are paired by episode, with 95 % intervals that count what episodes share (market date, mandate, "
        "company) once; no interval where too few such clusters were run or nothing varies."
    )
    return tuple(told)
