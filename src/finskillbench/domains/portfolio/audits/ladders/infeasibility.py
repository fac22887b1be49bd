"""The ladder of infeasibility detection: the verdict with its evidence, near evidence, none, the wrong verdict."""

from __future__ import annotations

from typing import Any

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.portfolio.audits.ladders.written import rounded


def ladder(label: Label[Any]) -> list[GradedExample]:
    """Of infeasibility detection; the least attainable value is off by a share of itself."""
    truth = label.truth.expected_output
    feasible, conflict, least = truth["feasible"], truth["conflicting_limits"], truth["least_attainable"]

    def off(share: float) -> dict[str, Any]:
        return {**truth, "least_attainable": least * (1 + share)}

    few = [GradedExample("one limit too few in conflict", {**truth, "conflicting_limits": conflict[1:]}, 0.75, 0.9)]
    return [
        GradedExample("all of it", truth, 1.0, 1.0),
        GradedExample("to six decimals", rounded(truth, 6), 1.0, 1.0),
        *([] if feasible else few),
        GradedExample("the least value 0.8 % off", off(0.008), 0.6, 0.7),
        GradedExample("no conflict named", {"feasible": feasible, "least_attainable": least}, 0.5, 0.5),
        GradedExample("the least value 1.6 % off", off(-0.016), 0.1, 0.3),
        GradedExample("the least value 10 % off", off(0.1), 0.0, 0.0),
        GradedExample("the verdict alone", {"feasible": feasible}, 0.0, 0.0),
        GradedExample("the wrong verdict", {**truth, "feasible": not feasible}, 0.0, 0.0),
    ]
