"""Episodes are drawn evenly over every trait, reproducibly, and what cannot be built is passed over."""

from __future__ import annotations

from collections import Counter
from datetime import date

import numpy as np

from finskillbench.domains.building import BuiltTask, draw_evenly, shuffled
from finskillbench.episode import Episode, Prompt, Truth


def task(name: str) -> BuiltTask:
    episode = Episode(name, "risk_management", "x", date(2024, 1, 2), "easy", {}, Prompt("", ""))
    return BuiltTask(episode, Truth(name, "x", {}, {}), {})


def test_the_draw_is_even_over_every_trait_and_reproducible() -> None:
    # Nine in ten are of one colour and one size: a plain draw would hardly see the others.
    items = [("red" if i % 10 else "blue", "small" if i % 9 else "large", i % 4) for i in range(300)]

    def draw(seed: int) -> list[int]:
        tasks = draw_evenly(range(300), lambda i: items[i], 40, np.random.default_rng(seed), lambda i: task(str(i)))
        return [int(one.episode.task_id) for one in tasks]

    chosen = draw(1)
    assert len(set(chosen)) == 40
    for trait, least in ((0, 17), (1, 17), (2, 9)):
        assert min(Counter(items[i][trait] for i in chosen).values()) >= least
    assert draw(1) == chosen
    assert draw(2) != chosen


def test_a_rare_value_of_one_trait_is_not_given_up_for_the_others() -> None:
    traits = [(i % 3 if i < 240 else 0, "rare" if i % 30 == 0 else "usual") for i in range(300)]
    tasks = draw_evenly(range(300), lambda i: traits[i], 60, np.random.default_rng(0), lambda i: task(str(i)))
    chosen = [traits[int(one.episode.task_id)] for one in tasks]
    assert max(Counter(colour for colour, _ in chosen).values()) <= 23
    assert sum(size == "rare" for _, size in chosen) == 10


def test_what_cannot_be_built_is_passed_over() -> None:
    tasks = draw_evenly(
        range(50), lambda i: (i % 2,), 20, np.random.default_rng(0), lambda i: task(str(i)) if i >= 25 else None
    )
    assert len(tasks) == 20
    assert all(int(one.episode.task_id) >= 25 for one in tasks)
    assert draw_evenly([], lambda i: (i,), 20, np.random.default_rng(0), task) == []
    assert len(draw_evenly(range(5), lambda i: (i,), 20, np.random.default_rng(0), lambda i: task(str(i)))) == 5
    assert sorted(one.episode.task_id for one in shuffled(tasks, np.random.default_rng(0))) == sorted(
        one.episode.task_id for one in tasks
    )
