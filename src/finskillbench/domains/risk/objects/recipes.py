"""Recipes for portfolios with planted risks, one per type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from finskillbench.arrays import FACTORS, Floats, Integers
from finskillbench.domains.building import permuted
from finskillbench.domains.risk.catalogs import Range, RiskSettings
from finskillbench.domains.risk.objects.mandates import RiskDate
from finskillbench.domains.risk.objects.placement import AtLeast, place
from finskillbench.engines.risk.exposures import NEUTRAL_BETA, illiquid_shares
from finskillbench.engines.risk.mandate import Constraint, ConstraintKind, RiskMandate
from finskillbench.engines.risk.portfolio import Portfolio, turnover_of

CONCENTRATED = "concentrated"
FACTOR_TILTED = "factor_tilted"
LIQUIDITY_STRESSED = "liquidity_stressed"
MANDATE_VIOLATING = "mandate_violating"
STRESS_VULNERABLE = "stress_vulnerable"
TYPES = (CONCENTRATED, FACTOR_TILTED, LIQUIDITY_STRESSED, MANDATE_VIOLATING, STRESS_VULNERABLE)

LEAST = {"sector": 0.30, "name": 0.08, "tilt": 0.35, "illiquid": 0.10, "days": 10.0, "failing": 3, "worse": 0.015}
"""Least size of each planted risk: fractions of NAV, a beta, days, constraints, excess loss."""
_LOOSE = 0.4
"""Increase in omitted limits, and decrease in limits driven to the bound, by the last attempt."""
_EXACT = 1e-6
"""Tolerance for a weight or exposure driven to a limit."""
_OF_HOLDING, _OF_CASH = 0.95, 0.9
"""Largest parts of a holding bought, and of cash received, within the month."""
NEUTRAL = NEUTRAL_BETA * (np.arange(len(FACTORS)) == 0)
"""(6,) factor exposures from which a tilt is measured."""
_DECIMALS = 6
SMALLEST = 0.0015
"""Smallest position, above the 10 basis points of a holding."""


@dataclass(frozen=True)
class PlannedPortfolio:
    """Type, regime, date and number of a portfolio to draw."""

    type: str
    regime: str
    as_of: date
    number: int
    tier: str
    """Tier of the home mandate that is tried first."""


@dataclass(frozen=True)
class DrawAttempt:
    """Inputs of one attempt; `late` runs from 0 to 1, and `disciplined` attempts keep every limit."""

    rng: np.random.Generator
    plan: PlannedPortfolio
    at: RiskDate
    home: RiskMandate
    settings: RiskSettings
    late: float
    disciplined: bool

    @property
    def size(self) -> int:
        return len(self.at.market.tickers)


_FAVOURED, _WIDE = 4.0, 250
"""Score of names favoured by a concentrated portfolio, and universe size above which it grows logarithmically."""

Drawn = tuple[Portfolio, Floats] | None
"""Portfolio and (n,) trades of the month; None if none fits."""


def _concentrated(attempt: DrawAttempt) -> Drawn:
    rng, market, planted = attempt.rng, attempt.at.market, attempt.settings["planted"]["concentrated"]
    # A sector with one name would concentrate 40 % in it.
    sizes = market.membership.sum(axis=0)
    crowded = int(rng.choice(np.flatnonzero(sizes >= min(2, sizes.max()))))
    members = np.flatnonzero(market.membership[:, crowded])
    chosen = rng.permutation(members)[:6]
    sector, name = np.zeros(len(market.tickers)), np.zeros(len(market.tickers))
    sector[members] = 1.0
    name[chosen[0]] = 1.0
    demands = [
        AtLeast(row, low + (high - low) * rng.random())
        for row, (low, high) in ((sector, planted["sector"]), (name, planted["name"]))
    ]
    favoured = _FAVOURED + np.log(max(len(name) / _WIDE, 1.0))
    scores = np.where(np.isin(np.arange(len(name)), chosen), favoured, 0.0)
    return _filled(attempt, scores=scores, demands=demands)


def _factor_tilted(attempt: DrawAttempt) -> Drawn:
    rng, betas = attempt.rng, attempt.at.market.betas
    tilt = rng.uniform(*attempt.settings["planted"]["factor_tilted"]["tilt"])
    # Choose among twelve directions within reach of the largest betas, else the nearest.
    slopes = np.hstack([betas, -betas])
    floors = tilt + np.concatenate([NEUTRAL, -NEUTRAL])
    reach = np.sort(slopes, axis=0)[::-1][: attempt.settings["holdings"][0]].mean(axis=0) - floors
    within = np.flatnonzero(reach >= 0)
    way = int(rng.choice(within)) if len(within) else int(np.argmax(reach))
    demand = AtLeast(slopes[:, way], float(floors[way]))
    return _filled(attempt, scores=2 * _standard(slopes[:, way]), demands=[demand])


def _liquidity_stressed(attempt: DrawAttempt) -> Drawn:
    volume, settings = np.asarray(attempt.at.market.dollar_volume), attempt.settings
    scores = -_standard(np.log(np.maximum(volume, 1.0)))
    drawn = _filled(attempt, scores=scores)
    if drawn is None:
        return None
    portfolio, trades = drawn
    wanted = attempt.rng.uniform(*settings["planted"]["liquidity_stressed"]["illiquid_share"])
    low, high = settings["nav_usd"][0], settings["largest_nav_usd"]
    for _ in range(40):  # illiquid share grows with NAV: bisect its logarithm
        middle = float(np.sqrt(low * high))
        short = illiquid_shares(portfolio.weights[None], np.array([middle]), volume)[0] < wanted
        low, high = (middle, high) if short else (low, middle)
    return Portfolio(portfolio.weights, portfolio.cash, float(round(high, -5)), portfolio.traded), trades


def _stress_vulnerable(attempt: DrawAttempt) -> Drawn:
    rng, market = attempt.rng, attempt.at.market
    of_name = attempt.at.of_names
    losses = np.asarray(market.benchmark) @ of_name
    # Draw among the worst scenarios of the benchmark, so that the choice can be the portfolio's worst.
    chosen = int(rng.choice(np.argsort(losses)[:4]))
    worse = rng.uniform(*attempt.settings["planted"]["stress_vulnerable"]["worse_than_benchmark"])
    demand = AtLeast(-of_name[:, chosen], float(worse - losses[chosen]))
    return _filled(attempt, scores=-2 * _standard(of_name[:, chosen]), demands=[demand])


def _mandate_violating(attempt: DrawAttempt) -> Drawn:
    """Draw uneven weights with some shorts, and more turnover than most mandates allow."""
    rng, settings, n = attempt.rng, attempt.settings, attempt.size
    planted = settings["planted"]["mandate_violating"]
    low, high = settings["holdings"]
    support = rng.permutation(n)[: min(int(rng.integers(low, high + 1)), n)]
    cash = float(rng.uniform(*settings["cash"]))
    weights = np.zeros(n)
    shorts = support[:0]
    if rng.random() < planted["short_share"]:
        shorts = support[: int(rng.integers(planted["shorts"][0], planted["shorts"][1] + 1))]
        low, high = planted["short_weight"]
        weights[shorts] = -rng.uniform(low, high, len(shorts))
    longs = support[len(shorts) :]
    parts = np.maximum(rng.dirichlet(np.full(len(longs), 0.8)), SMALLEST)
    total = 1 - cash - weights.sum()
    weights[longs] = parts / parts.sum() * total
    return _portfolio(attempt, weights, settings["turnover_violating"])


_RECIPES: Mapping[str, Callable[[DrawAttempt], Drawn]] = {
    CONCENTRATED: _concentrated,
    FACTOR_TILTED: _factor_tilted,
    LIQUIDITY_STRESSED: _liquidity_stressed,
    MANDATE_VIOLATING: _mandate_violating,
    STRESS_VULNERABLE: _stress_vulnerable,
}


def draw_portfolio(attempt: DrawAttempt) -> Drawn:
    """Draw one candidate; the engines confirm planted risk and home mandate."""
    return _RECIPES[attempt.plan.type](attempt)


def _filled(attempt: DrawAttempt, *, scores: Floats, demands: Sequence[AtLeast] = ()) -> Drawn:
    """Place a portfolio that meets the demands, near random weights and limits; high scores (n,) favour names."""
    rng, market, settings, n = attempt.rng, attempt.at.market, attempt.settings, attempt.size
    limits, pressed = _random_limits(attempt)
    error = limits.limit(ConstraintKind.TRACKING_ERROR_MAX)
    if error is not None:
        # Tracking a benchmark requires its largest names.
        scores = 0.5 * scores + _standard(np.asarray(market.benchmark))
    size = _size(attempt, limits)
    chances = np.exp(scores - scores.max())
    # Largest random keys: weighted draw without replacement (Efraimidis & Spirakis 2006).
    support = np.sort(np.argsort(-np.log(rng.random(n)) / np.maximum(chances, 1e-6))[:size])
    cash = _drawn_within(rng, limits.limit(ConstraintKind.CASH_MAX), settings["cash"], error)
    short = _shorts(attempt, limits, support, cash)
    target = np.zeros(n)
    mix = rng.dirichlet(np.full(size, 1.5)) * np.exp(0.5 * np.clip(scores[support], -2, 2))
    target[support] = mix / mix.sum() * (1 - cash - short.sum())
    least = limits.limit(ConstraintKind.POSITION_LIMIT_MIN)
    ceilings = np.full(n, min(settings["largest_weight"], limits.limit(ConstraintKind.POSITION_LIMIT_MAX) or 1.0))
    if least is not None:
        ceilings[rng.choice(support)] = least + _EXACT
    weights = place(
        market,
        support,
        mandate=_continuous(limits),
        target=target,
        cash=cash + float(short.sum()),
        least=settings["least_weight"] if least is None else least,
        ceilings=ceilings,
        demands=[*demands, *_pressed(attempt, limits, pressed, support, ceilings)],
    )
    if weights is None:
        return None
    turnover = _drawn_within(rng, limits.limit(ConstraintKind.TURNOVER_MAX_MONTHLY), settings["turnover"], None)
    return _portfolio(attempt, weights + short, (turnover, turnover))


def _random_limits(attempt: DrawAttempt) -> tuple[RiskMandate, frozenset[ConstraintKind]]:
    """Return the home mandate with random limits, some omitted, and the kinds driven to their limits."""
    rng, settings, late = attempt.rng, attempt.settings["about_limits"], attempt.late
    kept: list[Constraint] = []
    pressed: set[ConstraintKind] = set()
    for limit in attempt.home.constraints:
        spread = settings["near"] if rng.random() < settings["near_share"] else settings["wide"]
        multiple = float(np.exp(spread * rng.standard_normal() + settings["above"].get(limit.kind, 0.0)))
        if attempt.disciplined:
            multiple = max(multiple, 1 / multiple) if limit.kind in _LEAST_OF else min(multiple, 1 / multiple)
        left_out, press = rng.random(2)
        crowded = _LOOSE * (limit.kind in _CROWDED_OUT.get(attempt.plan.type, ()))
        loose = settings["left_out"] + crowded + _LOOSE * late
        if limit.kind in _MAY_BE_LEFT_OUT and left_out < loose and not attempt.disciplined:
            continue
        if press < settings["pressed"] - _LOOSE * late:
            pressed.add(limit.kind)
        kept.append(_times(limit, multiple))
    limits = replace(attempt.home, constraints=tuple(kept))
    if limits.get(ConstraintKind.TRACKING_ERROR_MAX) is not None:
        # A tracking error allows only one or two bets.
        pressed = set(permuted(sorted(pressed), rng)[: int(rng.integers(1, 3))])
    return limits, frozenset(pressed)


_LEAST_OF = frozenset({ConstraintKind.POSITION_LIMIT_MIN})
"""Lower limits."""
_MAY_BE_LEFT_OUT = frozenset(
    {
        ConstraintKind.POSITION_LIMIT_MAX,
        ConstraintKind.SECTOR_LIMIT_MAX,
        ConstraintKind.TRACKING_ERROR_MAX,
        ConstraintKind.BETA_RANGE,
        ConstraintKind.FACTOR_EXPOSURE_MAX,
        ConstraintKind.HHI_MAX,
    }
)
"""Limits that an attempt may omit; holdings, shorts and trades determine the others."""
_CROWDED_OUT: Mapping[str, tuple[ConstraintKind, ...]] = {
    CONCENTRATED: (
        ConstraintKind.POSITION_LIMIT_MAX,
        ConstraintKind.SECTOR_LIMIT_MAX,
        ConstraintKind.TRACKING_ERROR_MAX,
        ConstraintKind.HHI_MAX,
    ),
    FACTOR_TILTED: (ConstraintKind.TRACKING_ERROR_MAX, ConstraintKind.FACTOR_EXPOSURE_MAX),
    STRESS_VULNERABLE: (ConstraintKind.TRACKING_ERROR_MAX,),
}
"""Limits that conflict with the planted risk."""


def _times(limit: Constraint, multiple: float) -> Constraint:
    if limit.kind is ConstraintKind.BETA_RANGE:
        low, high = limit.minimum or 0.0, limit.maximum or 0.0
        reach = 1 + (multiple - 1) / 3  # larger changes of a beta make another kind of portfolio
        return replace(limit, minimum=low / reach, maximum=high * reach)
    if limit.kind is ConstraintKind.GROSS_EXPOSURE_MAX:
        multiple = 1 + (multiple - 1) / 8  # shorts are a few per cent of NAV
    return limit if limit.value is None else replace(limit, value=limit.value * multiple)


def _continuous(mandate: RiskMandate) -> RiskMandate:
    """Return the limits of the program; names, cash and trades determine the others."""
    drawn = (
        ConstraintKind.CASH_MAX,
        ConstraintKind.TURNOVER_MAX_MONTHLY,
        ConstraintKind.LONG_ONLY,
        ConstraintKind.GROSS_EXPOSURE_MAX,
        ConstraintKind.NAME_COUNT,
    )
    return replace(mandate, constraints=tuple(one for one in mandate.constraints if one.kind not in drawn))


def _pressed(
    attempt: DrawAttempt, limits: RiskMandate, pressed: frozenset[ConstraintKind], support: Integers, ceilings: Floats
) -> list[AtLeast]:
    """Return constraints that drive a name, sector, beta or factor to its limit."""
    rng, market = attempt.rng, attempt.at.market
    benchmark = np.asarray(market.benchmark)
    demands: list[AtLeast] = []
    for limit in limits.constraints:
        if limit.kind not in pressed:
            continue
        if limit.kind is ConstraintKind.POSITION_LIMIT_MAX and limit.value is not None:
            place_ = support[int(np.argmax(benchmark[support] * rng.random(len(support))))]
            name = np.zeros(attempt.size)
            name[place_] = 1.0
            demands.append(AtLeast(name, float(ceilings[place_]) - _EXACT))
            remaining = support[support != place_]
            ceilings[remaining] = np.minimum(
                ceilings[remaining], ceilings[place_] * rng.uniform(0.8, 1.0, len(remaining))
            )
        elif limit.kind is ConstraintKind.SECTOR_LIMIT_MAX and limit.value is not None:
            column = market.membership[:, int(np.argmax(market.membership[support].T @ benchmark[support]))]
            demands.append(AtLeast(column, min(limit.value, 0.6) - _EXACT))
        elif limit.kind is ConstraintKind.BETA_RANGE:
            slopes, way = market.betas[:, 0], rng.choice([-1.0, 1.0])
            end = limit.minimum if way < 0 else limit.maximum
            demands.append(AtLeast(way * slopes, way * (end or 0.0) - _EXACT))
        elif limit.kind is ConstraintKind.FACTOR_EXPOSURE_MAX and limit.value is not None:
            slopes = market.betas[:, FACTORS.index(str(rng.choice(list(limit.factors))))]
            way = 1.0 if float(benchmark @ slopes) > 0 else -1.0
            demands.append(AtLeast(way * slopes, limit.value - _EXACT))
    return demands


def _shorts(attempt: DrawAttempt, limits: RiskMandate, support: Integers, cash: float) -> Floats:
    """Return (n,) plausible short positions outside `support`."""
    rng, settings = attempt.rng, attempt.settings["planted"]["mandate_violating"]
    short, outside = np.zeros(attempt.size), np.setdiff1d(np.arange(attempt.size), support)
    gross = limits.limit(ConstraintKind.GROSS_EXPOSURE_MAX)
    banned = limits.get(ConstraintKind.LONG_ONLY) is not None
    if not len(outside) or (banned and (attempt.disciplined or rng.random() > settings["short_share"])):
        return short
    low, high = settings["short_weight"]
    names = rng.permutation(outside)[: int(rng.integers(settings["shorts"][0], settings["shorts"][1] + 1))]
    if banned:
        # An accidental short, a fraction of a usual position.
        short[names[:1]] = -rng.uniform(SMALLEST, low)
    elif gross is not None and gross > 1 - cash + 2 * SMALLEST:
        short[names] = -rng.dirichlet(np.full(len(names), 3.0)) * min((gross - 1 + cash) / 2, high * len(names))
    return short


def _drawn_within(rng: np.random.Generator, limit: float | None, usual: Range, error: float | None) -> float:
    """Return the limit, else a usual number; the tracking error bounds both."""
    most = 1.0 if error is None else 2 * error
    return min(limit, most) if limit is not None else float(rng.uniform(usual[0], min(usual[1], most)))


def _size(attempt: DrawAttempt, limits: RiskMandate) -> int:
    """Draw the number of names for the name count and the tracking error."""
    rng, names, error = attempt.rng, attempt.size, limits.limit(ConstraintKind.TRACKING_ERROR_MAX)
    low, high = attempt.settings["holdings"]
    count = limits.get(ConstraintKind.NAME_COUNT)
    if error is not None:
        share = next(share for most, share in attempt.settings["tracking"] if error <= most)
        low = max(low, min(round(share * names), attempt.settings["most_holdings"]))
        high = max(low, high, min(round((share + 0.2) * names), attempt.settings["most_holdings"]))
    if count is not None and count.minimum is not None:
        low = high = max(2, int(count.minimum) + int(rng.integers(0 if attempt.disciplined else -4, 3)))
    return min(int(rng.integers(low, high + 1)), names)


_SMALLER = 0.8
"""Factor that shrinks the NAV until enough can be sold."""


def _portfolio(attempt: DrawAttempt, weights: Floats, turnover: Sequence[float]) -> tuple[Portfolio, Floats]:
    """Round weights to six decimals, and draw NAV and trades."""
    rounded = np.round(weights, _DECIMALS)
    rng, (low, high) = attempt.rng, attempt.settings["nav_usd"]
    nav = float(round(low * (high / low) ** rng.random(), -5))
    volume, most = np.asarray(attempt.at.market.dollar_volume), attempt.settings["largest_illiquid_share"]
    while nav > low and illiquid_shares(rounded[None], np.array([nav]), volume)[0] > most:
        nav = float(round(_SMALLER * nav, -5))
    cash = round(1 - float(rounded.sum()), _DECIMALS)
    trades = _trades(rng, rounded, cash, float(rng.uniform(turnover[0], turnover[1])))
    return Portfolio(rounded, cash, nav, turnover_of(trades)), trades


def _trades(rng: np.random.Generator, weights: Floats, cash: float, turnover: float) -> Floats:
    """Return (n,) trades of a few long holdings with about the turnover, without earlier shorts or debt."""
    trades = np.zeros(len(weights))
    longs = rng.permutation(np.flatnonzero(weights > 0))
    # One-way turnover is the larger of purchases and sales.
    least = max(0.0, turnover - _OF_CASH * cash)
    sold_more = rng.random() < 0.5
    bought = float(rng.uniform(least, turnover)) if sold_more else turnover
    sold = turnover if sold_more else float(rng.uniform(0.3, 1.0)) * turnover
    reach = _OF_HOLDING * np.cumsum(weights[longs])
    enough = int(np.searchsorted(reach, bought)) + 1
    size = min(max(enough, int(rng.integers(1, 4))), len(longs) - 1)
    into, out_of = longs[:size], longs[size : size + int(rng.integers(1, 4))]
    trades[into] = weights[into] * min(bought / float(weights[into].sum()), _OF_HOLDING)
    trades[out_of] = -sold * rng.dirichlet(np.full(len(out_of), 2.0))
    return np.round(trades, _DECIMALS)


def _standard(values: Floats) -> Floats:
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)
