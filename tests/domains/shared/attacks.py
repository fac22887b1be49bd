"""What the attacks on every domain share: answers that know less than they claim, and how they are scored."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from tests.sampling import THOROUGH

from finskillbench.domains import subtask_named
from finskillbench.edition import Edition
from finskillbench.episode import Episode, Profile, Score

Json = dict[str, Any]

FLOOR = 0.25
"""What answers that know less than they claim may earn on average."""
SAMPLE = 60 if THOROUGH else 20
"""Episodes of a subtask that every attack is tried on, spread evenly: symbols, forms and years are all among them."""


def sample(edition: Edition, sub_task: str) -> Sequence[Episode]:
    """`SAMPLE` episodes of a subtask; all where there are fewer."""
    episodes = edition.episodes([sub_task])
    assert len(episodes) >= min(40, SAMPLE)
    return episodes[:: max(1, len(episodes) // SAMPLE)][:SAMPLE]


def right_answer(edition: Edition, episode: Episode) -> Json:
    """A copy of the label, to be altered."""
    return copy.deepcopy(dict(edition.truth(episode.task_id).expected_output))


def scored(edition: Edition, episode: Episode, answer: Json, profile: Profile = Profile.CERTIFIED) -> Score:
    """An answer as the episode's scorer judges it."""
    scorer = subtask_named(episode.sub_task).scorers[profile]
    return scorer(answer, edition.truth(episode.task_id), edition.full_input(episode))
