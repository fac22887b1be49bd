"""What tasks ask of a universe of hundreds of names, whose covariance is in factors."""

from __future__ import annotations

from datetime import date

import numpy as np

from finskillbench.domains.portfolio.objects.binding import mandate_fields, market_fields, month_problem, sized_limits
from finskillbench.domains.portfolio.objects.month_end import MOST_LISTED, MonthEnd
from finskillbench.domains.portfolio.objects.settings import read_settings
from finskillbench.engines.holdings import has_dust
from finskillbench.engines.portfolio.measures import clean, violations
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.engines.statistics.risk_model import RiskModel


def _month(n: int, factors: int) -> MonthEnd:
    """n names in ten sectors with a market factor and weaker ones, held by capitalisation in the benchmark."""
    rng = np.random.default_rng(n)
    loadings = np.vstack([rng.normal(0.17, 0.04, n), rng.normal(0.0, 0.05, (factors - 1, n))])
    caps = rng.lognormal(0.0, 0.5, n)
    return MonthEnd(
        as_of=date(2024, 1, 31),
        tickers=tuple(f"T{name:03d}" for name in range(n)),
        sectors=tuple(f"S{name % 10}" for name in range(n)),
        expected_returns=rng.normal(0.06, 0.03, n),
        risk=RiskModel.from_factors(loadings, rng.uniform(0.02, 0.08, n)),
        benchmark=caps / caps.sum(),
        exposures={name: rng.normal(0.0, 0.4, n) for name in ("mkt_rf", "smb", "hml", "rmw", "cma", "mom")},
        risk_free_rate=0.04,
        trading_costs=np.full(n, 10.0),
        growth=np.ones(n),
    )


def test_a_list_of_a_large_universe_is_short_and_its_benchmark_keeps_every_tier() -> None:
    month = _month(300, 20).of_list(np.random.default_rng(1), 0.5)
    assert len(month.tickers) == MOST_LISTED
    for tier in read_settings()["tiers"].values():
        task_input = {
            **market_fields(month, Objective.RISK_PARITY, tier["risk_aversion"]),
            **mandate_fields(month, sized_limits(tier, month), month.benchmark),
        }
        problem = month_problem(month, task_input)
        assert not violations(problem, month.benchmark, 1e-9)
        best = optimise(problem)
        assert best.uniqueness.outcome.proved
        assert not has_dust(clean(best.weights))
