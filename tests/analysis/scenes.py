"""Rows made by hand for tests of what is computed over episodes."""

from __future__ import annotations

from typing import Any

import polars as pl

from finskillbench.analysis.results import Results, collect
from finskillbench.episode import Profile

SCORES = pl.Struct({profile.value: pl.Float64 for profile in Profile})
LISTS = dict.fromkeys(("skills_loaded", "scripts_run"), pl.List(pl.String))
WHOLE = dict.fromkeys(("run_idx", "turns", "total_output_tokens"), pl.Int64)
REAL = dict.fromkeys(("latency_seconds", "cost_usd"), pl.Float64)


def row(condition: str, task_id: str, score: float | None, **more: Any) -> dict[str, Any]:
    """A row of model m; its cluster is the task's first letter, and a score of None is an error."""
    return {
        "model": "m",
        "condition": condition,
        "task_id": task_id,
        "cluster": task_id[0],
        "sub_task": "stress_testing",
        "domain": "risk_management",
        "run_idx": 0,
        "status": "error" if score is None else "scored",
        "scores": dict.fromkeys(Profile, score),
        "skills_loaded": [],
        "scripts_run": [],
        "total_output_tokens": 1000,
        "turns": 3,
        "latency_seconds": 10.0,
        "cost_usd": None,
        **more,
    }


def results(*rows: dict[str, Any]) -> Results:
    """The results of some rows."""
    return collect(pl.DataFrame(list(rows), schema_overrides={"scores": SCORES, **LISTS, **WHOLE, **REAL}))
