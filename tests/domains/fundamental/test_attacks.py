"""`certified` on the fundamental subtasks over the edition, against answers that know less than they claim."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.domains.shared.attacks import right_answer, sample, scored

from finskillbench.domains import subtask_named
from finskillbench.domains.examples import Label
from finskillbench.domains.fundamental import DOMAIN
from finskillbench.edition import Edition

ATTACKS = tuple(subtask.name for subtask in DOMAIN.subtasks)


@pytest.fixture(scope="module", params=["synthetic", pytest.param("real", marks=pytest.mark.slow)])
def edition(request: pytest.FixtureRequest) -> Edition:
    """The synthetic edition, and one from real files where they are."""
    return request.getfixturevalue(f"{request.param}_edition")


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of every number in an answer that is neither a signal nor a count."""
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in _leaves(item, (*path, key))]
    if isinstance(value, list):
        return [leaf for i, item in enumerate(value) for leaf in _leaves(item, (*path, i))]
    return [path] if isinstance(value, float) else []


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_a_wrong_or_missing_number_always_costs(edition: Edition, sub_task: str) -> None:
    """Larger, of the other sign and null, one number at a time: no number is decoration.

    Both changes move every number far from itself, 0 included.
    """
    free = []
    for episode in sample(edition, sub_task)[::6]:
        right = right_answer(edition, episode)
        for path in _leaves(right):
            *above, last = path
            for change in (lambda x: x + 10 * (abs(x) + 1), lambda x: -x - 10 * (abs(x) + 1), lambda _: None):
                answer = copy.deepcopy(right)
                holder = answer
                for key in above:
                    holder = holder[key]
                holder[last] = change(holder[last])
                if scored(edition, episode, answer).value >= 1.0 - 1e-9:
                    free.append((episode.task_id, path))
    assert free == []


def test_flags_count(edition: Edition) -> None:
    for episode in sample(edition, "earnings_quality"):
        right = right_answer(edition, episode)
        flipped = right | {"flags": [] if right["flags"] else ["high_accruals"]}
        assert scored(edition, episode, flipped).value < 1.0, episode.task_id


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_scores_fall_along_the_ladder_and_stay_in_their_bands(edition: Edition, sub_task: str) -> None:
    ladder = subtask_named(sub_task).examples.graded
    assert ladder is not None
    for episode in sample(edition, sub_task):
        label = Label(episode, edition.full_input(episode), edition.truth(episode.task_id), {})
        above = 1.0
        for rung in ladder(label):
            value = scored(edition, episode, dict(rung.answer)).value
            assert rung.least - 1e-9 <= value <= min(rung.most, above) + 1e-9, (episode.task_id, rung.name, value)
            above = value


def test_drivers_repeated_or_padded_earn_no_more(edition: Edition) -> None:
    for episode in sample(edition, "driver_decomposition"):
        right = right_answer(edition, episode)
        for name in ("top_revenue_drivers", "margin_drivers"):
            rows = right[name]
            if not rows:
                continue
            wrong = [{**row, "direction": "decrease" if row["direction"] == "increase" else "increase"} for row in rows]
            for padded in (rows + wrong, wrong + rows, rows * 2):
                assert scored(edition, episode, right | {name: padded}).value < 1.0, (episode.task_id, name)
            one = scored(edition, episode, right | {name: rows[:1]}).value
            assert scored(edition, episode, right | {name: rows[:1] * len(rows)}).value <= one + 1e-9, episode.task_id
