"""Repeated episodes: variance components, pass@k, and scores within a budget.

S(B) is the mean, over scored episodes, of the score if the submission came within the budget B, else 0. A skill can
help a strong model by reaching the same score within a smaller budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import polars as pl

from finskillbench.analysis.intervals import Method, Weighting, estimate_means
from finskillbench.analysis.results import EPISODE, Results
from finskillbench.errors import InputError

FULL = 1.0 - 1e-9
"""Minimum score of a passed repeat."""


def variances(results: Results, by: Sequence[str] = ("model", "harness", "condition")) -> pl.DataFrame:
    """Estimate the variance of scores within and between episodes (one-way ANOVA).

    Parameters
    ----------
    by : at least one column of `Results.episodes`.

    Returns
    -------
    The columns of `by`, `episodes`, `repeats` (scored), `within` (null without repeats), `between` (also null for one
    episode; truncated at 0) and `alike`, the intra-class correlation (null without variance).

    Source: Searle, Casella & McCulloch (1992), ch. 3.6, for unequal numbers of repeats.
    """
    keys = list(dict.fromkeys((*by, *EPISODE)))
    score, size = pl.col("score"), pl.col("size")
    episodes = (
        results.rows.filter(score.is_not_null())
        .group_by(keys, maintain_order=True)
        .agg(size=score.count().cast(pl.Float64), mean=score.mean(), squares=((score - score.mean()) ** 2).sum())
    )
    grand = (pl.col("mean") * size).sum() / size.sum()
    sums = episodes.group_by(by, maintain_order=True).agg(
        episodes=pl.len().cast(pl.Int64),
        repeats=size.sum().cast(pl.Int64),
        squares=pl.col("squares").sum(),
        apart=(size * (pl.col("mean") - grand) ** 2).sum(),
        usual=size.sum() - (size**2).sum() / size.sum(),
    )
    within_freedom, between_freedom = pl.col("repeats") - pl.col("episodes"), pl.col("episodes") - 1
    found = (
        sums.with_columns(within=pl.when(within_freedom > 0).then(pl.col("squares") / within_freedom))
        .with_columns(
            between=pl.when(between_freedom > 0).then(
                ((pl.col("apart") - between_freedom * pl.col("within")) / pl.col("usual")).clip(lower_bound=0.0)
            )
        )
        .with_columns(total=pl.col("within") + pl.col("between"))
        .with_columns(alike=pl.when(pl.col("total") > 0).then(pl.col("between") / pl.col("total")))
    )
    return found.select(*by, "episodes", "repeats", "within", "between", "alike")


def passes(results: Results, k: int, least: float = FULL) -> pl.DataFrame:
    """Estimate, per episode, the chance that at least one of k repeats passes, and that all pass.

    Unbiased, with c passes in n scored repeats: pass@k is 1 - C(n - c, k) / C(n, k) (Chen et al. 2021), pass^k is C(c,
    k) / C(n, k) (Yao et al. 2024).

    Parameters
    ----------
    k : number of repeats. least : minimum score of a pass.

    Returns
    -------
    The columns of `Results.episodes` with `pass_at` and `pass_hat`, null with fewer than k scored repeats; for
    `estimate_means`.

    Raises
    ------
    InputError : k is less than 1, or exceeds the repeats of all episodes of a model and condition.
    """
    if k < 1:
        raise InputError(f"pass@k: k is {k}; use 1 or more")
    runs = results.rows.group_by(EPISODE).len().group_by("model", "condition").agg(pl.col("len").max())
    fewer = runs.filter(pl.col("len") < k).sort("len", "model", "condition")
    if not fewer.is_empty():
        model, condition, most = fewer.row(0)
        raise InputError(
            f"pass@{k}: {model} under {condition} has only {most} runs per episode; run with --epochs {k} or more"
        )
    scored = pl.col("score").is_not_null()
    passed = results.rows.filter(scored).group_by(EPISODE).agg(passed=(pl.col("score") >= least).sum())
    joined = results.episodes.join(passed, on=EPISODE, how="left", maintain_order="left")
    size, right = pl.col("repeats").cast(pl.Float64), pl.col("passed").cast(pl.Float64)
    chances = joined.with_columns(pass_at=1.0 - _subsets(size - right, size, k), pass_hat=_subsets(right, size, k))
    few = pl.col("repeats") < k
    return chances.with_columns(
        pl.when(few).then(None).otherwise(pl.col(name)).alias(name) for name in ("pass_at", "pass_hat")
    ).drop("passed")


def _subsets(chosen: pl.Expr, size: pl.Expr, k: int) -> pl.Expr:
    """C(chosen, k) / C(size, k)."""
    share = pl.lit(1.0)
    for step in range(k):
        share *= (chosen - step).clip(lower_bound=0.0) / (size - step)
    return share


GROUP = ("model", "harness", "condition")
TOKEN_BUDGETS = (4_000.0, 8_000.0, 16_000.0, 32_000.0)
POINTS = 24


class SpendingMeasure(StrEnum):
    """Spending, by row column; output tokens include reasoning."""

    TOKENS = "total_output_tokens"
    TURNS = "turns"
    SECONDS = "latency_seconds"
    DOLLARS = "cost_usd"


def spending(results: Results, measure: SpendingMeasure) -> pl.DataFrame:
    """Return the scored rows with `spent`, without models and conditions that have unknown spending."""
    kept = [*EPISODE, "sub_task", "domain", "cluster", "program", "headline", "score"]
    scored = results.rows.filter(pl.col("score").is_not_null())
    known = pl.col(measure.value).is_not_null().all().over(GROUP)
    return scored.filter(known).select(*kept, spent=pl.col(measure.value).cast(pl.Float64))


def score_within(
    results: Results,
    measure: SpendingMeasure,
    budgets: Sequence[float] | None = None,
    by: Sequence[str] = GROUP,
    method: Method = Method.T,
    weighting: Weighting = Weighting.MICRO,
) -> pl.DataFrame:
    """Estimate S(B) at several budgets.

    Returns the columns of `by`, `budget`, and those of `estimate_means`, without groups that have unknown spending.

    Parameters
    ----------
    budgets : in the unit of the measure; by default 24, evenly spaced in their logarithm from least to most spending.
    by : columns of `Results.episodes`. method, weighting : as in `estimate_means`.
    """
    rows = spending(results, measure)
    points = default_budgets(rows) if budgets is None else [float(budget) for budget in budgets]
    reached = [pl.when(pl.col("spent") <= budget).then("score").otherwise(0.0) for budget in points]
    scores = {str(place): score for place, score in enumerate(reached)}
    # Encode text columns once, not per budget.
    groups = rows.select(by).unique(maintain_order=True).with_row_index("_group")
    coded = (
        _of_episodes(rows, by, **scores)
        .join(groups, on=by, how="left", maintain_order="left")
        .with_columns(pl.col("sub_task", "cluster").rank("dense"))
        .unpivot(list(scores), index=["_group", "sub_task", "cluster"], variable_name="_budget", value_name="score")
    )
    lines = estimate_means(coded, "score", ["_group", "_budget"], method, weighting)
    budget = pl.col("_budget").replace_strict(dict(zip(scores, points, strict=True)), return_dtype=pl.Float64)
    curve = lines.join(groups, on="_group", how="left", maintain_order="left").with_columns(budget=budget)
    return curve.sort("_group", "budget").select(*by, "budget", *lines.columns[2:])


def area_within(
    results: Results,
    measure: SpendingMeasure,
    most: float | None = None,
    by: Sequence[str] = GROUP,
    method: Method = Method.T,
    weighting: Weighting = Weighting.MICRO,
) -> pl.DataFrame:
    """Estimate the area under S(B) from 0 to `most`, divided by `most`; 1 is a full score at no cost.

    Each episode adds its score times the unspent share of the budget, so that areas have clustered intervals. Returns
    the columns of `by`, `most`, and those of `estimate_means`; empty if spending is 0 or unknown.

    Parameters
    ----------
    most : end of the curve, by default the greatest spending of a row. Others : as in `score_within`.
    """
    rows = spending(results, measure)
    end = _most(rows) if most is None else most
    rows = rows if end > 0.0 else rows.clear()
    left = (1.0 - pl.col("spent") / end).clip(lower_bound=0.0)
    lines = estimate_means(_of_episodes(rows, by, score=pl.col("score") * left), "score", by, method, weighting)
    return lines.select(*by, pl.lit(end).alias("most"), pl.exclude(*by))


def default_budgets(rows: pl.DataFrame) -> list[float]:
    """Return budgets from least to most spending, evenly spaced in their logarithm; none if nothing was spent."""
    spent = rows.filter(pl.col("spent") > 0)["spent"]
    if spent.is_empty():
        return []
    low, high = spent.bottom_k(1).item(), spent.top_k(1).item()
    growth = high / low
    return [*(low * growth ** (place / (POINTS - 1)) for place in range(POINTS - 1)), high]


def _most(rows: pl.DataFrame) -> float:
    return max(rows["spent"].top_k(1).to_list(), default=0.0)


def _of_episodes(rows: pl.DataFrame, by: Sequence[str], **scores: pl.Expr) -> pl.DataFrame:
    keys = list(dict.fromkeys((*by, *EPISODE, "sub_task", "cluster")))
    means = {name: score.mean() for name, score in scores.items()}
    return rows.group_by(keys, maintain_order=True).agg(**means)
