"""Validation of an edition: what it holds, its panels, and every label derived again from what an agent sees.

`panel` and `tasks` hold the checks of data and of episodes, `truth` and `proofs` those of labels and certificates;
`risk_data`, `risk_objects`, `risk_truth` and `risk_proofs` are their like for risk management, `fundamental_data`,
`fundamental_panel` (with `fundamental_rows`), `fundamental_point_in_time`, `fundamental_segments` and
`fundamental_truth` for fundamental analysis. `limits`, `risk_measures` and
`fundamental_measures` are the second, independent arithmetic, `report` the outcome, `subject` the edition read once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from threadpoolctl import threadpool_limits

from finskillbench.edition.load import Edition
from finskillbench.edition.validate import (
    fundamental_data,
    fundamental_panel,
    fundamental_point_in_time,
    fundamental_segments,
    fundamental_truth,
    panel,
    proofs,
    risk_data,
    risk_objects,
    risk_proofs,
    risk_truth,
    tasks,
    truth,
)
from finskillbench.edition.validate.report import Check, Finding, Findings, State, ValidationReport
from finskillbench.edition.validate.subject import Shelf, Subject, examining

__all__ = ["CHECKS", "Check", "Finding", "State", "ValidationReport", "validate_edition"]

CHECKS: Mapping[str, Mapping[str, Callable[[Subject, Findings], None]]] = {
    "portfolio_construction": {
        "coverage": tasks.coverage,
        "prices": panel.prices,
        "trading_days": panel.trading_days,
        "point_in_time": panel.point_in_time,
        "covariance": panel.covariance,
        "benchmark": panel.benchmark,
        "taxonomy": tasks.taxonomy,
        "truth": truth.truth,
        "certificates": proofs.certificates,
    },
    "risk_management": {
        "coverage": risk_data.coverage,
        "dates": risk_data.dates,
        "point_in_time": risk_data.point_in_time,
        "portfolios": risk_data.portfolios,
        "mandates": risk_objects.mandates,
        "scenarios": risk_objects.scenarios,
        "planted_risks": risk_objects.planted_risks,
        "monitoring": risk_truth.monitoring,
        "identification": risk_truth.identification,
        "stress": risk_truth.stress,
        "remediation": risk_proofs.remediation,
    },
    "fundamental_analysis": {
        "coverage": fundamental_data.coverage,
        "forms": fundamental_data.forms,
        "durations": fundamental_data.durations,
        "units": fundamental_data.units,
        "point_in_time": fundamental_point_in_time.point_in_time,
        "restatements": fundamental_panel.restatements,
        "derived_quarters": fundamental_panel.derived_quarters,
        "balance_sheet": fundamental_panel.balance_sheet,
        "segments": fundamental_segments.segments,
        "normalization": fundamental_truth.normalization,
        "earnings_quality": fundamental_truth.earnings_quality,
        "driver_decomposition": fundamental_truth.driver_decomposition,
    },
}
"""The checks of each domain in their order; each adds what it finds and never raises for bad data."""


def validate_edition(edition: Edition, progress: Callable[[str], None] = lambda step: None) -> ValidationReport:
    """Run nine checks of portfolio construction, eleven of risk management and twelve of fundamental analysis.

    A check is skipped, with the reason, where the edition has nothing for it: no episodes of the domain, no panels
    (an imported release), truth or certificates withheld.

    Parameters
    ----------
    edition : loaded, so its files are those of its manifest.
    progress : called with the domain and the name of each check as it starts.
    """
    shelf = Shelf(edition)
    found = []
    # Thousands of small dense systems: BLAS threads would only wait for each other.
    with threadpool_limits(1):
        for domain, checks in CHECKS.items():
            subject = Subject(shelf, domain)
            spoken = domain.replace("_", " ")
            for name, run in checks.items():
                findings = Findings()
                if subject.episodes:
                    progress(f"checking {spoken}: {name}")
                    with examining(name, findings):
                        run(subject, findings)
                else:
                    findings.skip(f"the edition has no episodes of {spoken}")
                found.append(findings.as_check(domain, name))
    return ValidationReport(edition.digest, tuple(found))
