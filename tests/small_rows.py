"""Small tables of rows made by hand: the columns that every table needs, and no others."""

from __future__ import annotations

import polars as pl

from finskillbench.episode import Profile

SCORES = pl.Struct({profile.value: pl.Float64 for profile in Profile})


def table(*rows) -> pl.DataFrame:
    """Rows of (model, condition, sub_task, task_id, certified, paper[, status])."""
    records = []
    for model, condition, sub_task, task_id, certified, paper, *status in rows:
        records.append(
            {
                "model": model,
                "condition": condition,
                "sub_task": sub_task,
                "task_id": task_id,
                "cluster": task_id,
                "status": status[0] if status else "scored",
                "scores": {"paper": paper, "strict": paper, "certified": certified},
            }
        )
    schema = {"model": pl.String, "condition": pl.String, "sub_task": pl.String, "task_id": pl.String}
    schema["cluster"] = pl.String
    return pl.DataFrame(records, schema={**schema, "status": pl.String, "scores": SCORES}, orient="row")


def simple(gain=0.5, model="m", count=4) -> list[tuple]:
    return [
        (model, condition, "rebalancing", f"r{i}", 0.1 * i + (gain if condition == "curated" else 0.0), 0.9)
        for condition in ("curated", "no_skill")
        for i in range(count)
    ]
