"""Pairs that break a mandate, with certified trades that cure them or come nearest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuildContext, permuted
from finskillbench.domains.risk.catalogs import RiskSettings
from finskillbench.domains.risk.objects import plain_cures
from finskillbench.domains.risk.objects.monitoring import MonitoringPair
from finskillbench.domains.risk.objects.portfolios import PortfolioCase
from finskillbench.domains.risk.remediation.scoring import BREACH, ticket_shortfall
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.risk import remediation
from finskillbench.engines.risk.formulation import RemediationAim, RemediationGoal
from finskillbench.engines.risk.mandate import ConstraintKind, RiskMandate
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, MarketSnapshot, Portfolio, require_field, turnover_of
from finskillbench.engines.risk.report import significant_trades
from finskillbench.engines.risk.trading import TradingRules

GREY_BAND = 2e-3
"""Least distance between the turnover of a cure and the turnover left, four times `BREACH`."""
LEAST_TURNOVER = 0.02
"""Least turnover of a cure."""
LEAST_CASH = 0.005
"""Least cash after a cure."""
MOST_TRADES = 14
_SHORTENED = 4
"""Trades by which a large ticket may shorten a list."""
LEAST_SHORTFALL, LEAST_SHED = 0.05, 0.2
"""Least remaining and least removed shortfall of the best attainable portfolio."""
PLAIN = 0.25
"""Most that a cure without an optimiser may earn."""
_DEARER = 1.5
"""Least cost ratio of minimum turnover to minimum cost; ignoring costs then earns at most half."""
_CLEARLY_UNDERSIZED = 2 * BREACH
"""Least size of a violation of the ticket by the trades of a solver that ignores it."""
_COST_MARGIN, _BUDGET_SHORTFALL = 0.003, 0.0015
"""Least extra turnover of the cheapest cure, and its excess over a binding budget."""
_LEFT_BEYOND = 0.75
"""Share of a cure's turnover left in an infeasible case."""
_MOST_SCALED = 2.0
"""Largest factor on the month's trades."""
_OF_ONE_MANDATE = 0.2
"""Largest share of pairs per mandate; short trade lists are common under some mandates only."""
_TRIED = 3
"""Most certified pairs per pair wanted."""
_TRIED_OF_ONE = 8
"""Most mandates tried per portfolio."""
_MOST_PROGRAMS = 40
_BRANCHING = (ConstraintKind.POSITION_LIMIT_MIN, ConstraintKind.NAME_COUNT)
"""Limits per name, which require branching."""


@dataclass(frozen=True, eq=False)
class RemediationPair(MonitoringPair):
    """Pair with its certified remedy; `plain` is the best score without an optimiser."""

    rules: TradingRules
    remedy: remediation.Remedy
    plain: float

    @property
    def group(self) -> tuple[bool, bool]:
        """Return whether a cure exists, and whether the mandate limits turnover."""
        return self.remedy.compliant, _limits_turnover(self)

    @property
    def trades(self) -> int:
        return int((significant_trades(self.remedy) != 0).sum())

    @property
    def discriminates(self) -> bool:
        """Check that simple answers fail and that rounding decides neither the verdict nor a trade."""
        if not self.remedy.stages or self.plain > PLAIN or not 0 < self.trades <= MOST_TRADES:
            return False
        if self.remedy.compliant:
            return self.remedy.turnover >= LEAST_TURNOVER
        before = remediation.total_excess(self.case.portfolio, self.rules.target(self.mandate), self.case.market)
        return self.remedy.value >= LEAST_SHORTFALL and before - self.remedy.value >= LEAST_SHED


def trading_rules(market: MarketSnapshot, mandate: RiskMandate, settings: RiskSettings) -> TradingRules:
    """Return the trading rules of a date: costs grow as volume falls."""
    stated = settings["trading"]
    volume = np.log(np.maximum(require_field(market.dollar_volume, "average daily volumes"), 1.0))
    usual, spread = stated["cost_bps"]
    least, most = stated["cost_bps_ends"]
    thin = (float(np.median(volume)) - volume) / max(float(volume.std()), ZERO_WEIGHT)
    costs: Floats = np.clip(usual * np.exp(spread * thin), least, most)
    headroom = {limit.kind: stated["headroom"].get(limit.kind, 0.0) for limit in mandate.constraints}
    margins = {kind: margin for kind, margin in headroom.items() if margin > 0}
    return TradingRules(np.round(costs, 2) / 100, stated["minimum_trades"][0], margins)


_Group = tuple[bool, bool]
_Against = Mapping[str, Mapping[str, MonitoringPair]]


def remediation_pairs(
    context: BuildContext, cases: Sequence[PortfolioCase], against: _Against, settings: RiskSettings
) -> tuple[RemediationPair, ...]:
    """Return discriminating pairs that break their mandate, but not yet its turnover limit.

    Types and mandates alternate in random order; the settings fix the share of each group. Estimates filter candidates
    before certification. Undecided and non-unique pairs are skipped. A universe above `large_universe` gives fewer
    pairs, none with limits by name. Pairs follow the order of `cases`, then of `against`.
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

    # New ids, because the month's trades differ between mandates.
    numbered = enumerate(sorted(found, key=order), start=1)
    return tuple(replace(pair, case=replace(pair.case, portfolio_id=f"R{number:03d}")) for number, pair in numbered)


def _queues(
    context: BuildContext, cases: Sequence[PortfolioCase], against: _Against, band: float, *, branching: bool
) -> list[list[MonitoringPair]]:
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
    """Certify pairs from each queue in turn until all groups are full or `most` pairs were tried."""
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
    """Return the first decidable, discriminating pair of one portfolio."""
    fit = [pair for pair in pairs if _may_be_taken(pair, settings["grey_band"], branching=branching)][:_TRIED_OF_ONE]
    found = (_remedied(pair, trading_rules(pair.case.market, pair.mandate, settings)) for pair in fit)
    return next((pair for pair in found if pair is not None and pair.discriminates and _apart(pair)), None)


def _apart(pair: RemediationPair) -> bool:
    """Check that headroom and rounding do not decide the verdict."""
    left = remediation.budget_left(pair.case.portfolio, pair.mandate)
    if pair.remedy.compliant:
        return True
    least = _estimated(pair, pair.mandate, RemediationAim(RemediationGoal.TURNOVER))
    return least is not None and turnover_of(least) > left + GREY_BAND


def _may_be_taken(pair: MonitoringPair, band: float, *, branching: bool) -> bool:
    if not branching and any(pair.mandate.get(kind) for kind in _BRANCHING):
        return False
    return pair.margin >= band and bool(pair.violations) and ConstraintKind.TURNOVER_MAX_MONTHLY not in pair.violations


def _limits_turnover(pair: MonitoringPair) -> bool:
    return pair.mandate.get(ConstraintKind.TURNOVER_MAX_MONTHLY) is not None


def _estimated(pair: MonitoringPair, mandate: RiskMandate, aim: RemediationAim) -> Floats | None:
    """Return (n,) uncertified trades of one convex program, without ticket and limits by name."""
    smooth = replace(mandate, constraints=tuple(one for one in mandate.constraints if one.kind not in _BRANCHING))
    found = remediation.approximate_relaxed(pair.case.portfolio, smooth, pair.case.market, aim)
    return None if found is None else found - pair.case.portfolio.weights


def _screened(
    pair: MonitoringPair, open_to: Sequence[_Group], settings: RiskSettings
) -> tuple[MonitoringPair, TradingRules] | None:
    """Return the pair with its rules if estimates show that shortcuts fail, else None.

    Under a turnover limit the month's trades are scaled to make the case infeasible or the budget binding. The ticket
    is the smallest candidate that some trade violates; for a long list, the largest.
    """
    rules = trading_rules(pair.case.market, pair.mandate, settings)
    target, portfolio = rules.target(pair.mandate), pair.case.portfolio
    aim = RemediationAim(RemediationGoal.COST, rules.costs)
    best, lean = _estimated(pair, target, aim), None
    if best is None:
        return None
    if _limits_turnover(pair):
        lean = _estimated(pair, target, RemediationAim(RemediationGoal.TURNOVER))
        if lean is None:
            return None
        scaled = _bound_by_budget(pair, turnover_of(lean), turnover_of(best)) if (True, True) in open_to else None
        goal = RemediationGoal.EXCESS if scaled is None else RemediationGoal.COST
        if scaled is None and (False, True) in open_to:
            scaled = _beyond_mending(pair)
        if scaled is None:
            return None
        pair, portfolio = scaled, scaled.case.portfolio
        aim = RemediationAim(goal, rules.costs, remediation.budget_left(portfolio, pair.mandate))
        best = _estimated(pair, target, aim)
    if best is None or (length := int((np.abs(best) > BREACH / 5).sum())) > MOST_TRADES + _SHORTENED:
        return None
    active = aim.soft or turnover_of(best) >= LEAST_TURNOVER - BREACH
    if not active or portfolio.cash - best.sum() < LEAST_CASH - BREACH:
        return None
    tickets = settings["trading"]["minimum_trades"]
    large = [one for one in tickets if ticket_shortfall(portfolio.weights, best, one) >= _CLEARLY_UNDERSIZED]
    if not large:
        return None
    rules = replace(rules, ticket=large[0] if length <= MOST_TRADES else large[-1])
    return (pair, rules) if _needs_optimiser(pair, rules, aim, best, lean) else None


def _needs_optimiser(
    pair: MonitoringPair, rules: TradingRules, aim: RemediationAim, best: Floats, lean: Floats | None
) -> bool:
    """Check that neither simple trades nor optima of simpler problems come near the best ones; lean: least turnover."""
    target, portfolio, market = rules.target(pair.mandate), pair.case.portfolio, pair.case.market
    problem, value = (portfolio, pair.mandate, market, rules), rules.cost(best)
    if aim.soft:
        value += remediation.total_excess(remediation.portfolio_after(portfolio, best), target, market)
    compliant = not aim.soft
    if plain_cures.merit_without_optimiser(*problem, compliant=compliant, value=value, additional=[best]) > PLAIN:
        return False
    if compliant:
        even_costs = RemediationAim(RemediationGoal.COST, plain_cures.even_costs(len(best)), aim.turnover_cap)
        for other in (even_costs, RemediationAim(RemediationGoal.TURNOVER)):
            known = lean if other.goal is RemediationGoal.TURNOVER else None
            cheap = _estimated(pair, target, other) if known is None else known
            if cheap is None or rules.cost(cheap) < _DEARER * rules.cost(best):
                return False
    partial = [_estimated(pair, less, aim) for less in (pair.mandate, plain_cures.without_models(target))]
    trades = [one for one in partial if one is not None]
    return plain_cures.merit_of_trades(*problem, trades, compliant=compliant, value=value) <= PLAIN


def _beyond_mending(pair: MonitoringPair) -> MonitoringPair | None:
    """Scale the month's trades until no cure fits, with or without headroom, but the hard limits can be kept."""
    bare = _estimated(pair, pair.mandate, RemediationAim(RemediationGoal.TURNOVER))
    if bare is None:
        return None
    least, kept = turnover_of(bare), _kept_turnover(pair.case.portfolio, pair.mandate)
    left = remediation.budget_left(pair.case.portfolio, pair.mandate)
    if not kept + GREY_BAND < left < least - GREY_BAND:
        left = max(_LEFT_BEYOND * least, kept + 2 * GREY_BAND)
    return _with_left(pair, left) if left < least - GREY_BAND else None


def _bound_by_budget(pair: MonitoringPair, least: float, cheapest: float) -> MonitoringPair | None:
    return None if cheapest - least < _COST_MARGIN else _with_left(pair, cheapest - _BUDGET_SHORTFALL)


def _with_left(pair: MonitoringPair, left: float) -> MonitoringPair | None:
    """Scale the month's trades to a turnover left; None if too far, or if it implies earlier debt or shorts."""
    limit, portfolio = pair.mandate.limit(ConstraintKind.TURNOVER_MAX_MONTHLY), pair.case.portfolio
    if limit is None or portfolio.traded <= 0 or not 0 < (limit - left) / portfolio.traded <= _MOST_SCALED:
        return None
    trades = np.round((limit - left) / portfolio.traded * pair.case.trades, 6)
    before, cash = portfolio.weights - trades, portfolio.cash + trades.sum()
    if (before < np.minimum(portfolio.weights, 0.0)).any() or cash < min(portfolio.cash, 0.0):
        return None
    portfolio = replace(portfolio, traded=turnover_of(trades))
    return replace(pair, case=replace(pair.case, portfolio=portfolio, trades=trades))


def _remedied(pair: MonitoringPair, rules: TradingRules) -> RemediationPair | None:
    """Certify the remedy; None if undecided or not unique."""
    problem = pair.case.portfolio, pair.mandate, pair.case.market, rules
    try:
        remedy = remediation.remediate(*problem, most_programs=_MOST_PROGRAMS)
    except (InfeasibleError, UndecidedError):
        return None
    if not remedy.settled:
        return None
    plain = plain_cures.merit_without_optimiser(*problem, compliant=remedy.compliant, value=remedy.value)
    kept = (pair.case, pair.mandate, pair.tier, pair.violations, pair.margin, pair.beyond)
    return RemediationPair(*kept, rules=rules, remedy=remedy, plain=plain)


def _plausible(pair: RemediationPair | None) -> RemediationPair | None:
    """Drop uncounted trades of the month that the remedy reverses; None if it leaves too little cash."""
    if pair is None or pair.remedy.cash < LEAST_CASH:
        return None
    trades = np.where(pair.case.trades * significant_trades(pair.remedy) < 0, 0.0, pair.case.trades)
    if _limits_turnover(pair) or np.array_equal(trades, pair.case.trades):
        return pair
    if pair.case.portfolio.cash + trades.sum() < 0:
        trades = np.zeros_like(trades)
    portfolio = replace(pair.case.portfolio, traded=turnover_of(trades))
    return replace(pair, case=replace(pair.case, portfolio=portfolio, trades=trades))


def _kept_turnover(portfolio: Portfolio, mandate: RiskMandate) -> float:
    """Bound the turnover needed for long_only, position_limit_min and name_count from above."""
    weights, sizes = portfolio.weights, np.abs(portfolio.weights[np.abs(portfolio.weights) > ZERO_WEIGHT])
    total = 0.0 if mandate.get(ConstraintKind.LONG_ONLY) is None else float(-weights[weights < 0].sum())
    floor = max(mandate.limit(ConstraintKind.POSITION_LIMIT_MIN) or 0.0, HOLDING_THRESHOLD)
    total += float(np.minimum(sizes, np.maximum(floor - sizes, 0.0)).sum())
    count = mandate.get(ConstraintKind.NAME_COUNT)
    if count is not None and count.minimum is not None:
        total += max(0.0, count.minimum - len(sizes)) * floor
    if count is not None and count.maximum is not None:
        surplus = max(0, len(sizes) - int(count.maximum))
        total += float(np.sort(sizes)[:surplus].sum())
    return total
