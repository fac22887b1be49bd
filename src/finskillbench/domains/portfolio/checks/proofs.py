"""The certificates check: each proof repeated from its stored multipliers with plain arithmetic.

The program is formulated from the input that an agent sees; the stored weights complete to a primal point, the stored
multipliers to a dual one, and weak duality gives the bound. Where the counts of names needed branching there are no
multipliers of the whole, so the problem is solved again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.domains.examination import Subject, examining
from finskillbench.domains.portfolio.checks import limits
from finskillbench.domains.portfolio.optimizer_call import effective_parameters
from finskillbench.engines.optimisation.certificate import prove_infeasible, prove_optimal
from finskillbench.engines.optimisation.certified import ACCEPTED_GAP, ACCEPTED_VIOLATION, InfeasibleError
from finskillbench.engines.optimisation.uniqueness import prove_unique
from finskillbench.engines.portfolio.formulation import Aim, Goal, formulate
from finskillbench.engines.portfolio.mandate import black_litterman_from, problem_from
from finskillbench.engines.portfolio.mandate_text import read_mandate
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import PortfolioProblem
from finskillbench.engines.portfolio.rebalance import rebalance
from finskillbench.episode import JsonObject
from finskillbench.findings import Findings

_SAME = 1e-9


def certificates(subject: Subject, findings: Findings) -> None:
    """Every label's certificate holds, and is the one that its proof sums up."""
    folder = subject.edition.path / "certificates"
    if not folder.is_dir() or not subject.edition.has_truth:
        findings.skip("the edition has no certificates")
        return
    stored: dict[str, JsonObject] = {}
    for name in dict.fromkeys(episode.sub_task for episode in subject.episodes):
        with examining(f"certificates/{name}.jsonl", findings):
            stored |= subject.edition.certificates(name)
    for episode in subject.episodes:
        if episode.task_id not in stored:
            findings.fail(episode.task_id, "has no certificate")
            continue
        with examining(episode.task_id, findings):
            check = _Certificate(
                episode.task_id,
                subject.input_of(episode),
                stored[episode.task_id],
                subject.edition.truth(episode.task_id).proof,
                findings,
            )
            check.examine(episode.sub_task)


class _Certificate:
    """One certificate beside the input it is about and the summary that goes with the truth."""

    def __init__(
        self, task_id: str, task_input: Mapping[str, Any], stored: JsonObject, proof: JsonObject, findings: Findings
    ) -> None:
        self.where = task_id
        self.input = task_input
        self.stored = stored
        self.proof = proof
        self.findings = findings

    def examine(self, sub_task: str) -> None:
        """Repeat the proof."""
        if sub_task == "tool_use_parameterization":
            self._authored()
        elif sub_task == "infeasibility_detection":
            self._decision(problem_from(self.input))
        elif sub_task == "rebalancing":
            self._two_stages(problem_from(self.input))
        else:
            views = sub_task == "black_litterman"
            problem = black_litterman_from(self.input)[0] if views else problem_from(self.input)
            self._optimal(problem, Aim(), self.stored, self.proof, unique=True)

    def _expect(self, holds: object, message: str) -> None:
        self.findings.expect(holds, self.where, message)

    def _optimal(
        self, problem: PortfolioProblem, aim: Aim, stored: JsonObject, proof: JsonObject, *, unique: bool
    ) -> bool:
        """Bound, gap and uniqueness again; returns whether uniqueness was proved again."""
        for name in ("objective", "lower_bound", "gap", "unique"):
            self._expect(proof[name] == stored[name], f"the truth's {name} is not the certificate's")
        self._expect(stored["gap"] <= ACCEPTED_GAP, f"states a gap of {stored['gap']:.1e}")
        self._expect(not unique or stored["unique"] is True, "does not prove the optimum unique")
        self._expect(stored["uniqueness"], "does not record how uniqueness was decided")
        weights = np.array(stored["weights"], dtype=float)
        if stored["programs_solved"] > 1:
            again = optimise(problem, aim.goal, objective_cap=aim.objective_cap)
            self._value("solved again", again.value, stored["objective"])
            self.findings.widest("greatest_gap", again.optimality.gap)
            self._expect(np.abs(again.weights - weights).max() <= 1e-5, "its weights are not those of solving again")
            self.findings.add("branched")
            return again.uniqueness.outcome.proved
        formulation = formulate(problem, aim)
        point = formulation.point(weights)
        multipliers = np.array(stored["multipliers"], dtype=float)
        again = prove_optimal(formulation.program, point, multipliers)
        self.findings.widest("greatest_gap", again.gap)
        self.findings.widest("greatest_violation", again.violation)
        self._expect(again.gap <= ACCEPTED_GAP, f"its multipliers leave a gap of {again.gap:.1e}")
        self._expect(again.violation <= ACCEPTED_VIOLATION, f"its weights break the program by {again.violation:.1e}")
        self._value("recomputed", again.objective, stored["objective"])
        self._value("bound from the multipliers", again.lower_bound, stored["lower_bound"])
        self.findings.add("recomputed")
        return prove_unique(formulation, point, multipliers).outcome.proved

    def _value(self, what: str, again: float, stated: float) -> None:
        self._expect(abs(again - stated) <= _SAME, f"states {stated:.12g}, {what}: {again:.12g}")

    def _two_stages(self, problem: PortfolioProblem) -> None:
        tolerance = self.input["objective_tolerance"]
        first = self.stored["stage_1"]
        self._optimal(problem, Aim(), first, self.proof["stage_1"], unique=False)
        cap = first["objective"] + tolerance * abs(first["objective"])
        second = self.stored["stage_2"]
        proved = self._optimal(problem, Aim(Goal.TURNOVER, cap), second, self.proof, unique=True)
        if not proved and second["programs_solved"] == 1:
            # Several portfolios trade as little; the label is the nearest of them, unique by a program of its own.
            nearest = rebalance(problem, tolerance)
            apart = float(np.abs(nearest.weights - np.array(second["weights"])).max())
            self._expect(apart <= 1e-5, f"is not the nearest of several portfolios of least turnover, by {apart:.1e}")
            self.findings.add("ties_broken")

    def _decision(self, problem: PortfolioProblem) -> None:
        free = replace(problem, limits=replace(problem.limits, max_turnover=None))
        self._optimal(free, Aim(Goal.TURNOVER), self.stored["least_turnover"], self.proof, unique=False)
        if self.proof["kind"] == "feasible":
            _, sigma = limits.covariance(self.input)
            over = limits.excesses(self.input, sigma, np.array(self.stored["witness"], dtype=float))
            worst = max(over, key=lambda name: over[name])
            self._expect(over[worst] <= ACCEPTED_VIOLATION, f"its witness breaks {worst} by {over[worst]:.1e}")
            self.findings.add("witnesses")
            return
        farkas = self.stored["farkas"]
        self._expect(self.proof["farkas_margin"] == farkas["margin"], "the truth's margin is not the certificate's")
        ray = np.array(farkas["ray"], dtype=float)
        program = formulate(problem, Aim()).program
        if len(ray) != len(program.rhs):
            # A ray of a branch on the counts of names refutes that branch only.
            try:
                optimise(problem)
            except InfeasibleError:
                self.findings.add("branched")
            else:
                self._expect(False, "is called infeasible but a portfolio keeps all limits")
            return
        again = prove_infeasible(program, ray)
        self._expect(again.margin > 0, f"its Farkas ray proves nothing: margin {again.margin:.1e}")
        self._value("margin from the ray", again.margin, farkas["margin"])
        smallest = min(self.findings.figures.get("least_farkas_margin", np.inf), again.margin)
        self.findings.figures["least_farkas_margin"] = float(smallest)
        self.findings.add("refuted")

    def _authored(self) -> None:
        sectors, size = self.input["sectors"], self.input["universe_size"]
        read = effective_parameters(read_mandate(self.input["scenario_description"], sectors).call(), sectors, size)
        self._expect(self.stored["effective_parameters"] == read, "its parameters are not those that the text states")
        for name in ("template", "drawn"):
            self._expect(self.proof[name] == self.stored[name], f"the truth's {name} is not the certificate's")
        self.findings.add("authored")
