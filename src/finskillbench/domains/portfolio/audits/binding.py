"""Whether the limits that a tier prints bind: without one of them the optimum is another."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.portfolio import second
from finskillbench.engines.optimisation.certified import UndecidedError
from finskillbench.engines.portfolio.mandates.binding import stated, without
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.findings import Findings

LEAST_BINDING = 0.25
"""Share of the episodes of a tier that print a limit in which it binds."""
_MOVED = 1e-6
"""A weight that differs by more is another weight."""


def limits_bind(subject: Subject, findings: Findings) -> None:
    """Each kind of limit of a tier of constrained optimisation binds in a quarter of its episodes at least."""
    if not subject.built or not subject.edition.has_truth:
        findings.skip("only a built edition with its truth is examined")
        return
    binds: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for episode in subject.of("constrained_optimization"):
        with examining(episode.task_id, findings):
            task_input = subject.input_of(episode)
            problem = problem_from(task_input)
            label = second.vector(subject.edition.truth(episode.task_id).expected_output["weights"], problem.tickers)
            for name in stated(problem):
                try:
                    other = optimise(without(problem, name), unique=False).weights
                except UndecidedError:
                    continue
                binds[episode.difficulty, name].append(float(np.abs(other - label).max()) > _MOVED)
    for (tier, name), found in binds.items():
        share = float(np.mean(found))
        findings.figures[f"{tier}_{name}"] = round(share, 3)
        findings.expect(share >= LEAST_BINDING, tier, f"{name} binds in {share:.0%} of the episodes that print it")
