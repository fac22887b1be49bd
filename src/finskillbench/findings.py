"""Results of checks: a state, figures, and findings per task, file, or symbol and date."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import polars as pl
from msgspec import Struct


class CheckState(StrEnum):
    """Outcome of a check: that of its worst finding."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"
    SKIP = "SKIP"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `where` is a task id, a file, or a symbol and a date; `field` the affected part, if any."""

    state: CheckState
    where: str
    message: str
    field: str = ""


class Check(Struct, frozen=True, rename={"name": "check"}):
    """Result of one check of one domain: `figures` are counts and extremes, `reason` explains a skip."""

    domain: str
    name: str
    state: CheckState
    figures: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    reason: str = ""


def findings_table(checks: Iterable[Check]) -> pl.DataFrame:
    """Tabulate the findings of some checks, one row each."""
    columns = ("check", "domain", "severity", "episode", "field", "evidence")
    records = [
        (check.name, check.domain, found.state.value, found.where, found.field, found.message)
        for check in checks
        for found in check.findings
    ]
    return pl.DataFrame(records, schema=dict.fromkeys(columns, pl.String), orient="row")


@dataclass
class Findings:
    """Collector of a running check's findings and figures."""

    figures: dict[str, Any] = field(default_factory=dict[str, Any])
    found: list[Finding] = field(default_factory=list[Finding])
    reason: str = ""
    expectations: int = 0
    """Number of conditions tested; 0 marks a check that looked at nothing."""
    touched: set[str] = field(default_factory=set[str])
    """Task ids with a rederived label or a rechecked proof."""

    def fail(self, where: object, message: str, field: str = "") -> None:
        self.found.append(Finding(CheckState.FAIL, str(where), message, field))

    def warn(self, where: object, message: str, field: str = "") -> None:
        """Add a remark that makes no label wrong."""
        self.found.append(Finding(CheckState.WARN, str(where), message, field))

    def expect(self, holds: object, where: object, message: str, field: str = "") -> None:
        """Add a defect unless `holds` is true; NaN comparisons do not hold."""
        self.expectations += 1
        if not holds:
            self.fail(where, message, field)

    def skip(self, reason: str) -> None:
        """Mark the check as skipped; earlier findings still decide the state."""
        self.reason = reason

    def widest(self, figure: str, value: float) -> None:
        self.figures[figure] = max(self.figures.get(figure, 0.0), float(value))

    def least(self, figure: str, value: float) -> None:
        self.figures[figure] = min(self.figures.get(figure, math.inf), float(value))

    def add(self, figure: str, count: int = 1) -> None:
        self.figures[figure] = self.figures.get(figure, 0) + count

    def as_check(self, domain: str, name: str) -> Check:
        states = {each.state for each in self.found}
        worst = next((state for state in (CheckState.FAIL, CheckState.WARN) if state in states), None)
        state = worst or (CheckState.SKIP if self.reason else CheckState.PASS)
        return Check(domain, name, state, self.figures, tuple(self.found), self.reason)
