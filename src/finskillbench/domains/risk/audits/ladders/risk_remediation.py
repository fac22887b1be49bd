"""Answers to a remediation from right to wrong: what a portfolio manager and a compliance officer would sign."""

from __future__ import annotations

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.base import Label, Rung
from finskillbench.domains.risk.audits.ladders.decimals import to_decimals
from finskillbench.domains.risk.inputs import RemediationInput
from finskillbench.domains.risk.objects.plain_cures import without_models
from finskillbench.domains.risk.remediation.scoring import BREACH, ROUNDING
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.risk.formulation import Aim, Goal
from finskillbench.engines.risk.mandate import Kind, Mandate, mandate_from
from finskillbench.engines.risk.monitor import measure
from finskillbench.engines.risk.portfolio import Market, Portfolio, required, turnover_of
from finskillbench.engines.risk.remediation import after, budget_left, nearest, solve_stage
from finskillbench.engines.risk.report import trade_list
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.episode import JsonObject

_NOT_CONVEX = (Kind.POSITION_LIMIT_MIN, Kind.NAME_COUNT)
_HALVINGS = 40


def ladder(label: Label[RemediationInput]) -> list[Rung]:
    """From the truth to no trades; dearer cures only where the month's turnover leaves room for them."""
    truth = label.truth.expected_output
    market = market_from(label.task_input)
    portfolio, mandate = portfolio_from(label.task_input, market), mandate_from(label.task_input["mandate"])
    rungs = [
        Rung("truth", truth, 1.0, 1.0),
        Rung("six decimals", to_decimals(truth, 6), 0.99, 1.0),
        Rung("four decimals", to_decimals(truth, 4), 0.85, 1.0),
    ]
    curable = truth["post_trade_compliant"]
    dearer = _dearer(portfolio, mandate, market, truth) if curable else []
    rungs += [rung for rung in dearer if rung.least > 0]
    false = {**truth, "post_trade_compliant": not curable}
    rungs.append(Rung("a false statement on compliance", false, 0.2, 0.2))
    rungs += [rung for rung in dearer if rung.least == 0]
    if curable:
        rungs += _of_weights_only(portfolio, mandate, market)
    empty: JsonObject = {"trades": [], "total_turnover": 0.0, "post_trade_compliant": True}
    rungs.append(Rung("no trades", empty, 0.0, 0.0))
    return rungs


def _dearer(portfolio: Portfolio, mandate: Mandate, market: Market, truth: JsonObject) -> list[Rung]:
    """Cures on the way from the cheapest to the one nearest to the benchmark, a tenth, by half and twice as dear."""
    if any(mandate.get(kind) for kind in _NOT_CONVEX):
        return []
    try:
        goal = nearest(mandate, market, required(market.benchmark, "benchmark weights")).weights - portfolio.weights
    except (InfeasibleError, UndecidedError):
        return []
    stated = {row["symbol"]: row["trade_pct"] for row in truth["trades"]}
    start = np.array([stated.get(ticker, 0.0) for ticker in market.tickers])
    least, most = turnover_of(start), min(turnover_of(goal), budget_left(portfolio, mandate))
    rungs: list[Rung] = []
    for name, times, low, high in (
        ("a tenth more turnover than necessary", 1.1, 0.85, 0.97),
        ("half as much turnover again as necessary", 1.5, 0.45, 0.55),
        ("twice the necessary turnover", 2.0, 0.0, 0.01),
    ):
        if times * least <= most:
            answer = _answer(portfolio, _between(start, goal, times * least), market)
            rungs.append(Rung(name, answer, low, high))
    return rungs


def _between(start: Floats, goal: Floats, turnover: float) -> Floats:
    """The trades on the way from `start` to `goal` of a given turnover, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if turnover_of(start + middle * (goal - start)) < turnover else (low, middle)
    return start + low * (goal - start)


def _of_weights_only(portfolio: Portfolio, mandate: Mandate, market: Market) -> list[Rung]:
    """The cheapest cure of every limit but those that take a model, where it breaks one of these."""
    try:
        found = solve_stage(portfolio, without_models(mandate), market, Aim(Goal.TURNOVER)).certified
    except (InfeasibleError, UndecidedError):
        return []
    trades = found.weights - portfolio.weights
    if all(one.excess < BREACH for one in measure(after(portfolio, trades), mandate, market, ROUNDING)):
        return []
    return [Rung("the cheapest cure of the limits on weights alone", _answer(portfolio, trades, market), 0.0, 0.0)]


def _answer(portfolio: Portfolio, trades: Floats, market: Market) -> JsonObject:
    return {
        "trades": trade_list(portfolio, trades, market),
        "total_turnover": turnover_of(trades),
        "post_trade_compliant": True,
    }
