"""Whether a task that is called harder takes more work: the steps that are counted of each episode, by level."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from finskillbench.audit.seen import Bench
from finskillbench.domains.building import Task
from finskillbench.edition.work import LEVELS, work_of
from finskillbench.episode import Episode
from finskillbench.findings import Findings


def difficulty(bench: Bench, episodes: Sequence[Episode], findings: Findings) -> None:
    """On the mean, the decisions and computations of a level are no fewer than those of the level below.

    Reads are left out: a table is read by one call however long it is. A level that is less work makes no label wrong,
    so that it is a warning.
    """
    if not bench.edition.has_certificates:
        findings.skip("the edition was handed out without certificates, from which the work is counted")
        return
    name = episodes[0].sub_task
    certificates = bench.edition.certificates(name)
    steps: dict[str, list[int]] = {level: [] for level in LEVELS}
    for episode in episodes:
        truth, certificate = bench.edition.truth(episode.task_id), certificates.get(episode.task_id, {})
        work = work_of(Task(episode, truth, certificate), episode.input)
        steps.setdefault(episode.difficulty, []).append(work.decisions + work.computations)
    means = {level: fmean(each) for level, each in steps.items() if each}
    findings.figures["steps"] = {name: {level: round(mean, 1) for level, mean in means.items()}}
    for below, level in pairwise(means):
        findings.expectations += 1
        if means[level] < means[below]:
            message = f"{level} tasks take {means[level]:.1f} steps on the mean, {below} ones {means[below]:.1f}"
            findings.warn(name, message, "difficulty")
