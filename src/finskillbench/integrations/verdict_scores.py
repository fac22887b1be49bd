"""Verdicts as Inspect's scores: one score per sample with a value per profile, and the means of a log.

Nothing of a verdict's details goes along: what a scorer says of an answer (which flags are wrong, how far the objective
is off) tells of the truth, and logs are handed around.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean, stdev

from inspect_ai.log import EvalMetric, EvalResults, EvalScore
from inspect_ai.scorer import Score

from finskillbench.episode import Profile, Status
from finskillbench.runs.store.rows import HEADLINE_ORDER

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
