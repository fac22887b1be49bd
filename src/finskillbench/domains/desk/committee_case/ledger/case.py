"""One case on paper: which security plays which part, what is planted, and the papers of a true book."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from finskillbench.domains.desk.committee_case.ledger.custody import DUPLICATE, REPLACED, SPLIT, WHOLE, Papers
from finskillbench.domains.desk.committee_case.ledger.defects import IN_QUOTES, SECTOR, SHARES, STALE, UNIT
from finskillbench.domains.desk.committee_case.ledger.lines import Own, listed_on
from finskillbench.domains.desk.committee_case.ledger.market import draw_market
from finskillbench.domains.desk.committee_case.ledger.nouns import Holdings, Ledger, Planted
from finskillbench.domains.draws import permuted
from finskillbench.panels import Panels

KINDS = (SPLIT, DUPLICATE, REPLACED, STALE, UNIT, SECTOR, SHARES)
"""Kinds of data traps."""
LEAST_ISSUERS = 20
"""Issuers below which a case has not enough names for all that happens in it."""
_RATIOS = (0.25, 0.5)


@dataclass(frozen=True, slots=True)
class Roles:
    """Who plays which part: every part another issuer's ordinary line, `planted` by place in the list of what is."""

    planted: tuple[str, ...]
    dividend: str
    bought_late: str
    paid: str
    parent: str
    acquirer: str
    bought: str
    sold: str
    new: str
    gone: str
    executed: str
    tomorrow: str
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


def draft(panels: Panels, as_of: date, wanted: Sequence[tuple[str, bool]], rng: np.random.Generator) -> Draft:
    """The market of a day with quotes and reference data as wanted; quantities are planted by `papers_of`."""
    ledger, own = draw_market(panels, as_of, rng)
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
    names = [name for name in ledger.securities if name not in own.futures and not name.startswith("G")]
    held = [name for name in roles.held if name in names and name not in roles.planted]
    unheld = [name for name in names if name not in roles.held]
    words = listed_on(own, held, permuted(unheld, rng), rng)
    lines = {name: replace(line, lists=words.get(name, ())) for name, line in ledger.securities.items()}
    return replace(ledger, securities=lines)


def _roles(ledger: Ledger, own: Own, planted: int, rng: np.random.Generator) -> Roles:
    """Parts dealt out at random; `held` are the lines that the true book holds, three quarters of the issuers'."""
    names = sorted(ledger.benchmark)
    dealt = permuted(names, rng)
    special, rest = dealt[: planted + 11], dealt[planted + 11 :]
    parts = dict(
        zip(
            ("dividend", "bought_late", "paid", "parent", "acquirer", "bought", "sold", "new", "gone", "executed",
             "tomorrow"),
            special[planted:],
            strict=True,
        )
    )  # fmt: skip
    gone = parts["gone"]
    ordinary = [name for name in special if name != gone] + rest[: max(len(rest) - 4, len(rest) * 2 // 3)]
    others = (*own.classes, *own.london, *own.foreign[:6], *own.bonds, *own.funds[:2], *own.futures, own.child)
    return Roles(planted=tuple(special[:planted]), **parts, held=(*sorted(ordinary), *others))


def whole(draft: Draft, quantities: Mapping[str, float]) -> dict[str, float]:
    """Quantities in whole units, of what corporate actions touch in multiples of `WHOLE`."""
    roles, touched = draft.roles, {draft.roles.parent, draft.roles.acquirer, *draft.roles.planted}
    rounded: dict[str, float] = {}
    for name, units in quantities.items():
        unit = WHOLE if name in touched else 1
        rounded[name] = float(np.round(units / unit) * unit)
    rounded[draft.own.child] = rounded[roles.parent] * _child_ratio(rounded[roles.parent], quantities[draft.own.child])
    return {name: units for name, units in rounded.items() if units}


def _child_ratio(parent: float, child: float) -> float:
    return min((0.05, 0.1, 0.2), key=lambda ratio: abs(parent * ratio - child))


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
    papers.dividend(roles.dividend)
    papers.dividend(roles.bought_late, later=_part(quantities, roles.bought_late, rng))
    papers.paid(roles.paid)
    papers.spin_off(roles.parent, own.child)
    ratio = float(rng.choice(_RATIOS))
    units = float(np.round(quantities[roles.acquirer] * float(rng.uniform(0.2, 0.5)) / WHOLE + 1) * WHOLE / 0.5) * 0.5
    papers.merger(own.target, roles.acquirer, units, ratio)
    papers.pending(roles.bought, _part(quantities, roles.bought, rng), 1)
    papers.pending(roles.sold, -_part(quantities, roles.sold, rng), 0)
    papers.pending(roles.new, quantities[roles.new], 0)
    gone = float(np.round(0.006 * _value(draft, quantities) / draft.prices[roles.gone]) + 1)
    papers.pending(roles.gone, -gone, 1)
    papers.executed(roles.executed)
    papers.order(roles.tomorrow, _part(quantities, roles.tomorrow, rng), -1, settles=2)
    ledger, true_cash = papers.finished(cash)
    held = {name: units for name, units in quantities.items() if units}
    last = float(ledger.quotes[own.target].closes[-1]) * draft.units[own.target]  # before it was listed no more
    holdings = Holdings(held, {**draft.prices, own.target: last}, true_cash, draft.sectors, draft.shares)
    return World(ledger, own, holdings, tuple(planted))


def _part(quantities: Mapping[str, float], name: str, rng: np.random.Generator) -> float:
    return float(max(np.round(quantities[name] * float(rng.uniform(0.1, 0.3))), 1.0))


def _value(draft: Draft, quantities: Mapping[str, float]) -> float:
    return sum(units * draft.prices[name] for name, units in quantities.items() if name not in draft.own.futures)
