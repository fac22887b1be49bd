"""Scores of submitted weights and rebalancings, differences between labels, and portfolios of the baselines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.portfolio import measures
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioProblem, require_array
from finskillbench.engines.portfolio.rebalance import RebalancingRules
from finskillbench.engines.portfolio.trivial import trivial_value
from finskillbench.episode import JsonObject, Score, Truth, lowest_raw
from finskillbench.scoring.values import as_number, clip, first_numbers, l2, numbers
from finskillbench.sums import exact_sum

DEAD_ZONE = 1e-2
"""Share of the distance from the optimal to the trivial objective that costs no marks."""
LEAST_SPREAD = 5e-5
"""Minimum distance per year between zero score and optimum for an episode to discriminate."""
LEAST_SPAN = 0.0050
"""The same for minimum variance under a full mandate, in annual volatility."""

CONFUSED = 0.3
"""Maximum score of the optimum of another objective under the same limits."""
_INVESTED = 0.01
"""Sum of weights up to which there is no portfolio to judge."""


def weight_score(predicted: Mapping[str, float], expected: Mapping[str, float], threshold: float) -> float:
    """Score the distance to the labelled weights under `paper`, for all optimisation subtasks.

    clip(1 - L2/(4θ)) over the union of tickers, θ = `threshold` (fraction of NAV); 0 without any weight.
    """
    if not predicted:
        return 0.0
    return clip(1.0 - l2(predicted, expected) / (4.0 * threshold))


def zero_value(problem: PortfolioProblem, optimal: float, *anchors: Floats) -> float:
    """Return the objective value that scores 0 under `certified`: the best trivial answer's, or a better one.

    A better one is used if the optimum of another objective would earn more than `CONFUSED`. Counts and minimum
    positions are left out there: they change such an optimum little and take longest to solve.
    """
    other_objectives = [objective for objective in Objective if objective is not problem.objective]
    if problem.expected_returns is None:
        other_objectives = [
            objective for objective in other_objectives if objective in (Objective.MIN_VARIANCE, Objective.RISK_PARITY)
        ]
    free = replace(problem, limits=replace(problem.limits, min_position=None, min_names=None, max_names=None))
    answers = [optimise(replace(free, objective=objective), unique=False).weights for objective in other_objectives]
    nearest = min(map(problem.value, answers))
    return min(trivial_value(problem, *anchors), optimal + (nearest - optimal) / (1.0 - CONFUSED))


def discriminates(problem: PortfolioProblem, optimal: float, zero: float) -> bool:
    """Return True if the scale exceeds `LEAST_SPREAD`, and for minimum variance `LEAST_SPAN`."""
    if zero - optimal < LEAST_SPREAD:
        return False
    return problem.objective is not Objective.MIN_VARIANCE or math.sqrt(zero) - math.sqrt(optimal) >= LEAST_SPAN


def judge_weights(problem: PortfolioProblem, weights: Floats, optimal: float, trivial: float) -> Score:
    """Score the objective gap, with the trivial answer at 0, minus the cost of broken limits.

    A gap within `DEAD_ZONE` earns full marks. The objective uses weights scaled to the full budget: otherwise an
    investment of 99.95 % would beat every correct minimum-variance portfolio, and rounding to 100.02 % would cost
    marks.
    """
    kept = judge_limits(problem, weights)
    if kept.raw == -math.inf:
        return kept
    value = problem.value(weights / weights.sum())
    gap = (value - optimal) / (trivial - optimal)
    if not kept.value > 0:
        return replace(kept, raw=lowest_raw((kept.raw or 0.0) - max(gap, 0.0)))
    scale = {"objective": value, "full_marks_at": optimal, "no_marks_at": trivial, "share_of_the_way_down": gap}
    total = kept.value * (1.0 if gap <= DEAD_ZONE else clip(1.0 - gap))
    return Score(total, {**scale, **kept.details}, total or lowest_raw(kept.value - gap))


def score_weights(answer: JsonObject, truth: Truth, problem: PortfolioProblem) -> Score:
    """Judge the weights of an answer by the values of its truth."""
    weights = submitted_weights(numbers(answer.get("weights")), problem.tickers)
    if weights is None:
        return Score(0.0, {"weights": "absent or outside the universe"}, -math.inf)
    return judge_weights(problem, weights, truth.verification["optimal_value"], truth.verification["trivial_value"])


def judge_limits(problem: PortfolioProblem, weights: Floats) -> Score:
    """Return 1 minus the cost of broken limits, including the budget, measured on the submitted weights.

    Weights with a sum of at most `_INVESTED` are no portfolio.
    """
    checks = dict(measures.check_limits(problem, weights))
    missed = checks.pop("fully_invested").excess
    forgiven = measures.forgiven_budget(problem.size)
    broken = {name: severity for name, check in checks.items() if (severity := measures.breach(name, check)) > 0}
    if missed > forgiven:
        broken["fully_invested"] = clip(missed / forgiven - 1.0)
    kept = 1.0 - exact_sum(broken.values())
    raw = kept if weights.sum() > _INVESTED else -math.inf
    return Score(clip(kept), {"violated": broken} if broken else {}, raw)


def submitted_weights(value: Mapping[str, float], tickers: Sequence[str]) -> Floats | None:
    """Return submitted weights (n,); None if empty or with a ticker outside the universe."""
    if not value or not value.keys() <= set(tickers):
        return None
    weights = np.array([value.get(ticker, 0.0) for ticker in tickers])
    return None if float(np.abs(weights).max()) > 1e6 else weights


DIFFERENT = 0.05
"""L2 distance from which two labels count as different: the threshold under `paper`."""


def is_different(weights: Mapping[str, float], kept: Iterable[Mapping[str, float]]) -> bool:
    """Return True if weights differ by at least `DIFFERENT` from each of `kept`."""
    return all(l2(weights, other) >= DIFFERENT for other in kept)


def count_distinct(portfolios: Iterable[Mapping[str, float]]) -> int:
    """Count the portfolios that differ from all portfolios counted before."""
    kept: list[Mapping[str, float]] = []
    for weights in portfolios:
        if is_different(weights, kept):
            kept.append(weights)
    return len(kept)


def equal_weights(by_ticker: Mapping[str, Any] | None) -> dict[str, float]:
    """Return equal weights for the tickers of a map; empty without a map."""
    return dict.fromkeys(by_ticker, 1.0 / len(by_ticker)) if by_ticker else {}


def rule_of_thumb(data: Mapping[str, Any]) -> dict[str, float]:
    """Return the name with the highest return for max_return, otherwise inverse-variance weights."""
    table = data["covariance_matrix"]
    if data["objective"] == Objective.MAX_RETURN:
        best = max(data["expected_returns"], key=data["expected_returns"].get)
        return {name: float(name == best) for name in table["tickers"]}
    inverse = {name: 1.0 / table["matrix"][i][i] for i, name in enumerate(table["tickers"])}
    total = math.fsum(inverse.values())
    return {name: value / total for name, value in inverse.items()}


Range = tuple[float, float]
EXTRA_COST: Range = (0.005, 0.15)
"""Trading cost above the minimum, as a share of it."""
SHORTFALL: Range = (0.005, 0.05)
"""Missing share of the required improvement."""
_TRADES_AGREE: Range = (1.001e-3, 5e-3)
"""Three-decimal rounding of trades and weights differs by 0.1 % of NAV; half a percent is another trade."""
_TURNOVER_AGREES: Range = (2.5e-3, 1e-2)
"""Rounding thirty weights to three decimals moves their turnover by 0.25 %; one percent is wrong."""


def judge_rebalancing(
    problem: PortfolioProblem, rules: RebalancingRules, answer: JsonObject, required_value: float, least_cost: float
) -> Score:
    """Multiply scores for limits, minimum trades, improvement, cost, and agreement of reports with weights."""
    current = require_array(problem.current, "current portfolio")
    weights = submitted_weights(first_numbers(answer, "new_weights", "weights"), problem.tickers)
    if weights is None:
        return Score(0.0, {"weights": "absent or outside the universe"}, -math.inf)
    kept = judge_limits(problem, weights)
    if kept.raw == -math.inf:
        return kept
    start, value, cost = problem.value(current), problem.value(weights / weights.sum()), rules.cost(weights, current)
    unlimited = {
        "improvement": marks((value - required_value) / (start - required_value), SHORTFALL),
        "cost": marks(cost / least_cost - 1.0, EXTRA_COST),
        "min_trade": 1.0 - _undersized(problem, rules, weights),
    }
    if not kept.value > 0:
        return replace(kept, raw=lowest_raw(kept.raw, *unlimited.values()))
    parts = {name: clip(part) for name, part in unlimited.items()}
    reported = as_number(answer.get("turnover"))
    traded = measures.one_way_turnover(weights, current)
    agrees = 0.0 if reported is None else clip(marks(abs(reported - traded), _TURNOVER_AGREES))
    trades = _trades_agree(numbers(answer.get("trade_list")), weights - current, problem.tickers)
    total = kept.value * parts["improvement"] * parts["cost"] * parts["min_trade"] * (agrees + trades) / 2
    scale = {"objective": value, "required_value": required_value, "cost_bps": cost, "least_cost_bps": least_cost}
    details = {**scale, **kept.details, **parts, "turnover_agrees": agrees, "trades_agree": trades}
    return Score(total, details, None if total else lowest_raw(*unlimited.values()))


def _undersized(problem: PortfolioProblem, trading_rules: RebalancingRules, weights: Floats) -> float:
    """Return the violation of the minimum trade: at most 0 within rounding, at least 1 from `BROKEN` below it."""
    current = require_array(problem.current, "current portfolio")
    size, needed = np.abs(weights - current), trading_rules.least_trades(weights, current, measures.ROUNDING)
    missing = np.where(size > measures.ROUNDING, needed - size - measures.ROUNDING, 0.0)
    return float((missing / np.maximum(measures.BROKEN * needed, measures.ROUNDING)).max())


def _trades_agree(trades: dict[str, float], changes: Floats, tickers: tuple[str, ...]) -> float:
    if not trades or set(trades) - set(tickers):
        return 0.0
    listed = np.array([trades.get(ticker, 0.0) for ticker in tickers])
    return clip(marks(float(np.abs(listed - changes).max()), _TRADES_AGREE))


def marks(missed: float, within: Range) -> float:
    """Interpolate from 1 at one end of a range to 0 at the other, without limits beyond."""
    full, none = within
    return (none - missed) / (none - full)
