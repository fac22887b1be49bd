"""Risk management: portfolios held against mandates, their largest risks, stress tests and the cheapest cures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from finskillbench.domains.base import Domain
from finskillbench.domains.building import BuildContext, load_catalog
from finskillbench.domains.risk import constraint_monitoring, risk_identification, risk_remediation, stress_testing
from finskillbench.domains.risk.checks import data, proofs, truth
from finskillbench.domains.risk.checks import objects as object_checks
from finskillbench.domains.risk.shared import pool_sizes


def _prepare(context: BuildContext) -> BuildContext:
    return context


def _parameters(objects: Any) -> dict[str, Any]:
    catalogs = {name: load_catalog(f"{name}.json") for name in ("risk", "mandates", "scenarios")}
    return catalogs | {"risk_pools": pool_sizes(objects)}


DOMAIN = Domain(
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
        "monitoring": truth.monitoring,
        "identification": truth.identification,
        "stress": truth.stress,
        "remediation": proofs.remediation,
    },
    parameters=_parameters,
)
