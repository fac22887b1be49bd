"""Certified optimisation of weights within unions of intervals, as from minimum tickets and position floors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation import certified
from finskillbench.engines.optimisation.branching import TIE, Branch, BranchAndBound, Relaxation, relaxation
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.uniqueness import Uniqueness, UniquenessProof

SLACK = 1e-9
"""Tolerance of interval membership."""
_CLOSE = 1e-6
"""Tolerance for interior points; the remaining gap is proved."""
_RAISED = 0.1
"""Share of a gap from which the second rounding goes up."""
Interval = tuple[float, float]


def intersect(left: Iterable[Interval], right: Iterable[Interval]) -> list[Interval]:
    """Intersect two unions of intervals, ascending; touching ends give a point."""
    pairs = ((max(a, c), min(b, d)) for a, b in left for c, d in right)
    return sorted((low, high) for low, high in pairs if low <= high)


def ticket_intervals(held: float, ticket: float) -> list[Interval]:
    """Return the weights reachable by no trade, a trade of at least a ticket, or a full sale."""
    if ticket <= 0:
        return [(-np.inf, np.inf)]
    points = sorted({0.0, held} if abs(held) < ticket else {held})
    return sorted([(-np.inf, held - ticket), *((one, one) for one in points), (held + ticket, np.inf)])


@dataclass(frozen=True)
class Intervals:
    """(n, k) Ends of the ascending intervals of n weights; short rows repeat the last one."""

    lower: Floats
    upper: Floats
    count: Integers

    @classmethod
    def of(cls, allowed: Sequence[Sequence[Interval]]) -> Intervals:
        """Collect the ascending, disjoint intervals of each name; raise ValueError for a name without any."""
        if not all(allowed):
            raise ValueError("a weight without an allowed interval")
        most = max(len(one) for one in allowed)
        padded = np.array([[*one, *[one[-1]] * (most - len(one))] for one in allowed], dtype=np.float64)
        return cls(padded[:, :, 0], padded[:, :, 1], np.array([len(one) for one in allowed]))

    def ends(self, decisions: Integers) -> tuple[Floats, Floats]:
        """(n,) Least and greatest weights; `decisions` (2n,) count the intervals cut off below and above."""
        n, names = len(self.count), np.arange(len(self.count))
        last = self.count - 1 - decisions[n:]
        return self.lower[names, decisions[:n]], self.upper[names, last]

    def outside(self, weights: Floats) -> Floats:
        """(n,) Distance of each weight to its nearest interval, 0 within the tolerance."""
        away = np.maximum(self.lower - weights[:, None], weights[:, None] - self.upper).min(axis=1)
        return np.where(away > _CLOSE, away, 0.0)

    def below(self, weights: Floats) -> Integers:
        """(n,) Last interval that begins at or below each weight."""
        begun = self.lower <= weights[:, None] + SLACK
        return np.maximum(np.minimum(begun.sum(axis=1), self.count) - 1, 0)

    def rounded(self, weights: Floats, raised: float) -> Integers:
        """(2n,) Decisions that leave one interval per weight: the upper one from a share `raised` of a gap."""
        names, below = np.arange(len(self.count)), self.below(weights)
        above = np.minimum(below + 1, self.count - 1)
        start, stop = self.upper[names, below], self.lower[names, above]
        up = (weights - start) > raised * (stop - start)
        chosen = np.where((weights > start + SLACK) & up, above, below)
        return np.concatenate([chosen, self.count - 1 - chosen]).astype(np.int8)


class IntervalSearch(BranchAndBound):
    """Certified minimum over weights in intervals: each branch cuts intervals off at a gap and relaxes the rest."""

    limits = "minimum tickets and limits by name"
    most_programs = 400

    def __init__(self, intervals: Intervals, *, unique: bool = True, most_programs: int = 400) -> None:
        super().__init__(reach=TIE, unique=unique)
        self.intervals, self.most_programs = intervals, most_programs
        self.gaps = intervals.lower.shape[1] - 1
        self.cones: Collection[str] | None = None

    @abstractmethod
    def program(self, lower: Floats, upper: Floats) -> Formulation:
        """Build the convex program of weights within (n,) bounds."""

    def minimum(self, relaxed: certified.Certified | None = None) -> certified.Certified:
        """Return the optimum; `relaxed` is the one without gaps, if known. Raises as `search`."""
        if relaxed is None:
            return self.search(2 * len(self.intervals.count))
        self.programs = 1
        lower, upper = self.intervals.ends(np.zeros(2 * len(self.intervals.count), dtype=np.int8))
        within = bool(((relaxed.weights >= lower - SLACK) & (relaxed.weights <= upper + SLACK)).all())
        return self.search(2 * len(self.intervals.count), relaxation(relaxed) if within else None)

    @np.errstate(over="ignore", invalid="ignore")  # a diverging iteration gives numbers that prove nothing
    def relax(self, decisions: Integers) -> Relaxation:
        """Relax the gaps of open names; polish if the point may be an answer."""
        self.programs += 1
        formulation = self.program(*self.intervals.ends(decisions))
        found = certified.find(formulation, self.cones)
        weights = found.x[formulation.weights]
        point = certified.proved(formulation.program, found, polished=not self.broken(weights).any())
        uniqueness = UniquenessProof(Uniqueness.NOT_CHECKED)
        return Relaxation(point.proof.lower_bound, point.x[formulation.weights], uniqueness)

    def _certify(self, decisions: Integers, *, unique: bool) -> certified.Certified:
        self.programs += 1
        return certified.certify(self.program(*self.intervals.ends(decisions)), cones=self.cones, unique=unique)

    def broken(self, weights: Floats) -> Floats:
        """(n,) Distance of each weight from its allowed set."""
        return self.intervals.outside(weights)

    def possible(self, decisions: Integers) -> bool:
        """Check necessary conditions of a branch."""
        del decisions
        return True

    def propose(self, decisions: Integers, relaxed: Relaxation) -> None:
        """Round each weight to its own or a neighbouring interval and certify."""
        for raised in (0.5, _RAISED) if self.broken(relaxed.values).any() else (0.5,):
            rounded = self._within(decisions, self.intervals.rounded(relaxed.values, raised))
            if not self.possible(rounded) or not self.first_try(rounded.tobytes()):
                continue
            try:
                self.offer(self._certify(rounded, unique=False), rounded)
            except (certified.InfeasibleError, certified.UndecidedError):
                continue

    def _within(self, decisions: Integers, rounded: Integers) -> Integers:
        n, last = len(self.intervals.count), self.intervals.count - 1
        chosen = np.clip(rounded[:n], decisions[:n], last - decisions[n:])
        return np.concatenate([chosen, last - chosen]).astype(np.int8)

    def choose(self, decisions: Integers, relaxed: Relaxation, bound: float) -> int | None:
        """Return the gap, numbered by name, of the open weight with the largest violation."""
        n = len(self.intervals.count)
        low, high = decisions[:n].astype(int), self.intervals.count - 1 - decisions[n:]
        away = np.where(low < high, self.broken(relaxed.values), 0.0)
        if not away.any():
            return None
        name = int(np.argmax(away))
        below = int(self.intervals.below(relaxed.values)[name])
        return name * self.gaps + min(max(below, int(low[name])), int(high[name]) - 1)

    def children(self, decisions: Integers, name: int) -> Iterable[Integers]:
        """Return the branches below and above the gap."""
        return (child for child in self._sides(decisions, *divmod(name, self.gaps)) if self.possible(child))

    def _sides(self, decisions: Integers, name: int, gap: int) -> Iterator[Integers]:
        n = len(self.intervals.count)
        for place, value in ((n + name, self.intervals.count[name] - 1 - gap), (name, gap + 1)):
            child = decisions.copy()
            child[place] = value
            yield child

    def alone(self, branch: Branch) -> UniquenessProof:
        """Solve the branch's program again with the uniqueness check."""
        try:
            found = self._certify(branch.decisions, unique=True).uniqueness
        except (certified.InfeasibleError, certified.UndecidedError):
            return UniquenessProof(Uniqueness.UNDECIDED)
        if not found.outcome.proved or not branch.decisions.any():
            return found
        return UniquenessProof(Uniqueness.BRANCHES)
