"""Ladders and exploits of remediation and stress testing: scores in order and in their bands, cheats near nothing."""

from __future__ import annotations

from statistics import mean

import pytest

from finskillbench.domains import subtask_named
from finskillbench.domains.examples import Label
from finskillbench.edition import Edition
from finskillbench.episode import Profile

NAMES = ("stress_testing", "risk_remediation")


@pytest.mark.parametrize("name", NAMES)
def test_scores_fall_along_every_ladder_and_lie_in_their_bands(edition: Edition, name: str) -> None:
    subtask = subtask_named(name)
    assert subtask.examples.graded is not None
    for episode in edition.episodes([name]):
        label = Label(episode, edition.full_input(episode), edition.truth(episode.task_id), {})
        before = 1.0
        for rung in subtask.examples.graded(label):
            score = subtask.scorers[Profile.CERTIFIED](rung.answer, label.truth, label.task_input).value
            assert rung.least - 1e-9 <= score <= min(rung.most, before) + 1e-9, (episode.task_id, rung.name)
            before = score


@pytest.mark.parametrize("name", NAMES)
def test_no_cheat_pays(edition: Edition, name: str) -> None:
    subtask, earned = subtask_named(name), dict[str, list[float]]()
    assert subtask.examples.exploits is not None
    for episode in edition.episodes([name]):
        task_input, truth = edition.full_input(episode), edition.truth(episode.task_id)
        for cheat, answer in subtask.examples.exploits(task_input).items():
            score = subtask.scorers[Profile.CERTIFIED](answer, truth, task_input).value
            earned.setdefault(cheat, []).append(score)
    assert len(earned) >= 3
    for cheat, scores in earned.items():
        assert mean(scores) <= 0.1, cheat
