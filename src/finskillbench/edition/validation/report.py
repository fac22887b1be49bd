"""What a validation found, as an object and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from finskillbench import notebook
from finskillbench.findings import Check, State, findings_table


@dataclass(frozen=True, slots=True, repr=False)
class ValidationReport:
    """All checks of one edition, in their order."""

    digest: str
    checks: tuple[Check, ...]

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {state}" for state, count in self.counts.items() if count)
        return f"ValidationReport({self.digest[:12]}: {counts})"

    def _repr_html_(self) -> str:
        columns = ("check", "domain", "state", "findings", "skipped because")
        rows = [(each.name, each.domain, each.state, len(each.findings), each.reason) for each in self.checks]
        return notebook.table(columns, rows, caption=repr(self))

    def to_polars(self) -> pl.DataFrame:
        """One row per finding or warning: check, domain, severity, episode, field and evidence."""
        return findings_table(self.checks)

    @property
    def passed(self) -> bool:
        """Whether no check failed; warnings and skipped checks do not fail an edition."""
        return all(check.state is not State.FAIL for check in self.checks)

    @property
    def counts(self) -> dict[State, int]:
        """Number of checks by state, in the order PASS, WARN, FAIL, SKIP."""
        return {state: sum(check.state is state for check in self.checks) for state in State}

    def to_json(self) -> dict[str, Any]:
        """JSON values; the same edition gives the same bytes."""
        names = ("digest", "passed", "counts", "checks")
        return msgspec.json.decode(msgspec.json.encode({name: getattr(self, name) for name in names}))
