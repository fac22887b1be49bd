"""Tasks for `inspect eval finskillbench/<subtask> -T condition=curated -T edition=PATH --model ...`.

One task per subtask, one per domain and one over everything. The solver runs our loop with the model that Inspect was
given; under `--solver` of somebody's own the completion is the submission. The scorer brings in the truth afterwards,
which neither a sample nor its store ever holds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from finskillbench.domains import domain_of, domains, subtasks
from finskillbench.episode import PAPER_SUITE, Submission
from finskillbench.errors import RunStoppedError
from finskillbench.harness.loop import run_episode
from finskillbench.harness.providers.inspect_words import to_chat
from finskillbench.harness.seat import Assignment
from finskillbench.integrations.active import Active
from finskillbench.integrations.verdict_scores import PROFILES, SCORER, to_score

EVERYTHING = "all"

ENDED, ANSWER, RECORD = "finskillbench:ended", "finskillbench:answer", "finskillbench:record"
"""Where a sample's store keeps what came back: `inspect score` judges a log again from it."""
CONFIG = GenerateConfig(temperature=0.0, seed=0, max_tokens=8192, max_retries=0)
"""Everything that `finskillbench run` holds fixed. The loop does the retries, so Inspect does none of its own."""


@solver(name="episode_loop")
def episode_loop(edition: str, condition: str) -> Solver:
    """Play an episode of the edition at `edition` under one arm; the sample's id names it."""
    from finskillbench.integrations.bench import mounted_arm, open_bench

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.store.set(ENDED, "stopped")  # until the loop has ended: a limit of Inspect leaves it so
        bench, mounted = open_bench(edition), mounted_arm(condition)
        episode = bench.episodes[str(state.sample_id)]
        model = Active(get_model())
        try:
            prompt = bench.base_prompt(episode)
            given = Assignment(
                episode,
                prompt,
                lambda: bench.edition.full_input(episode),
                mounted,
                open_stage=lambda: bench.edition.stage(episode),
            )
            trace = await run_episode(model, given, bench.surroundings(mounted))
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
    from finskillbench.integrations.bench import open_bench

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
    from finskillbench.integrations.bench import mounted_arm, open_bench
    from finskillbench.runs.plan.defaults import default_edition
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
