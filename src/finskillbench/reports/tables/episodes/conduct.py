"""How agents work: luck over repeats, score within a budget, and the use of skills."""

from __future__ import annotations

import polars as pl

from finskillbench.analysis.budgets import TOKEN_BUDGETS, Measure, score_within
from finskillbench.analysis.intervals import estimate
from finskillbench.analysis.repeats import passes, variances
from finskillbench.analysis.results import Results
from finskillbench.analysis.savings import NEARLY, savings
from finskillbench.analysis.use import EXCLUSION, NOT_CAUSAL, trigger_rates, use_effects, use_rates
from finskillbench.reports.tables.base import Column, Kind, Table
from finskillbench.reports.tables.framed import CONDITION, HARNESS, MODEL, framed, of_contenders
from finskillbench.reports.tables.notes import notes

_GROUP = ("model", "harness", "condition")
_LUCK = (
    "Within: the variance between repeats of an episode, which is luck; alike: the share of all variance that lies "
    "between episodes. pass@k: the chance that at least one of k repeats is worth full marks; pass^k: that all are."
)
_BUDGET = (
    "The mean of the score where the submission came within so many output tokens, reasoning included, and of 0 where "
    "it did not."
)
_CHEAPER = (
    f"The output tokens within which each condition reaches {100 * NEARLY:.0f} % of what the second comes to in the "
    "end, and how many times cheaper the first does."
)

_STEPS = (
    "Loaded: a document of a skill was; ran: a script was; used: either; unchanged, altered: so the output of a script "
    "was submitted (known with --failures, which reads trajectories). Trigger: a package was loaded in an episode of "
    "its own domain; false trigger: one of another domain was. Rows in error are left out."
)


def repeats_table(results: Results) -> Table | None:
    """Variance over repeats, and the chances of passing once and always; None where no episode was repeated."""
    chosen = of_contenders(results)
    fewest = chosen.episodes.group_by(_GROUP).agg(pl.max("repeats"))["repeats"].min() if chosen.episodes.height else 0
    if not isinstance(fewest, int) or fewest < 2:
        return None
    passed = passes(chosen, fewest)
    frame = variances(chosen)
    for name in ("pass_at", "pass_hat"):
        said = estimate(passed, name, _GROUP, bounds=(0.0, 1.0)).select(
            *_GROUP,
            pl.col("mean").alias(name),
            pl.col("low").alias(f"{name}_low"),
            pl.col("high").alias(f"{name}_high"),
        )
        frame = frame.join(said, on=_GROUP, how="left", maintain_order="left")
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
    return framed("repeats", "What repeats tell", frame, columns, (*notes(results, differences=False), _LUCK))


def budgets_table(results: Results) -> Table | None:
    """Score within 4, 8, 16 and 32 thousand output tokens; None where tokens are known of no model."""
    if Measure.TOKENS.value not in results.rows.columns:
        return None
    chosen = of_contenders(results)
    long = score_within(chosen, Measure.TOKENS, TOKEN_BUDGETS)
    if long.is_empty():
        return None
    frame = long.select(_GROUP).unique(maintain_order=True)
    names: list[Column] = []
    for budget in TOKEN_BUDGETS:
        name = f"within_{budget:.0f}"
        names.append(Column(name, f"Within {budget:,.0f}", Kind.SCORE, interval=True))
        ends = {"mean": name, "low": f"{name}_low", "high": f"{name}_high"}
        said = long.filter(pl.col("budget") == budget).select(*_GROUP, *ends).rename(ends)
        frame = frame.join(said, on=_GROUP, how="left", maintain_order="left")
    title = "Score within a budget of output tokens"
    columns = (*(MODEL, HARNESS, CONDITION), *names)
    told = (*notes(results, differences=False), _BUDGET, *_left_out(chosen))
    return framed("budgets", title, frame, columns, told)


def _left_out(chosen: Results) -> tuple[str, ...]:
    """Note which groups have no line, since the tokens of some of their scored episodes are unknown."""
    unknown = chosen.rows.filter(pl.col("score").is_not_null() & pl.col(Measure.TOKENS.value).is_null())
    groups = unknown.group_by("model", "condition", maintain_order=True).len().rows()
    listed = "; ".join(f"{model}, {condition} ({count})" for model, condition, count in groups)
    return (f"Left out, with how many scored episodes are of unknown tokens: {listed}.",) if groups else ()


def savings_table(results: Results) -> Table | None:
    """How many times cheaper one condition reaches what another does; None without tokens or comparisons."""
    if Measure.TOKENS.value not in results.rows.columns:
        return None
    chosen = of_contenders(results)
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
    return framed("savings", title, pl.concat(frames), columns, (*notes(results, differences=False), _CHEAPER))


def use_table(results: Results) -> Table | None:
    """In what share of episodes skills were loaded, run and submitted, and loaded where they are not meant for."""
    if not _tells_use(results):
        return None
    chosen = of_contenders(results)
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
    return framed("use", "The use of skills", frame, columns, (*notes(results, differences=False), _STEPS))


def use_effects_table(results: Results) -> Table | None:
    """What the offer of skills changed, and what their use is worth; None where the rows do not tell use."""
    if not _tells_use(results):
        return None
    chosen = of_contenders(results)
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
    title = "Offering skills, and using them"
    told = (*notes(results), EXCLUSION, NOT_CAUSAL)
    return framed("use_effects", title, pl.concat(frames), columns, told)


def _tells_use(results: Results) -> bool:
    """Whether the rows say what was loaded and run."""
    rows = results.rows
    return all(
        name in rows.columns and rows[name].null_count() < rows.height for name in ("skills_loaded", "scripts_run")
    )
