"""The 200 portfolios: five types whose planted risk the engines find, many of them inside their home mandate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from finskillbench.engines.portfolio.risk_model import Array
from finskillbench.engines.risk.book import HELD, Book, Market, turnover_of
from finskillbench.engines.risk.exposures import (
    LEAST_ILLIQUID,
    LEAST_SECTOR,
    LEAST_TILT,
    NEUTRAL_BETA,
    days_to_liquidate,
    illiquid_share,
    illiquid_shares,
    ranked,
)
from finskillbench.engines.risk.mandate import Kind, Mandate
from finskillbench.engines.risk.monitor import measure
from finskillbench.engines.risk.stress import Scenario, apply_all
from finskillbench.episode import FACTORS
from finskillbench.errors import SourceError
from finskillbench.subtasks.building import BuildContext
from finskillbench.subtasks.risk_mandates import TIERS, Fitted
from finskillbench.subtasks.risk_placement import AtLeast, place, tightened

CONCENTRATED = "concentrated"
FACTOR_TILTED = "factor_tilted"
LIQUIDITY_STRESSED = "liquidity_stressed"
MANDATE_VIOLATING = "mandate_violating"
STRESS_VULNERABLE = "stress_vulnerable"
TYPES = (CONCENTRATED, FACTOR_TILTED, LIQUIDITY_STRESSED, MANDATE_VIOLATING, STRESS_VULNERABLE)

LEAST = {"sector": 0.40, "name": 0.10, "tilt": 0.50, "illiquid": 0.10, "days": 10.0, "failing": 3, "worse": 0.03}
"""What a planted risk has to reach, by the engines: fractions of NAV, a beta, days, constraints, a loss of NAV."""
_ATTEMPTS = 48
_TRIES_PER_HOME, _TRIES_WHERE_LIKELY = 2, 4
"""Draws for one home mandate before the next one is tried; more for what is hard to sell, which fits in any."""
_SLOWEST = 3
"""So many of a liquidity-stressed portfolio's least liquid positions take more than ten days to sell."""
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
_NEUTRAL = NEUTRAL_BETA * (np.arange(len(FACTORS)) == 0)
"""(6,) exposure to each factor from which a tilt is measured."""
_DECIMALS = 6
_SMALLEST = 0.0015
"""Smallest position: clear of the 10 basis points from which a name counts as a holding."""


@dataclass(frozen=True, eq=False)
class PortfolioCase:
    """One portfolio of the pool.

    Attributes
    ----------
    portfolio_id : neutral; type, regime : what it is, never shown to an agent.
    home : the mandate that it is run under; placed : whether it was built to keep that mandate.
    trades : (n,) signed weight changes already made this month.
    facts : what the engines measure of the planted risks.
    """

    portfolio_id: str
    type: str
    regime: str
    as_of: date
    market: Market
    book: Book
    trades: Array
    home: str
    placed: bool
    facts: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """The input field `portfolio`: holdings in ticker order, as signed fractions of NAV."""
        return {
            "portfolio_id": self.portfolio_id,
            "holdings": [
                {"symbol": ticker, "weight": float(weight)}
                for ticker, weight in zip(self.market.tickers, self.book.weights, strict=True)
                if abs(weight) > HELD
            ],
            "cash_weight": self.book.cash,
            "total_nav": self.book.nav,
            "trades_this_month": {
                ticker: float(trade)
                for ticker, trade in zip(self.market.tickers, self.trades, strict=True)
                if trade != 0
            },
        }


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


def slots(context: BuildContext, settings: Mapping[str, Any]) -> list[Slot]:
    """The 200 portfolios to draw: each type evenly over the regimes, each regime's over its dates.

    A share of each type is placed inside its home mandate (`inside_home_share`); the tiers take turns.
    """
    by_regime: dict[str, list[date]] = {}
    for as_of in context.panels.risk_dates:
        by_regime.setdefault(context.panels.regimes[as_of], []).append(as_of)
    count = settings["portfolios_per_type"]
    planned = []
    for offset, kind in enumerate(TYPES):
        names = list(by_regime)
        names = names[offset % len(names) :] + names[: offset % len(names)]
        shares = {name: len(range(place_, count, len(names))) for place_, name in enumerate(names)}
        inside = 0
        for name, share in shares.items():
            rng = context.generator("risk", "dates", kind, name)
            dates = [by_regime[name][i] for i in rng.permutation(len(by_regime[name]))]
            for number in range(share):
                # Spread over the numbers, so that each regime has its share inside.
                part = settings["inside_home_share"].get(kind, 0.0)
                placed = int((number + offset + 1) * part) > int((number + offset) * part)
                # What is hard to sell may be held under any mandate; the other risks hardly fit in a hard one.
                turns = ("hard", "medium", "hard") if kind == LIQUIDITY_STRESSED else TIERS
                tier = turns[inside % len(turns)]
                inside += placed or kind == MANDATE_VIOLATING
                nearly = not placed and rng.random() < settings["nearly_share"]
                planned.append(Slot(kind, name, dates[number % len(dates)], number, placed, nearly, tier))
    return planned


def draw(context: BuildContext, slot: Slot, at: Mapping[date, Setting], settings: Mapping[str, Any]) -> PortfolioCase:
    """The portfolio of a slot; on another date of its regime, or outside its home mandate's limits, where it must.

    Raises
    ------
    SourceError : where no date of the regime has such a portfolio.
    """
    others = [day for day, regime in context.panels.regimes.items() if regime == slot.regime and day != slot.as_of]
    for tried in dict.fromkeys((slot, replace(slot, placed=False, nearly=False))):
        for as_of in (slot.as_of, *others):
            case = _draw_at(context, replace(tried, as_of=as_of), at[as_of], settings)
            if case is not None:
                return case
    raise SourceError(
        f"panels at {slot.as_of}",
        f"the {len(at[slot.as_of].market.tickers)} names allow no {slot.type} portfolio, there or elsewhere in the "
        f"regime {slot.regime}",
        mend="add names to the universe, or change what is planted in catalog/risk.json",
    )


def _draw_at(context: BuildContext, slot: Slot, setting: Setting, settings: Mapping[str, Any]) -> PortfolioCase | None:
    """Draw until the engines find the planted risk and nothing hangs on rounding; None where no draw succeeds."""
    homes = _homes(context, slot, setting)
    tries = _TRIES_WHERE_LIKELY if slot.type == LIQUIDITY_STRESSED else _TRIES_PER_HOME
    for attempt in range(_ATTEMPTS):
        rng = context.generator("risk", slot.type, slot.regime, slot.number, attempt)
        # Any mandate is home to a portfolio that need neither keep nor break it.
        searched = slot.placed or slot.nearly or slot.type == MANDATE_VIOLATING
        home = homes[attempt // tries % len(homes)] if searched else homes[0]
        drawn = _DRAW[slot.type](rng, slot, setting, setting.mandates[home].mandate, settings)
        if drawn is None:
            continue
        book, trades = drawn
        facts = _facts(book, setting, setting.mandates[home].mandate)
        if _planted(slot, facts) and _clear(book, setting, setting.mandates[home].mandate, settings["grey_band"]):
            return PortfolioCase(
                "", slot.type, slot.regime, slot.as_of, setting.market, book, trades, home, slot.placed, facts
            )
    return None


def _homes(context: BuildContext, slot: Slot, setting: Setting) -> list[str]:
    """The mandates in the order in which they are tried: those of the slot's tier first."""
    rng = context.generator("risk", "home", slot.type, slot.regime, slot.number)
    names = [name for name, fitted in setting.mandates.items() if _may_be_home(slot, fitted.mandate)]
    shuffled = [names[i] for i in rng.permutation(len(names))]
    return sorted(shuffled, key=lambda name: setting.mandates[name].tier != slot.tier)


def _may_be_home(slot: Slot, mandate: Mandate) -> bool:
    """Whether the mandate's own numbers leave room for what is planted."""
    if slot.type == MANDATE_VIOLATING:
        return len(mandate.constraints) > LEAST["failing"]
    if slot.type == CONCENTRATED and slot.placed:
        sector, name = _limit(mandate, Kind.SECTOR_LIMIT_MAX), _limit(mandate, Kind.POSITION_LIMIT_MAX)
        return sector > LEAST["sector"] and name > LEAST["name"]
    return True


_Drawn = tuple[Book, Array] | None
_Recipe = Callable[[np.random.Generator, Slot, Setting, Mandate, Mapping[str, Any]], _Drawn]


def _concentrated(
    rng: np.random.Generator, slot: Slot, setting: Setting, home: Mandate, settings: Mapping[str, Any]
) -> _Drawn:
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
    scores = 4.0 * np.isin(np.arange(len(name)), chosen)
    return _filled(rng, slot, setting, home, settings, scores=scores, demands=demands)


def _factor_tilted(
    rng: np.random.Generator, slot: Slot, setting: Setting, home: Mandate, settings: Mapping[str, Any]
) -> _Drawn:
    tilt = rng.uniform(*settings["planted"][FACTOR_TILTED]["tilt"])
    betas = setting.market.betas
    # Twice six directions; those that the largest betas can reach, or else the one that comes nearest.
    slopes = np.hstack([betas, -betas])
    floors = tilt + np.concatenate([_NEUTRAL, -_NEUTRAL])
    reach = np.sort(slopes, axis=0)[::-1][: settings["holdings"][0]].mean(axis=0) - floors
    within = np.flatnonzero(reach >= 0)
    way = int(rng.choice(within)) if len(within) else int(np.argmax(reach))
    demand = AtLeast(slopes[:, way], float(floors[way]))
    return _filled(rng, slot, setting, home, settings, scores=2 * _standard(slopes[:, way]), demands=[demand])


def _liquidity_stressed(
    rng: np.random.Generator, slot: Slot, setting: Setting, home: Mandate, settings: Mapping[str, Any]
) -> _Drawn:
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
    return Book(book.weights, book.cash, float(round(high, -5)), book.traded), trades


def _stress_vulnerable(
    rng: np.random.Generator, slot: Slot, setting: Setting, home: Mandate, settings: Mapping[str, Any]
) -> _Drawn:
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
) -> _Drawn:
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
    parts = np.maximum(rng.dirichlet(np.full(len(longs), 0.8)), _SMALLEST)
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


def _filled(
    rng: np.random.Generator,
    slot: Slot,
    setting: Setting,
    home: Mandate,
    settings: Mapping[str, Any],
    *,
    scores: Array,
    demands: Sequence[AtLeast] = (),
) -> _Drawn:
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
        cash_range[1] = min(cash_range[1], _limit(tight, Kind.CASH_MAX))
        turnover[1] = min(turnover[1], _limit(tight, Kind.TURNOVER_MAX_MONTHLY))
        if Kind.CASH_MAX in dropped:
            cash_range[0] = min(_limit(home, Kind.CASH_MAX), cash_range[1])
        if Kind.TURNOVER_MAX_MONTHLY in dropped:
            turnover[0] = min(_limit(home, Kind.TURNOVER_MAX_MONTHLY), turnover[1])
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
    crowded = [kind for kind, least in tight.items() if slot.type == CONCENTRATED and _limit(home, kind) <= least]
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


def _limit(mandate: Mandate, kind: Kind) -> float:
    value = mandate.limit(kind)
    return 1.0 if value is None else value


def _cap(mandate: Mandate) -> float:
    return _limit(mandate, Kind.POSITION_LIMIT_MAX)


def _book(
    rng: np.random.Generator, market: Market, weights: Array, settings: Mapping[str, Any], turnover: Sequence[float]
) -> tuple[Book, Array]:
    """The book of weights rounded to six decimals, cash the exact rest, with a NAV and the month's trades."""
    rounded = np.round(weights, _DECIMALS)
    low, high = settings["nav_usd"]
    nav = float(round(low * (high / low) ** rng.random(), -5))
    cash = round(1 - float(rounded.sum()), _DECIMALS)
    trades = _trades(rng, rounded, cash, float(rng.uniform(turnover[0], turnover[1])))
    return Book(rounded, cash, nav, turnover_of(trades)), trades


def _trades(rng: np.random.Generator, weights: Array, cash: float, turnover: float) -> Array:
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


def _standard(values: Array) -> Array:
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


def _facts(book: Book, setting: Setting, home: Mandate) -> dict[str, float]:
    """What the engines say of every planted risk."""
    market = setting.market
    tilts = np.abs(book.weights @ market.betas - _NEUTRAL)
    pnl = apply_all(np.vstack([book.weights, np.asarray(market.benchmark)]), setting.scenarios, market)[0]
    worst = int(np.argmin(pnl[0]))
    days = np.sort(days_to_liquidate(book, market))[::-1]
    measures = measure(book, home, market)
    return {
        "sector": float((book.weights @ market.membership).max()),
        "name": float(np.abs(book.weights).max()),
        "tilt": float(tilts.max()),
        "illiquid": illiquid_share(book, market),
        "days": float(days[min(_SLOWEST, len(days)) - 1]),
        "worst_loss": -float(pnl[0, worst]),
        "worse": float(pnl[1, worst] - pnl[0, worst]),
        "failing": float(sum(not one.passed for one in measures)),
    }


def _planted(slot: Slot, facts: Mapping[str, float]) -> bool:
    wanted = {
        CONCENTRATED: ("sector", "name"),
        FACTOR_TILTED: ("tilt",),
        LIQUIDITY_STRESSED: ("illiquid", "days"),
        MANDATE_VIOLATING: ("failing",),
        STRESS_VULNERABLE: ("worse",),
    }[slot.type]
    found = all(facts[name] >= LEAST[name] for name in wanted)
    if (slot.placed and facts["failing"]) or (slot.nearly and not facts["failing"]):
        return False
    return found


def clear_of_limits(book: Book, mandate: Mandate, market: Market, band: float) -> bool:
    """Whether no constraint's status hangs on less than `band`; whole names are counted, not measured."""
    return all(abs(one.excess) >= band for one in measure(book, mandate, market) if one.kind is not Kind.NAME_COUNT)


def _clear(book: Book, setting: Setting, home: Mandate, band: float) -> bool:
    """Whether neither a status of the home mandate nor a rank or listing of the exposures hangs on rounding."""
    market, sizes = setting.market, np.abs(book.weights[book.weights != 0])
    if sizes.min() < _SMALLEST - band / 2 or book.cash < 0 or np.diff(np.sort(sizes)[-2:])[0] < band:
        return False
    tilts = np.abs(book.weights @ market.betas - _NEUTRAL)
    sectors = np.sort(book.weights @ market.membership)
    listed = [*(tilts - LEAST_TILT), *(sectors - LEAST_SECTOR), illiquid_share(book, market) - LEAST_ILLIQUID]
    if np.abs(listed).min() < band or np.diff(sectors[-2:]).min(initial=1.0) < band:
        return False
    magnitudes = [one.magnitude for one in ranked(book, market, k=6)]
    if np.abs(np.diff(magnitudes)).min(initial=1.0) < band:
        return False
    return clear_of_limits(book, home, market, band)
