"""Remediation: hand-solvable cases, properties, and independent solvers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from finskillbench.engines.optimisation.certificate import prove_optimal
from finskillbench.engines.optimisation.certified import ACCEPTED_GAP
from finskillbench.engines.risk import remediation
from finskillbench.engines.risk.formulation import RemediationGoal, formulate_remediation
from finskillbench.engines.risk.mandate import Constraint, ConstraintKind, RiskMandate
from finskillbench.engines.risk.monitor import check_constraints, limit_scales
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio
from finskillbench.engines.risk.trading import TradingRules, trading_rules_from
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import InputError

LONG = Constraint(ConstraintKind.LONG_ONLY, value=0.0)


def market_of(n: int, seed: int = 0, sectors: int = 4) -> MarketSnapshot:
    rng = np.random.default_rng(seed)
    betas = 0.3 * rng.normal(size=(n, 6))
    betas[:, 0] += 1.0
    loadings = (betas * np.array([0.16, 0.08, 0.08, 0.06, 0.05, 0.10])).T
    covariance = loadings.T @ loadings + np.diag(rng.uniform(0.15, 0.35, n) ** 2)
    names = tuple(f"N{place:02d}" for place in range(n))
    groups = tuple(f"S{place % sectors}" for place in range(n))
    return MarketSnapshot(names, groups, betas, rng.dirichlet(np.full(n, 3.0)), RiskModel.from_matrix(covariance))


def mandate_of(*constraints: Constraint) -> RiskMandate:
    return RiskMandate("M", "test", constraints)


def limit(kind: ConstraintKind, value: float, **rest) -> Constraint:
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
    limit(ConstraintKind.POSITION_LIMIT_MAX, 0.20),
    limit(ConstraintKind.SECTOR_LIMIT_MAX, 0.40),
    Constraint(ConstraintKind.BETA_RANGE, minimum=0.9, maximum=1.1),
    limit(ConstraintKind.CASH_MAX, 0.05),
)
CONIC = mandate_of(
    LONG,
    limit(ConstraintKind.POSITION_LIMIT_MAX, 0.25),
    limit(ConstraintKind.TRACKING_ERROR_MAX, 0.08),
    limit(ConstraintKind.HHI_MAX, 0.12),
    limit(ConstraintKind.CASH_MAX, 0.05),
    limit(ConstraintKind.TURNOVER_MAX_MONTHLY, 0.05),
)


def costs_of(*costs: float, ticket: float = 0.0, headroom: dict[ConstraintKind, float] | None = None) -> TradingRules:
    return TradingRules(np.array(costs), ticket, headroom or {})


def test_one_name_over_its_cap_is_cut_by_its_headroom_and_the_cheapest_is_bought() -> None:
    mandate = mandate_of(LONG, limit(ConstraintKind.POSITION_LIMIT_MAX, 0.4), limit(ConstraintKind.CASH_MAX, 0.0))
    terms = costs_of(0.1, 0.2, 0.05, 0.3, headroom={ConstraintKind.POSITION_LIMIT_MAX: 0.02})
    remedy = remediation.remediate(book_of([0.5, 0.2, 0.2, 0.1]), mandate, market_of(4), terms)
    assert remedy.compliant
    assert remedy.trades == pytest.approx([-0.12, 0.0, 0.12, 0.0], abs=1e-9)
    assert remedy.value == pytest.approx(0.12 * 0.15, abs=1e-9)
    assert remedy.settled


def test_a_purchase_below_the_ticket_is_made_by_a_dearer_one_at_the_ticket() -> None:
    """Sold are 2 %; the cheap name has room for 0.5 % of them, and a ticket is 1 %: all 2 % go into the next one."""
    mandate = mandate_of(LONG, limit(ConstraintKind.POSITION_LIMIT_MAX, 0.4), limit(ConstraintKind.CASH_MAX, 0.0))
    book = book_of([0.42, 0.395, 0.1, 0.085])
    free = remediation.remediate(book, mandate, market_of(4), costs_of(0.1, 0.05, 0.2, 0.3))
    assert free.trades == pytest.approx([-0.02, 0.005, 0.015, 0.0], abs=1e-9)
    remedy = remediation.remediate(book, mandate, market_of(4), costs_of(0.1, 0.05, 0.2, 0.3, ticket=0.01))
    assert remedy.trades == pytest.approx([-0.02, 0.0, 0.02, 0.0], abs=1e-9)
    assert remedy.settled


def test_too_much_beta_is_taken_out_where_it_costs_least() -> None:
    market = market_of(3)
    betas = market.betas.copy()
    betas[:, 0] = (2.0, 1.0, 0.5)
    market = MarketSnapshot(market.tickers, market.sectors, betas)
    mandate = mandate_of(LONG, Constraint(ConstraintKind.BETA_RANGE, minimum=0.0, maximum=1.0))
    remedy = remediation.remediate(book_of([0.6, 0.2, 0.2]), mandate, market, TradingRules.free(3))
    # Beta 1.5; one unit out of the first name into cash takes out 2.
    assert remedy.trades == pytest.approx([-0.25, 0.0, 0.0], abs=1e-7)


@pytest.mark.parametrize(("size", "expected"), [(0.004, -0.004), (0.018, 0.002)])
def test_a_holding_under_the_floor_goes_the_shorter_way(size: float, expected: float) -> None:
    mandate = mandate_of(LONG, limit(ConstraintKind.POSITION_LIMIT_MIN, 0.02), limit(ConstraintKind.CASH_MAX, 1.0))
    remedy = remediation.remediate(book_of([0.5, 0.4, size, 0.0]), mandate, market_of(4), TradingRules.free(4))
    assert remedy.trades == pytest.approx([0.0, 0.0, expected, 0.0], abs=1e-8)


def test_a_position_smaller_than_the_ticket_may_be_closed_in_full() -> None:
    mandate = mandate_of(LONG, limit(ConstraintKind.POSITION_LIMIT_MIN, 0.02), limit(ConstraintKind.CASH_MAX, 1.0))
    terms = costs_of(1.0, 1.0, 1.0, 1.0, ticket=0.05)
    remedy = remediation.remediate(book_of([0.5, 0.4, 0.018, 0.0]), mandate, market_of(4), terms)
    assert remedy.trades == pytest.approx([0.0, 0.0, -0.018, 0.0], abs=1e-9)


def test_counts_close_the_smallest_and_open_what_is_missing() -> None:
    market = market_of(6)
    weights = [0.4, 0.3, 0.2, 0.06, 0.04, 0.0]
    few = mandate_of(
        LONG, Constraint(ConstraintKind.NAME_COUNT, maximum=4.0), limit(ConstraintKind.POSITION_LIMIT_MIN, 0.01)
    )
    remedy = remediation.remediate(book_of(weights), few, market, TradingRules.free(6))
    assert remedy.value == pytest.approx(0.04, abs=1e-9)
    assert remedy.weights[4] == 0.0
    many = mandate_of(
        LONG, Constraint(ConstraintKind.NAME_COUNT, minimum=6.0), limit(ConstraintKind.POSITION_LIMIT_MIN, 0.01)
    )
    remedy = remediation.remediate(book_of([*weights[:4], 0.03, 0.0]), many, market, TradingRules.free(6))
    assert remedy.weights[5] == pytest.approx(0.01, abs=1e-9)


def test_a_compliant_portfolio_needs_no_trades_exactly() -> None:
    remedy = remediation.remediate(book_of([0.25] * 4), mandate_of(LONG), market_of(4), TradingRules.free(4))
    assert remedy.compliant
    assert remedy.turnover == remedy.value == 0.0
    assert not remedy.trades.any()
    assert remedy.stages == ()


def test_what_the_turnover_left_cannot_mend_is_mended_as_far_as_it_goes() -> None:
    mandate = mandate_of(
        LONG,
        limit(ConstraintKind.POSITION_LIMIT_MAX, 0.4),
        limit(ConstraintKind.CASH_MAX, 1.0),
        limit(ConstraintKind.TURNOVER_MAX_MONTHLY, 0.15),
    )
    terms = costs_of(0.1, 0.1, 0.1, 0.1)
    remedy = remediation.remediate(book_of([0.6, 0.2, 0.2, 0.0], traded=0.1), mandate, market_of(4), terms)
    assert not remedy.compliant
    assert remedy.trades == pytest.approx([-0.05, 0.0, 0.0, 0.0], abs=1e-8)
    assert remedy.value == pytest.approx(0.15 / 0.4 + 0.05 * 0.1, abs=1e-8)
    assert remedy.stages[0].certified.optimality.lower_bound > 0.05


def test_nothing_more_is_traded_where_too_much_was() -> None:
    mandate = mandate_of(
        LONG, limit(ConstraintKind.POSITION_LIMIT_MAX, 0.4), limit(ConstraintKind.TURNOVER_MAX_MONTHLY, 0.1)
    )
    remedy = remediation.remediate(book_of([0.5, 0.3], traded=0.2), mandate, market_of(2), TradingRules.free(2))
    assert not remedy.compliant
    assert not remedy.trades.any()


@pytest.mark.parametrize("seed", range(6))
def test_least_cost_is_that_of_highs(seed: int) -> None:
    """Trades of 0, of a ticket at least, or of a whole position, as whole numbers of another solver."""
    n, rng, ticket = 12, np.random.default_rng(seed), 0.02
    market, book = market_of(n, seed), random_book(rng, 12)
    costs = rng.uniform(0.05, 0.5, n)
    eye, none = np.eye(n), np.zeros((n, n))
    # Columns: buys, sells, bought, sold, closed in full.
    to = np.hstack([eye, -eye, none, none, none])
    small = np.where((book.weights > 0) & (book.weights < ticket), book.weights, 0.0)
    sectors, beta = market.membership.T, market.betas[:, 0]
    limits: list[tuple[Any, Any]] = [
        (-to, book.weights),
        (to, 0.2 - book.weights),
        (sectors @ to, 0.4 - sectors @ book.weights),
        (beta[None] @ to, [1.1 - beta @ book.weights]),
        (-beta[None] @ to, [beta @ book.weights - 0.9]),
        (-np.ones((1, n)) @ to, [0.05 - book.cash]),
        (np.ones((1, n)) @ to, [book.cash]),
        (np.hstack([eye, none, -eye, none, none]), np.zeros(n)),
        (np.hstack([none, eye, none, -eye, -np.diag(small)]), np.zeros(n)),
        (np.hstack([-eye, none, ticket * eye, none, none]), np.zeros(n)),
        (np.hstack([none, -eye, none, ticket * eye, np.diag(small)]), np.zeros(n)),
        (np.hstack([none, none, eye, eye, eye]), np.ones(n)),
    ]
    kept = LinearConstraint(np.vstack([rows for rows, _ in limits]), -np.inf, np.concatenate([e for _, e in limits]))
    whole, objective = np.repeat([0, 0, 1, 1, 1], n), np.concatenate([costs, costs, np.zeros(3 * n)])
    highs = milp(objective, integrality=whole, bounds=Bounds(0, 1), constraints=kept, options={"mip_rel_gap": 0.0})
    remedy = remediation.remediate(book, LINEAR, market, costs_of(*costs, ticket=ticket))
    assert remedy.value == pytest.approx(highs.fun, abs=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_least_excess_is_that_of_cvxpy(seed: int) -> None:
    n, rng = 12, np.random.default_rng(seed)
    market, book = market_of(n, seed), random_book(rng, 12)
    remedy = remediation.remediate(book, CONIC, market, TradingRules.free(n))
    assert not remedy.compliant
    assert market.risk is not None
    w = cp.Variable(n, nonneg=True)
    cash = 1 - cp.sum(w)
    measured = {
        ConstraintKind.POSITION_LIMIT_MAX: cp.max(w),
        ConstraintKind.TRACKING_ERROR_MAX: cp.norm(market.risk.root @ (w - market.benchmark)),
        ConstraintKind.HHI_MAX: cp.sum_squares(w),
        ConstraintKind.CASH_MAX: cash,
    }
    relative = []
    for constraint in CONIC.constraints:
        if constraint.kind in measured:
            scale = limit_scales(constraint)[1]
            relative.append(cp.pos(measured[constraint.kind] - constraint.bounds[1]) / scale)
    total = cp.sum(cp.hstack(relative)) + cp.norm1(w - book.weights)
    turnover = (cp.norm1(w - book.weights) + cp.abs(cash - book.cash)) / 2
    limits: list[Any] = [cash >= 0, turnover <= 0.05]
    least = cp.Problem(cp.Minimize(total), limits).solve(solver="CLARABEL")
    assert remedy.value == pytest.approx(least, abs=2e-7)
    done = remediation.portfolio_after(book, remedy.trades)
    shortfall = remediation.total_excess(done, CONIC, market) + np.abs(remedy.trades).sum()
    assert shortfall == pytest.approx(remedy.value, abs=1e-6)
    assert remedy.turnover <= 0.05 + 1e-9


SEMICONTINUOUS = mandate_of(
    *LINEAR.constraints,
    limit(ConstraintKind.POSITION_LIMIT_MIN, 0.01),
    Constraint(ConstraintKind.NAME_COUNT, minimum=5.0, maximum=10.0),
)


@pytest.mark.slow
@pytest.mark.parametrize("mandate", [LINEAR, SEMICONTINUOUS, mandate_of(*CONIC.constraints[:-1])])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=8)
def test_the_remedy_keeps_every_limit_and_moves_with_names_and_not_with_nav(mandate: RiskMandate, seed: int) -> None:
    n, rng = 12, np.random.default_rng(seed)
    market, book = market_of(n, seed % 7), random_book(rng, 12)
    terms = costs_of(*rng.uniform(0.05, 0.5, n), ticket=0.01, headroom={ConstraintKind.POSITION_LIMIT_MAX: 0.005})
    remedy = remediation.remediate(book, mandate, market, terms)
    assert remedy.compliant
    done = remediation.portfolio_after(book, remedy.trades)
    assert all(found.passed for found in check_constraints(done, terms.target(mandate), market, 1e-8))
    assert done.weights == pytest.approx(remedy.weights, abs=1e-12)
    assert terms.cost(remedy.trades) == pytest.approx(remedy.value, abs=2e-7)
    small = (remedy.trades != 0) & (np.abs(remedy.trades) < terms.ticket - 1e-7)
    assert (np.abs(done.weights[small]) <= 1e-12).all()

    rich = Portfolio(book.weights, book.cash, 100 * book.nav)
    assert np.array_equal(remediation.remediate(rich, mandate, market, terms).trades, remedy.trades)

    order = rng.permutation(n)
    assert market.benchmark is not None
    assert market.risk is not None
    mixed = MarketSnapshot(
        tuple(market.tickers[place] for place in order),
        tuple(market.sectors[place] for place in order),
        market.betas[order],
        market.benchmark[order],
        RiskModel.from_matrix(market.risk.matrix[np.ix_(order, order)]),
    )
    shuffled = Portfolio(book.weights[order], book.cash, book.nav)
    again = remediation.remediate(shuffled, mandate, mixed, replace(terms, costs=terms.costs[order]))
    assert again.value == pytest.approx(remedy.value, abs=1e-8)
    if remedy.settled and again.settled:
        assert again.trades == pytest.approx(remedy.trades[order], abs=1e-5)


def test_stored_multipliers_prove_a_stage_without_branches_again() -> None:
    market, book = market_of(12, 3), random_book(np.random.default_rng(3), 12)
    remedy = remediation.remediate(book, CONIC, market, TradingRules.free(12))
    assert [stage.aim.goal for stage in remedy.stages] == [RemediationGoal.TURNOVER, RemediationGoal.EXCESS]
    for stage in remedy.stages:
        program = formulate_remediation(book, CONIC, market, stage.aim)
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
    assert all(kept.passed for kept in check_constraints(book_of(inside.weights), mandate, market, 1e-8))


def test_equal_costs_leave_ties_that_are_not_called_settled() -> None:
    mandate = mandate_of(LONG, limit(ConstraintKind.POSITION_LIMIT_MAX, 0.4), limit(ConstraintKind.CASH_MAX, 0.0))
    remedy = remediation.remediate(book_of([0.5, 0.2, 0.2, 0.1]), mandate, market_of(4), TradingRules.free(4))
    assert remedy.value == pytest.approx(0.2, abs=1e-9)
    assert not remedy.settled


@pytest.mark.parametrize("headroom", [{"position_limit_max": 0.4}, {"hhi_max": 0.01}, {"long_only": 0.1}])
def test_headroom_that_leaves_nothing_or_that_the_mandate_has_no_limit_for_is_refused(headroom: Any) -> None:
    mandate = mandate_of(LONG, limit(ConstraintKind.POSITION_LIMIT_MAX, 0.4))
    data = {"cost_bps": {"N00": 5.0}, "minimum_trade": 0.0, "headroom": headroom}
    with pytest.raises(InputError, match="headroom"):
        trading_rules_from(data, ("N00",), mandate).target(mandate)
