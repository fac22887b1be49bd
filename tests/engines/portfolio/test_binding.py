"""Limits one by one: what is stated, what has room to spare, and the problem without one of them."""

from dataclasses import replace

import numpy as np
import pytest
from tests.engines.portfolio.cases import SECTORS, case

from finskillbench.engines.portfolio.mandates.binding import slack, stated_limits, without
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective, PortfolioLimits

LIMITS = PortfolioLimits(
    max_weight=0.4,
    sector_limits={f"S{sector}": 0.7 for sector in range(SECTORS)},
    min_position=0.05,
    min_names=3,
    max_names=5,
    max_turnover=0.9,
    max_tracking_error=0.5,
    neutral_factors=("mkt_rf",),
    neutrality_tolerance=2.0,
)
PROBLEM = case(6, 3, Objective.MAX_RETURN, LIMITS)


@pytest.mark.parametrize("name", stated_limits(PROBLEM))
def test_a_limit_is_left_out_alone(name: str) -> None:
    assert set(stated_limits(PROBLEM)) - set(stated_limits(without(PROBLEM, name))) == {name}
    assert optimise(without(PROBLEM, name)).value <= optimise(PROBLEM).value + 1e-9


def test_what_the_optimum_is_up_against_has_no_room() -> None:
    weights = optimise(PROBLEM).weights
    assert weights.max() == pytest.approx(0.4)
    loose = slack(PROBLEM, weights)
    assert "max_weight" not in loose
    assert {"max_turnover", "max_tracking_error", "factor_neutrality"} <= loose
    tight = replace(PROBLEM, limits=replace(LIMITS, neutrality_tolerance=0.0))
    assert "factor_neutrality" not in slack(tight, np.asarray(weights))
