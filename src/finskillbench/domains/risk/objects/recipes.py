"""How a portfolio with a planted risk is drawn: one recipe for each of five types, and what the risk has to reach."""

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
from finskillbench.engines.risk.mandate import Constraint, Kind, Mandate
from finskillbench.engines.risk.portfolio import Portfolio, turnover_of

CONCENTRATED = "concentrated"
FACTOR_TILTED = "factor_tilted"
LIQUIDITY_STRESSED = "liquidity_stressed"
MANDATE_VIOLATING = "mandate_violating"
STRESS_VULNERABLE = "stress_vulnerable"
TYPES = (CONCENTRATED, FACTOR_TILTED, LIQUIDITY_STRESSED, MANDATE_VIOLATING, STRESS_VULNERABLE)

LEAST = {"sector": 0.30, "name": 0.08, "tilt": 0.35, "illiquid": 0.10, "days": 10.0, "failing": 3, "worse": 0.015}
"""What a planted risk has to reach, by the engines: fractions of NAV, a beta, days, constraints, a loss of NAV."""
_LOOSE = 0.4
"""How much more of its limits a try may leave out, and how much less press against them, at the last of the tries."""
_EXACT = 1e-6
"""How far a weight or exposure that is pressed to a value may stay below it."""
_OF_HOLDING, _OF_CASH = 0.95, 0.9
"""Largest parts of a holding that was bought, and of cash that was received, within the month."""
NEUTRAL = NEUTRAL_BETA * (np.arange(len(FACTORS)) == 0)
"""(6,) exposure to each factor from which a tilt is measured."""
_DECIMALS = 6
SMALLEST = 0.0015
"""Smallest position: clear of the 10 basis points from which a name counts as a holding."""


@dataclass(frozen=True)
class PlannedPortfolio:
    """One portfolio to be drawn: its type, regime and date, its number within both."""

    type: str
    regime: str
    as_of: date
    number: int
    tier: str
    """The tier in which its home mandate is looked for first."""


@dataclass(frozen=True)
class Attempt:
    """One try at a planned portfolio: its random numbers, its date, and the mandate that is to be its home.

    `late` grows from 0 at the first try to 1 at the last; `disciplined` says that whoever runs it keeps inside every
    limit, at whatever distance.
    """

    rng: np.random.Generator
    plan: PlannedPortfolio
    at: RiskDate
    home: Mandate
    settings: RiskSettings
    late: float
    disciplined: bool

    @property
    def size(self) -> int:
        """The number of names of the universe."""
        return len(self.at.market.tickers)


_FAVOURED, _WIDE = 4.0, 250
"""Score of the names that a concentrated portfolio is to hold, and the names of a universe from which on it grows with
the logarithm of their number: among thousands chance would leave them out."""

Drawn = tuple[Portfolio, Floats] | None
"""A portfolio and (n,) the month's trades; None where none fits."""


def _concentrated(attempt: Attempt) -> Drawn:
    rng, market, planted = attempt.rng, attempt.at.market, attempt.settings["planted"]["concentrated"]
    # A sector of one name would have to weigh 40 % in it.
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


def _factor_tilted(attempt: Attempt) -> Drawn:
    rng, betas = attempt.rng, attempt.at.market.betas
    tilt = rng.uniform(*attempt.settings["planted"]["factor_tilted"]["tilt"])
    # Twice six directions; those that the largest betas can reach, or else the one that comes nearest.
    slopes = np.hstack([betas, -betas])
    floors = tilt + np.concatenate([NEUTRAL, -NEUTRAL])
    reach = np.sort(slopes, axis=0)[::-1][: attempt.settings["holdings"][0]].mean(axis=0) - floors
    within = np.flatnonzero(reach >= 0)
    way = int(rng.choice(within)) if len(within) else int(np.argmax(reach))
    demand = AtLeast(slopes[:, way], float(floors[way]))
    return _filled(attempt, scores=2 * _standard(slopes[:, way]), demands=[demand])


def _liquidity_stressed(attempt: Attempt) -> Drawn:
    volume, settings = np.asarray(attempt.at.market.dollar_volume), attempt.settings
    scores = -_standard(np.log(np.maximum(volume, 1.0)))
    drawn = _filled(attempt, scores=scores)
    if drawn is None:
        return None
    portfolio, trades = drawn
    wanted = attempt.rng.uniform(*settings["planted"]["liquidity_stressed"]["illiquid_share"])
    low, high = settings["nav_usd"][0], settings["largest_nav_usd"]
    for _ in range(40):  # the illiquid share grows with NAV: bisection on its logarithm
        middle = float(np.sqrt(low * high))
        short = illiquid_shares(portfolio.weights[None], np.array([middle]), volume)[0] < wanted
        low, high = (middle, high) if short else (low, middle)
    return Portfolio(portfolio.weights, portfolio.cash, float(round(high, -5)), portfolio.traded), trades


def _stress_vulnerable(attempt: Attempt) -> Drawn:
    rng, market = attempt.rng, attempt.at.market
    of_name = attempt.at.of_names
    losses = np.asarray(market.benchmark) @ of_name
    # Among the scenarios that hurt the benchmark most, so that the one drawn can be the portfolio's worst.
    chosen = int(rng.choice(np.argsort(losses)[:4]))
    worse = rng.uniform(*attempt.settings["planted"]["stress_vulnerable"]["worse_than_benchmark"])
    demand = AtLeast(-of_name[:, chosen], float(worse - losses[chosen]))
    return _filled(attempt, scores=-2 * _standard(of_name[:, chosen]), demands=[demand])


def _mandate_violating(attempt: Attempt) -> Drawn:
    """Uneven random weights, some sold short, and more trading than most mandates allow."""
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


_RECIPES: Mapping[str, Callable[[Attempt], Drawn]] = {
    CONCENTRATED: _concentrated,
    FACTOR_TILTED: _factor_tilted,
    LIQUIDITY_STRESSED: _liquidity_stressed,
    MANDATE_VIOLATING: _mandate_violating,
    STRESS_VULNERABLE: _stress_vulnerable,
}


def draw_portfolio(attempt: Attempt) -> Drawn:
    """One try at a portfolio with the planned risk; that it is there, and the home mandate kept, the engines say."""
    return _RECIPES[attempt.plan.type](attempt)


def _filled(attempt: Attempt, *, scores: Floats, demands: Sequence[AtLeast] = ()) -> Drawn:
    """A portfolio that meets the demands, near random weights, about the limits of its home mandate.

    Whoever runs it works up to limits of his own, each a random multiple of the mandate's around 1: on which side of a
    limit a value comes to lie, and how far, no rule tells. Names of a high score (n,) are drawn more often and weigh
    more.
    """
    rng, market, settings, n = attempt.rng, attempt.at.market, attempt.settings, attempt.size
    own, pressed = _own_limits(attempt)
    error = own.limit(Kind.TRACKING_ERROR_MAX)
    if error is not None:
        # Nobody tracks a benchmark without its largest names.
        scores = 0.5 * scores + _standard(np.asarray(market.benchmark))
    size = _size(attempt, own)
    chances = np.exp(scores - scores.max())
    # The larger of random keys ~ a draw without replacement in proportion to the chances (Efraimidis & Spirakis 2006).
    support = np.sort(np.argsort(-np.log(rng.random(n)) / np.maximum(chances, 1e-6))[:size])
    cash = _drawn_within(rng, own.limit(Kind.CASH_MAX), settings["cash"], error)
    short = _shorts(attempt, own, support, cash)
    target = np.zeros(n)
    mix = rng.dirichlet(np.full(size, 1.5)) * np.exp(0.5 * np.clip(scores[support], -2, 2))
    target[support] = mix / mix.sum() * (1 - cash - short.sum())
    least = own.limit(Kind.POSITION_LIMIT_MIN)
    ceilings = np.full(n, min(settings["largest_weight"], own.limit(Kind.POSITION_LIMIT_MAX) or 1.0))
    if least is not None:
        ceilings[rng.choice(support)] = least + _EXACT
    weights = place(
        market,
        support,
        mandate=_continuous(own),
        target=target,
        cash=cash + float(short.sum()),
        least=settings["least_weight"] if least is None else least,
        ceilings=ceilings,
        demands=[*demands, *_pressed(attempt, own, pressed, support, ceilings)],
    )
    if weights is None:
        return None
    turnover = _drawn_within(rng, own.limit(Kind.TURNOVER_MAX_MONTHLY), settings["turnover"], None)
    return _portfolio(attempt, weights + short, (turnover, turnover))


def _own_limits(attempt: Attempt) -> tuple[Mandate, frozenset[Kind]]:
    """The home mandate with every limit times its own random multiple, some left out; and those to be pressed against.

    Half of the multiples lie within a few percent of 1, the others within a third: a limit is missed as often as kept.
    """
    rng, settings, late = attempt.rng, attempt.settings["about_limits"], attempt.late
    kept: list[Constraint] = []
    pressed: set[Kind] = set()
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
    own = replace(attempt.home, constraints=tuple(kept))
    if own.get(Kind.TRACKING_ERROR_MAX) is not None:
        # Next to the benchmark there is room for one bet or two.
        pressed = set(permuted(sorted(pressed), rng)[: int(rng.integers(1, 3))])
    return own, frozenset(pressed)


_LEAST_OF = frozenset({Kind.POSITION_LIMIT_MIN})
"""Limits whose value is the least that is allowed."""
_MAY_BE_LEFT_OUT = frozenset(
    {
        Kind.POSITION_LIMIT_MAX,
        Kind.SECTOR_LIMIT_MAX,
        Kind.TRACKING_ERROR_MAX,
        Kind.BETA_RANGE,
        Kind.FACTOR_EXPOSURE_MAX,
        Kind.HHI_MAX,
    }
)
"""Limits that a try may leave out for want of room; the others are met by how much is held, shorted or traded."""
_CROWDED_OUT: Mapping[str, tuple[Kind, ...]] = {
    CONCENTRATED: (Kind.POSITION_LIMIT_MAX, Kind.SECTOR_LIMIT_MAX, Kind.TRACKING_ERROR_MAX, Kind.HHI_MAX),
    FACTOR_TILTED: (Kind.TRACKING_ERROR_MAX, Kind.FACTOR_EXPOSURE_MAX),
    STRESS_VULNERABLE: (Kind.TRACKING_ERROR_MAX,),
}
"""Limits that what is planted leaves no room for."""


def _times(limit: Constraint, multiple: float) -> Constraint:
    if limit.kind is Kind.BETA_RANGE:
        low, high = limit.minimum or 0.0, limit.maximum or 0.0
        reach = 1 + (multiple - 1) / 3  # a beta is known to a few hundredths; a third off is another kind of portfolio
        return replace(limit, minimum=low / reach, maximum=high * reach)
    if limit.kind is Kind.GROSS_EXPOSURE_MAX:
        multiple = 1 + (multiple - 1) / 8  # what is short is a few percent of NAV
    return limit if limit.value is None else replace(limit, value=limit.value * multiple)


def _continuous(mandate: Mandate) -> Mandate:
    """The limits that the program keeps; the others are met by the names, the cash and the trades that are drawn."""
    drawn = (Kind.CASH_MAX, Kind.TURNOVER_MAX_MONTHLY, Kind.LONG_ONLY, Kind.GROSS_EXPOSURE_MAX, Kind.NAME_COUNT)
    return replace(mandate, constraints=tuple(one for one in mandate.constraints if one.kind not in drawn))


def _pressed(
    attempt: Attempt, own: Mandate, pressed: frozenset[Kind], support: Integers, ceilings: Floats
) -> list[AtLeast]:
    """Demands that take a name, a sector, the beta or a factor to the limits that are pressed against."""
    rng, market = attempt.rng, attempt.at.market
    benchmark = np.asarray(market.benchmark)
    demands: list[AtLeast] = []
    for limit in own.constraints:
        if limit.kind not in pressed:
            continue
        if limit.kind is Kind.POSITION_LIMIT_MAX and limit.value is not None:
            place_ = support[int(np.argmax(benchmark[support] * rng.random(len(support))))]
            name = np.zeros(attempt.size)
            name[place_] = 1.0
            demands.append(AtLeast(name, float(ceilings[place_]) - _EXACT))
            others = support[support != place_]
            ceilings[others] = np.minimum(ceilings[others], ceilings[place_] * rng.uniform(0.8, 1.0, len(others)))
        elif limit.kind is Kind.SECTOR_LIMIT_MAX and limit.value is not None:
            column = market.membership[:, int(np.argmax(market.membership[support].T @ benchmark[support]))]
            demands.append(AtLeast(column, min(limit.value, 0.6) - _EXACT))
        elif limit.kind is Kind.BETA_RANGE:
            slopes, way = market.betas[:, 0], rng.choice([-1.0, 1.0])
            end = limit.minimum if way < 0 else limit.maximum
            demands.append(AtLeast(way * slopes, way * (end or 0.0) - _EXACT))
        elif limit.kind is Kind.FACTOR_EXPOSURE_MAX and limit.value is not None:
            slopes = market.betas[:, FACTORS.index(str(rng.choice(list(limit.factors))))]
            way = 1.0 if float(benchmark @ slopes) > 0 else -1.0
            demands.append(AtLeast(way * slopes, limit.value - _EXACT))
    return demands


def _shorts(attempt: Attempt, own: Mandate, support: Integers, cash: float) -> Floats:
    """(n,) short positions of names that are not held long; none where nobody would have shorted."""
    rng, settings = attempt.rng, attempt.settings["planted"]["mandate_violating"]
    short, outside = np.zeros(attempt.size), np.setdiff1d(np.arange(attempt.size), support)
    gross = own.limit(Kind.GROSS_EXPOSURE_MAX)
    banned = own.get(Kind.LONG_ONLY) is not None
    if not len(outside) or (banned and (attempt.disciplined or rng.random() > settings["short_share"])):
        return short
    low, high = settings["short_weight"]
    names = rng.permutation(outside)[: int(rng.integers(settings["shorts"][0], settings["shorts"][1] + 1))]
    if banned:
        # An oversight: a position that was sold twice, a fraction of what is usually held.
        short[names[:1]] = -rng.uniform(SMALLEST, low)
    elif gross is not None and gross > 1 - cash + 2 * SMALLEST:
        short[names] = -rng.dirichlet(np.full(len(names), 3.0)) * min((gross - 1 + cash) / 2, high * len(names))
    return short


def _drawn_within(rng: np.random.Generator, limit: float | None, usual: Range, error: float | None) -> float:
    """The limit itself where there is one, else a usual number; no more cash than the tracking error has room for."""
    most = 1.0 if error is None else 2 * error
    return min(limit, most) if limit is not None else float(rng.uniform(usual[0], min(usual[1], most)))


def _size(attempt: Attempt, own: Mandate) -> int:
    """Names held: as many as a name count asks for or nearly so, and as a tracking error needs."""
    rng, names, error = attempt.rng, attempt.size, own.limit(Kind.TRACKING_ERROR_MAX)
    low, high = attempt.settings["holdings"]
    count = own.get(Kind.NAME_COUNT)
    if error is not None:
        share = next(share for most, share in attempt.settings["tracking"] if error <= most)
        low = max(low, min(round(share * names), attempt.settings["most_holdings"]))
        high = max(low, high, min(round((share + 0.2) * names), attempt.settings["most_holdings"]))
    if count is not None and count.minimum is not None:
        low = high = max(2, int(count.minimum) + int(rng.integers(0 if attempt.disciplined else -4, 3)))
    return min(int(rng.integers(low, high + 1)), names)


_SMALLER = 0.8
"""Steps by which a NAV falls until enough of it can be sold."""


def _portfolio(attempt: Attempt, weights: Floats, turnover: Sequence[float]) -> tuple[Portfolio, Floats]:
    """The portfolio of weights rounded to six decimals, cash the exact rest, with a NAV and the month's trades."""
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
    """Signed weight changes (n,) of a few long holdings, with about the turnover, that led to the weights and cash.

    What was bought is part of what is held now, and what was sold was worth no more than the purchases and most of the
    cash that is left: before the month's trades no long holding was short and no cash was owed.
    """
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
