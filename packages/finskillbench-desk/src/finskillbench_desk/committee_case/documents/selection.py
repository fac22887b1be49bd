"""Which clauses a document has: some of every sort in which a trap lives, all of them suited to the book."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from finskillbench_desk.committee_case.documents.clauses import Carve, Clause
from finskillbench_desk.committee_case.documents.drafting import (
    BY_TERM,
    CARVED,
    GENERAL,
    Draft,
    draw_carve,
    draw_clause,
)
from finskillbench_desk.committee_case.documents.kinds import KINDS

GRANTS = 2
"""Exceptions of a document that another clause makes."""
_ODD, _EQUITY = 5, 5
"""Caps that state a timing other than the default, and caps measured against the equities."""
_BROKEN = 0.7
"""Chance that a clause is one that the book breaks, while any of these are wanted."""
_TRIES = 3


@dataclass
class Selection:
    """Clauses chosen so far, in order; `breaches` are still to come."""

    draft: Draft
    breaches: int
    phrases: list[int]
    clauses: list[Clause] = field(default_factory=list[Clause])
    odd: int = 0
    equity: int = 0

    def has(self, name: str) -> bool:
        """Whether a clause of this kind is chosen."""
        return any(clause.kind == name for clause in self.clauses)

    def add(self, name: str, carve: Carve | None = None) -> bool:
        """A clause of this kind, if one suits the book; broken by it where that is wanted and can be."""
        kind, rng = KINDS[name], self.draft.rng
        report = kind.cls == "report"
        exceeded = self.draft.book is not None and bool(rng.integers(2))
        if not report:
            exceeded = self.breaches > 0 and self.draft.book is not None and bool(rng.random() < _BROKEN)
        odd = kind.cls == "cap" and self.odd < _ODD and bool(rng.random() < 0.6)
        equity = kind.equity and self.equity < _EQUITY and bool(rng.random() < 0.8)
        for wanted in (True, False) if exceeded else (False,):
            word = self.phrases[len(self.clauses)]
            clause = draw_clause(self.draft, name, word, wanted, carve, odd, equity)
            if clause is not None:
                self.clauses.append(clause)
                self.odd += odd
                self.equity += equity
                self.breaches -= wanted and not report
                return True
        return False

    def some_of(self, names: Sequence[str], most: int, least: int) -> bool:
        """Clauses of some of these kinds; whether there are as many as there must be."""
        count = 0
        for name in names:
            if count == most:
                break
            count += self.add(name)
        return count >= least

    def carved(self, most: int, least: int) -> bool:
        """Clauses with an exception, of the first `GRANTS` made by another clause; whether there are enough.

        `by` of such an exception is the kind of the clause that prevails, or "grant".
        """
        special = self._special()
        names = sorted(self.draft.some(CARVED, len(CARVED)), key=lambda name: name not in special)
        count = 0
        for name in names:
            if count == most:
                break
            count += self._with_exception(name, special, count < GRANTS)
        return count >= least

    def _with_exception(self, name: str, special: dict[str, tuple[str, str]], grant: bool) -> bool:
        if grant and name in special:
            kind, who = special[name]
            if self.add(name, Carve(who, None, kind)):
                return True
        for _ in range(_TRIES):
            carve = draw_carve(self.draft, KINDS[name].carves)
            if self.add(name, Carve(carve.who, 1.0, "grant") if grant else carve):
                return True
        return False

    def _special(self) -> dict[str, tuple[str, str]]:
        """Clauses that are chosen and more special than a general one, by the kind of that one."""
        securities = self.draft.terms["securities"].words
        return {
            general: (kind, who)
            for kind, general, who in GENERAL
            if self.has(kind) and (who != "kind:corporate_bond" or "corporate_bond" in securities)
        }


def choose_clauses(draft: Draft, asked: Sequence[str], breaches: int) -> list[Clause] | None:
    """Clauses as they stand in the end, those in which traps live first; None where the book suits too few of them.

    After these come all others that suit it and need no further term, those asked for first.
    """
    phrases = [int(i) for i in draft.rng.permutation(2 * len(KINDS))]
    chosen = Selection(draft, breaches, phrases)
    reports = [name for name, kind in KINDS.items() if kind.cls == "report"]
    away = {*CARVED, *BY_TERM, *reports}
    caps = [name for name, kind in KINDS.items() if kind.cls == "cap" and name not in away]
    enough = (
        chosen.some_of(draft.some(BY_TERM, len(BY_TERM)), 4, 3)
        and chosen.some_of(draft.some(caps, len(caps)), 3, 2)
        and chosen.carved(5, 3)
        and chosen.some_of(draft.some(reports, len(reports)), 3, 3)
    )
    if not enough:
        return None
    rest = [name for name in KINDS if name not in {*BY_TERM, *reports} and not chosen.has(name)]
    for name in sorted(draft.some(rest, len(rest)), key=lambda name: name not in asked):
        chosen.add(name)
    return chosen.clauses
