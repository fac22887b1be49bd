"""Rows of a run that nobody played: 9 models, 12 subtasks and 3 conditions, with the columns of `rows.parquet`.

Scores are made of what models, conditions, subtasks and clusters are worth, so that every table has something to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import numpy as np
import polars as pl

from finskillbench.domains import domains
from finskillbench.episode import PAPER_SUITE
from finskillbench.runs.store.rows import SCHEMA

CONDITIONS = ("no_skill", "self_generated", "curated")
GAINS = {"portfolio_construction": 0.25, "risk_management": 0.4, "fundamental_analysis": 0.05}
MONTHS = 12
COMPANIES = 30


def synthetic_rows(
    models: int = 9,
    conditions: Sequence[str] = CONDITIONS,
    episodes: int | None = None,
    repeats: int = 1,
    seed: int = 0,
) -> pl.DataFrame:
    """Rows of a whole run: by default 9 models on 660 episodes under 3 conditions, 17,820 rows.

    Parameters
    ----------
    models : how many models; the first takes every score, the last has none and never submits.
    conditions : names of arms; each but the first gains something, the last most.
    episodes : of each subtask; by default as many as the protocol asks for.
    repeats : of every episode. seed : of everything.
    """
    rng = np.random.default_rng(seed)
    tasks = pl.DataFrame(_tasks(episodes), orient="row", schema=["domain", "sub_task", "task_id", "cluster", "number"])
    names = pl.DataFrame({"model": [f"provider/model-{place + 1}" for place in range(models)], "place": range(models)})
    arms = pl.DataFrame({"condition": list(conditions), "arm": range(len(conditions))})
    again = pl.DataFrame({"run_idx": range(repeats)}, schema={"run_idx": pl.Int64})
    rows = names.join(arms, how="cross").join(tasks, how="cross").join(again, how="cross")
    return _filled(rows, rng, models, len(conditions))


def _tasks(episodes: int | None) -> list[tuple[str, str, str, str, int]]:
    found: list[tuple[str, str, str, str, int]] = []
    for domain in (each for each in domains() if each.suite == PAPER_SUITE):
        for subtask in (each for each in domain.subtasks if each.headline):
            for number in range(episodes or domain.protocol_episodes):
                by_company = domain.name == "fundamental_analysis"
                shared = f"C{number % COMPANIES:02}" if by_company else f"2025-{number % MONTHS + 1:02}-28"
                found.append((domain.name, subtask.name, f"{subtask.name}_{number:03}", shared, number))
    return found


def _filled(rows: pl.DataFrame, rng: np.random.Generator, models: int, arms: int) -> pl.DataFrame:
    size = rows.height
    place, arm = rows["place"].to_numpy(), rows["arm"].to_numpy()
    gain = rows["domain"].replace_strict(GAINS, return_dtype=pl.Float64).to_numpy() * arm / max(arms - 1, 1)
    _, cluster = np.unique(rows["cluster"].to_numpy(), return_inverse=True)
    _, task = np.unique(rows["sub_task"].to_numpy(), return_inverse=True)
    level = 0.7 - 0.5 * place / models + rng.normal(0, 0.15, task.max() + 1)[task]
    level = level + rng.normal(0, 0.15, cluster.max() + 1)[cluster] + gain + rng.normal(0, 0.2, size)
    submitted = (place < models - 1) & (rng.random(size) < 0.95)
    score = np.where(submitted, np.clip(level, 0, 1).round(4), 0.0)
    output = rng.lognormal(8.5, 0.8, size).astype(int)
    turns = rng.integers(2, 20, size)
    seconds = output / 60 + rng.exponential(5, size)
    started = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second) for second in range(size)]
    curated = pl.col("condition") == "curated"
    skill = pl.concat_list(pl.col("domain").str.replace("_", "-"))
    nothing = pl.lit([], dtype=pl.List(pl.String))
    whole = rows.with_columns(
        score=pl.Series(score),
        scores=pl.struct(**{name: pl.Series(score) for name in ("paper", "strict", "certified")}),
        status=pl.Series(np.where(submitted, "scored", "max_turns_exhausted")),
        valid_json=pl.Series(submitted),
        difficulty=pl.Series(np.array(["easy", "medium", "hard"])[rows["number"].to_numpy() % 3]),
        turns=pl.Series(turns),
        episodes=pl.Series(turns),
        tool_calls=pl.Series(turns - 1),
        data_calls=pl.Series(turns - 1),
        signed=pl.lit(None, pl.Boolean),
        traps=pl.lit([], pl.List(pl.String)),
        total_input_tokens=pl.Series(turns * 3000),
        total_output_tokens=pl.Series(output),
        total_reasoning_tokens=pl.Series(output // 2),
        cost_usd=pl.Series(output * 1e-5),
        reused_calls=pl.lit(0),
        saved_usd=pl.lit(0.0),
        latency_seconds=pl.Series(seconds),
        started=pl.Series(started),
        ended=pl.Series(started).dt.offset_by("90s"),
        skills_loaded=pl.when(curated & (pl.Series(rng.random(size)) < 0.9)).then(skill).otherwise(nothing),
        scripts_run=pl.when(curated & (pl.Series(rng.random(size)) < 0.8))
        .then(pl.concat_list("sub_task"))
        .otherwise(nothing),
        served_models=pl.concat_list("model"),
        incidents=pl.when(pl.Series(rng.random(size)) < 0.1)
        .then(pl.concat_list(pl.lit("tool_failed")))
        .otherwise(nothing),
        error=pl.lit(None, pl.String),
        error_cause=pl.lit(None, pl.String),
        as_of_date=pl.lit(date(2025, 12, 31)),
        harness=pl.lit("finskillbench"),
        provider=pl.lit("provider"),
        arguments=pl.lit("{}"),
        score_profile=pl.lit("certified"),
        scoring_method=pl.lit("made"),
        scoring_details=pl.lit("{}"),
        **{name: pl.lit("0" * 64) for name in ("edition", "mount", "answer_digest", "digest", "scorer_version")},
        **{name: pl.lit("1") for name in ("code_version", "commit")},
        **{name: pl.lit(0.0) for name in ("queue_seconds", "retry_seconds")},
        **{name: pl.lit(0, pl.Int64) for name in ("retries", "total_cached_tokens")},
    )
    return whole.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())
