"""Black-Litterman: posterior expected returns from the market portfolio and analyst views, and their optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from finskillbench.arrays import Floats
from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification
from finskillbench.domains.building import BuildContext, Task, stratified
from finskillbench.domains.checks.proofs import certificate_of, proof_of
from finskillbench.domains.examples import Examples, Label, Shortcuts
from finskillbench.domains.portfolio import rederive
from finskillbench.domains.portfolio.definitions import METADATA, PRECISION, SKILL, tolerance
from finskillbench.domains.portfolio.examples import black_litterman as examples
from finskillbench.domains.portfolio.examples import exploits
from finskillbench.domains.portfolio.inputs import AnalystView, BlackLittermanInput
from finskillbench.domains.portfolio.objects import MonthEnd, PortfolioObjects
from finskillbench.domains.portfolio.objects.settings import ViewSettings, ViewTier
from finskillbench.domains.portfolio.proofs import Recheck
from finskillbench.domains.portfolio.worth import (
    DEAD_ZONE,
    equal_weights,
    judge_weights,
    submitted_weights,
    weight_score,
)
from finskillbench.engines.portfolio.black_litterman import (
    RISK_AVERSION,
    TAU,
    Posterior,
    cut_off,
    equilibrium,
    optimal_weights,
)
from finskillbench.engines.portfolio.mandates.fields import black_litterman_from
from finskillbench.engines.portfolio.measures import clean
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
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
    "says that `symbols` return `return` more than `against`: Q is `return`",
    "legs": "P is positive on symbols and negative on against; each leg adds up to 1, shared out in proportion to "
    "market_cap_weights where it names more than one ticker",
    "uncertainty": "confidences are Idzorek's (2005): the share of the tilt that the view, taken alone, would cause if "
    "it were certain; Omega_kk = (1 - confidence_k) / confidence_k * tau * p_k S p_k', no other entries",
    "posterior": "excess returns are [(tau S)^-1 + P' Omega^-1 P]^-1 [(tau S)^-1 pi + P' Omega^-1 Q]; submit "
    "posterior_returns as total returns: add risk_free_rate to each",
    "optimal_weights": "long-only, fully invested maximum of posterior'w - (risk_aversion / 2) * w'Sw",
}
"""The model as the agent reads it; the engine computes exactly this."""
_LARGEST = {False: 0.10, True: 0.12}
"""What an absolute view differs from the equilibrium by at most, and what a relative view states at most, per year."""
_NEAR_LARGEST = (0.7, 1.0)
"""Share of the largest that a view of more is set to."""
LEAST_GAIN = 2e-4
"""What the optimum gains on the best portfolio at hand at least: certainty-equivalent return per year."""
NEARLY_RIGHT = 0.6
"""An episode in which a standard mistake earns more than this does not tell right from wrong."""

_RETURN_TOLERANCE = 0.05
_RETURN_ROUNDING = 5.001e-5
"""What a return written with four decimals may miss."""


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
    """What an input of this subtask states."""
    return {**MODEL, "tolerance": tolerance(task_input, {"long_only": True})}


def build(context: BuildContext, objects: PortfolioObjects) -> list[Task]:
    """48 problems, 12 month-ends x 4 draws of views, which take turns in the tiers; an even draw of those.

    Views are drawn anew until the problem discriminates. Harder tiers have more names, more views and baskets.
    """
    settings = objects.settings["black_litterman"]
    tiers = tuple(settings["tiers"])
    pool: list[Task] = []
    for row, month in enumerate(objects.month_ends):
        for variant in range(settings["variants"]):
            rng = context.generator(NAME, month.as_of, variant)
            tier = tiers[(row + variant) % len(tiers)]
            drawn = (_task(month, variant, tier, settings, rng) for _ in range(settings["attempts"]))
            pool += [task for task in (next(filter(None, drawn), None),) if task]
    count, rng = objects.settings["episodes_per_subtask"], context.generator(NAME, "draw")
    return stratified(pool, lambda task: task.episode.difficulty, count, rng)


def _task(universe: MonthEnd, variant: int, tier: str, settings: ViewSettings, rng: np.random.Generator) -> Task | None:
    """One draw of an approved list and of views; None where it does not discriminate."""
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
    trivial = min(problem.value(weights) for weights in _at_hand(problem, after, month.benchmark))
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
    return Task(
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


def _at_hand(problem: PortfolioProblem, after: Posterior, market: Floats) -> list[Floats]:
    """Portfolios that need no optimiser: equal and market weights, and optima without their short positions."""
    equal = np.full(problem.size, 1.0 / problem.size)
    return [equal, market, *cut_off(problem.risk, after.mean)]


def _discriminates(
    task_input: BlackLittermanInput, problem: PortfolioProblem, after: Posterior, value: float, trivial: float
) -> bool:
    """Whether no standard mistake earns nearly full marks; weights are solved for where the returns do."""
    cash = task_input["risk_free_rate"]
    for mistake in examples.mistakes(task_input, problem, after).values():
        near = _returns_score(mistake.returns - cash, after) > NEARLY_RIGHT
        if near and judge_weights(problem, mistake.weights(), value, trivial).value > NEARLY_RIGHT:
            return False
    return True


def _views(settings: ViewSettings, tier: ViewTier, month: MonthEnd, rng: np.random.Generator) -> list[AnalystView]:
    """Views that differ from the equilibrium in proportion to its uncertainty, on distinct symbols.

    Returns are quoted to a tenth of a percent and confidences to a twentieth, as an analyst would. A relative view
    names first what it says to do better; the names of a basket share a sector where two are left that do.
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
    """A signed size of at most the largest; one of more is set to another of its sign."""
    return size if abs(size) <= largest else math.copysign(otherwise, size)


def _taken(left: list[int], sectors: Sequence[str], size: int) -> list[int]:
    """Take so many names, those of the first sector that has enough, else the first."""
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
    given, wanted = numbers(answer.get("posterior_returns")), numbers(expected.get("posterior_returns"))
    if given and wanted:
        components["posterior_returns"] = max(0.0, 1.0 - mean_absolute_error(given, wanted) / _RETURN_TOLERANCE)
    weights = first_numbers(answer, "optimal_weights", "posterior_weights")
    optimal = first_numbers(expected, "optimal_weights", "posterior_weights")
    if weights and optimal:
        threshold = parameter(truth.verification, "weight_l2_threshold", 0.10)
        components["optimal_weights"] = weight_score(weights, optimal, threshold)
    return Score(mean(list(components.values())), components)


def _certified(answer: JsonObject, truth: Truth, task_input: BlackLittermanInput) -> Score:
    """The lesser of the scores of the posterior and of the weights; either one absent scores 0.

    Posterior returns are judged by their root mean square error in posterior standard deviations, scaled so that
    ignoring the views (the equilibrium), and one return for every name, score 0; weights by the objective gap, scaled
    so that the best of equal weights, market weights and unconstrained optima without their short positions scores 0.
    """
    problem, after = black_litterman_from(task_input)
    given = numbers(answer.get("posterior_returns"))
    returns = 0.0
    if given and not set(given) - set(problem.tickers):
        predicted = np.array([given.get(ticker, 0.0) for ticker in problem.tickers])
        returns = _returns_score(predicted - task_input["risk_free_rate"], after)
    weights = submitted_weights(first_numbers(answer, "optimal_weights", "posterior_weights"), problem.tickers)
    known = truth.verification
    merit = 0.0
    if weights is not None:
        merit = judge_weights(problem, weights, known["optimal_value"], known["trivial_value"]).value
    return Score(min(returns, merit), {"posterior_returns": returns, "optimal_weights": merit})


def _returns_score(excess: Floats, after: Posterior) -> float:
    error = _distance(excess, after) / _ignorance(after)
    rounded = float(np.abs(excess - after.mean).max()) <= _RETURN_ROUNDING
    return 1.0 if rounded or error <= DEAD_ZONE else clip(1.0 - error)


def _ignorance(after: Posterior) -> float:
    """Distance of the equilibrium, or of the one return for every name that is nearest to the posterior."""
    precision = after.standard_deviation**-2.0
    constant = np.full(len(precision), precision @ after.mean / precision.sum())
    return min(_distance(after.equilibrium, after), _distance(constant, after))


def _distance(returns: Floats, after: Posterior) -> float:
    """Root mean square of (returns − posterior mean) in posterior standard deviations, without overflow."""
    scaled = np.clip(returns - after.mean, -1e9, 1e9) / after.standard_deviation
    return float(np.linalg.norm(scaled) / np.sqrt(len(scaled)))


def _proof(label: Label[BlackLittermanInput], findings: Findings) -> None:
    """The posterior is that of the textbook's formula, the weights the certified optimum under it."""
    recheck = Recheck(label, findings, _as_optimisation(label.task_input))
    if label.built:
        for name, value in (("risk_aversion", RISK_AVERSION), ("tau", TAU)):
            recheck.expect(label.task_input.get(name) == value, f"{name} is not {value:g}, by which the truth is made")
    expected = rederive.posterior(label.task_input, recheck.covariance)
    stated = recheck.vector(label.truth.expected_output["posterior_returns"]) - label.task_input["risk_free_rate"]
    difference = stated - expected
    recheck.close(float(np.abs(difference).max()), 0.0, "posterior error")
    weights = recheck.vector(label.truth.expected_output["optimal_weights"])
    recheck.within_limits(weights)
    value = recheck.optimum(black_litterman_from(label.task_input)[0], weights, expected)
    if recheck.states_value("trivial_value"):
        equal = np.full(len(weights), 1 / len(weights))
        market = recheck.vector(label.task_input["market_cap_weights"])
        at_hand = [equal, market, *rederive.cut_off(label.task_input, recheck.covariance, expected)]
        trivial = min(rederive.objective(recheck.task_input, recheck.covariance, each, expected) for each in at_hand)
        recheck.trivial_value(trivial, value, expected)


def _as_optimisation(task_input: JsonObject) -> JsonObject:
    """The input as that of the optimisation whose expected returns are the posterior's."""
    return {
        **task_input,
        "constraints": {"long_only": True},
        "objective": Objective.MAX_SHARPE.value,
        "risk_aversion": task_input["risk_aversion"] / 2,
    }


def _by_hand(data: Mapping[str, Any]) -> JsonObject:
    """The equilibrium without the views, and the market portfolio that it implies."""
    market, table = data["market_cap_weights"], data["covariance_matrix"]
    tickers = table["tickers"]
    returns = {
        name: data["risk_free_rate"]
        + data["risk_aversion"] * math.fsum(row[j] * market.get(other, 0.0) for j, other in enumerate(tickers))
        for name, row in zip(tickers, table["matrix"], strict=True)
    }
    return {"posterior_returns": returns, "optimal_weights": market}


def _trivial(data: Mapping[str, Any]) -> JsonObject:
    """Equal weights, and no return expected of anything."""
    weights = equal_weights(data.get("market_cap_weights"))
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
        no_skill=Naive(("market_cap_weights", "covariance_matrix", "risk_free_rate", "risk_aversion"), _by_hand),
        trivial=Naive(("market_cap_weights",), _trivial),
        heuristic="optimum without correlations within the caps",
    ),
    examples=Examples(
        graded=examples.graded_examples, exploits=exploits.black_litterman, shortcuts=Shortcuts(examples.shortcuts)
    ),
)
