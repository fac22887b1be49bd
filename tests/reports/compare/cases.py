"""Rows made by hand, so that every figure of a comparison can be computed on paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from finskillbench.episode import Profile
from finskillbench.reports.read import RunRows

SUBTASKS = {"rebalancing": "portfolio_construction", "stress_testing": "risk_management"}
_SCORES = pl.Struct({profile.value: pl.Float64 for profile in Profile})
_SCHEMA = {
    **dict.fromkeys(("model", "harness", "arguments", "condition", "domain", "task_id", "sub_task"), pl.String),
    **dict.fromkeys(("difficulty", "cluster", "status", "edition", "mount", "scorer_version"), pl.String),
    "scores": _SCORES,
    **dict.fromkeys(("run_idx", "turns", "tool_calls"), pl.Int64),
    **dict.fromkeys(("total_input_tokens", "total_output_tokens", "total_reasoning_tokens"), pl.Int64),
    **dict.fromkeys(("latency_seconds", "cost_usd"), pl.Float64),
}


def row(task_id: str, score: float | None, **other: Any) -> dict[str, Any]:
    """One row; `score` None is one that ended in an error."""
    sub_task = other.get("sub_task", "rebalancing")
    plain = {
        "model": "m",
        "harness": "finskillbench",
        "arguments": "{}",
        "condition": "curated",
        "domain": SUBTASKS.get(sub_task, "other"),
        "task_id": task_id,
        "sub_task": sub_task,
        "difficulty": "easy",
        "cluster": task_id,
        "status": "error" if score is None else "scored",
        "edition": "e" * 64,
        "mount": "a" * 64,
        "scorer_version": "s1",
        "scores": {"paper": score, "strict": None, "certified": score},
        "run_idx": 0,
        "turns": 2,
        "tool_calls": 1,
        "total_input_tokens": 100,
        "total_output_tokens": 10,
        "total_reasoning_tokens": 0,
        "latency_seconds": 1.0,
        "cost_usd": None,
    }
    return {**plain, **other}


def table(*rows: Mapping[str, Any]) -> pl.DataFrame:
    """A table of rows."""
    return pl.DataFrame(list(rows), schema=_SCHEMA, orient="row")


def run(*rows: Mapping[str, Any], path: str = "runs/a") -> RunRows:
    """A run of rows, without a folder."""
    return RunRows(Path(path), table(*rows))


def two(a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]]) -> list[RunRows]:
    """Two runs."""
    return [run(*a, path="runs/a"), run(*b, path="runs/b")]


def drawn(rng: np.random.Generator, shift: Mapping[str, float], clusters: int = 12, size: int = 4) -> list[RunRows]:
    """Two runs of five subtasks of `clusters` times `size` episodes whose difference has the mean `shift`, else 0.

    Episodes of a cluster share a half of the difference's variance; its standard deviation is 0.1.
    """
    sides: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for name in ("rebalancing", "stress_testing", "black_litterman", "normalization", "earnings_quality"):
        shared = rng.normal(0.0, 0.1 * 0.5**0.5, clusters)
        own = rng.normal(0.0, 0.1 * 0.5**0.5, (clusters, size))
        for place, change in np.ndenumerate(shared[:, None] + own + shift.get(name, 0.0)):
            task = f"{name}_{place[0]}_{place[1]}"
            sides[0].append(row(task, 0.5, sub_task=name, cluster=f"c{place[0]}"))
            sides[1].append(row(task, 0.5 + float(change), sub_task=name, cluster=f"c{place[0]}"))
    return two(*sides)
