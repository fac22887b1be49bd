"""What a user's books become: up to one episode of monitoring, identification and remediation each, and three stresses.

They stand in front of the drawn episodes. Two episodes of one book may tell of each other;
an agent sees one at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from finskillbench.domains.building import BuildContext
from finskillbench.domains.draws import permuted
from finskillbench.domains.risk.catalogs import RiskSettings
from finskillbench.domains.risk.inputs import ScenarioInput
from finskillbench.domains.risk.objects.mandates import RiskDate
from finskillbench.domains.risk.objects.monitoring import MonitoringPair, against_mandates
from finskillbench.domains.risk.objects.portfolios import PortfolioCase
from finskillbench.domains.risk.objects.remediation import RemediationPair, first_remedied
from finskillbench.domains.risk.objects.scenarios import ScenarioSet
from finskillbench.domains.risk.objects.stress import StressPair, stress_results
from finskillbench.domains.risk.own.books import own_cases
from finskillbench.domains.risk.own.scenarios import SCENARIOS

SCENARIOS_PER_BOOK = 3
_TOLD = 5
"""Books that a note names."""


@dataclass(frozen=True, eq=False)
class OwnPools:
    """A user's books, and the pairs of them that become episodes."""

    books: tuple[PortfolioCase, ...] = ()
    monitored: tuple[MonitoringPair, ...] = ()
    stress: tuple[StressPair, ...] = ()
    remediation: tuple[RemediationPair, ...] = field(default=())

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """What the manifest records: each book with its date and its mandate; nothing where there are none."""
        told = {case.portfolio_id: {"as_of": case.as_of.isoformat(), "mandate": case.home} for case in self.books}
        return {"books": told} if told else {}


def own_pools(
    context: BuildContext, dates: Mapping[date, RiskDate], scenarios: ScenarioSet, settings: RiskSettings
) -> OwnPools:
    """The books at their dates, each under the mandate that it names, or else the one of which it breaks the least."""
    cases = own_cases(context, dates)
    if not cases:
        return OwnPools()
    against = against_mandates(cases, dates)
    books = tuple(replace(case, home=case.home or _nearest(against[case.portfolio_id])) for case in cases)
    monitored = tuple(replace(against[case.portfolio_id][case.home], case=case) for case in books)
    branching = len(books[0].market.tickers) <= settings["large_universe"]
    remedied: list[RemediationPair] = []
    for case, pair in zip(books, monitored, strict=True):
        others = [one for name, one in against[case.portfolio_id].items() if name != case.home]
        found = first_remedied([pair, *others], settings, branching=branching)
        remedied += [] if found is None else [found]
    context.notes.extend(left_out("risk_remediation", books, [one.case for one in remedied], _UNREMEDIED))
    return OwnPools(books, monitored, _stress(context, books, scenarios), tuple(remedied))


_UNREMEDIED = "no mandate that they break has a certified cure that a rule of thumb would miss"


def _nearest(against: Mapping[str, MonitoringPair]) -> str:
    """The mandate with the fewest broken limits, the first of these that are stated."""
    return min(against, key=lambda name: len(against[name].violations))


def _stress(context: BuildContext, books: Sequence[PortfolioCase], scenarios: ScenarioSet) -> tuple[StressPair, ...]:
    """Each book under a few scenarios of its date, the user's own before all others."""
    brought = context.catalog.of(SCENARIOS)
    first = () if brought is None else brought.places
    pairs: list[tuple[PortfolioCase, ScenarioInput]] = []
    for case in books:
        mixed = permuted(scenarios.at(case.as_of, case.market), context.generator("risk", "own", case.portfolio_id))
        pairs += [(case, one) for one in sorted(mixed, key=lambda one: one["scenario_id"] not in first)]
    pnl = stress_results([case for case, _ in pairs], [scenario for _, scenario in pairs])[0].tolist()
    every = [StressPair(case, scenario, made) for (case, scenario), made in zip(pairs, pnl, strict=True)]
    large = {case.portfolio_id: [one for one in every if one.case is case and one.large_enough] for case in books}
    return tuple(one for case in books for one in large[case.portfolio_id][:SCENARIOS_PER_BOOK])


def left_out(sub_task: str, books: Sequence[PortfolioCase], used: Sequence[PortfolioCase], why: str) -> list[str]:
    """The note on books of which there is no episode of a subtask; none where there are of all."""
    kept = {case.portfolio_id for case in used}
    names = [case.portfolio_id for case in books if case.portfolio_id not in kept]
    if not names:
        return []
    told = ", ".join(names[:_TOLD]) + (f" and {len(names) - _TOLD} more" if len(names) > _TOLD else "")
    return [f"{sub_task} leaves out {len(names)} of {len(books)} own books, since {why}: {told}."]
