"""Tables of skills among others, and of skills found without help, after a hint and forced."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.library import DISCOVERY, DISTRACTORS, half_gone, library_sizes, precision_and_recall
from finskillbench.analysis.results import REFERENCE, Comparison, Results, pairs
from finskillbench.analysis.skills import use_rates
from finskillbench.harness.conditions import Activation
from finskillbench.reports.tables import common
from finskillbench.reports.tables.base import Column, Kind, Table, columns_of

_GROUP = ["model", "harness", "condition"]
_WHO = _GROUP[:2]
_SCORE = Column("score", "Score", Kind.SCORE, interval=True)
_LIBRARY = (
    "Packages: number in the listing. Relevant: the packages of the episode's domain. Precision: share of loaded (run) "
    "packages that are relevant; recall: share of relevant packages that were loaded (run). Discovery tokens, mean per "
    "episode: those of the listing times turns, plus those of irrelevant documents loaded, estimated from characters "
    "(3 each, about a third too many for prose). Half gone at: packages at which half of the gain of the smallest "
    f"listing over {REFERENCE} is gone, interpolated in the logarithm."
)
_ACTIVATION = (
    "Used: a document was loaded or a script run (with documents in the prompt, a script). Change: score minus that of "
    "the same condition without help; that of +forced is the cost of a description that agents do not act on."
)


def library_table(results: Results) -> Table | None:
    """Tabulate precision, recall, discovery and gains by number of packages; None without a library."""
    chosen = _chosen(results, list(library_sizes(results)))
    if chosen is None:
        return None
    sizes = pl.DataFrame(list(library_sizes(results).items()), schema=["condition", "packages"], orient="row")
    frame = (
        precision_and_recall(chosen).join(sizes, on="condition", maintain_order="left").join(_scores(chosen), on=_GROUP)
    )
    counted = chosen.rows.filter(~pl.col("failed"))
    tokens = pl.col(DISCOVERY).mean() if DISCOVERY in counted.columns else pl.lit(None, pl.Float64).first()
    frame = frame.join(counted.group_by(_GROUP).agg(tokens.alias(DISCOVERY)), on=_GROUP, how="left")
    gains = pl.concat([_changes(results, Comparison(name, REFERENCE), "gain") for name in sizes["condition"]])
    frame = frame.join(gains, on=_GROUP, how="left").sort(*_WHO, "packages")
    halves = [
        (*who, _half(lines.drop_nulls("gain").select("packages", "gain").rows()))
        for who, lines in frame.group_by(_WHO, maintain_order=True)
    ]
    frame = frame.join(pl.DataFrame(halves, schema=[*_WHO, "half"], orient="row"), on=_WHO, maintain_order="left")
    columns = (
        *(common.MODEL, common.HARNESS, common.CONDITION, Column("packages", "Packages", Kind.COUNT)),
        *columns_of(Kind.SHARE, interval=True, loaded_precision="Loaded, precision", loaded_recall="Loaded, recall"),
        *columns_of(Kind.SHARE, interval=True, ran_precision="Run, precision", ran_recall="Run, recall"),
        Column(DISCOVERY, "Discovery tokens", Kind.NUMBER, "tokens", digits=0),
        *(_SCORE, Column("gain", "Gain", Kind.DIFFERENCE, interval=True), Column("half", "Half gone at")),
    )
    footnotes = (*common.notes(results), _LIBRARY, *_sources(chosen))
    return common.table_from_frame("library", "Skills among others", frame, columns, footnotes)


def _half(gains: list[tuple[int, float]]) -> str | None:
    if not gains:
        return None
    if gains[0][1] <= 0.0:
        return "no gain"
    found = half_gone(gains)
    return f"not reached up to {gains[-1][0]}" if found is None else f"{found:.0f}"


def _sources(results: Results) -> list[str]:
    if DISTRACTORS not in results.rows.columns:
        return ["Source of distractors: in run.json of the run."]
    found = results.rows.select("condition", DISTRACTORS).drop_nulls().unique(maintain_order=True).rows()
    return [f"Distractors: {'; '.join(f'{condition}: {source}' for condition, source in found)}."]


def activation_table(results: Results) -> Table | None:
    """Tabulate use and score without help, after a hint and forced; None if no condition was run with help."""
    helped = {
        base: names
        for base in results.conditions
        if (names := [f"{base}+{way}" for way in Activation if way and f"{base}+{way}" in results.conditions])
    }
    wanted = [name for base, names in helped.items() for name in (base, *names)]
    chosen = _chosen(results, wanted)
    if chosen is None:
        return None
    used = (
        use_rates(chosen).filter(pl.col("step") == "used").select(*_GROUP, "share", share_low="low", share_high="high")
    )
    changes = [_changes(results, Comparison(name, base), "change") for base, names in helped.items() for name in names]
    order = pl.DataFrame({"condition": wanted, "order": range(len(wanted))})
    frame = used.join(_scores(chosen), on=_GROUP).join(pl.concat(changes), on=_GROUP, how="left")
    frame = frame.join(order, on="condition").sort(*_WHO, "order")
    columns = (
        *(common.MODEL, common.HARNESS, common.CONDITION),
        *(Column("share", "Used", Kind.SHARE, interval=True), _SCORE),
        *(Column("change", "Change", Kind.DIFFERENCE, interval=True), Column("pairs", "Pairs", Kind.COUNT)),
    )
    footnotes = (*common.notes(results), _ACTIVATION)
    return common.table_from_frame("activation", "Skills without help, hinted and forced", frame, columns, footnotes)


def _chosen(results: Results, conditions: list[str]) -> Results | None:
    """Restrict results to compared models and some conditions; None without rows that record use."""
    if not {"skills_loaded", "scripts_run"} <= {*results.rows.columns}:
        return None
    chosen, wanted = common.without_baselines(results), pl.col("condition").is_in(conditions)
    rows = chosen.rows.filter(wanted)
    return None if rows.is_empty() else replace(chosen, rows=rows, episodes=chosen.episodes.filter(wanted))


def _scores(results: Results) -> pl.DataFrame:
    return _estimates(estimate_means(results.episodes, "score", _GROUP), "score").drop("pairs")


def _changes(results: Results, comparison: Comparison, name: str) -> pl.DataFrame:
    paired = common.compared(results, pairs(results, comparison))
    return _estimates(estimate_means(paired, by=_WHO).with_columns(condition=pl.lit(comparison.treated)), name)


def _estimates(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    return frame.select(*_GROUP, "pairs", **{name: "mean", f"{name}_low": "low", f"{name}_high": "high"})
