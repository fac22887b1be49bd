"""Black-Litterman: posterior expected returns from market portfolio and analyst views, and the optimal portfolio."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from pydantic import Field

from finskillbench.arrays import Floats
from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification
from finskillbench.domains.building import BuildContext, BuiltTask, stratified
from finskillbench.domains.checks.proofs import certificate_of, proof_of
from finskillbench.domains.examples import Examples, Label, Shortcuts
from finskillbench.domains.portfolio import rederive, worth
from finskillbench.domains.portfolio.definitions import METADATA, PRECISION, SKILL, tolerance
from finskillbench.domains.portfolio.examples import black_litterman as examples
from finskillbench.domains.portfolio.examples import exploits
from finskillbench.domains.portfolio.inputs import AnalystView, BlackLittermanInput
from finskillbench.domains.portfolio.objects import MonthEnd, PortfolioObjects
from finskillbench.domains.portfolio.objects.settings import ViewSettings, ViewTier
from finskillbench.domains.portfolio.proofs import Recheck
from finskillbench.engines.portfolio.black_litterman import (
    RISK_AVERSION,
    TAU,
    Posterior,
    equilibrium,
    optimal_weights,
    without_shorts,
)
from finskillbench.engines.portfolio.mandates.fields import black_litterman_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth, lowest_raw
from finskillbench.findings import Findings
from finskillbench.panels.market.benchmark_weights import RULE
from finskillbench.scoring.values import clip, first_numbers, mean, mean_absolute_error, numbers, parameter

NAME = "black_litterman"
METHOD = "view_specification_and_weights"
MODEL = {
    "market": f"market_cap_weights are {RULE}",
    "units": "covariance_matrix S, risk_free_rate and view returns are annualised decimals (0.05 is 5% a year)",
    "equilibrium": "pi = risk_aversion * S * market_cap_weights: excess returns over risk_free_rate",
    "views": "an absolute view quotes the total return of its symbol: Q is `return` - risk_free_rate; a relative view "
    "states that `symbols` return `return` more than `against`: Q is `return`",
    "legs": "P is positive on symbols and negative on against; each leg adds up to 1, divided in proportion to "
    "market_cap_weights if it names more than one ticker",
    "uncertainty": "confidences are Idzorek's (2005): the share of the tilt that the view, taken alone, would cause if "
    "it were certain; Omega_kk = (1 - confidence_k) / confidence_k * tau * p_k S p_k', no other entries",
    "posterior": "excess returns are [(tau S)^-1 + P' Omega^-1 P]^-1 [(tau S)^-1 pi + P' Omega^-1 Q]; submit "
    "posterior_returns as total returns: add risk_free_rate to each",
    "optimal_weights": "long-only, fully invested maximum of posterior'w - (risk_aversion / 2) * w'Sw",
}
"""Definition of the model for the agent, as the engine computes it."""
_LARGEST = {False: 0.10, True: 0.12}
"""Maximum per year: deviation of an absolute view from the equilibrium, and size of a relative view."""
_NEAR_LARGEST = (0.7, 1.0)
"""Share of the maximum to which larger views are reduced."""
LEAST_GAIN = 2e-4
"""Minimum gain of the optimum over the best simple portfolio: certainty-equivalent return per year."""
NEARLY_RIGHT = 0.6
"""Maximum score of a standard mistake for an episode to discriminate."""

_RETURN_TOLERANCE = 0.05
_RETURN_ROUNDING = 5.001e-5


class BlackLitterman(Answer):
    """Answer: the posterior and the portfolio it implies."""

    posterior_returns: dict[str, float] = Field(
        description="Ticker to posterior expected total return, annual decimal (0.08 is 8 % a year), signed; every "
        "ticker."
    )
    optimal_weights: dict[str, float] = Field(
        description="Ticker to weight of the portfolio optimal under the posterior, as a fraction of NAV; >= 0, "
        "summing to 1. A ticker left out has weight 0."
    )


def _definitions(task_input: JsonObject) -> dict[str, str]:
    return {**MODEL, "tolerance": tolerance(task_input, {"long_only": True})}


def build(context: BuildContext, objects: PortfolioObjects) -> list[BuiltTask]:
    """Build 48 problems (12 month-ends x 4 draws of views, repeated until they discriminate), evenly over tiers."""
    settings = objects.settings["black_litterman"]
    tiers = tuple(settings["tiers"])
    pool: list[BuiltTask] = []
    for row, month in enumerate(objects.month_ends):
        for variant in range(settings["variants"]):
            rng = context.generator(NAME, month.as_of, variant)
            tier = tiers[(row + variant) % len(tiers)]
            drawn = (_task(month, variant, tier, settings, rng) for _ in range(settings["attempts"]))
            pool += [task for task in (next(filter(None, drawn), None),) if task]
    count, rng = objects.settings["episodes_per_subtask"], context.generator(NAME, "draw")
    return stratified(pool, lambda task: task.episode.difficulty, count, rng)


def _task(universe: MonthEnd, variant: int, tier: str, settings: ViewSettings, rng: Generator) -> BuiltTask | None:
    """Draw an approved list and views; None if the problem does not discriminate."""
    stated = settings["tiers"][tier]
    month = universe.of_list(rng, stated["listed"])
    views = _views(settings, stated, month, rng)
    task_input: BlackLittermanInput = {
        "market_cap_weights": month.by_ticker(month.benchmark),
        "covariance_matrix": month.covariance_table,
        "risk_free_rate": month.risk_free_rate,
        "analyst_views": views,
        "risk_aversion": RISK_AVERSION,
        "tau": TAU,
    }
    task_input["conventions"] = _definitions(task_input)
    problem, after = black_litterman_from(task_input, risk=month.risk)
    value = optimal_weights(month.tickers, month.risk, after.mean, unique=False).value
    equal = np.full(problem.size, 1.0 / problem.size)
    without_optimiser = (equal, month.benchmark, *without_shorts(problem.risk, after.mean))
    trivial = min(problem.value(weights) for weights in without_optimiser)
    if trivial - value < LEAST_GAIN or not _discriminates(task_input, problem, after, value, trivial):
        return None
    best = optimal_weights(month.tickers, month.risk, after.mean)
    if not best.uniqueness.outcome.proved:
        return None
    task_id = f"{SUBTASK.prefix}_{month.as_of}_v{variant}"
    prompt = Prompt(
        f"Combine the {len(views)} analyst views with the market equilibrium by the Black-Litterman model as of "
        f"{month.as_of}, over the {len(month.tickers)} names of the universe: compute the posterior expected total "
        "return of every name and the long-only portfolio that is optimal under the posterior. The prior comes from "
        "market_cap_weights, not from any return forecast; conventions defines every step exactly.",
        "Submit a JSON object with posterior_returns (ticker to annual decimal) and optimal_weights (ticker to "
        f"fraction of NAV). {PRECISION}",
    )
    return BuiltTask(
        Episode(task_id, SKILL, NAME, month.as_of, tier, task_input, prompt, {"views": len(views), **METADATA}),
        Truth(
            task_id,
            NAME,
            {
                "posterior_returns": month.by_ticker(after.mean + month.risk_free_rate),
                "optimal_weights": month.by_ticker(clean(best.weights)),
            },
            {"optimal_value": best.value, "trivial_value": trivial},
            proof_of(best),
        ),
        certificate_of(best),
    )


def _discriminates(
    task_input: BlackLittermanInput, problem: PortfolioProblem, after: Posterior, value: float, trivial: float
) -> bool:
    """Return True if no standard mistake earns nearly full marks; weights are solved only if the returns are close."""
    cash = task_input["risk_free_rate"]
    for mistake in examples.view_mistakes(task_input, problem, after).values():
        near = _returns_score(mistake.returns - cash, after) > NEARLY_RIGHT
        if near and worth.judge_weights(problem, mistake.weights(), value, trivial).value > NEARLY_RIGHT:
            return False
    return True


def _views(settings: ViewSettings, tier: ViewTier, month: MonthEnd, rng: Generator) -> list[AnalystView]:
    """Draw views on distinct symbols that differ from the equilibrium in proportion to its uncertainty.

    Returns are rounded to 0.1 % and confidences to 5 %. Names of a basket share a sector if possible.
    """
    left: list[int] = rng.permutation(len(month.tickers)).tolist()
    prior = equilibrium(month.risk, month.benchmark)
    views: list[AnalystView] = []
    for size, relative in [(1, False)] * tier["absolute"] + [(1, True)] * tier["pairs"] + [(2, True)] * tier["baskets"]:
        legs = [_taken(left, month.sectors, size) for _ in range(1 + relative)]
        pick = np.zeros(len(month.tickers))
        for leg, sign in zip(legs, (1.0, -1.0), strict=False):
            pick[leg] = sign * month.benchmark[leg] / month.benchmark[leg].sum()
        surprise = float(rng.uniform(*tier["surprise"]) * rng.choice([-1.0, 1.0]))
        surprise *= float(np.sqrt(TAU * month.risk.variance(pick)))
        shrink = _LARGEST[relative] * float(rng.uniform(*_NEAR_LARGEST))
        excess = float(pick @ prior)
        if relative:
            excess = _within(excess + surprise, _LARGEST[True], shrink)
        else:
            excess += _within(surprise, _LARGEST[False], shrink)
        if relative and excess < 0:
            legs, excess = legs[::-1], -excess
        named: list[list[str]] = [[month.tickers[place] for place in leg] for leg in legs]
        against: AnalystView = {"against": named[1]} if relative else {}
        view: AnalystView = {
            "type": "relative" if relative else "absolute",
            "symbols": named[0],
            **against,
            "return": round(excess + (0.0 if relative else month.risk_free_rate), 3),
            "confidence": round(20 * float(rng.uniform(*settings["confidence"]))) / 20,
        }
        views.append(view)
    return views


def _within(size: float, largest: float, otherwise: float) -> float:
    return size if abs(size) <= largest else math.copysign(otherwise, size)


def _taken(left: list[int], sectors: Sequence[str], size: int) -> list[int]:
    """Take `size` names, from the first sector with enough of them if possible."""
    of_sector = ([name for name in left if sectors[name] == sectors[first]][:size] for first in left)
    taken = next((names for names in of_sector if len(names) == size), left[:size])
    left[:] = [name for name in left if name not in taken]
    return taken


def _paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """view_specification_and_weights: mean of the components present on both sides; none: 0.

    max(0, 1 - MAE/0.05) over the union of tickers of `posterior_returns`; clip(1 - L2/(4θ)), θ default 0.10, over
    `optimal_weights` (alias `posterior_weights`).
    """
    del task_input
    expected = truth.expected_output
    components: dict[str, float] = {}
    predicted, wanted = numbers(answer.get("posterior_returns")), numbers(expected.get("posterior_returns"))
    if predicted and wanted:
        components["posterior_returns"] = max(0.0, 1.0 - mean_absolute_error(predicted, wanted) / _RETURN_TOLERANCE)
    weights = first_numbers(answer, "optimal_weights", "posterior_weights")
    optimal = first_numbers(expected, "optimal_weights", "posterior_weights")
    if weights and optimal:
        threshold = parameter(truth.verification, "weight_l2_threshold", 0.10)
        components["optimal_weights"] = worth.weight_score(weights, optimal, threshold)
    return Score(mean(list(components.values())), components)


def _certified(answer: JsonObject, truth: Truth, task_input: BlackLittermanInput) -> Score:
    """Minimum of the scores of posterior and weights; 0 if either is absent.

    Returns: root mean square error in posterior standard deviations, with 0 for the equilibrium and for equal returns.
    Weights: objective gap, with 0 for the best of equal, market and short-free unconstrained weights.
    """
    problem, after = black_litterman_from(task_input)
    submitted = numbers(answer.get("posterior_returns"))
    returns: float | None = None
    if submitted and not set(submitted) - set(problem.tickers):
        predicted = np.array([submitted.get(ticker, 0.0) for ticker in problem.tickers])
        returns = _returns_score(predicted - task_input["risk_free_rate"], after)
    weights = worth.submitted_weights(first_numbers(answer, "optimal_weights", "posterior_weights"), problem.tickers)
    known = truth.verification
    merit = Score(0.0)
    if weights is not None:
        merit = worth.judge_weights(problem, weights, known["optimal_value"], known["trivial_value"])
    parts = {"posterior_returns": clip(returns or 0.0), "optimal_weights": merit.value}
    value = min(parts.values())
    return Score(value, parts, value or lowest_raw(returns, merit.raw))


def _returns_score(excess: Floats, after: Posterior) -> float:
    """Return 1 less the relative error, before its limit at 0."""
    error = _distance(excess, after) / _ignorance(after)
    rounded = float(np.abs(excess - after.mean).max()) <= _RETURN_ROUNDING
    return 1.0 if rounded or error <= worth.DEAD_ZONE else 1.0 - error


def _ignorance(after: Posterior) -> float:
    """Return the distance to the posterior of the equilibrium, or of the best constant return if nearer."""
    precision = after.standard_deviation**-2.0
    constant = np.full(len(precision), precision @ after.mean / precision.sum())
    return min(_distance(after.equilibrium, after), _distance(constant, after))


def _distance(returns: Floats, after: Posterior) -> float:
    """Return the root mean square of (returns − posterior mean) in posterior standard deviations."""
    scaled = np.clip(returns - after.mean, -1e9, 1e9) / after.standard_deviation
    return float(np.linalg.norm(scaled) / np.sqrt(len(scaled)))


def _proof(label: Label[BlackLittermanInput], findings: Findings) -> None:
    """Check that the posterior follows the textbook formula and that the weights are its certified optimum."""
    recheck = Recheck(label, findings, _as_optimisation(label.task_input))
    if label.built:
        for name, value in (("risk_aversion", RISK_AVERSION), ("tau", TAU)):
            recheck.expect(label.task_input.get(name) == value, f"{name} is not {value:g}, by which the truth is made")
    expected = rederive.textbook_posterior(label.task_input, recheck.covariance)
    stated = recheck.vector(label.truth.expected_output["posterior_returns"]) - label.task_input["risk_free_rate"]
    difference = stated - expected
    recheck.close(float(np.abs(difference).max()), 0.0, "posterior error")
    weights = recheck.vector(label.truth.expected_output["optimal_weights"])
    recheck.within_limits(weights)
    value = recheck.optimum(black_litterman_from(label.task_input)[0], weights, expected)
    if recheck.states_value("trivial_value"):
        equal = np.full(len(weights), 1 / len(weights))
        market = recheck.vector(label.task_input["market_cap_weights"])
        at_hand = [equal, market, *rederive.optima_without_shorts(label.task_input, recheck.covariance, expected)]
        trivial = min(rederive.objective(recheck.task_input, recheck.covariance, each, expected) for each in at_hand)
        recheck.trivial_value(trivial, value, expected)


def _as_optimisation(task_input: JsonObject) -> JsonObject:
    return {
        **task_input,
        "constraints": {"long_only": True},
        "objective": Objective.MAX_SHARPE.value,
        "risk_aversion": task_input["risk_aversion"] / 2,
    }


def _no_skill_baseline(data: Mapping[str, Any]) -> JsonObject:
    market, table = data["market_cap_weights"], data["covariance_matrix"]
    tickers = table["tickers"]
    returns = {
        name: data["risk_free_rate"]
        + data["risk_aversion"] * math.fsum(row[j] * market.get(other, 0.0) for j, other in enumerate(tickers))
        for name, row in zip(tickers, table["matrix"], strict=True)
    }
    return {"posterior_returns": returns, "optimal_weights": market}


def _trivial(data: Mapping[str, Any]) -> JsonObject:
    weights = worth.equal_weights(data.get("market_cap_weights"))
    return {"posterior_returns": dict.fromkeys(weights, 0.0), "optimal_weights": weights}


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_bl",
    input=BlackLittermanInput,
    answer=BlackLitterman,
    definitions=_definitions,
    build=build,
    proof=_proof,
    scorers={Profile.PAPER: _paper, Profile.STRICT: _paper, Profile.CERTIFIED: _certified},
    verification=Verification(
        method=METHOD,
        parameters={
            "weight_l2_threshold": 0.10,
            "ground_truth_source": "posterior in closed form, certified optimiser",
        },
        proved=("optimal_value", "trivial_value"),
    ),
    baselines=Baselines(
        no_skill=Naive(
            ("market_cap_weights", "covariance_matrix", "risk_free_rate", "risk_aversion"), _no_skill_baseline
        ),
        trivial=Naive(("market_cap_weights",), _trivial),
        heuristic="optimum without correlations within the caps",
    ),
    examples=Examples(
        graded=examples.graded_examples,
        exploits=exploits.black_litterman_exploits,
        shortcuts=Shortcuts(examples.shortcuts),
    ),
)
