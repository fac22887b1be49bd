"""What a rebalancing is worth: limits, minimum trades, the improvement it reaches, its cost, and its reports."""

from __future__ import annotations

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.portfolio.worth.merit import judge_limits, submitted_weights
from finskillbench.engines.portfolio.measures import BROKEN, ROUNDING, turnover
from finskillbench.engines.portfolio.problem import PortfolioProblem, required
from finskillbench.engines.portfolio.rebalance import TradingTerms
from finskillbench.episode import JsonObject, Score
from finskillbench.scoring.measures import clip
from finskillbench.scoring.values import first_numbers, number, numbers

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
