"""Trades of a minimum ticket: each is 0, or a purchase or a sale of at least the ticket."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench.engines.optimisation.branching import (
    TIE,
    Branch,
    BranchAndBound,
    Decision,
    Relaxation,
    relaxation,
)
from finskillbench.engines.optimisation.certified import Certified, UndecidedError, certify
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.uniqueness import Uniqueness, UniquenessProof

SLACK = 1e-9
"""A trade within this of 0 or of the ticket is one of the two."""

Formulate = Callable[[Floats, Floats], Formulation]
"""From (n,) lower and upper bounds of the weights to a convex program."""


@dataclass(frozen=True)
class Tickets:
    """What may be traded: from weights `held` (n,), in trades of 0 or of at least `least`, between two bounds (n,)."""

    held: Floats
    least: float
    lower: Floats
    upper: Floats

    def undersized(self, weights: Floats) -> Booleans:
        """(n,) whether a trade is neither 0 nor at least the ticket."""
        size = np.abs(weights - self.held)
        return (size > SLACK) & (size < self.least - SLACK)

    def bounds(self, decisions: Integers) -> tuple[Floats, Floats]:
        """(n,) lower and upper bounds of the weights once some names are not traded, bought or sold."""
        off = decisions == Decision.OFF
        lower = np.where(decisions == Decision.LONG, self.held + self.least, self.lower)
        upper = np.where(decisions == Decision.SHORT, self.held - self.least, self.upper)
        return np.where(off, self.held, lower), np.where(off, self.held, upper)

    def possible(self, decision: Decision, name: int) -> bool:
        """Whether a name can be bought or sold by a ticket, or left as it is, within its bounds."""
        to = self.held[name] + {Decision.LONG: self.least, Decision.SHORT: -self.least}.get(decision, 0.0)
        return bool(self.lower[name] - SLACK <= to <= self.upper[name] + SLACK)

    def exact(self, weights: Floats) -> Floats:
        """(n,) the weights, with what is held where a trade is nothing but rounding."""
        return np.where(np.abs(weights - self.held) <= SLACK, self.held, weights)


def optimise_with_tickets(formulate: Formulate, tickets: Tickets, *, most_programs: int = 400) -> Certified:
    """Minimise a convex program over the trades that tickets allow, and prove the optimum and that it is the only one.

    Raises
    ------
    InfeasibleError : no trades of the minimum ticket keep the program's limits.
    UndecidedError : the value cannot be proved, or not within `most_programs`.
    """
    best = _Search(formulate, tickets, most_programs).search(len(tickets.held))
    return replace(best, weights=tickets.exact(best.weights))


class _Search(BranchAndBound):
    """Which names are not traded, bought or sold; a branch bounds its weights and needs no variable of its own.

    A branch whose relaxation trades no less than the ticket is closed by it. The first to be found of best-first
    branches is the optimum, so that nothing has to be rounded.
    """

    limits = "minimum ticket"

    def __init__(self, formulate: Formulate, tickets: Tickets, most_programs: int) -> None:
        super().__init__(reach=TIE)
        self.formulate, self.tickets, self.most_programs = formulate, tickets, most_programs

    def relax(self, decisions: Integers) -> Relaxation:
        """The branch without tickets for the names that are still open."""
        return relaxation(self._certify(decisions, unique=False))

    def _certify(self, decisions: Integers, *, unique: bool) -> Certified:
        self.programs += 1
        return certify(self.formulate(*self.tickets.bounds(decisions)), unique=unique)

    def propose(self, decisions: Integers, relaxed: Relaxation) -> None:
        """The relaxation itself, where it trades no less than the ticket."""
        if relaxed.certified is not None and not self.tickets.undersized(relaxed.values).any():
            self.offer(relaxed.certified, decisions)

    def choose(self, decisions: Integers, relaxed: Relaxation, bound: float) -> int | None:
        """The undersized trade that is furthest from both 0 and the ticket."""
        undersized = self.tickets.undersized(relaxed.values)
        size = np.abs(relaxed.values - self.tickets.held)
        score = np.where(undersized, np.minimum(size, self.tickets.least - size), 0.0)
        return int(np.argmax(score)) if score.max() > 0.0 else None

    def children(self, decisions: Integers, name: int) -> Iterable[Integers]:
        """Not traded, bought, sold: as far as the bounds of the name allow."""
        for decision in (Decision.OFF, Decision.LONG, Decision.SHORT):
            if self.tickets.possible(decision, name):
                child = decisions.copy()
                child[name] = decision
                yield child

    def alone(self, branch: Branch) -> UniquenessProof:
        """By the branch's relaxation, solved once more with the question where there are other branches."""
        try:
            found = self._certify(branch.decisions, unique=True).uniqueness
        except UndecidedError:
            return UniquenessProof(Uniqueness.UNDECIDED)
        if not found.outcome.proved or not (branch.decisions != Decision.FREE).any():
            return found
        return UniquenessProof(Uniqueness.BRANCHES)
