"""Proof of a label: rederived posterior, certificate of the optimum, and a search for better portfolios."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.examples import Label
from finskillbench.engines.optimisation.certificate import prove_optimal
from finskillbench.engines.optimisation.certified import ACCEPTED_GAP, ACCEPTED_VIOLATION
from finskillbench.findings import Findings
from finskillbench_desk.allocate.laws import Law, disclosed_law, family_json, follows, law_from_json
from finskillbench_desk.allocate.prompts import effect_covariance_from_json, problem_of
from finskillbench_desk.allocate.rederive import rederive_effects
from finskillbench_desk.allocate.sources import GROUP_SIZE, LEAST_COST, NAMES, PENALTY, book_from_json, book_json
from finskillbench_desk.allocate.visible import read_visible, visible_book
from finskillbench_desk.engines.trading.net_of_costs import (
    TradingProblem,
    formulate_trades,
    greatest_multiplier,
    optimum,
)

AGREEMENT = 1e-9
"""Rounding tolerance between two derivations of an effect or a utility, both of order 0.01."""
_ATTEMPTS = 300


def proof(label: Label[Any], findings: Findings) -> None:
    """Recheck one label, from the posterior to the cost of each mistake, by the task input and the certificate."""
    known, where = label.truth.verification, label.truth.task_id
    book = book_from_json(known["book"])

    def expect(holds: object, message: str) -> None:
        findings.expect(holds, where, message)

    industries = label.task_input["names"]["industry"] == np.repeat(book.groups, GROUP_SIZE).tolist()
    same = industries and book_json(visible_book(label.task_input)) == known["book"]
    expect(same, "the truth's book differs from the tables")
    _prove_effects(label, findings, expect)
    problem = problem_of(known)
    attainable, textbook = known["attainable_utility"], known["textbook_utility"]
    formulation, stored = formulate_trades(problem), label.certificate
    if stored:
        multipliers, weights = np.array(stored["multipliers"]), np.array(stored["weights"])
        proved = prove_optimal(formulation.program, formulation.point(weights), multipliers)
        findings.widest("greatest_gap", proved.gap)
        expect(
            proved.gap <= ACCEPTED_GAP,
            f"the certificate has a duality gap of {proved.gap:.1e}, at most {ACCEPTED_GAP:g} allowed",
        )
        expect(
            proved.violation <= ACCEPTED_VIOLATION,
            f"the certified weights violate a constraint by {proved.violation:.1e}",
        )
        price = greatest_multiplier(formulation, multipliers)
        expect(price <= PENALTY, f"a multiplier of {price:.3g} exceeds the penalty of {PENALTY:g}")
        expect(abs(-proved.objective - attainable) <= AGREEMENT, "attainable_utility differs from the optimum's")
    ignoring = optimum(book.problem(np.zeros(NAMES)), unique=False).weights
    better = max(problem.utility(book.current), problem.utility(ignoring))
    expect(abs(better - textbook) <= 1e-7, "textbook_utility is not that of the book or of the optimum without sources")
    best = np.array([label.truth.expected_output["weights"][ticker] for ticker in book.tickers])
    expect(
        abs(problem.penalised(best, PENALTY) - attainable) <= 1e-7, "the stored weights do not earn attainable_utility"
    )
    mistakes = known["misread"]
    expect(
        len(mistakes) == label.truth.proof["mistakes"],
        f"has {len(mistakes)} mistakes, {label.truth.proof['mistakes']} in its proof",
    )
    for name, wrong in mistakes.items():
        cost = (attainable - problem.penalised(np.array(wrong), PENALTY)) / (attainable - textbook)
        expect(cost >= LEAST_COST - 1e-6, f"the mistake {name} costs only {cost:.3f} of the gain")
        if "costs" in stored:
            expect(abs(cost - stored["costs"].get(name, np.inf)) < 1e-6, f"the cost of the mistake {name} differs")
    most = max(problem.penalised(weights, PENALTY) for weights in attempts(problem, best))
    expect(
        most <= attainable + AGREEMENT, f"an alternative portfolio earns {most - attainable:.1e} more than the optimum"
    )


def _prove_effects(label: Label[Any], findings: Findings, expect: Callable[[object, str], None]) -> None:
    """Compare the stored effects with those rederived from the visible data under the law."""
    known, law = label.truth.verification, _law_of(label, expect)
    if law is None:
        return
    effects, doubt = rederive_effects(law, read_visible(label.task_input))
    apart = float(np.abs(effects - np.array(known["effects"])).max())
    findings.widest("effect_difference", apart)
    expect(apart <= AGREEMENT, f"an expected effect differs by {apart:.1e} from its rederivation")
    apart = float(np.abs(doubt - effect_covariance_from_json(known["effect_covariance"])).max())
    expect(apart <= AGREEMENT, f"a covariance of effects differs by {apart:.1e} from its rederivation")


def _law_of(label: Label[Any], expect: Callable[[object, str], None]) -> Law | None:
    """Return the law that the input discloses or the truth stores; None if it does not fit its form."""
    stored, family = label.truth.verification["law"], label.task_input.get("family")
    if (stored is None) == (family is None):
        expect(False, "the truth needs a law exactly if no family is disclosed")
        return None
    if family is not None:
        law = disclosed_law(family["nothing"], family["signal_mean"], family["change"])
        fits, message = family_json(law) == family, "the numbers of the field family are not those of a disclosed law"
    else:
        law, structure = law_from_json(stored), label.certificate.get("structure")
        fits, message = structure is None or follows(law, structure), f"the law is none of {structure}"
    expect(fits, message)
    return law if fits else None


def attempts(problem: TradingProblem, best: Floats, count: int = _ATTEMPTS, seed: int = 0) -> list[Floats]:
    """Draw plausible portfolios and perturbations of the optimum, inside and outside of the limits."""
    rng = np.random.default_rng(seed)
    n = len(best)
    found = [problem.held, np.full(n, 1 / n)]
    while len(found) < count:
        kind, size = len(found) % 4, 10 ** rng.uniform(-5, -1)
        noise = rng.normal(0.0, size / np.sqrt(n), n)
        if kind == 0:
            found.append(np.clip(best + noise - noise.mean(), 0.0, problem.caps))
        elif kind == 1:
            found.append(best + noise)
        elif kind == 2:
            found.append(best + rng.uniform(-0.5, 0.5) * (best - problem.held))
        else:
            found.append(rng.dirichlet(np.full(n, rng.uniform(0.2, 5.0))))
    return found
