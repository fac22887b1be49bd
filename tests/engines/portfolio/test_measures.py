"""Measures by hand-made numbers, and each limit broken alone."""

from dataclasses import replace

import numpy as np
import pytest

from finskillbench.engines.portfolio.measures import (
    LimitCheck,
    breach,
    check_limits,
    name_count,
    one_way_turnover,
    portfolio_sector_weights,
    tracking_error,
    violations,
)
from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits, PortfolioProblem
from finskillbench.engines.statistics.risk_model import RiskModel

MATRIX = np.diag([0.04, 0.09, 0.01, 0.16])
LIMITS = PortfolioLimits(
    min_weight=0.05,
    max_weight=0.4,
    sector_limits={"A": 0.55, "B": 0.7},
    min_position=0.18,
    min_names=4,
    max_names=4,
    max_turnover=0.2,
    max_tracking_error=0.05,
    neutral_factors=("mkt_rf",),
    neutrality_tolerance=0.05,
)
PROBLEM = PortfolioProblem(
    tickers=tuple("WXYZ"),
    risk=RiskModel.from_matrix(MATRIX),
    objective=Objective.MIN_VARIANCE,
    limits=LIMITS,
    sectors=("A", "A", "B", "B"),
    benchmark=np.array([0.3, 0.2, 0.3, 0.2]),
    current=np.array([0.25, 0.25, 0.25, 0.25]),
    exposures=np.array([[1.0], [1.2], [0.8], [1.1]]),
)
GOOD = np.array([0.3, 0.22, 0.3, 0.18])


def test_turnover_is_one_way() -> None:
    """Selling a tenth and buying a tenth is a tenth."""
    assert one_way_turnover(np.array([0.6, 0.4]), np.array([0.5, 0.5])) == pytest.approx(0.1)


def test_tracking_error_is_a_standard_deviation() -> None:
    active = GOOD - np.array([0.3, 0.2, 0.3, 0.2])
    expected = np.sqrt(0.02**2 * 0.09 + 0.02**2 * 0.16)
    assert tracking_error(GOOD, GOOD - active, PROBLEM.risk) == pytest.approx(expected, rel=1e-12)


def test_a_holding_is_ten_basis_points() -> None:
    assert name_count(np.array([0.001, 0.0009, -0.9981, 0.0])) == 2
    assert name_count(np.array([0.00096, 1.0])) == 2


def test_sector_weights_add_up_by_sector() -> None:
    assert portfolio_sector_weights(np.array([0.1, 0.2, 0.3]), ("A", "B", "A")) == pytest.approx({"A": 0.4, "B": 0.2})


def test_a_portfolio_that_keeps_everything_is_measured_on_every_limit() -> None:
    checks = check_limits(PROBLEM, GOOD)
    assert violations(PROBLEM, GOOD, 0.0) == []
    measured = {name: check.value for name, check in checks.items()}
    active_beta = 0.02 * 1.2 - 0.02 * 1.1
    assert measured == pytest.approx(
        {
            "fully_invested": 1.0,
            "long_only": 0.18,
            "min_weight": 0.18,
            "max_weight": 0.3,
            "sector_limits": 0.52,
            "max_turnover": 0.1,
            "max_tracking_error": np.sqrt(0.02**2 * 0.25),
            "factor_neutrality": active_beta,
            "min_position": 0.18,
            "min_names": 4,
            "max_names": 4,
        }
    )


@pytest.mark.parametrize(
    ("broken", "weights", "limits"),
    [
        ("fully_invested", [0.3, 0.21, 0.3, 0.18], {}),
        ("long_only", [0.35, 0.31, 0.36, -0.02], {"min_weight": None, "min_names": None}),
        ("min_weight", GOOD, {"min_weight": 0.19}),
        ("max_weight", GOOD, {"max_weight": 0.29}),
        ("sector_limits", GOOD, {"sector_limits": {"A": 0.51}}),
        ("max_turnover", GOOD, {"max_turnover": 0.09}),
        ("max_tracking_error", GOOD, {"max_tracking_error": 0.009}),
        ("factor_neutrality", GOOD, {"neutrality_tolerance": 0.001}),
        ("min_position", GOOD, {"min_position": 0.19}),
        ("min_names", GOOD, {"min_names": 5}),
        ("max_names", GOOD, {"max_names": 3}),
    ],
)
def test_each_limit_is_found_broken_alone(broken: str, weights: list[float], limits: dict[str, object]) -> None:
    loose = PortfolioLimits(long_only=broken in ("long_only", "min_position", "min_names", "max_names"))
    needed = {name: getattr(LIMITS, name) for name in ("neutral_factors",) if broken == "factor_neutrality"}
    alone = replace(loose, **needed, **limits)
    problem = replace(PROBLEM, limits=alone, exposures=PROBLEM.exposures if needed else None)
    assert violations(problem, np.array(weights)) == [broken]


def test_the_excess_is_the_distance_over_the_limit() -> None:
    problem = replace(PROBLEM, limits=replace(LIMITS, max_turnover=0.04, sector_limits={"A": 0.5, "B": 0.4}))
    checks = check_limits(problem, GOOD)
    assert checks["max_turnover"].excess == pytest.approx(0.06)
    # The worst sector speaks for all: B is 0.08 over, A 0.02.
    assert checks["sector_limits"].excess == pytest.approx(0.08)
    assert checks["sector_limits"].limit == 0.4


def test_rounding_to_basis_points_breaks_no_limit() -> None:
    weights = np.array([0.4002, 0.1998, 0.3, 0.1])
    problem = replace(PROBLEM, limits=PortfolioLimits(max_weight=0.4, min_names=4, max_names=4), exposures=None)
    assert violations(problem, weights) == []
    assert violations(problem, weights, 1e-9) == ["max_weight"]


def test_a_breach_is_free_within_the_tolerance_and_outright_from_a_twentieth_of_the_limit() -> None:
    def severity(value: float, limit: float, name: str = "max_turnover") -> float:
        return breach(name, LimitCheck(value, limit, value - limit))

    assert severity(0.1499, 0.15) == severity(0.15049, 0.15) == 0.0
    assert severity(0.15425, 0.15) == pytest.approx(0.5)
    assert severity(0.159, 0.15) == 1.0
    assert severity(0.0125, 0.01, "factor_neutrality") == pytest.approx(0.4)
    assert severity(20, 19, "max_names") == 1.0  # one name too many
