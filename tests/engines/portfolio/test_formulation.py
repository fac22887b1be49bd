"""A portfolio keeps the limits by measurement exactly when it satisfies the program's rows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.portfolio.cases import HARD, case
from tests.sampling import examples

from finskillbench.arrays import Floats
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.engines.optimisation.certificate import project
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.program import dense
from finskillbench.engines.portfolio.formulation import PortfolioAim, PortfolioGoal, formulate_portfolio
from finskillbench.engines.portfolio.measures import check_limits, one_way_turnover
from finskillbench.engines.portfolio.problem import STUB, Objective, PortfolioLimits, PortfolioProblem
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import DimensionError

LIMITS = PortfolioLimits(
    min_weight=0.01,
    max_weight=0.2,
    sector_limits={"S0": 0.25, "S1": 0.3},
    max_turnover=0.2,
    max_tracking_error=0.04,
    neutral_factors=("mkt_rf", "smb"),
    neutrality_tolerance=0.05,
)


def _point(problem: PortfolioProblem, formulation: Formulation, weights: Floats) -> Floats:
    """The weights with the least auxiliary variables: factor exposures, then trades."""
    parts = [weights]
    if not problem.risk.is_dense:
        parts.append(problem.risk.root @ weights)
    if problem.limits.max_turnover is not None:
        parts.append(np.abs(weights - problem.current))
    point = np.concatenate(parts)
    assert len(point) == formulation.program.linear.size
    return point


def _excess(formulation: Formulation, point: Floats) -> float:
    slack = formulation.program.rhs - formulation.program.matrix @ point
    return float(np.abs(slack - project(formulation.program, slack, dual=False)).max())


def _problem(seed: int, objective: Objective, factor_form: bool) -> PortfolioProblem:
    rng = np.random.default_rng(seed)
    loadings = rng.normal(0.1, 0.08, (3, 12))
    risk = RiskModel.from_factors(loadings, rng.uniform(0.02, 0.08, 12))
    return case(12, seed, objective, LIMITS, risk=risk if factor_form else RiskModel.from_matrix(risk.matrix))


@settings(max_examples=examples(100))
@given(st.integers(0, 10_000), st.floats(0, 1.5), st.booleans(), st.sampled_from(list(Objective)))
def test_rows_and_measures_agree_on_what_is_kept(
    seed: int, size: float, factor_form: bool, objective: Objective
) -> None:
    problem = _problem(seed, objective, factor_form)
    rng = np.random.default_rng(seed)
    active = rng.normal(size=12) * 0.02 * size
    weights = problem.benchmark + active - active.mean()
    worst = max(check.excess for name, check in check_limits(problem, weights).items() if name != "fully_invested")
    formulation = formulate_portfolio(problem, PortfolioAim())
    point = _point(problem, formulation, weights)
    assert formulation.program.objective(point) == pytest.approx(problem.value(weights), abs=1e-12)
    if abs(worst) > 1e-9:
        assert (_excess(formulation, point) > 1e-10) == (worst > 0)


@settings(max_examples=examples(60))
@given(st.integers(0, 10_000), st.floats(-0.3, 0.3), st.booleans(), st.sampled_from(list(Objective)))
def test_a_cap_on_the_objective_is_a_cap_on_its_value(
    seed: int, margin: float, factor_form: bool, objective: Objective
) -> None:
    problem = replace(_problem(seed, objective, factor_form), limits=PortfolioLimits(), exposures=None)
    weights = np.random.default_rng(seed).dirichlet(np.ones(12))
    value = problem.value(weights)
    if abs(margin) < 1e-6:
        return
    cap = value + margin * abs(value)
    formulation = formulate_portfolio(problem, PortfolioAim(PortfolioGoal.OBJECTIVE, objective_cap=cap))
    assert (_excess(formulation, _point(problem, formulation, weights)) > 1e-12) == (margin < 0)


def test_goals_other_than_the_objective() -> None:
    problem = replace(
        _problem(1, Objective.MIN_VARIANCE, False), limits=PortfolioLimits(max_turnover=0.01), exposures=None
    )
    weights, anchor = np.full(12, 1 / 12), np.eye(12)[0]
    least = formulate_portfolio(problem, PortfolioAim(PortfolioGoal.TURNOVER))
    point = _point(problem, least, weights)
    assert least.program.objective(point) == pytest.approx(one_way_turnover(weights, problem.current))
    # The goal replaces the cap on turnover: this portfolio is far over 0.01 and still satisfies the rows.
    assert one_way_turnover(weights, problem.current) > 0.01
    assert _excess(least, point) < 1e-12
    distance = formulate_portfolio(problem, PortfolioAim(PortfolioGoal.DISTANCE, anchor=anchor)).program
    assert distance.objective(point) == pytest.approx(((weights - anchor) ** 2).sum())


@pytest.mark.parametrize("holding", [0.0, 0.0005, STUB, HOLDING_THRESHOLD, 0.01, 0.5])
@pytest.mark.parametrize("indicator", [0.0, 1.0])
def test_an_indicator_says_who_is_a_holding(holding: float, indicator: float) -> None:
    problem = case(2, 1, Objective.MIN_VARIANCE, PortfolioLimits(min_names=0, max_names=1))
    nobody = np.zeros(2, dtype=bool)
    formulation = formulate_portfolio(problem, PortfolioAim(), decisions=nobody)
    point = np.array([holding, 1 - holding, indicator, 1.0])
    rows = dense(formulation.program.matrix)
    slack = formulation.program.rhs - rows @ point
    by_label = {block.label: slack[block.rows] for block in formulation.program.blocks}
    kept = by_label["holding"][0] >= -1e-15 and by_label["stub"][0] >= -1e-15
    assert kept == (holding >= HOLDING_THRESHOLD if indicator else holding <= STUB)
    assert (by_label["max_names"][0] >= 0) == (indicator == 0.0)


def test_blocks_bear_the_names_of_the_limits() -> None:
    labels = {
        block.label
        for block in formulate_portfolio(case(30, 1, Objective.MAX_SHARPE, HARD), PortfolioAim()).program.blocks
    }
    assert labels == {
        "fully_invested",
        "lower_bound",
        "upper_bound",
        "sector_limits",
        "buys",
        "sells",
        "max_turnover",
        "max_tracking_error",
        "factor_neutrality_above",
        "factor_neutrality_below",
    }


def test_a_distance_needs_its_anchor() -> None:
    with pytest.raises(DimensionError, match="anchor"):
        formulate_portfolio(case(4, 1, Objective.MIN_VARIANCE), PortfolioAim(PortfolioGoal.DISTANCE))


def test_three_thousand_names_make_no_square_matrix() -> None:
    """3,000² doubles are 72 MB; the factor form's rows hold a few numbers each."""
    rng = np.random.default_rng(0)
    n = 3000
    risk = RiskModel.from_factors(rng.normal(0, 0.1, (20, n)), np.full(n, 0.05))
    limits = PortfolioLimits(max_turnover=0.2, max_tracking_error=0.03, sector_limits={"S0": 0.2})
    problem = PortfolioProblem(
        tickers=tuple(map(str, range(n))),
        risk=risk,
        objective=Objective.MAX_SHARPE,
        limits=limits,
        expected_returns=np.zeros(n),
        sectors=("S0", "S1") * (n // 2),
        benchmark=np.full(n, 1 / n),
        current=np.full(n, 1 / n),
    )
    program = formulate_portfolio(problem, PortfolioAim(objective_cap=1.0)).program
    assert program.matrix.nnz < 40 * n
    assert program.quadratic.nnz <= n + 20
