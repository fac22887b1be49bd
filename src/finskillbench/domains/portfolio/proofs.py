"""Checks that the proofs of portfolio labels share.

Limits, objectives, trades and posteriors come from `second`, that no portfolio is better from `optimality`: neither
shares code with the engine that made the labels. A certificate is held to its own words beside: the program is
formulated from the input that an agent sees, the stored weights complete to a primal point, the stored multipliers to
a dual one, and weak duality gives the bound. Only a label without a certificate, and an optimum whose counts of names
needed branching, which no multipliers of the whole prove, are solved again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.examples import Label
from finskillbench.domains.portfolio import rederive
from finskillbench.domains.portfolio.optimality import Program
from finskillbench.engines.optimisation.certificate import prove_optimal
from finskillbench.engines.optimisation.certified import ACCEPTED_GAP, ACCEPTED_VIOLATION, Certified
from finskillbench.engines.portfolio.formulation import Aim, formulate
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import PortfolioProblem
from finskillbench.episode import JsonObject
from finskillbench.findings import Findings

EXACT = 1e-9
"""A label exceeds a limit by no more than this, and two values of one quantity differ by no more."""
UNDECIDED_GAIN = 1e-6
"""By how much another portfolio may still be better by the gradients alone: objectives are of order 0.01 to 1."""
TRIVIAL_TOLERANCE = 1e-7
"""The zero of `certified` comes from a portfolio that is only as near to a limit as a solver brings it."""
WEIGHT_TOLERANCE = 1e-5
"""Weights of two proved optima may differ by more than their values do, where the optimum is flat."""


class Recheck:
    """One label under examination: its input and covariance, and the findings that its proof adds to.

    `task_input` is the label's own unless the optimum is that of a derived one, as in Black-Litterman.
    """

    def __init__(self, label: Label[Any], findings: Findings, task_input: JsonObject | None = None) -> None:
        self.label = label
        self.findings = findings
        self.task_input: JsonObject = label.task_input if task_input is None else task_input
        self.tickers, self.covariance = rederive.covariance(self.task_input)

    def expect(self, holds: object, message: str) -> None:
        """Add a defect of this label unless something holds."""
        self.findings.expect(holds, self.label.truth.task_id, message)

    def close(self, stated: float, derived: float, what: str, within: float = EXACT) -> None:
        """A number of the label is the one derived again."""
        difference = abs(stated - derived)
        finite = difference if math.isfinite(difference) else math.inf
        self.findings.widest(f"{what.replace(' ', '_')}_difference", finite)
        self.expect(difference <= within, f"{what} is {stated:.12g} in the label and {derived:.12g} derived again")

    def vector(self, table: Mapping[str, float]) -> Floats:
        """(n,) numbers of a map that covers the tickers, and nothing else."""
        return rederive.vector(table, self.tickers)

    def within_limits(self, weights: Floats) -> dict[str, float]:
        """Weights keep every limit; by how much they exceed each (never positive)."""
        over = rederive.excesses(self.task_input, self.covariance, weights)
        for name, excess in over.items():
            self.expect(excess <= EXACT, f"the label breaks {name} by {excess:.1e}")
        self.findings.widest("greatest_excess", max(over.values()))
        return over

    def same_weights(self, weights: Floats, derived: Floats) -> None:
        """Weights of the label are those of the optimum solved again."""
        difference = float(np.abs(weights - derived).max())
        self.findings.widest("weight_difference", difference)
        self.expect(difference <= WEIGHT_TOLERANCE, f"a weight differs from the optimum by {difference:.1e}")

    def states_value(self, name: str) -> bool:
        """Whether to recheck a value that `certified` needs: every built label states it, an imported one may not."""
        return self.label.built or name in self.label.truth.verification

    def trivial_value(self, derived: float, optimum: float, mean: Floats | None = None) -> None:
        """The zero of `certified` is worse than the optimum, and no portfolio that is simply at hand beats it."""
        zero: float = self.label.truth.verification["trivial_value"]
        self.close(zero, derived, "trivial value", TRIVIAL_TOLERANCE)
        self.findings.least("least_spread", zero - optimum)
        self.expect(zero - optimum > 0, "the trivial value is as good as the optimum")
        at_hand = {"equal weights": np.full(len(self.tickers), 1 / len(self.tickers))}
        if mean is None:
            at_hand["inverse-variance weights"] = rederive.inverse_variance(self.covariance)
        for name in ("benchmark_weights", "market_cap_weights", "current_portfolio"):
            if name in self.task_input:
                at_hand[name] = self.vector(self.task_input[name])
        for name, weights in at_hand.items():
            value = rederive.objective(self.task_input, self.covariance, weights, mean)
            over = rederive.excesses(self.task_input, self.covariance, weights)
            beaten = value < zero - EXACT and max(over.values()) <= EXACT
            self.expect(not beaten, f"{name}, which keep the limits, reach {value:.6g}: below the trivial {zero:.6g}")

    def optimum(self, problem: PortfolioProblem, weights: Floats, mean: Floats | None = None) -> float:
        """Weights are the only optimum of a problem, limits apart; returns their objective.

        A certificate is held to its multipliers and gradients; a label without one is solved again.
        """
        solve = cache(partial(optimise, problem))
        value = rederive.objective(self.task_input, self.covariance, weights, mean)
        stored = self.label.certificate
        self.close(value, stored["objective"] if stored else solve().value, "objective of the weights")
        self.same_weights(weights, self.stored(stored) if stored else solve().weights)
        if self.states_value("optimal_value"):
            self.close(self.label.truth.verification["optimal_value"], value, "optimal value")
        if stored:
            self.certificate(problem, Aim(), stored, self.label.truth.proof, solve)
            self.cannot_gain("optimum", Program(self.task_input, weights, mean).gain())
        return value

    def trades(self, weights: Floats, least: float) -> None:
        """Listed trades lead from the current to the new weights; an unlisted one is smaller than `least`."""
        current = self.vector(self.task_input["current_portfolio"])
        listed: dict[str, float] = self.label.truth.expected_output["trade_list"]
        trades = self.vector({**dict.fromkeys(self.tickers, 0.0), **listed})
        missed = np.abs(current + trades - weights)
        for ticker, difference in zip(self.tickers, missed.tolist(), strict=True):
            allowed = EXACT if ticker in listed else least
            miss = f"{ticker}: current weight and trade miss the new weight by {difference:.1e}"
            self.expect(difference <= allowed, miss)

    @staticmethod
    def stored(certificate: JsonObject) -> Floats:
        """(n,) weights of a certificate."""
        return np.array(certificate["weights"], dtype=float)

    def cannot_gain(self, name: str, gain: float) -> None:
        """No other portfolio is better by more than what rounding leaves."""
        self.findings.widest("greatest_gain", gain)
        self.expect(gain <= UNDECIDED_GAIN, f"{name}: another portfolio may be better by {gain:.1e}")

    def certificate(
        self,
        problem: PortfolioProblem,
        aim: Aim,
        stored: JsonObject,
        summary: JsonObject,
        solve: Callable[[], Certified],
        *,
        unique: bool = True,
    ) -> None:
        """Repeat the bound and the gap of an optimum, and hold its summary and what it says of uniqueness to it.

        `stored` is the certificate, `summary` the truth's summary of it, `solve` solves the same program again.
        """
        for name in ("objective", "lower_bound", "gap", "unique", "programs_solved"):
            self.expect(summary[name] == stored[name], f"the truth's {name} is not the certificate's")
        self.expect(stored["gap"] <= ACCEPTED_GAP, f"states a gap of {stored['gap']:.1e}")
        self.expect(not unique or stored["unique"] is True, "does not prove the optimum unique")
        self.expect(stored["uniqueness"], "does not record how uniqueness was decided")
        weights = self.stored(stored)
        if stored["programs_solved"] > 1:
            again = solve()
            self.states(stored["objective"], again.value, "solved again")
            self.findings.widest("greatest_gap", again.optimality.gap)
            same = np.abs(again.weights - weights).max() <= WEIGHT_TOLERANCE
            self.expect(same, "its weights are not those of solving again")
            self.findings.add("branched")
            return
        formulation = formulate(problem, aim)
        multipliers = np.array(stored["multipliers"], dtype=float)
        proof = prove_optimal(formulation.program, formulation.point(weights), multipliers)
        self.findings.widest("greatest_gap", proof.gap)
        self.findings.widest("greatest_violation", proof.violation)
        self.expect(proof.gap <= ACCEPTED_GAP, f"its multipliers leave a gap of {proof.gap:.1e}")
        self.expect(proof.violation <= ACCEPTED_VIOLATION, f"its weights break the program by {proof.violation:.1e}")
        self.states(stored["objective"], proof.objective, "recomputed")
        self.states(stored["lower_bound"], proof.lower_bound, "bound from the multipliers")
        self.findings.add("recomputed")

    def states(self, stated: float, again: float, what: str) -> None:
        """A number of a certificate is the one found again."""
        self.expect(abs(again - stated) <= EXACT, f"states {stated:.12g}, {what}: {again:.12g}")
