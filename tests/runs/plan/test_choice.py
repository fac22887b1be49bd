"""Which episodes are played: the first of each subtask, and samples that are like the whole."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.conftest import make_episode

from finskillbench.domains import cluster_of
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.runs.plan.items import choose_episodes

LEVELS = ("easy", "medium", "hard")


def episodes(sub_task: str, prefix: str, levels: list[int]) -> list[Episode]:
    """Episodes of these difficulties, one in three of each sharing a date with its neighbours."""
    made = [make_episode(sub_task, prefix, number) for number in range(len(levels))]
    return [replace(each, difficulty=LEVELS[level]) for each, level in zip(made, levels, strict=True)]


levels = st.lists(st.integers(0, 2), min_size=1, max_size=40)


@given(levels, levels, st.data())
def test_a_sample_is_even_over_subtasks_and_proportional_by_difficulty(one, other, data) -> None:
    pool = [*episodes("rebalancing", "a", one), *episodes("normalization", "b", other)]
    count = data.draw(st.integers(1, len(pool)))
    chosen = choose_episodes(pool, sample=count)
    assert len(chosen) == count
    assert list(chosen) == [each for each in pool if each in chosen], "in the order of the file"
    taken = Counter(each.sub_task for each in chosen)
    first, second = taken["rebalancing"], taken["normalization"]
    assert abs(first - second) <= 1 or min(first - len(one), second - len(other), key=abs) == 0
    for sub_task, all_levels in (("rebalancing", one), ("normalization", other)):
        for number, level in enumerate(LEVELS):
            share = taken[sub_task] * all_levels.count(number) / len(all_levels)
            assert abs(sum(e.sub_task == sub_task and e.difficulty == level for e in chosen) - share) < 2


@given(levels, st.data())
def test_a_sample_holds_every_smaller_one(one, data) -> None:
    pool = [*episodes("rebalancing", "a", one), *episodes("normalization", "b", one[:3])]
    small, large = sorted(data.draw(st.tuples(st.integers(1, len(pool)), st.integers(1, len(pool)))))
    ids = [{each.task_id for each in choose_episodes(pool, sample=count)} for count in (small, large)]
    assert ids[0] <= ids[1]


def test_what_episodes_share_is_spread(synthetic_edition) -> None:
    """Twelve of one subtask: as many dates, mandates or companies as there are, up to twelve."""
    for name in ("rebalancing", "constraint_monitoring", "normalization"):
        pool = choose_episodes(synthetic_edition.episodes([name]))
        chosen = choose_episodes(pool, sample=12)
        most = len({cluster_of(each) for each in pool})
        assert len({cluster_of(each) for each in chosen}) >= min(12, most) - 3, name


def test_a_limit_bounds_what_a_sample_is_drawn_from() -> None:
    pool = episodes("rebalancing", "a", [0] * 40)
    assert choose_episodes(pool, limit=5, sample=5) == choose_episodes(pool, limit=5)
    with pytest.raises(InputError, match="sample is 6, but only 5 episodes are available"):
        choose_episodes(pool, limit=5, sample=6)


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"sample": 0}, {"sample": -3}])
def test_a_number_below_1_is_refused(wrong) -> None:
    (name,) = wrong
    with pytest.raises(InputError, match=f"{name} is {wrong[name]}; it must be at least 1"):
        choose_episodes(episodes("rebalancing", "a", [0]), **wrong)


def test_single_tasks_are_taken_in_the_order_of_the_file() -> None:
    pool = episodes("rebalancing", "a", [0] * 50)
    chosen = choose_episodes(pool, tasks=["a_047", "a_003", "a_003"])
    assert [each.task_id for each in chosen] == ["a_003", "a_047"]


def test_patterns_name_every_task_that_they_match() -> None:
    pool = [*episodes("rebalancing", "a", [0] * 12), *episodes("normalization", "b", [0] * 3)]
    chosen = choose_episodes(pool, tasks=["a_01?", "b_*"])
    assert [each.task_id for each in chosen] == ["a_010", "a_011", "b_000", "b_001", "b_002"]


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ({"tasks": ["a_01"]}, "unknown task 'a_01'; tasks are, for example, a_00"),
        ({"tasks": ["a_00*", "b_*"]}, r"unknown task 'b_\*'"),
        ({"tasks": []}, "no task was named"),
        ({"tasks": ["a_001"], "limit": 3}, "tasks cannot be combined with limit or sample"),
        ({"tasks": ["a_001"], "sample": 3}, "tasks cannot be combined with limit or sample"),
    ],
)
def test_tasks_that_make_no_sense_are_refused(which, words) -> None:
    with pytest.raises(InputError, match=words):
        choose_episodes(episodes("rebalancing", "a", [0] * 5), **which)
