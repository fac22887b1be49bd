"""Validation of an edition: what it holds, its panels, and every label derived again from what an agent sees.

`panel` and `tasks` hold the checks of data and of episodes, `truth` and `proofs` those of labels and certificates;
`limits` is the second, independent arithmetic, `report` the outcome, `subject` the edition read once for all.
"""

from __future__ import annotations

from collections.abc import Callable

from threadpoolctl import threadpool_limits

from finskillbench.edition.load import Edition
from finskillbench.edition.validate import panel, proofs, tasks, truth
from finskillbench.edition.validate.report import Check, Finding, Findings, State, ValidationReport
from finskillbench.edition.validate.subject import DOMAIN, Subject, examining

__all__ = ["CHECKS", "Check", "Finding", "State", "ValidationReport", "validate_edition"]

CHECKS: dict[str, Callable[[Subject, Findings], None]] = {
    "coverage": tasks.coverage,
    "prices": panel.prices,
    "trading_days": panel.trading_days,
    "point_in_time": panel.point_in_time,
    "covariance": panel.covariance,
    "benchmark": panel.benchmark,
    "taxonomy": tasks.taxonomy,
    "truth": truth.truth,
    "certificates": proofs.certificates,
}
"""The checks of portfolio construction in their order; each adds what it finds and never raises for bad data."""


def validate_edition(edition: Edition, progress: Callable[[str], None] = lambda step: None) -> ValidationReport:
    """Run the nine checks of portfolio construction.

    A check is skipped, with the reason, where the edition has nothing for it: no episodes of the domain, no panels
    (an imported release), truth or certificates withheld.

    Parameters
    ----------
    edition : loaded, so its files are those of its manifest.
    progress : called with the name of each check as it starts.
    """
    subject = Subject(edition)
    found = []
    # Thousands of small dense systems: BLAS threads would only wait for each other.
    with threadpool_limits(1):
        for name, run in CHECKS.items():
            progress(f"checking {name}")
            findings = Findings()
            if subject.episodes:
                with examining(name, findings):
                    run(subject, findings)
            else:
                findings.skip("the edition has no episodes of portfolio construction")
            found.append(findings.as_check(DOMAIN, name))
    return ValidationReport(edition.digest, tuple(found))
