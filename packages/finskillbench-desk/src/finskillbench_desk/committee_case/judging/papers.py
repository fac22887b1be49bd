"""Part 2, the true book: what the papers call for beyond adding up the custodian's extract at the vendor's prices.

Earned is what had to be put right and was; adding up what the custodian shows earns nothing, and so does putting right
what was in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from finskillbench.scoring.values import clip, mapping, mean, numbers, share
from finskillbench_desk.committee_case.judging.agent_documents import Facts, Own
from finskillbench_desk.committee_case.ledger.nouns import Planted

OF_TRAPS = 0.7
"""Share of the part that the traps carry, the rest is for pending trades, corporate actions and cash."""
OF_CONTROLS = 0.7
"""What mending all that only looked wrong costs."""
UNITS, PRICE, CASH = 0.01, 5e-4, 1e-5
"""How far units, a price (relative) and cash (of net asset value) may be off."""
_FIELDS = {"sector": "sector", "shares": "shares_outstanding"}


@dataclass(frozen=True, slots=True)
class _Papers:
    """The part's score; what became of each trap and each control: "avoided", "fallen" or "unknown"."""

    score: float
    traps: dict[str, str]
    controls: dict[str, str]


def judged(own: Own) -> _Papers:
    """Judge the book of an answer."""
    facts = own.facts
    if not own.quantities:
        fates = {label(one): "unknown" for one in facts.planted}
        return _Papers(0.0, _of(facts, fates, trap=True), _of(facts, fates, trap=False))
    fates = {label(one): fate(own, one) for one in facts.planted}
    traps, controls = _of(facts, fates, trap=True), _of(facts, fates, trap=False)
    routine, plain = _routine(own)
    spoilt = share(sum(one != "avoided" for one in controls.values()), len(controls))
    avoided = share(sum(one == "avoided" for one in traps.values()), len(traps))
    right = OF_TRAPS * avoided + (1 - OF_TRAPS) * mean(routine)
    return _Papers(right * (1 - OF_CONTROLS * spoilt) * clip(1 - 2 * (1 - mean(plain))), traps, controls)


def label(planted: Planted) -> str:
    """How verdicts name a trap or control."""
    return f"{planted.kind}@{planted.where}"


def _of(facts: Facts, fates: Mapping[str, str], *, trap: bool) -> dict[str, str]:
    return {label(one): fates[label(one)] for one in facts.planted if one.trap is trap}


def fate(own: Own, planted: Planted) -> str:
    """What became of one trap or control."""
    if planted.field in _FIELDS:
        return _replaced(own, planted)
    units = own.quantities.get(planted.where, 0.0)
    if planted.field == "quantity":
        given, slack = units, UNITS
    else:
        if not units:
            return "unknown"
        given, slack = own.values.get(planted.where, 0.0) / units, PRICE * abs(float(planted.right))
    if abs(given - float(planted.right)) <= slack:
        return "avoided"
    return "fallen" if abs(given - float(planted.fallen)) <= slack * 10 else "unknown"


def _replaced(own: Own, planted: Planted) -> str:
    """A field of the vendor's: what the agent works with is the right value, the misleading one, or another."""
    vendor = mapping(own.facts.known["vendor"])[planted.where]
    given: float | str = own.replaced.get((planted.where, _FIELDS[planted.field])) or vendor[planted.field]
    if _same(given, planted.right):
        return "avoided"
    return "fallen" if _same(given, planted.fallen) else "unknown"


def _same(given: float | str, wanted: float | str) -> bool:
    if isinstance(given, str) or isinstance(wanted, str):
        return given == wanted
    return abs(given - wanted) <= 1e-3 * abs(wanted)


def _routine(own: Own) -> tuple[list[float], list[float]]:
    """Right or wrong: what had to be put right without being a trap (lines, cash, pending trades), and all else."""
    facts, planted = own.facts, {one.where for one in own.facts.planted}
    shown = numbers(facts.known["shown"])
    changed: list[float] = []
    plain: list[float] = []
    for name in sorted({*shown, *facts.positions, *own.quantities} - planted - {"CASH"}):
        units, value = facts.positions.get(name, (0.0, 0.0))
        right = abs(own.quantities.get(name, 0.0) - units) <= UNITS
        if units:
            right = right and abs(own.values.get(name, 0.0) - value) <= PRICE * abs(value)
        (changed if abs(shown.get(name, 0.0) - units) > UNITS else plain).append(float(right))
    nav, expected = facts.book.nav, facts.expected["book"]
    trading = facts.trading
    pending = max(
        abs(own.trading.pending_purchases - trading.pending_purchases),
        abs(own.trading.pending_sales - trading.pending_sales),
    )
    routine = [mean(changed), float(abs(own.cash - expected["cash"]) <= CASH * nav), float(pending <= CASH * nav)]
    vendor = mapping(facts.known["vendor"])
    for (issuer, field), value in own.replaced.items():
        if issuer not in planted:
            known = mapping(vendor.get(issuer))
            plain.append(float(_same(value, known.get("sector" if field == "sector" else "shares", ""))))
    return routine, plain
