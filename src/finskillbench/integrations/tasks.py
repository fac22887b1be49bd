"""Tasks for `inspect eval finskillbench/<subtask> -T condition=curated -T edition=PATH --model ...`.

Inspect imports this module by its entry point. There is one task per subtask, one per domain and one for all. The
solver runs our loop with the model of Inspect; under another `--solver` the completion is the submission. Only the
scorer reads the truth. Scores omit the details of a verdict, which reveal the truth, because logs are shared.
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

from finskillbench.domains import domain_of, domains, subtask_named, subtasks
from finskillbench.domains.faults import DETAIL
from finskillbench.edition import Edition, load_edition
from finskillbench.episode import PAPER_SUITE, Episode, JsonObject, Profile, Status, Submission, Verdict
from finskillbench.errors import InputError, RunStoppedError
from finskillbench.harness.conditions import Arm, Condition, Mount, arm_of, mount_all
from finskillbench.harness.episode_state import EpisodeSpec, Resources
from finskillbench.harness.loop import run_episode
from finskillbench.harness.prompts.compose import arm_prompt, task_prompt
from finskillbench.harness.providers.inspect_words import to_chat
from finskillbench.harness.skills.runner import check_guards, script_runner
from finskillbench.harness.skills.user_skills import USER_SKILLS_PREFIX
from finskillbench.harness.tools.interpreters import Interpreters
from finskillbench.integrations.models import ActiveModel, ProgramAPI
from finskillbench.runs.plan.items import choose_episodes
from finskillbench.runs.store.rows import HEADLINE_ORDER
from finskillbench.runs.verdicts import judge
from finskillbench.sandbox.runner import ScriptRunner

SCORER = "verdict"
PROFILES = tuple(profile.value for profile in HEADLINE_ORDER)
"""Score profiles in the order of a log; the first is its headline."""
NOT_JUDGED = math.nan
"""Inspect's marker for a value that its metrics omit."""


def to_score(
    status: Status, scores: Mapping[Profile, float | None], answer: str | None, details: JsonObject
) -> Score | None:
    """Return the score of one sample; None for an error of the harness, which never counts as zero.

    Of the details of a verdict it has only the package with a planted fault and whether the answer is the faulty one.
    """
    if status is Status.ERROR:
        return None
    values = {profile.value: scores.get(profile) for profile in HEADLINE_ORDER}
    effect = details.get(DETAIL)
    fault = {} if effect is None else {DETAIL: {name: effect[name] for name in ("package", "equal")}}
    return Score(
        value={name: NOT_JUDGED if value is None else value for name, value in values.items()},
        answer=answer,
        explanation=status.value,
        metadata={"status": status.value, **fault},
    )


def to_results(scores: Iterable[tuple[str, Score | None]]) -> EvalResults:
    """Return means and standard errors by profile over (task id, score) pairs, as Inspect computes them.

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
    def __init__(self, path: str) -> None:
        self.edition: Edition = load_edition(Path(path))

    @cached_property
    def episodes(self) -> Mapping[str, Episode]:
        return {episode.task_id: episode for episode in self.edition.episodes()}

    def choose(self, sub_tasks: Sequence[str], limit: int | None) -> tuple[Episode, ...]:
        """Choose the episodes of a task like `finskillbench run`: the first `limit`, or those of the full-run protocol.

        Raises
        ------
        InputError : the edition has none, or `limit` is below 1.
        EditionError : the edition has no truth.
        """
        chosen = choose_episodes(self.edition.episodes(sub_tasks), limit)
        self.edition.truth(chosen[0].task_id)
        return chosen

    def base_prompt(self, episode: Episode) -> str:
        """Return the task prompt that all conditions share."""
        return task_prompt(episode, subtask_named(episode.sub_task).answer)

    def prompt(self, episode: Episode, mounted: Mount) -> str:
        """Return the task prompt under a condition."""
        return arm_prompt(self.base_prompt(episode), mounted, episode.skill)

    def judge(self, submission: Submission, condition: str) -> Verdict:
        """Judge a submission against the truth."""
        task_input: JsonObject = self.edition.full_input(self.episodes[submission.task_id])
        return judge(submission, self.edition.truth(submission.task_id), task_input, condition)

    def resources(self, mounted: Mount) -> Resources:
        """Return the resources of an episode; the script runner only where the condition allows scripts."""
        return Resources(
            runner=_runner() if mounted.arm.scripts else None,
            interpreters=_interpreters(mounted.arm),
            filings=self.edition.filings,
        )


@cache
def open_bench(path: str) -> _Bench:
    """Open the edition at an absolute path."""
    return _Bench(path)


@cache
def mounted_arm(condition: str) -> Mount:
    """Mount a condition.

    Raises
    ------
    InputError : the condition is unknown, carries skills from episode to episode, uses skills of the user, or has
        third-party scripts that cannot be confined on this machine.
    """
    if arm_of(condition).given:
        name = condition.removeprefix(USER_SKILLS_PREFIX)
        raise InputError(f"skill folders are not supported under Inspect; use: finskillbench run --skills {name}=DIR")
    mounted = mount_all([condition])[condition]
    if mounted.arm.kept:
        raise InputError(
            f"condition {condition!r} runs its episodes in sequence, which Inspect does not; "
            f"use: finskillbench run --condition {condition}"
        )
    check_guards([mounted], allow_unconfined=False)
    return mounted


@cache
def _runner() -> ScriptRunner:
    runner = script_runner()
    runner.__enter__()
    atexit.register(runner.close)
    return runner


@cache
def _interpreters(arm: Arm) -> Interpreters:
    interpreters = Interpreters([arm])
    interpreters.__enter__()
    atexit.register(interpreters.__exit__, None, None, None)
    return interpreters


__all__ = ["TASKS", "ProgramAPI", "episode_loop", "verdict"]

EVERYTHING = "all"

ENDED, ANSWER, RECORD = "finskillbench:ended", "finskillbench:answer", "finskillbench:record"
"""Keys of a sample's store that hold the outcome; `inspect score` judges a log again from them."""
CONFIG = GenerateConfig(temperature=0.0, seed=0, max_tokens=8192, max_retries=0)
"""Settings that `finskillbench run` fixes. Our loop retries, so Inspect does not."""


@solver(name="episode_loop")
def episode_loop(edition: str, condition: str) -> Solver:
    """Solve samples with our loop: the episode of the edition that the sample's id names, under one condition."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.store.set(ENDED, "stopped")  # kept if a limit of Inspect ends the sample
        bench, mounted = open_bench(edition), mounted_arm(condition)
        episode = bench.episodes[str(state.sample_id)]
        model = ActiveModel(get_model())
        try:
            prompt = bench.base_prompt(episode)
            spec = EpisodeSpec(
                episode,
                prompt,
                lambda: bench.edition.full_input(episode),
                mounted,
                open_state=lambda: bench.edition.open_interactive_state(episode),
            )
            trace = await run_episode(model, spec, bench.resources(mounted))
        except RunStoppedError as stopped:
            state.messages = to_chat(model.sent)
            raise stopped.__cause__ or stopped from None  # a limit of Inspect ends the sample itself
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
            raise RuntimeError(trace.error)  # an error of the sample without a verdict; `inspect eval-retry` repeats it
        return state

    return solve


@scorer(name=SCORER, metrics={name: [mean(), stderr()] for name in PROFILES})
def verdict(edition: str, condition: str = Condition.NO_SKILL) -> Scorer:
    """Judge the answer of our loop from the store, or else the completion, against the edition."""

    async def score(state: TaskState, target: Target) -> Score | None:
        answer, ended = state.store.get(ANSWER), state.store.get(ENDED)
        if ended is None:
            answer = state.output.completion.strip() or None
            ended = "no_answer" if answer is None else "submitted"
        submission = Submission(str(state.sample_id), answer, ended, state.store.get(RECORD))
        judged = open_bench(edition).judge(submission, condition)
        return to_score(judged.status, judged.scores, submission.answer, judged.details)

    return score


def _build(name: str, condition: str, edition: str, limit: int | None) -> Task:
    from finskillbench.harness.proof import prove_arms
    from finskillbench.runs.plan.streams import default_edition
    from finskillbench.runs.store.version import scorer_version

    wanted = [
        subtask.name for subtask in subtasks() if name in (subtask.name, domain_of(subtask.name).name, EVERYTHING)
    ]
    suite = PAPER_SUITE if name == EVERYTHING else domain_of(wanted[0]).suite
    path = str(Path(edition).absolute() if edition else default_edition(lambda step: None, suite))
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
        scorer=verdict(path, condition),
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
        """Play episodes of an edition under one condition.

        `edition` is its folder; by default the default edition, which is built if missing. `limit` takes the first
        episodes of each subtask; by default the number of the full-run protocol.
        """
        return _build(name, condition, edition, limit)

    return build


@task(name="all")  # a literal, since Inspect reads the names of a file's tasks from its source
def _build_all(condition: str = "no_skill", edition: str = "", limit: int | None = None) -> Task:
    """Play episodes of all subtasks of the paper's suite; options as for a subtask."""
    return _build(EVERYTHING, condition, edition, limit)


_NAMES = (*(subtask.name for subtask in subtasks()), *(domain.name for domain in domains()))
TASKS = {**{name: _register(name) for name in _NAMES}, EVERYTHING: _build_all}
"""Tasks by name, as `inspect eval finskillbench/NAME` finds them."""
