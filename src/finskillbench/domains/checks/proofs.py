"""Certificates as JSON: a summary beside each truth, the whole in the edition's certificates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from finskillbench.domains.checks.agreement import AGREEMENT, Leaf
from finskillbench.domains.examples import Label
from finskillbench.engines.optimisation.certified import Certified, InfeasibleError
from finskillbench.engines.optimisation.program import ConicProgram
from finskillbench.errors import InternalError
from finskillbench.findings import Findings
from finskillbench.scoring.values import number


def proof_of(certified: Certified) -> dict[str, Any]:
    """The summary of a certificate that goes with the truth."""
    proof = certified.optimality
    return {
        "kind": "optimal",
        "objective": certified.value,
        "lower_bound": proof.lower_bound,
        "gap": proof.gap,
        "stationarity": proof.stationarity,
        "violation": proof.violation,
        "unique": certified.uniqueness.outcome.proved,
        "uniqueness": certified.uniqueness.outcome.value,
        "programs_solved": certified.nodes,
    }


def certificate_of(certified: Certified) -> dict[str, Any]:
    """The full certificate: summary, weights, and the multipliers from which anyone can recompute the bound."""
    return proof_of(certified) | {
        "weights": certified.weights.tolist(),
        "multipliers": certified.multipliers.tolist(),
        "modulus": certified.uniqueness.modulus,
    }


def farkas_of(error: InfeasibleError, program: ConicProgram) -> dict[str, Any]:
    """The certificate of infeasibility: a checked ray of a program, by the names of the limits that it weighs."""
    ray = {block.label: error.ray[block.rows].tolist() for block in program.blocks}
    return {"kind": "infeasible", **asdict(error.proof), "conflict": error.multipliers, "ray": ray}


def rederived(task_id: str, leaves: Sequence[Leaf]) -> dict[str, Any]:
    """The proof of a label that was derived a second time; its verdicts count as numbers.

    Raises
    ------
    InternalError : naming the task and the first leaf on which the two derivations differ.
    """
    for leaf in leaves:
        if not leaf.agrees:
            raise InternalError(
                f"{task_id}: {leaf.path} is {leaf.first!r} in the label and {leaf.second!r} derived again"
            )
    return {
        "kind": "rederived",
        "difference": max((leaf.difference for leaf in leaves), default=0.0),
        "tolerance": AGREEMENT,
        "numbers": sum(isinstance(leaf.first, int | float) for leaf in leaves),
        "second": "the definitions followed from the episode's input, by code that the label was not made with",
    }


def expect_agreement(label: Label[Any], findings: Findings) -> None:
    """The proof of a label that was built here states a second derivation that agreed, as `rederived` writes it."""
    if not label.built:
        return
    proof = label.truth.proof
    difference, tolerance = number(proof.get("difference")), number(proof.get("tolerance"))
    agreed = difference is not None and tolerance is not None and 0 <= difference <= tolerance
    message = "its proof does not state a second derivation that agreed"
    findings.expect(proof.get("kind") == "rederived" and agreed, label.truth.task_id, message)
