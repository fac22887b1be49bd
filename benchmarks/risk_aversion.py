"""Why each tier has its risk aversion: how far max_sharpe's answer lies from those of other objectives.

Builds the synthetic edition and re-solves its max_sharpe episodes at several risk aversions. A good value keeps the
optimum away from min_variance, from max_return and from equal weights at once, so that no other answer passes for it.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from finskillbench.edition import build_edition
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective

AVERSIONS = (0.5, 0.75, 1.0, 1.25, 2.0)


def main() -> None:
    """Print mean L2 distances by tier and risk aversion; the edition's own value is marked."""
    distances: dict[tuple[str, float], list[tuple[float, float, float]]] = {}
    chosen: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        edition = build_edition(source="synthetic", seed=1, out=Path(folder) / "edition")
        for episode in edition.episodes(["unconstrained_optimization", "constrained_optimization"]):
            if episode.input["objective"] != Objective.MAX_SHARPE:
                continue
            tier = "unconstrained" if episode.sub_task.startswith("unconstrained") else episode.difficulty
            chosen[tier] = episode.input["risk_aversion"]
            problem = problem_from(edition.full_input(episode))
            others = [
                optimise(replace(problem, objective=o)).weights for o in (Objective.MIN_VARIANCE, Objective.MAX_RETURN)
            ]
            others.append(np.full(problem.size, 1 / problem.size))
            for aversion in AVERSIONS:
                weights = optimise(replace(problem, risk_aversion=aversion)).weights
                found = tuple(float(np.linalg.norm(weights - other)) for other in others)
                distances.setdefault((tier, aversion), []).append(found)
    print(f"{'tier':<14} {'risk aversion':>13}  L2 to: min_variance  max_return  equal weights")
    for (tier, aversion), rows in distances.items():
        low, high, equal = np.mean(rows, axis=0)
        mark = " <- used" if aversion == chosen[tier] else ""
        print(f"{tier:<14} {aversion:>13}  {low:>19.3f}  {high:>10.3f}  {equal:>13.3f}{mark}")


if __name__ == "__main__":
    main()
