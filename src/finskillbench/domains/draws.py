"""Which items become episodes, and in which order: draws that are even over strata or traits, and reproducible."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np

from finskillbench.domains.building import Task

T = TypeVar("T")
R = TypeVar("R")


def permuted(items: Sequence[T], rng: np.random.Generator) -> list[T]:
    """The items in a random order."""
    return [items[i] for i in rng.permutation(len(items)).tolist()]


def stratified(items: Sequence[T], stratum: Callable[[T], Hashable], count: int, rng: np.random.Generator) -> list[T]:
    """Draw `count` items, as evenly over the strata as their sizes allow; the result keeps the order of `items`.

    Strata take turns in a random order until the draw is full, so that none is favoured by its name.
    """
    strata: dict[Hashable, list[int]] = {}
    for index, item in enumerate(items):
        strata.setdefault(stratum(item), []).append(index)
    queues = [permuted(members, rng) for members in strata.values()]
    order = permuted(queues, rng)
    chosen: list[int] = []
    while len(chosen) < count and any(order):
        for queue in order:
            if queue and len(chosen) < count:
                chosen.append(queue.pop())
    return [items[index] for index in sorted(chosen)]


def drawn(
    items: Sequence[T],
    traits: Callable[[T], Sequence[Hashable]],
    count: int,
    rng: np.random.Generator,
    build: Callable[[T], R | None],
) -> list[R]:
    """Build `count` items, tasks for one, drawn so that the values of each trait come up as evenly as they can.

    One item at a time, the one whose traits have come up least so far, each in proportion to how many values it has and
    squared, so that no trait is given up for the others; ties at random. An item for which `build` gives None is passed
    over. Every item has the same number of traits, at least one.
    """
    order = permuted(items, rng)
    columns = list(zip(*map(traits, order), strict=True))
    codes = np.empty((len(items), len(columns)), dtype=np.intp)
    sizes: list[int] = []
    for place, values in enumerate(columns):
        known: dict[Hashable, int] = {}
        codes[:, place] = [known.setdefault(value, len(known)) + sum(sizes) for value in values]
        sizes.append(len(known))
    weight = np.repeat(np.array(sizes, dtype=float) ** 2, sizes)
    taken, left = np.zeros(sum(sizes)), np.ones(len(items), dtype=bool)
    tasks: list[R] = []
    while left.any() and len(tasks) < count:
        at = int(np.argmin(np.where(left, (taken**2 * weight)[codes].sum(axis=1), np.inf)))
        left[at] = False
        task = build(order[at])
        if task is not None:
            tasks.append(task)
            taken[codes[at]] += 1
    return tasks


def shuffled(tasks: Sequence[Task], rng: np.random.Generator) -> list[Task]:
    """Tasks in a random order: their place tells nothing, and a prefix is as mixed as the whole."""
    return permuted(tasks, rng)
