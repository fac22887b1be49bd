"""Portfolio construction: optimal portfolios under a mandate, each with a certificate that no portfolio is better."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from finskillbench.domains.base import Domain
from finskillbench.domains.building import BuildContext, load_catalog
from finskillbench.domains.portfolio import (
    black_litterman,
    constrained_optimization,
    infeasibility_detection,
    rebalancing,
    tool_use_parameterization,
    unconstrained_optimization,
)
from finskillbench.domains.portfolio.checks import panel, proofs, tasks, truth
from finskillbench.domains.portfolio.released import RELEASED


def _prepare(context: BuildContext) -> None:
    del context


def _parameters(objects: Any) -> dict[str, Any]:
    return {"portfolio": load_catalog("portfolio.json")}


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
    prepare=_prepare,
    checks={
        "coverage": tasks.coverage,
        "prices": panel.prices,
        "trading_days": panel.trading_days,
        "point_in_time": panel.point_in_time,
        "covariance": panel.covariance,
        "benchmark": panel.benchmark,
        "taxonomy": tasks.taxonomy,
        "truth": truth.truth,
        "certificates": proofs.certificates,
    },
    parameters=_parameters,
    warm_up="finskillbench.engines.portfolio.warm_up:solve_small",
    released=RELEASED,
)
