"""How a portfolio with a planted risk is drawn: one recipe for each of five types, and what the risk has to reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from finskillbench.arrays import FACTORS, Floats
from finskillbench.domains.draws import permuted
from finskillbench.domains.risk.catalogs import Range, RiskSettings
from finskillbench.domains.risk.objects.mandates import FittedMandate
from finskillbench.domains.risk.objects.placement import AtLeast, place, tightened
from finskillbench.engines.risk.exposures import NEUTRAL_BETA, illiquid_shares
from finskillbench.engines.risk.mandate import Kind, Mandate
from finskillbench.engines.risk.portfolio import Market, Portfolio, turnover_of
from finskillbench.engines.risk.stress import Scenario, apply_all

CONCENTRATED = "concentrated"
FACTOR_TILTED = "factor_tilted"
LIQUIDITY_STRESSED = "liquidity_stressed"
MANDATE_VIOLATING = "mandate_violating"
STRESS_VULNERABLE = "stress_vulnerable"
TYPES = (CONCENTRATED, FACTOR_TILTED, LIQUIDITY_STRESSED, MANDATE_VIOLATING, STRESS_VULNERABLE)

LEAST = {"sector": 0.40, "name": 0.10, "tilt": 0.50, "illiquid": 0.10, "days": 10.0, "failing": 3, "worse": 0.03}
"""What a planted risk has to reach, by the engines: fractions of NAV, a beta, days, constraints, a loss of NAV."""
_DROPPED = (
    Kind.POSITION_LIMIT_MAX,
    Kind.SECTOR_LIMIT_MAX,
    Kind.TRACKING_ERROR_MAX,
    Kind.BETA_RANGE,
    Kind.FACTOR_EXPOSURE_MAX,
    Kind.TURNOVER_MAX_MONTHLY,
    Kind.CASH_MAX,
    Kind.HHI_MAX,
    Kind.NAME_COUNT,
)
"""Limits that a portfolio which nearly keeps its mandate may break."""
_SPREADS = 60
_OF_HOLDING, _OF_CASH = 0.95, 0.9
"""Largest parts of a holding that was bought, and of cash that was received, within the month."""
NEUTRAL = NEUTRAL_BETA * (np.arange(len(FACTORS)) == 0)
"""(6,) exposure to each factor from which a tilt is measured."""
_DECIMALS = 6
SMALLEST = 0.0015
"""Smallest position: clear of the 10 basis points from which a name counts as a holding."""


@dataclass(frozen=True)
class PlannedPortfolio:
    """One portfolio to be drawn: its type, regime and date, its number within both, and whether it is placed."""

    type: str
    regime: str
    as_of: date
    number: int
    placed: bool
    """Whether it is built to keep its home mandate."""
    nearly: bool
    """Whether it keeps all but one or two limits of its home; of MANDATE_VIOLATING, every position limit."""
    tier: str
    """The tier in which its home mandate is looked for first."""


@dataclass(frozen=True)
class RiskDate:
    """What a draw needs to know of its date: the market, the fitted mandates by id, the hypothetical scenarios."""

    market: Market
    mandates: Mapping[str, FittedMandate]
    scenarios: Sequence[Scenario]


@dataclass(frozen=True)
class Attempt:
    """One try at a planned portfolio: its random numbers, its date, and the mandate that is to be its home."""

    rng: np.random.Generator
    plan: PlannedPortfolio
    at: RiskDate
    home: Mandate
    settings: RiskSettings

    @property
    def size(self) -> int:
        """The number of names of the universe."""
        return len(self.at.market.tickers)


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
    # Just beyond the threshold where a mandate's own limits are not far above it.
    reach = 0.25 if attempt.plan.placed else 1.0
    demands = [
        AtLeast(row, low + (high - low) * reach * rng.random())
        for row, (low, high) in ((sector, planted["sector"]), (name, planted["name"]))
    ]
    scores = np.where(np.isin(np.arange(len(name)), chosen), 4.0, 0.0)
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
    of_name = apply_all(np.eye(len(market.tickers)), attempt.at.scenarios, market)[0]
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
    support = rng.permutation(n)[: _size(rng, settings, n)]
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
    if attempt.plan.nearly:
        least = min(_cap(one.mandate) for one in attempt.at.mandates.values())
        ceilings = least * rng.uniform(0.9, 0.99, len(longs))
        if ceilings.sum() < total:
            return None
        for _ in range(_SPREADS):  # what is cut off goes to the others; the last rest stays in cash
            weights[longs] = np.minimum(weights[longs] * total / weights[longs].sum(), ceilings)
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
    """A long portfolio that meets the demands, near random weights; inside the home mandate where the plan says so.

    Names of a high score (n,) are drawn more often and weigh more. Ceilings differ a little from name to name and from
    sector to sector, so that a mandate's limit does not leave ties.
    """
    rng, market, settings = attempt.rng, attempt.at.market, attempt.settings
    n = attempt.size
    tight, size = None, _size(rng, settings, n)
    cash_range, turnover = settings["cash"], settings["turnover"]
    if attempt.plan.placed or attempt.plan.nearly:
        tight, size, cash_range, turnover = _inside_home(attempt)
    if tight is not None and tight.get(Kind.TRACKING_ERROR_MAX) is not None:
        # Nobody tracks a benchmark without its largest names.
        scores = 0.5 * scores + _standard(np.asarray(market.benchmark))
    chances = np.exp(scores - scores.max())
    # The larger of random keys ~ a draw without replacement in proportion to the chances (Efraimidis & Spirakis 2006).
    support = np.sort(np.argsort(-np.log(rng.random(n)) / np.maximum(chances, 1e-6))[:size])
    cash = float(rng.uniform(cash_range[0], cash_range[1]))
    target = np.zeros(n)
    mix = rng.dirichlet(np.full(size, 4.0)) * np.exp(0.5 * np.clip(scores[support], -2, 2))
    target[support] = mix / mix.sum() * (1 - cash)
    cap = settings["largest_weight"] if tight is None else min(settings["largest_weight"], _cap(tight))
    ceilings = cap * rng.uniform(0.93, 1.0, n)
    spread = _sector_spread(rng, market, tight)
    weights = place(
        market,
        support,
        mandate=tight,
        target=target,
        cash=cash,
        least=settings["least_weight"],
        ceilings=ceilings,
        demands=[*demands, *spread],
    )
    return None if weights is None else _portfolio(attempt, weights, turnover)


def _inside_home(attempt: Attempt) -> tuple[Mandate, int, Range, Range]:
    """The limits to be kept, drawn in a little, and the number of names, cash and turnover that they leave room for."""
    rng, home, settings = attempt.rng, attempt.home, attempt.settings
    dropped = _dropped(attempt) if attempt.plan.nearly else ()
    retained = replace(home, constraints=tuple(one for one in home.constraints if one.kind not in dropped))
    tight = tightened(retained, rng.uniform(*settings["inside"]["share"]), settings["inside"]["least"])
    size = _size_within(rng, settings, tight, attempt.size)
    ranges: list[Range] = []
    for kind, (low, high) in ((Kind.CASH_MAX, settings["cash"]), (Kind.TURNOVER_MAX_MONTHLY, settings["turnover"])):
        most = min(high, limit_of(tight, kind))
        ranges.append((min(limit_of(home, kind), most) if kind in dropped else low, most))
    return tight, size, ranges[0], ranges[1]


def _dropped(attempt: Attempt) -> tuple[Kind, ...]:
    """One or two limits of the home that need not be kept; beside them those that leave what is planted no room."""
    rng, home, concentrated = attempt.rng, attempt.home, attempt.plan.type == CONCENTRATED
    kinds = [one.kind for one in home.constraints if one.kind in _DROPPED]
    tight = {Kind.SECTOR_LIMIT_MAX: LEAST["sector"], Kind.POSITION_LIMIT_MAX: LEAST["name"]}
    crowded = [kind for kind, least in tight.items() if concentrated and limit_of(home, kind) <= least]
    chosen = permuted(kinds, rng)[: int(rng.integers(1, 3))]
    return tuple(dict.fromkeys([*crowded, *chosen]))


def _sector_spread(rng: np.random.Generator, market: Market, tight: Mandate | None) -> list[AtLeast]:
    limit = None if tight is None else tight.get(Kind.SECTOR_LIMIT_MAX)
    if limit is None or limit.value is None:
        return []
    caps = limit.value * rng.uniform(0.92, 1.0, len(market.sector_names))
    return [AtLeast(-column, -float(cap)) for column, cap in zip(market.membership.T, caps, strict=True)]


def _size(rng: np.random.Generator, settings: RiskSettings, names: int) -> int:
    low, high = settings["holdings"]
    return min(int(rng.integers(low, high + 1)), names)


def _size_within(rng: np.random.Generator, settings: RiskSettings, tight: Mandate, names: int) -> int:
    """Holdings that the position limit, the HHI and the name count leave room for, as many as tracking needs."""
    low, high = settings["holdings"]
    if tight.get(Kind.TRACKING_ERROR_MAX) is not None or tight.get(Kind.HHI_MAX) is not None:
        low = (low + high) // 2 + 1
    count = tight.get(Kind.NAME_COUNT)
    if count is not None:
        low = low if count.minimum is None else max(low, int(count.minimum))
        high = high if count.maximum is None else min(high, int(count.maximum))
    return min(int(rng.integers(min(low, high), high + 1)), names)


def limit_of(mandate: Mandate, kind: Kind) -> float:
    """The limit of one kind; 1, which binds nothing, where the mandate has none."""
    value = mandate.limit(kind)
    return 1.0 if value is None else value


def _cap(mandate: Mandate) -> float:
    return limit_of(mandate, Kind.POSITION_LIMIT_MAX)


def _portfolio(attempt: Attempt, weights: Floats, turnover: Sequence[float]) -> tuple[Portfolio, Floats]:
    """The portfolio of weights rounded to six decimals, cash the exact rest, with a NAV and the month's trades."""
    rounded = np.round(weights, _DECIMALS)
    rng, (low, high) = attempt.rng, attempt.settings["nav_usd"]
    nav = float(round(low * (high / low) ** rng.random(), -5))
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
