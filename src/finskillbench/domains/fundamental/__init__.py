"""Fundamental analysis: normalisation, earnings quality and drivers from point-in-time filings."""

from __future__ import annotations

from pathlib import Path

from finskillbench.domains.base import Domain
from finskillbench.domains.faults import read_faults
from finskillbench.domains.fundamental import driver_decomposition, earnings_quality, normalization
from finskillbench.domains.fundamental.checks import CHECKS, labels
from finskillbench.domains.fundamental.inputs import RELEASED
from finskillbench.domains.fundamental.objects import reports

DOMAIN = Domain(
    name=reports.SKILL,
    skills=(Path(__file__).parent / "skill" / "fundamental-analysis",),
    subtasks=(normalization.SUBTASK, earnings_quality.SUBTASK, driver_decomposition.SUBTASK),
    prepare=reports.prepare_fundamental,
    checks=CHECKS,
    tools=("query_xbrl",),
    needs=("company facts",),
    protocol_episodes=100,
    parameters=reports.parameters,
    released=RELEASED,
    faults=read_faults(Path(__file__).with_name("faults.toml")),
    audits={"rederived": labels.check_published_flows, "spec_agrees": labels.check_published_flags},
)
