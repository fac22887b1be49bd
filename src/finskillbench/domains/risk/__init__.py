"""Risk management: mandate monitoring, risk identification, stress testing and remediation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from finskillbench.domains.base import Domain
from finskillbench.domains.checks.examination import Subject
from finskillbench.domains.faults import read_faults
from finskillbench.domains.risk import constraint_monitoring, risk_identification, risk_remediation, stress_testing
from finskillbench.domains.risk.catalogs import risk_settings
from finskillbench.domains.risk.checks import data, economics, objects
from finskillbench.domains.risk.checks import objects as object_checks
from finskillbench.domains.risk.faults import ACCEPTS, LOSSES
from finskillbench.domains.risk.objects.construct import RiskObjects, construct
from finskillbench.domains.risk.shared import RELEASED
from finskillbench.domains.risk.user_catalogs.books import BOOKS
from finskillbench.domains.risk.user_catalogs.mandates import MANDATES
from finskillbench.domains.risk.user_catalogs.scenarios import SCENARIOS
from finskillbench.findings import Findings


def _parameters(prepared: RiskObjects) -> dict[str, Any]:
    return {
        "risk": prepared.settings,
        "mandates": prepared.mandates,
        "scenarios": prepared.scenario_catalog,
        "risk_pools": prepared.pool_sizes,
        **prepared.user_pools.parameters,
    }


def _economics(subject: Subject, findings: Findings) -> None:
    economics.check_published_stress(subject, findings)
    economics.check_risk_economics(subject, findings)
    economics.check_scenario_economics(subject, findings)


def _certified(subject: Subject, findings: Findings) -> None:
    economics.check_attainable_mandates(subject, findings)
    objects.check_least_cost(subject, findings)


DOMAIN: Domain[RiskObjects] = Domain(
    name="risk_management",
    skills=(Path(__file__).parent / "skill" / "risk-management",),
    subtasks=(
        constraint_monitoring.SUBTASK,
        risk_identification.SUBTASK,
        stress_testing.SUBTASK,
        risk_remediation.SUBTASK,
    ),
    prepare=lambda context: construct(context, risk_settings(context.episodes)),
    checks={
        "coverage": data.check_risk_coverage,
        "dates": data.check_risk_dates,
        "point_in_time": data.check_risk_point_in_time,
        "portfolios": data.check_risk_portfolios,
        "mandates": object_checks.check_risk_mandates,
        "scenarios": object_checks.check_risk_scenarios,
        "planted_risks": object_checks.check_planted_risks,
    },
    audits={
        "certified": _certified,
        "taxonomy": economics.check_risk_taxonomy,
        "unique": economics.check_risk_uniqueness,
        "economics": _economics,
    },
    parameters=_parameters,
    catalog=(MANDATES, SCENARIOS, BOOKS),
    released=RELEASED,
    faults=read_faults(Path(__file__).with_name("faults.toml")),
    accepts=ACCEPTS,
    losses=LOSSES,
)
