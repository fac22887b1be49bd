"""Optimise a portfolio and prove the result: the one entry point for every problem of `PortfolioProblem`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.branching import TIE, Branch, BranchAndBound, Decision, Relaxation
from finskillbench.engines.optimisation.certified import (
    ACCEPTED_GAP,
    Certified,
    InfeasibleError,
    UndecidedError,
    certify,
    certify_solution,
    find,
    proved,
)
from finskillbench.engines.optimisation.uniqueness import Uniqueness, UniquenessProof, prove_unique
from finskillbench.engines.portfolio.formulation import Aim, Goal, formulate
from finskillbench.engines.portfolio.measures import name_count, turnover
from finskillbench.engines.portfolio.problem import PortfolioProblem, required
from finskillbench.errors import InternalError

_ATTAINED = 1e-8
"""A relaxation whose bound is this close to a real portfolio's value has nothing better to offer."""
_WORK, _FEWEST_PROGRAMS = 60_000, 20
"""Names times programs after which a search over name counts is given up (2,000 programs of 30 names), and the least
number of programs: a program takes time in proportion to its names."""
_AT_END = 1e-5
"""A share of a least position this close to 0 or 1 is one: what it leaves of a value is within the accepted gap."""
_NOT_HELD = 1e-9
"""A weight of at most this is 0."""
_INTEGRAL = 1e-3
"""Indicators this close to 0 or 1 are decisions; an interior point resolves them to about 1e-6."""


def optimise(
    problem: PortfolioProblem,
    goal: Goal = Goal.OBJECTIVE,
    *,
    objective_cap: float | None = None,
    anchor: Floats | None = None,
    unique: bool = True,
) -> Certified:
    """Minimise the goal (see `Aim`) over every portfolio that keeps the limits, name counts included.

    Where the value alone matters, `unique=False` spares the question whether the weights are the only ones; for a
    linear goal over thousands of names it costs far more than the answer.

    The relaxation without name counts is solved first; only if its solution has too few or too many names does a
    best-first branch and bound on who is a holding follow (numerics: most never branch).

    Raises
    ------
    InfeasibleError : with a checked Farkas ray.
    UndecidedError : when nothing can be proved.
    """
    aim = Aim(goal, objective_cap, anchor)
    relaxed = formulate(problem, aim)
    solution = find(relaxed)
    if _names_kept(problem, solution.x[relaxed.weights]):
        best = certify_solution(relaxed, solution, unique=unique)
    else:
        best = _NameCounts(problem, aim, unique=unique).search(problem.size)
    if goal is Goal.TURNOVER:
        # Where nothing polishes them, the absolute trades of the program lie a billionth above those of the weights.
        traded = turnover(best.weights, required(problem.current, "current portfolio"))
        gap = traded - best.optimality.lower_bound
        best = replace(best, value=traded, optimality=replace(best.optimality, objective=traded, gap=gap))
    return best


def _names_kept(problem: PortfolioProblem, weights: Floats) -> bool:
    held, limits = name_count(weights, slack=1e-9), problem.limits
    if limits.min_position is not None and ((weights > _NOT_HELD) & (weights < limits.min_position - 1e-9)).any():
        return False
    return (limits.min_names or 0) <= held <= (problem.size if limits.max_names is None else limits.max_names)


class _NameCounts(BranchAndBound):
    """Which names are holdings, by the least and the greatest number of them.

    A branch is closed when its relaxation attains its bound and is integral or has one optimum; where the value alone
    is asked for, attaining it is enough. The modulus of a uniqueness proof holds beyond its own branch only if that
    branch is all there is.
    """

    limits = "name counts"

    def __init__(self, problem: PortfolioProblem, aim: Aim, *, unique: bool) -> None:
        super().__init__(reach=TIE)
        self.problem, self.aim, self.value_alone = problem, aim, not unique
        self.most_programs = max(_WORK // problem.size, _FEWEST_PROGRAMS)

    @np.errstate(over="ignore", invalid="ignore")  # a branch without a portfolio leaves numbers without bound
    def relax(self, decisions: Integers) -> Relaxation:
        """The indicators of the branch, in [0, 1]."""
        self.programs += 1
        formulation = formulate(self.problem, self.aim, decisions=decisions)
        if formulation.indicators is None:
            raise InternalError("a relaxation of name counts without indicators")
        # Of a linear goal forced holdings have multipliers a thousandth of a return's size: be exact.
        point = proved(formulation.program, find(formulation), polished=not formulation.objective_curvature > 0)
        uniqueness = prove_unique(formulation, point.x, point.multipliers)
        apart = self.problem.limits.min_position is not None
        indicators = self._held(point.x[formulation.weights], decisions) if apart else point.x[formulation.indicators]
        return Relaxation(point.proof.lower_bound, indicators, uniqueness)

    def _held(self, weights: Floats, decisions: Integers) -> Floats:
        """(n,) how far each name is held: 0 or 1 unless by too little, or unless so many names are not allowed.

        The indicators of a least position are as good anywhere between two ends, so that the weights decide.
        """
        limits = self.problem.limits
        held = np.clip(weights / limits.least_held, 0.0, 1.0)
        held[held < _AT_END] = 0.0
        held[held > 1.0 - _AT_END] = 1.0
        if limits.max_names is not None and (held == 1.0).sum() > limits.max_names:
            least = np.argsort(-weights - (decisions == Decision.LONG), kind="stable")[limits.max_names :]
            held[least] = np.minimum(held[least], 0.5 + weights[least] / 4)  # the least of all is decided first
        return held

    def propose(self, decisions: Integers, relaxed: Relaxation) -> None:
        """Round the indicators to a set of holdings and solve the program that holds exactly those at least."""
        self.programs += 1  # counted as a program of the branch also where its holdings were tried before
        problem, limits = self.problem, self.problem.limits
        rank = np.where(decisions == Decision.OFF, -1.0, np.where(decisions == Decision.LONG, 2.0, relaxed.values))
        most = problem.size if limits.max_names is None else limits.max_names
        apart = limits.min_position is not None
        wanted = int(np.clip(int(relaxed.values.sum() + 0.5 * (not apart)), limits.min_names or 0, most))
        holdings = np.zeros(problem.size, dtype=bool)
        holdings[np.argsort(-rank, kind="stable")[:wanted]] = True
        if not self.first_try(holdings.tobytes()):
            return
        if most < problem.size or apart:
            ceilings = np.where(holdings, np.inf, limits.most_not_held)
            allowed = ceilings if problem.ceilings is None else np.minimum(ceilings, problem.ceilings)
            problem = replace(problem, ceilings=allowed)
        try:
            candidate = certify(formulate(problem, self.aim, holdings=holdings), unique=False)
        except (InfeasibleError, UndecidedError):
            return
        if _names_kept(self.problem, candidate.weights):
            self.offer(candidate, decisions)

    def choose(self, decisions: Integers, relaxed: Relaxation, bound: float) -> int | None:
        """The name whose indicator is furthest from a decision."""
        fraction = np.abs(relaxed.values - np.round(relaxed.values))
        fraction[decisions != Decision.FREE] = 0.0
        settled = self.value_alone or fraction.max() < _INTEGRAL or relaxed.uniqueness.outcome.proved
        if settled and self.value - bound <= _ATTAINED:
            return None
        if fraction.max() == 0.0 and self.value - bound > ACCEPTED_GAP:
            # Of a branch with hardly a portfolio the solver's weights look decided and are none: the bound alone holds.
            fraction[decisions == Decision.FREE] = 1.0
        return int(np.argmax(fraction)) if fraction.max() > 0.0 else None

    def children(self, decisions: Integers, name: int) -> Iterable[Integers]:
        """A holding, or none."""
        for decision in (Decision.LONG, Decision.OFF):
            child = decisions.copy()
            child[name] = decision
            yield child

    def alone(self, branch: Branch) -> UniquenessProof:
        """By the relaxation that closed the branch."""
        if branch.relaxed is None or not branch.relaxed.uniqueness.outcome.proved:
            return UniquenessProof(Uniqueness.UNDECIDED)
        return branch.relaxed.uniqueness if self.programs == 2 else UniquenessProof(Uniqueness.BRANCHES)
