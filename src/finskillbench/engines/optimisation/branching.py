"""Best-first branch and bound over decisions on names: not held, or held by enough to count."""

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
"""Branches whose bound is this close to the best portfolio's value may hold other optima."""


class Decision(IntEnum):
    """What is decided about one name."""

    FREE = 0
    OFF = 1
    LONG = 2
    SHORT = 3


@dataclass(frozen=True)
class Relaxation:
    """A branch's convex program without what is still open.

    `bound` is proved for every portfolio of the branch; `values` (n,) are what is rounded and branched on;
    `uniqueness` says whether the branch holds other optima; `certified` is the optimum where it may be an answer.
    """

    bound: float
    values: Floats
    uniqueness: UniquenessProof
    certified: Certified | None = None


def relaxation(certified: Certified) -> Relaxation:
    """A relaxation of weights that is certified itself."""
    return Relaxation(certified.optimality.lower_bound, certified.weights, certified.uniqueness, certified)


@dataclass(frozen=True)
class Branch:
    """A branch that was closed or left, with its proved bound; `relaxed` is None where it was never solved."""

    bound: float
    decisions: Integers
    relaxed: Relaxation | None


class BranchAndBound(ABC):
    """The search; a caller states its relaxation, how to make a portfolio of one, and what to branch on.

    A branch's relaxation gives its proved bound, and, rounded, a set of decisions whose convex program gives a
    portfolio. A branch is closed when its bound is `reach` above the best portfolio's value (below it where `reach` is
    negative), or when nothing is left to branch on. The optimum is unique when no other branch comes within `TIE` and
    the closing relaxation has one optimum itself.

    Attributes
    ----------
    limits : the limits that take decisions, for messages.
    most_programs : programs after which the search is given up.
    accepted_gap : largest gap that the branches may leave.
    unique : whether to ask if the optimum is the only one.
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
        """Solve a branch's relaxation, and count it.

        Raises
        ------
        InfeasibleError, UndecidedError : as `certify`.
        """

    @abstractmethod
    def propose(self, decisions: Integers, relaxed: Relaxation) -> None:
        """Offer portfolios made from a relaxation."""

    @abstractmethod
    def choose(self, decisions: Integers, relaxed: Relaxation, bound: float) -> int | None:
        """The open name on which to branch; None closes the branch."""

    @abstractmethod
    def children(self, decisions: Integers, name: int) -> Iterable[Integers]:
        """The branches that deciding about one name leaves."""

    @abstractmethod
    def alone(self, branch: Branch) -> UniquenessProof:
        """Whether the optimum is the only one, given that no other branch comes near it."""

    def continues(self) -> bool:
        """Whether another branch may be opened.

        Raises
        ------
        UndecidedError : after `most_programs`.
        """
        if self.programs >= self.most_programs:
            raise UndecidedError(f"{self.limits} not settled after {self.most_programs} programs")
        return True

    @property
    def value(self) -> float:
        """The best portfolio's value, infinite before there is one."""
        return np.inf if self.best is None else self.best.value

    def first_try(self, key: bytes) -> bool:
        """Whether decisions are tried for the first time."""
        known = key in self._tried
        self._tried.add(key)
        return not known

    def offer(self, candidate: Certified, decisions: Integers) -> None:
        """Take a portfolio that keeps every limit if it is better than the best so far."""
        if candidate.value < self.value:
            self.best, self.decided = candidate, decisions

    def search(self, names: int, root: Relaxation | None = None) -> Certified:
        """The best portfolio of all branches; `root` is the first relaxation where it is solved already.

        Raises
        ------
        InfeasibleError, UndecidedError : where there is none, or its value cannot be proved.
        """
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
            except UndecidedError as error:  # all that is known of the branch is what its parent says
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
        """The best portfolio, with the least bound of all branches."""
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
        uniqueness = UniquenessProof(Uniqueness.UNDECIDED if self.unique else Uniqueness.NOT_ASKED)
        if self.unique and len(near) == 1:
            uniqueness = self.alone(near[0])
        optimality = replace(best.optimality, lower_bound=bound, gap=best.value - bound)
        return replace(best, optimality=optimality, uniqueness=uniqueness, nodes=self.programs)
