"""Validation of an edition: what it holds, its panels, and every label derived again from what an agent sees.

The engine runs what each domain brings: its checks, then the second derivation and the proof of each subtask on every
label. A label that nothing has touched fails the edition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from threadpoolctl import threadpool_limits

from finskillbench.domains.base import Domain, DomainCheck
from finskillbench.domains.checks.examination import Shared, Subject, examining
from finskillbench.edition.load import Edition
from finskillbench.edition.validation.labels import every_label_touched, label_check
from finskillbench.edition.validation.report import ValidationReport
from finskillbench.errors import InputError
from finskillbench.findings import Check, Finding, Findings, State
from finskillbench.garbage import seldom_sought

__all__ = ["Check", "Finding", "State", "ValidationReport", "checks_of", "validate_edition"]

WHOLE = "edition"
"""What checks of the edition as a whole are listed under, where other checks have their domain."""


def checks_of(domain: Domain) -> dict[str, DomainCheck]:
    """The checks of a domain in their order: its own, then the labels of each of its subtasks.

    Raises
    ------
    InputError : a check of the domain is called like one of its subtasks, so that one would take the other's place.
    """
    for subtask in domain.subtasks:
        if subtask.name in domain.checks:
            raise InputError(
                f"domain {domain.name}: its check {subtask.name} is called like its subtask {subtask.name}, whose "
                "labels would take its place; rename the check"
            )
    return {**domain.checks, **{one.name: label_check(one) for one in domain.subtasks}}


def validate_edition(
    edition: Edition,
    progress: Callable[[str], None] = lambda step: None,
    only: Collection[str] | None = None,
) -> ValidationReport:
    """Run the checks of every domain on an edition.

    A check is skipped, with the reason, where the edition has nothing for it: no episodes of the domain, no panels
    (an imported release), truth or certificates withheld. The last check is of the edition as a whole: that no label
    is left which no check has looked at.

    Parameters
    ----------
    edition : loaded, so its files are those of its manifest.
    progress : called with the domain and the name of each check as it starts.
    only : names of domains; None for all, and for the check of the edition as a whole.
    """
    shared = Shared(edition)
    found: list[Check] = []
    touched: set[str] = set()
    registered = edition.domains  # loads every numerical library: the limit below holds only for those loaded by then
    # Thousands of small dense systems: BLAS threads would only wait for each other.
    with threadpool_limits(1), seldom_sought():
        for domain in registered:
            if only is not None and domain.name not in only:
                continue
            subject = Subject(shared, domain)
            for name, run in checks_of(domain).items():
                findings = Findings()
                if subject.episodes:
                    progress(f"checking {domain.title}: {name}")
                    with examining(name, findings):
                        run(subject, findings)
                else:
                    findings.skip(f"the edition has no episodes of {domain.title}")
                found.append(findings.as_check(domain.name, name))
                touched |= findings.touched
    if only is None:
        findings = Findings()
        every_label_touched(edition, touched, shared.built, findings)
        found.append(findings.as_check(WHOLE, "labels"))
    return ValidationReport(edition.digest, tuple(found))
