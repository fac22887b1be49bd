"""Agreement of human participants on the same episodes: Krippendorff's alpha, by NLTK (extra `human`)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import polars as pl

from finskillbench.analysis.repeats import FULL
from finskillbench.integrations import require_extra


def agreement(rows: pl.DataFrame) -> str | None:
    """Describe the agreement of some rows, whose models are participants; None if no two answered the same episode.

    Alpha is that of scores, with the interval metric, and of full scores or not, with the nominal metric.

    Parameters
    ----------
    rows : of one export, as in `rows.parquet`; those without an answer are left out.

    Raises
    ------
    InputError : the extra `human` is not installed.
    """
    answered = rows.filter(pl.col("answer_digest").is_not_null() & pl.col("score").is_not_null())
    values = answered.filter(pl.len().over("task_id") > 1).select("model", "task_id", "score")
    if values.is_empty():
        return None
    full = values.with_columns(score=pl.col("score") >= FULL)
    alphas = alpha(values, "interval_distance"), alpha(full, "binary_distance")
    scores, passes = ("undefined (all equal)" if each is None else f"{each:.3f}" for each in alphas)
    who = f"{values['model'].n_unique()} participants on {values['task_id'].n_unique()} episodes"
    return f"Krippendorff's alpha of {who}: {scores} (scores, interval), {passes} (full scores, nominal)"


def alpha(values: pl.DataFrame, distance: str) -> float | None:
    """Return Krippendorff's alpha of columns coder, unit and value; None if all values are equal, as it is undefined.

    `distance` is a function of `nltk.metrics.distance`. Raises `InputError` if the extra `human` is not installed.

    Source: Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability".
    """
    require_extra("human")
    metrics: Any = import_module("nltk.metrics")  # has no types
    if values[:, 2].n_unique() < 2:
        return None
    return float(metrics.AnnotationTask(data=values.rows(), distance=getattr(metrics, distance)).alpha())
