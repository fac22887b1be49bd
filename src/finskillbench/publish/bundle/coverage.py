"""Which episodes a leaderboard asks for: those that a full run plays and that count towards a headline.

Not those that are played move by move: they cannot be played from an edition that was handed out without its truth, and
what was done in them would be the entrant's own word.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from finskillbench.domains import by_name, domain
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.runs.plan.choice import choose_episodes
from finskillbench.runs.plan.items import Item


def required(episodes: Sequence[Episode]) -> dict[str, tuple[str, ...]]:
    """The task ids of each headline, in the order of the edition; of an edition with no such episode, nothing."""
    found: dict[str, list[str]] = defaultdict(list)
    for episode in choose_episodes(episodes):
        if _counts(episode):
            found[domain(episode.skill).suite].append(episode.task_id)
    return {suite: tuple(tasks) for suite, tasks in found.items()}


def first_missing(items: Iterable[Item], wanted: Mapping[str, Sequence[str]]) -> Item | None:
    """The first episode that an entry lacks under a condition, in a headline of which it has played any; None if none.

    An entry that has no episode of any headline lacks the first of all.
    """
    played: dict[tuple[str, str, str, int], set[str]] = defaultdict(set)
    for item in items:
        played[item.model, item.arguments, item.condition, item.run_idx].add(item.task_id)
    for (model, arguments, condition, run_idx), tasks in played.items():
        begun = [suite for suite in wanted.values() if not tasks.isdisjoint(suite)] or list(wanted.values())
        for task_id in (task_id for suite in begun for task_id in suite):
            if task_id not in tasks:
                return Item(model, arguments, condition, task_id, run_idx)
    return None


def _counts(episode: Episode) -> bool:
    try:
        subtask = by_name(episode.sub_task)
        return subtask.headline and subtask.stage is None
    except InputError:  # of an imported release, under another name
        return False
