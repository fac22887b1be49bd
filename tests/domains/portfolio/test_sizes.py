"""What a tier asks of a universe of hundreds of names, whose covariance is in factors."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from finskillbench.domains.building import BuildContext
from finskillbench.domains.portfolio.objects.month_end import MonthEnd
from finskillbench.domains.portfolio.objects.settings import read_settings
from finskillbench.domains.portfolio.objects.tiers import (
    mandate_fields,
    market_fields,
    month_problem,
    sized_limits,
    tier_at,
)
from finskillbench.engines.portfolio.measures import check_limits
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.panels.filings.fundamentals import FundamentalPanels
from finskillbench.panels.filings_alone import of_filings_alone


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


@pytest.mark.parametrize(("names", "factors", "asked"), [(120, 252, 20), (300, 20, None)])
def test_a_least_number_of_holdings_is_asked_of_few_names_only(names: int, factors: int, asked: int | None) -> None:
    assert sized_limits(read_settings()["tiers"]["easy"], _month(names, factors)).get("min_names") == asked


def test_every_tier_fits_hundreds_of_names_and_says_what_is_dropped() -> None:
    month, settings = _month(300, 20), read_settings()
    context = BuildContext(of_filings_alone(FundamentalPanels.empty()), 1)
    for name in settings["tiers"]:
        tier = tier_at(context, settings, name, month)
        task_input = {
            **market_fields(month, Objective.RISK_PARITY, tier.risk_aversion),
            **mandate_fields(month, tier.constraints, month.benchmark),
        }
        problem = month_problem(month, task_input)
        assert "min_names" not in dict(check_limits(problem, tier.closest))
        best = optimise(replace(problem, limits=replace(problem.limits, max_turnover=None)))
        assert best.nodes == 1  # no branching, though no weight counts as a holding
        assert best.uniqueness.outcome.proved
    assert [note.count("the least number of holdings is dropped") for note in context.notes] == [1, 1, 1]
