"""The named checks: those that the audit asks of every domain, and those that a domain brings.

What the checks of an edition found: as text, as a table, as JSON.
"""

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
from finskillbench.edition.checks.agent_view import Bench, Seen
from finskillbench.edition.checks.episodes import certified, point_in_time, solvable, spec_agrees, unique
from finskillbench.edition.checks.labels import label_check
from finskillbench.edition.checks.leak import leak
from finskillbench.edition.checks.samples import difficulty, distinct, signature
from finskillbench.edition.checks.scores import (
    SHORTCUTS,
    best_cheat,
    bounds,
    exploits,
    floor_and_ceiling,
    floors,
    ladders,
    ordering,
    shortcuts,
)
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.findings import Check, Findings, State, findings_table

ALL, WHOLE = "all", "edition"
"""What checks that are asked of every domain, and those of the edition as a whole, are listed under."""
_COLUMNS = ("check", "domain", "state", "episodes", "findings", "warnings", "worst example")
_FIELDS = ("digest", "levels", "passed", "episodes", "count", "counts", "checks")
_SHOWN, _WORST = 5, 90


class Level(StrEnum):
    """Level of a check: integrity of the edition, correctness of its labels, or the audit of their worth."""

    INTEGRITY = "integrity"
    LABELS = "labels"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True, repr=False)
class CheckReport:
    """All checks of some levels of one edition, in their order; each names its domain, `all` or `edition`."""

    digest: str
    levels: tuple[Level, ...]
    episodes: int
    checks: tuple[Check, ...]

    def __repr__(self) -> str:
        return f"CheckReport({self.digest[:12]}: {self.count} findings in {self.episodes} episodes)"

    def __str__(self) -> str:
        """The checks by domain, a line each, with their first findings, and a line that sums them up."""
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
                _number(check, State.FAIL),
                _number(check, State.WARN),
                _worst(check),
            )
            for check in self.checks
        ]
        return notebook.table(_COLUMNS, rows, caption=repr(self))

    def to_polars(self) -> pl.DataFrame:
        """One row per finding or warning: check, domain, severity, episode, field and evidence."""
        return findings_table(self.checks)

    @property
    def passed(self) -> bool:
        """Whether no check failed; warnings and skipped checks do not fail an edition."""
        return all(check.state is not State.FAIL for check in self.checks)

    @property
    def count(self) -> int:
        """Number of findings, warnings apart."""
        return sum(_number(check, State.FAIL) for check in self.checks)

    @property
    def counts(self) -> dict[State, int]:
        """Number of checks by state, in the order PASS, WARN, FAIL, SKIP."""
        return {state: sum(check.state is state for check in self.checks) for state in State}

    def to_json(self) -> dict[str, Any]:
        """JSON values; the same edition gives the same bytes."""
        return msgspec.json.decode(msgspec.json.encode({name: getattr(self, name) for name in _FIELDS}))


def _lines(checks: Sequence[Check], width: int) -> Iterator[str]:
    """The checks of one domain; one line for all if the edition has nothing for any of them."""
    reasons = {check.reason for check in checks if not check.findings}
    if len(checks) > 1 and len(reasons) == 1 and all(check.state is State.SKIP for check in checks):
        yield f"{checks[0].state:<5} {f'all {len(checks)}':<{width}} {reasons.pop()}"
        return
    for check in checks:
        yield f"{check.state:<5} {check.name:<{width}} {check.reason or _in_words(check.figures)}".rstrip()
        for finding in check.findings[:_SHOWN]:
            field = f"{finding.field}: " if finding.field else ""
            yield f"      {finding.state} {finding.where}: {field}{finding.message}"
        if (hidden := len(check.findings) - _SHOWN) > 0:
            yield f"      and {hidden} more; --json has all"


def _in_words(figures: Mapping[str, Any]) -> str:
    """Figures on one line; nested ones are left to the JSON report."""
    plain = {name: value for name, value in figures.items() if not isinstance(value, Mapping | list | tuple)}
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in plain.items()
    )


def _number(check: Check, state: State) -> int:
    return sum(finding.state is state for finding in check.findings)


def _worst(check: Check) -> str:
    ordered = sorted(check.findings, key=lambda one: one.state is not State.FAIL)
    if not ordered:
        return check.reason
    text = " ".join(part for part in (f"{ordered[0].where}:", ordered[0].field, ordered[0].message) if part)
    return text if len(text) <= _WORST else f"{text[: _WORST - 3]}..."


Look = Callable[[Seen, Findings], None]
"""Looks at one episode."""
Conclude = Callable[[str, Findings], None]
"""`(sub_task, findings)`: judges what looking at all episodes of a subtask has left in the figures."""
Survey = Callable[[Bench, Sequence[Episode], Findings], None]
"""Looks at all episodes of a subtask together."""

LABELS = "rederived"
"""The labels as `data validate` checks them, where the audit lists them."""


@dataclass(frozen=True, slots=True)
class AuditCheck:
    """One check that is asked of every domain: `name`, what it `asks`, and how it looks.

    look : at each episode by itself.
    conclude : on a subtask, after every episode was looked at.
    survey : of the episodes of a subtask together.
    needs_truth : whether an edition without truth leaves nothing to look at.
    """

    name: str
    asks: str
    look: Look | None = None
    conclude: Conclude | None = None
    survey: Survey | None = None
    needs_truth: bool = True


AUDITS: Mapping[str, AuditCheck] = {
    check.name: check
    for check in (
        AuditCheck("solvable", "does the truth follow from what an agent can see", look=solvable),
        AuditCheck("leak", "can the truth be read instead of computed", look=leak),
        AuditCheck(
            "point_in_time", "does any tool return what was not known yet", look=point_in_time, needs_truth=False
        ),
        AuditCheck("certified", "does every label carry a proof", look=certified),
        AuditCheck("unique", "is every optimum the only one", look=unique),
        AuditCheck("spec_agrees", "do the episodes state what the truth was made by", spec_agrees, needs_truth=False),
        AuditCheck("distinct", "are the episodes as many tasks as they count", survey=distinct),
        AuditCheck("difficulty", "are harder tasks more work", survey=difficulty),
        AuditCheck("signature", "is a label told by how its input looks", survey=signature),
        AuditCheck("exploits", "does cheating pay", look=exploits, conclude=best_cheat),
        AuditCheck(
            SHORTCUTS, "does leaving work out pay, and less so in harder tiers", look=shortcuts, conclude=bounds
        ),
        AuditCheck("floor_and_ceiling", "do right answers score 1 and idle ones 0", floor_and_ceiling, floors),
        AuditCheck("ordering", "do better answers score more", look=ordering, conclude=ladders),
    )
}
"""The checks of every domain, in the order of the audit's report."""


def checks_of(domain: Domain) -> dict[str, DomainCheck]:
    """The checks of a domain that `data validate` runs, in their order: its own, then the labels of its subtasks.

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


def brought_by(domain: Domain) -> dict[str, list[DomainCheck]]:
    """What the audit runs of a domain: its checks and its audits, by names of one form."""
    found: dict[str, list[DomainCheck]] = {}
    for name, check in (*domain.checks.items(), *domain.audits.items()):
        found.setdefault(name.replace(" ", "_"), []).append(check)
    return found


def names_of_audits(names: Iterable[str] | None = None) -> tuple[str, ...]:
    """The checks of an audit of editions with episodes of some domains, or of any, in the order of its report."""
    those = [one.name for one in domains()] if names is None else registered(names)
    brought = (name for one in those for name in brought_by(domain(one)))
    return tuple(dict.fromkeys((LABELS, *AUDITS, *brought)))


def refuse_unknown_audits(checks: Collection[str], names: Iterable[str] | None = None) -> None:
    """Raise InputError for a check that does not exist for some domains, or for any."""
    known = names_of_audits(names)
    if unknown := sorted(set(checks) - set(known)):
        raise InputError(f"there is no check {', '.join(unknown)}; choose from: {', '.join(known)}")


def registered(names: Iterable[str]) -> list[str]:
    """Those names that are of registered domains, each once."""
    known = {one.name for one in domains()}
    return [name for name in dict.fromkeys(names) if name in known]
