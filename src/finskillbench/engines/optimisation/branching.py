"""Best-first branch and bound over holding decisions."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import count

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.certified import ACCEPTED_GAP, Certified, InfeasibleError, UndecidedError
from finskillbench.engines.optimisation.uniqueness import Uniqueness, UniquenessProof

TIE = 1e-9
"""Branches with a bound this close to the best value may hold other optima."""


class Decision(IntEnum):
    """Decision about one name."""

    FREE = 0
    OFF = 1
    LONG = 2
    SHORT = 3


@dataclass(frozen=True)
class Relaxation:
    """Solved convex relaxation of a branch.

    `bound` holds for every portfolio of the branch; `values` (n,) are rounded and branched on; `certified` is the
    optimum if it may be an answer.
    """

    bound: float
    values: Floats
    uniqueness: UniquenessProof
    certified: Certified | None = None


def relaxation(certified: Certified) -> Relaxation:
    """Wrap a certified optimum."""
    return Relaxation(certified.optimality.lower_bound, certified.weights, certified.uniqueness, certified)


@dataclass(frozen=True)
class Branch:
    """A closed or open branch with its proved bound; `relaxed` is None if never solved."""

    bound: float
    decisions: Integers
    relaxed: Relaxation | None


class BranchAndBound(ABC):
    """Abstract search; subclasses define relaxation, rounding and branching.

    A branch is closed if its bound is `reach` above the best value (below if `reach` is negative), or without open
    decisions. The optimum is unique if no other branch is within `TIE` and the closing relaxation has a unique optimum.

    Attributes
    ----------
    limits : names of the decided limits, for messages.
    most_programs : maximum number of solved programs.
    accepted_gap : largest remaining gap.
    unique : check uniqueness.
    """

    limits: str
    most_programs: int

    def __init__(self, *, reach: float, accepted_gap: float = ACCEPTED_GAP, unique: bool = True) -> None:
        self.reach, self.accepted_gap, self.unique = reach, accepted_gap, unique
        self.programs = 0
        self.best: Certified | None = None
        self.decided: Integers | None = None
        self._tried: set[bytes] = set()
        self._failure: InfeasibleError | UndecidedError = UndecidedError(
            "no branch gave a portfolio with an allowed number of names"
        )

    @abstractmethod
    def relax(self, decisions: Integers) -> Relaxation:
        """Solve and count a branch's relaxation; raises as `certify`."""

    @abstractmethod
    def propose(self, decisions: Integers, relaxed: Relaxation) -> None:
        """Offer portfolios made from a relaxation."""

    @abstractmethod
    def choose(self, decisions: Integers, relaxed: Relaxation, bound: float) -> int | None:
        """Return the name to branch on; None closes the branch."""

    @abstractmethod
    def children(self, decisions: Integers, name: int) -> Iterable[Integers]:
        """Return the branches of a decision on one name."""

    @abstractmethod
    def alone(self, branch: Branch) -> UniquenessProof:
        """Prove uniqueness, given that no other branch is near."""

    def continues(self) -> bool:
        """Return True; raise `UndecidedError` after `most_programs`."""
        if self.programs >= self.most_programs:
            raise UndecidedError(f"{self.limits} not settled after {self.most_programs} programs")
        return True

    @property
    def value(self) -> float:
        """Best value so far, initially infinite."""
        return np.inf if self.best is None else self.best.value

    def first_try(self, key: bytes) -> bool:
        """Record decisions; False if tried before."""
        known = key in self._tried
        self._tried.add(key)
        return not known

    def offer(self, candidate: Certified, decisions: Integers) -> None:
        """Accept a feasible portfolio that improves on the best."""
        if candidate.value < self.value:
            self.best, self.decided = candidate, decisions

    def search(self, names: int, root: Relaxation | None = None) -> Certified:
        """Return the best of all branches; raise `InfeasibleError` if there is none, `UndecidedError` if unproved."""
        order = count()
        free = np.full(names, Decision.FREE, dtype=np.int8)
        queue: list[tuple[float, int, Integers]] = [(-np.inf, next(order), free)]
        closed: list[Branch] = []
        while queue and queue[0][0] < self.value + self.reach and self.continues():
            bound, _, decisions = heapq.heappop(queue)
            try:
                relaxed, root = root or self.relax(decisions), None
            except InfeasibleError as error:
                self._failure = error
                continue
            except UndecidedError as error:  # only the parent's bound is known
                self._failure = error
                closed.append(Branch(bound, decisions, None))
                continue
            bound = max(bound, relaxed.bound)
            self.propose(decisions, relaxed)
            pick = self.choose(decisions, relaxed, bound)
            if bound >= self.value + self.reach or pick is None:
                closed.append(Branch(bound, decisions, relaxed))
                continue
            for child in self.children(decisions, pick):
                heapq.heappush(queue, (bound, next(order), child))
        return self._settled(closed + [Branch(bound, decisions, None) for bound, _, decisions in queue])

    def _settled(self, closed: list[Branch]) -> Certified:
        if self.best is None:
            failure = self._failure
            if isinstance(failure, InfeasibleError):
                ray = failure.proof, failure.multipliers, failure.ray
                raise InfeasibleError(*ray, complete=self.programs == 1)
            raise failure
        best = self.best
        bound = min([branch.bound for branch in closed] + [best.value])
        if best.value - bound > self.accepted_gap:
            raise UndecidedError(
                f"{self.limits} leave a gap of {best.value - bound:.1e} after {self.programs} programs"
            )
        near = [branch for branch in closed if branch.bound <= best.value + TIE]
        uniqueness = UniquenessProof(Uniqueness.UNDECIDED if self.unique else Uniqueness.NOT_CHECKED)
        if self.unique and len(near) == 1:
            uniqueness = self.alone(near[0])
        optimality = replace(best.optimality, lower_bound=bound, gap=best.value - bound)
        return replace(best, optimality=optimality, uniqueness=uniqueness, nodes=self.programs)
