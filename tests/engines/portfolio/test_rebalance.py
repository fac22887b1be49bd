"""Rebalancing at the least cost against the independent solver, and what it promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tests.engines.portfolio.cases import SECTORS, Oracle, case
from tests.sampling import examples

from finskillbench.engines.optimisation.certified import ACCEPTED_VIOLATION, InfeasibleError, UndecidedError
from finskillbench.engines.portfolio.measures import one_way_turnover, violations
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits, PortfolioProblem
from finskillbench.engines.portfolio.rebalance import RebalancingRules, cheapest, rebalance
from finskillbench.errors import InputError

CAPS = PortfolioLimits(max_weight=0.066, sector_limits={f"S{i}": 0.2 for i in range(SECTORS)})
OBJECTIVES = list(Objective)


def _terms(least: float = 0.01, share: float = 0.8, seed: int = 1) -> RebalancingRules:
    return RebalancingRules(np.random.default_rng(seed).uniform(3.0, 60.0, 30).round(1), least, share)


def _start(problem: PortfolioProblem) -> float:
    assert problem.current is not None
    return problem.value(problem.current)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_equals_the_independent_solver_where_no_minimum_binds(objective: Objective) -> None:
    problem, terms = case(30, 1, objective, CAPS), _terms(least=0.0)
    result = rebalance(problem, terms)
    best = Oracle(problem).solve()
    enough = _start(problem) - 0.8 * (_start(problem) - best)
    assert result.required_value == pytest.approx(enough, rel=1e-6)
    second = Oracle(problem, "cost", objective_cap=enough, costs=terms.costs)
    assert result.cost == pytest.approx(second.solve(), rel=1e-4)
    assert np.linalg.norm(result.weights - second.weights.value) < 1e-3
    assert result.cheapest.uniqueness.outcome.proved


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(OBJECTIVES))
def test_it_gains_enough_in_trades_of_the_minimum_within_the_limits(seed: int, objective: Objective) -> None:
    problem, terms = case(30, seed, objective, CAPS), _terms(seed=seed)
    try:
        result = rebalance(problem, terms, most_programs=60)
    except (InfeasibleError, UndecidedError, InputError):
        reject()  # what is left open is refused, and becomes no task
    assert problem.current is not None
    assert problem.value(result.weights) <= result.required_value + 1e-9
    assert violations(problem, result.weights, 1e-9) == []
    size = np.abs(result.trades)
    closes = (result.weights <= 1e-12) & (result.trades < 0)
    assert ((size == 0) | (size >= terms.min_trade - 1e-9) | closes).all()
    assert result.trades.sum() == pytest.approx(0.0, abs=ACCEPTED_VIOLATION)
    assert result.turnover == pytest.approx(one_way_turnover(result.weights, problem.current), abs=1e-15)
    relaxed = cheapest(problem, replace(terms, min_trade=0.0), result.required_value)
    assert relaxed.value <= result.cost + 1e-9
    assert result.cost <= terms.cost(optimise(problem).weights, problem.current) or result.cheapest.nodes > 1


def test_more_improvement_never_costs_less() -> None:
    problem = case(30, 8, Objective.MAX_SHARPE, CAPS)
    costs = [rebalance(problem, _terms(share=share)).cost for share in (0.5, 0.7, 0.9)]
    assert costs == sorted(costs)


def test_only_a_sale_that_closes_a_position_may_be_smaller_than_the_minimum() -> None:
    weights, current = np.array([0.0, 0.001, 0.0, 0.03]), np.array([0.004, 0.004, 0.02, 0.0])
    assert _terms(0.01).least_trades(weights, current, 1e-9).tolist() == [0.004, 0.01, 0.01, 0.01]


def test_a_position_below_the_minimum_is_sold_in_full_or_kept() -> None:
    """The name of 0.4 % is worth nothing: it goes as a whole, although a trade has to be 1 %."""
    current = np.array([0.496, 0.5, 0.004])
    problem = PortfolioProblem(
        tickers=("A", "B", "C"),
        risk=case(30, 1, Objective.MAX_RETURN, PortfolioLimits()).risk.__class__.from_matrix(0.04 * np.eye(3)),
        objective=Objective.MAX_RETURN,
        limits=PortfolioLimits(max_weight=0.6),
        expected_returns=np.array([0.10, 0.05, -2.0]),
        current=current,
    )
    result = rebalance(problem, RebalancingRules(np.array([5.0, 5.0, 5.0]), 0.01, 0.7))
    assert result.weights[2] == 0.0
    assert np.abs(result.trades[:2]).min() == 0.0 or np.abs(result.trades[:2]).min() >= 0.01 - 1e-9


def test_what_cannot_be_improved_or_counts_names_is_refused() -> None:
    problem = case(30, 7, Objective.MAX_SHARPE, CAPS)
    with pytest.raises(InputError, match="no improvement is possible"):
        rebalance(replace(problem, current=optimise(problem).weights), _terms())
    with pytest.raises(InputError, match="min_names"):
        rebalance(replace(problem, limits=replace(CAPS, min_names=8)), _terms())


@pytest.mark.parametrize(
    ("field", "value"), [("min_trade", 1.5), ("required_improvement", 1.0), ("trading_costs_bps", {"T00": -1.0})]
)
def test_terms_that_make_no_sense_are_refused(field: str, value: object) -> None:
    problem = case(30, 7, Objective.MAX_SHARPE, CAPS)
    costs = dict.fromkeys(problem.tickers, 5.0)
    data = {"trading_costs_bps": costs, "min_trade": 0.01, "required_improvement": 0.8}
    if isinstance(value, dict):
        value = {**costs, problem.tickers[0]: -1.0}
    with pytest.raises(InputError, match="required_improvement" if field == "min_trade" else field):
        RebalancingRules.of({**data, field: value}, problem)
