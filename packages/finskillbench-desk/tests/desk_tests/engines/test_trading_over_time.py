"""Trading over time: the recursion against one dense system, the closed form of the literature, exact enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from finskillbench.arrays import Floats
from finskillbench.errors import DimensionError, InputError
from finskillbench_desk.engines.trading.over_time import Limits, Step, TradingPolicy, completed, solve

N, DATES = 6, 5


def _problem(seed: int) -> tuple[Floats, Floats, list[Step], Floats, Floats]:
    """Covariance, impacts, steps with limits from the third date on, forecasts, the first book."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(N, N))
    rows = np.array([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    steps = [
        Step(0.5 * (1 + date), rng.normal(size=N), Limits(rows, rng.normal(size=2)) if date >= 2 else None)
        for date in range(DATES)
    ]
    impact = rng.uniform(0.5, 2.0, N)
    return root @ root.T, impact, steps, rng.normal(size=(DATES, N)), rng.normal(size=N)


def _dense(covariance: Floats, impact: Floats, steps: list[Step], forecasts: Floats, book: Floats) -> Floats:
    """(T, n) the best plan, from the optimality conditions of all dates in one system."""
    n, count = len(book), len(steps)
    size = n * count
    hessian, linear = np.zeros((size, size)), np.zeros(size)
    rows, amounts = [], []
    for date, step in enumerate(steps):
        for name in range(n):
            here = n * date + name
            hessian[here, n * date : n * (date + 1)] += step.aversion * covariance[name]
            hessian[here, here] += impact[name]
            linear[here] += forecasts[date, name] + step.aversion * covariance[name] @ step.benchmark
            if date == 0:
                linear[here] += impact[name] * book[name]
                continue
            hessian[here - n, here - n] += impact[name]
            hessian[here, here - n] -= impact[name]
            hessian[here - n, here] -= impact[name]
        for row, amount in zip(step.limits.rows, step.limits.amounts, strict=True) if step.limits else ():
            rows.append(np.concatenate([np.zeros(n * date), row, np.zeros(size - n * (date + 1))]))
            amounts.append(amount)
    limits = np.array(rows).reshape(len(rows), size)
    system = np.block([[hessian, limits.T], [limits, np.zeros((len(rows), len(rows)))]])
    return np.linalg.solve(system, np.concatenate([linear, amounts]))[:size].reshape(count, n)


def _worth(covariance: Floats, impact: Floats, steps: list[Step], forecasts: Floats, plan: list[Floats]) -> float:
    """What a plan (the first book, then the book of each date) is worth, from the definition."""
    total = 0.0
    for step, forecast, before, book in zip(steps, forecasts, plan[:-1], plan[1:], strict=True):
        active, trade = book - step.benchmark, book - before
        total += forecast @ book - step.aversion / 2 * active @ covariance @ active - trade**2 @ impact / 2
    return total


@pytest.mark.parametrize("seed", range(5))
def test_every_date_agrees_with_one_dense_system(seed: int) -> None:
    covariance, impact, steps, forecasts, book = _problem(seed)
    policy = solve(covariance, impact, steps)
    for date in range(DATES):
        expected = _dense(covariance, impact, steps[date:], forecasts[date:], book)[0]
        np.testing.assert_allclose(policy.best(date, policy.aim(date, forecasts[date:]), book), expected, atol=1e-11)


def test_a_loss_is_the_worth_that_the_best_plan_after_an_action_falls_short_of() -> None:
    covariance, impact, steps, forecasts, book = _problem(1)
    policy = solve(covariance, impact, steps)
    rng = np.random.default_rng(0)
    for date in range(DATES):
        best = policy.best(date, policy.aim(date, forecasts[date:]), book)
        limits = steps[date].limits
        free = rng.normal(size=N)
        action = completed(best + free, impact, limits)
        worth = {}
        for name, first in (("best", best), ("action", action)):
            plan = [book, first]
            for later in range(date + 1, DATES):
                plan.append(policy.best(later, policy.aim(later, forecasts[later:]), plan[-1]))
            worth[name] = _worth(covariance, impact, steps[date:], forecasts[date:], plan)
        assert policy.loss(date, best, action) == pytest.approx(worth["best"] - worth["action"], rel=1e-10)


def test_losses_add_up_to_what_a_policy_is_expected_to_fall_short() -> None:
    """Exact over all paths of a signal that decays and moves by one of two shocks: Kakade and Langford (2002)."""
    decay, shock, first = 0.6, 0.8, 1.3
    covariance, impact, steps, _, book = _problem(2)
    steps, loading = steps[:3], np.linspace(-1, 1, N)
    policy = solve(covariance, impact, steps)
    short, lost = 0.0, 0.0
    for moves in product((-shock, shock), repeat=2):
        signals = [first]
        for move in moves:
            signals.append(decay * signals[-1] + move)
        forecasts = np.array([signal * loading for signal in signals])
        plans: dict[str, list[Floats]] = {"optimum": [book], "other": [book]}
        for date, signal in enumerate(signals):
            expected = np.array([signal * decay**ahead * loading for ahead in range(3 - date)])
            aim = policy.aim(date, expected)
            plans["optimum"].append(policy.best(date, aim, plans["optimum"][-1]))
            before = plans["other"][-1]
            wild = completed(0.5 * before + signal * np.arange(N), impact, steps[date].limits)
            lost += policy.loss(date, policy.best(date, aim, before), wild) / 4
            plans["other"].append(wild)
        worth = {name: _worth(covariance, impact, steps, forecasts, plan) for name, plan in plans.items()}
        short += (worth["optimum"] - worth["other"]) / 4
    assert lost == pytest.approx(short, rel=1e-11)
    assert lost > 1


def test_a_long_horizon_has_the_rate_of_trading_of_the_literature() -> None:
    """Gârleanu and Pedersen (2013), example 1, without discounting: the rate a / lambda of costs lambda * Sigma."""
    variance, aversion, cost = 0.04, 2.0, 1.5
    policy = solve(np.array([[variance]]), np.array([cost]), [Step(aversion, np.zeros(1))] * 400)
    risk = aversion * variance
    rate = (-risk + np.sqrt(risk**2 + 4 * risk * cost)) / (2 * cost)
    book = np.array([1.0])
    after = policy.best(0, policy.aim(0, np.zeros((400, 1))), book)
    assert 1 - after[0] == pytest.approx(rate, rel=1e-9)


def test_the_last_date_without_costs_is_the_optimum_of_markowitz() -> None:
    covariance, _, steps, forecasts, book = _problem(3)
    policy = solve(covariance, np.full(N, 1e-12), [Step(steps[0].aversion, steps[0].benchmark)])
    expected = steps[0].benchmark + np.linalg.solve(steps[0].aversion * covariance, forecasts[0])
    np.testing.assert_allclose(policy.best(0, policy.aim(0, forecasts[:1]), book), expected, rtol=1e-6)


def test_completing_a_book_is_the_cheapest_way_to_the_limits() -> None:
    _, impact, steps, _, book = _problem(4)
    limits = steps[3].limits
    assert limits is not None
    there = completed(book, impact, limits)
    np.testing.assert_allclose(limits.rows @ there, limits.amounts, atol=1e-12)
    cost = ((there - book) ** 2 @ impact) / 2
    rng = np.random.default_rng(5)
    for _ in range(50):
        step = rng.normal(size=N)
        step -= limits.rows.T @ np.linalg.solve(limits.rows @ limits.rows.T, limits.rows @ step)
        assert ((there + step - book) ** 2 @ impact) / 2 > cost
    assert completed(book, impact, None) is book


def test_what_makes_no_sense_is_refused() -> None:
    covariance, impact, steps, forecasts, _ = _problem(0)
    with pytest.raises(InputError, match="must cost something"):
        solve(covariance, np.zeros(N), steps)
    with pytest.raises(DimensionError, match="covariance has shape"):
        solve(covariance[:3], impact, steps)
    policy: TradingPolicy = solve(covariance, impact, steps)
    with pytest.raises(DimensionError, match="give 4 x 6"):
        policy.aim(1, forecasts)
    twice = Limits(np.ones((2, N)), np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="say the same or contradict"):
        solve(np.eye(N), np.ones(N), [Step(1.0, np.zeros(N), twice)])
