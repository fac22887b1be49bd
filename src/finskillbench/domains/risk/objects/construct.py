"""Construction of the objects of the four risk subtasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
import polars as pl

from finskillbench.arrays import FACTORS, Floats
from finskillbench.domains.building import BuildContext, permuted
from finskillbench.domains.risk.catalogs import MandateCatalog, RiskSettings, ScenarioCatalog, scenario_catalog
from finskillbench.domains.risk.objects.mandates import RiskDate, describe_widenings, fit
from finskillbench.domains.risk.objects.monitoring import (
    MonitoringPair,
    against_mandates,
    drawn_for_monitoring,
    monitoring_pairs,
)
from finskillbench.domains.risk.objects.portfolios import PortfolioCase, draw_portfolio_case, planned_portfolios
from finskillbench.domains.risk.objects.remediation import RemediationPair, remediation_pairs
from finskillbench.domains.risk.objects.scenarios import ScenarioSet, build_scenarios, economic_violations, is_history
from finskillbench.domains.risk.objects.stress import StressPair, stress_pairs
from finskillbench.domains.risk.user_catalogs.books import UserPools, user_pools
from finskillbench.domains.risk.user_catalogs.mandates import mandates_in
from finskillbench.domains.risk.user_catalogs.scenarios import SCENARIOS, scenarios_in
from finskillbench.engines.risk.exposures import Exposure, ranked
from finskillbench.engines.risk.stress import scenario_from
from finskillbench.panels.market.estimates.factor_exposures import SESSIONS_PER_YEAR
from finskillbench.panels.market.regimes import USER_REGIME


@dataclass(frozen=True, eq=False)
class ListedPortfolio:
    """Portfolio with its ranked exposures."""

    case: PortfolioCase
    exposures: tuple[Exposure, ...]


@dataclass(frozen=True, eq=False)
class RiskObjects:
    """Pools from which the risk subtasks draw episodes.

    monitoring : each portfolio with one mandate per tier, its home mandate first.
    monitored : pairs drawn for constraint monitoring; no other subtask may reveal their verdicts.
    stress : each portfolio with twelve scenarios, including every replay that ended before its date.
    remediation : discriminating pairs of portfolios outside `monitored`; some are infeasible.
    user_pools : the user's books, which are in no other pool.
    """

    settings: RiskSettings
    portfolios: tuple[PortfolioCase, ...]
    mandates: MandateCatalog
    dates: Mapping[date, RiskDate]
    scenario_catalog: ScenarioCatalog
    scenarios: ScenarioSet
    identification: tuple[ListedPortfolio, ...]
    monitoring: tuple[MonitoringPair, ...]
    monitored: tuple[MonitoringPair, ...]
    stress: tuple[StressPair, ...]
    remediation: tuple[RemediationPair, ...]
    user_pools: UserPools

    @property
    def pool_sizes(self) -> dict[str, dict[str, int]]:
        """Return pool sizes by subtask, for the manifest."""
        listed = Counter(f"listing_{kind}" for one in self.identification for kind in {e.type for e in one.exposures})
        mended = sum(pair.remedy.compliant for pair in self.remediation)
        return {
            "constraint_monitoring": {
                "pairs": len(self.monitoring),
                "compliant": sum(pair.compliant for pair in self.monitoring),
            },
            "risk_identification": {"portfolios": len(self.identification), **dict(sorted(listed.items()))},
            "stress_testing": {
                "pairs": len(self.stress),
                "large_enough": sum(pair.large_enough for pair in self.stress),
            },
            "risk_remediation": {
                "pairs": len(self.remediation),
                "mended": mended,
                "beyond_mending": len(self.remediation) - mended,
            },
        }


def construct(context: BuildContext, settings: RiskSettings) -> RiskObjects:
    """Construct the risk objects of a build.

    Raises
    ------
    SourceError : the panels do not support a portfolio, mandate or scenario.
    """
    stated = scenarios_in(context.catalog)
    _warn_about_user_scenarios(context)
    scenarios = build_scenarios(context.panels, stated, context.notes)
    planned = planned_portfolios(context, settings)
    regimes = set(context.panels.regimes.values()) - {USER_REGIME}
    if len(regimes) < len(settings["regimes"]):
        context.notes.append(f"Risk portfolios cover only the regimes {', '.join(sorted(regimes))}.")
    mandates = mandates_in(context.catalog)
    dates = _dates(context, scenarios, mandates)
    cases = _named(context, [draw_portfolio_case(context, plan, dates, settings) for plan in planned])
    against, band = against_mandates(cases, dates), settings["grey_band"]
    pool = [pair for case in cases for pair in monitoring_pairs(context, case, against[case.portfolio_id], band)]
    monitored = drawn_for_monitoring(context, pool, "constraint_monitoring")
    monitored_ids = {pair.case.portfolio_id for pair in monitored}
    unmonitored = [case for case in cases if case.portfolio_id not in monitored_ids]
    return RiskObjects(
        settings=settings,
        portfolios=cases,
        mandates=mandates,
        dates=dates,
        scenario_catalog=stated,
        scenarios=scenarios,
        identification=tuple(ListedPortfolio(case, ranked(case.portfolio, case.market)) for case in cases),
        monitoring=tuple(pool),
        monitored=tuple(monitored),
        stress=stress_pairs(context, cases, scenarios, settings["scenarios_per_portfolio"]),
        remediation=remediation_pairs(context, unmonitored, against, settings),
        user_pools=user_pools(context, dates, scenarios, settings),
    )


def _warn_about_user_scenarios(context: BuildContext) -> None:
    """Add notes on user scenarios that the market or economic rules contradict."""
    user_scenarios = context.catalog.of(SCENARIOS)
    if user_scenarios is None:
        return
    if user_scenarios.replays and not is_history(context.panels, scenario_catalog()):
        context.notes.append("User replays are left out: the market is fictional, so its own drawdowns are replayed.")
    for one in user_scenarios.hypothetical:
        context.notes.extend(f"User scenario {one['scenario_id']}: {broken}." for broken in economic_violations(one))


def _dates(context: BuildContext, scenarios: ScenarioSet, catalog: MandateCatalog) -> dict[date, RiskDate]:
    """Return market and fitted mandates by date, and add notes on widened limits."""
    dates: dict[date, RiskDate] = {}
    for as_of in context.panels.risk_dates:
        market = context.panels.snapshot(as_of)
        market = replace(market, factor_volatility=_factor_volatility(context, as_of))
        fitted = {one["mandate_id"]: fit(one, as_of, market, catalog) for one in catalog["mandates"]}
        hypothetical = tuple(scenario_from(one) for one in scenarios.hypothetical_at(market))
        dates[as_of] = RiskDate(market, fitted, hypothetical)
    context.notes.extend(describe_widenings([(day, one) for day, at in dates.items() for one in at.mandates.values()]))
    return dates


def _factor_volatility(context: BuildContext, as_of: date) -> Floats:
    """Return (6,) annualised factor volatilities over the sessions of the date's betas."""
    sessions = context.panels.window_dates(as_of)
    window = context.panels.factors.filter(pl.col("date").is_between(sessions[0], as_of)).select(*FACTORS).drop_nulls()
    return np.std(window.to_numpy(), axis=0, ddof=1) * np.sqrt(SESSIONS_PER_YEAR)


def _named(context: BuildContext, cases: list[PortfolioCase]) -> tuple[PortfolioCase, ...]:
    """Shuffle and number the portfolios, so that ids do not reveal types."""
    width = max(3, len(str(len(cases))))
    mixed = permuted(cases, context.generator("risk", "order"))
    return tuple(replace(case, portfolio_id=f"P{number:0{width}d}") for number, case in enumerate(mixed, start=1))
