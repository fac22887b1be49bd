"""Formats of `finskillbench report` that distributions register under the entry points `finskillbench.reports`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from finskillbench.edition.checks.report import CheckReport
from finskillbench.reports.compare.gates import Threshold
from finskillbench.reports.read import RunRows
from finskillbench.reports.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """A report to write into the folder `out`: its runs, and what the user states of the edition and requires.

    `checks`, `audit` and `criteria` are those of `finskillbench.reports.evidence`, absent where no file was named.
    """

    report: Report
    runs: Sequence[RunRows]
    out: Path
    today: date
    checks: CheckReport | None = None
    audit: CheckReport | None = None
    criteria: Sequence[Threshold] = ()


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """A format by its function, which writes the report and returns the files that a reader opens."""

    write: Callable[[ReportRequest], Sequence[Path]]
