"""Validation pack: the evidence of runs as one document for a model-risk officer."""

from pathlib import Path

from finskillbench.publish.pack.write import Pack, write_pack
from finskillbench.reports.registered import ReportFormat, ReportRequest

__all__ = ["VALIDATION", "Pack", "write_pack"]


def _write(request: ReportRequest) -> list[Path]:
    results = request.report.results
    pack = write_pack(
        request.runs,
        request.out,
        today=request.today,
        profile=results.profile,
        exclude=results.excluded,
        checks=request.checks,
        audit=request.audit,
        criteria=request.criteria,
    )
    return [pack.path]


VALIDATION = ReportFormat(_write)
"""The format `validation` of `finskillbench report`."""
