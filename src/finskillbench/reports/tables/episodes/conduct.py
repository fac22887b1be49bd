"""Tables of repeats, budgets, savings, skill use, and resources per episode (table 6 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.repeats import TOKEN_BUDGETS, SpendingMeasure, passes, score_within, variances
from finskillbench.analysis.results import Results
from finskillbench.analysis.savings import NEARLY, savings
from finskillbench.analysis.skills import EXCLUSION, NOT_CAUSAL, trigger_rates, use_effects, use_rates
from finskillbench.reports.tables import common
from finskillbench.reports.tables.base import Cell, Column, Kind, Table, columns_of

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
    chosen = common.without_baselines(results)
    fewest = chosen.episodes.group_by(_GROUP).agg(pl.max("repeats"))["repeats"].min() if chosen.episodes.height else 0
    if not isinstance(fewest, int) or fewest < 2:
        return None
    passed = passes(chosen, fewest)
    frame = variances(chosen)
    for name in ("pass_at", "pass_hat"):
        ends = {"mean": name, "low": f"{name}_low", "high": f"{name}_high"}
        estimates = estimate_means(passed, name, _GROUP, bounds=(0.0, 1.0)).select(*_GROUP, *ends).rename(ends)
        frame = frame.join(estimates, on=_GROUP, how="left", maintain_order="left")
    columns = (
        *(common.MODEL, common.HARNESS, common.CONDITION),
        *columns_of(Kind.COUNT, episodes="Episodes", repeats="Repeats"),
        *columns_of(Kind.NUMBER, digits=4, within="Within", between="Between"),
        Column("alike", "Alike", Kind.SHARE),
        *columns_of(Kind.SHARE, interval=True, pass_at=f"pass@{fewest}", pass_hat=f"pass^{fewest}"),
    )
    footnotes = (*common.notes(results, differences=False), _LUCK)
    return common.table_from_frame("repeats", "Variance and pass rates over repeats", frame, columns, footnotes)


def budgets_table(results: Results) -> Table | None:
    """Tabulate score within 4, 8, 16 and 32 thousand output tokens; None without token counts."""
    if SpendingMeasure.TOKENS.value not in results.rows.columns:
        return None
    chosen = common.without_baselines(results)
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
    columns = (*(common.MODEL, common.HARNESS, common.CONDITION), *names)
    footnotes = (*common.notes(results, differences=False), _BUDGET, *_left_out(chosen))
    return common.table_from_frame("budgets", title, frame, columns, footnotes)


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
    chosen = common.without_baselines(results)
    frame = common.of_comparisons(results, lambda comparison: savings(chosen, comparison), ", ")
    if frame is None:
        return None
    columns = (
        *(common.MODEL, common.HARNESS),
        Column("comparison", "Conditions"),
        Column("target", "Score", Kind.SCORE),
        Column("treated_budget", "First within", Kind.NUMBER, "tokens", digits=0),
        Column("reference_budget", "Second within", Kind.NUMBER, "tokens", digits=0),
        Column("times", "Times cheaper", Kind.NUMBER, interval=True),
        Column("pairs", "Pairs", Kind.COUNT),
    )
    title = "Output tokens to the same score"
    footnotes = (*common.notes(results, differences=False), _CHEAPER)
    return common.table_from_frame("savings", title, frame, columns, footnotes)


def use_table(results: Results) -> Table | None:
    """Tabulate shares of episodes with skills loaded, run and submitted, and false triggers."""
    if not _records_use(results):
        return None
    chosen = common.without_baselines(results)
    frame = pl.concat(
        [use_rates(chosen), trigger_rates(chosen).rename({"kind": "step"})], how="diagonal_relaxed"
    ).filter(pl.col("share").is_not_null())
    offered = frame.filter(pl.col("successes") > 0).select(_GROUP).unique()
    frame = frame.join(offered, on=_GROUP, how="semi", maintain_order="left")
    if frame.is_empty():
        return None
    columns = (
        *(common.MODEL, common.HARNESS, common.CONDITION),
        Column("step", "Step"),
        *columns_of(Kind.COUNT, successes="Rows", trials="Of"),
        Column("share", "Share", Kind.SHARE, interval=True),
    )
    return common.table_from_frame(
        "use", "Use of skills", frame, columns, (*common.notes(results, differences=False), _STEPS)
    )


def use_effects_table(results: Results) -> Table | None:
    """Tabulate effects of offering and of using skills; None if rows do not record use."""
    if not _records_use(results):
        return None
    chosen = common.without_baselines(results)
    frame = common.of_comparisons(results, lambda comparison: use_effects(chosen, comparison))
    if frame is None:
        return None
    columns = (
        *(common.MODEL, common.HARNESS),
        *columns_of(Kind.TEXT, comparison="Difference of", effect="Effect"),
        Column("mean", "Difference", Kind.DIFFERENCE, interval=True),
        Column("rate", "Share of use", Kind.SHARE),
        Column("pairs", "Pairs", Kind.COUNT),
    )
    title = "Effects of offering and of using skills"
    footnotes = (*common.notes(results), EXCLUSION, NOT_CAUSAL)
    return common.table_from_frame("use_effects", title, frame, columns, footnotes)


def _records_use(results: Results) -> bool:
    rows = results.rows
    return all(name in rows.columns and not rows[name].is_null().all() for name in ("skills_loaded", "scripts_run"))


_TOKENS = pl.sum_horizontal("total_input_tokens", "total_output_tokens", ignore_nulls=False)
_QUANTITIES: dict[str, tuple[str, str, int, pl.Expr]] = {
    "tokens": ("tokens", "", 0, _TOKENS),
    "output_tokens": ("output tokens", "", 0, pl.col("total_output_tokens")),
    "latency": ("latency", "s", 2, pl.col("latency_seconds")),
    "turns": ("turns", "", 2, pl.col("turns")),
    "cost": ("cost", "USD", 4, pl.col("cost_usd")),
}
"""Title, unit, digits and value of each quantity; a value is null where a column is missing."""
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
    footnotes = (*common.notes(results, differences=False), _FOOTNOTE, *_uncounted(taken, ["condition"]))
    return _table("resources", "Resources per episode, by condition", [common.CONDITION], rows, footnotes)


def model_resources_table(results: Results) -> Table:
    """Tabulate median and mean of each quantity by model and condition."""
    rows: list[tuple[Cell, ...]] = []
    taken = _taken(results)
    for model in common.hosted_models(results):
        for condition in results.conditions:
            part = taken.filter(pl.col("model") == model, pl.col("condition") == condition)
            if not part.is_empty():
                rows.append((model, condition, *_figures(part)))
    first = [common.MODEL, common.CONDITION]
    footnotes = (*common.notes(results, differences=False), _FOOTNOTE, *_uncounted(taken, ["model", "condition"]))
    return _table("resources_by_model", "Resources per episode, by model and condition", first, rows, footnotes)


def _taken(results: Results) -> pl.DataFrame:
    rows = common.compared(results, results.rows).filter(~pl.col("failed"))
    absent = pl.lit(None, pl.Float64)
    quantities = {
        name: value if {*value.meta.root_names()} <= {*rows.columns} else absent
        for name, (*_, value) in _QUANTITIES.items()
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
    for quantity, (title, unit, digits, _) in _QUANTITIES.items():
        for middle in ("median", "mean"):
            column = Column(f"{middle}_{quantity}", f"{middle.capitalize()} {title}", Kind.NUMBER, unit, digits=digits)
            columns.append(column)
    return Table(name, title, tuple(columns), tuple(rows), footnotes)
