"""Portfolios that break a mandate, with the certified trades that mend them or come nearest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuildContext, permuted
from finskillbench.domains.risk.catalogs import RiskSettings
from finskillbench.domains.risk.objects.monitoring import MonitoringPair
from finskillbench.domains.risk.objects.plain_cures import (
    even_costs,
    merit_of_trades,
    merit_without_optimiser,
    without_models,
)
from finskillbench.domains.risk.objects.portfolios import PortfolioCase
from finskillbench.domains.risk.remediation.scoring import BREACH, undersized
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.risk.formulation import Aim, Goal
from finskillbench.engines.risk.mandate import Kind, Mandate
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, Market, Portfolio, required, turnover_of
from finskillbench.engines.risk.remediation import Remedy, after, budget_left, estimate, remediate, total_excess
from finskillbench.engines.risk.report import traded
from finskillbench.engines.risk.trading import Terms

GREY_BAND = 2e-3
"""Least distance between the turnover that a cure takes and what is left: four times what is a breach."""
LEAST_TURNOVER = 0.02
"""A remedy of less is no test of trading."""
LEAST_CASH = 0.005
"""Cash that a remedy leaves at least."""
MOST_TRADES = 14
"""Most trades of a cure: an order list is short."""
_SHORTENED = 4
"""Trades by which a large ticket may shorten a list."""
LEAST_SHORTFALL, LEAST_SHED = 0.05, 0.2
"""Shortfall that the best attainable portfolio keeps, and that it sheds, at least."""
PLAIN = 0.25
"""Most that a cure without an optimiser may earn in an episode."""
_DEARER = 1.5
"""Cost of the trades of least turnover over the least cost, at least: who ignores costs earns half at most."""
_CLEARLY_UNDERSIZED = 2 * BREACH
"""Distance of some trade without tickets from any that is allowed, at least."""
_ROOM_FOR_COST, _SHORT_OF = 0.003, 0.0015
"""Turnover that the cheapest cure takes beyond the least, at least, and beyond a budget between the two."""
_LEFT_BEYOND = 0.75
"""Share of the turnover of a cure that is left where it is made too little."""
_MOST_SCALED = 2.0
"""Most by which the month's trades are scaled up."""
_OF_ONE_MANDATE = 0.2
"""Share of the pairs that one mandate may give: short lists are common under some, rare under others."""
_TRIED = 3
"""Pairs that are proved at most, for each one that is wanted."""
_TRIED_OF_ONE = 8
"""Mandates that one portfolio is remedied under, at most, until one serves."""
_MOST_PROGRAMS = 40
"""Programs after which a drawn pair is given up."""
_BRANCHING = (Kind.POSITION_LIMIT_MIN, Kind.NAME_COUNT)
"""Limits that hold or do not hold for each name, so that an optimum takes branching on names."""


@dataclass(frozen=True, eq=False)
class RemediationPair(MonitoringPair):
    """A portfolio that breaks a mandate, and the certified trades that mend it or come nearest.

    `plain` is what the best cure without an optimiser earns.
    """

    terms: Terms
    remedy: Remedy
    plain: float

    @property
    def group(self) -> tuple[bool, bool]:
        """Whether it can be mended, and whether the mandate limits the turnover of the month."""
        return self.remedy.compliant, _limits_turnover(self)

    @property
    def trades(self) -> int:
        """Length of the list of trades."""
        return int((traded(self.remedy) != 0).sum())

    @property
    def discriminates(self) -> bool:
        """Whether an answer without an optimiser fails, and neither the verdict nor a trade hangs on rounding."""
        if not self.remedy.stages or self.plain > PLAIN or not 0 < self.trades <= MOST_TRADES:
            return False
        if self.remedy.compliant:
            return self.remedy.turnover >= LEAST_TURNOVER
        before = total_excess(self.case.portfolio, self.terms.target(self.mandate), self.case.market)
        return self.remedy.value >= LEAST_SHORTFALL and before - self.remedy.value >= LEAST_SHED


def trading_terms(market: Market, mandate: Mandate, settings: RiskSettings) -> Terms:
    """The terms of a date: costs grow as the volume of a name falls, beside the headroom of the mandate's limits."""
    stated = settings["trading"]
    volume = np.log(np.maximum(required(market.dollar_volume, "average daily volumes"), 1.0))
    usual, spread = stated["cost_bps"]
    least, most = stated["cost_bps_ends"]
    thin = (float(np.median(volume)) - volume) / max(float(volume.std()), ZERO_WEIGHT)
    costs: Floats = np.clip(usual * np.exp(spread * thin), least, most)
    headroom = {limit.kind: stated["headroom"].get(limit.kind, 0.0) for limit in mandate.constraints}
    rooms = {kind: room for kind, room in headroom.items() if room > 0}
    return Terms(np.round(costs, 2) / 100, stated["minimum_trades"][0], rooms)


_Group = tuple[bool, bool]
_Against = Mapping[str, Mapping[str, MonitoringPair]]


def remediation_pairs(
    context: BuildContext, cases: Sequence[PortfolioCase], against: _Against, settings: RiskSettings
) -> tuple[RemediationPair, ...]:
    """Pairs that break their mandate although the month's trades so far keep its turnover limit.

    They are taken in a random order in which types and mandates take turns, so many of them beyond mending within the
    month's turnover, so many mended under a limit on it that binds, and the others without one. All discriminate.
    What solver and rules of thumb rule out is dropped before anything is proved of it. A pair that cannot be decided,
    or of which the trades are not the only best ones, is passed over.

    A universe of more than `large_universe` names gives fewer pairs, and none with limits by name: each program has as
    many variables.

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
    found = _taken_in_turn(queues, wanted, settings, most=_TRIED * count)
    mandates = {case.portfolio_id: list(against[case.portfolio_id]) for case in cases}
    place = {case.portfolio_id: index for index, case in enumerate(cases)}

    def order(pair: RemediationPair) -> tuple[int, int]:
        identity = pair.case.portfolio_id
        return place[identity], mandates[identity].index(pair.mandate.mandate_id)

    # Numbers of their own: under some mandates less was traded this month than under others.
    numbered = enumerate(sorted(found, key=order), start=1)
    return tuple(replace(pair, case=replace(pair.case, portfolio_id=f"R{number:03d}")) for number, pair in numbered)


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
    queues: Sequence[list[MonitoringPair]], wanted: Mapping[_Group, int], settings: RiskSettings, most: int
) -> list[RemediationPair]:
    """Pairs from each queue in turn until every group is full, or `most` pairs have been proved; few of a mandate."""
    chosen: dict[_Group, list[RemediationPair]] = {group: [] for group in wanted}
    of_mandate: Counter[str] = Counter()
    tried, most_of_one = 0, round(_OF_ONE_MANDATE * sum(wanted.values()))
    while any(queues) and any(len(chosen[group]) < wanted[group] for group in wanted):
        for queue in filter(None, queues):
            if tried >= most or of_mandate[queue[-1].mandate.mandate_id] >= most_of_one:
                queue.clear()
                continue
            pair = queue.pop()
            limited = _limits_turnover(pair)
            open_to = [group for group in wanted if group[1] is limited and len(chosen[group]) < wanted[group]]
            screened = _screened(pair, open_to, settings) if open_to else None
            if screened is None:
                continue
            tried += 1
            remedied = _plausible(_remedied(*screened))
            if remedied is not None and remedied.discriminates and remedied.group in open_to:
                chosen[remedied.group].append(remedied)
                of_mandate[pair.mandate.mandate_id] += 1
    return [pair for pairs in chosen.values() for pair in pairs]


def first_remedied(
    pairs: Sequence[MonitoringPair], settings: RiskSettings, *, branching: bool
) -> RemediationPair | None:
    """The first of a few pairs of one portfolio that is broken, can be decided and tests more than arithmetic."""
    fit = [pair for pair in pairs if _may_be_taken(pair, settings["grey_band"], branching=branching)][:_TRIED_OF_ONE]
    found = (_remedied(pair, trading_terms(pair.case.market, pair.mandate, settings)) for pair in fit)
    return next((pair for pair in found if pair is not None and pair.discriminates and _apart(pair)), None)


def _apart(pair: RemediationPair) -> bool:
    """Whether the verdict is that of the mandate with and without headroom, and hangs on no rounding."""
    left = budget_left(pair.case.portfolio, pair.mandate)
    if pair.remedy.compliant:
        return True
    least = _estimated(pair, pair.mandate, Aim(Goal.TURNOVER))
    return least is not None and turnover_of(least) > left + GREY_BAND


def _may_be_taken(pair: MonitoringPair, band: float, *, branching: bool) -> bool:
    """Whether a pair breaks its mandate, which hangs on no rounding, by other than the month's trades so far."""
    if not branching and any(pair.mandate.get(kind) for kind in _BRANCHING):
        return False
    return pair.margin >= band and bool(pair.violations) and Kind.TURNOVER_MAX_MONTHLY not in pair.violations


def _limits_turnover(pair: MonitoringPair) -> bool:
    return pair.mandate.get(Kind.TURNOVER_MAX_MONTHLY) is not None


def _estimated(pair: MonitoringPair, mandate: Mandate, aim: Aim) -> Floats | None:
    """(n,) the trades of one convex program, not proved: of any size, and without limits by name."""
    smooth = tuple(one for one in mandate.constraints if one.kind not in _BRANCHING)
    found = estimate(pair.case.portfolio, replace(mandate, constraints=smooth), pair.case.market, aim)
    return None if found is None else found - pair.case.portfolio.weights


def _screened(
    pair: MonitoringPair, open_to: Sequence[_Group], settings: RiskSettings
) -> tuple[MonitoringPair, Terms] | None:
    """The pair and its terms where usual shortcuts fail, as estimates tell; None where one would do.

    Under a limit on turnover the month's trades are scaled until what is left is less than any cure takes, or lies
    between the least turnover and that of the cheapest cure. The ticket is the least of those stated that some trade
    of the best cure falls short of, or for a long list the largest.
    """
    terms = trading_terms(pair.case.market, pair.mandate, settings)
    target, portfolio = terms.target(pair.mandate), pair.case.portfolio
    best = _estimated(pair, target, Aim(Goal.COST, terms.costs))
    if best is None:
        return None
    compliant, cap, lean = True, None, None
    if _limits_turnover(pair):
        lean = _estimated(pair, target, Aim(Goal.TURNOVER))
        if lean is None:
            return None
        scaled = _bound_by_budget(pair, turnover_of(lean), turnover_of(best)) if (True, True) in open_to else None
        compliant = scaled is not None
        if scaled is None and (False, True) in open_to:
            scaled = _beyond_mending(pair)
        if scaled is None:
            return None
        pair, portfolio = scaled, scaled.case.portfolio
        cap = budget_left(portfolio, pair.mandate)
        best = _estimated(pair, target, Aim(Goal.COST if compliant else Goal.EXCESS, terms.costs, cap))
    if best is None or (length := int((np.abs(best) > BREACH / 5).sum())) > MOST_TRADES + _SHORTENED:
        return None
    if portfolio.cash - best.sum() < LEAST_CASH - BREACH or (compliant and turnover_of(best) < LEAST_TURNOVER - BREACH):
        return None
    tickets = settings["trading"]["minimum_trades"]
    large = [one for one in tickets if undersized(portfolio.weights, best, one) >= _CLEARLY_UNDERSIZED]
    if not large:
        return None
    terms = replace(terms, ticket=large[0] if length <= MOST_TRADES else large[-1])
    value = terms.cost(best) + (0.0 if compliant else total_excess(after(portfolio, best), target, pair.case.market))
    aim = Aim(Goal.COST if compliant else Goal.EXCESS, terms.costs, cap)
    asked = portfolio, pair.mandate, pair.case.market, terms
    if merit_without_optimiser(*asked, compliant=compliant, value=value, others=[best]) > PLAIN:
        return None
    if compliant:
        for other in (Aim(Goal.COST, even_costs(len(best)), cap), Aim(Goal.TURNOVER)):
            cheap = lean if lean is not None and other.goal is Goal.TURNOVER else _estimated(pair, target, other)
            if cheap is None or terms.cost(cheap) < _DEARER * terms.cost(best):
                return None
    partial = [_estimated(pair, less, aim) for less in (pair.mandate, without_models(target))]
    others = [trades for trades in partial if trades is not None]
    return (pair, terms) if merit_of_trades(*asked, others, compliant=compliant, value=value) <= PLAIN else None


def _beyond_mending(pair: MonitoringPair) -> MonitoringPair | None:
    """The pair with so much traded this month that what is left mends it neither with headroom nor without.

    What is left is enough for the limits that are kept even then.
    """
    bare = _estimated(pair, pair.mandate, Aim(Goal.TURNOVER))
    if bare is None:
        return None
    least, kept = turnover_of(bare), _kept_turnover(pair.case.portfolio, pair.mandate)
    left = budget_left(pair.case.portfolio, pair.mandate)
    if not kept + GREY_BAND < left < least - GREY_BAND:
        left = max(_LEFT_BEYOND * least, kept + 2 * GREY_BAND)
    return _with_left(pair, left) if left < least - GREY_BAND else None


def _bound_by_budget(pair: MonitoringPair, least: float, cheapest: float) -> MonitoringPair | None:
    """The pair with so much traded this month that what is left is too little for the cheapest cure."""
    return None if cheapest - least < _ROOM_FOR_COST else _with_left(pair, cheapest - _SHORT_OF)


def _with_left(pair: MonitoringPair, left: float) -> MonitoringPair | None:
    """The pair with the month's trades scaled until so much of its turnover is left.

    None where that is far, or where what is held now would have been bought with borrowed cash or sold short before.
    """
    limit, portfolio = pair.mandate.limit(Kind.TURNOVER_MAX_MONTHLY), pair.case.portfolio
    if limit is None or portfolio.traded <= 0 or not 0 < (limit - left) / portfolio.traded <= _MOST_SCALED:
        return None
    trades = np.round((limit - left) / portfolio.traded * pair.case.trades, 6)
    before, cash = portfolio.weights - trades, portfolio.cash + trades.sum()
    if (before < np.minimum(portfolio.weights, 0.0)).any() or cash < min(portfolio.cash, 0.0):
        return None
    portfolio = replace(portfolio, traded=turnover_of(trades))
    return replace(pair, case=replace(pair.case, portfolio=portfolio, trades=trades))


def _remedied(pair: MonitoringPair, terms: Terms) -> RemediationPair | None:
    """The pair with its remedy; None where that cannot be decided to the end, or is not the only best one."""
    asked = pair.case.portfolio, pair.mandate, pair.case.market, terms
    try:
        remedy = remediate(*asked, most_programs=_MOST_PROGRAMS)
    except (InfeasibleError, UndecidedError):
        return None
    if not remedy.settled:
        return None
    plain = merit_without_optimiser(*asked, compliant=remedy.compliant, value=remedy.value)
    kept = (pair.case, pair.mandate, pair.tier, pair.violations, pair.margin, pair.beyond)
    return RemediationPair(*kept, terms=terms, remedy=remedy, plain=plain)


def _plausible(pair: RemediationPair | None) -> RemediationPair | None:
    """The pair without trades of the month that its remedy reverses; None where the remedy spends the last of the cash.

    Trades that count under a limit on turnover stay. Where the others would have borrowed, the month has no trades.
    """
    if pair is None or pair.remedy.cash < LEAST_CASH:
        return None
    trades = np.where(pair.case.trades * traded(pair.remedy) < 0, 0.0, pair.case.trades)
    if _limits_turnover(pair) or np.array_equal(trades, pair.case.trades):
        return pair
    if pair.case.portfolio.cash + trades.sum() < 0:
        trades = np.zeros_like(trades)
    portfolio = replace(pair.case.portfolio, traded=turnover_of(trades))
    return replace(pair, case=replace(pair.case, portfolio=portfolio, trades=trades))


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
