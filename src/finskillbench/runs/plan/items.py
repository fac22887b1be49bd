"""Choose episodes and list the items of a run: each model, condition, episode and repeat.

`RunRequest` is the compact form of a set of items that `run.json` stores.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from itertools import combinations
from types import MappingProxyType

from finskillbench.domains import cluster_of, domain, subtasks
from finskillbench.edition import Edition
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.harness.conditions import ArmName, Condition
from finskillbench.harness.models import BASELINES, NO_ARGUMENTS, ModelKey
from finskillbench.runs.store.version import file_name


def choose_episodes(
    episodes: Sequence[Episode], limit: int | None = None, sample: int | None = None, tasks: Sequence[str] | None = None
) -> tuple[Episode, ...]:
    """Choose the first `limit` episodes of each subtask, a sample of these, or named tasks, in the order of `episodes`.

    A sample is spread evenly over subtasks. Within each it is proportional over difficulties, and spread as widely as
    possible over shared objects: a market date, a mandate, a company. It contains every smaller sample, so a run can
    grow.

    Parameters
    ----------
    episodes : in file order.
    limit : episodes per subtask, >= 1; None takes the number of the full-run protocol.
    sample : total number of episodes, >= 1; None takes all.
    tasks : task ids or patterns such as "pc_rebal_*"; excludes `limit` and `sample`.

    Raises
    ------
    InputError : a number below 1, no episodes, fewer than `sample`, an unknown task, or `tasks` with a number.
    """
    if tasks is not None:
        return _select_tasks(episodes, tasks, numbered=limit is not None or sample is not None)
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
        raise InputError(f"sample is {sample}, but only {len(first)} episodes are available; raise the limit")
    chosen = _sample(first, sample)
    return tuple(episode for episode in first if episode.task_id in chosen)


def playable(edition: Edition, sub_tasks: Sequence[str] | None = None) -> tuple[Episode, ...]:
    """Return the episodes of some subtasks, by default of all, that can be run; interactive ones need the truth.

    Raises `EditionError` if a named subtask cannot be run or the truth is damaged.
    """
    episodes = edition.episodes(sub_tasks)
    if edition.has_truth:
        for episode in episodes[:1]:
            edition.truth(episode.task_id)  # fail before the first episode
        return episodes
    interactive = {each.name for each in subtasks() if each.open_interactive_state is not None}
    for episode in episodes:
        if sub_tasks is not None and episode.sub_task in interactive:
            edition.open_interactive_state(episode)  # raises with the reason
    return tuple(episode for episode in episodes if episode.sub_task not in interactive)


def _select_tasks(episodes: Sequence[Episode], tasks: Sequence[str], *, numbered: bool) -> tuple[Episode, ...]:
    if numbered:
        raise InputError("tasks cannot be combined with limit or sample; leave these out")
    if not tasks:
        raise InputError("no task was named; name one, or leave tasks out")
    known = {episode.task_id for episode in episodes}
    chosen: set[str] = set()
    for task in tasks:
        found = {task} if task in known else {each for each in known if fnmatchcase(each, task)}
        if not found:
            like = get_close_matches(task, known, n=3) or sorted(known)[:3]
            raise InputError(f"unknown task {task!r}; tasks are, for example, {', '.join(like)}")
        chosen |= found
    return tuple(episode for episode in episodes if episode.task_id in chosen)


def _sample(episodes: Sequence[Episode], count: int) -> frozenset[str]:
    """Draw task ids round-robin over subtasks."""
    by_subtask: dict[str, list[Episode]] = defaultdict(list)
    for episode in episodes:
        by_subtask[episode.sub_task].append(episode)
    queues = [_stratified_order(each) for each in by_subtask.values()]
    rounds = (queue[turn] for turn in range(len(episodes)) for queue in queues if turn < len(queue))
    return frozenset(task_id for task_id, _ in zip(rounds, range(count), strict=False))


def _stratified_order(episodes: Sequence[Episode]) -> list[str]:
    """Order task ids so that every prefix represents all difficulties and shared objects."""
    strata: dict[str, list[Episode]] = defaultdict(list)
    for episode in sorted(episodes, key=_random_key):
        strata[episode.difficulty].append(episode)
    ranked: list[tuple[float, str, str]] = []
    for stratum in strata.values():
        seen: Counter[str] = Counter()
        repeats: list[tuple[int, Episode]] = []
        for episode in stratum:
            cluster = cluster_of(episode)
            repeats.append((seen[cluster], episode))
            seen[cluster] += 1
        repeats.sort(key=lambda pair: pair[0])
        for rank, (_, episode) in enumerate(repeats):
            ranked.append(((rank + 0.5) / len(stratum), _random_key(episode), episode.task_id))
    return [task_id for _, _, task_id in sorted(ranked)]


def _random_key(episode: Episode) -> str:
    """Return a pseudorandom sort key that is equal in every run."""
    return hashlib.sha256(episode.task_id.encode()).hexdigest()


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """One episode of a plan and key of its row; `arguments` are those of its `ModelKey`, `run_idx` counts from 0."""

    model: str
    arguments: str
    condition: ArmName
    task_id: str
    run_idx: int

    @property
    def model_key(self) -> ModelKey:
        """Model with its arguments."""
        return ModelKey(self.model, self.arguments)

    @property
    def arm_folder(self) -> str:
        """Name of the trajectory folder."""
        return arm_folder(self.model_key, self.condition)

    @property
    def trajectory(self) -> str:
        """Path of the trajectory inside the run folder."""
        return f"trajectories/{self.arm_folder}/{file_name(self.task_id)}__{self.run_idx}.json.gz"


def arm_folder(model_key: ModelKey, condition: str) -> str:
    """Name of the folder with the trajectories of a model under a condition."""
    name = f"{file_name(model_key.model)}__{file_name(condition)}"
    if model_key.arguments == NO_ARGUMENTS:
        return name
    return f"{name}__{hashlib.sha256(model_key.arguments.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Items in the order of execution and reports, and their episodes."""

    items: tuple[Item, ...]
    episodes: tuple[Episode, ...]


@cache
def model_rank(model_key: ModelKey) -> tuple[int, ModelKey]:
    """Sort key of a model: models by name, then programs in the order of `BASELINES`."""
    programs = tuple(BASELINES)
    return (programs.index(model_key.model) + 1 if model_key.model in programs else 0), model_key


@cache
def condition_rank(condition: str) -> tuple[int, str]:
    """Sort key of a condition: built-in ones in the order of `Condition`, then skills by name."""
    known = [each.value for each in Condition]
    return (known.index(condition) if condition in known else len(known)), condition


def in_order(items: Iterable[Item], places: Mapping[str, int]) -> tuple[Item, ...]:
    """Sort items by model, condition, repeat and task; `places` are the positions of tasks in the edition."""

    def rank(item: Item) -> tuple[object, ...]:
        return model_rank(item.model_key), condition_rank(item.condition), item.run_idx, places[item.task_id]

    return tuple(sorted(items, key=rank))


def check_names(items: Collection[Item]) -> None:
    """Raise `InputError` if two items would share a file."""
    arms = [arm_folder(*arm) for arm in {(item.model_key, item.condition) for item in items}]
    tasks = [file_name(task) for task in {item.task_id for item in items}]
    for what, names in (("models", arms), ("task ids", tasks)):
        # Compared without case, as some file systems do.
        shared = [name for name, count in Counter(map(str.lower, names)).items() if count > 1]
        if shared:
            raise InputError(f"two {what} of one run would share a file name ({shared[0]}); rename one of them")


def make_plan(
    episodes: Sequence[Episode],
    model_keys: Sequence[ModelKey],
    conditions: Sequence[str],
    *,
    limit: int | None = None,
    sample: int | None = None,
    tasks: Sequence[str] | None = None,
    limits: Mapping[str, int] = MappingProxyType({}),
    epochs: int = 1,
) -> Plan:
    """List the items of a run; for `limit`, `sample` and `tasks` see `choose_episodes`.

    `limits` replaces `limit` for single conditions. Raises `InputError` if there is nothing to run, a number is
    invalid, or names are duplicate or would share a file.
    """
    if epochs < 1:
        raise InputError(f"epochs is {epochs}; it must be at least 1")
    for what, chosen_names in (("model", [str(each) for each in model_keys]), ("condition", conditions)):
        if not chosen_names:
            raise InputError(f"no {what} was chosen; name at least one")
        if len(set(chosen_names)) < len(chosen_names):
            raise InputError(f"a {what} was given twice: {', '.join(chosen_names)}")
    if unknown := sorted({*limits} - {*conditions}):
        raise InputError(f"limits: {unknown[0]!r} is not a condition of this run; remove it or add the condition")
    chosen = {each: choose_episodes(episodes, limits.get(each, limit), sample, tasks) for each in conditions}
    items = [
        Item(key.model, key.arguments, condition, episode.task_id, epoch)
        for key in model_keys
        for condition in conditions
        for epoch in range(epochs)
        for episode in chosen[condition]
    ]
    check_names(items)
    wanted = {item.task_id for item in items}
    places = {episode.task_id: place for place, episode in enumerate(episodes)}
    return Plan(in_order(items, places), tuple(episode for episode in episodes if episode.task_id in wanted))


@dataclass(frozen=True, slots=True, order=True)
class RunRequest:
    """Product of models, conditions and tasks, `epochs` times; each in the order of a plan."""

    entries: tuple[ModelKey, ...]
    conditions: tuple[ArmName, ...]
    tasks: tuple[str, ...]
    epochs: int

    def items(self) -> frozenset[Item]:
        return frozenset(
            Item(key.model, key.arguments, condition, task, epoch)
            for key in self.entries
            for condition in self.conditions
            for task in self.tasks
            for epoch in range(self.epochs)
        )


def requests_of(plan: Plan) -> tuple[RunRequest, ...]:
    """Return the requests that make up a plan, one per condition, since tasks may differ between conditions."""
    by_condition: dict[ArmName, list[Item]] = {}
    for item in plan.items:
        by_condition.setdefault(item.condition, []).append(item)
    return tuple(
        RunRequest(
            entries=tuple(dict.fromkeys(item.model_key for item in items)),
            conditions=(condition,),
            tasks=tuple(dict.fromkeys(item.task_id for item in items)),
            epochs=1 + max(item.run_idx for item in items),
        )
        for condition, items in by_condition.items()
    )


def merge_requests(requests: Iterable[RunRequest], places: Mapping[str, int]) -> tuple[RunRequest, ...]:
    """Merge requests: drop those contained in another, and combine pairs that differ in one field only."""
    merged = list(dict.fromkeys(requests))
    while pair := next(((a, b, whole) for a, b in combinations(merged, 2) if (whole := _union(a, b, places))), None):
        one, other, whole = pair
        merged = [each for each in merged if each not in (one, other)] + [whole]
    return tuple(sorted(merged))


def _union(a: RunRequest, b: RunRequest, places: Mapping[str, int]) -> RunRequest | None:
    """Return the request that covers exactly both, or None if no single one does."""
    whole = RunRequest(
        tuple(sorted({*a.entries, *b.entries}, key=model_rank)),
        tuple(sorted({*a.conditions, *b.conditions}, key=condition_rank)),
        tuple(sorted({*a.tasks, *b.tasks}, key=places.__getitem__)),
        max(a.epochs, b.epochs),
    )
    if whole in (a, b):
        return whole
    alike = (a.entries == b.entries, a.conditions == b.conditions, a.tasks == b.tasks, a.epochs == b.epochs)
    return whole if sum(alike) == len(alike) - 1 else None
