"""What an audit found, as rows of a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from finskillbench import notebook
from finskillbench.findings import Check, Finding, State, findings_table

ALL = "all"
"""The domain of a check that is asked of every one."""
COLUMNS = ("check", "domain", "episodes", "findings", "warnings", "worst example")
"""Titles of the columns of `AuditReport.rows`."""
_WORST = 90


@dataclass(frozen=True, slots=True, repr=False)
class AuditReport:
    """All checks of one edition; each names its domain, or `all`."""

    digest: str
    episodes: int
    seconds: float
    checks: tuple[Check, ...]

    def __repr__(self) -> str:
        return f"AuditReport({self.digest[:12]}: {self.count} findings in {self.episodes} episodes)"

    def _repr_html_(self) -> str:
        return notebook.table(COLUMNS, self.rows(), caption=repr(self))

    def to_polars(self) -> pl.DataFrame:
        """One row per finding or warning: check, domain, severity, episode, field and evidence."""
        return findings_table(self.checks)

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong; warnings tell what a reader should know, and make no label wrong."""
        return all(check.state is not State.FAIL for check in self.checks)

    @property
    def count(self) -> int:
        """Number of findings, warnings apart."""
        return sum(_count(check, State.FAIL) for check in self.checks)

    def rows(self) -> list[tuple[str, str, int, int, int, str]]:
        """Check, domain, episodes, findings, warnings and the worst example of each check."""
        return [
            (
                check.name,
                check.domain,
                check.figures.get("episodes", 0),
                _count(check, State.FAIL),
                _count(check, State.WARN),
                _worst(check),
            )
            for check in self.checks
        ]

    def to_json(self) -> dict[str, Any]:
        """JSON values: per check its state, figures and findings by episode, field, evidence and severity."""
        return {
            "digest": self.digest,
            "clean": self.clean,
            "episodes": self.episodes,
            "findings": self.count,
            "seconds": round(self.seconds, 1),
            "checks": [_check(check) for check in self.checks],
        }


def _count(check: Check, state: State) -> int:
    return sum(finding.state is state for finding in check.findings)


def _check(check: Check) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(check))
    return {**fields, "findings": [_finding(finding) for finding in check.findings]}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "episode": finding.where,
        "field": finding.field,
        "evidence": finding.message,
        "severity": finding.state.value,
    }


def _worst(check: Check) -> str:
    ordered: Sequence[Finding] = sorted(check.findings, key=lambda one: one.state is not State.FAIL)
    if not ordered:
        return check.reason
    text = " ".join(part for part in (f"{ordered[0].where}:", ordered[0].field, ordered[0].message) if part)
    return text if len(text) <= _WORST else f"{text[: _WORST - 3]}..."
