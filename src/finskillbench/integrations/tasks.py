"""Tasks for `inspect eval finskillbench/<subtask> -T condition=curated -T edition=PATH --model ...`.

Inspect imports this module by its entry point. One task per subtask, one per domain and one over everything. The solver
runs our loop with the model that Inspect was given; under another `--solver` the completion is the submission. The
scorer brings in the truth afterwards, which neither a sample nor its store ever holds. Nothing of a verdict's details
goes into a score: what a scorer says of an answer tells of the truth, and logs are handed around.
"""

from __future__ import annotations

import atexit
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from statistics import fmean, stdev

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalMetric, EvalResults, EvalScore
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from finskillbench.domains import subtask_named, domain_of, domains, subtasks
from finskillbench.edition import Edition, load_edition
from finskillbench.episode import PAPER_SUITE, Episode, JsonObject, Profile, Status, Submission, Verdict
from finskillbench.errors import InputError, RunStoppedError
from finskillbench.harness.conditions import Arm, Mount, arm_of, mount_all
from finskillbench.harness.episode_state import EpisodeSpec, Resources
from finskillbench.harness.loop import run_episode
from finskillbench.harness.prompts.compose import arm_prompt, task_prompt
from finskillbench.harness.providers.inspect_words import to_chat
from finskillbench.harness.skills.runner import check_guards, script_runner
from finskillbench.harness.skills.user_skills import USER_SKILLS_PREFIX
from finskillbench.harness.tools.interpreters import Interpreters
from finskillbench.integrations.models import Active, ProgramAPI
from finskillbench.runs.plan.items import choose_episodes
from finskillbench.runs.store.rows import HEADLINE_ORDER
from finskillbench.runs.verdicts import judge
from finskillbench.sandbox.runner import ScriptRunner

SCORER = "verdict"
PROFILES = tuple(profile.value for profile in HEADLINE_ORDER)
"""In the order in which a log shows them: the first is its headline."""
NOT_JUDGED = math.nan
"""Inspect's mark of a value that its metrics leave out."""


def to_score(status: Status, scores: Mapping[Profile, float | None], answer: str | None) -> Score | None:
    """The score of one sample; None where the harness failed, which is never a zero."""
    if status is Status.ERROR:
        return None
    values = {profile.value: scores.get(profile) for profile in HEADLINE_ORDER}
    return Score(
        value={name: NOT_JUDGED if value is None else value for name, value in values.items()},
        answer=answer,
        explanation=status.value,
        metadata={"status": status.value},
    )


def to_results(scores: Iterable[tuple[str, Score | None]]) -> EvalResults:
    """Means and standard errors by profile over (task id, score) of a log, as Inspect itself would print them.

    Repeats of a task are averaged first.
    """
    samples = list(scores)
    judged = [(task_id, score.as_dict()) for task_id, score in samples if score is not None]
    return EvalResults(
        total_samples=len(samples),
        completed_samples=len(judged),
        scores=[_profile(name, [(task_id, values[name]) for task_id, values in judged]) for name in PROFILES],
    )


def _profile(name: str, values: list[tuple[str, object]]) -> EvalScore:
    by_task: dict[str, list[float]] = defaultdict(list)
    for task_id, value in values:
        repeats = by_task[task_id]
        if isinstance(value, float | int) and not math.isnan(value):
            repeats.append(float(value))
    means = [fmean(repeats) for repeats in by_task.values() if repeats]
    spread = stdev(means) / math.sqrt(len(means)) if len(means) > 1 else 0.0
    found = {"mean": fmean(means), "stderr": spread} if means else dict.fromkeys(("mean", "stderr"), NOT_JUDGED)
    return EvalScore(
        name=name,
        scorer=SCORER,
        scored_samples=len(means),
        unscored_samples=len(by_task) - len(means),
        metrics={label: EvalMetric(name=label, value=value) for label, value in found.items()},
    )


class _Bench:
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
        return task_prompt(episode, subtask_named(episode.sub_task).answer)

    def prompt(self, episode: Episode, mounted: Mount) -> str:
        """The task prompt as an arm shows it."""
        return arm_prompt(self.base_prompt(episode), mounted, episode.skill)

    def judge(self, submission: Submission) -> Verdict:
        """Bring the truth in, after the loop."""
        task_input: JsonObject = self.edition.full_input(self.episodes[submission.task_id])
        return judge(submission, self.edition.truth(submission.task_id), task_input)

    def resources(self, mounted: Mount) -> Resources:
        """What an episode needs from outside; scripts run where the arm grants them."""
        return Resources(
            runner=_runner() if mounted.arm.scripts else None,
            interpreters=_interpreters(mounted.arm),
            filings=self.edition.filings,
        )


@cache
def open_bench(path: str) -> _Bench:
    """The edition at `path`, an absolute one."""
    return _Bench(path)


@cache
def mounted_arm(condition: str) -> Mount:
    """What an arm mounts.

    Raises
    ------
    InputError : no such arm, the one that carries skills from episode to episode, as Inspect's samples are independent,
        one of somebody's own skills, or one with scripts of others that cannot be confined here.
    """
    if arm_of(condition).given:
        name = condition.removeprefix(USER_SKILLS_PREFIX)
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


__all__ = ["TASKS", "ProgramAPI", "episode_loop", "verdict"]

EVERYTHING = "all"

ENDED, ANSWER, RECORD = "finskillbench:ended", "finskillbench:answer", "finskillbench:record"
"""Where a sample's store keeps what came back: `inspect score` judges a log again from it."""
CONFIG = GenerateConfig(temperature=0.0, seed=0, max_tokens=8192, max_retries=0)
"""Everything that `finskillbench run` holds fixed. The loop does the retries, so Inspect does none of its own."""


@solver(name="episode_loop")
def episode_loop(edition: str, condition: str) -> Solver:
    """Play an episode of the edition at `edition` under one arm; the sample's id names it."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.store.set(ENDED, "stopped")  # until the loop has ended: a limit of Inspect leaves it so
        bench, mounted = open_bench(edition), mounted_arm(condition)
        episode = bench.episodes[str(state.sample_id)]
        model = Active(get_model())
        try:
            prompt = bench.base_prompt(episode)
            given = EpisodeSpec(
                episode,
                prompt,
                lambda: bench.edition.full_input(episode),
                mounted,
                open_state=lambda: bench.edition.open_interactive_state(episode),
            )
            trace = await run_episode(model, given, bench.resources(mounted))
        except RunStoppedError as stopped:
            state.messages = to_chat(model.sent)
            raise stopped.__cause__ or stopped from None  # a limit of Inspect, which ends the sample its own way
        state.messages = to_chat(trace.messages)
        state.store.set(ENDED, trace.ended)
        state.store.set(ANSWER, trace.answer)
        if trace.record is not None:
            state.store.set(RECORD, trace.record)
        state.metadata |= {
            "ended": trace.ended,
            "incidents": list(trace.incidents),
            "retries": trace.retries,
            "skills_loaded": list(trace.skills_loaded),
            "scripts_run": list(trace.scripts_run),
            "mount": trace.mount_digest,
            "prompt": trace.prompt_digest,
        }
        state.completed = True
        if trace.ended == "error":
            raise RuntimeError(trace.error)  # no verdict: an error of the sample, which `inspect eval-retry` runs again
        return state

    return solve


@scorer(name=SCORER, metrics={name: [mean(), stderr()] for name in PROFILES})
def verdict(edition: str) -> Scorer:
    """Judge what our loop left in the store, or else the completion, against the edition at `edition`."""

    async def score(state: TaskState, target: Target) -> Score | None:
        answer, ended = state.store.get(ANSWER), state.store.get(ENDED)
        if ended is None:
            answer = state.output.completion.strip() or None
            ended = "no_answer" if answer is None else "submitted"
        submission = Submission(str(state.sample_id), answer, ended, state.store.get(RECORD))
        judged = open_bench(edition).judge(submission)
        return to_score(judged.status, judged.scores, submission.answer)

    return score


def _build(name: str, condition: str, edition: str, limit: int | None) -> Task:
    from finskillbench.harness.proof import prove_arms
    from finskillbench.runs.plan.streams import default_edition
    from finskillbench.runs.store.version import scorer_version

    wanted = [
        subtask.name for subtask in subtasks() if name in (subtask.name, domain_of(subtask.name).name, EVERYTHING)
    ]
    suite = PAPER_SUITE if name == EVERYTHING else domain_of(wanted[0]).suite
    path = str(Path(edition).absolute() if edition else default_edition(lambda stage: None, suite))
    bench, mounted = open_bench(path), mounted_arm(condition)
    present = [each for each in wanted if each in bench.edition.sub_tasks]
    chosen = bench.choose(present or wanted, limit)
    proof = prove_arms({mounted.arm.condition: mounted}, sorted({episode.skill for episode in chosen}))
    samples = [
        Sample(
            id=episode.task_id,
            input=bench.prompt(episode, mounted),
            metadata={
                "domain": episode.skill,
                "sub_task": episode.sub_task,
                "difficulty": episode.difficulty,
                "as_of_date": episode.as_of_date.isoformat(),
            },
        )
        for episode in chosen
    ]
    return Task(
        dataset=MemoryDataset(samples, name=name, location=path),
        solver=episode_loop(path, condition),
        scorer=verdict(path),
        config=CONFIG,
        continue_on_fail=True,
        metadata={
            "condition": condition,
            "edition": bench.edition.digest,
            "mount": proof[condition],
            "scorer_version": scorer_version(),
        },
    )


def _register(name: str) -> Callable[..., Task]:
    @task(name=name)
    def build(condition: str = "no_skill", edition: str = "", limit: int | None = None) -> Task:
        """Episodes of an edition under one arm.

        `edition` is its folder; without it the default one is taken, and built where it is missing. `limit` takes the
        first episodes of each subtask; without it the full-run protocol's number.
        """
        return _build(name, condition, edition, limit)

    return build


_NAMES = (*(subtask.name for subtask in subtasks()), *(domain.name for domain in domains()), EVERYTHING)
TASKS = {name: _register(name) for name in _NAMES}
"""What `inspect eval finskillbench/...` takes, by name."""
