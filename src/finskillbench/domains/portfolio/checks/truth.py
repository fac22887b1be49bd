"""The truth check: every label derived again from what an agent sees, with its arithmetic done a second time.

Limits, objectives, trades and posteriors come from `limits`, which shares no code with the engine that made the
labels; the optimum itself is solved again from the resolved input and compared by value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from finskillbench.domains import by_name
from finskillbench.domains.examination import Subject, examining
from finskillbench.domains.portfolio.checks import limits
from finskillbench.domains.portfolio.merit import trivial_value
from finskillbench.domains.portfolio.optimizer_call import agreement, effective_parameters
from finskillbench.domains.portfolio.rebalancing import LEAST_TRADE
from finskillbench.domains.portfolio.tool_use_parameterization import TRIVIAL_CALL
from finskillbench.engines.optimisation.certified import InfeasibleError
from finskillbench.engines.portfolio.feasibility import least_turnover
from finskillbench.engines.portfolio.mandate import black_litterman_from, problem_from
from finskillbench.engines.portfolio.mandate_text import read_mandate
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.engines.portfolio.rebalance import rebalance
from finskillbench.episode import Episode, Truth
from finskillbench.errors import EditionError
from finskillbench.findings import Findings

_KEPT = 1e-9
"""A label exceeds a limit by no more than this."""
_SAME_VALUE = 1e-9
"""Two objectives per year are equal when they differ by no more than this."""
_SAME_ZERO = 1e-7
"""The zero of `certified` comes from a portfolio that is only as near to a limit as a solver brings it."""
_SAME_WEIGHT = 1e-5
"""Weights of two proved optima may differ by more than their values do, where the optimum is flat."""
_TRADED = 1e-9

Derivation = Callable[[Mapping[str, Any], Truth, Findings], None]


def truth(subject: Subject, findings: Findings) -> None:
    """Derive every label again and compare."""
    if not subject.edition.has_truth:
        findings.skip("the edition was handed out without truth")
        return
    for episode in subject.episodes:
        with examining(episode.task_id, findings, fatal=subject.built):
            label = subject.edition.truth(episode.task_id)
            method = by_name(episode.sub_task).method
            findings.expect(label.verification.get("method") == method, episode.task_id, f"is not judged by {method}")
            task_input = _resolved(subject, episode)
            _DERIVATIONS[episode.sub_task](task_input, label, findings)
            findings.add(episode.sub_task)


def _resolved(subject: Subject, episode: Episode) -> Mapping[str, Any]:
    task_input = subject.input_of(episode)
    for name, value in task_input.items():
        if isinstance(value, Mapping) and "ref" in value:
            raise EditionError(f"cannot be derived: {name} refers to {value['ref']}, which the edition does not hold")
    return task_input


def _close(
    given: float, expected: float, where: str, what: str, findings: Findings, within: float = _SAME_VALUE
) -> None:
    apart = abs(given - expected)
    findings.widest(f"{what.replace(' ', '_')}_difference", apart if math.isfinite(apart) else math.inf)
    findings.expect(apart <= within, where, f"{what} is {given:.12g} in the label and {expected:.12g} derived again")


def _keeps_limits(
    task_input: Mapping[str, Any], sigma: limits.Floats, weights: limits.Floats, where: str, findings: Findings
) -> dict[str, float]:
    over = limits.excesses(task_input, sigma, weights)
    for name, excess in over.items():
        findings.expect(excess <= _KEPT, where, f"the label breaks {name} by {excess:.1e}")
    findings.widest("greatest_excess", max(over.values()))
    return over


def _optimisation(task_input: Mapping[str, Any], label: Truth, findings: Findings) -> None:
    where, known = label.task_id, label.verification
    tickers, sigma = limits.covariance(task_input)
    weights = limits.vector(label.expected_output["weights"], tickers)
    over = _keeps_limits(task_input, sigma, weights, where, findings)
    flags = label.expected_output.get("constraint_satisfaction")
    if flags is not None:
        names = set(over) - {"fully_invested"}
        findings.expect(set(flags) == names, where, "its flags are not one for each limit that is set")
        for name in names & set(flags):
            findings.expect(flags[name] is (over[name] <= _KEPT), where, f"its flag {name} is {flags[name]}")
    problem = problem_from(task_input)
    best = optimise(problem)
    value = limits.objective(task_input, sigma, weights)
    _close(value, best.value, where, "objective of the weights", findings)
    _compare_weights(weights, best.weights, where, findings)
    if "optimal_value" in known:
        _close(known["optimal_value"], value, where, "optimal value", findings)
        _close(known["trivial_value"], trivial_value(problem), where, "trivial value", findings, within=_SAME_ZERO)
        _check_zero(task_input, sigma, label, value, findings)


def _compare_weights(given: limits.Floats, derived: limits.Floats, where: str, findings: Findings) -> None:
    apart = float(np.abs(given - derived).max())
    findings.widest("weight_difference", apart)
    findings.expect(apart <= _SAME_WEIGHT, where, f"a weight differs from the optimum by {apart:.1e}")


def _rebalancing(task_input: Mapping[str, Any], label: Truth, findings: Findings) -> None:
    where, known, output = label.task_id, label.verification, label.expected_output
    tickers, sigma = limits.covariance(task_input)
    weights = limits.vector(output["new_weights"], tickers)
    _keeps_limits(task_input, sigma, weights, where, findings)
    current = limits.vector(task_input["current_portfolio"], tickers)
    trades = limits.vector({**dict.fromkeys(tickers, 0.0), **output["trade_list"]}, tickers)
    missed = np.abs(current + trades - weights)
    for ticker, apart in zip(tickers, missed.tolist(), strict=True):
        allowed = _TRADED if ticker in output["trade_list"] else LEAST_TRADE
        findings.expect(
            apart <= allowed, where, f"{ticker}: current weight and trade miss the new weight by {apart:.1e}"
        )
    traded = limits.turnover(task_input, weights)
    _close(output["turnover"], traded, where, "turnover", findings)
    problem = problem_from(task_input)
    result = rebalance(problem, task_input["objective_tolerance"])
    best = result.target.value
    accepted = best + task_input["objective_tolerance"] * abs(best)
    value = limits.objective(task_input, sigma, weights)
    enough = value <= accepted + _KEPT
    findings.expect(enough, where, f"its objective {value:.9g} is beyond the accepted {accepted:.9g}")
    _close(traded, result.turnover, where, "least turnover", findings, within=1e-8)
    _compare_weights(weights, result.weights, where, findings)
    if "accepted_value" in known:
        _close(known["accepted_value"], accepted, where, "accepted value", findings)
        unmoved = limits.objective(task_input, sigma, current)
        trivial = min(unmoved, trivial_value(problem, problem.inverse_variance))
        _close(known["trivial_value"], trivial, where, "trivial value", findings, within=_SAME_ZERO)
        direct = limits.turnover(task_input, result.target.weights)
        _close(known["stage_1_turnover"], direct, where, "turnover of stage 1", findings, within=_SAME_WEIGHT)
        _check_zero(task_input, sigma, label, accepted, findings)
        _close(known["least_turnover"], traded, where, "stated least turnover", findings)


def _black_litterman(task_input: Mapping[str, Any], label: Truth, findings: Findings) -> None:
    where, known, output = label.task_id, label.verification, label.expected_output
    tickers, sigma = limits.covariance(task_input)
    mean = limits.posterior(task_input, sigma)
    given = limits.vector(output["posterior_returns"], tickers)
    _close(float(np.abs(given - mean).max()), 0.0, where, "posterior error", findings)
    weights = limits.vector(output["optimal_weights"], tickers)
    stated = {
        **task_input,
        "constraints": {"long_only": True},
        "objective": Objective.MAX_SHARPE.value,
        "risk_aversion": task_input["risk_aversion"] / 2,
    }
    _keeps_limits(stated, sigma, weights, where, findings)
    best = optimise(black_litterman_from(task_input)[0])
    value = limits.objective(stated, sigma, weights, mean)
    _close(value, best.value, where, "objective of the weights", findings)
    _compare_weights(weights, best.weights, where, findings)
    if "optimal_value" in known:
        _close(known["optimal_value"], value, where, "optimal value", findings)
        equal = np.full(len(sigma), 1 / len(sigma))
        market = limits.vector(task_input["market_cap_weights"], tickers)
        trivial = min(limits.objective(stated, sigma, at_hand, mean) for at_hand in (equal, market))
        _close(known["trivial_value"], trivial, where, "trivial value", findings, within=_SAME_ZERO)
        _check_zero(stated, sigma, label, value, findings, mean)


def _check_zero(
    task_input: Mapping[str, Any],
    sigma: limits.Floats,
    label: Truth,
    optimum: float,
    findings: Findings,
    mean: limits.Floats | None = None,
) -> None:
    """The zero of `certified` is worse than the optimum, and no portfolio that is simply at hand beats it."""
    zero = label.verification["trivial_value"]
    spread = zero - optimum
    findings.figures["least_spread"] = min(findings.figures.get("least_spread", math.inf), spread)
    findings.expect(spread > 0, label.task_id, "the trivial value is as good as the optimum")
    tickers, n = task_input["covariance_matrix"]["tickers"], len(sigma)
    ready = {"equal weights": np.full(n, 1 / n)}
    if mean is None:
        inverse = 1 / np.diag(sigma)
        ready["inverse-variance weights"] = inverse / inverse.sum()
    for name in ("benchmark_weights", "market_cap_weights", "current_portfolio"):
        if name in task_input:
            ready[name] = limits.vector(task_input[name], tickers)
    for name, weights in ready.items():
        value = limits.objective(task_input, sigma, weights, mean)
        if value < zero - _SAME_VALUE and max(limits.excesses(task_input, sigma, weights).values()) <= _KEPT:
            findings.fail(
                label.task_id, f"{name}, which keep the limits, reach {value:.6g}: below the trivial {zero:.6g}"
            )


def _tool_use(task_input: Mapping[str, Any], label: Truth, findings: Findings) -> None:
    """The call has only parameters that matter, and is what the text says to a reader that never saw the call."""
    where, call = label.task_id, label.expected_output["optimizer_call"]
    sectors, size = task_input["sectors"], task_input["universe_size"]
    wanted = effective_parameters(call, sectors, size)
    findings.expect(call["objective"] in set(Objective), where, f"objective {call['objective']} is unknown")
    for name in sorted(set(call["constraints"]) - {"long_only"}):
        rest = {key: value for key, value in call["constraints"].items() if key != name}
        less = effective_parameters({**call, "constraints": rest}, sectors, size)
        findings.expect(less != wanted, where, f"{name} changes nothing")
    reading = read_mandate(task_input["scenario_description"], sectors)
    findings.expect(not reading.unread, where, f"the text states something no parameter takes: {reading.unread}")
    read = effective_parameters(reading.call(), sectors, size)
    apart = sorted(name for name in wanted.keys() | read.keys() if wanted.get(name) != read.get(name))
    same = agreement(read, wanted) > 1 - _KEPT
    findings.expect(same, where, f"the text and the call differ on {', '.join(apart)}")
    trivial = agreement(effective_parameters(TRIVIAL_CALL, sectors, size), wanted)
    findings.expect(trivial < 1, where, "the call that needs no reading is right")


def _infeasibility(task_input: Mapping[str, Any], label: Truth, findings: Findings) -> None:
    where, output = label.task_id, label.expected_output
    problem = problem_from(task_input)
    least = least_turnover(problem)
    _close(output["minimum_turnover"], least.value, where, "minimum turnover", findings, within=1e-8)
    _, sigma = limits.covariance(task_input)
    others = {**task_input, "constraints": {**task_input["constraints"], "max_turnover": None}}
    over = limits.excesses(others, sigma, least.weights)
    worst = max(over, key=lambda name: over[name])
    findings.expect(over[worst] <= _KEPT, where, f"the portfolio of least turnover breaks {worst}")
    _close(limits.turnover(task_input, least.weights), least.value, where, "its turnover", findings, within=1e-8)
    try:
        optimise(problem)
        feasible = True
    except InfeasibleError:
        feasible = False
    findings.expect(output["feasible"] is feasible, where, f"is labelled feasible: {output['feasible']}")
    limit = task_input["constraints"]["max_turnover"]
    findings.expect((least.value <= limit) is feasible, where, "the least turnover contradicts the verdict")
    margin = abs(least.value - limit)
    findings.figures["least_distance_from_limit"] = min(findings.figures.get("least_distance_from_limit", 1.0), margin)


_DERIVATIONS: dict[str, Derivation] = {
    "unconstrained_optimization": _optimisation,
    "constrained_optimization": _optimisation,
    "rebalancing": _rebalancing,
    "black_litterman": _black_litterman,
    "tool_use_parameterization": _tool_use,
    "infeasibility_detection": _infeasibility,
}
