"""What submitted weights are worth: their distance to the label, and, under `certified`, to the proved optimum.

When two labelled portfolios are one: episodes that repeat an answer pass for more evidence than they are.

Portfolios that need no skill, for the programs that answer without one.

What a rebalancing is worth: limits, minimum trades, the improvement it reaches, its cost, and its reports.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.portfolio.measures import BROKEN, ROUNDING, breach, check_limits, forgiven_budget, turnover
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem, required
from finskillbench.engines.portfolio.rebalance import TradingTerms
from finskillbench.engines.portfolio.trivial import trivial_value
from finskillbench.episode import JsonObject, Score
from finskillbench.scoring.values import clip, first_numbers, l2, number, numbers
from finskillbench.sums import exact_sum

DEAD_ZONE = 1e-2
"""Share of the distance from the trivial to the optimal objective that rounding may cost without losing marks."""
LEAST_SPREAD = 5e-5
"""An episode discriminates when the zero of its scale is at least this far from the optimum, per year."""
LEAST_SPAN = 0.0050
"""Under a full mandate a minimum-variance episode discriminates when the two are so much annual volatility apart."""

CONFUSED = 0.3
"""What the optimum of another objective under the same limits earns at most."""


def weight_score(predicted: Mapping[str, float], expected: Mapping[str, float], threshold: float) -> float:
    """What all optimisation subtasks share under `paper`: the distance to the labelled weights.

    clip(1 - L2/(4θ)) over the union of tickers, θ = `threshold` (fraction of NAV); 0 without any weight.
    """
    if not predicted:
        return 0.0
    return clip(1.0 - l2(predicted, expected) / (4.0 * threshold))


def zero_value(problem: PortfolioProblem, optimal: float, *anchors: Floats) -> float:
    """The objective that scores 0 under `certified`: the best trivial answer's, or one nearer to the optimum.

    It is nearer where the optimum of another objective under the same limits would otherwise earn more than `CONFUSED`:
    who answered another question than the one that was asked. Decisions on names are left out there: they change such
    an optimum little, and take longer to find than all else.
    """
    others = [objective for objective in Objective if objective is not problem.objective]
    if problem.expected_returns is None:
        others = [objective for objective in others if objective in (Objective.MIN_VARIANCE, Objective.RISK_PARITY)]
    free = replace(problem, limits=replace(problem.limits, min_position=None, min_names=None, max_names=None))
    answers = [optimise(replace(free, objective=objective), unique=False).weights for objective in others]
    nearest = min(map(problem.value, answers))
    return min(trivial_value(problem, *anchors), optimal + (nearest - optimal) / (1.0 - CONFUSED))


def discriminates(problem: PortfolioProblem, optimal: float, zero: float) -> bool:
    """Whether `LEAST_SPREAD`, and `LEAST_SPAN` where variance is the objective, lie between the scores 1 and 0."""
    if zero - optimal < LEAST_SPREAD:
        return False
    return problem.objective is not Objective.MIN_VARIANCE or math.sqrt(zero) - math.sqrt(optimal) >= LEAST_SPAN


def judge_weights(problem: PortfolioProblem, weights: Floats, optimal: float, trivial: float) -> Score:
    """The objective gap, scaled so that the trivial answer scores 0, less what the broken limits cost.

    `optimal` and `trivial` are values of `problem.value`; a gap inside `DEAD_ZONE` is full marks. Limits are measured
    on the weights as they stand. The objective is that of the weights scaled to the full budget: left in, an investment
    of 99.95 % would outdo every honest portfolio of least variance, and 100.02 % of honest rounding would pay for it.
    """
    kept = judge_limits(problem, weights)
    if not kept.value > 0:
        return kept
    value = problem.value(weights / weights.sum())
    gap = (value - optimal) / (trivial - optimal)
    scale = {"objective": value, "full_marks_at": optimal, "no_marks_at": trivial, "share_of_the_way_down": gap}
    return Score(kept.value * (1.0 if gap <= DEAD_ZONE else clip(1.0 - gap)), {**scale, **kept.details})


def judge_limits(problem: PortfolioProblem, weights: Floats) -> Score:
    """One less what the broken limits cost, the budget among them, measured on the weights as they stand."""
    checks = dict(check_limits(problem, weights))
    missed = checks.pop("fully_invested").excess
    forgiven = forgiven_budget(problem.size)
    broken = {name: severity for name, check in checks.items() if (severity := breach(name, check)) > 0}
    if missed > forgiven:
        broken["fully_invested"] = clip(missed / forgiven - 1.0)
    return Score(clip(1.0 - exact_sum(broken.values())), {"violated": broken} if broken else {})


def submitted_weights(value: Mapping[str, float], tickers: Sequence[str]) -> Floats | None:
    """(n,) weights from a submitted map; None when it is empty or names a ticker outside the universe."""
    if not value or not value.keys() <= set(tickers):
        return None
    weights = np.array([value.get(ticker, 0.0) for ticker in tickers])
    return None if float(np.abs(weights).max()) > 1e6 else weights


DIFFERENT = 0.05
"""L2 distance of weights from which two labels count as different: the threshold of the scores under `paper`."""


def is_different(weights: Mapping[str, float], others: Iterable[Mapping[str, float]]) -> bool:
    """Whether weights lie at least `DIFFERENT` from each of the others."""
    return all(l2(weights, other) >= DIFFERENT for other in others)


def distinct(portfolios: Iterable[Mapping[str, float]]) -> int:
    """How many of the portfolios are different from every one counted before."""
    kept: list[Mapping[str, float]] = []
    for weights in portfolios:
        if is_different(weights, kept):
            kept.append(weights)
    return len(kept)


def equal_weights(by_ticker: Mapping[str, Any] | None) -> dict[str, float]:
    """The same weight for every ticker of a map; none where the input has no such map."""
    return dict.fromkeys(by_ticker, 1.0 / len(by_ticker)) if by_ticker else {}


def rule_of_thumb(data: Mapping[str, Any]) -> dict[str, float]:
    """The best name for max_return, inverse variances for everything else."""
    table = data["covariance_matrix"]
    if data["objective"] == Objective.MAX_RETURN:
        best = max(data["expected_returns"], key=data["expected_returns"].get)
        return {name: float(name == best) for name in table["tickers"]}
    inverse = {name: 1.0 / table["matrix"][i][i] for i, name in enumerate(table["tickers"])}
    total = math.fsum(inverse.values())
    return {name: value / total for name, value in inverse.items()}


Range = tuple[float, float]
"""From where full marks fall, and where they reach 0."""
EXTRA_COST: Range = (0.005, 0.15)
"""Trading cost above the least, as a share of it."""
SHORTFALL: Range = (0.005, 0.05)
"""Missing part of the required improvement, as a share of it."""
_TRADES_AGREE: Range = (1.001e-3, 5e-3)
"""Trades and weights rounded to three decimals each differ by 0.1 % of NAV; half a percent is another trade."""
_TURNOVER_AGREES: Range = (2.5e-3, 1e-2)
"""Rounding thirty weights to three decimals moves their turnover by a quarter of a percent; one percent is wrong."""


def judge_rebalancing(
    problem: PortfolioProblem, terms: TradingTerms, answer: JsonObject, required_value: float, least_cost: float
) -> Score:
    """Limits kept x trades of the minimum size x improvement x cost x agreement of the reports with the weights."""
    current = required(problem.current, "current portfolio")
    weights = submitted_weights(first_numbers(answer, "new_weights", "weights"), problem.tickers)
    if weights is None:
        return Score(0.0, {"weights": "absent or outside the universe"})
    kept = judge_limits(problem, weights)
    if not kept.value > 0:
        return kept
    start, value, cost = problem.value(current), problem.value(weights / weights.sum()), terms.cost(weights, current)
    parts = {
        "improvement": marks((value - required_value) / (start - required_value), SHORTFALL),
        "cost": marks(cost / least_cost - 1.0, EXTRA_COST),
        "min_trade": 1.0 - _undersized(problem, terms, weights),
    }
    reported = number(answer.get("turnover"))
    traded = turnover(weights, current)
    agrees = 0.0 if reported is None else marks(abs(reported - traded), _TURNOVER_AGREES)
    trades = _trades_agree(numbers(answer.get("trade_list")), weights - current, problem.tickers)
    total = kept.value * parts["improvement"] * parts["cost"] * parts["min_trade"] * (agrees + trades) / 2
    scale = {"objective": value, "required_value": required_value, "cost_bps": cost, "least_cost_bps": least_cost}
    return Score(total, {**scale, **kept.details, **parts, "turnover_agrees": agrees, "trades_agree": trades})


def _undersized(problem: PortfolioProblem, terms: TradingTerms, weights: Floats) -> float:
    """How badly the minimum trade is broken, as any other limit: 0 within rounding, 1 from `BROKEN` under it."""
    current = required(problem.current, "current portfolio")
    size, needed = np.abs(weights - current), terms.least_trades(weights, current, ROUNDING)
    missing = np.where(size > ROUNDING, needed - size - ROUNDING, 0.0)
    return clip(float((missing / np.maximum(BROKEN * needed, ROUNDING)).max()))


def _trades_agree(trades: dict[str, float], changes: Floats, tickers: tuple[str, ...]) -> float:
    """How well a list that is there and stays in the universe gives every change of weight."""
    if not trades or set(trades) - set(tickers):
        return 0.0
    given = np.array([trades.get(ticker, 0.0) for ticker in tickers])
    return marks(float(np.abs(given - changes).max()), _TRADES_AGREE)


def marks(missed: float, within: Range) -> float:
    """Full marks up to one end of a range, none from the other on."""
    full, none = within
    return clip((none - missed) / (none - full))
