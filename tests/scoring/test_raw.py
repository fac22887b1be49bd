"""`Score.raw`: the value of an answer before its limits at 0 and 1."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.domains.shared.attacks import right_answer, sample, scored

from finskillbench.domains import Subtask
from finskillbench.edition import Edition
from finskillbench.episode import Profile, Score, lowest_raw

GARBAGE: tuple[dict[str, Any], ...] = (
    {},
    {"weights": {"AAA": 1e308}, "new_weights": 3, "metrics": [], "optimizer_call": {"constraints": 1}},
    {"posterior_returns": None, "least_attainable": 1e308, "feasible": True, "trades": [{}], "piotroski_score": 1e308},
)
NEVER_BELOW = {"stress_testing", "constraint_monitoring", "driver_decomposition", "normalization"}
"""Scores without negative parts; those of `normalization` need a label with nulls, which a sample may lack."""


def _consistent(score: Score) -> bool:
    """Check `raw` against the value, which it equals or has no part in where it is strictly inside its limits."""
    if score.raw is None:
        return True
    return score.raw <= 0.0 if score.value == 0.0 else score.raw == pytest.approx(score.value, abs=1e-12)


def test_raw_is_consistent_with_the_value(edition: Edition, subtask: Subtask) -> None:
    if Profile.CERTIFIED not in subtask.scorers:
        pytest.skip("has no certified scorer")
    trivial = subtask.baselines.trivial
    assert trivial is not None
    below = 0
    for episode in sample(edition, subtask.name)[:8]:
        best = scored(edition, episode, right_answer(edition, episode))
        assert best.raw is None or best.raw >= 1.0 - 1e-9
        full = edition.full_input(episode)
        answers = [dict(trivial.answer({name: full[name] for name in trivial.fields})), *GARBAGE]
        if subtask.examples.exploits is not None:
            answers += [dict(answer) for answer in subtask.examples.exploits(full).values()]
        scores = [scored(edition, episode, answer) for answer in answers]
        assert all(map(_consistent, scores)), (episode.task_id, scores)
        below += sum(score.raw is not None and score.raw < 0.0 for score in scores)
    assert below or subtask.name in NEVER_BELOW


def test_the_lowest_raw_part_is_not_above_zero() -> None:
    assert lowest_raw(0.5, -1.0) == -1.0
    assert lowest_raw(0.0) == 0.0
    assert lowest_raw(None, -1.0) == -math.inf
    assert lowest_raw(0.5) is None
    assert lowest_raw(math.nan) is None
