"""What a run has to do: every model with every condition on every episode, so many times."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.harness.conditions import ArmName
from finskillbench.runs.plan.choice import choose_episodes
from finskillbench.runs.store.files import file_name


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """One piece of work, and the key of its row; `run_idx` counts repeats from 0."""

    model: str
    condition: ArmName
    task_id: str
    run_idx: int

    @property
    def arm(self) -> str:
        """Name of the trajectory folder."""
        return f"{file_name(self.model)}__{file_name(self.condition)}"

    @property
    def trajectory(self) -> str:
        """Path of the trajectory inside the run folder."""
        return f"trajectories/{self.arm}/{file_name(self.task_id)}__{self.run_idx}.json.gz"


@dataclass(frozen=True, slots=True)
class Plan:
    """The items in the order in which they are started and reported; `digest` identifies them."""

    items: tuple[Item, ...]
    episodes: tuple[Episode, ...]

    @property
    def digest(self) -> str:
        """SHA-256 over the items in order."""
        return digest_of(self.items)


def digest_of(items: Sequence[Item]) -> str:
    """SHA-256 over some items in order."""
    rows = [[item.model, item.condition, item.task_id, item.run_idx] for item in items]
    return hashlib.sha256(orjson.dumps(rows)).hexdigest()


def list_items(
    models: Sequence[str], conditions: Sequence[str], task_ids: Sequence[str], epochs: int
) -> tuple[Item, ...]:
    """Every model with every condition on every episode, so many times, in the order of a plan."""
    return tuple(
        Item(model, condition, task_id, epoch)
        for model in models
        for condition in conditions
        for epoch in range(epochs)
        for task_id in task_ids
    )


def make_plan(
    episodes: Sequence[Episode],
    models: Sequence[str],
    conditions: Sequence[str],
    *,
    limit: int | None = None,
    sample: int | None = None,
    epochs: int = 1,
) -> Plan:
    """List the work of a run.

    Parameters
    ----------
    episodes : the edition's episodes of the wanted subtasks, in file order.
    models, conditions : names, each at most once.
    limit, sample : as of `finskillbench.runs.plan.choice.choose_episodes`.
    epochs : repeats of each episode, >= 1.

    Raises
    ------
    InputError : nothing to do, a number that does not fit, a name given twice, or names that would share a file.
    """
    if epochs < 1:
        raise InputError(f"epochs is {epochs}; it must be at least 1")
    for what, names in (("model", models), ("condition", conditions)):
        if not names:
            raise InputError(f"no {what} was chosen; name at least one")
        if len(set(names)) < len(names):
            raise InputError(f"a {what} was given twice: {', '.join(names)}")
    chosen = choose_episodes(episodes, limit, sample)
    items = list_items(models, conditions, [episode.task_id for episode in chosen], epochs)
    # Compared without case: some file systems do not tell Run-1 from run-1.
    if len({item.trajectory.lower() for item in items}) < len(items):
        raise InputError("two models or two task ids of this run would share a file name; rename one of them")
    return Plan(items, chosen)
