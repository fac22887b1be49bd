"""A draw of tasks in which no shortcut earns too much on the mean of a tier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from finskillbench.domains.building import Task
from finskillbench.domains.draws import drawn

T = TypeVar("T")

_AT_A_TIME = 20


class Shares:
    """What shortcuts earn of the tasks taken so far, by tier.

    Parameters
    ----------
    most : tier to what each shortcut may earn on the mean of its tasks.
    """

    def __init__(self, most: Mapping[str, float]) -> None:
        self._most = most
        self._tasks = Counter[str]()
        self._earned: dict[str, dict[str, float]] = {tier: {} for tier in most}

    def take(self, tier: str, scores: Mapping[str, float]) -> bool:
        """Whether every shortcut stays within its bound with one more task, which is then counted."""
        earned, most = self._earned[tier], self._most[tier]
        after = {name: earned.get(name, 0.0) + score for name, score in scores.items()}
        if any(scores[name] > most and total > most * (self._tasks[tier] + 1) for name, total in after.items()):
            return False
        self._tasks[tier] += 1
        self._earned[tier] = earned | after
        return True


def drawn_within(
    most: Mapping[str, float],
    items: Sequence[T],
    traits: Callable[[T], Sequence[Hashable]],
    count: int,
    rng: np.random.Generator,
    scored: Callable[[T], tuple[Task, Mapping[str, float]]],
) -> list[Task]:
    """Draw `count` tasks as `drawn` does, without those with which a shortcut would earn more than `most` of its tier.

    A few are drawn at a time, and what was passed over is tried again, since tasks that shortcuts fail at make room for
    others. `scored` makes the task of an item and says what each shortcut earns of it.
    """
    shares, made = Shares(most), dict[int, tuple[Task, Mapping[str, float]]]()
    tasks: list[Task] = []
    left: list[int] = list(range(len(items)))

    def taken(at: int) -> tuple[int, Task] | None:
        if at not in made:
            made[at] = scored(items[at])
        task, scores = made[at]
        return (at, task) if shares.take(task.episode.difficulty, scores) else None

    while left and len(tasks) < count:
        found = drawn(left, lambda at: traits(items[at]), min(_AT_A_TIME, count - len(tasks)), rng, taken)
        if not found:
            break
        used = {at for at, _ in found}
        tasks += [task for _, task in found]
        left = [at for at in left if at not in used]
    return tasks
