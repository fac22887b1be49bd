"""Sources of tasks for environments: an edition, or the seeds of a split without end; and environments that block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Coroutine, Mapping
from contextlib import ExitStack
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from finskillbench.domains import domain_of, suite_of
from finskillbench.domains import subtasks as registered
from finskillbench.edition.load import Edition, load_edition
from finskillbench.episode import PAPER_SUITE, Reward
from finskillbench.errors import InputError, SourceError
from finskillbench.harness.allowance import DEFAULT_ALLOWANCE, Allowance
from finskillbench.harness.conditions import Condition, mount_all, parse_condition
from finskillbench.harness.environment import IDLE_SECONDS, Environment, Observation, OpenTask, TaskSource
from finskillbench.harness.episode_state import Resources
from finskillbench.harness.model import ToolCall, ToolSpec
from finskillbench.harness.tools.contracts import subtask_tools, tool_specs
from finskillbench.harness.trace import Trace
from finskillbench.runs.execute.backend import CACHED_EPISODES, PreparedEpisode, open_resources, prepare_episode
from finskillbench.runs.plan.streams import cached_edition
from finskillbench.runs.verdicts import reward_of
from finskillbench.splits import Split, seeds_of

EPISODES = 40
"""Most episodes of each subtask in an edition of a training seed."""
_REPLACEMENT = 1_000_000_000
"""Distance of the seed that replaces one whose edition cannot be built; it has the same split."""
T = TypeVar("T")


def offered_tools(condition: str, subtasks: Collection[str]) -> tuple[ToolSpec, ...]:
    """Return every tool that a condition offers in some of the subtasks; an episode may offer fewer.

    Raises
    ------
    InputError : an unknown condition or subtask.
    """
    mounted, found = mount_all([parse_condition(condition)])[condition], dict[str, ToolSpec]()
    for name in subtasks:
        domain = domain_of(name).name
        specs = tool_specs(mounted.for_domain(domain), domain, subtask_tools(name))
        found.update({spec.name: spec for spec in specs})
    return tuple(found.values())


class EditionTasks:
    """Tasks of an edition under one condition; a `TaskSource`.

    subtasks : restricts the tasks; None takes all.
    split : restricts the tasks to a split; None takes all.

    Raises
    ------
    InputError : the condition is unknown, keeps skills between episodes, or no task is left.
    EditionError : the edition has no truth.
    """

    def __init__(
        self,
        edition: Edition,
        condition: str = Condition.NO_SKILL,
        *,
        subtasks: Collection[str] | None = None,
        split: Split | None = None,
    ) -> None:
        self.edition, self.condition = edition, parse_condition(condition)
        self._mounted = mount_all([self.condition])[self.condition]
        if self._mounted.arm.kept:
            raise InputError(f"condition {condition} keeps skills between episodes, which an environment does not")
        names = edition.sub_tasks if subtasks is None else subtasks
        splits = (
            {} if split is None else {task: found for name in names for task, found in edition.splits(name).items()}
        )
        self._episodes = {one.task_id: one for one in edition.episodes(names) if splits.get(one.task_id) is split}
        self.tasks = tuple(self._episodes)
        self.by_subtask: dict[str, list[str]] = {}
        for one in self._episodes.values():
            self.by_subtask.setdefault(one.sub_task, []).append(one.task_id)
        if not self.tasks:
            raise InputError(f"{edition.path} has no task of the split {split or 'any'} in the chosen subtasks")
        edition.truth(self.tasks[0])
        self._prepared = lru_cache(CACHED_EPISODES)(self._prepare)
        self._stack = ExitStack()
        self._resources: Resources | None = None

    def task_of(self, seed: int) -> str:
        """Return the task that a seed selects."""
        return self.tasks[seed % len(self.tasks)]

    def open(self, task: str, allowance: Allowance = DEFAULT_ALLOWANCE) -> OpenTask:
        """Open a task, with fresh resources at the first call."""
        if task not in self._episodes:
            raise InputError(f"{self.edition.path} has no task {task!r} among those chosen")
        if self._resources is None:
            scratch = Path(self._stack.enter_context(TemporaryDirectory()))
            opened = open_resources(self.edition, [self._mounted], scratch, allow_unconfined=False)
            self._resources = self._stack.enter_context(opened)
        prepared = self._prepared(task)
        return OpenTask(prepared.spec(self._mounted, allowance=allowance), self._resources, self.judge)

    def _prepare(self, task: str) -> PreparedEpisode:
        return prepare_episode(self.edition, self._episodes[task])

    def judge(self, trace: Trace) -> Reward:
        """Return the reward of a finished episode."""
        truth = self.edition.truth(trace.task_id)
        return reward_of(trace.submission, truth, self._prepared(trace.task_id).full_input)

    def close(self) -> None:
        """Stop the processes that run scripts and code."""
        self._stack.close()


class SeedTasks:
    """Tasks of the editions of a split's seeds, without end for training; a `TaskSource`.

    Task names are "SEED/TASK". Editions are built when first needed, in the user's cache. Consecutive seeds of
    `task_of` cycle through the subtasks of an edition, and pass on to the next one after `episodes` of each.

    episodes : most episodes of each subtask in an edition.
    """

    def __init__(
        self,
        condition: str = Condition.NO_SKILL,
        split: Split = Split.TRAIN,
        *,
        suite: str = PAPER_SUITE,
        subtasks: Collection[str] | None = None,
        episodes: int = EPISODES,
    ) -> None:
        self._condition, self._split, self._suite, self._episodes = condition, split, suite, episodes
        built = (each.name for each in registered() if each.build is not None and suite_of(each.name) == suite)
        self._names = sorted(built if subtasks is None else subtasks)
        self._opened: dict[int, EditionTasks] = {}
        self._replaced: dict[int, int] = {}

    def task_of(self, seed: int) -> str:
        """Return the task that a seed selects."""
        number, place = divmod(seed, self._episodes * len(self._names))
        edition_seed = self._buildable(next(islice(seeds_of(self._split), number, None)))
        by_subtask = list(self._edition(edition_seed).by_subtask.values())  # a small edition may lack a subtask
        turn, subtask = divmod(place, len(by_subtask))
        tasks = by_subtask[subtask]
        return f"{edition_seed}/{tasks[turn % len(tasks)]}"

    def open(self, task: str, allowance: Allowance = DEFAULT_ALLOWANCE) -> OpenTask:
        """Open a task, of an edition that is built if it is missing."""
        seed, _, task_id = task.partition("/")
        if not (seed.isdecimal() and task_id):
            raise InputError(f"{task!r} is not a task of a seed; name it SEED/TASK")
        return self._edition(int(seed)).open(task_id, allowance)

    def close(self) -> None:
        """Stop the processes of all editions."""
        for edition in self._opened.values():
            edition.close()

    def _buildable(self, seed: int) -> int:
        """Return the seed, or one that replaces it because its market does not allow every planted case."""
        if seed not in self._replaced:
            try:
                self._edition(seed)
                self._replaced[seed] = seed
            except SourceError:
                self._replaced[seed] = self._buildable(seed + _REPLACEMENT)
        return self._replaced[seed]

    def _edition(self, seed: int) -> EditionTasks:
        if seed not in self._opened:
            name = f"{self._suite}-{seed}-{self._episodes}"
            path = cached_edition(name, lambda step: None, suite=self._suite, seed=seed, episodes=self._episodes)
            self._opened[seed] = EditionTasks(
                load_edition(path), self._condition, subtasks=self._names, split=self._split
            )
        return self._opened[seed]


class BlockingEnvironment:
    """An `Environment` for code without an event loop; methods and errors are the same, and block.

    All of a process share one event loop in a thread.
    """

    def __init__(
        self, source: TaskSource, allowance: Allowance = DEFAULT_ALLOWANCE, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._environment = Environment(source, allowance, idle_seconds)

    @property
    def trace(self) -> Trace | None:
        """Record of the finished episode."""
        return self._environment.trace

    @property
    def reward(self) -> Reward | None:
        """Reward of the finished episode."""
        return self._environment.reward

    def reset(self, task: str | int) -> Observation:
        return _wait(self._environment.reset(task))

    def step(self, *calls: ToolCall, text: str = "") -> Observation:
        return _wait(self._environment.step(*calls, text=text))

    def submit(self, answer: str | Mapping[str, Any]) -> Reward | None:
        return _wait(self._environment.submit(answer))

    def close(self) -> None:
        async def close() -> None:
            self._environment.close()

        _wait(close())


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="environments", daemon=True).start()
    return loop


def _wait(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(coroutine, _loop()).result()
