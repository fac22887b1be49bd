"""Scores by model (table 5 of the paper), significance, strata, and effects of two factors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import polars as pl

from finskillbench.analysis.inference import adjust, detectable
from finskillbench.analysis.intervals import DOCUMENTS_AND_SCRIPTS, SKILLS_AND_CODE, Weighting, effects, estimate_means
from finskillbench.analysis.results import Comparison, Results, by_cell, pairs
from finskillbench.episode import Status
from finskillbench.reports.tables import common
from finskillbench.reports.tables.base import Cell, Column, Kind, Table, columns_of
from finskillbench.reports.tables.scores.grouped import REMARKS, remarks

_MOSTLY = 0.5
"""Minimum share of rows for another ending to be named."""
_WEIGHED = (
    "Means weight subtasks equally, then conditions. Answered: rows whose submission was scored; an unreadable "
    "submission is not a wrong answer."
)


def models_table(results: Results) -> Table:
    """Tabulate scores by model, the largest gain first, then the reference programs."""
    episodes = common.compared(results, results.episodes)
    mean = common.macro_means(episodes, ("model", "condition"))
    changes = [common.gaps(results, each, ("model",), weighting=Weighting.MACRO) for each in results.comparisons]
    planned = common.compared(results, results.rows)
    answered, mostly = endings(planned)
    model_remarks = remarks(results, planned, "model", common.means(episodes, ("model", "condition")))
    rows: list[tuple[Cell, ...]] = [
        (
            model,
            _overall(results, model, mean),
            *_of_conditions(results, model, mean),
            *(each[model,].estimate if (model,) in each else None for each in changes),
            answered.get(model),
            mostly.get(model),
            *([model_remarks.get(model, "")] if model_remarks else []),
        )
        for model in common.hosted_models(results)
    ]
    if changes:
        first = 2 + len(results.conditions)
        rows.sort(key=lambda row: common.descending_key(row[first]))
    columns = (
        Column("model", "Model"),
        Column("overall", "Overall", Kind.SCORE),
        *common.condition_columns(results),
        *common.comparison_columns(results),
        Column("answered", "Answered", Kind.SHARE),
        Column("mostly", "Otherwise mostly"),
        *([REMARKS] if model_remarks else []),
    )
    rows += mark_rows(results, columns, macro=True)
    return Table("models", "Mean score by model", columns, tuple(rows), (*common.notes(results), _WEIGHED))


def endings(rows: pl.DataFrame) -> tuple[dict[str, float], dict[str, str]]:
    """Return by model the share of scored rows, and another ending of at least half of the rows."""
    shares = (
        rows.group_by("model", "status", maintain_order=True)
        .agg(count=pl.len())
        .with_columns(share=pl.col("count") / pl.col("count").sum().over("model"))
    )
    scored, mostly = dict.fromkeys(shares["model"].to_list(), 0.0), dict[str, str]()
    for model, status, _, share in shares.iter_rows():
        if status == Status.SCORED:
            scored[model] = share
        elif share >= _MOSTLY:
            mostly[model] = f"{status} {100 * share:.0f} %"
    return scored, mostly


def _of_conditions(results: Results, model: str, mean: Mapping[common.Group, common.Mean]) -> list[float | None]:
    found = [mean.get((model, condition)) for condition in results.conditions]
    return [each.value if each else None for each in found]


def _overall(results: Results, model: str, mean: Mapping[common.Group, common.Mean]) -> float | None:
    """Return the mean over conditions; None if one has no score."""
    found = [each for each in _of_conditions(results, model, mean) if each is not None]
    return math.fsum(found) / len(found) if len(found) == len(results.conditions) else None


def mark_rows(results: Results, columns: Sequence[Column], *, macro: bool = False) -> list[tuple[Cell, ...]]:
    """Return rows of reference programs, each with its mean in the column of its condition."""
    if results.rows["program"].all():
        return []
    rows: list[tuple[Cell, ...]] = []
    for mark in common.available_marks(results):
        value = common.mark_means(results, mark, (), macro=macro).get(())
        cells: dict[str, Cell] = {"model": f"{mark.title.lower()} ({mark.model})", f"mean_{mark.condition}": value}
        rows.append(tuple(cells.get(column.name) for column in columns))
    return rows


_COMPARED = Column("comparison", "Difference of")
_CHANGE = Column("mean", "Difference", Kind.DIFFERENCE, interval=True)
_PAIRS = (Column("pairs", "Pairs", Kind.COUNT), Column("clusters", "Clusters", Kind.COUNT))
_CHANCE = (
    "p: two-sided clustered t test; Holm: adjusted for a family-wise error of 5 % over the subtasks of a comparison; "
    "FDR: adjusted by Benjamini and Hochberg for a false discovery rate of 5 %. Detectable: the smallest true "
    "difference found in 80 of 100 such runs."
)
_SILENT = (
    "{} of {} differences vary too little over clusters for a p-value: they are excluded from the adjustments, but may "
    "be the clearest ones; finskillbench compare --fail-on-regression has a sign test for them."
)
_LEVEL = (
    "Strata are by a model's mean score on a subtask without the treatment. Strata by single episodes would show gains "
    "from regression to the mean."
)
_ARMS = (
    "A factor's effect is the mean of its effects alone and with the other factor; the interaction is their joint "
    "effect beyond the sum of both alone. Over episodes that were scored under all four conditions."
)


def significance_table(results: Results) -> Table | None:
    """Tabulate differences by subtask with adjusted p-values; None without comparisons."""

    def tested(comparison: Comparison) -> pl.DataFrame:
        paired = common.compared(results, pairs(results, comparison), common.every_subtask)
        return detectable(adjust(estimate_means(paired, by=["sub_task"])))

    found = common.of_comparisons(results, tested)
    if found is None:
        return None
    columns = (
        _COMPARED,
        Column("sub_task", "Subtask"),
        _CHANGE,
        *_PAIRS,
        Column("effective_clusters", "Effective clusters", Kind.NUMBER, digits=1),
        *columns_of(Kind.NUMBER, digits=4, p="p", p_holm="p, Holm", p_fdr="p, FDR"),
        Column("detectable", "Detectable", Kind.SCORE),
    )
    title = "Significance of differences by subtask"
    silent = found.filter(pl.col("mean").is_not_null() & pl.col("p").is_null()).height
    footnotes = (*common.notes(results), _CHANCE, *([_SILENT.format(silent, found.height)] if silent else []))
    return common.table_from_frame("significance", title, found, columns, footnotes)


def strata_table(results: Results) -> Table | None:
    """Tabulate differences by score without the treatment; None without comparisons."""

    def by_stratum(comparison: Comparison) -> pl.DataFrame:
        return estimate_means(by_cell(common.compared(results, pairs(results, comparison))), by=["stratum"]).sort(
            "stratum"
        )

    frame = common.of_comparisons(results, by_stratum)
    if frame is None:
        return None
    columns = (_COMPARED, Column("stratum", "Score without"), _CHANGE, *_PAIRS)
    title = "Differences by score without the treatment"
    return common.table_from_frame("strata", title, frame, columns, (*common.notes(results), _LEVEL))


def arms_table(results: Results) -> Table | None:
    """Tabulate effects of two factors and their interaction; None without a complete design."""
    chosen = common.without_baselines(results)
    frames = [
        effects(chosen, each).with_columns(design=pl.lit(f"{each.factor_a} x {each.factor_b}"))
        for each in (DOCUMENTS_AND_SCRIPTS, SKILLS_AND_CODE)
        if {*each.conditions} <= {*results.conditions}
    ]
    frames = [frame for frame in frames if frame.height]
    if not frames:
        return None
    columns = (
        *(common.MODEL, common.HARNESS),
        Column("design", "Design"),
        Column("effect", "Effect"),
        _CHANGE,
        *_PAIRS,
    )
    title = "Effects of two factors"
    return common.table_from_frame(
        "arms", title, pl.concat(frames), columns, (*common.notes(results, differences=False), _ARMS)
    )
