"""Fundamental analysis: filings as they were public on their day, normalised, judged and compared."""

from __future__ import annotations

from pathlib import Path

from finskillbench.domains.base import Domain
from finskillbench.domains.fundamental import driver_decomposition, earnings_quality, normalization
from finskillbench.domains.fundamental.checks import CHECKS, labels
from finskillbench.domains.fundamental.inputs import RELEASED
from finskillbench.domains.fundamental.objects import reports

DOMAIN = Domain(
    name=reports.SKILL,
    skills=(Path(__file__).parent / "skill" / "fundamental-analysis",),
    subtasks=(normalization.SUBTASK, earnings_quality.SUBTASK, driver_decomposition.SUBTASK),
    prepare=reports.prepare,
    checks=CHECKS,
    tools=("query_xbrl",),
    needs=("company facts",),
    protocol_episodes=100,
    parameters=reports.parameters,
    released=RELEASED,
    audits={"rederived": labels.rederived, "spec_agrees": labels.spec_agrees},
)
