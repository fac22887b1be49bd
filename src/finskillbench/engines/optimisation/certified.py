"""Certified solution of a formulation: a proved optimum, or a checked infeasibility proof."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.certificate import Infeasibility, Optimality, prove_infeasible, prove_optimal
from finskillbench.engines.optimisation.face import solve_by_cones, solve_on_face
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.polish import polish
from finskillbench.engines.optimisation.program import Cone, ConicProgram, Solution, solve_conic
from finskillbench.engines.optimisation.uniqueness import Uniqueness, UniquenessProof, prove_unique
from finskillbench.errors import FinSkillBenchError

ACCEPTED_GAP = 1e-7
"""Largest proved gap of an optimum, in the objective's unit; most are under 1e-12."""
ACCEPTED_VIOLATION = 1e-9
"""Largest constraint violation of an optimum."""
_EXACT = 1e-12
"""Gap and violation at double precision."""


class InfeasibleError(FinSkillBenchError):
    """No portfolio keeps all limits; `proof` is the checked Farkas ray, `multipliers` its weight on each limit.

    `complete` is False if several branches were refuted separately; the ray is then the last branch's only.
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
    """The solver found neither a provable point nor a provable ray."""


@dataclass(frozen=True)
class Certified:
    """An optimal portfolio with its proof.

    Attributes
    ----------
    weights : (n,) fractions of NAV.
    value : the minimised goal at the weights.
    optimality : bound, gap and residuals; `lower_bound` is the least over all branches.
    uniqueness : proof or refutation.
    multipliers : (rows,) dual solution of the final convex program; reproduces the bound.
    nodes : number of convex programs solved.
    """

    weights: Floats
    value: float
    optimality: Optimality
    uniqueness: UniquenessProof
    multipliers: Floats
    nodes: int


class ProvedPoint:
    """A primal-dual pair (x, z) with its certificate."""

    __slots__ = ("multipliers", "proof", "x")

    def __init__(self, program: ConicProgram, x: Floats, multipliers: Floats) -> None:
        self.x, self.multipliers = x, multipliers
        self.proof = prove_optimal(program, x, multipliers)

    @property
    def error(self) -> float:
        return max(abs(self.proof.gap), self.proof.violation)


def certify(
    formulation: Formulation, *, cones: Collection[str] | None = None, unique: bool | None = True, polished: bool = True
) -> Certified:
    """Solve a convex program and prove its optimum.

    `unique` False skips the uniqueness check; None checks only if a cone binds. `cones` are the second-order blocks
    expected to bind; others are added when violated, or from the start if nothing can be proved otherwise. `polished`
    False keeps the interior point, enough for a bound to within `ACCEPTED_GAP`.

    Raises `InfeasibleError` with a checked Farkas ray, `UndecidedError` if nothing can be proved.
    """
    if cones is not None:
        try:
            return certify_solution(formulation, find(formulation, cones), unique=unique, polished=polished)
        except UndecidedError:
            pass
    return certify_solution(formulation, find(formulation), unique=unique, polished=polished)


@np.errstate(over="ignore", invalid="ignore")
def certify_tie(formulation: Formulation, cap: str, earlier: Floats) -> Certified:
    """Certify a minimum over an earlier goal's optimal face; raise `UndecidedError` if unproved."""
    found = solve_on_face(formulation.program, cap, earlier)
    if found is None:
        raise UndecidedError("the optimal face of the earlier goal is not flat")
    return _accepted(formulation, ProvedPoint(formulation.program, *found), unique=True)


@np.errstate(over="ignore", invalid="ignore")  # a diverging iteration ends in numbers that prove nothing
def find(formulation: Formulation, cones: Collection[str] | None = None) -> Solution:
    """Return a finite solver point, or raise `InfeasibleError` with a proof; optimality is unproved."""
    program = formulation.program
    solution = solve_conic(program) if cones is None else solve_by_cones(program, cones)
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
    """Certify a solution of `find`."""
    point = proved(formulation.program, solution, polished=polished)
    return _accepted(formulation, point, unique=unique, status=solution.status)


def proved(program: ConicProgram, solution: Solution, *, polished: bool) -> ProvedPoint:
    """Return the raw or the polished pair, by certificate."""
    refined = polish(program, solution) if polished else None
    better = None if refined is None else ProvedPoint(program, *refined)
    if better is not None and better.error < _EXACT:
        return better
    raw = ProvedPoint(program, solution.x, solution.z)
    return better if better is not None and better.error < raw.error else raw


def _accepted(
    formulation: Formulation, point: ProvedPoint, *, unique: bool | None, status: str = "Solved"
) -> Certified:
    proof, z = point.proof, point.multipliers
    if not (abs(proof.gap) <= ACCEPTED_GAP and proof.violation <= ACCEPTED_VIOLATION):  # also refuses NaN
        raise UndecidedError(
            f"the solver stopped with status {status}, gap {proof.gap:.1e} and violation {proof.violation:.1e}"
        )
    if unique is None:
        unique = any(block.cone is Cone.SECOND_ORDER and z[block.start] > 0 for block in formulation.program.blocks)
    return Certified(
        weights=point.x[formulation.weights].copy(),
        value=proof.objective,
        optimality=proof,
        uniqueness=prove_unique(formulation, point.x, z) if unique else UniquenessProof(Uniqueness.NOT_CHECKED),
        multipliers=z,
        nodes=1,
    )


def _conflict(formulation: Formulation, ray: Floats) -> dict[str, float]:
    """Greatest multiplier of each block of limits in a Farkas ray, without negligible ones."""
    sizes = {block.label: float(np.abs(ray[block.rows]).max()) for block in formulation.program.blocks}
    largest = max(sizes.values())
    return {label: size / largest for label, size in sizes.items() if size > 1e-6 * largest}
