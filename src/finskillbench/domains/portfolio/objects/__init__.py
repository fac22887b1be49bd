"""Objects shared by the portfolio subtasks: settings, month-ends, and the constraint tiers at each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from finskillbench.domains.building import BuildContext
from finskillbench.domains.portfolio.objects.binding import SizedTier, sized_limits
from finskillbench.domains.portfolio.objects.month_end import MonthEnd
from finskillbench.domains.portfolio.objects.settings import Settings
from finskillbench.domains.portfolio.user_catalogs import settings_in

__all__ = ["MonthEnd", "PortfolioObjects", "SizedTier", "month_ends", "prepare_portfolio"]


@dataclass(frozen=True, slots=True)
class PortfolioObjects:
    """Prepared objects that every portfolio `build` receives."""

    settings: Settings
    month_ends: tuple[MonthEnd, ...]
    tiers: Mapping[tuple[str, date], SizedTier]

    def tier(self, name: str, month: MonthEnd) -> SizedTier:
        return self.tiers[name, month.as_of]


def prepare_portfolio(context: BuildContext) -> PortfolioObjects:
    """Read the settings, the month-ends of the edition, and each tier at each of them."""
    stated = settings_in(context.catalog)
    settings: Settings = {**stated, "episodes_per_subtask": context.most(stated["episodes_per_subtask"])}
    months = month_ends(context, settings)
    tiers = {
        (name, month.as_of): SizedTier(name, sized_limits(tier, month))
        for name, tier in settings["tiers"].items()
        for month in months
    }
    return PortfolioObjects(settings, months, tiers)


def month_ends(context: BuildContext, settings: Settings) -> tuple[MonthEnd, ...]:
    panels, sessions = context.panels, settings["legacy_drift_sessions"]
    return tuple(MonthEnd.of(panels, as_of, sessions) for as_of in panels.month_ends)
