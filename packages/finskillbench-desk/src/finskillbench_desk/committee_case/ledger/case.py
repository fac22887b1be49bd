"""Build one case: assign roles to securities, plant traps and controls, and write the records of a true book.

Traps in quotes and vendor data each have a control that resembles them. Planting functions return the changed ledger
and what they planted. The truth follows from the valuation policy (`build.VALUATION`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from finskillbench.domains.building import permuted
from finskillbench.panels import Panels
from finskillbench_desk.committee_case.ledger.custody import DUPLICATE, REPLACED, SPLIT, WHOLE, RecordBuilder
from finskillbench_desk.committee_case.ledger.lines import AddedLines, draw_market, listed_on
from finskillbench_desk.committee_case.ledger.records import FundLedger, Planted, TrueHoldings
from finskillbench_desk.engines.books.figures import EQUITIES
from finskillbench_desk.engines.guidelines.book import FUTURES
from finskillbench_desk.market import ListedName as Member

STALE = "stale_price"
UNIT = "currency_unit"
SECTOR = "overwritten_sector"
SHARES = "miscounted_shares"
REPEATS = 5
_MOVED = 0.03
"""Least relative move that a stale price hides."""
_THOUSAND = 1000.0


def _stale(ledger: FundLedger, where: str, rng: np.random.Generator) -> tuple[FundLedger, Planted]:
    """Repeat an old close while volume is positive; the secondary source has the current price."""
    quotes, units = ledger.quotes[where], ledger.units(where)
    move = float(rng.uniform(_MOVED, 0.09)) * (1 if rng.random() < 0.5 else -1)
    closes = quotes.closes.copy()
    closes[-REPEATS:] = np.round(closes[-1] / (1 + move), 4)
    planted = Planted(STALE, where, True, "price", quotes.secondary_close * units, float(closes[-1]) * units)
    return ledger.with_quotes(where, closes=closes), planted


def suspended(ledger: FundLedger, where: str, rng: np.random.Generator) -> tuple[FundLedger, Planted]:
    """Repeat a close without volume; the secondary source has an indication only."""
    quotes = ledger.quotes[where]
    closes, volumes = quotes.closes.copy(), quotes.volumes.copy()
    closes[-REPEATS:], volumes[-REPEATS:] = closes[-1], 0.0
    volumes[-REPEATS] = np.round(float(rng.lognormal(12, 0.5)))  # last trading day
    indication = round(float(closes[-1]) * (1 + float(rng.uniform(0.03, 0.09)) * (1 if rng.random() < 0.5 else -1)), 4)
    units = ledger.units(where)
    planted = Planted(STALE, where, False, "price", float(closes[-1]) * units, indication * units)
    return ledger.with_quotes(where, closes=closes, volumes=volumes, secondary_close=indication), planted


def _wrong_unit(ledger: FundLedger, where: str, rng: np.random.Generator) -> tuple[FundLedger, Planted]:
    """Label a line quoted in pence as one in pounds in the vendor's reference file."""
    del rng
    close, right = float(ledger.quotes[where].closes[-1]), ledger.units(where)
    line = replace(ledger.securities[where], currency="GBP")
    seen = replace(ledger, securities={**ledger.securities, where: line})
    return seen, Planted(UNIT, where, True, "price", close * right, close * seen.units(where))


def other_unit(ledger: FundLedger, where: str, rng: np.random.Generator) -> tuple[FundLedger, Planted]:
    """Label a line quoted in pence as one in pounds in the secondary source; the vendor is right."""
    del rng
    close = float(ledger.quotes[where].closes[-1])
    planted = Planted(UNIT, where, False, "price", close * ledger.units(where), close * ledger.fx["GBP"])
    return ledger.with_quotes(where, secondary_currency="GBP"), planted


def _another(ledger: FundLedger, sector: str, rng: np.random.Generator) -> str:
    sectors = sorted({name for _, name in ledger.benchmark.values()} - {sector})
    return sectors[int(rng.integers(len(sectors)))]


def overwritten(ledger: FundLedger, where: str, rng: np.random.Generator) -> tuple[FundLedger, Planted]:
    """Change a sector in the vendor's file, but not in the benchmark."""
    right = ledger.benchmark[where][1]
    wrong = _another(ledger, right, rng)
    changes = {"sector": wrong, "sector_before": right, "sector_since": _lately(ledger, rng)}
    return ledger.with_vendor_record(where, **changes), Planted(SECTOR, where, True, "sector", right, wrong)


def reclassified(ledger: FundLedger, where: str, rng: np.random.Generator) -> tuple[FundLedger, Planted]:
    """Change a sector in both the vendor's file and the benchmark."""
    right = ledger.benchmark[where][1]
    before = _another(ledger, right, rng)
    seen = ledger.with_vendor_record(where, sector_before=before, sector_since=_lately(ledger, rng))
    return seen, Planted(SECTOR, where, False, "sector", right, before)


def miscounted(ledger: FundLedger, where: str, rng: np.random.Generator) -> tuple[FundLedger, Planted]:
    """Divide the vendor's share count by 1000; the last filing disagrees."""
    del rng
    right = ledger.listed[where].shares
    wrong = round(right / _THOUSAND)
    seen = ledger.with_vendor_record(where, shares=wrong, shares_before=right)
    return seen, Planted(SHARES, where, True, "shares", right, wrong)


def _mended(ledger: FundLedger, where: str, rng: np.random.Generator) -> tuple[FundLedger, Planted]:
    """Multiply the vendor's former share count by 1000, to the count of the last filing."""
    del rng
    right = ledger.listed[where].shares
    before = round(right / _THOUSAND)
    seen = ledger.with_vendor_record(where, shares_before=before)
    return seen, Planted(SHARES, where, False, "shares", right, before)


def _lately(ledger: FundLedger, rng: np.random.Generator) -> date:
    return ledger.sessions[-int(rng.integers(4, 15))]


Plant = Callable[[FundLedger, str, np.random.Generator], tuple[FundLedger, Planted]]
IN_QUOTES: dict[str, tuple[Plant, Plant]] = {
    STALE: (_stale, suspended),
    UNIT: (_wrong_unit, other_unit),
    SECTOR: (overwritten, reclassified),
    SHARES: (miscounted, _mended),
}
"""Functions that plant the trap, and its control, by kind."""


KINDS = (SPLIT, DUPLICATE, REPLACED, STALE, UNIT, SECTOR, SHARES)
LEAST_ISSUERS = 28
_RATIOS = (0.25, 0.5)
_CHILD_RATIOS = (0.05, 0.1, 0.2)
_BOOKED = 2
"""Spin-offs, and mergers, that the custodians have booked already."""
_NOT_HELD = 0.12
"""Share of the benchmark's ordinary lines that the book does not hold."""
_PARTS = {"parents": 5, "acquirers": 2, "bought": 26, "sold": 20, "new": 5, "gone": 3, "executed": 34, "tomorrow": 8}
"""Lines per exclusive role, if the market has enough."""
_UNPAID, _PAID, _ANNOUNCED = 36, 22, 14
"""Dividends due, paid, and announced for later."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Lines by role; exclusive roles share no line, and `planted` has one line per planted item.

    `new` lines come from a pending purchase alone, `gone` lines leave by a pending sale, `tomorrow` lines trade on a
    later day. `paying` lines are in the order in which they get dividends.
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
class MarketDraft:
    """Market with planted quotes and vendor data, before holdings.

    `units` are true dollars of one unit at a price of 1, `prices` true dollars of one unit. `wanted` are kinds with
    True for a trap, False for a control.
    """

    ledger: FundLedger
    added: AddedLines
    roles: Roles
    wanted: tuple[tuple[str, bool], ...]
    planted: tuple[Planted, ...]
    units: dict[str, float]
    prices: dict[str, float]
    sectors: dict[str, str]
    shares: dict[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class CommitteeWorld:
    ledger: FundLedger
    added: AddedLines
    holdings: TrueHoldings
    planted: tuple[Planted, ...]


def draft_market(
    panels: Panels, members: Sequence[Member], as_of: date, wanted: Sequence[tuple[str, bool]], rng: np.random.Generator
) -> MarketDraft:
    """Draw a market with the wanted traps in quotes and vendor data; `write_records` plants those in quantities."""
    ledger, added = draw_market(panels, members, as_of, rng)
    units = {name: ledger.units(name) for name in ledger.quotes}
    prices = {name: float(quotes.closes[-1]) * units[name] for name, quotes in ledger.quotes.items()}
    sectors = {name: row.sector for name, row in ledger.listed.items()}
    shares = {name: row.shares for name, row in ledger.listed.items()}
    roles = _roles(ledger, added, len(wanted), rng)
    ledger = _with_lists(ledger, added, roles, rng)
    london = iter(added.london)
    done: list[Planted] = []
    for place, (kind, trap) in enumerate(wanted):
        if kind in IN_QUOTES:
            where = next(london) if kind == UNIT else roles.planted[place]
            ledger, planted = IN_QUOTES[kind][0 if trap else 1](ledger, where, rng)
            done.append(planted)
            if planted.field == "price":
                prices[where] = float(planted.right)
    return MarketDraft(ledger, added, roles, tuple(wanted), tuple(done), units, prices, sectors, shares)


def _with_lists(ledger: FundLedger, added: AddedLines, roles: Roles, rng: np.random.Generator) -> FundLedger:
    names = [name for name, line in ledger.securities.items() if line.kind not in (*FUTURES, "government_bond")]
    held = [name for name in roles.held if name in names and name not in roles.planted]
    unheld = [name for name in names if name not in roles.held]
    lists = listed_on(added, held, permuted(unheld, rng), rng)
    lines = {name: replace(line, lists=lists.get(name, ())) for name, line in ledger.securities.items()}
    return replace(ledger, securities=lines)


def _roles(ledger: FundLedger, added: AddedLines, planted: int, rng: np.random.Generator) -> Roles:
    """Assign roles at random; planted items, spin-offs and mergers get issuers of the benchmark."""
    names = permuted(sorted(ledger.benchmark), rng)
    first = planted + _PARTS["parents"] + _PARTS["acquirers"] + _PARTS["gone"]
    special, ordinary = names[:first], names[first:]
    ordinary = ordinary[: len(ordinary) - int(_NOT_HELD * len(ordinary))]
    foreign, funds = added.foreign[: -len(added.foreign) // 4], added.funds[:-1]
    further = (*added.classes, *added.london, *foreign, *added.bonds, *funds)
    gone = special[-_PARTS["gone"] :]
    dealt = permuted([*ordinary, *further], rng)
    playing = ("bought", "sold", "new", "executed", "tomorrow")
    share = min(1.0, len(dealt) / sum(_PARTS[name] for name in playing))
    parts: dict[str, tuple[str, ...]] = {}
    for name in playing:
        count = int(share * _PARTS[name])
        parts[name], dealt = tuple(dealt[:count]), dealt[count:]
    shares = [name for name in (*ordinary, *further) if ledger.securities[name].kind in EQUITIES]
    held = (*sorted(set(special) - set(gone)), *sorted(ordinary), *further, *added.futures, *added.children)
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


def round_quantities(draft: MarketDraft, quantities: Mapping[str, float]) -> dict[str, float]:
    """Round quantities to whole units, and to multiples of `WHOLE` where corporate actions apply."""
    roles = draft.roles
    touched = {*roles.parents, *roles.acquirers, *roles.planted}
    rounded: dict[str, float] = {}
    for name, units in quantities.items():
        unit = WHOLE if name in touched else 1
        rounded[name] = float(np.round(units / unit) * unit)
    for parent, child in zip(roles.parents, draft.added.children, strict=True):
        rounded[child] = rounded[parent] * _child_ratio(rounded[parent], quantities[child])
    return {name: units for name, units in rounded.items() if units}


def _child_ratio(parent: float, child: float) -> float:
    return min(_CHILD_RATIOS, key=lambda ratio: abs(parent * ratio - child))


def write_records(
    draft: MarketDraft, quantities: Mapping[str, float], cash: float, rng: np.random.Generator
) -> CommitteeWorld:
    """Write the records of a true book (rounded by `round_quantities`) with all traps and controls of the draft."""
    roles, added = draft.roles, draft.added
    records = RecordBuilder(draft.ledger, draft.units, quantities, rng)
    planted: list[Planted] = list(draft.planted)
    for place, (kind, trap) in enumerate(draft.wanted):
        where = roles.planted[place]
        size = float(max(np.round(quantities.get(where, 0.0) * float(rng.uniform(0.15, 0.3))), 1.0))
        if kind == SPLIT:
            planted.append(records.split(where, booked=not trap))
        elif kind == DUPLICATE:
            planted.append(records.doubled(where, same=trap))
        elif kind == REPLACED:
            planted.append(records.replaced(where, size, both_count=not trap))
    _orders(records, draft, quantities)
    _events(records, draft, quantities)
    ledger, true_cash = records.finished(cash)
    held = {name: units for name, units in quantities.items() if units}
    # Acquired lines keep their last price before delisting.
    last = {name: float(ledger.quotes[name].closes[-1]) * draft.units[name] for name in added.targets}
    holdings = TrueHoldings(held, {**draft.prices, **last}, true_cash, draft.sectors, draft.shares)
    return CommitteeWorld(ledger, added, holdings, tuple(planted))


def _orders(records: RecordBuilder, draft: MarketDraft, quantities: Mapping[str, float]) -> None:
    """Write pending orders (some in two lines), settled ones, and orders of a later day."""
    roles, rng, futures = draft.roles, records.rng, draft.added.futures
    value = math.fsum(units * draft.prices[name] for name, units in quantities.items() if name not in futures)

    def part(name: str) -> float:
        return float(max(np.round(quantities[name] * float(rng.uniform(0.05, 0.3))), 1.0))

    for names, sign in ((roles.bought, 1), (roles.sold, -1)):
        for name in names:
            for back in permuted((0, 1), rng)[: int(rng.integers(1, 3))]:
                records.pending(name, sign * part(name), back)
    for name in roles.new:
        records.pending(name, quantities[name], int(rng.integers(2)))
    for name in roles.gone:
        records.pending(name, -float(np.round(0.006 * value / draft.prices[name]) + 1), int(rng.integers(2)))
    for name in roles.executed:
        records.executed(name)
        for _ in range(int(rng.integers(0, 4))):
            records.order(name, -part(name), int(rng.integers(2, 20)), settles=2)
    for name in roles.tomorrow:
        records.order(name, part(name) * float(rng.choice([-1, 1])), -int(rng.integers(1, 4)), settles=2)


def _events(records: RecordBuilder, draft: MarketDraft, quantities: Mapping[str, float]) -> None:
    """Write corporate actions: booked, not yet booked, and of a later day."""
    roles, added, rng = draft.roles, draft.added, records.rng
    for place, (parent, child) in enumerate(zip(roles.parents, added.children, strict=True)):
        ratio = round(quantities[child] / quantities[parent], 4)
        records.spin_off(parent, child, ratio, booked=place < _BOOKED)
    for place, target in enumerate(added.targets):
        acquirer, ratio = roles.acquirers[place % len(roles.acquirers)], float(rng.choice(_RATIOS))
        taken = np.round(quantities[acquirer] * float(rng.uniform(0.2, 0.5)) / WHOLE + 1) * WHOLE
        records.merger(target, acquirer, float(taken), ratio, booked=place < _BOOKED)
    paying = iter(roles.paying)
    share = min(1.0, len(roles.paying) / (_UNPAID + _PAID + _ANNOUNCED))
    for count, happens in ((_UNPAID, records.dividend), (_PAID, records.paid), (_ANNOUNCED, records.announced)):
        for _ in range(int(share * count)):
            happens(next(paying))
