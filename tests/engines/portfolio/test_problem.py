"""The objectives by hand, and problems whose parts do not fit."""

from typing import Any

import numpy as np
import pytest

from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits, PortfolioProblem
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import DimensionError

PARTS: dict[str, Any] = {
    "tickers": tuple("ABC"),
    "risk": RiskModel.from_matrix(np.diag([0.04, 0.02, 0.08])),
    "objective": Objective.MIN_VARIANCE,
    "limits": PortfolioLimits(),
}


@pytest.mark.parametrize(
    ("objective", "value"),
    [
        (Objective.MIN_VARIANCE, 0.25 * 0.04 + 0.0625 * 0.02 + 0.0625 * 0.08),
        (Objective.MAX_RETURN, -(0.5 * 0.1 + 0.25 * 0.04 + 0.25 * 0.02)),
        (Objective.MAX_SHARPE, 3 * 0.01625 - 0.065),
        # 1/σ² is 25, 50, 12.5: the anchor is 2/7, 4/7, 1/7.
        (Objective.RISK_PARITY, (0.5 - 2 / 7) ** 2 + (0.25 - 4 / 7) ** 2 + (0.25 - 1 / 7) ** 2 + 0.5 * 0.01625),
    ],
)
def test_objectives_are_minimised_in_their_stated_form(objective: Objective, value: float) -> None:
    problem = PortfolioProblem(
        **{**PARTS, "objective": objective}, expected_returns=np.array([0.1, 0.04, 0.02]), risk_aversion=3.0
    )
    assert problem.value(np.array([0.5, 0.25, 0.25])) == pytest.approx(value, abs=1e-15)


def test_bounds_of_weights() -> None:
    long = PortfolioProblem(**{**PARTS, "limits": PortfolioLimits(max_weight=0.5, min_weight=0.1)})
    np.testing.assert_array_equal(long.lower_bounds(), [0.1] * 3)
    np.testing.assert_array_equal(long.upper_bounds(), [0.5] * 3)
    short = PortfolioProblem(
        **{**PARTS, "limits": PortfolioLimits(long_only=False)}, ceilings=np.array([0.3, np.inf, 5.0])
    )
    np.testing.assert_array_equal(short.lower_bounds(), [-1.0] * 3)
    np.testing.assert_array_equal(short.upper_bounds(), [0.3, 2.0, 2.0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tickers": tuple("AB")}, "covariance covers 3 names, the problem 2"),
        ({"expected_returns": np.ones(2)}, "expected_returns"),
        ({"benchmark": np.ones(4)}, "benchmark"),
        ({"current": np.ones((3, 1))}, "current"),
        ({"ceilings": np.ones(2)}, "ceilings"),
        ({"exposures": np.ones((3, 1))}, "exposures"),
        ({"limits": PortfolioLimits(sector_limits={"A": 0.5}), "sectors": ("A", "B")}, "sectors has 2 entries"),
        ({"limits": PortfolioLimits(sector_limits={"A": 0.5})}, "sectors has 0 entries"),
    ],
)
def test_parts_that_do_not_fit_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DimensionError, match=message):
        PortfolioProblem(**{**PARTS, **changes})
