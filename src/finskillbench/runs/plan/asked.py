"""What a run folder was asked for, call after call: each asks for entries under conditions on tasks, so many times.

Kept as few of these as say the same, so that a folder that grew by ten calls tells what one call would have told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from finskillbench.harness.conditions import ArmName
from finskillbench.harness.models import Entry
from finskillbench.runs.plan.items import Item, Plan, place_of_condition, place_of_entry


@dataclass(frozen=True, slots=True, order=True)
class Asked:
    """Every entry under every condition on every task, `epochs` times; each in the order of a plan."""

    entries: tuple[Entry, ...]
    conditions: tuple[ArmName, ...]
    tasks: tuple[str, ...]
    epochs: int

    def items(self) -> frozenset[Item]:
        """All that was asked for."""
        return frozenset(
            Item(entry.model, entry.arguments, condition, task, epoch)
            for entry in self.entries
            for condition in self.conditions
            for task in self.tasks
            for epoch in range(self.epochs)
        )


def asked_by(plan: Plan) -> tuple[Asked, ...]:
    """What a plan asks for, condition by condition: they may differ in their tasks."""
    by_condition: dict[ArmName, list[Item]] = {}
    for item in plan.items:
        by_condition.setdefault(item.condition, []).append(item)
    return tuple(
        Asked(
            entries=tuple(dict.fromkeys(item.entry for item in items)),
            conditions=(condition,),
            tasks=tuple(dict.fromkeys(item.task_id for item in items)),
            epochs=1 + max(item.run_idx for item in items),
        )
        for condition, items in by_condition.items()
    )


def joined(asked: Iterable[Asked], places: Mapping[str, int]) -> tuple[Asked, ...]:
    """The same with those left out that others hold, and any two made one that differ in one respect alone."""
    left = list(dict.fromkeys(asked))
    while pair := next(((a, b, whole) for a, b in combinations(left, 2) if (whole := _one(a, b, places))), None):
        first, second, whole = pair
        left = [each for each in left if each not in (first, second)] + [whole]
    return tuple(sorted(left))


def _one(a: Asked, b: Asked, places: Mapping[str, int]) -> Asked | None:
    """What holds exactly what both hold, if one `Asked` can."""
    whole = Asked(
        tuple(sorted({*a.entries, *b.entries}, key=place_of_entry)),
        tuple(sorted({*a.conditions, *b.conditions}, key=place_of_condition)),
        tuple(sorted({*a.tasks, *b.tasks}, key=places.__getitem__)),
        max(a.epochs, b.epochs),
    )
    if whole in (a, b):
        return whole
    alike = (a.entries == b.entries, a.conditions == b.conditions, a.tasks == b.tasks, a.epochs == b.epochs)
    return whole if sum(alike) == len(alike) - 1 else None
