"""Risk management: portfolios held against mandates, their largest risks, stress tests and the cheapest cures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from finskillbench.domains.base import Domain
from finskillbench.domains.building import BuildContext
from finskillbench.domains.checks.examination import Subject
from finskillbench.domains.risk import constraint_monitoring, risk_identification, risk_remediation, stress_testing
from finskillbench.domains.risk.catalogs import risk_settings
from finskillbench.domains.risk.checks import data, economics, objects
from finskillbench.domains.risk.checks import objects as object_checks
from finskillbench.domains.risk.objects.construct import RiskObjects, construct
from finskillbench.domains.risk.shared import RELEASED
from finskillbench.domains.risk.user_catalogs.books import BOOKS
from finskillbench.domains.risk.user_catalogs.mandates import MANDATES
from finskillbench.domains.risk.user_catalogs.scenarios import SCENARIOS
from finskillbench.findings import Findings


def _prepare(context: BuildContext) -> RiskObjects:
    return construct(context, risk_settings(context.episodes))


def _parameters(prepared: RiskObjects) -> dict[str, Any]:
    return {
        "risk": prepared.settings,
        "mandates": prepared.mandates,
        "scenarios": prepared.scenario_catalog,
        "risk_pools": prepared.pool_sizes,
        **prepared.own.parameters,
    }


def _economics(subject: Subject, findings: Findings) -> None:
    economics.stress(subject, findings)
    economics.economics(subject, findings)
    economics.scenarios(subject, findings)


def _certified(subject: Subject, findings: Findings) -> None:
    """Mandates can be kept, and no cure is cheaper than the certified one."""
    economics.certified(subject, findings)
    objects.least_cost(subject, findings)


DOMAIN: Domain[RiskObjects] = Domain(
    name="risk_management",
    skills=(Path(__file__).parent / "skill" / "risk-management",),
    subtasks=(
        constraint_monitoring.SUBTASK,
        risk_identification.SUBTASK,
        stress_testing.SUBTASK,
        risk_remediation.SUBTASK,
    ),
    prepare=_prepare,
    checks={
        "coverage": data.coverage,
        "dates": data.dates,
        "point_in_time": data.point_in_time,
        "portfolios": data.portfolios,
        "mandates": object_checks.mandates,
        "scenarios": object_checks.scenarios,
        "planted_risks": object_checks.planted_risks,
    },
    audits={
        "certified": _certified,
        "taxonomy": economics.taxonomy,
        "unique": economics.unique,
        "economics": _economics,
    },
    parameters=_parameters,
    catalog=(MANDATES, SCENARIOS, BOOKS),
    released=RELEASED,
)
