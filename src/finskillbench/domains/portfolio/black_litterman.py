"""Black-Litterman: posterior expected returns from the market portfolio and analyst views, and their optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import Field

from finskillbench.arrays import Floats
from finskillbench.domains.base import Answer, Label, Naive, Subtask
from finskillbench.domains.building import BuildContext, Task
from finskillbench.domains.checks.proofs import certificate_of, proof_of
from finskillbench.domains.draws import stratified
from finskillbench.domains.portfolio import second
from finskillbench.domains.portfolio.audits import exploits
from finskillbench.domains.portfolio.audits.ladders import black_litterman as ladders
from finskillbench.domains.portfolio.definitions import METADATA, PRECISION, SKILL, TOLERANCE
from finskillbench.domains.portfolio.inputs import AnalystView, BlackLittermanInput
from finskillbench.domains.portfolio.objects import MonthEnd, PortfolioObjects
from finskillbench.domains.portfolio.objects.settings import ViewSettings
from finskillbench.domains.portfolio.proofs import Recheck
from finskillbench.domains.portfolio.worth.merit import (
    DEAD_ZONE,
    LEAST_SPREAD,
    judge_weights,
    submitted_weights,
    weight_score,
)
from finskillbench.domains.portfolio.worth.naive import equal_weights
from finskillbench.engines.portfolio.black_litterman import (
    RISK_AVERSION,
    TAU,
    Posterior,
    optimal_weights,
    pick_matrix,
    posterior,
)
from finskillbench.engines.portfolio.mandates.fields import black_litterman_from, views_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.findings import Findings
from finskillbench.scoring.measures import clip, mean, mean_absolute_error
from finskillbench.scoring.values import first_numbers, numbers, parameter

NAME = "black_litterman"
METHOD = "view_specification_and_weights"
MODEL = {
    "units": "covariance_matrix S and view returns are annualised decimals (0.05 is 5% a year)",
    "equilibrium": "pi = risk_aversion * S * market_cap_weights",
    "views": "an absolute view says that its symbol returns `return`; a relative view that its first symbol returns "
    "`return` more than its second; P has +1 (and -1) there, Q is `return`",
    "uncertainty": "Omega_kk = (1 - confidence_k) * tau * p_k S p_k', no other entries",
    "posterior": "[(tau S)^-1 + P' Omega^-1 P]^-1 [(tau S)^-1 pi + P' Omega^-1 Q]",
    "optimal_weights": "long-only, fully invested maximum of posterior'w - (risk_aversion / 2) * w'Sw; the factor 1/2 "
    "belongs to this model, the risk_aversion of the max_sharpe objective has none",
    "tolerance": TOLERANCE,
}
"""The model as the agent reads it; the engine computes exactly this."""
_DIFFICULTY = {2: "easy", 3: "medium", 4: "hard"}

_RETURN_TOLERANCE = 0.05
_RETURN_ROUNDING = 5.001e-5
"""What a return written with four decimals may miss."""


class BlackLitterman(Answer):
    """Answer: the posterior and the portfolio it implies."""

    posterior_returns: dict[str, float] = Field(
        description="Ticker to posterior expected return, annual decimal (0.08 is 8 % a year), signed; every ticker."
    )
    optimal_weights: dict[str, float] = Field(
        description="Ticker to weight of the portfolio optimal under the posterior, as a fraction of NAV; >= 0, "
        "summing to 1. A ticker left out has weight 0."
    )


def build(context: BuildContext, objects: PortfolioObjects) -> list[Task]:
    """48 problems, 12 month-ends x 4 draws of views; those that discriminate, drawn by number of views.

    More views come with more names: concentrated portfolios, which many views make, would be less work otherwise.
    """
    settings = objects.settings["black_litterman"]
    low, high = settings["views"]
    pool: list[Task] = []
    for month in objects.month_ends:
        for variant in range(settings["variants"]):
            rng = context.generator(NAME, month.as_of, variant)
            count = int(rng.integers(low, high + 1))
            share = settings["listed"][count - low]
            listed = month.of_list(context.generator(NAME, month.as_of, variant, "list"), share)
            task = _task(listed, variant, _views(settings, listed, count, rng))
            pool += [task] if task else []
    count, rng = objects.settings["episodes_per_subtask"], context.generator(NAME, "draw")
    return stratified(pool, lambda task: task.episode.difficulty, count, rng)


def _task(month: MonthEnd, variant: int, views: list[AnalystView]) -> Task | None:
    task_input: BlackLittermanInput = {
        "market_cap_weights": month.by_ticker(month.benchmark),
        "covariance_matrix": month.covariance_table,
        "risk_free_rate": month.risk_free_rate,
        "analyst_views": views,
        "risk_aversion": RISK_AVERSION,
        "tau": TAU,
        "conventions": MODEL,
    }
    picks = pick_matrix(month.tickers, views_from(views))
    after = posterior(month.risk, month.benchmark, *picks)
    best = optimal_weights(month.tickers, month.risk, after.mean)
    equal = np.full(len(month.tickers), 1.0 / len(month.tickers))
    trivial = min(_value(month, after, equal), _value(month, after, month.benchmark))
    if not best.uniqueness.outcome.proved or trivial - best.value < LEAST_SPREAD:
        return None
    task_id = f"{SUBTASK.prefix}_{month.as_of}_v{variant}"
    prompt = Prompt(
        f"Combine the {len(views)} analyst views with the market equilibrium by the Black-Litterman model as of "
        f"{month.as_of}, over the {len(month.tickers)} names of the universe: compute the posterior expected return of "
        "every name and the long-only portfolio that is optimal under it. The prior comes from market_cap_weights, not "
        "from any return forecast; conventions defines every step exactly.",
        "Submit a JSON object with posterior_returns (ticker to annual decimal) and optimal_weights (ticker to "
        f"fraction of NAV). {PRECISION}",
    )
    return Task(
        Episode(
            task_id,
            SKILL,
            NAME,
            month.as_of,
            _DIFFICULTY.get(len(views), "hard"),
            task_input,
            prompt,
            {"views": len(views), **METADATA},
        ),
        Truth(
            task_id,
            NAME,
            {
                "posterior_returns": month.by_ticker(after.mean),
                "optimal_weights": month.by_ticker(clean(best.weights)),
            },
            {"optimal_value": best.value, "trivial_value": trivial},
            proof_of(best),
        ),
        certificate_of(best),
    )


def _value(month: MonthEnd, after: Posterior, weights: Floats) -> float:
    return RISK_AVERSION / 2 * month.risk.variance(weights) - float(after.mean @ weights)


def _views(settings: ViewSettings, month: MonthEnd, count: int, rng: np.random.Generator) -> list[AnalystView]:
    """Views that differ from the equilibrium by a fraction of its uncertainty, on distinct symbols.

    Returns are quoted to a basis point and confidences to a hundredth, as an analyst would.
    """
    names = rng.permutation(len(month.tickers))[: 2 * count]
    prior = RISK_AVERSION * month.risk.times(month.benchmark)
    views: list[AnalystView] = []
    for row in range(count):
        relative = bool(rng.random() < settings["relative_share"])
        legs = names[2 * row : 2 * row + (2 if relative else 1)]
        pick = np.zeros(len(month.tickers))
        pick[legs] = [1.0, -1.0][: len(legs)]
        surprise = float(rng.uniform(0.5, 1.5) * rng.choice([-1.0, 1.0])) * settings["view_standard_deviations"]
        expected = float(pick @ prior) + surprise * float(np.sqrt(TAU * month.risk.variance(pick)))
        views.append(
            {
                "type": "relative" if relative else "absolute",
                "symbols": [month.tickers[leg] for leg in legs],
                "return": round(expected, 4),
                "confidence": round(float(rng.uniform(*settings["confidence"])), 2),
            }
        )
    return views


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """view_specification_and_weights: mean of the components present on both sides; none: 0.

    max(0, 1 - MAE/0.05) over the union of tickers of `posterior_returns`; clip(1 - L2/(4θ)), θ default 0.10, over
    `optimal_weights` (alias `posterior_weights`).
    """
    del task_input
    expected = truth.expected_output
    components: dict[str, float] = {}
    given, wanted = numbers(answer.get("posterior_returns")), numbers(expected.get("posterior_returns"))
    if given and wanted:
        components["posterior_returns"] = max(0.0, 1.0 - mean_absolute_error(given, wanted) / _RETURN_TOLERANCE)
    weights = first_numbers(answer, "optimal_weights", "posterior_weights")
    optimal = first_numbers(expected, "optimal_weights", "posterior_weights")
    if weights and optimal:
        threshold = parameter(truth.verification, "weight_l2_threshold", 0.10)
        components["optimal_weights"] = weight_score(weights, optimal, threshold)
    return Score(mean(list(components.values())), components)


def certified(answer: JsonObject, truth: Truth, task_input: BlackLittermanInput) -> Score:
    """Half for the posterior, half for the weights; either one absent scores 0.

    Posterior returns are judged by their root mean square error in posterior standard deviations, scaled so that
    ignoring the views (the equilibrium), and one return for every name, score 0; weights by the objective gap, scaled
    so that the better of equal and market weights scores 0.
    """
    problem, after = black_litterman_from(task_input)
    given = numbers(answer.get("posterior_returns"))
    returns = 0.0
    if given and not set(given) - set(problem.tickers):
        predicted = np.array([given.get(ticker, 0.0) for ticker in problem.tickers])
        error = _distance(predicted, after) / _ignorance(after)
        rounded = float(np.abs(predicted - after.mean).max()) <= _RETURN_ROUNDING
        returns = 1.0 if rounded or error <= DEAD_ZONE else clip(1.0 - error)
    weights = submitted_weights(first_numbers(answer, "optimal_weights", "posterior_weights"), problem.tickers)
    known = truth.verification
    merit = 0.0
    if weights is not None:
        merit = judge_weights(problem, weights, known["optimal_value"], known["trivial_value"]).value
    return Score((returns + merit) / 2, {"posterior_returns": returns, "optimal_weights": merit})


def _ignorance(after: Posterior) -> float:
    """Distance of the equilibrium, or of the one return for every name that is nearest to the posterior."""
    precision = after.standard_deviation**-2.0
    constant = np.full(len(precision), precision @ after.mean / precision.sum())
    return min(_distance(after.equilibrium, after), _distance(constant, after))


def _distance(returns: Floats, after: Posterior) -> float:
    """Root mean square of (returns − posterior mean) in posterior standard deviations, without overflow."""
    scaled = np.clip(returns - after.mean, -1e9, 1e9) / after.standard_deviation
    return float(np.linalg.norm(scaled) / np.sqrt(len(scaled)))


def proof(label: Label[BlackLittermanInput], findings: Findings) -> None:
    """The posterior is that of the textbook's formula, the weights the certified optimum under it."""
    recheck = Recheck(label, findings, _as_optimisation(label.task_input))
    if label.built:
        for name, value in (("risk_aversion", RISK_AVERSION), ("tau", TAU)):
            recheck.expect(label.task_input.get(name) == value, f"{name} is not {value:g}, by which the truth is made")
    expected = second.posterior(label.task_input, recheck.covariance)
    difference = recheck.vector(label.truth.expected_output["posterior_returns"]) - expected
    recheck.close(float(np.abs(difference).max()), 0.0, "posterior error")
    weights = recheck.vector(label.truth.expected_output["optimal_weights"])
    recheck.within_limits(weights)
    value = recheck.optimum(black_litterman_from(label.task_input)[0], weights, expected)
    if recheck.states_value("trivial_value"):
        equal = np.full(len(weights), 1 / len(weights))
        market = recheck.vector(label.task_input["market_cap_weights"])
        trivial = min(
            second.objective(recheck.task_input, recheck.covariance, at_hand, expected) for at_hand in (equal, market)
        )
        recheck.trivial_value(trivial, value, expected)


def _as_optimisation(task_input: JsonObject) -> JsonObject:
    """The input as that of the optimisation whose expected returns are the posterior's."""
    return {
        **task_input,
        "constraints": {"long_only": True},
        "objective": Objective.MAX_SHARPE.value,
        "risk_aversion": task_input["risk_aversion"] / 2,
    }


def by_hand(data: Mapping[str, Any]) -> JsonObject:
    """The equilibrium without the views, and the market portfolio that it implies."""
    market, table = data["market_cap_weights"], data["covariance_matrix"]
    tickers = table["tickers"]
    returns = {
        name: data["risk_aversion"] * math.fsum(row[j] * market.get(other, 0.0) for j, other in enumerate(tickers))
        for name, row in zip(tickers, table["matrix"], strict=True)
    }
    return {"posterior_returns": returns, "optimal_weights": market}


def trivial(data: Mapping[str, Any]) -> JsonObject:
    """Equal weights, and no return expected of anything."""
    weights = equal_weights(data.get("market_cap_weights"))
    return {"posterior_returns": dict.fromkeys(weights, 0.0), "optimal_weights": weights}


SUBTASK = Subtask(
    name=NAME,
    prefix="pc_bl",
    method=METHOD,
    parameters={
        "weight_l2_threshold": 0.10,
        "ground_truth_source": "posterior in closed form, certified optimiser",
    },
    proved=("optimal_value", "trivial_value"),
    answer=BlackLitterman,
    input=BlackLittermanInput,
    definitions=MODEL,
    scorers={Profile.PAPER: paper, Profile.STRICT: paper, Profile.CERTIFIED: certified},
    build=build,
    proof=proof,
    ladder=ladders.ladder,
    exploits=exploits.black_litterman,
    by_hand=Naive(("market_cap_weights", "covariance_matrix", "risk_aversion"), by_hand),
    heuristic="optimum without correlations within the caps",
    trivial=Naive(("market_cap_weights",), trivial),
)
