"""Row tables for hypothesis: models, conditions, subtasks, repeats, errors, missing cells, ties, programs.

The shape is hypothesis' own draw, so that it shrinks; the values come from a seed, which is a hundred times faster.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from random import Random

from hypothesis import strategies as st
from tests.oracles.report.cells import Row

SUBTASKS = {
    "unconstrained_optimization": "portfolio_construction",
    "rebalancing": "portfolio_construction",
    "stress_testing": "risk_management",
    "risk_identification": "risk_management",
    "normalization": "fundamental_analysis",
    "infeasibility_detection": "portfolio_construction",
}
ARMS = ("no_skill", "curated", "self_generated", "docs_only", "scripts_only")
HARNESSES = ("finskillbench", "hermes")
NOT_CERTIFIED = "risk_identification"
FAILED = ("invalid_submission", "incomplete_submission", "max_turns_exhausted")
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Shape:
    """What a table is made of; shares are in per cent."""

    seed: int
    models: int = 2
    subtasks: int = 3
    tasks: int = 4
    repeats: int = 1
    clusters: int = 3
    arms: tuple[str, ...] = ARMS[:3]
    errors: int = 0
    missing: int = 0
    levels: int = 0
    programs: bool = False
    shared: bool = False
    harnesses: int = 1
    arguments: int = 1
    partial: bool = False


def shapes(arms: tuple[str, ...] = ARMS[:3], least_tasks: int = 1) -> st.SearchStrategy[Shape]:
    return st.builds(
        Shape,
        seed=st.integers(0, 2**32),
        models=st.integers(1, 3),
        subtasks=st.integers(1, len(SUBTASKS)),
        tasks=st.integers(least_tasks, least_tasks + 4),
        repeats=st.integers(1, 3),
        clusters=st.integers(1, 4),
        arms=st.just(arms),
        errors=st.sampled_from((0, 0, 10, 40, 100)),
        missing=st.sampled_from((0, 0, 10, 40)),
        levels=st.sampled_from((0, 0, 1, 2, 3)),
        programs=st.booleans(),
        shared=st.booleans(),
        harnesses=st.sampled_from((1, 1, 2)),
        arguments=st.sampled_from((1, 1, 2)),
        partial=st.booleans(),
    )


def table(shape: Shape) -> list[Row]:
    """Rows of that shape, in random order; at least one."""
    r = Random(shape.seed)
    names = [f"lab/model-{i}" for i in range(shape.models)] + ["baseline/reference"] * shape.programs
    rows = [
        _row(r, shape, model, arm, sub_task, number, repeat)
        | {"harness": harness, "arguments": json.dumps({"harness": harness, "seed": variant} if variant else {})}
        for model in names
        for harness in HARNESSES[: shape.harnesses]
        for variant in range(shape.arguments)
        for arm in shape.arms
        for sub_task in list(SUBTASKS)[: shape.subtasks]
        for number in range(shape.tasks)
        for repeat in range(shape.repeats)
        # A partial run: its first model never came to the last condition.
        if r.randrange(100) >= shape.missing and not (shape.partial and (model, arm) == (names[0], shape.arms[-1]))
    ]
    r.shuffle(rows)
    return rows or [_row(r, shape, names[0], shape.arms[0], next(iter(SUBTASKS)), 0, 0)]


def _score(r: Random, shape: Shape, arm: str) -> float:
    if shape.levels == 1:
        return 0.5
    if shape.levels:
        return r.randrange(shape.levels) / (shape.levels - 1)
    return min(1.0, r.random() * 0.8 + 0.2 * (arm == "curated"))


def _row(r: Random, shape: Shape, model: str, arm: str, sub_task: str, number: int, repeat: int) -> Row:
    failed = r.randrange(100) < shape.errors
    status = "error" if failed else "scored" if r.random() < 0.8 else r.choice(FAILED)
    score = None if failed else 0.0 if status != "scored" else _score(r, shape, arm)
    cluster = f"{number % shape.clusters}" if shape.shared else f"{sub_task}-{number % shape.clusters}"
    certified = sub_task != NOT_CERTIFIED
    scores = {
        "certified": score if certified else None,
        "strict": score if not certified else None if failed else r.random(),
        "paper": None if failed else r.random(),
    }
    turns = r.randrange(1, 13)
    reasoning, cached = r.randrange(0, 400), r.randrange(0, 900)
    words = f"{model} {arm} {sub_task} {number} {repeat}"
    return {
        "model": model,
        "harness": "finskillbench",
        "provider": None if model.startswith("baseline/") else "lab",
        "arguments": "{}",
        "domain": SUBTASKS[sub_task],
        "condition": arm,
        "task_id": f"{sub_task}_{number:03}",
        "sub_task": sub_task,
        "difficulty": ("easy", "medium", "hard")[number % 3],
        "cluster": cluster,
        "as_of_date": date(2025, 1 + number % 12, 1),
        "run_idx": repeat,
        "score": score,
        "score_profile": None if failed else "certified" if certified else "strict",
        "scores": scores,
        "status": status,
        "valid_json": status == "scored",
        "scoring_method": "exact_match",
        "scoring_details": "{}",
        "signed": None,
        "traps": [],
        "episodes": turns,
        "turns": turns,
        "total_input_tokens": 1000 + r.randrange(0, 4000),
        "total_cached_tokens": cached,
        "total_output_tokens": 400 + r.randrange(0, 6) * 500,
        "total_reasoning_tokens": reasoning,
        "cost_usd": None if r.random() < 0.1 else r.randrange(1, 20) / 100,
        "reused_calls": 0,
        "saved_usd": 0.0,
        "served_models": [model],
        "skills_loaded": [],
        "scripts_run": [],
        "tool_calls": turns,
        "data_calls": turns,
        "error": "no answer" if failed else None,
        "error_cause": "unavailable" if failed else None,
        "incidents": [],
        "retries": 0,
        "started": BEGAN,
        "ended": BEGAN,
        "latency_seconds": r.randrange(1, 400) / 4,
        "queue_seconds": 0.0,
        "retry_seconds": 0.0,
        "edition": "e" * 64,
        "mount": "0" * 64,
        "code_version": "1.0",
        "commit": None,
        "scorer_version": "a" * 12,
        "answer_digest": None,
        "digest": hashlib.sha256(words.encode()).hexdigest(),
    }
