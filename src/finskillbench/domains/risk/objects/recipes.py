"""How a portfolio with a planted risk is drawn: one recipe for each of five types, and what the risk has to reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from finskillbench.arrays import FACTORS, Floats
from finskillbench.domains.risk.objects.mandates import Fitted
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
class Slot:
    """One portfolio to be drawn: its type, regime and date, its number within both, and whether it is placed."""

    type: str
    regime: str
    as_of: date
    number: int
    placed: bool
    nearly: bool
    """Whether it keeps all but one or two limits of its home; of MANDATE_VIOLATING, every position limit."""
    tier: str
    """The tier in which its home mandate is looked for first."""


@dataclass(frozen=True)
class Setting:
    """What a draw needs to know of its date: the market, the fitted mandates by id, the hypothetical scenarios."""

    market: Market
    mandates: Mapping[str, Fitted]
    scenarios: Sequence[Scenario]


Drawn = tuple[Portfolio, Floats] | None
_Recipe = Callable[[np.random.Generator, Slot, Setting, Mandate, Mapping[str, Any]], Drawn]


def _concentrated(
    rng: np.random.Generator, slot: Slot, setting: Setting, home: Mandate, settings: Mapping[str, Any]
) -> Drawn:
    market, planted = setting.market, settings["planted"][CONCENTRATED]
    # A sector of one name would have to weigh 40 % in it.
    sizes = market.membership.sum(axis=0)
    crowded = int(rng.choice(np.flatnonzero(sizes >= min(2, sizes.max()))))
    members = np.flatnonzero(market.membership[:, crowded])
    chosen = rng.permutation(members)[:6]
    sector, name = np.zeros(len(market.tickers)), np.zeros(len(market.tickers))
    sector[members] = 1.0
    name[chosen[0]] = 1.0
    # Just beyond the threshold where a mandate's own limits are not far above it.
    reach = 0.25 if slot.placed else 1.0
    demands = [
        AtLeast(row, low + (high - low) * reach * rng.random())
        for row, (low, high) in ((sector, planted["sector"]), (name, planted["name"]))
    ]
    scores = np.where(np.isin(np.arange(len(name)), chosen), 4.0, 0.0)
    return _filled(rng, slot, setting, home, settings, scores=scores, demands=demands)


def _factor_tilted(
    rng: np.random.Generator, slot: Slot, setting: Setting, home: Mandate, settings: Mapping[str, Any]
) -> Drawn:
    tilt = rng.uniform(*settings["planted"][FACTOR_TILTED]["tilt"])
    betas = setting.market.betas
    # Twice six directions; those that the largest betas can reach, or else the one that comes nearest.
    slopes = np.hstack([betas, -betas])
    floors = tilt + np.concatenate([NEUTRAL, -NEUTRAL])
    reach = np.sort(slopes, axis=0)[::-1][: settings["holdings"][0]].mean(axis=0) - floors
    within = np.flatnonzero(reach >= 0)
    way = int(rng.choice(within)) if len(within) else int(np.argmax(reach))
    demand = AtLeast(slopes[:, way], float(floors[way]))
    return _filled(rng, slot, setting, home, settings, scores=2 * _standard(slopes[:, way]), demands=[demand])


def _liquidity_stressed(
    rng: np.random.Generator, slot: Slot, setting: Setting, home: Mandate, settings: Mapping[str, Any]
) -> Drawn:
    volume = np.asarray(setting.market.dollar_volume)
    scores = -_standard(np.log(np.maximum(volume, 1.0)))
    drawn = _filled(rng, slot, setting, home, settings, scores=scores)
    if drawn is None:
        return None
    book, trades = drawn
    wanted = rng.uniform(*settings["planted"][LIQUIDITY_STRESSED]["illiquid_share"])
    low, high = settings["nav_usd"][0], settings["largest_nav_usd"]
    for _ in range(40):  # the illiquid share grows with NAV: bisection on its logarithm
        middle = float(np.sqrt(low * high))
        short = illiquid_shares(book.weights[None], np.array([middle]), volume)[0] < wanted
        low, high = (middle, high) if short else (low, middle)
    return Portfolio(book.weights, book.cash, float(round(high, -5)), book.traded), trades


def _stress_vulnerable(
    rng: np.random.Generator, slot: Slot, setting: Setting, home: Mandate, settings: Mapping[str, Any]
) -> Drawn:
    market = setting.market
    of_name = apply_all(np.eye(len(market.tickers)), setting.scenarios, market)[0]
    losses = np.asarray(market.benchmark) @ of_name
    # Among the scenarios that hurt the benchmark most, so that the one drawn can be the portfolio's worst.
    chosen = int(rng.choice(np.argsort(losses)[:4]))
    worse = rng.uniform(*settings["planted"][STRESS_VULNERABLE]["worse_than_benchmark"])
    demand = AtLeast(-of_name[:, chosen], float(worse - losses[chosen]))
    return _filled(rng, slot, setting, home, settings, scores=-2 * _standard(of_name[:, chosen]), demands=[demand])


def _mandate_violating(
    rng: np.random.Generator, slot: Slot, setting: Setting, home: Mandate, settings: Mapping[str, Any]
) -> Drawn:
    """Uneven random weights, some sold short, and more trading than most mandates allow."""
    planted, n = settings["planted"][MANDATE_VIOLATING], len(setting.market.tickers)
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
    if slot.nearly:
        least = min(_cap(one.mandate) for one in setting.mandates.values())
        ceilings = least * rng.uniform(0.9, 0.99, len(longs))
        if ceilings.sum() < total:
            return None
        for _ in range(_SPREADS):  # what is cut off goes to the others; the last rest stays in cash
            weights[longs] = np.minimum(weights[longs] * total / weights[longs].sum(), ceilings)
    return _book(rng, setting.market, weights, settings, settings["turnover_violating"])


_DRAW: Mapping[str, _Recipe] = {
    CONCENTRATED: _concentrated,
    FACTOR_TILTED: _factor_tilted,
    LIQUIDITY_STRESSED: _liquidity_stressed,
    MANDATE_VIOLATING: _mandate_violating,
    STRESS_VULNERABLE: _stress_vulnerable,
}


def draw_book(
    rng: np.random.Generator, slot: Slot, setting: Setting, home: Mandate, settings: Mapping[str, Any]
) -> Drawn:
    """One try at a portfolio with the slot's planted risk: its book and (n,) the month's trades, None where none fits.

    Whether the risk is there, and the home mandate kept, is for the engines to say.
    """
    return _DRAW[slot.type](rng, slot, setting, home, settings)


def _filled(
    rng: np.random.Generator,
    slot: Slot,
    setting: Setting,
    home: Mandate,
    settings: Mapping[str, Any],
    *,
    scores: Floats,
    demands: Sequence[AtLeast] = (),
) -> Drawn:
    """A long portfolio that meets the demands, near random weights; inside the home mandate where the slot says so.

    Names of a high score (n,) are drawn more often and weigh more. Ceilings differ a little from name to name and from
    sector to sector, so that a mandate's limit does not leave ties.
    """
    market, n = setting.market, len(setting.market.tickers)
    tight, size = None, _size(rng, settings, n)
    cash_range, turnover = list(settings["cash"]), list(settings["turnover"])
    if slot.placed or slot.nearly:
        inside = settings["inside"]
        dropped = _dropped(rng, slot, home) if slot.nearly else ()
        kept = replace(home, constraints=tuple(one for one in home.constraints if one.kind not in dropped))
        tight = tightened(kept, rng.uniform(*inside["share"]), inside["least"])
        size = _size_within(rng, settings, tight, n)
        cash_range[1] = min(cash_range[1], limit_of(tight, Kind.CASH_MAX))
        turnover[1] = min(turnover[1], limit_of(tight, Kind.TURNOVER_MAX_MONTHLY))
        if Kind.CASH_MAX in dropped:
            cash_range[0] = min(limit_of(home, Kind.CASH_MAX), cash_range[1])
        if Kind.TURNOVER_MAX_MONTHLY in dropped:
            turnover[0] = min(limit_of(home, Kind.TURNOVER_MAX_MONTHLY), turnover[1])
    if tight is not None and tight.get(Kind.TRACKING_ERROR_MAX) is not None:
        # Nobody tracks a benchmark without its largest names.
        scores = 0.5 * scores + _standard(np.asarray(market.benchmark))
    chances = np.exp(scores - scores.max())
    # The larger of random keys ~ a draw without replacement in proportion to the chances (Efraimidis & Spirakis 2006).
    support = np.sort(np.argsort(-np.log(rng.random(n)) / np.maximum(chances, 1e-6))[:size])
    cash = float(rng.uniform(*cash_range))
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
    return None if weights is None else _book(rng, market, weights, settings, turnover)


def _dropped(rng: np.random.Generator, slot: Slot, home: Mandate) -> tuple[Kind, ...]:
    """One or two limits of the home that need not be kept; beside them those that leave what is planted no room."""
    kinds = [one.kind for one in home.constraints if one.kind in _DROPPED]
    tight = {Kind.SECTOR_LIMIT_MAX: LEAST["sector"], Kind.POSITION_LIMIT_MAX: LEAST["name"]}
    crowded = [kind for kind, least in tight.items() if slot.type == CONCENTRATED and limit_of(home, kind) <= least]
    chosen = [kinds[i] for i in rng.permutation(len(kinds))[: int(rng.integers(1, 3))]]
    return tuple(dict.fromkeys([*crowded, *chosen]))


def _sector_spread(rng: np.random.Generator, market: Market, tight: Mandate | None) -> list[AtLeast]:
    limit = None if tight is None else tight.get(Kind.SECTOR_LIMIT_MAX)
    if limit is None or limit.value is None:
        return []
    caps = limit.value * rng.uniform(0.92, 1.0, market.membership.shape[1])
    return [AtLeast(-column, -float(cap)) for column, cap in zip(market.membership.T, caps, strict=True)]


def _size(rng: np.random.Generator, settings: Mapping[str, Any], names: int) -> int:
    low, high = settings["holdings"]
    return min(int(rng.integers(low, high + 1)), names)


def _size_within(rng: np.random.Generator, settings: Mapping[str, Any], tight: Mandate, names: int) -> int:
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


def _book(
    rng: np.random.Generator, market: Market, weights: Floats, settings: Mapping[str, Any], turnover: Sequence[float]
) -> tuple[Portfolio, Floats]:
    """The book of weights rounded to six decimals, cash the exact rest, with a NAV and the month's trades."""
    rounded = np.round(weights, _DECIMALS)
    low, high = settings["nav_usd"]
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
