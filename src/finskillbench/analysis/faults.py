"""Outcomes of episodes whose skill has a planted fault, by what was submitted and loaded."""

from __future__ import annotations

from enum import StrEnum

import orjson
import polars as pl

from finskillbench.analysis.inference import proportions
from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.repeats import FULL
from finskillbench.analysis.results import CURATED, Comparison, Results, pairs
from finskillbench.domains.faults import BASIS_POINTS, DETAIL, DOLLARS
from finskillbench.episode import Status
from finskillbench.harness.conditions import Activation
from finskillbench.harness.skills.faults import FAULTY_PREFIX

GROUP = ("model", "harness", "condition")
MONEY = {"loss_bp": BASIS_POINTS, "loss_usd": DOLLARS}
"""Columns of losses in money, with their units."""


class Outcome(StrEnum):
    """Outcome of an episode with a planted fault; exactly one holds."""

    FAULTY = "faulty"
    RIGHT_LOADED = "right_loaded"
    RIGHT_UNLOADED = "right_unloaded"
    NO_ANSWER = "no_answer"
    OTHER = "other"


def concerned(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows whose right answer a planted fault changes, with `outcome` and the columns of `MONEY`."""
    planted = rows.filter(pl.col("condition").str.starts_with(FAULTY_PREFIX), ~pl.col("failed"))
    details = [orjson.loads(text).get(DETAIL) for text in planted["scoring_details"]]
    schema = {"package": pl.String, "equal": pl.Boolean, "loss": pl.Float64, "unit": pl.String}
    found = pl.concat([planted, pl.DataFrame([one or {} for one in details], schema=schema)], how="horizontal")
    forced = pl.col("condition").str.ends_with(f"+{Activation.FORCED}")
    loaded = forced | pl.col("skills_loaded").list.contains(pl.col("package"))
    right = pl.col("score") >= FULL
    outcome = (
        pl.when(pl.col("status") != Status.SCORED)
        .then(pl.lit(Outcome.NO_ANSWER))
        .when(pl.col("equal"))
        .then(pl.lit(Outcome.FAULTY))
        .when(right & loaded)
        .then(pl.lit(Outcome.RIGHT_LOADED))
        .when(right)
        .then(pl.lit(Outcome.RIGHT_UNLOADED))
        .otherwise(pl.lit(Outcome.OTHER))
    )
    money = {name: pl.when(pl.col("unit") == unit).then("loss") for name, unit in MONEY.items()}
    return found.filter(pl.col("package").is_not_null()).with_columns(outcome=outcome, **money)


def fault_outcomes(results: Results) -> pl.DataFrame:
    """Estimate shares of outcomes and mean losses by model, harness and condition, over the episodes concerned.

    Returns
    -------
    The columns of `GROUP`, `episodes`, and with their intervals (`NAME`, `NAME_low`, `NAME_high`) the share of each
    `Outcome`; `loss_score`, the difference to the same episodes under the curated condition, null without it; and the
    columns of `MONEY`, the mean loss over answers with a price in that unit.
    """
    rows = concerned(results.rows)
    frame = rows.group_by(GROUP, maintain_order=True).agg(episodes=pl.col("episode").n_unique().cast(pl.Int64))
    for name in Outcome:
        shares = proportions(rows.with_columns(_is=pl.col("outcome") == name), "_is", GROUP)
        frame = _joined(frame, shares, "share", name)
    for name in MONEY:
        priced = rows.filter(pl.col(name).is_not_null())
        by_episode = priced.group_by(*GROUP, "episode", "sub_task", "cluster", maintain_order=True).agg(pl.mean(name))
        frame = _joined(frame, estimate_means(by_episode, name, GROUP), "mean", name)
    return _joined(frame, _score_losses(results, rows), "mean", "loss_score")


def _score_losses(results: Results, rows: pl.DataFrame) -> pl.DataFrame:
    keys, found = ("model", "harness", "episode"), list[pl.DataFrame]()
    for condition in rows["condition"].unique(maintain_order=True):
        suffix = "".join(condition.partition("+")[1:])
        reference = CURATED + suffix if CURATED + suffix in results.conditions else CURATED
        told = rows.filter(pl.col("condition") == condition).select(keys).unique()
        paired = pairs(results, Comparison(condition, reference)).join(told, on=keys, how="semi", maintain_order="left")
        found.append(estimate_means(paired, by=GROUP[:2]).with_columns(condition=pl.lit(condition)))
    return pl.concat(found)


def _joined(frame: pl.DataFrame, estimates: pl.DataFrame, value: str, name: str) -> pl.DataFrame:
    ends = {value: name, "low": f"{name}_low", "high": f"{name}_high"}
    return frame.join(estimates.select(*GROUP, *ends).rename(ends), on=GROUP, how="left", maintain_order="left")
