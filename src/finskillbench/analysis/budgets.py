"""What agents reach within a budget of tokens, turns, seconds or dollars.

S(B) is the mean over all scored episodes of the score where the submission came within B, and of 0 where it did not.
For a strong model a skill is worth what it saves: the same score within a smaller budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import polars as pl

from finskillbench.analysis.intervals import Method, Weighting, estimate
from finskillbench.analysis.results import EPISODE, Results

GROUP = ("model", "harness", "condition")
TOKEN_BUDGETS = (4_000.0, 8_000.0, 16_000.0, 32_000.0)
POINTS = 24
"""Budgets of a curve, where none are given."""


class Measure(StrEnum):
    """What is spent, by the columns of the rows; output tokens are with reasoning."""

    TOKENS = "total_output_tokens"
    TURNS = "turns"
    SECONDS = "latency_seconds"
    DOLLARS = "cost_usd"


def spending(results: Results, measure: Measure) -> pl.DataFrame:
    """The scored rows with what each has `spent`; no row of a model and condition of which one's is not known."""
    kept = [*EPISODE, "sub_task", "domain", "cluster", "program", "headline", "score"]
    scored = results.rows.filter(pl.col("score").is_not_null())
    known = pl.col(measure.value).is_not_null().all().over(GROUP)
    return scored.filter(known).select(*kept, spent=pl.col(measure.value).cast(pl.Float64))


def score_within(
    results: Results,
    measure: Measure,
    budgets: Sequence[float] | None = None,
    by: Sequence[str] = GROUP,
    method: Method = Method.T,
    weighting: Weighting = Weighting.MICRO,
) -> pl.DataFrame:
    """The curve S(B) at some budgets, with intervals.

    Parameters
    ----------
    budgets : in the unit of the measure; by default 24 from the least to the most that was spent, evenly in their
        logarithm. by : columns of `Results.episodes`. method, weighting : as in `estimate`.

    Returns
    -------
    The columns of `by`, `budget`, and those of `estimate`; no line of a group whose spending is not known.
    """
    rows = spending(results, measure)
    points = default_budgets(rows) if budgets is None else [float(budget) for budget in budgets]
    reached = [pl.when(pl.col("spent") <= budget).then("score").otherwise(0.0) for budget in points]
    scores = {str(place): score for place, score in enumerate(reached)}
    # Texts are told apart once, and not once for each budget.
    groups = rows.select(by).unique(maintain_order=True).with_row_index("_group")
    coded = (
        _of_episodes(rows, by, **scores)
        .join(groups, on=by, how="left", maintain_order="left")
        .with_columns(pl.col("sub_task", "cluster").rank("dense"))
        .unpivot(list(scores), index=["_group", "sub_task", "cluster"], variable_name="_budget", value_name="score")
    )
    lines = estimate(coded, "score", ["_group", "_budget"], method, weighting)
    budget = pl.col("_budget").replace_strict(dict(zip(scores, points, strict=True)), return_dtype=pl.Float64)
    told = lines.join(groups, on="_group", how="left", maintain_order="left").with_columns(budget=budget)
    return told.sort("_group", "budget").select(*by, "budget", *lines.columns[2:])


def area_within(
    results: Results,
    measure: Measure,
    most: float | None = None,
    by: Sequence[str] = GROUP,
    method: Method = Method.T,
    weighting: Weighting = Weighting.MICRO,
) -> pl.DataFrame:
    """The area under S(B) from 0 to the most that is spent, over that most: 1 is a full score for nothing.

    An episode adds its score times the share of the budget that it leaves, so that areas have clustered intervals.

    Parameters
    ----------
    most : the end of the curve, by default the most that any row has spent. Others : as in `score_within`.

    Returns
    -------
    The columns of `by`, `most`, and those of `estimate`; no line where nothing was spent at all, or it is not known.
    """
    rows = spending(results, measure)
    end = _most(rows) if most is None else most
    rows = rows if end > 0.0 else rows.clear()
    left = (1.0 - pl.col("spent") / end).clip(lower_bound=0.0)
    lines = estimate(_of_episodes(rows, by, score=pl.col("score") * left), "score", by, method, weighting)
    return lines.select(*by, pl.lit(end).alias("most"), pl.exclude(*by))


def default_budgets(rows: pl.DataFrame) -> list[float]:
    """Budgets from the least to the most that was spent, evenly in their logarithm; none where nothing was."""
    spent = rows.filter(pl.col("spent") > 0)["spent"]
    if spent.is_empty():
        return []
    low, high = spent.bottom_k(1).item(), spent.top_k(1).item()
    growth = high / low
    return [*(low * growth ** (place / (POINTS - 1)) for place in range(POINTS - 1)), high]


def _most(rows: pl.DataFrame) -> float:
    return max(rows["spent"].top_k(1).to_list(), default=0.0)


def _of_episodes(rows: pl.DataFrame, by: Sequence[str], **scores: pl.Expr) -> pl.DataFrame:
    """Mean scores of every episode over its repeats."""
    keys = list(dict.fromkeys((*by, *EPISODE, "sub_task", "cluster")))
    means = {name: score.mean() for name, score in scores.items()}
    return rows.group_by(keys, maintain_order=True).agg(**means)
