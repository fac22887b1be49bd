"""Exploits, shortcuts and graded examples of infeasibility detection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.portfolio import rederive
from finskillbench.domains.portfolio.definitions import WAIVABLE, family, level, printed, sector_of, waive_limits
from finskillbench.domains.portfolio.examples.exploits import with_decimals
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.portfolio.mandates.feasibility import least_attainable
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.trivial import within_caps
from finskillbench.episode import JsonObject

Json = dict[str, Any]
Answers = dict[str, Json]
_KEPT = 1e-9
_STEPS = 201
_SHARES = (0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2)


def exploits(task_input: Any) -> Answers:
    """Return constant verdicts with shares of the limit, and simple portfolios with their implied verdicts."""
    limit = printed(task_input, task_input["limit_to_relax"])
    answers: Answers = {"empty": {}}
    for feasible in (True, False):
        word, conflict = ("feasible", []) if feasible else ("infeasible", list(WAIVABLE))
        answers[word] = {"feasible": feasible}
        answers[f"{word}, nothing attainable"] = _answer(feasible, conflict, 0.0)
        for share in _SHARES:
            answers[f"{word}, {share:.0%} of the limit"] = _answer(feasible, conflict, share * limit)
    return answers | dict(_simple_portfolios(task_input))


def shortcuts(task_input: Any) -> Answers:
    """Return solutions of mandates with a part left out, and simple portfolios."""
    named = task_input["limit_to_relax"]
    relaxed_family = family(named)
    limit = printed(task_input, named)
    return {
        "feasible, at the limit": _answer(True, [], limit),
        "infeasible, at the limit": _answer(False, WAIVABLE, limit),
        **{f"without {name}": _solved(waive_limits(task_input, [name])) for name in WAIVABLE if name != relaxed_family},
        "restricted names held": _solved(
            {**task_input, "constraints": {**task_input["constraints"], "restricted_names": []}}
        ),
        "names and sectors alone": _solved(_alone(task_input, "max_weight", "sector_limits")),
        "each limit by itself": _each(task_input, [[name] for name in WAIVABLE if name != relaxed_family]),
        **dict(_simple_portfolios(task_input)),
    }


def _answer(feasible: bool, conflict: Iterable[str], value: float) -> Json:
    return {"feasible": feasible, "conflicting_limits": list(conflict), "least_attainable": value}


def _alone(task_input: JsonObject, *names: str) -> JsonObject:
    kept = {*names, family(task_input["limit_to_relax"])}
    return waive_limits(task_input, [name for name in WAIVABLE if name not in kept])


def _solved(task_input: JsonObject) -> Json:
    """Solve another mandate; report its binding limits as those in conflict."""
    named = task_input["limit_to_relax"]
    problem = problem_from(task_input)
    try:
        least = least_attainable(problem, sector_of(named), polished=False)
    except (InfeasibleError, UndecidedError):
        return {}
    feasible = least.value <= printed(task_input, named)
    over = rederive.excesses(task_input, rederive.input_covariance(task_input)[1], least.weights)
    binding = [name for name in WAIVABLE if name == family(named) or over.get(name, -1.0) > -1e-6]
    return _answer(feasible, [] if feasible else binding, least.value)


def _each(task_input: JsonObject, groups: list[list[str]]) -> Json:
    """Return the solution with the largest least attainable value over groups of limits, one group at a time."""
    found = [_solved(_alone(task_input, *group)) for group in groups]
    return max(found, key=lambda answer: answer.get("least_attainable", 0.0))


def _simple_portfolios(task_input: Json) -> Iterator[tuple[str, Json]]:
    """Yield simple portfolios, each with its implied verdict and value of the limit."""
    tickers, sigma = rederive.input_covariance(task_input)
    problem = problem_from(task_input)
    current = rederive.vector(task_input["current_portfolio"], tickers)
    benchmark = rederive.vector(task_input["benchmark_weights"], tickers)
    allowed = 1.0 - np.isin(tickers, task_input["constraints"]["restricted_names"])
    rest = within_caps(problem, benchmark * allowed / (benchmark * allowed).sum())
    portfolios = {
        "current portfolio": current,
        "benchmark": benchmark,
        "benchmark without restricted names": rest,
        "equal weights within the caps": within_caps(problem, allowed / allowed.sum()),
    }
    for name, weights in portfolios.items():
        yield name, _measured(task_input, sigma, [weights])
    way = [current + share * (rest - current) for share in np.linspace(0.0, 1.0, _STEPS)]
    yield "part of the way to the benchmark", _measured(task_input, sigma, way)


def _measured(task_input: Json, sigma: rederive.Floats, portfolios: list[rederive.Floats]) -> Json:
    """Return the least value of the limit to relax over feasible portfolios, or the value of the last one."""
    named = task_input["limit_to_relax"]
    other_limits = waive_limits(task_input, [family(named)])
    kept = [one for one in portfolios if max(rederive.excesses(other_limits, sigma, one).values()) <= _KEPT]
    value = min(level(task_input, named, sigma, one) for one in (kept or portfolios[-1:]))
    feasible = bool(kept) and value <= printed(task_input, named)
    over = rederive.excesses(task_input, sigma, portfolios[-1])
    broken = [name for name in WAIVABLE if name == family(named) or over[name] > _KEPT]
    return _answer(feasible, [] if feasible else broken, value)


def graded_examples(label: Label[Any]) -> list[GradedExample]:
    """Return graded answers; errors of the least attainable value are relative."""
    truth = label.truth.expected_output
    feasible, conflict, least = truth["feasible"], truth["conflicting_limits"], truth["least_attainable"]

    def off(share: float) -> dict[str, Any]:
        return {**truth, "least_attainable": least * (1 + share)}

    few = [GradedExample("one limit too few in conflict", {**truth, "conflicting_limits": conflict[1:]}, 0.75, 0.9)]
    return [
        GradedExample("all of it", truth, 1.0, 1.0),
        GradedExample("to six decimals", with_decimals(truth, 6), 1.0, 1.0),
        *([] if feasible else few),
        GradedExample("the least value 0.8 % off", off(0.008), 0.6, 0.7),
        GradedExample("no conflict named", {"feasible": feasible, "least_attainable": least}, 0.5, 0.5),
        GradedExample("the least value 1.6 % off", off(-0.016), 0.1, 0.3),
        GradedExample("the least value 10 % off", off(0.1), 0.0, 0.0),
        GradedExample("the verdict alone", {"feasible": feasible}, 0.0, 0.0),
        GradedExample("the wrong verdict", {**truth, "feasible": not feasible}, 0.0, 0.0),
    ]
