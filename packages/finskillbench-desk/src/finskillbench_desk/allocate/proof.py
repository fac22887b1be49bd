"""Proof of a label: rederived posterior, certificate of the optimum, and a search for better portfolios."""

from __future__ import annotations

from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.examples import Label
from finskillbench.engines.optimisation.certificate import prove_optimal
from finskillbench.engines.optimisation.certified import ACCEPTED_GAP, ACCEPTED_VIOLATION
from finskillbench.findings import Findings
from finskillbench_desk.allocate import rederive
from finskillbench_desk.allocate.prompts import book_from_json, effect_covariance_from_json
from finskillbench_desk.allocate.sources import LEAST_COST, NAMES, PENALTY
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

    expect(_same_book(label), "the truth's book differs from the tables")
    effects, doubt = rederive.rederive_effects(label.task_input)
    apart = float(np.abs(effects - np.array(known["effects"])).max())
    findings.widest("effect_difference", apart)
    expect(apart <= AGREEMENT, f"an expected effect differs by {apart:.1e} from its rederivation")
    apart = float(np.abs(doubt - effect_covariance_from_json(known["effect_covariance"])).max())
    expect(apart <= AGREEMENT, f"a covariance of effects differs by {apart:.1e} from its rederivation")
    problem = book.problem(effects, doubt)
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
    most = max(problem.penalised(weights, PENALTY) for weights in attempts(problem, best))
    expect(
        most <= attainable + AGREEMENT, f"an alternative portfolio earns {most - attainable:.1e} more than the optimum"
    )


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


def _same_book(label: Label[Any]) -> bool:
    book, task_input = book_from_json(label.truth.verification["book"]), label.task_input
    names, factors = task_input["names"].frame, task_input["factor_covariance"]
    pairs = [
        (book.loadings, names.select(factors["factors"]).to_numpy()),
        (book.factor_covariance, np.array(factors["matrix"])),
        *(
            (array, names[column].to_numpy())
            for array, column in (
                (book.specific, "specific_volatility"),
                (book.prior, "equilibrium_return"),
                (book.current, "current_weight"),
                (book.benchmark, "benchmark_weight"),
                (book.linear, "linear_cost"),
                (book.quadratic, "quadratic_cost"),
            )
        ),
    ]
    industries: list[str] = [book.groups[group] for group in book.group_of.tolist()]
    named = names["ticker"].to_list() == list(book.tickers) and names["industry"].to_list() == industries
    return named and all(np.array_equal(stated, seen) for stated, seen in pairs)
