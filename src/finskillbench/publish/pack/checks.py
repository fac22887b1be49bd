"""Soundness of the labels: how they are proved, and which checks of the edition were run, found and left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from finskillbench.analysis.results import Results, distinct
from finskillbench.audit import names_of_checks
from finskillbench.audit.report import AuditReport
from finskillbench.domains import domains
from finskillbench.edition import Edition
from finskillbench.edition.validation import WHOLE, checks_of
from finskillbench.edition.validation.report import ValidationReport
from finskillbench.findings import Check, State
from finskillbench.publish.pack.chapters import Chapter, captioned
from finskillbench.reports.tables.base import Column, Kind, Table

_PROOFS = (
    "Optimal: a bound proves the optimum. Infeasible: a certificate proves that no answer exists. Rederived: derived "
    "twice by independent code. Composed: known by construction. Feasible: a portfolio within all limits is known."
)

_SKIPPED = "Not run includes skipped. A check that is run for several domains counts once, by its gravest state."


_GRAVITY = (State.SKIP, State.PASS, State.WARN, State.FAIL)


@dataclass(frozen=True, slots=True)
class EditionReport:
    """A validation or audit of the edition: the checks that apply to it by name, and those that were run."""

    name: str
    command: str
    expected: tuple[str, ...]
    supplied: ValidationReport | AuditReport | None

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks that were run; skipped ones were not."""
        return tuple(check for check in self.supplied.checks if check.state is not State.SKIP) if self.supplied else ()

    @property
    def left_out(self) -> list[str]:
        """Names of the checks that were not run."""
        run = {name for check in self.checks for name in (check.name, f"{check.domain}/{check.name}")}
        return [name for name in self.expected if name not in run]

    def count(self, state: State) -> int:
        """Number of applicable checks of which a state is the gravest, over the domains that they were run for."""
        found: dict[str, State] = {}
        for check in self.checks:
            name = check.name if check.name in self.expected else f"{check.domain}/{check.name}"
            found[name] = max(found.get(name, check.state), check.state, key=_GRAVITY.index)
        return sum(each is state for each in found.values())

    def __str__(self) -> str:
        left, number = self.left_out, len(self.expected)
        if self.supplied is None:
            return f"{self.name}: not run for this pack ({self.command}); {number} checks apply."
        names = f" Not run: {', '.join(left)}." if left else ""
        digest, failed = self.supplied.digest[:12], self.count(State.FAIL)
        return f"{self.name} of edition {digest}: {number - len(left)} of {number} checks run, {failed} failed.{names}"


def reports_on(
    results: Results,
    editions: Mapping[str, Edition | str],
    checks: ValidationReport | None,
    audit: AuditReport | None,
) -> tuple[EditionReport, EditionReport]:
    """Validation and audit against the checks that apply to the editions, or where none can be read to the rows."""
    known = [edition for edition in editions.values() if isinstance(edition, Edition)]
    there = [one.skill for edition in known for one in edition.episodes()] or distinct(results.rows, "domain")
    own = [f"{one.name}/{name}" for one in domains() if one.name in set(there) for name in checks_of(one)]
    return (
        EditionReport(
            "Validation",
            "finskillbench data validate EDITION --json, supplied by --checks",
            (*own, f"{WHOLE}/labels"),
            checks,
        ),
        EditionReport(
            "Audit", "finskillbench audit EDITION --json FILE, supplied by --audit", names_of_checks(there), audit
        ),
    )


def soundness_chapter(reports: Sequence[EditionReport], labels: Iterable[Table]) -> Chapter:
    """Proofs of labels, as tables by edition, the state of every check, and the gravest finding of each."""
    words = (
        "Each label is proved, derived twice by independent code, or known by construction. Validation rechecks every "
        "label from the stored data. The audit tests whether each label follows from what an agent can see, and "
        "whether shortcuts earn credit.",
        *map(str, reports),
    )
    tables = [
        *captioned(
            _states(reports), "Checks run and not run", "checks that apply to the edition; unit: checks", _SKIPPED
        ),
        *(
            one
            for table in labels
            for one in captioned(table, "Proofs of labels", "episodes of the edition; unit: labels", _PROOFS)
        ),
        *captioned(_findings(reports), "Checks with findings or warnings", "checks run; unit: findings and warnings"),
    ]
    appendix = tuple(
        one
        for each in reports
        for one in captioned(_checked(each), f"{each.name}: checks supplied", "checks supplied; unit: as named")
    )
    return Chapter("proofs", "Soundness of the labels", words, tables=tuple(tables), appendix=appendix)


def _states(reports: Sequence[EditionReport]) -> Table:
    states = {State.PASS: "Passed", State.WARN: "With warnings", State.FAIL: "Failed"}
    rows = tuple(
        (
            each.name,
            len(each.expected),
            len(each.expected) - len(each.left_out),
            len(each.left_out),
            *map(each.count, states),
        )
        for each in reports
    )
    columns = (
        Column("report", "Report"),
        Column("applicable", "Applicable", Kind.COUNT),
        Column("run", "Run", Kind.COUNT),
        Column("not_run", "Not run", Kind.COUNT),
        *(Column(state.value.lower(), title, Kind.COUNT) for state, title in states.items()),
    )
    return Table("states", "", columns, rows)


def _checked(report: EditionReport) -> Table | None:
    checks = report.supplied.checks if report.supplied else ()
    rows = tuple((each.domain, each.name, each.state.value, len(each.findings), _figures(each)) for each in checks)
    columns = (
        Column("domain", "Domain"),
        Column("check", "Check"),
        Column("state", "State"),
        Column("findings", "Findings and warnings", Kind.COUNT),
        Column("figures", "Figures"),
    )
    return Table("checks", "", columns, rows)


def _figures(check: Check) -> str | None:
    plain = {name: value for name, value in check.figures.items() if isinstance(value, (int, float, str))}
    figures = [
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in plain.items()
    ]
    return check.reason or ", ".join(figures) or None


def _findings(reports: Sequence[EditionReport]) -> Table:
    """The gravest finding of each check, failures first."""
    checks = [(report.name, check) for report in reports for check in report.checks if check.findings]
    checks.sort(key=lambda each: each[1].state is not State.FAIL)
    rows = tuple(
        (check.state.value, name, check.name, len(check.findings), worst.where, worst.field or None, worst.message)
        for name, check in checks
        for worst in sorted(check.findings, key=lambda each: each.state is not State.FAIL)[:1]
    )
    columns = (
        Column("state", "State"),
        Column("report", "Report"),
        Column("check", "Check"),
        Column("findings", "Findings", Kind.COUNT),
        Column("where", "Location of the gravest"),
        Column("field", "Field"),
        Column("evidence", "Evidence"),
    )
    return Table("findings", "", columns, rows)
