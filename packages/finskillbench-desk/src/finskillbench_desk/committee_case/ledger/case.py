"""One case on paper: which security plays which part, what is planted, and the papers of a true book.

Traps in quotes and in what the vendor lists, and controls that look like them; each changes what a case shows.

What is true follows from the valuation policy in `words`; every function returns the ledger as shown and what it did.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from finskillbench.domains.building import permuted
from finskillbench.panels import Panels
from finskillbench_desk.committee_case.ledger.custody import DUPLICATE, REPLACED, SPLIT, WHOLE, Papers
from finskillbench_desk.committee_case.ledger.lines import Own, draw_market, listed_on
from finskillbench_desk.committee_case.ledger.nouns import Holdings, Ledger, Planted
from finskillbench_desk.engines.books.figures import EQUITIES
from finskillbench_desk.engines.guidelines.book import FUTURES
from finskillbench_desk.market import Listed as Member

STALE = "stale_price"
UNIT = "currency_unit"
SECTOR = "overwritten_sector"
SHARES = "miscounted_shares"
REPEATS = 5
"""Sessions over which a close is repeated."""
_MOVED = 0.03
"""Least relative move that a stale price hides."""
_THOUSAND = 1000.0


def _stale(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """The vendor repeats an old close while units change hands; the second source has gone on."""
    quotes = ledger.quotes[where]
    move = float(rng.uniform(_MOVED, 0.09)) * (1 if rng.random() < 0.5 else -1)
    closes = quotes.closes.copy()
    closes[-REPEATS:] = np.round(closes[-1] / (1 + move), 4)
    seen = replace(quotes, closes=closes)
    units = ledger.units(where)
    planted = Planted(STALE, where, True, "price", quotes.second * units, float(closes[-1]) * units)
    return ledger.with_quotes(where, seen), planted


def suspended(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """A close repeats because nothing was traded; the second source has an indication that is no price."""
    quotes = ledger.quotes[where]
    closes, volumes = quotes.closes.copy(), quotes.volumes.copy()
    closes[-REPEATS:], volumes[-REPEATS:] = closes[-1], 0.0
    volumes[-REPEATS] = np.round(float(rng.lognormal(12, 0.5)))  # the day of the last trade
    second = round(float(closes[-1]) * (1 + float(rng.uniform(0.03, 0.09)) * (1 if rng.random() < 0.5 else -1)), 4)
    units = ledger.units(where)
    planted = Planted(STALE, where, False, "price", float(closes[-1]) * units, second * units)
    return ledger.with_quotes(where, replace(quotes, closes=closes, volumes=volumes, second=second)), planted


def _wrong_unit(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """A line quoted in pence that the vendor's reference calls one in pounds."""
    del rng
    close, right = float(ledger.quotes[where].closes[-1]), ledger.units(where)
    line = replace(ledger.securities[where], currency="GBP")
    seen = replace(ledger, securities={**ledger.securities, where: line})
    return seen, Planted(UNIT, where, True, "price", close * right, close * seen.units(where))


def other_unit(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """A line quoted in pence, as the vendor says; it is the second source that calls the same number pounds."""
    del rng
    quotes = ledger.quotes[where]
    close = float(quotes.closes[-1])
    planted = Planted(UNIT, where, False, "price", close * ledger.units(where), close * ledger.fx["GBP"])
    return ledger.with_quotes(where, replace(quotes, second_currency="GBP")), planted


def _another(ledger: Ledger, sector: str, rng: np.random.Generator) -> str:
    others = sorted({name for _, name in ledger.benchmark.values()} - {sector})
    return others[int(rng.integers(len(others)))]


def overwritten(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """The vendor has changed a sector that the index has not."""
    right = ledger.benchmark[where][1]
    wrong = _another(ledger, right, rng)
    row = replace(ledger.listed[where], sector=wrong, sector_before=right, sector_since=_lately(ledger, rng))
    seen = replace(ledger, listed={**ledger.listed, where: row})
    return seen, Planted(SECTOR, where, True, "sector", right, wrong)


def reclassified(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """The vendor has changed a sector, and the index has too: the company is in another one now."""
    right = ledger.benchmark[where][1]
    before = _another(ledger, right, rng)
    row = replace(ledger.listed[where], sector_before=before, sector_since=_lately(ledger, rng))
    seen = replace(ledger, listed={**ledger.listed, where: row})
    return seen, Planted(SECTOR, where, False, "sector", right, before)


def miscounted(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """The vendor's new count of shares is a thousandth of what the cover of the last filing says."""
    del rng
    right = ledger.listed[where].shares
    row = replace(ledger.listed[where], shares=round(right / _THOUSAND), shares_before=right)
    seen = replace(ledger, listed={**ledger.listed, where: row})
    return seen, Planted(SHARES, where, True, "shares", right, row.shares)


def _mended(ledger: Ledger, where: str, rng: np.random.Generator) -> tuple[Ledger, Planted]:
    """The vendor's count has changed a thousandfold: to what the filing says."""
    del rng
    right = ledger.listed[where].shares
    row = replace(ledger.listed[where], shares_before=round(right / _THOUSAND))
    seen = replace(ledger, listed={**ledger.listed, where: row})
    return seen, Planted(SHARES, where, False, "shares", right, row.shares_before)


def _lately(ledger: Ledger, rng: np.random.Generator) -> date:
    return ledger.sessions[-int(rng.integers(4, 15))]


Plant = Callable[[Ledger, str, np.random.Generator], tuple[Ledger, Planted]]
IN_QUOTES: dict[str, tuple[Plant, Plant]] = {
    STALE: (_stale, suspended),
    UNIT: (_wrong_unit, other_unit),
    SECTOR: (overwritten, reclassified),
    SHARES: (miscounted, _mended),
}
"""Kind to what plants the trap, and what plants the control."""


KINDS = (SPLIT, DUPLICATE, REPLACED, STALE, UNIT, SECTOR, SHARES)
"""Kinds of data traps."""
LEAST_ISSUERS = 28
"""Issuers below which a case has not enough names for all that happens in it."""
_RATIOS = (0.25, 0.5)
_CHILD_RATIOS = (0.05, 0.1, 0.2)
_BOOKED = 2
"""Spin-offs, and mergers, that the custodians have booked already."""
_NOT_HELD = 0.12
"""Share of the benchmark's ordinary lines that the book does not hold."""
_PARTS = {"parents": 5, "acquirers": 2, "bought": 26, "sold": 20, "new": 5, "gone": 3, "executed": 34, "tomorrow": 8}
"""How many lines play each part that no other line may share with it, where the market has so many."""
_UNPAID, _PAID, _ANNOUNCED = 36, 22, 14
"""Dividends that are due, that were paid, and that go ex later."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Who plays which part: every part other lines, `planted` by place in the list of what is planted.

    `new` are lines that a pending purchase alone brings in, `gone` those that a pending sale takes out, `tomorrow`
    those that are traded on a later day. `paying` are lines in the order in which dividends fall to them.
    """

    planted: tuple[str, ...]
    parents: tuple[str, ...]
    acquirers: tuple[str, ...]
    bought: tuple[str, ...]
    sold: tuple[str, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    executed: tuple[str, ...]
    tomorrow: tuple[str, ...]
    paying: tuple[str, ...]
    held: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A market with what is planted in its quotes, before anything is held.

    `units` are the true dollars of one unit at a price of 1, whatever currency the vendor names, `prices` those of one
    unit; `wanted` are kinds with whether a trap or a control is planted.
    """

    ledger: Ledger
    own: Own
    roles: Roles
    wanted: tuple[tuple[str, bool], ...]
    planted: tuple[Planted, ...]
    units: dict[str, float]
    prices: dict[str, float]
    sectors: dict[str, str]
    shares: dict[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A case as shown, what is true of it, and what is planted."""

    ledger: Ledger
    own: Own
    holdings: Holdings
    planted: tuple[Planted, ...]


def draft(
    panels: Panels,
    members: Sequence[Member],
    as_of: date,
    wanted: Sequence[tuple[str, bool]],
    rng: np.random.Generator,
) -> Draft:
    """The market of a day with quotes and reference data as wanted; quantities are planted by `papers_of`."""
    ledger, own = draw_market(panels, members, as_of, rng)
    units = {name: ledger.units(name) for name in ledger.quotes}
    prices = {name: float(quotes.closes[-1]) * units[name] for name, quotes in ledger.quotes.items()}
    sectors = {name: row.sector for name, row in ledger.listed.items()}
    shares = {name: row.shares for name, row in ledger.listed.items()}
    roles = _roles(ledger, own, len(wanted), rng)
    ledger = _with_lists(ledger, own, roles, rng)
    london = iter(own.london)
    done: list[Planted] = []
    for place, (kind, trap) in enumerate(wanted):
        if kind in IN_QUOTES:
            where = next(london) if kind == UNIT else roles.planted[place]
            ledger, planted = IN_QUOTES[kind][0 if trap else 1](ledger, where, rng)
            done.append(planted)
            if planted.field == "price":
                prices[where] = float(planted.right)
    return Draft(ledger, own, roles, tuple(wanted), tuple(done), units, prices, sectors, shares)


def _with_lists(ledger: Ledger, own: Own, roles: Roles, rng: np.random.Generator) -> Ledger:
    """The ledger with lines on the lists that guidelines speak of."""
    names = [name for name, line in ledger.securities.items() if line.kind not in (*FUTURES, "government_bond")]
    held = [name for name in roles.held if name in names and name not in roles.planted]
    unheld = [name for name in names if name not in roles.held]
    words = listed_on(own, held, permuted(unheld, rng), rng)
    lines = {name: replace(line, lists=words.get(name, ())) for name, line in ledger.securities.items()}
    return replace(ledger, securities=lines)


def _roles(ledger: Ledger, own: Own, planted: int, rng: np.random.Generator) -> Roles:
    """Parts dealt out at random: what is planted, and who spins off and takes over, to issuers of the benchmark."""
    names = permuted(sorted(ledger.benchmark), rng)
    first = planted + _PARTS["parents"] + _PARTS["acquirers"] + _PARTS["gone"]
    special, ordinary = names[:first], names[first:]
    ordinary = ordinary[: len(ordinary) - int(_NOT_HELD * len(ordinary))]
    others = (*own.classes, *own.london, *own.foreign[: -len(own.foreign) // 4], *own.bonds, *own.funds[:-1])
    gone = special[-_PARTS["gone"] :]
    dealt = permuted([*ordinary, *others], rng)
    playing = ("bought", "sold", "new", "executed", "tomorrow")
    share = min(1.0, len(dealt) / sum(_PARTS[name] for name in playing))
    parts: dict[str, tuple[str, ...]] = {}
    for name in playing:
        count = int(share * _PARTS[name])
        parts[name], dealt = tuple(dealt[:count]), dealt[count:]
    shares = [name for name in (*ordinary, *others) if ledger.securities[name].kind in EQUITIES]
    held = (*sorted(set(special) - set(gone)), *sorted(ordinary), *others, *own.futures, *own.children)
    place = planted + _PARTS["parents"]
    return Roles(
        planted=tuple(special[:planted]),
        parents=tuple(special[planted:place]),
        acquirers=tuple(special[place : -_PARTS["gone"]]),
        gone=tuple(gone),
        paying=tuple(permuted(shares, rng)),
        held=held,
        **parts,
    )


def whole(draft: Draft, quantities: Mapping[str, float]) -> dict[str, float]:
    """Quantities in whole units, of what corporate actions touch in multiples of `WHOLE`."""
    roles = draft.roles
    touched = {*roles.parents, *roles.acquirers, *roles.planted}
    rounded: dict[str, float] = {}
    for name, units in quantities.items():
        unit = WHOLE if name in touched else 1
        rounded[name] = float(np.round(units / unit) * unit)
    for parent, child in zip(roles.parents, draft.own.children, strict=True):
        rounded[child] = rounded[parent] * _child_ratio(rounded[parent], quantities[child])
    return {name: units for name, units in rounded.items() if units}


def _child_ratio(parent: float, child: float) -> float:
    return min(_CHILD_RATIOS, key=lambda ratio: abs(parent * ratio - child))


def papers_of(draft: Draft, quantities: Mapping[str, float], cash: float, rng: np.random.Generator) -> World:
    """The papers of a true book of whole units (see `whole`), with every trap and control of the draft."""
    roles, own = draft.roles, draft.own
    papers = Papers(draft.ledger, draft.units, quantities, rng)
    planted: list[Planted] = list(draft.planted)
    for place, (kind, trap) in enumerate(draft.wanted):
        where = roles.planted[place]
        size = float(max(np.round(quantities.get(where, 0.0) * float(rng.uniform(0.15, 0.3))), 1.0))
        if kind == SPLIT:
            planted.append(papers.split(where, booked=not trap))
        elif kind == DUPLICATE:
            planted.append(papers.doubled(where, same=trap))
        elif kind == REPLACED:
            planted.append(papers.replaced(where, size, stands=not trap))
    _orders(papers, draft, quantities, rng)
    _events(papers, draft, quantities, rng)
    ledger, true_cash = papers.finished(cash)
    held = {name: units for name, units in quantities.items() if units}
    # What was taken over has the price that it had before it was listed no more.
    last = {name: float(ledger.quotes[name].closes[-1]) * draft.units[name] for name in own.targets}
    holdings = Holdings(held, {**draft.prices, **last}, true_cash, draft.sectors, draft.shares)
    return World(ledger, own, holdings, tuple(planted))


def _orders(papers: Papers, draft: Draft, quantities: Mapping[str, float], rng: np.random.Generator) -> None:
    """The blotter: what is pending, some of it in two lines, what has settled, what is of a later day."""
    roles, value = draft.roles, _value(draft, quantities)

    def part(name: str) -> float:
        return float(max(np.round(quantities[name] * float(rng.uniform(0.05, 0.3))), 1.0))

    for names, sign in ((roles.bought, 1), (roles.sold, -1)):
        for name in names:
            for back in permuted((0, 1), rng)[: int(rng.integers(1, 3))]:
                papers.pending(name, sign * part(name), back)
    for name in roles.new:
        papers.pending(name, quantities[name], int(rng.integers(2)))
    for name in roles.gone:
        papers.pending(name, -float(np.round(0.006 * value / draft.prices[name]) + 1), int(rng.integers(2)))
    for name in roles.executed:
        papers.executed(name)
        for _ in range(int(rng.integers(0, 4))):
            papers.order(name, -part(name), int(rng.integers(2, 20)), settles=2)
    for name in roles.tomorrow:
        papers.order(name, part(name) * float(rng.choice([-1, 1])), -int(rng.integers(1, 4)), settles=2)


def _events(papers: Papers, draft: Draft, quantities: Mapping[str, float], rng: np.random.Generator) -> None:
    """Corporate actions: some are booked, some are to be booked, some are of a later day."""
    roles, own = draft.roles, draft.own
    for place, (parent, child) in enumerate(zip(roles.parents, own.children, strict=True)):
        ratio = round(quantities[child] / quantities[parent], 4)
        papers.spin_off(parent, child, ratio, booked=place < _BOOKED)
    for place, target in enumerate(own.targets):
        acquirer, ratio = roles.acquirers[place % len(roles.acquirers)], float(rng.choice(_RATIOS))
        taken = np.round(quantities[acquirer] * float(rng.uniform(0.2, 0.5)) / WHOLE + 1) * WHOLE
        papers.merger(target, acquirer, float(taken), ratio, booked=place < _BOOKED)
    paying = iter(roles.paying)
    share = min(1.0, len(roles.paying) / (_UNPAID + _PAID + _ANNOUNCED))
    for count, happens in ((_UNPAID, papers.dividend), (_PAID, papers.paid), (_ANNOUNCED, papers.announced)):
        for _ in range(int(share * count)):
            happens(next(paying))


def _value(draft: Draft, quantities: Mapping[str, float]) -> float:
    return math.fsum(units * draft.prices[name] for name, units in quantities.items() if name not in draft.own.futures)
