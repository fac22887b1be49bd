"""The registry: twelve subtasks and `infeasibility_detection`, one file each.

A file reads top to bottom: what the agent must answer, what is true, how it is judged.
"""

from __future__ import annotations

from finskillbench.errors import InputError
from finskillbench.subtasks import (
    black_litterman,
    constrained_optimization,
    constraint_monitoring,
    driver_decomposition,
    earnings_quality,
    infeasibility_detection,
    normalization,
    rebalancing,
    risk_identification,
    risk_remediation,
    stress_testing,
    tool_use_parameterization,
    unconstrained_optimization,
)
from finskillbench.subtasks.base import Answer, Scorer, Subtask

__all__ = ["SUBTASKS", "Answer", "Scorer", "Subtask", "by_method", "by_name"]

SUBTASKS: tuple[Subtask, ...] = (
    unconstrained_optimization.SUBTASK,
    constrained_optimization.SUBTASK,
    tool_use_parameterization.SUBTASK,
    rebalancing.SUBTASK,
    black_litterman.SUBTASK,
    constraint_monitoring.SUBTASK,
    risk_identification.SUBTASK,
    stress_testing.SUBTASK,
    risk_remediation.SUBTASK,
    normalization.SUBTASK,
    earnings_quality.SUBTASK,
    driver_decomposition.SUBTASK,
    infeasibility_detection.SUBTASK,
)
"""Every subtask, in the order of the specification; the thirteenth never enters the headline."""

_BY_NAME = {subtask.name: subtask for subtask in SUBTASKS}
_BY_METHOD = {subtask.method: subtask for subtask in SUBTASKS}


def by_name(name: str) -> Subtask:
    """Return the subtask an episode's `sub_task` names; InputError lists the known ones."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise InputError(f"unknown subtask {name!r}; known are {', '.join(_BY_NAME)}") from None


def by_method(method: str) -> Subtask:
    """Return the subtask that a published `verification.method` belongs to; InputError lists the known ones."""
    try:
        return _BY_METHOD[method]
    except KeyError:
        raise InputError(f"unknown verification method {method!r}; known are {', '.join(_BY_METHOD)}") from None
