"""Certified optimisation of any `PortfolioProblem`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation import certified
from finskillbench.engines.optimisation.branching import TIE, Branch, BranchAndBound, Decision, Relaxation
from finskillbench.engines.optimisation.uniqueness import Uniqueness, UniquenessProof, prove_unique
from finskillbench.engines.portfolio.formulation import PortfolioAim, PortfolioGoal, formulate_portfolio
from finskillbench.engines.portfolio.measures import name_count, one_way_turnover
from finskillbench.engines.portfolio.problem import PortfolioProblem, require_array
from finskillbench.errors import InternalError

_ATTAINED = 1e-8
"""Gap below which a relaxation offers nothing better than the best portfolio."""
_WORK, _FEWEST_PROGRAMS = 60_000, 20
"""Search limits over name counts: names times programs, and a minimum of programs."""
_AT_END = 1e-5
"""Tolerance of a share of a least position at 0 or 1; the effect is within the accepted gap."""
_NOT_HELD = 1e-9
"""Largest weight that counts as 0."""
_INTEGRAL = 1e-3
"""Tolerance of decided indicators; an interior point resolves about 1e-6."""


def optimise(
    problem: PortfolioProblem,
    goal: PortfolioGoal = PortfolioGoal.OBJECTIVE,
    *,
    objective_cap: float | None = None,
    anchor: Floats | None = None,
    unique: bool = True,
) -> certified.Certified:
    """Minimise a goal (`PortfolioAim`) subject to all limits, including name counts.

    `unique=False` skips the uniqueness check, which is far more expensive than the answer for linear goals over
    thousands of names. The relaxation without name counts is solved first; branch and bound follows only if it breaks
    them, which is rare. Raises `InfeasibleError` with a checked Farkas ray, `UndecidedError` if nothing can be proved.
    """
    aim = PortfolioAim(goal, objective_cap, anchor)
    relaxed = formulate_portfolio(problem, aim)
    solution = certified.find(relaxed)
    if _names_kept(problem, solution.x[relaxed.weights]):
        best = certified.certify_solution(relaxed, solution, unique=unique)
    else:
        best = _NameCounts(problem, aim, unique=unique).search(problem.size)
    if goal is PortfolioGoal.TURNOVER:
        # Without polishing, the program's absolute trades exceed those of the weights by about 1e-9.
        traded = one_way_turnover(best.weights, require_array(problem.current, "current portfolio"))
        gap = traded - best.optimality.lower_bound
        best = replace(best, value=traded, optimality=replace(best.optimality, objective=traded, gap=gap))
    return best


def _names_kept(problem: PortfolioProblem, weights: Floats) -> bool:
    held, limits = name_count(weights, slack=1e-9), problem.limits
    if limits.min_position is not None and ((weights > _NOT_HELD) & (weights < limits.min_position - 1e-9)).any():
        return False
    return (limits.min_names or 0) <= held <= (problem.size if limits.max_names is None else limits.max_names)


class _NameCounts(BranchAndBound):
    """Branch and bound over the set of holdings.

    A branch is closed if its bound is attained and the relaxation is integral or unique; without a uniqueness check,
    attaining the bound is enough. A uniqueness modulus holds globally only if there is a single branch.
    """

    limits = "name counts"

    def __init__(self, problem: PortfolioProblem, aim: PortfolioAim, *, unique: bool) -> None:
        super().__init__(reach=TIE)
        self.problem, self.aim, self.value_alone = problem, aim, not unique
        self.most_programs = max(_WORK // problem.size, _FEWEST_PROGRAMS)

    @np.errstate(over="ignore", invalid="ignore")  # an infeasible branch diverges
    def relax(self, decisions: Integers) -> Relaxation:
        self.programs += 1
        formulation = formulate_portfolio(self.problem, self.aim, decisions=decisions)
        if formulation.indicators is None:
            raise InternalError("a relaxation of name counts without indicators")
        # With linear goals, forced holdings have multipliers of a thousandth of a return: polish.
        point = certified.proved(
            formulation.program, certified.find(formulation), polished=not formulation.objective_curvature > 0
        )
        uniqueness = prove_unique(formulation, point.x, point.multipliers)
        apart = self.problem.limits.min_position is not None
        indicators = self._held(point.x[formulation.weights], decisions) if apart else point.x[formulation.indicators]
        return Relaxation(point.proof.lower_bound, indicators, uniqueness)

    def _held(self, weights: Floats, decisions: Integers) -> Floats:
        """(n,) Degree of holding by weight, fractional if a position is too small or too many names are held."""
        limits = self.problem.limits
        held = np.clip(weights / limits.least_held, 0.0, 1.0)
        held[held < _AT_END] = 0.0
        held[held > 1.0 - _AT_END] = 1.0
        if limits.max_names is not None and (held == 1.0).sum() > limits.max_names:
            least = np.argsort(-weights - (decisions == Decision.LONG), kind="stable")[limits.max_names :]
            held[least] = np.minimum(held[least], 0.5 + weights[least] / 4)  # the smallest is decided first
        return held

    def propose(self, decisions: Integers, relaxed: Relaxation) -> None:
        """Round the indicators to a set of holdings and certify its program."""
        self.programs += 1  # counted even if its holdings were tried before
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
            candidate = certified.certify(formulate_portfolio(problem, self.aim, holdings=holdings), unique=False)
        except (certified.InfeasibleError, certified.UndecidedError):
            return
        if _names_kept(self.problem, candidate.weights):
            self.offer(candidate, decisions)

    def choose(self, decisions: Integers, relaxed: Relaxation, bound: float) -> int | None:
        """Return the most fractional name."""
        fraction = np.abs(relaxed.values - np.round(relaxed.values))
        fraction[decisions != Decision.FREE] = 0.0
        settled = self.value_alone or fraction.max() < _INTEGRAL or relaxed.uniqueness.outcome.proved
        if settled and self.value - bound <= _ATTAINED:
            return None
        if fraction.max() == 0.0 and self.value - bound > certified.ACCEPTED_GAP:
            # If a branch is nearly infeasible, solver weights are unreliable: only the bound holds.
            fraction[decisions == Decision.FREE] = 1.0
        return int(np.argmax(fraction)) if fraction.max() > 0.0 else None

    def children(self, decisions: Integers, name: int) -> Iterable[Integers]:
        for decision in (Decision.LONG, Decision.OFF):
            child = decisions.copy()
            child[name] = decision
            yield child

    def alone(self, branch: Branch) -> UniquenessProof:
        """Use the proof of the relaxation that closed the branch."""
        if branch.relaxed is None or not branch.relaxed.uniqueness.outcome.proved:
            return UniquenessProof(Uniqueness.UNDECIDED)
        return branch.relaxed.uniqueness if self.programs == 2 else UniquenessProof(Uniqueness.BRANCHES)
