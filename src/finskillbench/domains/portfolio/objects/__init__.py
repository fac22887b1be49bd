"""What the portfolio subtasks share, built once: the settings, the month-ends, and the constraint tiers at each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from finskillbench.domains.building import BuildContext
from finskillbench.domains.portfolio.objects.binding import Tier, sized_limits
from finskillbench.domains.portfolio.objects.month_end import MonthEnd
from finskillbench.domains.portfolio.objects.settings import Settings
from finskillbench.domains.portfolio.user_catalogs import settings_in

__all__ = ["MonthEnd", "PortfolioObjects", "Tier", "month_ends", "prepare"]


@dataclass(frozen=True, slots=True)
class PortfolioObjects:
    """What `build` of every portfolio subtask is handed."""

    settings: Settings
    month_ends: tuple[MonthEnd, ...]
    tiers: Mapping[tuple[str, date], Tier]

    def tier(self, name: str, month: MonthEnd) -> Tier:
        """A tier of the settings at a month-end."""
        return self.tiers[name, month.as_of]


def prepare(context: BuildContext) -> PortfolioObjects:
    """Read the settings, the twelve month-ends of the edition, and each tier at each of them."""
    stated = settings_in(context.catalog)
    settings: Settings = {**stated, "episodes_per_subtask": context.most(stated["episodes_per_subtask"])}
    months = month_ends(context, settings)
    tiers = {
        (name, month.as_of): Tier(name, sized_limits(tier, month))
        for name, tier in settings["tiers"].items()
        for month in months
    }
    return PortfolioObjects(settings, months, tiers)


def month_ends(context: BuildContext, settings: Settings) -> tuple[MonthEnd, ...]:
    """The month-ends of the panels."""
    panels, sessions = context.panels, settings["legacy_drift_sessions"]
    return tuple(MonthEnd.of(panels, as_of, sessions) for as_of in panels.month_ends)
