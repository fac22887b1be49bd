"""Constraint monitoring: which limits of a mandate does a portfolio break?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from finskillbench.episode import JsonObject, Profile, Score, Truth
from finskillbench.scoring.measures import share
from finskillbench.scoring.values import boolean, objects, text
from finskillbench.subtasks.base import Answer, Subtask

_ALIASES = {
    alias: name
    for name, aliases in {
        "position_limit": ("position_limit_max max_position max_single_position_weight max_weight max_position_weight"),
        "sector_limit": "sector_limit_max max_sector max_sector_concentration sector_concentration",
        "beta_range": "beta portfolio_beta",
        "long_only": "no_short",
        "turnover": "turnover_max_monthly turnover_max max_turnover",
    }.items()
    for alias in aliases.split()
}
_PASS = frozenset({"pass", "true", "compliant", "ok", "satisfied"})
_FAIL = frozenset({"fail", "false", "violation", "violated", "breach", "breached", "non-compliant"})


class MonitoredConstraint(Answer):
    """One constraint of the mandate, checked."""

    type: str = Field(description="The constraint's type, as the mandate names it.")
    status: Literal["PASS", "FAIL"] = Field(description="PASS if the portfolio meets the constraint, else FAIL.")
    value: float | bool = Field(
        description="The portfolio's own value, in the unit of the limit: weights, turnover and tracking error as "
        "fractions (0.05 is 5 %), beta as a ratio, signed, long_only as a boolean."
    )
    limit: float | bool | None = Field(None, description="The mandate's limit, in its own unit; absent for a range.")
    min: float | None = Field(None, description="Lower end of a range, in its own unit.")
    max: float | None = Field(None, description="Upper end of a range, in its own unit.")
    worst_symbol: str | None = Field(None, description="Ticker nearest to or furthest beyond a position limit.")
    worst_sector: str | None = Field(None, description="Sector nearest to or furthest beyond a sector limit.")
    violation_magnitude: float | None = Field(
        None, description="Distance beyond the limit, in the unit of the limit, > 0; only for FAIL."
    )


class ConstraintMonitoring(Answer):
    """Answer: the mandate's constraints, each with its verdict."""

    overall_compliant: bool = Field(description="true if every constraint passes.")
    violations_count: int = Field(description="Number of constraints that fail, >= 0.")
    constraints: list[MonitoredConstraint] = Field(description="One entry per constraint of the mandate.")


def normal_type(name: str) -> str:
    """Lower-case, `-` and space to `_`, then the aliases of the specification."""
    plain = name.lower().replace("-", "_").replace(" ", "_")
    return _ALIASES.get(plain, plain)


def normal_status(status: str | None) -> str | None:
    """PASS, FAIL, or the status upper-cased; None where absent."""
    if status is None:
        return None
    lowered = status.lower()
    if lowered in _PASS:
        return "PASS"
    return "FAIL" if lowered in _FAIL else status.upper()


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """exact_match: 0.4 [overall_compliant equal] + 0.6 a.

    a = share of the expected constraint types whose status equals after normalising; of duplicates of a type the
    last one counts.
    """
    del task_input
    statuses = {kind: given[-1] for kind, given in _by_type(answer).items()}
    return _score(_compliance_agrees(answer, truth), statuses, truth)


def strict(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """As `paper`, but no compliance credit without a constraint list, and contradictory duplicates are wrong."""
    del task_input
    by_type = _by_type(answer)
    statuses = {kind: given[0] if len(set(given)) == 1 else None for kind, given in by_type.items()}
    return _score(bool(by_type) and _compliance_agrees(answer, truth), statuses, truth)


def _score(compliant: bool, statuses: dict[str, str | None], truth: Truth) -> Score:
    expected = {kind: given[-1] for kind, given in _by_type(truth.expected_output).items()}
    right = {kind: status is not None and statuses.get(kind) == status for kind, status in sorted(expected.items())}
    accuracy = share(sum(right.values()), len(right))
    return Score(0.4 * compliant + 0.6 * accuracy, {"compliant": compliant, "accuracy": accuracy, "right": right})


def _compliance_agrees(answer: JsonObject, truth: Truth) -> bool:
    given = boolean(answer.get("overall_compliant"))
    return given is not None and given == boolean(truth.expected_output.get("overall_compliant"))


def _by_type(source: JsonObject) -> dict[str, Sequence[str | None]]:
    """Statuses in order by normalised type; entries that are no objects or lack a type count as absent."""
    found: dict[str, list[str | None]] = {}
    for item in objects(source.get("constraints")):
        kind = text(item.get("type"))
        if kind is not None:
            found.setdefault(normal_type(kind), []).append(normal_status(text(item.get("status"))))
    return dict(found)


SUBTASK = Subtask(
    name="constraint_monitoring",
    skill="risk_management",
    prefix="rm_cm",
    method="exact_match",
    answer=ConstraintMonitoring,
    scorers={Profile.PAPER: paper, Profile.STRICT: strict},
)
