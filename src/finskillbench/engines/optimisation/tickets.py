"""Trades of a minimum ticket: each is 0, buys or sells at least the ticket, or sells a position in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.branching import (
    TIE,
    Branch,
    BranchAndBound,
    Decision,
    Relaxation,
    relaxation,
)
from finskillbench.engines.optimisation.certified import (
    Certified,
    certify_solution,
    find,
)
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.uniqueness import Uniqueness, UniquenessProof

SLACK = 1e-9
"""A trade within this of 0 or of the ticket is one of the two."""
_ROUGH = 1e-6
"""A trade that misses the ticket by more in an interior point is left to branching."""

Formulate = Callable[[Floats, Floats], Formulation]
"""From (n,) lower and upper bounds of the weights to a convex program."""


@dataclass(frozen=True)
class Tickets:
    """What may be traded: from weights `held` (n,), in trades of 0 or of at least `least`, between two bounds (n,).

    Where a weight may not be negative, a position below the ticket may be sold in full.
    """

    held: Floats
    least: float
    lower: Floats
    upper: Floats

    @cached_property
    def least_sale(self) -> Floats:
        """(n,) the least that can be sold."""
        return np.where((self.lower == 0) & (self.held > 0), np.minimum(self.held, self.least), self.least)

    def missed(self, weights: Floats) -> Floats:
        """(n,) how far each trade is from 0 and from the least that may be bought or sold: 0 where it is allowed."""
        trades = weights - self.held
        needed = np.where(trades > 0, self.least, self.least_sale)
        return np.maximum(np.minimum(np.abs(trades), needed - np.abs(trades)), 0.0)

    def bounds(self, decisions: Integers) -> tuple[Floats, Floats]:
        """(n,) lower and upper bounds of the weights once some names are not traded, bought or sold."""
        off = decisions == Decision.OFF
        lower = np.where(decisions == Decision.LONG, self.held + self.least, self.lower)
        upper = np.where(decisions == Decision.SHORT, self.held - self.least_sale, self.upper)
        return np.where(off, self.held, lower), np.where(off, self.held, upper)

    def possible(self, decision: Decision, name: int) -> bool:
        """Whether a name can be bought or sold by a ticket, or left as it is, within its bounds."""
        least = {Decision.LONG: self.least, Decision.SHORT: -float(self.least_sale[name])}.get(decision, 0.0)
        to = self.held[name] + least
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
        """The branch without tickets for the names that are still open; proved unique where it may be an answer."""
        self.programs += 1
        formulation = self.formulate(*self.tickets.bounds(decisions))
        solution = find(formulation)
        answer = self.tickets.missed(solution.x[formulation.weights]).max() <= _ROUGH
        return relaxation(certify_solution(formulation, solution, unique=answer, polished=answer))

    def propose(self, decisions: Integers, relaxed: Relaxation) -> None:
        """The relaxation itself, where every trade is allowed."""
        if relaxed.certified is not None and self.tickets.missed(relaxed.values).max() <= SLACK:
            self.offer(relaxed.certified, decisions)

    def choose(self, decisions: Integers, relaxed: Relaxation, bound: float) -> int | None:
        """The trade that is furthest from an allowed one."""
        missed = self.tickets.missed(relaxed.values)
        return int(np.argmax(missed)) if missed.max() > SLACK else None

    def children(self, decisions: Integers, name: int) -> Iterable[Integers]:
        """Not traded, bought, sold: as far as the bounds of the name allow."""
        for decision in (Decision.OFF, Decision.LONG, Decision.SHORT):
            if self.tickets.possible(decision, name):
                child = decisions.copy()
                child[name] = decision
                yield child

    def alone(self, branch: Branch) -> UniquenessProof:
        """By the branch's own relaxation."""
        found = branch.relaxed.uniqueness if branch.relaxed else UniquenessProof(Uniqueness.UNDECIDED)
        first = not (branch.decisions != Decision.FREE).any()
        return found if first or not found.outcome.proved else UniquenessProof(Uniqueness.BRANCHES)
