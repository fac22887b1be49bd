"""Solve a formulation and prove the result: a certified optimum, or a checked proof that nothing is feasible."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.certificate import Infeasibility, Optimality, prove_infeasible, prove_optimal
from finskillbench.engines.optimisation.face import solve_by_cones, solve_on_face
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.polish import polish
from finskillbench.engines.optimisation.program import Cone, ConicProgram, Solution, solve
from finskillbench.engines.optimisation.uniqueness import Uniqueness, UniquenessProof, prove_unique
from finskillbench.errors import FinSkillBenchError

ACCEPTED_GAP = 1e-7
"""Largest proved gap, in the objective's unit, of a solution called optimal; most are under 1e-12."""
ACCEPTED_VIOLATION = 1e-9
"""Largest violation of a constraint by a solution called optimal."""
_EXACT = 1e-12
"""Gap and violation of a polished solution that no other can improve on in double precision."""


class InfeasibleError(FinSkillBenchError):
    """No portfolio keeps all the limits; `proof` is the checked Farkas ray, `multipliers` its weight on each limit.

    `complete` is false where decisions on names took several branches, each refuted by a ray of its own: the ray here
    is the last branch's and proves nothing alone.
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
    optimality : bound, gap and residuals; with decisions on names `lower_bound` is the least over all branches.
    uniqueness : proof or refutation.
    multipliers : (rows,) dual solution of the final convex program, from which the bound can be recomputed.
    nodes : convex programs solved; 1 unless decisions on names needed branching.
    """

    weights: Floats
    value: float
    optimality: Optimality
    uniqueness: UniquenessProof
    multipliers: Floats
    nodes: int


class ProvedPoint:
    """A pair (x, z) of primal and dual values, and what it proves."""

    __slots__ = ("multipliers", "proof", "x")

    def __init__(self, program: ConicProgram, x: Floats, multipliers: Floats) -> None:
        self.x, self.multipliers = x, multipliers
        self.proof = prove_optimal(program, x, multipliers)

    @property
    def error(self) -> float:
        """The larger of gap and violation."""
        return max(abs(self.proof.gap), self.proof.violation)


def certify(
    formulation: Formulation, *, cones: Collection[str] | None = None, unique: bool | None = True, polished: bool = True
) -> Certified:
    """Solve a convex program and prove its optimum.

    Where the value alone matters, `unique=False` spares the question whether the weights are the only ones; None asks
    only where a cone binds. `cones` are the second-order blocks expected to bind; the others are left out until they
    have to be added, and all are there from the start where nothing can be proved that way. Where a bound to within
    `ACCEPTED_GAP` is enough, `polished=False` leaves the interior point as it is.

    Raises
    ------
    InfeasibleError : with a checked Farkas ray.
    UndecidedError : when nothing can be proved.
    """
    if cones is not None:
        try:
            return certify_solution(formulation, find(formulation, cones), unique=unique, polished=polished)
        except UndecidedError:
            pass
    return certify_solution(formulation, find(formulation), unique=unique, polished=polished)


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
    return _accepted(formulation, ProvedPoint(formulation.program, *found), unique=True)


@np.errstate(over="ignore", invalid="ignore")  # a diverging iteration ends in numbers that prove nothing
def find(formulation: Formulation, cones: Collection[str] | None = None) -> Solution:
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
def certify_solution(
    formulation: Formulation, solution: Solution, *, unique: bool | None, polished: bool = True
) -> Certified:
    """As `certify`, from a solution that `find` has found."""
    point = proved(formulation.program, solution, polished=polished)
    return _accepted(formulation, point, unique=unique, status=solution.status)


def proved(program: ConicProgram, solution: Solution, *, polished: bool) -> ProvedPoint:
    """The raw or the polished pair, whichever its certificate finds better."""
    refined = polish(program, solution) if polished else None
    better = None if refined is None else ProvedPoint(program, *refined)
    if better is not None and better.error < _EXACT:
        return better
    raw = ProvedPoint(program, solution.x, solution.z)
    return better if better is not None and better.error < raw.error else raw


def _accepted(
    formulation: Formulation, point: ProvedPoint, *, unique: bool | None, status: str = "Solved"
) -> Certified:
    """The point with its proof, if that is good enough to be called one."""
    proof, z = point.proof, point.multipliers
    if not (abs(proof.gap) <= ACCEPTED_GAP and proof.violation <= ACCEPTED_VIOLATION):  # so that NaN is refused
        raise UndecidedError(
            f"the solver stopped with status {status}, gap {proof.gap:.1e} and violation {proof.violation:.1e}"
        )
    if unique is None:
        unique = any(block.cone is Cone.SECOND_ORDER and z[block.start] > 0 for block in formulation.program.blocks)
    return Certified(
        weights=point.x[formulation.weights].copy(),
        value=proof.objective,
        optimality=proof,
        uniqueness=prove_unique(formulation, point.x, z) if unique else UniquenessProof(Uniqueness.NOT_ASKED),
        multipliers=z,
        nodes=1,
    )


def _conflict(formulation: Formulation, ray: Floats) -> dict[str, float]:
    """Greatest multiplier of each block of limits in a Farkas ray, the irrelevant ones left out."""
    sizes = {block.label: float(np.abs(ray[block.rows]).max()) for block in formulation.program.blocks}
    largest = max(sizes.values())
    return {label: size / largest for label, size in sizes.items() if size > 1e-6 * largest}
