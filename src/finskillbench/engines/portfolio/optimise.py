"""Optimise a portfolio and prove the result: the one entry point for every convex problem of this package."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from finskillbench.arrays import Booleans, Floats
from finskillbench.engines.optimisation.certificate import Infeasibility, Optimality, prove_infeasible, prove_optimal
from finskillbench.engines.optimisation.face import solve_by_cones, solve_on_face
from finskillbench.engines.optimisation.polish import polish
from finskillbench.engines.optimisation.program import Cone, ConicProgram, Solution, solve
from finskillbench.engines.optimisation.uniqueness import Uniqueness, UniquenessProof, prove_unique
from finskillbench.engines.portfolio.formulation import Aim, Formulation, Goal, NameCounts, formulate
from finskillbench.engines.portfolio.measures import name_count, turnover
from finskillbench.engines.portfolio.problem import STUB, PortfolioProblem, required
from finskillbench.errors import FinSkillBenchError

ACCEPTED_GAP = 1e-7
"""Largest proved gap, in the objective's unit, of a solution called optimal; most are under 1e-12."""
ACCEPTED_VIOLATION = 1e-9
"""Largest violation of a constraint by a solution called optimal."""
TIE = 1e-9
"""Branches whose bound is this close to the incumbent are searched for other optima."""
_EXACT = 1e-12
"""Gap and violation of a polished solution that no other can improve on in double precision."""
_ATTAINED = 1e-8
"""A relaxation whose bound is this close to a real portfolio's value has nothing better to offer."""
_INTEGRAL = 1e-3
"""Indicators this close to 0 or 1 are decisions; an interior point resolves them to about 1e-6."""
_MAX_NODES = 2000


class InfeasibleError(FinSkillBenchError):
    """No portfolio keeps all the limits; `proof` is the checked Farkas ray, `multipliers` its weight on each limit.

    `complete` is false where name counts took several branches, each refuted by a ray of its own: the ray kept here is
    the last branch's and proves nothing alone.
    """

    def __init__(
        self, proof: Infeasibility, multipliers: dict[str, float], ray: Floats, *, complete: bool = True
    ) -> None:
        limits = ", ".join(sorted(multipliers, key=lambda label: -multipliers[label]))
        super().__init__(f"no portfolio keeps all the limits together; the conflict is among: {limits}")
        self.proof = proof
        self.multipliers = multipliers
        self.ray = ray
        self.complete = complete


class UndecidedError(FinSkillBenchError):
    """The solver stopped without a point or a ray that can be proved; the problem lies in its grey band."""


@dataclass(frozen=True)
class Certified:
    """An optimal portfolio with its proof.

    Attributes
    ----------
    weights : (n,) fractions of NAV.
    value : the minimised goal at the weights.
    optimality : bound, gap and residuals; with name counts `lower_bound` is the least over all branches.
    uniqueness : proof or refutation.
    multipliers : (rows,) dual solution of the final convex program, from which the bound can be recomputed.
    nodes : convex programs solved; 1 unless the name counts needed branching.
    """

    weights: Floats
    value: float
    optimality: Optimality
    uniqueness: UniquenessProof
    multipliers: Floats
    nodes: int


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
    solution = _solve(relaxed)
    kept = _names_kept(problem, solution.x[relaxed.weights])
    best = _certified(relaxed, solution, unique=unique) if kept else _branch(problem, aim)
    if goal is Goal.TURNOVER:
        # Where nothing polishes them, the absolute trades of the program lie a billionth above those of the weights.
        traded = turnover(best.weights, required(problem.current, "current portfolio"))
        gap = traded - best.optimality.lower_bound
        best = replace(best, value=traded, optimality=replace(best.optimality, objective=traded, gap=gap))
    return best


def _names_kept(problem: PortfolioProblem, weights: Floats) -> bool:
    held = name_count(weights)
    least, most = problem.limits.min_names, problem.limits.max_names
    return (least is None or held >= least) and (most is None or held <= most)


def certify(
    formulation: Formulation, *, cones: Collection[str] | None = None, unique: bool | None = True, polished: bool = True
) -> Certified:
    """Solve a convex program and prove its optimum; `unique` as in `optimise`, None asks only where a cone binds.

    `cones` are the second-order blocks expected to bind; the others are left out until they have to be added, and all
    are there from the start where nothing can be proved that way. Where a bound to within `ACCEPTED_GAP` is enough,
    `polished=False` leaves the interior point as it is.

    Raises
    ------
    InfeasibleError : with a checked Farkas ray.
    UndecidedError : when nothing can be proved.
    """
    if cones is not None:
        try:
            return _certified(formulation, _solve(formulation, cones), unique=unique, polished=polished)
        except UndecidedError:
            pass
    return _certified(formulation, _solve(formulation), unique=unique, polished=polished)


@np.errstate(over="ignore", invalid="ignore")
def certify_tie(formulation: Formulation, cap: str, earlier: Floats) -> Certified:
    """Minimise over the optimal face of an earlier goal, as `face.solve_on_face` has it, and prove it in the program.

    Raises
    ------
    UndecidedError : when nothing can be proved.
    """
    found = solve_on_face(formulation.program, cap, earlier)
    if found is None:
        raise UndecidedError("the optimal face of the earlier goal is not flat")
    return _accepted(formulation, prove_optimal(formulation.program, *found), *found, unique=True)


@np.errstate(over="ignore", invalid="ignore")  # a diverging iteration ends in numbers that prove nothing
def _solve(formulation: Formulation, cones: Collection[str] | None = None) -> Solution:
    """A finite point from the solver; infeasibility is proved here, optimality is not."""
    program = formulation.program
    solution = solve(program) if cones is None else solve_by_cones(program, cones)
    if "PrimalInfeasible" in solution.status:
        proof = prove_infeasible(program, solution.z)
        if proof.margin > 0:
            raise InfeasibleError(proof, _conflict(formulation, solution.z), solution.z)
        raise UndecidedError("the solver calls the problem infeasible, but its ray proves nothing: a grey band")
    if not np.isfinite(solution.x).all():
        raise UndecidedError(f"the solver stopped with status {solution.status} and no usable point")
    return solution


@np.errstate(over="ignore", invalid="ignore")
def _certified(
    formulation: Formulation, solution: Solution, *, unique: bool | None, polished: bool = True
) -> Certified:
    """The better of the raw and the polished solution, with its proof and, if asked, one about its uniqueness."""
    found = (_polished if polished else _raw)(formulation.program, solution)
    return _accepted(formulation, *found, unique=unique, status=solution.status)


def _accepted(
    formulation: Formulation, proof: Optimality, x: Floats, z: Floats, *, unique: bool | None, status: str = "Solved"
) -> Certified:
    """The pair (x, z) with its proof, if that is good enough to be called one."""
    if not (abs(proof.gap) <= ACCEPTED_GAP and proof.violation <= ACCEPTED_VIOLATION):  # so that NaN is refused
        raise UndecidedError(
            f"the solver stopped with status {status}, gap {proof.gap:.1e} and violation {proof.violation:.1e}"
        )
    if unique is None:
        unique = any(block.cone is Cone.SECOND_ORDER and z[block.start] > 0 for block in formulation.program.blocks)
    return Certified(
        weights=x[formulation.weights].copy(),
        value=proof.objective,
        optimality=proof,
        uniqueness=prove_unique(formulation, x, z) if unique else UniquenessProof(Uniqueness.NOT_ASKED),
        multipliers=z,
        nodes=1,
    )


def _raw(program: ConicProgram, solution: Solution) -> tuple[Optimality, Floats, Floats]:
    """The solver's own pair (x, z) with its proof."""
    return prove_optimal(program, solution.x, solution.z), solution.x, solution.z


def _polished(program: ConicProgram, solution: Solution) -> tuple[Optimality, Floats, Floats]:
    """The raw or the polished pair (x, z), whichever its certificate finds better."""
    refined = polish(program, solution)
    better = None if refined is None else prove_optimal(program, *refined)
    if refined is not None and better is not None and _error(better) < _EXACT:
        return better, *refined
    raw = _raw(program, solution)
    if refined is not None and better is not None and _error(better) < _error(raw[0]):
        return better, *refined
    return raw


def _error(proof: Optimality) -> float:
    return max(abs(proof.gap), proof.violation)


def _conflict(formulation: Formulation, ray: Floats) -> dict[str, float]:
    """Greatest multiplier of each block of limits in a Farkas ray, the irrelevant ones left out."""
    sizes = {block.label: float(np.abs(ray[block.rows]).max()) for block in formulation.program.blocks}
    largest = max(sizes.values())
    return {label: size / largest for label, size in sizes.items() if size > 1e-6 * largest}


@dataclass(frozen=True)
class _Relaxed:
    """A branch's relaxation: its proof, its indicators in [0, 1], and what it says of other optima in the branch."""

    optimality: Optimality
    indicators: Floats
    uniqueness: UniquenessProof


def _branch(problem: PortfolioProblem, aim: Aim) -> Certified:
    """Best-first branch and bound on the holding indicators.

    A branch's relaxation gives its proved bound; its indicators, rounded, give a set of holdings whose convex program
    gives an incumbent. A branch is closed when its bound exceeds the incumbent by more than `TIE`, or when its
    relaxation attains its bound and is integral or has one optimum. The optimum is unique when the closing
    relaxation's is and no other branch comes within `TIE`; its modulus holds beyond its own branch only if that
    branch is all there is.
    """
    n = problem.size
    nobody = np.zeros(n, dtype=bool)
    order = count()
    queue = [(-np.inf, next(order), NameCounts(nobody, nobody))]
    incumbent: Certified | None = None
    outcomes: list[tuple[float, UniquenessProof]] = []
    tried: set[bytes] = set()
    refuted: InfeasibleError | None = None
    least_bound, nodes = np.inf, 0
    while queue:
        bound, _, names = heapq.heappop(queue)
        if incumbent is not None and bound > incumbent.value + TIE:
            least_bound = min(least_bound, bound)
            break
        if nodes >= _MAX_NODES:
            raise UndecidedError(f"name counts not settled after {_MAX_NODES} branches")
        try:
            relaxed = _relax(formulate(problem, aim, names=names))
        except InfeasibleError as error:
            refuted, nodes = error, nodes + 1
            continue
        candidate = _held(problem, aim, relaxed.indicators, names, tried)
        nodes += 2
        bound = relaxed.optimality.lower_bound
        if candidate is not None and (incumbent is None or candidate.value < incumbent.value):
            incumbent = candidate
        fraction = np.abs(relaxed.indicators - np.round(relaxed.indicators))
        fraction[names.forced_in | names.forced_out] = 0.0
        settled = fraction.max() < _INTEGRAL or relaxed.uniqueness.outcome.proved
        attained = incumbent is not None and incumbent.value - bound <= _ATTAINED and settled
        if attained or (incumbent is not None and bound > incumbent.value + TIE) or fraction.max() == 0.0:
            least_bound = min(least_bound, bound)
            outcomes.append((bound, relaxed.uniqueness))
            continue
        pick = int(np.argmax(fraction))
        for forced in ("forced_in", "forced_out"):
            mask = getattr(names, forced).copy()
            mask[pick] = True
            heapq.heappush(queue, (bound, next(order), replace(names, **{forced: mask})))
    if incumbent is None:
        if refuted is None:
            raise UndecidedError("no branch gave a portfolio with an allowed number of names")
        alone = nodes == 1
        raise InfeasibleError(refuted.proof, refuted.multipliers, refuted.ray, complete=alone)
    near = [proof for bound, proof in outcomes if bound <= incumbent.value + TIE]
    uniqueness = UniquenessProof(Uniqueness.UNDECIDED)
    if len(near) == 1 and near[0].outcome.proved:
        uniqueness = near[0] if nodes == 2 else UniquenessProof(Uniqueness.BRANCHES)
    bound = min(least_bound, incumbent.value)
    if incumbent.value - bound > ACCEPTED_GAP:
        raise UndecidedError(f"name counts leave a gap of {incumbent.value - bound:.1e} after {nodes} programs")
    return replace(
        incumbent,
        optimality=replace(incumbent.optimality, lower_bound=bound, gap=incumbent.value - bound),
        uniqueness=uniqueness,
        nodes=nodes,
    )


def _relax(formulation: Formulation) -> _Relaxed:
    solution = _solve(formulation)
    if formulation.objective_curvature > 0:
        proof, x, z = _raw(formulation.program, solution)
    else:  # forced holdings have multipliers a thousandth of a return's size: be exact
        proof, x, z = _polished(formulation.program, solution)
    return _Relaxed(proof, x[formulation.indicators], prove_unique(formulation, x, z))


def _held(
    problem: PortfolioProblem,
    aim: Aim,
    indicators: Floats,
    names: NameCounts,
    tried: set[bytes],
) -> Certified | None:
    """Round a relaxation to a set of holdings and solve the convex program that holds exactly those at least."""
    least, most = problem.limits.min_names, problem.limits.max_names
    ranked = np.argsort(-np.where(names.forced_out, -1.0, np.where(names.forced_in, 2.0, indicators)), kind="stable")
    wanted = int(np.clip(np.round(indicators).sum(), least or 0, problem.size if most is None else most))
    holdings = np.zeros(problem.size, dtype=bool)
    holdings[ranked[:wanted]] = True
    key = np.packbits(holdings).tobytes()
    if key in tried:
        return None
    tried.add(key)
    limits_count = most is not None and most < problem.size
    restricted = _without_stubs(problem, holdings) if limits_count else problem
    held = formulate(restricted, aim, holdings=holdings)
    try:
        candidate = certify(held, unique=False)
    except (InfeasibleError, UndecidedError):
        return None
    return candidate if _names_kept(problem, candidate.weights) else None


def _without_stubs(problem: PortfolioProblem, holdings: Booleans) -> PortfolioProblem:
    """The same problem with names outside `holdings` capped below the holding threshold."""
    ceilings = np.where(holdings, np.inf, STUB)
    return replace(problem, ceilings=ceilings if problem.ceilings is None else np.minimum(ceilings, problem.ceilings))
