"""Certificates as JSON: a summary beside each truth, the whole in the edition's certificates."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from finskillbench.domains.base import Label
from finskillbench.engines.optimisation.certified import Certified, InfeasibleError
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


def farkas_of(error: InfeasibleError) -> dict[str, Any]:
    """The certificate of infeasibility: a checked ray and the limits it weighs."""
    return {"kind": "infeasible", **asdict(error.proof), "conflict": error.multipliers, "ray": error.ray.tolist()}


def rederived(difference: float, tolerance: float, numbers: int, second: str) -> dict[str, Any]:
    """The proof of a label derived twice: the widest of the differences of its numbers, and what `second` worked on."""
    return {
        "kind": "rederived",
        "difference": difference,
        "tolerance": tolerance,
        "numbers": numbers,
        "second": second,
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
