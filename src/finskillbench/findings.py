"""The outcome of a check: a state, figures, and findings that name a task, or a symbol and a date."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import polars as pl
from msgspec import Struct


class State(StrEnum):
    """How a check ended; a check is as bad as its worst finding."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"
    SKIP = "SKIP"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found: `where` is a task id, a file, or a symbol and a date; `field` the part of it, where one is."""

    state: State
    where: str
    message: str
    field: str = ""


class Check(Struct, frozen=True, rename={"name": "check"}):
    """One check of one domain: `figures` are counts and extremes, `reason` says why it was skipped."""

    domain: str
    name: str
    state: State
    figures: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()
    reason: str = ""


def findings_table(checks: Iterable[Check]) -> pl.DataFrame:
    """One row per finding or warning of some checks."""
    columns = ("check", "domain", "severity", "episode", "field", "evidence")
    records = [
        (check.name, check.domain, found.state.value, found.where, found.field, found.message)
        for check in checks
        for found in check.findings
    ]
    return pl.DataFrame(records, schema=dict.fromkeys(columns, pl.String), orient="row")


@dataclass
class Findings:
    """What a running check collects."""

    figures: dict[str, Any] = field(default_factory=dict[str, Any])
    found: list[Finding] = field(default_factory=list[Finding])
    reason: str = ""
    expectations: int = 0
    """How often something was expected, so that a check that looks at nothing can be told from one that passes."""
    touched: set[str] = field(default_factory=set[str])
    """Task ids of the labels that were derived again or whose proof was rechecked."""

    def fail(self, where: object, message: str, field: str = "") -> None:
        """Add a defect."""
        self.found.append(Finding(State.FAIL, str(where), message, field))

    def warn(self, where: object, message: str, field: str = "") -> None:
        """Add something a reader should know, which makes no label wrong."""
        self.found.append(Finding(State.WARN, str(where), message, field))

    def expect(self, holds: object, where: object, message: str, field: str = "") -> None:
        """Add a defect unless something holds; NaN comparisons do not hold."""
        self.expectations += 1
        if not holds:
            self.fail(where, message, field)

    def skip(self, reason: str) -> None:
        """End without a judgement, unless something was found already."""
        self.reason = reason

    def widest(self, figure: str, value: float) -> None:
        """Keep the largest value seen under a figure."""
        self.figures[figure] = max(self.figures.get(figure, 0.0), float(value))

    def least(self, figure: str, value: float) -> None:
        """Keep the smallest value seen under a figure."""
        self.figures[figure] = min(self.figures.get(figure, math.inf), float(value))

    def add(self, figure: str, count: int = 1) -> None:
        """Count under a figure."""
        self.figures[figure] = self.figures.get(figure, 0) + count

    def as_check(self, domain: str, name: str) -> Check:
        """The finished check."""
        states = {each.state for each in self.found}
        worst = next((state for state in (State.FAIL, State.WARN) if state in states), None)
        state = worst or (State.SKIP if self.reason else State.PASS)
        return Check(domain, name, state, self.figures, tuple(self.found), self.reason)
