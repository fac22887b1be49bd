"""Which episodes are played: all that the protocol takes, the first ones, a stratified sample, or those named."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from finskillbench.domains import cluster_of, domain, subtasks
from finskillbench.edition import Edition
from finskillbench.episode import Episode
from finskillbench.errors import InputError


def choose_episodes(
    episodes: Sequence[Episode],
    limit: int | None = None,
    sample: int | None = None,
    tasks: Sequence[str] | None = None,
) -> tuple[Episode, ...]:
    """The first `limit` episodes of each subtask, of these a sample, or single tasks, in the order of `episodes`.

    A sample is spread evenly over the subtasks and, within each, over difficulties in proportion and over what episodes
    share (a market date, a mandate, a company) as widely as it goes. It holds every smaller one: a run of it can grow.

    Parameters
    ----------
    episodes : in file order.
    limit : episodes per subtask, >= 1; None takes the number of the full-run protocol.
    sample : episodes in all, >= 1; None takes all.
    tasks : task ids, or patterns of them such as "pc_rebal_*", in place of both.

    Raises
    ------
    InputError : a number below 1, no episode, fewer than `sample`, an unknown task, or tasks beside a number.
    """
    if tasks is not None:
        return _named(episodes, tasks, numbered=limit is not None or sample is not None)
    for name, value in (("limit", limit), ("sample", sample)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; it must be at least 1")
    taken: Counter[str] = Counter()
    first: list[Episode] = []
    for episode in episodes:
        most = limit if limit is not None else domain(episode.skill).protocol_episodes
        if taken[episode.sub_task] < most:
            taken[episode.sub_task] += 1
            first.append(episode)
    if not first:
        raise InputError("the edition has no episode of the chosen subtasks")
    if sample is None:
        return tuple(first)
    if sample > len(first):
        raise InputError(f"sample is {sample}, and there are {len(first)} episodes to draw from; raise the limit")
    chosen = _sample(first, sample)
    return tuple(episode for episode in first if episode.task_id in chosen)


def playable(edition: Edition, sub_tasks: Sequence[str] | None = None) -> tuple[Episode, ...]:
    """The episodes of some subtasks that can be played, by default of all.

    Without its truth an edition has nothing that moves an episode on, so that such subtasks are left out.

    Raises
    ------
    EditionError : a named subtask cannot be played, or the truth is damaged.
    """
    episodes = edition.episodes(sub_tasks)
    if edition.has_truth:
        for episode in episodes[:1]:
            edition.truth(episode.task_id)  # refused before anything is run
        return episodes
    moved = {each.name for each in subtasks() if each.open_stage is not None}
    for episode in episodes:
        if sub_tasks is not None and episode.sub_task in moved:
            edition.stage(episode)  # says why not
    return tuple(episode for episode in episodes if episode.sub_task not in moved)


def _named(episodes: Sequence[Episode], tasks: Sequence[str], *, numbered: bool) -> tuple[Episode, ...]:
    if numbered:
        raise InputError("single tasks are named: leave out limit and sample")
    if not tasks:
        raise InputError("no task was named; name one, or leave tasks out")
    known = {episode.task_id for episode in episodes}
    chosen: set[str] = set()
    for task in tasks:
        found = {task} if task in known else {each for each in known if fnmatchcase(each, task)}
        if not found:
            like = get_close_matches(task, known, n=3) or sorted(known)[:3]
            raise InputError(f"there is no task {task!r}; there are {', '.join(like)}")
        chosen |= found
    return tuple(episode for episode in episodes if episode.task_id in chosen)


def _sample(episodes: Sequence[Episode], count: int) -> frozenset[str]:
    """Task ids, drawn in turn from each subtask."""
    by_subtask: dict[str, list[Episode]] = defaultdict(list)
    for episode in episodes:
        by_subtask[episode.sub_task].append(episode)
    queues = [_spread(each) for each in by_subtask.values()]
    rounds = (queue[turn] for turn in range(len(episodes)) for queue in queues if turn < len(queue))
    return frozenset(task_id for task_id, _ in zip(rounds, range(count), strict=False))


def _spread(episodes: Sequence[Episode]) -> list[str]:
    """Task ids in an order of which every beginning is like the whole, by difficulty and by what episodes share."""
    strata: dict[str, list[Episode]] = defaultdict(list)
    for episode in sorted(episodes, key=_lot):
        strata[episode.difficulty].append(episode)
    placed: list[tuple[float, str, str]] = []
    for stratum in strata.values():
        seen: Counter[str] = Counter()
        repeats: list[tuple[int, Episode]] = []
        for episode in stratum:
            cluster = cluster_of(episode)
            repeats.append((seen[cluster], episode))
            seen[cluster] += 1
        repeats.sort(key=lambda pair: pair[0])
        for rank, (_, episode) in enumerate(repeats):
            placed.append(((rank + 0.5) / len(stratum), _lot(episode), episode.task_id))
    return [task_id for _, _, task_id in sorted(placed)]


def _lot(episode: Episode) -> str:
    """What decides by chance, the same in every run."""
    return hashlib.sha256(episode.task_id.encode()).hexdigest()
