"""Portfolios under stress scenarios, with what each makes or loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuildContext
from finskillbench.domains.risk.inputs import ScenarioInput
from finskillbench.domains.risk.objects.portfolios import PortfolioCase, batched
from finskillbench.domains.risk.objects.scenarios import ScenarioSet
from finskillbench.engines.risk.stress import apply_pairs, scenario_from

LEAST_PNL = 0.005
"""A P&L nearer to zero than half a percent of NAV makes no episode: relative errors mean nothing there."""


@dataclass(frozen=True, eq=False)
class StressPair:
    """A portfolio under a scenario, which is kept as the input JSON shows it; `pnl` is a fraction of NAV."""

    case: PortfolioCase
    scenario: ScenarioInput
    pnl: float

    @property
    def large_enough(self) -> bool:
        """Whether the P&L is clear of zero."""
        return abs(self.pnl) >= LEAST_PNL


def stress_pairs(
    context: BuildContext, cases: Sequence[PortfolioCase], scenarios: ScenarioSet, count: int
) -> tuple[StressPair, ...]:
    """Each portfolio with all scenarios that may be applied on its date, filled up with severe versions to `count`."""
    at = {case.as_of: case.market for case in cases}
    usual = {as_of: scenarios.at(as_of, market) for as_of, market in at.items()}
    severe = {as_of: scenarios.severe_at(market) for as_of, market in at.items()}
    pairs: list[tuple[PortfolioCase, ScenarioInput]] = []
    for case in cases:
        rng, own = context.generator("risk", "severe", case.portfolio_id), severe[case.as_of]
        extra: list[int] = rng.permutation(len(own))[: max(0, count - len(usual[case.as_of]))].tolist()
        pairs += [(case, scenario) for scenario in (*usual[case.as_of], *(own[i] for i in sorted(extra)))]
    pnl = stress_results([case for case, _ in pairs], [scenario for _, scenario in pairs])[0]
    return tuple(StressPair(case, scenario, made) for (case, scenario), made in zip(pairs, pnl.tolist(), strict=True))


def stress_results(cases: Sequence[PortfolioCase], scenarios: Sequence[ScenarioInput]) -> tuple[Floats, Floats, Floats]:
    """P&L (m,), its split by factor (m, 7) and by sector (m, sectors) of m pairs; see `apply_pairs`."""
    batch, rows = batched(cases)
    distinct: dict[int, ScenarioInput] = {}
    for scenario in scenarios:  # one of a name is another on another date
        distinct[id(scenario)] = scenario
    column = {identity: place for place, identity in enumerate(distinct)}
    columns = np.array([column[id(scenario)] for scenario in scenarios])
    return apply_pairs(batch, rows, [scenario_from(scenario) for scenario in distinct.values()], columns)
