"""Checks shared by the proofs of portfolio labels.

`rederive` and `optimality` share no code with the engine. Certificates are checked by weak duality of the program of
the agent's input. Labels without a certificate, and optima that needed branching on names, are solved again.
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
from finskillbench.domains.portfolio.optimality import OptimalityCheck
from finskillbench.engines.optimisation.certificate import prove_optimal
from finskillbench.engines.optimisation.certified import ACCEPTED_GAP, ACCEPTED_VIOLATION, Certified
from finskillbench.engines.portfolio.formulation import PortfolioAim, formulate_portfolio
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import PortfolioProblem
from finskillbench.episode import JsonObject
from finskillbench.findings import Findings

EXACT = 1e-9
"""Maximum excess over a limit, and maximum difference of two values of one quantity."""
UNDECIDED_GAIN = 1e-6
"""Maximum possible gain of another portfolio by gradients; objectives are of order 0.01 to 1."""
TRIVIAL_TOLERANCE = 1e-7
"""Tolerance of the zero of `certified`, from a portfolio as close to a limit as the solver gets."""
WEIGHT_TOLERANCE = 1e-5
"""Tolerance of weights of two proved optima: flat optima differ more in weights than in value."""


class Recheck:
    """One label under examination; `task_input` is derived from the label's where the optimum is (Black-Litterman)."""

    def __init__(self, label: Label[Any], findings: Findings, task_input: JsonObject | None = None) -> None:
        self.label = label
        self.findings = findings
        self.task_input: JsonObject = label.task_input if task_input is None else task_input
        self.tickers, self.covariance = rederive.input_covariance(self.task_input)

    def expect(self, holds: object, message: str) -> None:
        """Add a defect of this label unless `holds`."""
        self.findings.expect(holds, self.label.truth.task_id, message)

    def close(self, stated: float, derived: float, what: str, within: float = EXACT) -> None:
        """Check a number of the label against its independent derivation."""
        difference = abs(stated - derived)
        finite = difference if math.isfinite(difference) else math.inf
        self.findings.widest(f"{what.replace(' ', '_')}_difference", finite)
        self.expect(difference <= within, f"{what} is {stated:.12g} in the label and {derived:.12g} derived again")

    def vector(self, table: Mapping[str, float]) -> Floats:
        """Return the numbers (n,) of a map in ticker order."""
        return rederive.vector(table, self.tickers)

    def within_limits(self, weights: Floats) -> dict[str, float]:
        """Check that weights satisfy every limit; return the excesses."""
        over = rederive.excesses(self.task_input, self.covariance, weights)
        for name, excess in over.items():
            self.expect(excess <= EXACT, f"the label breaks {name} by {excess:.1e}")
        self.findings.widest("greatest_excess", max(over.values()))
        return over

    def same_weights(self, weights: Floats, derived: Floats) -> None:
        """Check the label's weights against the optimum."""
        difference = float(np.abs(weights - derived).max())
        self.findings.widest("weight_difference", difference)
        self.expect(difference <= WEIGHT_TOLERANCE, f"a weight differs from the optimum by {difference:.1e}")

    def states_value(self, name: str) -> bool:
        """Return True if the label states a value for `certified`; imported labels may not."""
        return self.label.built or name in self.label.truth.verification

    def trivial_value(self, derived: float, optimum: float, mean: Floats | None = None) -> None:
        """Check that the zero of `certified` is above the optimum and that no simple feasible portfolio beats it."""
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
        """Check that weights are the unique optimum of a problem, by certificate or by solving again; return their
        objective.
        """
        solve = cache(partial(optimise, problem))
        value = rederive.objective(self.task_input, self.covariance, weights, mean)
        stored = self.label.certificate
        self.close(value, stored["objective"] if stored else solve().value, "objective of the weights")
        self.same_weights(weights, self.stored(stored) if stored else solve().weights)
        if self.states_value("optimal_value"):
            self.close(self.label.truth.verification["optimal_value"], value, "optimal value")
        if stored:
            self.certificate(problem, PortfolioAim(), stored, self.label.truth.proof, solve)
            self.cannot_gain("optimum", OptimalityCheck(self.task_input, weights, mean).gain())
        return value

    def trades(self, weights: Floats, least: float) -> None:
        """Check that listed trades lead to the new weights, and that unlisted ones are smaller than `least`."""
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
        """Return the weights (n,) of a certificate."""
        return np.array(certificate["weights"], dtype=float)

    def cannot_gain(self, name: str, gain: float) -> None:
        """Check that no other portfolio is better beyond rounding."""
        self.findings.widest("greatest_gain", gain)
        self.expect(gain <= UNDECIDED_GAIN, f"{name}: another portfolio may be better by {gain:.1e}")

    def certificate(
        self,
        problem: PortfolioProblem,
        aim: PortfolioAim,
        stored: JsonObject,
        summary: JsonObject,
        solve: Callable[[], Certified],
        *,
        unique: bool = True,
    ) -> None:
        """Recompute bound and gap of the certificate `stored`; check its `summary` and uniqueness. `solve` solves it
        again.
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
        formulation = formulate_portfolio(problem, aim)
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
        """Check a number of a certificate against a recomputed one."""
        self.expect(abs(again - stated) <= EXACT, f"states {stated:.12g}, {what}: {again:.12g}")
