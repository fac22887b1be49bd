"""The project's judge against the independent oracle: every method, both published profiles, any answer."""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path
from random import Random

import pytest
from tests.sampling import THOROUGH

from finskillbench.edition import Edition
from finskillbench.episode import Profile, Submission, Truth
from finskillbench.runs.verdicts import judge

from . import scoring as oracle
from .strategies import answer, text, truth
from .submission import outcome

SUBTASKS = {
    "unconstrained_optimization": "l2_distance_and_objective",
    "constrained_optimization": "constraint_satisfaction_and_objective",
    "tool_use_parameterization": "parameter_match",
    "rebalancing": "turnover_compliance_and_objective",
    "black_litterman": "view_specification_and_weights",
    "constraint_monitoring": "exact_match",
    "risk_identification": "ranked_list_recall",
    "stress_testing": "absolute_error",
    "risk_remediation": "constraint_satisfaction_plus_cost",
    "normalization": "metric_absolute_error",
    "earnings_quality": "earnings_quality_composite",
    "driver_decomposition": "driver_f1_and_direction",
    "infeasibility_detection": "infeasibility_detection",
}
ANSWERS = 2500 if THOROUGH else 250
"""Answers to each subtask, the same in every run."""


def _agree(sub_task: str, submitted: str | None, expected: dict, verification: dict, ended: str = "submitted") -> None:
    verdict = judge(Submission("one", submitted, ended), Truth("one", sub_task, expected, verification), task_input={})
    status, valid, found = outcome(submitted, ended)
    assert (str(verdict.status), verdict.valid_json) == (status, valid), submitted
    for profile in (Profile.PAPER, Profile.STRICT):
        wanted = 0.0
        if found is not None:
            wanted = oracle.score(SUBTASKS[sub_task], profile.value, found, expected, verification)
        seen = verdict.scores[profile]
        assert seen == pytest.approx(wanted, rel=0, abs=1e-12), (profile, submitted, expected, verification)


@pytest.mark.parametrize("sub_task", SUBTASKS)
def test_fuzzed_answers_score_alike(sub_task: str) -> None:
    for seed in range(ANSWERS):
        r = Random(f"{sub_task} {seed}")
        expected, verification = truth(r, SUBTASKS[sub_task])
        found = answer(r, expected, hostile=seed % 2 == 0)
        _agree(sub_task, json.dumps(found) if seed % 5 else text(r, found), expected, verification)


@pytest.mark.parametrize("sub_task", SUBTASKS)
def test_fuzzed_answers_to_an_edition_score_alike(sub_task: str, edition: Edition) -> None:
    for seed, episode in zip(range(ANSWERS), cycle(edition.episodes([sub_task]))):
        label = edition.truth(episode.task_id)
        r = Random(f"{sub_task} {seed}")
        found = answer(r, label.expected_output, hostile=seed % 2 == 0)
        _agree(sub_task, json.dumps(found), label.expected_output, label.verification)


@pytest.mark.parametrize("ended", ["max_turns", "stopped", "budget_exhausted"])
def test_a_missing_submission_scores_zero(ended: str) -> None:
    expected, verification = truth(Random(1), "exact_match")
    _agree("constraint_monitoring", None, expected, verification, ended)


def test_the_published_sample_scores_alike(release_sample: Path) -> None:
    files = sorted(release_sample.glob("data/*/episodes/layer_a/*/*.json"))
    assert len(files) == 22
    r = Random(20250131)
    for file in files:
        episode = json.loads(file.read_text())
        expected, verification = episode["expected_output"], episode["verification"]
        assert SUBTASKS[episode["sub_task"]] == verification["method"]
        for trial in range(20):
            found = expected if trial == 0 else answer(r, expected, hostile=trial % 2 == 0)
            _agree(episode["sub_task"], json.dumps(found), expected, verification)
