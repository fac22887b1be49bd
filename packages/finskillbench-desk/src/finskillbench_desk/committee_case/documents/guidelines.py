"""Guidelines before they are words: clauses, terms, grants, amendments, and the rules that are in force in the end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from finskillbench_desk.committee_case.documents.clauses import Carve, Clause, Timing, coded
from finskillbench_desk.committee_case.documents.kinds import KINDS
from finskillbench_desk.committee_case.documents.terms import Term, filters
from finskillbench_desk.engines.guidelines.language import Rule

Operation: TypeAlias = Literal[
    "number",
    "basis",
    "timing",
    "replace",
    "delete",
    "insert",
    "exception_add",
    "exception_drop",
    "definition_in",
    "definition_out",
    "definition_number",
]


class Trap(StrEnum):
    """How guidelines are misread."""

    DEFINITION = "definition"
    AMENDMENT = "amendment"
    EXCEPTION = "exception"
    REPORTING = "reporting"
    BASIS = "basis"
    TIMING = "timing"


TRAP_WORDS: Mapping[Trap, str] = {
    Trap.DEFINITION: "defined terms are taken for what they sound like",
    Trap.AMENDMENT: "the original text is coded and the amendments are not",
    Trap.EXCEPTION: "exceptions, and clauses that prevail over others, are left out",
    Trap.REPORTING: "reporting thresholds are coded as limits",
    Trap.BASIS: "shares of the equities are measured against net asset value",
    Trap.TIMING: "limits that are tested at purchase are tested at all times",
}


@dataclass(frozen=True, slots=True)
class Grant:
    """A clause that changes another one: it raises the limit for somebody, or gives precedence to a third clause."""

    number: str
    target: str
    who: str
    limit: float | None
    prevails: str = ""
    frame: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """One item of an amendment.

    `clause` is the clause as it stands afterwards, None where it is deleted; `term` likewise for a definition. `words`
    are what the sentence says beside: the old value and the new one.
    """

    number: str
    operation: Operation
    target: str
    clause: Clause | None = None
    term: Term | None = None
    words: Mapping[str, Any] = field(default_factory=dict[str, Any])
    frame: int = 0


@dataclass(frozen=True, slots=True)
class Style:
    """How one document says what all of them say: names, the sign of per cent, phrases by position."""

    percent: str
    nav: str
    equity: str
    manager: str
    fund: str
    client: str
    firm: str
    picks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Guidelines:
    """Guidelines: as first agreed (`clauses`, `terms`, `grants`), and what amendments made of them.

    Attributes
    ----------
    default : when a cap is tested that does not say so.
    amendments : items by amendment, in order.
    sections : headings in the order in which clauses are numbered.
    text : the whole document.
    """

    style: Style
    default: Timing
    terms: Mapping[str, Term]
    sections: tuple[str, ...]
    clauses: tuple[Clause, ...]
    grants: tuple[Grant, ...]
    amendments: tuple[tuple[Item, ...], ...]
    text: str = ""

    @property
    def paragraphs(self) -> int:
        """Numbered paragraphs."""
        return sum(re.match(r"A?\d+\.\d+ ", line) is not None for line in self.text.splitlines())

    def in_force(self, amended: bool = True) -> tuple[tuple[Clause, ...], Mapping[str, Term]]:
        """Clauses and terms after all amendments, or before any."""
        clauses = {clause.number: clause for clause in self.clauses}
        terms = dict(self.terms)
        for item in (item for items in self.amendments for item in items if amended):
            if item.term is not None:
                terms[item.term.key] = item.term
            elif item.clause is None:
                clauses.pop(item.target)
            else:
                clauses[item.target] = item.clause
        return tuple(clauses.values()), terms

    def rules(self, misread: frozenset[Trap] = frozenset()) -> tuple[Rule, ...]:
        """The coded rules in force, or those of a reader who falls for some traps."""
        clauses, terms = self.in_force(Trap.AMENDMENT not in misread)
        meant = filters(dict(terms), Trap.DEFINITION in misread)
        out: list[Rule] = []
        for each in clauses:
            clause = self._with_grants(each)
            if Trap.EXCEPTION in misread:
                clause = clause.amended(exceptions=(), extra={**clause.extra, "spared": False})
            if Trap.BASIS in misread:
                clause = clause.amended(basis="nav")
            rule = coded(KINDS[clause.kind], clause, meant, self.default)
            rule = replace(rule, effect="limit") if Trap.REPORTING in misread else rule
            out.append(replace(rule, when="always") if Trap.TIMING in misread else rule)
        return tuple(out)

    def _with_grants(self, clause: Clause) -> Clause:
        """The clause with what other clauses grant from it; those come first, since they prevail."""
        granted = tuple(
            Carve(grant.who, grant.limit, grant.number) for grant in self.grants if grant.target == clause.number
        )
        return clause.amended(exceptions=(*granted, *clause.exceptions)) if granted else clause
