"""Score part 2, the true book.

Only corrections to the custodian's extract at the vendor's prices earn credit; changing what was right loses credit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from finskillbench.scoring.values import as_object, clip, mean, numbers, share
from finskillbench_desk.committee_case.judging.agent_documents import Facts, SubmittedAnswer
from finskillbench_desk.committee_case.ledger.records import Planted

OF_TRAPS = 0.7
"""Weight of the traps in part 2; pending trades, corporate actions and cash carry the rest."""
OF_CONTROLS = 0.7
"""Share of the score lost if every control was changed."""
UNITS, PRICE, CASH = 0.01, 5e-4, 1e-5
"""Tolerances of units, prices (relative) and cash (of net asset value)."""
_FIELDS = {"sector": "sector", "shares": "shares_outstanding"}


@dataclass(frozen=True, slots=True)
class _BookScore:
    """Score of part 2, and the verdict on each trap and control: "avoided", "fallen" or "untested"."""

    score: float
    traps: dict[str, str]
    controls: dict[str, str]


def judge_book(submitted: SubmittedAnswer) -> _BookScore:
    facts = submitted.facts
    if not submitted.quantities:
        outcomes = {label(one): "untested" for one in facts.planted}
        return _BookScore(0.0, _of(facts, outcomes, trap=True), _of(facts, outcomes, trap=False))
    outcomes = {label(one): trap_outcome(submitted, one) for one in facts.planted}
    traps, controls = _of(facts, outcomes, trap=True), _of(facts, outcomes, trap=False)
    routine, plain = _routine(submitted)
    spoilt = share(sum(one != "avoided" for one in controls.values()), len(controls))
    avoided = share(sum(one == "avoided" for one in traps.values()), len(traps))
    right = OF_TRAPS * avoided + (1 - OF_TRAPS) * mean(routine)
    return _BookScore(right * (1 - OF_CONTROLS * spoilt) * clip(1 - 2 * (1 - mean(plain))), traps, controls)


def label(planted: Planted) -> str:
    return f"{planted.kind}@{planted.where}"


def _of(facts: Facts, outcomes: Mapping[str, str], *, trap: bool) -> dict[str, str]:
    return {label(one): outcomes[label(one)] for one in facts.planted if one.trap is trap}


def trap_outcome(submitted: SubmittedAnswer, planted: Planted) -> str:
    """Return "avoided", "fallen" or "untested" for one trap or control."""
    if planted.field in _FIELDS:
        return _replaced(submitted, planted)
    units = submitted.quantities.get(planted.where, 0.0)
    if planted.field == "quantity":
        value, slack = units, UNITS
    else:
        if not units:
            return "untested"
        value, slack = submitted.values.get(planted.where, 0.0) / units, PRICE * abs(float(planted.right))
    if abs(value - float(planted.right)) <= slack:
        return "avoided"
    return "fallen" if abs(value - float(planted.fallen)) <= slack * 10 else "untested"


def _replaced(submitted: SubmittedAnswer, planted: Planted) -> str:
    """Return the verdict on a vendor field by the value that the agent uses."""
    vendor = as_object(submitted.facts.known["vendor"])[planted.where]
    value: float | str = submitted.replaced.get((planted.where, _FIELDS[planted.field])) or vendor[planted.field]
    if _same(value, planted.right):
        return "avoided"
    return "fallen" if _same(value, planted.fallen) else "untested"


def _same(value: float | str, wanted: float | str) -> bool:
    if isinstance(value, str) or isinstance(wanted, str):
        return value == wanted
    return abs(value - wanted) <= 1e-3 * abs(wanted)


def _routine(submitted: SubmittedAnswer) -> tuple[list[float], list[float]]:
    """Return 0/1 marks of routine corrections (lines, cash, pending trades), and of everything else."""
    facts, planted = submitted.facts, {one.where for one in submitted.facts.planted}
    shown = numbers(facts.known["shown"])
    changed: list[float] = []
    plain: list[float] = []
    for name in sorted({*shown, *facts.positions, *submitted.quantities} - planted - {"CASH"}):
        units, value = facts.positions.get(name, (0.0, 0.0))
        right = abs(submitted.quantities.get(name, 0.0) - units) <= UNITS
        if units:
            right = right and abs(submitted.values.get(name, 0.0) - value) <= PRICE * abs(value)
        (changed if abs(shown.get(name, 0.0) - units) > UNITS else plain).append(float(right))
    nav, expected = facts.book.nav, facts.expected["book"]
    trading = facts.trading
    pending = max(
        abs(submitted.trading.pending_purchases - trading.pending_purchases),
        abs(submitted.trading.pending_sales - trading.pending_sales),
    )
    routine = [mean(changed), float(abs(submitted.cash - expected["cash"]) <= CASH * nav), float(pending <= CASH * nav)]
    vendor = as_object(facts.known["vendor"])
    for (issuer, field), value in submitted.replaced.items():
        if issuer not in planted:
            known = as_object(vendor.get(issuer))
            plain.append(float(_same(value, known.get("sector" if field == "sector" else "shares", ""))))
    return routine, plain
