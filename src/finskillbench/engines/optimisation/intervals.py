"""Weights that each lie in one of several intervals: as held, traded by a ticket at least, nothing or above a floor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.branching import (
    TIE,
    Branch,
    BranchAndBound,
    Relaxation,
    relaxation,
)
from finskillbench.engines.optimisation.certified import (
    Certified,
    InfeasibleError,
    UndecidedError,
    certify,
    find,
    proved,
)
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.uniqueness import Uniqueness, UniquenessProof

SLACK = 1e-9
"""A weight within this of an interval lies in it."""
_CLOSE = 1e-6
"""A weight of an interior point this close to an interval counts as inside; the gap that is left is proved."""
_RAISED = 0.1
"""Share of the way across a gap from which a rounding goes up, at the second try."""
Interval = tuple[float, float]


def common(first: Iterable[Interval], second: Iterable[Interval]) -> list[Interval]:
    """The intersection of two unions of intervals, ascending; what only touches is a point."""
    pairs = ((max(a, c), min(b, d)) for a, b in first for c, d in second)
    return sorted((low, high) for low, high in pairs if low <= high)


def ticket_intervals(held: float, ticket: float) -> list[Interval]:
    """The weights that a name may be traded to: left alone, sold or bought by a ticket at least, or sold in full."""
    if ticket <= 0:
        return [(-np.inf, np.inf)]
    points = sorted({0.0, held} if abs(held) < ticket else {held})
    return sorted([(-np.inf, held - ticket), *((one, one) for one in points), (held + ticket, np.inf)])


@dataclass(frozen=True)
class Intervals:
    """(n, k) ends of the intervals of n weights, ascending; a row of fewer than k repeats its last one."""

    lower: Floats
    upper: Floats
    count: Integers

    @classmethod
    def of(cls, allowed: Sequence[Sequence[Interval]]) -> Intervals:
        """The intervals of each name, ascending and apart.

        Raises
        ------
        ValueError : for a name without any.
        """
        if not all(allowed):
            raise ValueError("a weight without an allowed interval")
        most = max(len(one) for one in allowed)
        padded = np.array([[*one, *[one[-1]] * (most - len(one))] for one in allowed], dtype=np.float64)
        return cls(padded[:, :, 0], padded[:, :, 1], np.array([len(one) for one in allowed]))

    def ends(self, decisions: Integers) -> tuple[Floats, Floats]:
        """(n,) least and greatest weights where `decisions` (2n,) count the intervals cut off below and above."""
        n, names = len(self.count), np.arange(len(self.count))
        last = self.count - 1 - decisions[n:]
        return self.lower[names, decisions[:n]], self.upper[names, last]

    def outside(self, weights: Floats) -> Floats:
        """(n,) distance of each weight from the nearest of its intervals, 0 within `SLACK`."""
        away = np.maximum(self.lower - weights[:, None], weights[:, None] - self.upper).min(axis=1)
        return np.where(away > _CLOSE, away, 0.0)

    def below(self, weights: Floats) -> Integers:
        """(n,) the last interval that begins at or below each weight."""
        begun = self.lower <= weights[:, None] + SLACK
        return np.maximum(np.minimum(begun.sum(axis=1), self.count) - 1, 0)

    def rounded(self, weights: Floats, raised: float) -> Integers:
        """(2n,) decisions that leave each weight one interval: the one above from a share `raised` of a gap on."""
        names, below = np.arange(len(self.count)), self.below(weights)
        above = np.minimum(below + 1, self.count - 1)
        start, stop = self.upper[names, below], self.lower[names, above]
        up = (weights - start) > raised * (stop - start)
        chosen = np.where((weights > start + SLACK) & up, above, below)
        return np.concatenate([chosen, self.count - 1 - chosen]).astype(np.int8)


class IntervalSearch(BranchAndBound):
    """The least value of a convex program over weights in intervals, proved, and whether it is attained only once.

    A branch cuts off intervals of a name below or above a gap and relaxes what is between those left to their hull.
    """

    limits = "minimum tickets and limits by name"
    most_programs = 400

    def __init__(self, intervals: Intervals, *, unique: bool = True, most_programs: int = 400) -> None:
        super().__init__(reach=TIE, unique=unique)
        self.intervals, self.most_programs = intervals, most_programs
        self.gaps = intervals.lower.shape[1] - 1
        self.cones: Collection[str] | None = None

    @abstractmethod
    def program(self, lower: Floats, upper: Floats) -> Formulation:
        """The convex program of weights between (n,) bounds."""

    def minimum(self, relaxed: Certified | None = None) -> Certified:
        """The optimum; `relaxed` is that of the program without gaps, whose bounds may be wider, where it is known.

        Raises
        ------
        InfeasibleError, UndecidedError : where there is none, or its value cannot be proved.
        """
        if relaxed is None:
            return self.search(2 * len(self.intervals.count))
        self.programs = 1
        lower, upper = self.intervals.ends(np.zeros(2 * len(self.intervals.count), dtype=np.int8))
        within = bool(((relaxed.weights >= lower - SLACK) & (relaxed.weights <= upper + SLACK)).all())
        return self.search(2 * len(self.intervals.count), relaxation(relaxed) if within else None)

    @np.errstate(over="ignore", invalid="ignore")  # numbers of a diverging iteration prove nothing
    def relax(self, decisions: Integers) -> Relaxation:
        """The branch with the gaps of its open names ignored; polished where it may be an answer."""
        self.programs += 1
        formulation = self.program(*self.intervals.ends(decisions))
        found = find(formulation, self.cones)
        weights = found.x[formulation.weights]
        point = proved(formulation.program, found, polished=not self.broken(weights).any())
        uniqueness = UniquenessProof(Uniqueness.NOT_ASKED)
        return Relaxation(point.proof.lower_bound, point.x[formulation.weights], uniqueness)

    def _certify(self, decisions: Integers, *, unique: bool) -> Certified:
        self.programs += 1
        return certify(self.program(*self.intervals.ends(decisions)), cones=self.cones, unique=unique)

    def broken(self, weights: Floats) -> Floats:
        """(n,) how far each weight is from being allowed."""
        return self.intervals.outside(weights)

    def possible(self, decisions: Integers) -> bool:
        """Whether a branch may hold an answer, as far as counting tells."""
        del decisions
        return True

    def propose(self, decisions: Integers, relaxed: Relaxation) -> None:
        """The relaxation with every weight in the interval that it is in or next to."""
        for raised in (0.5, _RAISED) if self.broken(relaxed.values).any() else (0.5,):
            rounded = self._within(decisions, self.intervals.rounded(relaxed.values, raised))
            if not self.possible(rounded) or not self.first_try(rounded.tobytes()):
                continue
            try:
                self.offer(self._certify(rounded, unique=False), rounded)
            except (InfeasibleError, UndecidedError):
                continue

    def _within(self, decisions: Integers, rounded: Integers) -> Integers:
        """Rounded decisions inside those of a branch."""
        n, last = len(self.intervals.count), self.intervals.count - 1
        chosen = np.clip(rounded[:n], decisions[:n], last - decisions[n:])
        return np.concatenate([chosen, last - chosen]).astype(np.int8)

    def choose(self, decisions: Integers, relaxed: Relaxation, bound: float) -> int | None:
        """The gap, numbered by name, of the open weight that is furthest from what is allowed."""
        n = len(self.intervals.count)
        low, high = decisions[:n].astype(int), self.intervals.count - 1 - decisions[n:]
        away = np.where(low < high, self.broken(relaxed.values), 0.0)
        if not away.any():
            return None
        name = int(np.argmax(away))
        below = int(self.intervals.below(relaxed.values)[name])
        return name * self.gaps + min(max(below, int(low[name])), int(high[name]) - 1)

    def children(self, decisions: Integers, name: int) -> Iterable[Integers]:
        """The intervals below the gap, and those above it."""
        return (child for child in self._sides(decisions, *divmod(name, self.gaps)) if self.possible(child))

    def _sides(self, decisions: Integers, name: int, gap: int) -> Iterator[Integers]:
        n = len(self.intervals.count)
        for place, value in ((n + name, self.intervals.count[name] - 1 - gap), (name, gap + 1)):
            child = decisions.copy()
            child[place] = value
            yield child

    def alone(self, branch: Branch) -> UniquenessProof:
        """By the branch's program, solved once more with the question."""
        try:
            found = self._certify(branch.decisions, unique=True).uniqueness
        except (InfeasibleError, UndecidedError):
            return UniquenessProof(Uniqueness.UNDECIDED)
        if not found.outcome.proved or not branch.decisions.any():
            return found
        return UniquenessProof(Uniqueness.BRANCHES)
