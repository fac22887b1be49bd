"""Labels that no analyst would sign, though their arithmetic is right, are no episodes."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from finskillbench.domains.fundamental.objects.pools import Candidate, Pool
from finskillbench.domains.fundamental.objects.reports import PeriodicReport
from finskillbench.domains.fundamental.objects.work import indices_meaningful, meaningful, oversized_figures
from finskillbench.engines.accounting.periods import Duration
from finskillbench.engines.accounting.quality import beneish
from finskillbench.engines.accounting.statements import Statement

END = date(2023, 6, 30)
REPORT = PeriodicReport("NYXSH", "0000000000-23-000001", "10-Q", END, date(2023, 8, 1), date(2021, 4, 1))


def statement(**changed: float) -> Statement:
    """A quarter whose indices against itself are all 1."""
    usual = {"revenue": 1000.0, "gross_profit": 300.0, "receivables": 200.0, "current_assets": 400.0, "ppe_net": 500.0}
    usual |= {"total_assets": 1500.0, "depreciation_amortization": 25.0, "sga": 100.0, "net_income": 60.0}
    usual |= {"operating_cash_flow": 80.0, "long_term_debt": 300.0, "current_liabilities": 200.0}
    return Statement("NYXSH", END, Duration.QUARTERLY, usual | changed)


def test_an_index_over_next_to_nothing_makes_an_m_score_of_nothing() -> None:
    """The gross margin falls from 30 % to 0.25 %: GMI is 120, and M, which is -2.4 at an unchanged margin, +60."""
    now, before = statement(gross_profit=2.5), statement()
    assert beneish(now, before).ratios["GMI"] == pytest.approx(120)
    assert not indices_meaningful(now, before)
    assert indices_meaningful(statement(), before)
    assert indices_meaningful(statement(gross_profit=31.0), before)  # 9.7 times: a margin of 3 % is one


def test_two_losses_before_expenses_are_no_index() -> None:
    now, before = statement(gross_profit=-40.0), statement(gross_profit=-30.0)
    assert beneish(now, before).ratios["GMI"] == pytest.approx(0.75)
    assert not indices_meaningful(now, before)


def test_an_index_hurts_only_a_score_that_is_known() -> None:
    now, before = statement(gross_profit=2.5), statement()
    unknown = {name: value for name, value in before.values.items() if name != "ppe_net"}
    assert indices_meaningful(now, Statement("NYXSH", END, Duration.QUARTERLY, unknown))


@pytest.mark.parametrize(("now", "before"), [(0.0, 1000.0), (1000.0, -5.0), (1000.0, 99.0), (99.0, 1000.0)])
def test_revenue_must_be_there_to_measure_by(now: float, before: float) -> None:
    assert not meaningful({}, statement(revenue=now), statement(revenue=before))
    assert meaningful({}, statement(), statement(revenue=101.0))


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ({"beneish_m_score": -64.7}, "beneish_m_score -64.7"),
        ({"income_quality_ratio": 2039.1}, "income_quality_ratio 2039.1"),
        ({"metrics": {"operating_margin": -3.98}}, "operating_margin -3.98"),
        ({"margin_drivers": [{"delta_pp": 12.0}, {"delta_pp": -145.5}]}, "delta_pp -145.5"),
        ({"top_revenue_drivers": [{"contribution_pct": 41775.3}]}, "contribution_pct 41775.3"),
    ],
)
def test_a_figure_beyond_its_limit_is_named(answer: dict[str, Any], named: str) -> None:
    (found,) = oversized_figures(answer)
    assert found.startswith(f"{named} is not meaningful beyond ")
    assert not meaningful(answer, statement())


def test_usual_figures_pass() -> None:
    answer = {
        "beneish_m_score": -2.4,
        "income_quality_ratio": None,
        "metrics": {"operating_margin": 0.3, "revenue": 1e9},
    }
    assert oversized_figures(answer) == []
    assert meaningful(answer, statement())


def test_the_pool_counts_what_means_nothing() -> None:
    pool = Pool()
    label = {"beneish_m_score": -2.4}
    pool.add(Candidate(REPORT, label, label, (), 0, True, meaningful=False))
    pool.add(Candidate(REPORT, label, label, (), 0, True))
    assert (pool.examined, pool.meaningless, len(pool.proved)) == (2, 1, 1)
    assert pool.figures(pool.proved)["meaningless"] == 1
