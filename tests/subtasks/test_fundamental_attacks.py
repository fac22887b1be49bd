"""`certified` on the fundamental subtasks over the edition, against answers that know less than they claim."""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.subtasks.attacks import scored
from tests.subtasks.fundamental_attacks import ATTACKS

from finskillbench.edition import Edition
from finskillbench.episode import Episode, Profile, Submission
from finskillbench.runs.verdicts import judge

Json = dict[str, Any]
Table = dict[str, dict[str, list[float]]]
FLOOR = 0.25
NOTHING = ("empty object", "nulls")
SAMPLE = 120
"""Episodes of a subtask that every attack is tried on, spread evenly: symbols, forms and years are all among them."""


def _episodes(edition: Edition, sub_task: str) -> Sequence[Episode]:
    episodes = edition.episodes([sub_task])
    assert len(episodes) >= SAMPLE
    return episodes[:: len(episodes) // SAMPLE][:SAMPLE]


def _right(edition: Edition, episode: Episode) -> Json:
    return copy.deepcopy(dict(edition.truth(episode.task_id).expected_output))


def _submitted(edition: Edition, episode: Episode, answer: Json) -> float:
    """`certified` of an answer that is sent as text, as an agent sends it: NaN never reaches a scorer."""
    submission = Submission(episode.task_id, json.dumps(answer), "submitted")
    verdict = judge(submission, edition.truth(episode.task_id), task_input=edition.full_input(episode))
    return verdict.scores[Profile.CERTIFIED]


@pytest.fixture(scope="module")
def table(edition: Edition) -> Table:
    """`certified` scores by subtask and attack over the sample."""
    found: Table = defaultdict(lambda: defaultdict(list))
    for sub_task, attacks in ATTACKS.items():
        episodes = _episodes(edition, sub_task)
        for i, episode in enumerate(episodes):
            answers = attacks(edition.full_input(episode))
            for step in (1, 7, 20):
                answers[f"truth of the episode {step} further"] = _right(edition, episodes[(i + step) % len(episodes)])
            for name, answer in answers.items():
                found[sub_task][name].append(_submitted(edition, episode, answer))
    return found


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_every_attack_stays_at_the_floor(table: Table, sub_task: str) -> None:
    means = {name: float(np.mean(scores)) for name, scores in table[sub_task].items()}
    print(f"\n{sub_task:<52}{'mean':>8}{'most':>8}")
    for name, mean in sorted(means.items(), key=lambda row: -row[1]):
        print(f"  {name:<50}{mean:>8.3f}{max(table[sub_task][name]):>8.3f}")
    assert {name: mean for name, mean in means.items() if mean > FLOOR} == {}


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_nothing_earns_nothing(table: Table, sub_task: str) -> None:
    for name in NOTHING:
        assert max(table[sub_task][name]) == 0.0, name


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_no_score_leaves_the_unit_interval(table: Table, sub_task: str) -> None:
    for name, scores in table[sub_task].items():
        assert min(scores) >= 0.0, name
        assert max(scores) <= 1.0, name


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_the_truth_of_one_episode_submitted_everywhere_stays_at_the_floor(edition: Edition, sub_task: str) -> None:
    episodes = _episodes(edition, sub_task)
    for source in episodes[::10]:
        answer = _right(edition, source)
        others = [episode for episode in episodes if _right(edition, episode) != answer]
        assert np.mean([scored(edition, episode, answer).value for episode in others]) <= FLOOR, source.task_id


@pytest.mark.parametrize("sub_task", ATTACKS)
def test_the_right_answer_scores_one(edition: Edition, sub_task: str) -> None:
    """In every episode, not only the sample."""
    for episode in edition.episodes([sub_task]):
        value = scored(edition, episode, _right(edition, episode)).value
        assert value == pytest.approx(1.0, abs=1e-9), episode.task_id


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("sub_task", ATTACKS)
def test_numbers_outside_json_are_invalid_submissions(edition: Edition, sub_task: str, number: str) -> None:
    episode = edition.episodes([sub_task])[0]
    text = f'{{"metrics": {{"revenue": {number}}}, "beneish_m_score": {number}, "revenue_delta": {number}}}'
    verdict = judge(
        Submission(episode.task_id, text, "submitted"),
        edition.truth(episode.task_id),
        task_input=edition.full_input(episode),
    )
    assert str(verdict.status) == "invalid_submission"
    assert set(verdict.scores.values()) == {0.0}


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

    Both changes move every number, 0 and -1 included.
    """
    free = []
    for episode in _episodes(edition, sub_task)[::6]:
        right = _right(edition, episode)
        for path in _leaves(right):
            *above, last = path
            for change in (lambda x: 3 * x + 7, lambda x: -2 * x - 5, lambda _: None):
                answer = copy.deepcopy(right)
                holder = answer
                for key in above:
                    holder = holder[key]
                holder[last] = change(holder[last])
                if scored(edition, episode, answer).value >= 1.0 - 1e-9:
                    free.append((episode.task_id, path))
    assert free == []


def test_a_flag_needs_its_evidence(edition: Edition) -> None:
    """Right signals and flags without the ratios behind them earn little."""
    for episode in _episodes(edition, "earnings_quality"):
        right = _right(edition, episode)
        bare = right | {"beneish_m_score": None, "accruals_ratio": None, "income_quality_ratio": None}
        assert scored(edition, episode, bare).value <= FLOOR, episode.task_id
        flipped = right | {"flags": [] if right["flags"] else ["high_accruals"]}
        assert scored(edition, episode, flipped).value < 1.0, episode.task_id


def test_drivers_repeated_or_padded_earn_no_more(edition: Edition) -> None:
    for episode in _episodes(edition, "driver_decomposition"):
        right = _right(edition, episode)
        for name in ("top_revenue_drivers", "margin_drivers"):
            rows = right[name]
            if not rows:
                continue
            wrong = [{**row, "direction": "decrease" if row["direction"] == "increase" else "increase"} for row in rows]
            for padded in (rows + wrong, wrong + rows, rows * 2):
                assert scored(edition, episode, right | {name: padded}).value < 1.0, (episode.task_id, name)
            one = scored(edition, episode, right | {name: rows[:1]}).value
            assert scored(edition, episode, right | {name: rows[:1] * len(rows)}).value <= one + 1e-9, episode.task_id
