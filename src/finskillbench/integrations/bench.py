"""An edition opened for Inspect: what its solver, its scorer and its tasks read."""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

from finskillbench.domains import by_name
from finskillbench.edition import Edition, load_edition
from finskillbench.episode import Episode, JsonObject, Submission, Verdict
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Arm, Mount, arm_of, mount_all
from finskillbench.harness.seat import Surroundings
from finskillbench.harness.skills.given import GIVEN_ARM
from finskillbench.harness.skills.runner import check_guards, script_runner
from finskillbench.harness.tools.interpreters import Interpreters
from finskillbench.harness.words.prompts import arm_prompt, task_prompt
from finskillbench.runs.plan.choice import choose_episodes
from finskillbench.runs.verdicts import judge
from finskillbench.sandbox.runner import ScriptRunner


class Bench:
    """One edition with its truth, read once a process."""

    def __init__(self, path: str) -> None:
        self.edition: Edition = load_edition(Path(path))

    @cached_property
    def episodes(self) -> Mapping[str, Episode]:
        """Every episode by task id."""
        return {episode.task_id: episode for episode in self.edition.episodes()}

    def choose(self, sub_tasks: Sequence[str], limit: int | None) -> tuple[Episode, ...]:
        """The episodes of a task, as `finskillbench run` chooses them: the first `limit`, or the full-run protocol's.

        Raises
        ------
        InputError : the edition has none, or `limit` is below 1.
        EditionError : it was handed out without truth; told before a model is asked.
        """
        chosen = choose_episodes(self.edition.episodes(sub_tasks), limit)
        self.edition.truth(chosen[0].task_id)
        return chosen

    def base_prompt(self, episode: Episode) -> str:
        """The task prompt that is the same in every condition."""
        return task_prompt(episode, by_name(episode.sub_task).answer)

    def prompt(self, episode: Episode, mounted: Mount) -> str:
        """The task prompt as an arm shows it."""
        return arm_prompt(self.base_prompt(episode), mounted, episode.skill)

    def judge(self, submission: Submission) -> Verdict:
        """Bring the truth in, after the loop."""
        task_input: JsonObject = self.edition.full_input(self.episodes[submission.task_id])
        return judge(submission, self.edition.truth(submission.task_id), task_input)

    def surroundings(self, mounted: Mount) -> Surroundings:
        """What an episode needs from outside; scripts run where the arm grants them."""
        return Surroundings(
            runner=_runner() if mounted.arm.scripts else None,
            interpreters=_interpreters(mounted.arm),
            filings=self.edition.filings,
        )


@cache
def open_bench(path: str) -> Bench:
    """The edition at `path`, an absolute one."""
    return Bench(path)


@cache
def mounted_arm(condition: str) -> Mount:
    """What an arm mounts.

    Raises
    ------
    InputError : no such arm, the one that carries skills from episode to episode, as Inspect's samples are independent,
        one of somebody's own skills, or one with scripts of others that cannot be confined here.
    """
    if arm_of(condition).given:
        name = condition.removeprefix(GIVEN_ARM)
        raise InputError(f"Inspect is given no folders of skills; use: finskillbench run --skills {name}=DIR")
    mounted = mount_all([condition])[condition]
    if mounted.arm.kept:
        raise InputError(
            f"condition {condition!r} runs its episodes one after the other, which Inspect does not; "
            f"use: finskillbench run --condition {condition}"
        )
    check_guards([mounted], allow_unconfined=False)
    return mounted


@cache
def _runner() -> ScriptRunner:
    """The process's script runner: Inspect tells nobody when its last sample is done, so it ends with the process."""
    runner = script_runner()
    runner.__enter__()
    atexit.register(runner.close)
    return runner


@cache
def _interpreters(arm: Arm) -> Interpreters:
    """The process's interpreters for an arm, which end as the script runner does."""
    interpreters = Interpreters([arm])
    interpreters.__enter__()
    atexit.register(interpreters.__exit__, None, None, None)
    return interpreters
