"""Portfolios held against mandates: which statuses each shows, and the pairs that become episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuildContext
from finskillbench.domains.draws import drawn, permuted
from finskillbench.domains.risk.catalogs import EPISODES
from finskillbench.domains.risk.objects.mandates import TIERS
from finskillbench.domains.risk.objects.portfolios import PortfolioCase, batched
from finskillbench.domains.risk.objects.recipes import RiskDate
from finskillbench.engines.risk.mandate import COLUMN, COMPLIANCE_TOLERANCE, Kind, Mandate
from finskillbench.engines.risk.monitor import measure_pairs

GREY_BAND = 1e-5
"""A status that hangs on less than this, in the unit of its limit, is a test of rounding and no episode."""
FEW = 2
"""Broken limits of a portfolio that nearly complies, at most."""


@dataclass(frozen=True, eq=False)
class MonitoringPair:
    """A portfolio held against a mandate.

    `violations` are the kinds that fail; `margin` is how far the nearest status is from changing, in the unit of its
    limit (whole names are counted, not measured).
    """

    case: PortfolioCase
    mandate: Mandate
    tier: str
    violations: tuple[Kind, ...]
    margin: float

    @property
    def compliant(self) -> bool:
        """Whether every constraint passes."""
        return not self.violations


_FIRST: tuple[Callable[[MonitoringPair], bool], ...] = (
    lambda pair: pair.compliant,
    lambda pair: 0 < len(pair.violations) <= FEW,
    lambda pair: True,
)
_FIRST_UP_TO = (0.5, 0.8)
"""What comes first among the mandates of a tier, and up to which uniform random number."""


def measured(cases: Sequence[PortfolioCase], mandates: Sequence[Mandate]) -> tuple[Floats, Floats]:
    """Values and excess of m pairs of a case and a mandate, (m, kinds) each, as `measure_pairs` returns them."""
    batch, rows = batched(cases)
    return measure_pairs(batch, rows, mandates)


def against_mandates(
    cases: Sequence[PortfolioCase], dates: Mapping[date, RiskDate]
) -> dict[str, dict[str, MonitoringPair]]:
    """Every case, by id, with every mandate, by name, as fitted to its date."""
    pairs = [(case, name, one) for case in cases for name, one in dates[case.as_of].mandates.items()]
    excess = measured([case for case, _, _ in pairs], [one.mandate for _, _, one in pairs])[1]
    margins = np.nanmin(np.abs(np.delete(excess, COLUMN[Kind.NAME_COUNT], axis=1)), axis=1).tolist()
    failing = excess > COMPLIANCE_TOLERANCE
    found: dict[str, dict[str, MonitoringPair]] = {case.portfolio_id: {} for case in cases}
    for (case, name, one), fails, margin in zip(pairs, failing, margins, strict=True):
        kinds = tuple(limit.kind for limit in one.mandate.constraints if fails[COLUMN[limit.kind]])
        found[case.portfolio_id][name] = MonitoringPair(case, one.mandate, one.tier, kinds, margin)
    return found


def monitoring_pairs(
    context: BuildContext, case: PortfolioCase, against: Mapping[str, MonitoringPair], band: float
) -> list[MonitoringPair]:
    """The home mandate, then one mandate of each other tier, one that is kept coming first in many of the cases.

    In others one comes first of which no more than two limits are broken: else most kinds of limit, the largest weight
    among them, which needs no arithmetic, would each tell compliance.

    A mandate under which some status hangs on less than `band` is taken only where its tier has no other.
    """
    rng = context.generator("risk", "monitored", case.portfolio_id)
    chosen = [against[case.home]]
    for tier in TIERS:
        if tier == chosen[0].tier:
            continue
        mixed = permuted([one for one in against.values() if one.tier == tier], rng)
        first = _FIRST[int(np.searchsorted(_FIRST_UP_TO, rng.random()))]
        best = min(mixed, key=lambda one: (one.margin < band, not first(one)))
        chosen.append(best if best.margin >= band else max(mixed, key=lambda one: one.margin))
    return chosen


_EVENED = (
    Kind.POSITION_LIMIT_MAX,
    Kind.SECTOR_LIMIT_MAX,
    Kind.TRACKING_ERROR_MAX,
    Kind.BETA_RANGE,
    Kind.HHI_MAX,
)
"""The kinds that most mandates have: none of them alone is to tell whether a portfolio complies."""
_GROUPS = {"compliant": EPISODES // 2, "position": 5, "tracking error": 4, "others": EPISODES // 2 - 13, "many": 4}
"""Episodes of portfolios that keep their mandate; that break up to `FEW` of its limits, among them that on positions,
or that on tracking error, or neither (random portfolios break these two so often that they would tell); or more.
"""


def drawn_for_monitoring(context: BuildContext, pool: Iterable[MonitoringPair], sub_task: str) -> list[MonitoringPair]:
    """The pairs that become episodes, in their order; drawn by tier, type, regime and mandate.

    Half comply and half do not, most of these for one or two limits. A pair of which a verdict hangs on less than
    `GREY_BAND` is passed over.
    """
    pairs: list[MonitoringPair] = []
    groups: dict[str, list[MonitoringPair]] = {name: [] for name in _GROUPS}
    for pair in pool:
        groups[_group(pair)].append(pair)
    for group, count in _GROUPS.items():
        rng = context.generator(sub_task, "draw", group)
        pairs += drawn(groups[group], _traits, count, rng, lambda pair: None if pair.margin < GREY_BAND else pair)
    return permuted(pairs, context.generator(sub_task, "order"))


def _group(pair: MonitoringPair) -> str:
    if pair.compliant or len(pair.violations) > FEW:
        return "compliant" if pair.compliant else "many"
    if Kind.POSITION_LIMIT_MAX in pair.violations:
        return "position"
    return "tracking error" if Kind.TRACKING_ERROR_MAX in pair.violations else "others"


def _traits(pair: MonitoringPair) -> tuple[str, ...]:
    """What the draw evens out: the strata, and whether each of the usual kinds fails."""
    failing = [f"{kind} fails: {kind in pair.violations}" for kind in _EVENED]
    return pair.tier, pair.case.type, pair.case.regime, pair.mandate.mandate_id, *failing
