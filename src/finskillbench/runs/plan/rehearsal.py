"""Episodes played in memory by a program, to learn what they use: no truth, no verdict, no run folder.

They go through the real loop with the real prompts, tools and scripts.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import TracebackType

from finskillbench.edition import Edition
from finskillbench.errors import EditionError
from finskillbench.harness.allowance import Allowance
from finskillbench.harness.conditions import mount_all
from finskillbench.harness.loop import run_episode
from finskillbench.harness.models import get_model
from finskillbench.harness.seat import Surroundings
from finskillbench.harness.skills.given import NOTHING_GIVEN, Given
from finskillbench.harness.skills.memory import EMPTY, Feedback, Memory
from finskillbench.harness.skills.runner import MountedScripts
from finskillbench.harness.tools.interpreters import Interpreters
from finskillbench.harness.trace import Trace
from finskillbench.runs.execute.material import Material, prepare
from finskillbench.runs.plan.items import Plan

_AT_ONCE = 16
_CACHED_EPISODES = 512


@dataclass(frozen=True, slots=True)
class Play:
    """What one episode used: model calls and estimated tokens."""

    calls: int
    input_tokens: int
    output_tokens: int


class Rehearsal:
    """Context manager that plays episodes of a plan; a program is asked once for each, whoever asks again.

    Parameters
    ----------
    edition, plan : where the episodes come from.
    conditions : the arms that will be played.
    given : what arms of somebody's own mount.
    allow_unconfined : whether scripts of packages that are not ours run also where the sandbox lacks a guard.

    Raises InputError where an arm mounts packages and there are none. Serves one event loop.
    """

    def __init__(
        self,
        edition: Edition,
        plan: Plan,
        conditions: Collection[str],
        given: Mapping[str, Given] = NOTHING_GIVEN,
        *,
        allow_unconfined: bool = False,
    ) -> None:
        self._edition = edition
        self._episodes = {episode.task_id: episode for episode in plan.episodes}
        self._mounts = mount_all(conditions, given)
        self._material = lru_cache(maxsize=_CACHED_EPISODES)(self._prepare)
        self._model = cache(get_model)
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._plays: dict[tuple[str, str, str, int, Allowance], asyncio.Task[Play]] = {}
        self._memories: dict[tuple[str, str, str, Allowance], asyncio.Task[Trace]] = {}
        self._allow_unconfined = allow_unconfined
        self._around = Surroundings()
        self._stack = ExitStack()

    def __enter__(self) -> Rehearsal:
        with ExitStack() as stack:
            runner = None
            if any(mounted.arm.scripts for mounted in self._mounts.values()):
                runner = stack.enter_context(
                    MountedScripts(self._mounts.values(), allow_unconfined=self._allow_unconfined)
                )
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plan-")))
            arms = [mounted.arm for mounted in self._mounts.values()]
            self._around = Surroundings(
                runner=runner,
                interpreters=stack.enter_context(Interpreters(arms, allow_unconfined=self._allow_unconfined)),
                filings=self._edition.filings,
                scratch_root=scratch,
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    async def play(self, player: str, condition: str, task_id: str, verdicts: int, allowance: Allowance) -> Play:
        """Let `player` play one episode under an arm; where the arm keeps skills, after so many `verdicts`."""
        key = player, condition, task_id, verdicts if self._mounts[condition].arm.kept else 0, allowance
        if key not in self._plays:
            self._plays[key] = asyncio.create_task(self._measured(*key))
        return await self._plays[key]

    async def _measured(self, player: str, condition: str, task_id: str, verdicts: int, allowance: Allowance) -> Play:
        memory = await self._remembered(player, condition, task_id, verdicts, allowance) if verdicts else EMPTY
        trace = await self._trace(player, condition, task_id, memory, allowance)
        if trace.error is not None:
            what = f"{player} cannot play it under {condition}: {trace.error}"
            raise EditionError(f"{self._edition.path}: {task_id}: {what}; look at `finskillbench data validate`")
        return Play(trace.turns, trace.usage.input_tokens or 0, trace.usage.output_tokens or 0)

    async def _remembered(
        self, player: str, condition: str, task_id: str, verdicts: int, allowance: Allowance
    ) -> Memory:
        """What a stream holds after so many episodes: the skills saved in its first one, and words on each."""
        sub_task = self._episodes[task_id].sub_task
        key = player, condition, sub_task, allowance
        if key not in self._memories:
            first = next(name for name, episode in self._episodes.items() if episode.sub_task == sub_task)
            self._memories[key] = asyncio.create_task(self._trace(player, condition, first, EMPTY, allowance))
        skills = (await self._memories[key]).saved_skills
        return Memory(skills, (Feedback(task_id, "scored", 0.5),) * verdicts)

    async def _trace(self, player: str, condition: str, task_id: str, memory: Memory, allowance: Allowance) -> Trace:
        async with self._turns:
            material = self._material(task_id)
            given = material.under(self._mounts[condition], memory, allowance=allowance)
            return await run_episode(self._model(player), given, self._around)

    def _prepare(self, task_id: str) -> Material:
        return prepare(self._edition, self._episodes[task_id])
