"""What a validation found, as an object and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from finskillbench.findings import Check, State


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """All checks of one edition, in their order."""

    digest: str
    checks: tuple[Check, ...]

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
