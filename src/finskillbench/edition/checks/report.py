"""What the checks of an edition found: as text, as a table, as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any

import msgspec
import polars as pl

from finskillbench import notebook
from finskillbench.findings import Check, State, findings_table

ALL, WHOLE = "all", "edition"
"""What checks that are asked of every domain, and those of the edition as a whole, are listed under."""
_COLUMNS = ("check", "domain", "state", "episodes", "findings", "warnings", "worst example")
_FIELDS = ("digest", "levels", "passed", "episodes", "count", "counts", "checks")
_SHOWN, _WORST = 5, 90


class Level(StrEnum):
    """What a check asks: is the edition whole, are its labels right, does it deserve to be believed."""

    INTEGRITY = "integrity"
    LABELS = "labels"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True, repr=False)
class CheckReport:
    """All checks of some levels of one edition, in their order; each names its domain, `all` or `edition`."""

    digest: str
    levels: tuple[Level, ...]
    episodes: int
    checks: tuple[Check, ...]

    def __repr__(self) -> str:
        return f"CheckReport({self.digest[:12]}: {self.count} findings in {self.episodes} episodes)"

    def __str__(self) -> str:
        """The checks by domain, a line each, with their first findings, and a line that sums them up."""
        lines: list[str] = []
        width = max((len(check.name) for check in self.checks), default=0)
        for domain, checks in groupby(self.checks, key=lambda check: check.domain):
            lines += [domain.replace("_", " "), *_lines(list(checks), width)]
        states = ", ".join(f"{count} {state}" for state, count in self.counts.items() if count)
        return "\n".join([*lines, f"{self.episodes} episodes, {self.count} findings: {states}"])

    def _repr_html_(self) -> str:
        rows = [
            (
                check.name,
                check.domain,
                check.state,
                check.figures.get("episodes", ""),
                _number(check, State.FAIL),
                _number(check, State.WARN),
                _worst(check),
            )
            for check in self.checks
        ]
        return notebook.table(_COLUMNS, rows, caption=repr(self))

    def to_polars(self) -> pl.DataFrame:
        """One row per finding or warning: check, domain, severity, episode, field and evidence."""
        return findings_table(self.checks)

    @property
    def passed(self) -> bool:
        """Whether no check failed; warnings and skipped checks do not fail an edition."""
        return all(check.state is not State.FAIL for check in self.checks)

    @property
    def count(self) -> int:
        """Number of findings, warnings apart."""
        return sum(_number(check, State.FAIL) for check in self.checks)

    @property
    def counts(self) -> dict[State, int]:
        """Number of checks by state, in the order PASS, WARN, FAIL, SKIP."""
        return {state: sum(check.state is state for check in self.checks) for state in State}

    def to_json(self) -> dict[str, Any]:
        """JSON values; the same edition gives the same bytes."""
        return msgspec.json.decode(msgspec.json.encode({name: getattr(self, name) for name in _FIELDS}))


def _lines(checks: Sequence[Check], width: int) -> Iterator[str]:
    """The checks of one domain; one line for all if the edition has nothing for any of them."""
    reasons = {check.reason for check in checks if not check.findings}
    if len(checks) > 1 and len(reasons) == 1 and all(check.state is State.SKIP for check in checks):
        yield f"{checks[0].state:<5} {f'all {len(checks)}':<{width}} {reasons.pop()}"
        return
    for check in checks:
        yield f"{check.state:<5} {check.name:<{width}} {check.reason or _in_words(check.figures)}".rstrip()
        for finding in check.findings[:_SHOWN]:
            field = f"{finding.field}: " if finding.field else ""
            yield f"      {finding.state} {finding.where}: {field}{finding.message}"
        if (hidden := len(check.findings) - _SHOWN) > 0:
            yield f"      and {hidden} more; --json has all"


def _in_words(figures: Mapping[str, Any]) -> str:
    """Figures on one line; nested ones are left to the JSON report."""
    plain = {name: value for name, value in figures.items() if not isinstance(value, Mapping | list | tuple)}
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in plain.items()
    )


def _number(check: Check, state: State) -> int:
    return sum(finding.state is state for finding in check.findings)


def _worst(check: Check) -> str:
    ordered = sorted(check.findings, key=lambda one: one.state is not State.FAIL)
    if not ordered:
        return check.reason
    text = " ".join(part for part in (f"{ordered[0].where}:", ordered[0].field, ordered[0].message) if part)
    return text if len(text) <= _WORST else f"{text[: _WORST - 3]}..."
