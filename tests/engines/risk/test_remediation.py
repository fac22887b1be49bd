"""Remediation: hand-solvable cases, properties, and independent solvers."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from finskillbench.engines.optimisation.certificate import prove_optimal
from finskillbench.engines.optimisation.certified import ACCEPTED_GAP
from finskillbench.engines.optimisation.uniqueness import Uniqueness
from finskillbench.engines.risk import remediation
from finskillbench.engines.risk.formulation import Aim, Goal, formulate
from finskillbench.engines.risk.mandate import Constraint, Kind, Mandate
from finskillbench.engines.risk.monitor import limit_scales, measure, measure_all
from finskillbench.engines.risk.portfolio import Market, Portfolio, turnover_of
from finskillbench.engines.statistics.risk_model import RiskModel

LONG = Constraint(Kind.LONG_ONLY, value=0.0)


def market_of(n: int, seed: int = 0, sectors: int = 4) -> Market:
    rng = np.random.default_rng(seed)
    betas = 0.3 * rng.normal(size=(n, 6))
    betas[:, 0] += 1.0
    loadings = (betas * np.array([0.16, 0.08, 0.08, 0.06, 0.05, 0.10])).T
    covariance = loadings.T @ loadings + np.diag(rng.uniform(0.15, 0.35, n) ** 2)
    names = tuple(f"N{place:02d}" for place in range(n))
    groups = tuple(f"S{place % sectors}" for place in range(n))
    return Market(names, groups, betas, rng.dirichlet(np.full(n, 3.0)), RiskModel.from_matrix(covariance))


def mandate_of(*constraints: Constraint) -> Mandate:
    return Mandate("M", "test", constraints)


def limit(kind: Kind, value: float, **rest) -> Constraint:
    return Constraint(kind, value=value, **rest)


def book_of(weights, traded: float = 0.0) -> Portfolio:
    weights = np.asarray(weights, dtype=float)
    return Portfolio(weights, 1.0 - float(weights.sum()), 1e8, traded)


def random_book(rng: np.random.Generator, n: int) -> Portfolio:
    held = rng.permutation(n)[: n // 2 + 1]
    weights = np.zeros(n)
    weights[held] = rng.dirichlet(np.full(len(held), 1.5)) * rng.choice([1.0, 0.97, 0.85])
    return book_of(np.round(weights, 4))


LINEAR = mandate_of(
    LONG,
    limit(Kind.POSITION_LIMIT_MAX, 0.20),
    limit(Kind.SECTOR_LIMIT_MAX, 0.40),
    Constraint(Kind.BETA_RANGE, minimum=0.9, maximum=1.1),
    limit(Kind.CASH_MAX, 0.05),
)
CONIC = mandate_of(
    LONG,
    limit(Kind.POSITION_LIMIT_MAX, 0.25),
    limit(Kind.TRACKING_ERROR_MAX, 0.08),
    limit(Kind.HHI_MAX, 0.12),
    limit(Kind.CASH_MAX, 0.05),
    limit(Kind.TURNOVER_MAX_MONTHLY, 0.05),
)


def test_one_name_over_its_cap_is_cut_to_it_and_spread_evenly() -> None:
    mandate = mandate_of(LONG, limit(Kind.POSITION_LIMIT_MAX, 0.4), limit(Kind.CASH_MAX, 1.0))
    remedy = remediation.remediate(book_of([0.5, 0.2, 0.2, 0.1]), mandate, market_of(4))
    assert remedy.compliant
    assert remedy.value == pytest.approx(0.1, abs=1e-9)
    assert remedy.turnover == pytest.approx(0.1, abs=1e-8)
    assert remedy.trades == pytest.approx([-0.1, 0.025, 0.025, 0.025], abs=1e-7)
    assert remedy.cash == pytest.approx(0.025, abs=1e-7)


def test_sector_over_its_cap_is_sold_evenly() -> None:
    mandate = mandate_of(LONG, limit(Kind.SECTOR_LIMIT_MAX, 0.5), limit(Kind.CASH_MAX, 0.0))
    # Names 0 and 2 are one sector, 1 and 3 the other.
    remedy = remediation.remediate(book_of([0.4, 0.2, 0.3, 0.1]), mandate, market_of(4, sectors=2))
    assert remedy.trades == pytest.approx([-0.1, 0.1, -0.1, 0.1], abs=1e-7)


def test_too_much_cash_is_spent_evenly() -> None:
    mandate = mandate_of(LONG, limit(Kind.CASH_MAX, 0.04))
    remedy = remediation.remediate(book_of([0.3, 0.3, 0.2, 0.1]), mandate, market_of(4))
    assert remedy.trades == pytest.approx([0.015] * 4, abs=1e-7)
    assert remedy.turnover == pytest.approx(0.06, abs=1e-8)


def test_too_much_beta_is_taken_out_where_it_costs_least() -> None:
    market = market_of(3)
    betas = market.betas.copy()
    betas[:, 0] = (2.0, 1.0, 0.5)
    market = Market(market.tickers, market.sectors, betas)
    mandate = mandate_of(LONG, Constraint(Kind.BETA_RANGE, minimum=0.0, maximum=1.0))
    remedy = remediation.remediate(book_of([0.6, 0.2, 0.2]), mandate, market)
    # Beta 1.5; one unit out of the first name into cash takes out 2.
    assert remedy.trades == pytest.approx([-0.25, 0.0, 0.0], abs=1e-7)


@pytest.mark.parametrize(("size", "expected"), [(0.004, -0.004), (0.018, 0.002)])
def test_a_holding_under_the_floor_goes_the_shorter_way(size: float, expected: float) -> None:
    mandate = mandate_of(LONG, limit(Kind.POSITION_LIMIT_MIN, 0.02), limit(Kind.CASH_MAX, 1.0))
    remedy = remediation.remediate(book_of([0.5, 0.4, size, 0.0]), mandate, market_of(4))
    assert remedy.compliant
    assert remedy.trades[2] == pytest.approx(expected, abs=1e-8)
    assert remedy.turnover == pytest.approx(abs(expected), abs=1e-8)
    assert remedy.trades[3] == 0.0


def test_counts_close_the_smallest_and_open_what_is_missing() -> None:
    market = market_of(6)
    weights = [0.4, 0.3, 0.2, 0.06, 0.04, 0.0]
    few = mandate_of(LONG, Constraint(Kind.NAME_COUNT, maximum=4.0), limit(Kind.POSITION_LIMIT_MIN, 0.01))
    remedy = remediation.remediate(book_of(weights), few, market)
    assert remedy.value == pytest.approx(0.04, abs=1e-9)
    assert remedy.weights[4] == 0.0
    many = mandate_of(LONG, Constraint(Kind.NAME_COUNT, minimum=6.0), limit(Kind.POSITION_LIMIT_MIN, 0.01))
    remedy = remediation.remediate(book_of(weights), many, market)
    assert remedy.value == pytest.approx(0.01, abs=1e-9)
    assert remedy.weights[5] == pytest.approx(0.01, abs=1e-9)


def test_a_compliant_portfolio_needs_no_trades_exactly() -> None:
    remedy = remediation.remediate(book_of([0.25] * 4), mandate_of(LONG), market_of(4))
    assert remedy.compliant
    assert remedy.turnover == remedy.value == 0.0
    assert not remedy.trades.any()
    assert remedy.stages == ()


def test_what_the_turnover_left_cannot_mend_is_mended_as_far_as_it_goes() -> None:
    mandate = mandate_of(
        LONG,
        limit(Kind.POSITION_LIMIT_MAX, 0.4),
        limit(Kind.CASH_MAX, 1.0),
        limit(Kind.TURNOVER_MAX_MONTHLY, 0.15),
    )
    remedy = remediation.remediate(book_of([0.6, 0.2, 0.2, 0.0], traded=0.1), mandate, market_of(4))
    assert not remedy.compliant
    assert remedy.turnover == pytest.approx(0.05, abs=1e-8)
    assert remedy.weights[0] == pytest.approx(0.55, abs=1e-8)
    assert remedy.value == pytest.approx(0.15 / 0.4, abs=1e-8)
    assert remedy.stages[0].certified.optimality.lower_bound > 0.05


def test_nothing_more_is_traded_where_too_much_was() -> None:
    mandate = mandate_of(LONG, limit(Kind.TURNOVER_MAX_MONTHLY, 0.1))
    remedy = remediation.remediate(book_of([0.5, 0.5], traded=0.2), mandate, market_of(2))
    assert not remedy.compliant
    assert not remedy.trades.any()


@pytest.mark.parametrize("seed", range(6))
def test_least_turnover_is_that_of_highs(seed: int) -> None:
    n, rng = 12, np.random.default_rng(seed)
    market, book = market_of(n, seed), random_book(rng, 12)
    # Buys and sells of names, then of cash.
    both = np.hstack([np.eye(n + 1), -np.eye(n + 1)])
    start = np.append(book.weights, book.cash)
    sectors = np.hstack([market.membership.T, np.zeros((4, 1))])
    beta = np.append(market.betas[:, 0], 0.0)
    rows = np.vstack([-both, both[:n], sectors @ both, beta @ both, -beta @ both, both[n]])
    room = [
        start,
        0.2 - book.weights,
        0.4 - sectors @ start,
        [1.1 - beta @ start, beta @ start - 0.9],
        [0.05 - start[-1]],
    ]
    total = np.ones((1, n + 1)) @ both
    highs = linprog(np.full(2 * n + 2, 0.5), rows, np.concatenate(room), total, [0.0], method="highs")
    assert remediation.remediate(book, LINEAR, market).value == pytest.approx(highs.fun, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_least_excess_is_that_of_cvxpy(seed: int) -> None:
    n, rng = 12, np.random.default_rng(seed)
    market, book = market_of(n, seed), random_book(rng, 12)
    remedy = remediation.remediate(book, CONIC, market)
    assert not remedy.compliant
    assert market.risk is not None
    w = cp.Variable(n, nonneg=True)
    cash = 1 - cp.sum(w)
    measured = {
        Kind.POSITION_LIMIT_MAX: cp.max(w),
        Kind.TRACKING_ERROR_MAX: cp.norm(market.risk.root @ (w - market.benchmark)),
        Kind.HHI_MAX: cp.sum_squares(w),
        Kind.CASH_MAX: cash,
    }
    relative = []
    for constraint in CONIC.constraints:
        if constraint.kind in measured:
            scale = limit_scales(constraint)[1]
            relative.append(cp.pos(measured[constraint.kind] - constraint.bounds[1]) / scale)
    total = cp.sum(cp.hstack(relative))
    turnover = (cp.norm1(w - book.weights) + cp.abs(cash - book.cash)) / 2
    limits: list[Any] = [cash >= 0, turnover <= 0.05]
    least = cp.Problem(cp.Minimize(total), limits).solve(solver="CLARABEL")
    assert remedy.value == pytest.approx(least, abs=2e-7)
    done = remediation.after(book, remedy.trades)
    assert remediation.total_excess(done, CONIC, market) == pytest.approx(remedy.value, abs=1e-6)
    assert remedy.turnover <= 0.05 + 1e-9


SEMICONTINUOUS = mandate_of(
    *LINEAR.constraints, limit(Kind.POSITION_LIMIT_MIN, 0.01), Constraint(Kind.NAME_COUNT, minimum=5.0, maximum=10.0)
)


@pytest.mark.slow
@pytest.mark.parametrize("mandate", [LINEAR, SEMICONTINUOUS, mandate_of(*CONIC.constraints[:-1])])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=8)
def test_the_remedy_keeps_every_limit_and_moves_with_names_and_not_with_nav(mandate: Mandate, seed: int) -> None:
    n, rng = 12, np.random.default_rng(seed)
    market, book = market_of(n, seed % 7), random_book(rng, 12)
    remedy = remediation.remediate(book, mandate, market)
    assert remedy.compliant
    done = remediation.after(book, remedy.trades)
    assert all(found.passed for found in measure(done, mandate, market, 1e-8))
    assert done.weights == pytest.approx(remedy.weights, abs=1e-12)
    assert turnover_of(remedy.trades) == pytest.approx(remedy.value, abs=2e-7)
    batch = np.stack([book.weights, done.weights]), np.array([book.cash, done.cash]), np.zeros(2)
    before, afterwards = np.maximum(measure_all(*batch, mandate, market)[1], 0.0)
    assert (afterwards <= before + 1e-8).all()

    rich = Portfolio(book.weights, book.cash, 100 * book.nav)
    assert np.array_equal(remediation.remediate(rich, mandate, market).trades, remedy.trades)

    order = rng.permutation(n)
    assert market.benchmark is not None
    assert market.risk is not None
    mixed = Market(
        tuple(market.tickers[place] for place in order),
        tuple(market.sectors[place] for place in order),
        market.betas[order],
        market.benchmark[order],
        RiskModel.from_matrix(market.risk.matrix[np.ix_(order, order)]),
    )
    again = remediation.remediate(Portfolio(book.weights[order], book.cash, book.nav), mandate, mixed)
    assert again.value == pytest.approx(remedy.value, abs=1e-8)
    if all(stage.certified.uniqueness.outcome.proved for stage in (*remedy.stages[-1:], *again.stages[-1:])):
        assert again.trades == pytest.approx(
            remedy.trades[order], abs=1e-3
        )  # beside a cone, a slack s moves a tie by its root


@pytest.mark.parametrize("mandate", [LINEAR, CONIC])
def test_stored_multipliers_prove_each_stage_again(mandate: Mandate) -> None:
    market, book = market_of(12, 3), random_book(np.random.default_rng(3), 12)
    remedy = remediation.remediate(book, mandate, market)
    assert len(remedy.stages) > 1
    for stage in remedy.stages:
        program = formulate(book, mandate, market, stage.aim, stage.decisions)
        assert stage.certified.nodes == 1
        point = program.point(stage.certified.weights)
        proof = prove_optimal(program.program, point, stage.certified.multipliers)
        assert proof.gap <= ACCEPTED_GAP
        assert proof.violation <= 1e-8
        assert proof.objective == pytest.approx(stage.certified.value, abs=1e-8)


def test_helpers_place_portfolios_inside_a_mandate() -> None:
    market = market_of(12, 5)
    assert market.benchmark is not None
    mandate = mandate_of(*CONIC.constraints[:-1])
    inside = remediation.nearest(mandate, market, market.benchmark)
    assert all(kept.passed for kept in measure(book_of(inside.weights), mandate, market, 1e-8))


def test_ties_cost_nothing_where_the_first_stage_has_a_flat_face() -> None:
    """On the optimal face itself: the same turnover to the last digit, and what is sold is spread exactly evenly."""
    mandate = mandate_of(LONG, limit(Kind.SECTOR_LIMIT_MAX, 0.5), limit(Kind.CASH_MAX, 0.0))
    remedy = remediation.remediate(book_of([0.4, 0.2, 0.3, 0.1]), mandate, market_of(4, sectors=2))
    first, last = remedy.stages
    assert last.aim == Aim(Goal.TRADES, turnover_cap=first.certified.value)
    assert abs(last.certified.optimality.gap) < 1e-13
    assert remedy.trades == pytest.approx([-0.1, 0.1, -0.1, 0.1], abs=1e-14)


def test_what_a_binding_cone_makes_unique_needs_no_tie_break() -> None:
    market = market_of(12, 3)
    mandate = mandate_of(LONG, limit(Kind.TRACKING_ERROR_MAX, 0.03))
    remedy = remediation.remediate(random_book(np.random.default_rng(3), 12), mandate, market)
    (only,) = remedy.stages
    assert only.aim.goal is Goal.TURNOVER
    assert only.certified.uniqueness.outcome is Uniqueness.CURVATURE
    assert remedy.settled


def test_the_least_excess_over_a_cone_is_proved_unique_by_its_ray() -> None:
    market, book = market_of(12, 3), random_book(np.random.default_rng(3), 12)
    mandate = mandate_of(LONG, limit(Kind.TRACKING_ERROR_MAX, 0.02), limit(Kind.TURNOVER_MAX_MONTHLY, 0.05))
    remedy = remediation.remediate(book, mandate, market)
    assert not remedy.compliant
    assert [stage.aim.goal for stage in remedy.stages] == [Goal.TURNOVER, Goal.EXCESS]
    assert remedy.stages[-1].certified.uniqueness.outcome is Uniqueness.RANK
    # Any other portfolio of the same turnover, tried along random directions, exceeds the limit by more.
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = remedy.trades + 1e-3 * rng.normal(size=12)
        other *= 0.05 / turnover_of(other)
        if (book.weights + other >= 0).all():
            assert remediation.total_excess(remediation.after(book, other), mandate, market) > remedy.value
