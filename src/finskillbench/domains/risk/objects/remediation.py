"""Portfolios that break a mandate, with the certified trades that mend them or come nearest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from finskillbench.domains.building import BuildContext
from finskillbench.domains.draws import permuted
from finskillbench.domains.risk.catalogs import RiskSettings
from finskillbench.domains.risk.objects.monitoring import MonitoringPair
from finskillbench.domains.risk.objects.plain_cures import merit_without_optimiser, needs_a_model
from finskillbench.domains.risk.objects.portfolios import PortfolioCase
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.risk.formulation import Aim, Goal
from finskillbench.engines.risk.mandate import Kind, Mandate
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, Portfolio
from finskillbench.engines.risk.remediation import Remedy, budget_left, estimate, remediate, total_excess

GREY_BAND = 2e-3
"""Least distance between the certified least turnover and what is left: four times what is a breach."""
LEAST_TURNOVER = 0.02
"""A remedy of less is no test of trading."""
LEAST_EXCESS, LEAST_SHED = 0.05, 0.2
"""Total relative excess that the best attainable portfolio keeps, and that it sheds, at least."""
PLAIN = 0.25
"""Most that a cure without an optimiser may earn in an episode."""
_TRIED = 5
"""Pairs that are examined at most, for each one that is wanted."""
_TRIED_OF_ONE = 8
"""Mandates that one portfolio is remedied under, at most, until one serves."""
_BRANCHING = (Kind.POSITION_LIMIT_MIN, Kind.NAME_COUNT)
"""Limits that hold or do not hold for each name, so that an optimum takes branching on names."""


@dataclass(frozen=True, eq=False)
class RemediationPair(MonitoringPair):
    """A portfolio that breaks a mandate, and the certified trades that mend it or come nearest.

    `plain` is what the best cure without an optimiser earns.
    """

    remedy: Remedy
    plain: float

    @cached_property
    def modelled(self) -> bool | None:
        """Whether the cheapest cure of the limits on weights breaks one that takes a model; None if undecided."""
        try:
            return needs_a_model(self.case.portfolio, self.mandate, self.case.market)
        except (InfeasibleError, UndecidedError):
            return None

    @property
    def limited(self) -> bool:
        """Whether the mandate limits the turnover of the month."""
        return _limits_turnover(self)

    @property
    def group(self) -> tuple[bool, bool]:
        """Whether it can be mended, and whether the mandate limits the turnover of the month."""
        return self.remedy.compliant, self.limited

    @property
    def discriminates(self) -> bool:
        """Whether an answer without an optimiser fails, and neither the verdict nor a trade hangs on rounding."""
        if not self.remedy.stages or self.plain > PLAIN:
            return False
        portfolio, value = self.case.portfolio, self.remedy.value
        left, least = budget_left(portfolio, self.mandate), self.remedy.stages[0].certified.value
        if abs(left - least) < GREY_BAND:
            return False
        if self.remedy.compliant:
            return least >= LEAST_TURNOVER
        shed = total_excess(portfolio, self.mandate, self.case.market) - value
        return value >= LEAST_EXCESS and shed >= LEAST_SHED


_Group = tuple[bool, bool]
_Against = Mapping[str, Mapping[str, MonitoringPair]]


def remediation_pairs(
    context: BuildContext, cases: Sequence[PortfolioCase], against: _Against, settings: RiskSettings
) -> tuple[RemediationPair, ...]:
    """Pairs that break their mandate although the month's trades so far keep its turnover limit.

    They are taken in a random order in which types and mandates take turns, so many of them beyond mending within the
    month's turnover, so many mended under a limit on it, and the others without one. All discriminate; those mended
    take a model, and of those found on the way that take none some are kept beside them. What solver and rules of
    thumb rule out is dropped before anything is proved of it. A pair that cannot be decided, or whose ties cannot, is
    passed over.

    A universe of more than `large_universe` names gives fewer pairs, and none that need branching on names: each
    program has as many variables, and least squares spread over hundreds of names break every least position.

    Returns
    -------
    In the order of the cases, and for each in the order of its mandates in `against`.
    """
    if not cases:
        return ()
    large = len(cases[0].market.tickers) > settings["large_universe"]
    count = settings["large_remediation_pairs" if large else "remediation_pairs"]
    queues = _queues(context, cases, against, settings["grey_band"], branching=not large)
    beyond = round(count * settings["beyond_mending_share"])
    limited = round(count * settings["mended_within_limit_share"])
    wanted = {(False, True): beyond, (True, True): limited, (True, False): count - beyond - limited}
    found = _taken_in_turn(queues, wanted, settings["remediation_band"], most=_TRIED * count)[:count]
    mandates = {case.portfolio_id: list(against[case.portfolio_id]) for case in cases}
    place = {case.portfolio_id: index for index, case in enumerate(cases)}

    def order(pair: RemediationPair) -> tuple[int, int]:
        identity = pair.case.portfolio_id
        return place[identity], mandates[identity].index(pair.mandate.mandate_id)

    return tuple(sorted(found, key=order))


def _queues(
    context: BuildContext, cases: Sequence[PortfolioCase], against: _Against, band: float, *, branching: bool
) -> list[list[MonitoringPair]]:
    """The pairs that may be taken, a queue for each type and mandate, in random orders."""
    strata: dict[tuple[str, str], list[MonitoringPair]] = {}
    for case in cases:
        for name, pair in against[case.portfolio_id].items():
            if _may_be_taken(pair, band, branching=branching):
                strata.setdefault((case.type, name), []).append(pair)
    rng = context.generator("risk", "remediation")
    return permuted([permuted(strata[key], rng) for key in sorted(strata)], rng)


def _taken_in_turn(
    queues: Sequence[list[MonitoringPair]], wanted: Mapping[_Group, int], band: float, most: int
) -> list[RemediationPair]:
    """Pairs from each queue in turn until every group is full; after them those that serve without filling one.

    The search ends after `most` pairs in any case: what is wanted may not be there.
    """
    chosen: dict[_Group, list[RemediationPair]] = {group: [] for group in wanted}
    spare: list[RemediationPair] = []
    tried = 0
    while any(queues) and any(len(chosen[group]) < wanted[group] for group in wanted):
        for queue in filter(None, queues):
            if tried >= most:
                queue.clear()
                continue
            pair = queue.pop()
            limited = _limits_turnover(pair)
            open_to = [group for group in wanted if group[1] is limited and len(chosen[group]) < wanted[group]]
            if not open_to:
                continue
            least = _least_without_branching(pair)
            mendable = None if least is None else _mendable(pair, least, band)
            if least is None or (mendable, limited) not in open_to:
                continue
            tried += 1
            remedied = _remedied(pair, least if mendable else None)
            if remedied is None or not remedied.discriminates:
                continue
            if remedied.group in open_to and (remedied.modelled or not remedied.remedy.compliant):
                chosen[remedied.group].append(remedied)
            else:
                spare.append(remedied)
    return [pair for pairs in (*chosen.values(), spare) for pair in pairs]


def first_remedied(pairs: Sequence[MonitoringPair], band: float, *, branching: bool) -> RemediationPair | None:
    """The first of a few pairs of one portfolio that is broken, can be decided and tests more than arithmetic."""
    fit = [pair for pair in pairs if _may_be_taken(pair, band, branching=branching)]
    found = (_remedied(pair) for pair in fit[:_TRIED_OF_ONE])
    return next((pair for pair in found if pair is not None and pair.discriminates), None)


def _may_be_taken(pair: MonitoringPair, band: float, *, branching: bool) -> bool:
    """Whether a pair breaks its mandate, which hangs on no rounding, by other than the month's trades so far."""
    if not branching and any(pair.mandate.get(kind) for kind in _BRANCHING):
        return False
    return pair.margin >= band and bool(pair.violations) and Kind.TURNOVER_MAX_MONTHLY not in pair.violations


def _limits_turnover(pair: MonitoringPair) -> bool:
    return pair.mandate.get(Kind.TURNOVER_MAX_MONTHLY) is not None


def _remedied(pair: MonitoringPair, least: float | None = None) -> RemediationPair | None:
    """The pair with its remedy; None where that cannot be decided to the end.

    Nothing is proved where `least`, a bound on the least turnover of a pair that can be mended, shows that it does not
    discriminate.
    """
    asked = pair.case.portfolio, pair.mandate, pair.case.market
    if least is not None and (
        least < LEAST_TURNOVER or merit_without_optimiser(*asked, compliant=True, value=least) > PLAIN
    ):
        return None
    try:
        remedy = remediate(*asked)
    except (InfeasibleError, UndecidedError):
        return None
    if not remedy.settled:
        return None
    plain = merit_without_optimiser(*asked, compliant=remedy.compliant, value=remedy.value)
    kept = (pair.case, pair.mandate, pair.tier, pair.violations, pair.margin, pair.beyond)
    return RemediationPair(*kept, remedy=remedy, plain=plain)


def _least_without_branching(pair: MonitoringPair) -> float | None:
    """A bound on the least turnover, to the solver's accuracy and not proved; None where nothing keeps the mandate.

    The limits on small positions and on the number of names, which need branching, are left out: what they add to the
    turnover is small.
    """
    smooth = tuple(one for one in pair.mandate.constraints if one.kind not in _BRANCHING)
    return estimate(
        pair.case.portfolio, replace(pair.mandate, constraints=smooth), pair.case.market, Aim(Goal.TURNOVER)
    )


def _mendable(pair: MonitoringPair, least: float, band: float) -> bool | None:
    """Whether the least turnover fits in what is left of the month; None in a grey band, or where nothing fits.

    The truth decides in any case. Where the mandate is beyond mending, what is left must suffice for the limits that
    are kept even then.
    """
    portfolio, mandate = pair.case.portfolio, pair.mandate
    left = budget_left(portfolio, mandate)
    if abs(least - left) < band:
        return None
    if least > left and _kept_turnover(portfolio, mandate) > left - band:
        return None
    return least < left


def _kept_turnover(portfolio: Portfolio, mandate: Mandate) -> float:
    """Turnover that surely suffices for long_only, position_limit_min and name_count: each offence mended alone."""
    weights, sizes = portfolio.weights, np.abs(portfolio.weights[np.abs(portfolio.weights) > ZERO_WEIGHT])
    total = 0.0 if mandate.get(Kind.LONG_ONLY) is None else float(-weights[weights < 0].sum())
    floor = max(mandate.limit(Kind.POSITION_LIMIT_MIN) or 0.0, HOLDING_THRESHOLD)
    total += float(np.minimum(sizes, np.maximum(floor - sizes, 0.0)).sum())
    count = mandate.get(Kind.NAME_COUNT)
    if count is not None and count.minimum is not None:
        total += max(0.0, count.minimum - len(sizes)) * floor
    if count is not None and count.maximum is not None:
        surplus = max(0, len(sizes) - int(count.maximum))
        total += float(np.sort(sizes)[:surplus].sum())
    return total
