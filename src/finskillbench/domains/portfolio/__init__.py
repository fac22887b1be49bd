"""Portfolio construction: optimal portfolios under a mandate, each with a certificate of optimality."""

from __future__ import annotations

from pathlib import Path

from finskillbench.domains.base import Domain
from finskillbench.domains.faults import read_faults
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
from finskillbench.domains.portfolio.faults import ACCEPTS, LOSSES
from finskillbench.domains.portfolio.objects import prepare_portfolio
from finskillbench.domains.portfolio.user_catalogs import TEXTS, TIERS

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
    prepare=prepare_portfolio,
    divisible=True,
    checks={
        "coverage": tasks.check_portfolio_coverage,
        "prices": panels.check_prices,
        "trading_days": panels.check_trading_days,
        "point_in_time": panels.check_panel_point_in_time,
        "covariance": panels.check_covariance,
        "benchmark": panels.check_benchmark,
        "expected_returns": tasks.check_expected_returns,
        "taxonomy": tasks.check_portfolio_taxonomy,
    },
    audits={
        "feasible": tasks.check_published_limits,
        "units": tasks.check_portfolio_units,
        "spec_agrees": tasks.check_mandate_calls,
        "same_basis": economics.check_same_basis,
        "economics": economics.check_portfolio_economics,
        "limits_bind": tasks.check_limits_bind,
    },
    parameters=lambda objects: {"portfolio": objects.settings},
    catalog=(TIERS, TEXTS),
    warm_up="finskillbench.engines.portfolio.warm_up:solve_small",
    released=RELEASED,
    faults=read_faults(Path(__file__).with_name("faults.toml")),
    accepts=ACCEPTS,
    losses=LOSSES,
)
