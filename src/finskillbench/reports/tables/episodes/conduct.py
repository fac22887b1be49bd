"""Tables of repeats, budgets, savings, skill use, and resources per episode (table 6 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.repeats import TOKEN_BUDGETS, SpendingMeasure, passes, score_within, variances
from finskillbench.analysis.results import Results
from finskillbench.analysis.savings import NEARLY, savings
from finskillbench.analysis.skills import EXCLUSION, NOT_CAUSAL, trigger_rates, use_effects, use_rates
from finskillbench.reports.tables.base import Cell, Column, Kind, Table
from finskillbench.reports.tables.common import (
    CONDITION,
    HARNESS,
    MODEL,
    compared,
    hosted_models,
    notes,
    table_from_frame,
    without_baselines,
)

_GROUP = ("model", "harness", "condition")
_LUCK = (
    "Within: variance between repeats of an episode (luck); alike: share of the total variance between episodes. "
    "pass@k: probability that at least one of k repeats earns full marks; pass^k: that all do."
)
_BUDGET = "Mean score, with 0 for submissions over the budget of output tokens, reasoning included."
_CHEAPER = (
    f"Output tokens within which each condition reaches {100 * NEARLY:.0f} % of the second condition's final score, "
    "and their ratio."
)

_STEPS = (
    "Loaded: a skill document was loaded; ran: a script was run; used: either; unchanged, altered: how a script's "
    "output was submitted (needs --failures, which reads trajectories). Trigger: a package was loaded in an episode of "
    "its domain; false trigger: a package of another domain was loaded. Rows in error are omitted."
)


def repeats_table(results: Results) -> Table | None:
    """Tabulate variance over repeats, pass@k and pass^k; None without repeats."""
    chosen = without_baselines(results)
    fewest = chosen.episodes.group_by(_GROUP).agg(pl.max("repeats"))["repeats"].min() if chosen.episodes.height else 0
    if not isinstance(fewest, int) or fewest < 2:
        return None
    passed = passes(chosen, fewest)
    frame = variances(chosen)
    for name in ("pass_at", "pass_hat"):
        estimates = estimate_means(passed, name, _GROUP, bounds=(0.0, 1.0)).select(
            *_GROUP,
            pl.col("mean").alias(name),
            pl.col("low").alias(f"{name}_low"),
            pl.col("high").alias(f"{name}_high"),
        )
        frame = frame.join(estimates, on=_GROUP, how="left", maintain_order="left")
    columns = (
        *(MODEL, HARNESS, CONDITION),
        Column("episodes", "Episodes", Kind.COUNT),
        Column("repeats", "Repeats", Kind.COUNT),
        Column("within", "Within", Kind.NUMBER, digits=4),
        Column("between", "Between", Kind.NUMBER, digits=4),
        Column("alike", "Alike", Kind.SHARE),
        Column("pass_at", f"pass@{fewest}", Kind.SHARE, interval=True),
        Column("pass_hat", f"pass^{fewest}", Kind.SHARE, interval=True),
    )
    return table_from_frame(
        "repeats", "Variance and pass rates over repeats", frame, columns, (*notes(results, differences=False), _LUCK)
    )


def budgets_table(results: Results) -> Table | None:
    """Tabulate score within 4, 8, 16 and 32 thousand output tokens; None without token counts."""
    if SpendingMeasure.TOKENS.value not in results.rows.columns:
        return None
    chosen = without_baselines(results)
    long = score_within(chosen, SpendingMeasure.TOKENS, TOKEN_BUDGETS)
    if long.is_empty():
        return None
    frame = long.select(_GROUP).unique(maintain_order=True)
    names: list[Column] = []
    for budget in TOKEN_BUDGETS:
        name = f"within_{budget:.0f}"
        names.append(Column(name, f"Within {budget:,.0f}", Kind.SCORE, interval=True))
        ends = {"mean": name, "low": f"{name}_low", "high": f"{name}_high"}
        estimates = long.filter(pl.col("budget") == budget).select(*_GROUP, *ends).rename(ends)
        frame = frame.join(estimates, on=_GROUP, how="left", maintain_order="left")
    title = "Score within a budget of output tokens"
    columns = (*(MODEL, HARNESS, CONDITION), *names)
    footnotes = (*notes(results, differences=False), _BUDGET, *_left_out(chosen))
    return table_from_frame("budgets", title, frame, columns, footnotes)


def _left_out(chosen: Results) -> tuple[str, ...]:
    """Note groups without a line, because some scored episodes lack token counts."""
    unknown = chosen.rows.filter(pl.col("score").is_not_null() & pl.col(SpendingMeasure.TOKENS.value).is_null())
    groups = unknown.group_by("model", "condition", maintain_order=True).len().rows()
    listed = "; ".join(f"{model}, {condition} ({count})" for model, condition, count in groups)
    return (f"Omitted, with the number of scored episodes without token counts: {listed}.",) if groups else ()


def savings_table(results: Results) -> Table | None:
    """Tabulate the ratio of tokens for the same score; None without tokens or comparisons."""
    if SpendingMeasure.TOKENS.value not in results.rows.columns:
        return None
    chosen = without_baselines(results)
    frames = [
        savings(chosen, each).with_columns(comparison=pl.lit(f"{each.treated}, {each.reference}"))
        for each in results.comparisons
    ]
    frames = [frame for frame in frames if frame.height]
    if not frames:
        return None
    columns = (
        *(MODEL, HARNESS),
        Column("comparison", "Conditions"),
        Column("target", "Score", Kind.SCORE),
        Column("treated_budget", "First within", Kind.NUMBER, "tokens", digits=0),
        Column("reference_budget", "Second within", Kind.NUMBER, "tokens", digits=0),
        Column("times", "Times cheaper", Kind.NUMBER, interval=True),
        Column("pairs", "Pairs", Kind.COUNT),
    )
    title = "Output tokens to the same score"
    return table_from_frame(
        "savings", title, pl.concat(frames), columns, (*notes(results, differences=False), _CHEAPER)
    )


def use_table(results: Results) -> Table | None:
    """Tabulate shares of episodes with skills loaded, run and submitted, and false triggers."""
    if not _records_use(results):
        return None
    chosen = without_baselines(results)
    frame = pl.concat(
        [use_rates(chosen), trigger_rates(chosen).rename({"kind": "step"})], how="diagonal_relaxed"
    ).filter(pl.col("share").is_not_null())
    offered = frame.filter(pl.col("successes") > 0).select(_GROUP).unique()
    frame = frame.join(offered, on=_GROUP, how="semi", maintain_order="left")
    if frame.is_empty():
        return None
    columns = (
        *(MODEL, HARNESS, CONDITION),
        Column("step", "Step"),
        Column("successes", "Rows", Kind.COUNT),
        Column("trials", "Of", Kind.COUNT),
        Column("share", "Share", Kind.SHARE, interval=True),
    )
    return table_from_frame("use", "Use of skills", frame, columns, (*notes(results, differences=False), _STEPS))


def use_effects_table(results: Results) -> Table | None:
    """Tabulate effects of offering and of using skills; None if rows do not record use."""
    if not _records_use(results):
        return None
    chosen = without_baselines(results)
    frames = [
        use_effects(chosen, each).with_columns(comparison=pl.lit(f"{each.treated} - {each.reference}"))
        for each in results.comparisons
    ]
    frames = [frame for frame in frames if frame.height]
    if not frames:
        return None
    columns = (
        *(MODEL, HARNESS),
        Column("comparison", "Difference of"),
        Column("effect", "Effect"),
        Column("mean", "Difference", Kind.DIFFERENCE, interval=True),
        Column("rate", "Share of use", Kind.SHARE),
        Column("pairs", "Pairs", Kind.COUNT),
    )
    title = "Effects of offering and of using skills"
    footnotes = (*notes(results), EXCLUSION, NOT_CAUSAL)
    return table_from_frame("use_effects", title, pl.concat(frames), columns, footnotes)


def _records_use(results: Results) -> bool:
    rows = results.rows
    return all(
        name in rows.columns and rows[name].null_count() < rows.height for name in ("skills_loaded", "scripts_run")
    )


_QUANTITIES: dict[str, tuple[str, str, int]] = {
    "tokens": ("tokens", "", 0),
    "output_tokens": ("output tokens", "", 0),
    "latency": ("latency", "s", 2),
    "turns": ("turns", "", 2),
    "cost": ("cost", "USD", 4),
}
"""Title, unit and decimals by name."""
_TAKEN = {
    "tokens": pl.sum_horizontal("total_input_tokens", "total_output_tokens", ignore_nulls=False),
    "output_tokens": pl.col("total_output_tokens"),
    "latency": pl.col("latency_seconds"),
    "turns": pl.col("turns"),
    "cost": pl.col("cost_usd"),
}
_FOOTNOTE = (
    "All episodes that did not end in an error, with repeats. Tokens: input (with cached ones) and output. Latency: "
    "answered model calls and tools, without waiting. Costs are shown only if known for every row; token figures cover "
    "episodes with known counts."
)


def resources_table(results: Results) -> Table:
    """Tabulate median and mean of each quantity by condition."""
    taken = _taken(results)
    rows: list[tuple[Cell, ...]] = [
        (condition, *_figures(taken.filter(pl.col("condition") == condition))) for condition in results.conditions
    ]
    footnotes = (*notes(results, differences=False), _FOOTNOTE, *_uncounted(taken, ["condition"]))
    return _table(
        "resources", "Resources per episode, by condition", [Column("condition", "Condition")], rows, footnotes
    )


def model_resources_table(results: Results) -> Table:
    """Tabulate median and mean of each quantity by model and condition."""
    rows: list[tuple[Cell, ...]] = []
    taken = _taken(results)
    for model in hosted_models(results):
        for condition in results.conditions:
            part = taken.filter(pl.col("model") == model, pl.col("condition") == condition)
            if not part.is_empty():
                rows.append((model, condition, *_figures(part)))
    first = [Column("model", "Model"), Column("condition", "Condition")]
    footnotes = (*notes(results, differences=False), _FOOTNOTE, *_uncounted(taken, ["model", "condition"]))
    return _table("resources_by_model", "Resources per episode, by model and condition", first, rows, footnotes)


def _taken(results: Results) -> pl.DataFrame:
    rows = compared(results, results.rows).filter(~pl.col("failed"))
    needed = {name: quantity.meta.root_names() for name, quantity in _TAKEN.items()}
    quantities = {
        name: _TAKEN[name] if set(needed[name]) <= set(rows.columns) else pl.lit(None, pl.Float64) for name in _TAKEN
    }
    return rows.select("model", "condition", **quantities)


def _figures(part: pl.DataFrame) -> list[Cell]:
    figures: list[Cell] = [part.height]
    for name in _QUANTITIES:
        values = part[name].cast(pl.Float64)
        absent = name == "cost" and values.has_nulls()
        figures += [None, None] if absent else [_known(values.median()), _known(values.mean())]
    return figures


def _known(value: object) -> float | None:
    return value if isinstance(value, float) else None


def _uncounted(taken: pl.DataFrame, by: Sequence[str]) -> list[str]:
    """Note the number of episodes per group without token counts."""
    groups = taken.group_by(by, maintain_order=True).agg(pl.len(), unknown=pl.col("tokens").is_null().sum())
    found = groups.filter(pl.col("unknown") > 0).select(pl.concat_str(by, separator=", "), "unknown", "len").rows()
    counts = "; ".join(f"{name}: {unknown} of {episodes}" for name, unknown, episodes in found)
    return [f"Episodes without token counts, omitted from the token columns: {counts}."] if found else []


def _table(
    name: str, title: str, first: Sequence[Column], rows: Sequence[tuple[Cell, ...]], footnotes: tuple[str, ...]
) -> Table:
    columns = [*first, Column("episodes", "Episodes", Kind.COUNT)]
    for quantity, (title, unit, digits) in _QUANTITIES.items():
        for middle in ("median", "mean"):
            column = Column(f"{middle}_{quantity}", f"{middle.capitalize()} {title}", Kind.NUMBER, unit, digits=digits)
            columns.append(column)
    return Table(name, title, tuple(columns), tuple(rows), footnotes)
