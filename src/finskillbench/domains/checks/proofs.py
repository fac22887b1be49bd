"""Certificates as JSON: a summary in each truth, the full version in the edition's certificates."""

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
from finskillbench.scoring.values import as_number


def proof_of(certified: Certified) -> dict[str, Any]:
    """Return the summary of a certificate for the truth."""
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
    """Return the full certificate: summary, weights, and multipliers to recompute the bound."""
    return proof_of(certified) | {
        "weights": certified.weights.tolist(),
        "multipliers": certified.multipliers.tolist(),
        "modulus": certified.uniqueness.modulus,
    }


def farkas_of(error: InfeasibleError, program: ConicProgram) -> dict[str, Any]:
    """Return a certificate of infeasibility: a checked Farkas ray, by the names of the limits."""
    ray = {block.label: error.ray[block.rows].tolist() for block in program.blocks}
    return {"kind": "infeasible", **asdict(error.proof), "conflict": error.multipliers, "ray": ray}


def rederivation_proof(task_id: str, leaves: Sequence[Leaf]) -> dict[str, Any]:
    """Return the proof of an independently derived label; raise InternalError at the first leaf that differs."""
    for leaf in leaves:
        if not leaf.agrees:
            raise InternalError(
                f"{task_id}: {leaf.path} is {leaf.left!r} in the label and {leaf.right!r} derived again"
            )
    return {
        "kind": "rederived",
        "difference": max((leaf.difference for leaf in leaves), default=0.0),
        "tolerance": AGREEMENT,
        "numbers": sum(isinstance(leaf.left, int | float) for leaf in leaves),
        "second": "the definitions followed from the episode's input, by code that the label was not made with",
    }


def expect_agreement(label: Label[Any], findings: Findings) -> None:
    """Check that a built label states an agreeing independent derivation, as written by `rederivation_proof`."""
    if not label.built:
        return
    proof = label.truth.proof
    difference, tolerance = as_number(proof.get("difference")), as_number(proof.get("tolerance"))
    agreed = difference is not None and tolerance is not None and 0 <= difference <= tolerance
    message = "its proof does not state an independent derivation that agrees"
    findings.expect(proof.get("kind") == "rederived" and agreed, label.truth.task_id, message)
