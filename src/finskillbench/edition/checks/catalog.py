"""Registry of named checks, shared and per domain, and the report of their findings as text, table or JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any

import msgspec
import polars as pl

from finskillbench import notebook
from finskillbench.domains import domain, domains
from finskillbench.domains.base import Domain, DomainCheck
from finskillbench.edition.checks import scores
from finskillbench.edition.checks.agent_view import CheckContext, EpisodeView
from finskillbench.edition.checks.episodes import (
    check_certified,
    check_definitions,
    check_point_in_time,
    check_solvable,
    check_unique,
)
from finskillbench.edition.checks.labels import label_check
from finskillbench.edition.checks.leak import check_leak
from finskillbench.edition.checks.planted import check_faults
from finskillbench.edition.checks.samples import check_difficulty, check_distinct, check_signature
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.findings import Check, CheckState, Findings, findings_table

ALL, WHOLE = "all", "edition"
"""Domains under which checks of all domains, and those of the whole edition, are listed."""
_COLUMNS = ("check", "domain", "state", "episodes", "findings", "warnings", "worst example")
_FIELDS = ("digest", "levels", "passed", "episodes", "count", "counts", "checks")
_SHOWN, _WORST = 5, 90


class Level(StrEnum):
    """Level of a check: integrity of the edition, correctness of its labels, or audit of their validity."""

    INTEGRITY = "integrity"
    LABELS = "labels"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True, repr=False)
class CheckReport:
    """Results of all checks of some levels, in order; each names its domain, `all` or `edition`."""

    digest: str
    levels: tuple[Level, ...]
    episodes: int
    checks: tuple[Check, ...]

    def __repr__(self) -> str:
        return f"CheckReport({self.digest[:12]}: {self.count} findings in {self.episodes} episodes)"

    def __str__(self) -> str:
        """Return one line per check with its first findings, by domain, and a closing summary line."""
        lines: list[str] = []
        width = max((len(check.name) for check in self.checks), default=0)
        for title, checks in groupby(self.checks, key=lambda check: check.domain):
            lines += [title.replace("_", " "), *_lines(list(checks), width)]
        states = ", ".join(f"{count} {state}" for state, count in self.counts.items() if count)
        return "\n".join([*lines, f"{self.episodes} episodes, {self.count} findings: {states}"])

    def _repr_html_(self) -> str:
        rows = [
            (
                check.name,
                check.domain,
                check.state,
                check.figures.get("episodes", ""),
                _number(check, CheckState.FAIL),
                _number(check, CheckState.WARN),
                _worst(check),
            )
            for check in self.checks
        ]
        return notebook.html_table(_COLUMNS, rows, caption=repr(self))

    def to_polars(self) -> pl.DataFrame:
        """Return one row per finding or warning: check, domain, severity, episode, field and evidence."""
        return findings_table(self.checks)

    @property
    def passed(self) -> bool:
        """True if no check failed; warnings and skipped checks are allowed."""
        return all(check.state is not CheckState.FAIL for check in self.checks)

    @property
    def count(self) -> int:
        """Number of findings, without warnings."""
        return sum(_number(check, CheckState.FAIL) for check in self.checks)

    @property
    def counts(self) -> dict[CheckState, int]:
        """Number of checks by state, in the order PASS, WARN, FAIL, SKIP."""
        return {state: sum(check.state is state for check in self.checks) for state in CheckState}

    def to_json(self) -> dict[str, Any]:
        """Return JSON values; the same edition gives the same bytes."""
        return msgspec.json.decode(msgspec.json.encode({name: getattr(self, name) for name in _FIELDS}))


def _lines(checks: Sequence[Check], width: int) -> Iterator[str]:
    """Format the checks of one domain; one line for all if the edition has nothing for any of them."""
    reasons = {check.reason for check in checks if not check.findings}
    if len(checks) > 1 and len(reasons) == 1 and all(check.state is CheckState.SKIP for check in checks):
        yield f"{checks[0].state:<5} {f'all {len(checks)}':<{width}} {reasons.pop()}"
        return
    for check in checks:
        yield f"{check.state:<5} {check.name:<{width}} {check.reason or _figures_line(check.figures)}".rstrip()
        for finding in check.findings[:_SHOWN]:
            field = f"{finding.field}: " if finding.field else ""
            yield f"      {finding.state} {finding.where}: {field}{finding.message}"
        if (hidden := len(check.findings) - _SHOWN) > 0:
            yield f"      and {hidden} more; --json has all"


def _figures_line(figures: Mapping[str, Any]) -> str:
    plain = {name: value for name, value in figures.items() if not isinstance(value, Mapping | list | tuple)}
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in plain.items()
    )


def _number(check: Check, state: CheckState) -> int:
    return sum(finding.state is state for finding in check.findings)


def _worst(check: Check) -> str:
    ordered = sorted(check.findings, key=lambda one: one.state is not CheckState.FAIL)
    if not ordered:
        return check.reason
    text = " ".join(part for part in (f"{ordered[0].where}:", ordered[0].field, ordered[0].message) if part)
    return text if len(text) <= _WORST else f"{text[: _WORST - 3]}..."


Look = Callable[[EpisodeView, Findings], None]
"""Examines one episode."""
Conclude = Callable[[str, Findings], None]
"""`(sub_task, findings)`: evaluates figures collected over all episodes of a subtask."""
Survey = Callable[[CheckContext, Sequence[Episode], Findings], None]
"""Examines all episodes of a subtask together."""

LABELS = "rederived"
"""Name under which the audit lists the label checks of `data validate`."""


@dataclass(frozen=True, slots=True)
class AuditCheck:
    """One check of every domain, with the `question` that it answers.

    look : examines each episode separately.
    conclude : evaluates a subtask after all its episodes.
    survey : examines the episodes of a subtask together.
    needs_truth : True if the check is skipped without truth.
    """

    name: str
    question: str
    look: Look | None = None
    conclude: Conclude | None = None
    survey: Survey | None = None
    needs_truth: bool = True


AUDITS: Mapping[str, AuditCheck] = {
    check.name: check
    for check in (
        AuditCheck("solvable", "does the truth follow from what an agent can see", look=check_solvable),
        AuditCheck("leak", "can the truth be read instead of computed", look=check_leak),
        AuditCheck(
            "point_in_time",
            "does any tool return data from after as_of_date",
            look=check_point_in_time,
            needs_truth=False,
        ),
        AuditCheck("certified", "does every label carry a proof", look=check_certified),
        AuditCheck("unique", "is every optimum the only one", look=check_unique),
        AuditCheck(
            "spec_agrees",
            "do the episodes state the definitions behind the truth",
            check_definitions,
            needs_truth=False,
        ),
        AuditCheck("distinct", "are the episodes distinct tasks", survey=check_distinct),
        AuditCheck("difficulty", "are harder tasks more work", survey=check_difficulty),
        AuditCheck("signature", "does the shape of inputs predict labels", survey=check_signature),
        AuditCheck("faults", "can an agent tell that a faulty skill is wrong", look=check_faults),
        AuditCheck("exploits", "does cheating pay", look=scores.check_exploits, conclude=scores.conclude_exploits),
        AuditCheck(
            scores.SHORTCUTS,
            "do shortcuts pay, and less so in harder tiers",
            look=scores.check_shortcuts,
            conclude=scores.conclude_shortcuts,
        ),
        AuditCheck(
            "floor_and_ceiling",
            "do right answers score 1 and idle ones 0",
            scores.check_floor_and_ceiling,
            scores.conclude_floor_and_ceiling,
        ),
        AuditCheck(
            "ordering", "do better answers score more", look=scores.check_ordering, conclude=scores.conclude_ordering
        ),
    )
}
"""Checks of every domain, in report order."""


def checks_of(domain: Domain) -> dict[str, DomainCheck]:
    """Return the domain's own checks, then its label checks; raises `InputError` if two share a name."""
    for subtask in domain.subtasks:
        if subtask.name in domain.checks:
            raise InputError(
                f"domain {domain.name}: its check {subtask.name} is called like its subtask {subtask.name}, whose "
                "labels would take its place; rename the check"
            )
    return {**domain.checks, **{one.name: label_check(one) for one in domain.subtasks}}


def domain_checks(domain: Domain) -> dict[str, list[DomainCheck]]:
    """Return the domain's checks and audits for `audit`, by normalised name."""
    found: dict[str, list[DomainCheck]] = {}
    for name, check in (*domain.checks.items(), *domain.audits.items()):
        found.setdefault(name.replace(" ", "_"), []).append(check)
    return found


def names_of_audits(names: Iterable[str] | None = None) -> tuple[str, ...]:
    """Return names of audit checks for some domains, or for all, in report order."""
    those = [one.name for one in domains()] if names is None else registered_names(names)
    domain_specific = (name for one in those for name in domain_checks(domain(one)))
    return tuple(dict.fromkeys((LABELS, *AUDITS, *domain_specific)))


def refuse_unknown_audits(checks: Collection[str], names: Iterable[str] | None = None) -> None:
    """Raise InputError for a check that does not exist for some domains, or for any."""
    known = names_of_audits(names)
    if unknown := sorted(set(checks) - set(known)):
        raise InputError(f"there is no check {', '.join(unknown)}; choose from: {', '.join(known)}")


def registered_names(names: Iterable[str]) -> list[str]:
    """Return the names of registered domains among `names`, without duplicates."""
    known = {one.name for one in domains()}
    return [name for name in dict.fromkeys(names) if name in known]
