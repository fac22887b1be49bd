"""Portfolio construction: optimal portfolios under a mandate, each with a certificate that no portfolio is better."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from finskillbench.domains.base import Domain
from finskillbench.domains.portfolio import (
    black_litterman,
    constrained_optimization,
    infeasibility_detection,
    rebalancing,
    tool_use_parameterization,
    unconstrained_optimization,
)
from finskillbench.domains.portfolio.checks import economics, panels, tasks
from finskillbench.domains.portfolio.definitions import RELEASED
from finskillbench.domains.portfolio.objects import PortfolioObjects, prepare
from finskillbench.domains.portfolio.user_catalogs import TEXTS, TIERS


def _parameters(objects: PortfolioObjects) -> dict[str, Any]:
    return {"portfolio": objects.settings}


DOMAIN = Domain(
    name="portfolio_construction",
    skills=(Path(__file__).parent / "skill" / "portfolio-construction",),
    subtasks=(
        unconstrained_optimization.SUBTASK,
        constrained_optimization.SUBTASK,
        tool_use_parameterization.SUBTASK,
        rebalancing.SUBTASK,
        black_litterman.SUBTASK,
        infeasibility_detection.SUBTASK,
    ),
    prepare=prepare,
    divisible=True,
    checks={
        "coverage": tasks.coverage,
        "prices": panels.prices,
        "trading_days": panels.trading_days,
        "point_in_time": panels.point_in_time,
        "covariance": panels.covariance,
        "benchmark": panels.benchmark,
        "expected_returns": tasks.expected_returns,
        "taxonomy": tasks.taxonomy,
    },
    audits={
        "feasible": tasks.feasible,
        "units": tasks.units,
        "spec_agrees": tasks.spec_agrees,
        "same_basis": economics.same_basis,
        "economics": economics.economics,
        "limits_bind": tasks.limits_bind,
    },
    parameters=_parameters,
    catalog=(TIERS, TEXTS),
    warm_up="finskillbench.engines.portfolio.warm_up:solve_small",
    released=RELEASED,
)
