"""The ladder of infeasibility detection: the verdict with its evidence, near evidence, none, the wrong verdict."""

from __future__ import annotations

from typing import Any

from finskillbench.domains.base import Label, Rung
from finskillbench.domains.portfolio.audits.ladders.written import rounded


def ladder(label: Label[Any]) -> list[Rung]:
    """Of infeasibility detection; the least turnover is off by a share of itself."""
    truth = label.truth.expected_output
    feasible, least = truth["feasible"], truth["minimum_turnover"]

    def off(share: float) -> dict[str, Any]:
        return {"feasible": feasible, "minimum_turnover": least * (1 + share)}

    return [
        Rung("verdict and least turnover", truth, 1.0, 1.0),
        Rung("to six decimals", rounded(truth, 6), 1.0, 1.0),
        Rung("to three decimals", rounded(truth, 3), 0.95, 1.0),
        Rung("the least turnover 1 % off", off(0.01), 0.75, 0.95),
        Rung("the least turnover 2.5 % off", off(0.025), 0.45, 0.6),
        Rung("the least turnover 4 % off", off(-0.04), 0.15, 0.3),
        Rung("the least turnover 10 % off", off(0.1), 0.0, 0.0),
        Rung("the verdict alone", {"feasible": feasible}, 0.0, 0.0),
        Rung("the wrong verdict", {"feasible": not feasible, "minimum_turnover": least}, 0.0, 0.0),
    ]
