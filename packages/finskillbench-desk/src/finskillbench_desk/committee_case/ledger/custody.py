"""Derive custodian lots, blotter, corporate actions and settled balances from a true book.

Unbooked items are subtracted from the true quantities, and planted items are added to or left out of the records. The
truth is never computed from the records here; `rederive` does that with independent code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from finskillbench.domains.building import permuted
from finskillbench_desk.committee_case.ledger.records import (
    ActionType,
    BlotterOrder,
    CorporateAction,
    FundLedger,
    Lot,
    Planted,
)

SPLIT = "missed_split"
DUPLICATE = "duplicate_line"
REPLACED = "replaced_trade"
WHOLE = 60
"""Quantities with corporate actions are multiples of this, so that every ratio yields whole units."""
CUSTODIANS = ("NORTH", "SOUTH")
BALANCES = {"EUR": 0.08, "GBP": 0.11, "JPY": 0.05, "CHF": 0.04, "CAD": 0.06}
"""Share of the settled cash by currency; the rest is in dollars."""
_SPLITS = (1.5, 2.0, 3.0, 4.0)
LOTS = (36, 66)
"""Bounds of the number of lots per line (upper one exclusive): too many to add up without a script."""
OF_SPLIT = (6, 13)
"""The same for a line with a split, whose lots are checked one by one."""
_SMALLEST = 10
"""Average units per lot below which a line is one lot."""
_LONGEST = 12
"""Most sessions since the ex-date of an unpaid dividend."""


def _business_day(day: date, steps: int) -> date:
    while steps:
        day += timedelta(days=1)
        steps -= day.weekday() < 5
    return day


class RecordBuilder:
    """Builder of records from true units; `settled` are units the custodians show, `units` true dollars at price 1."""

    def __init__(
        self, ledger: FundLedger, units: Mapping[str, float], quantities: Mapping[str, float], rng: np.random.Generator
    ) -> None:
        self.ledger, self.units, self.rng = ledger, units, rng
        self.settled = dict(quantities)
        self.lots: list[Lot] = []
        self.orders: list[BlotterOrder] = []
        self.events: list[CorporateAction] = []
        self._first_lot = int(rng.integers(10_000, 90_000))
        self._numbers = iter(rng.permutation(np.arange(1000, 9999)).tolist())
        self.dollars = 0.0
        """Dollars in the true cash that are not in the custodians' balances yet."""
        self.closed: set[str] = set()
        """Securities with finished lots; nothing else may happen to them."""

    def close(self, security: str, back: int) -> float:
        """Return the close `back` sessions before the last."""
        return float(self.ledger.quotes[security].closes[-1 - back])

    def day(self, back: int) -> date:
        """Return the session `back` sessions before the last; a later weekday if `back` is negative."""
        return self.ledger.sessions[-1 - back] if back >= 0 else _business_day(self.ledger.as_of, -back)

    def event(self, action: ActionType, security: str, back: int, **details: float | str) -> CorporateAction:
        """Add a corporate action with its ex-date `back` sessions ago and its pay date after the case date."""
        pay = _business_day(max(self.ledger.as_of, self.day(back)), int(self.rng.integers(1, 12)))
        number = f"CA-{next(self._numbers)}"
        found = CorporateAction(number, action, security, self.day(back), pay, **details)  # pyright: ignore[reportArgumentType]
        self.events.append(found)
        return found

    def order(
        self, security: str, quantity: float, back: int, *, settles: int, replaces: BlotterOrder | None = None
    ) -> BlotterOrder:
        """Add a blotter line traded `back` sessions ago near the close; on a later day if `back` is negative."""
        day = self.day(back)
        price = round(self.close(security, max(back, 0)) * (1 + float(self.rng.normal(0, 0.001))), 4)
        number, settled = f"T-{next(self._numbers)}", _business_day(day, settles)
        found = BlotterOrder(number, day, settled, security, quantity, price, replaces.trade if replaces else "")
        self.orders.append(found)
        return found

    def pending(
        self, security: str, quantity: float, back: int, *, replaces: BlotterOrder | None = None
    ) -> BlotterOrder:
        """Add an order of the true book that settles after the case date."""
        found = self.order(security, quantity, back, settles=back + 2, replaces=replaces)
        self.settled[security] = self.settled.get(security, 0.0) - quantity
        self.dollars -= quantity * found.price * self.units[security]
        return found

    def dividend(self, security: str) -> None:
        """Add an unpaid dividend on the units of the true book held at the ex-date; call after all orders."""
        back = int(self.rng.integers(1, _LONGEST))
        cash = self._amount(security, back)
        ex = self.event(ActionType.DIVIDEND, security, back, cash=cash).ex_date
        gone = {order.replaces for order in self.orders}
        since = [one for one in self.orders if one.security == security and one.trade not in gone]
        pending = math.fsum(one.quantity for one in since if one.trade_date <= self.ledger.as_of < one.settle_date)
        traded = math.fsum(one.quantity for one in since if ex <= one.trade_date <= self.ledger.as_of)
        self.dollars += (self.settled.get(security, 0.0) + pending - traded) * cash * self.units[security]

    def paid(self, security: str) -> None:
        back = int(self.rng.integers(14, 24))
        found = self.event(ActionType.DIVIDEND, security, back, cash=self._amount(security, back))
        self.events[-1] = replace(found, pay_date=self.day(int(self.rng.integers(0, 10))))

    def announced(self, security: str) -> None:
        self.event(ActionType.DIVIDEND, security, -int(self.rng.integers(1, 8)), cash=self._amount(security, 0))

    def _amount(self, security: str, back: int) -> float:
        return round(self.close(security, back) * float(self.rng.uniform(0.004, 0.012)), 4)

    def spin_off(self, parent: str, child: str, ratio: float, *, booked: bool) -> None:
        """Add a spin-off; the custodians show the child's units only if `booked`."""
        back = int(self.rng.integers(2, 6))
        self.event(ActionType.SPIN_OFF, parent, back, ratio=ratio, into=child)
        if booked:
            self._lots(child, self.settled[child], back)
            self.closed.add(child)
        else:
            del self.settled[child]

    def merger(self, target: str, acquirer: str, units: float, ratio: float, *, booked: bool) -> None:
        """Add a merger; the true book has the acquirer's units, the custodians the target's unless `booked`."""
        cash, back = round(self.close(target, 0) * float(self.rng.uniform(0.05, 0.2)), 2), int(self.rng.integers(2, 6))
        found = self.event(ActionType.MERGER, target, back, ratio=ratio, cash=cash, into=acquirer)
        quotes = self.ledger.quotes[target]
        closes, volumes = quotes.closes.copy(), quotes.volumes.copy()
        closes[-1 - back :], volumes[-1 - back :] = closes[-2 - back], 0.0  # delisted
        self.ledger = self.ledger.with_quotes(target, closes=closes, volumes=volumes)
        if booked:
            self.events[-1] = replace(found, pay_date=self.day(0))
            return
        self.settled[target] = units
        self.settled[acquirer] -= units * ratio
        self.dollars += units * cash * self.units[target]

    def split(self, security: str, *, booked: bool) -> Planted:
        """Add a split 6 to 11 sessions ago; unit costs of earlier lots show whether it is booked."""
        back, ratio = int(self.rng.integers(6, 12)), float(self.rng.choice(_SPLITS))
        self.event(ActionType.SPLIT, security, back, ratio=ratio)
        closes = self.ledger.quotes[security].closes.copy()
        closes[: len(closes) - 1 - back] = np.round(closes[: len(closes) - 1 - back] * ratio, 4)
        self.ledger = self.ledger.with_quotes(security, closes=closes)
        right = self.settled[security]
        factor = 1.0 if booked else 1.0 / ratio
        for part in self._parts(right, WHOLE / 10, OF_SPLIT):
            before = int(self.rng.integers(back + 5, len(closes) - 2))
            cost = self.close(security, before) / (ratio if booked else 1.0)
            self._lot(security, part * factor, self.ledger.sessions[-1 - before], round(cost, 4))
        self.closed.add(security)
        return Planted(SPLIT, security, not booked, "quantity", right, right * (ratio if booked else factor))

    def doubled(self, security: str, *, same: bool) -> Planted:
        """Add a lot printed twice (`same`, the trap), or two lots with equal day and size (the control)."""
        right = self.settled[security]
        first = len(self.lots)
        if same:
            self.write_lots(security)
            printed = max(self.lots[first:], key=lambda lot: lot.quantity)
            self.lots.append(replace(printed, custodian=CUSTODIANS[int(self.rng.integers(2))]))
            return Planted(DUPLICATE, security, True, "quantity", right, right + printed.quantity)
        alike = right * float(self.rng.uniform(0.03, 0.06)) // 1
        back = int(self.rng.integers(4, 30))
        cost = round(self.close(security, back), 4)
        for _ in range(2):
            self._lot(security, alike, self.ledger.sessions[-1 - back], cost)
        self.write_lots(security, right - 2 * alike, taken=back)
        return Planted(DUPLICATE, security, False, "quantity", right, right - alike)

    def replaced(self, security: str, size: float, *, both_count: bool) -> Planted:
        """Add two equal pending lines: the later replaces the earlier (trap), or `both_count` (control)."""
        right = self.settled[security]
        if both_count:
            self.pending(security, size, 0)
            self.pending(security, size, 0)
            return Planted(REPLACED, security, False, "quantity", right, right - size)
        first = self.order(security, size, 1, settles=3)
        self.pending(security, size, 0, replaces=first)
        return Planted(REPLACED, security, True, "quantity", right, right + size)

    def executed(self, security: str) -> None:
        """Add a settled order: a purchase becomes a lot, a sale leaves the lots as they are."""
        part = float(np.round(self.settled[security] * float(self.rng.uniform(0.05, 0.2))))
        if self.rng.random() < 0.4:
            self.order(security, -part, int(self.rng.integers(2, 20)), settles=2)
            return
        found = self.order(security, part, int(self.rng.integers(2, 20)), settles=2)
        self.write_lots(security, self.settled[security] - part)
        self._lot(security, part, found.trade_date, found.price)

    def write_lots(self, security: str, units: float | None = None, *, taken: int = 0) -> None:
        """Write lots of distinct days, at closes of the window or long before it; no day is `taken` sessions back."""
        self.closed.add(security)
        free = [back for back in permuted(range(4, len(self.ledger.sessions) - 2), self.rng) if back != taken]
        for part in self._parts(self.settled.get(security, 0.0) if units is None else units, 1.0, LOTS):
            if free and self.rng.random() < 0.4:
                self._lots(security, part, free.pop())
            else:
                cost = round(self.close(security, 0) * float(self.rng.uniform(0.5, 1.05)), 4)
                acquired = self.ledger.as_of - timedelta(days=int(self.rng.integers(120, 1500)))
                self._lot(security, part, _business_day(acquired, 1), cost)

    def finished(self, cash: float) -> tuple[FundLedger, float]:
        """Return the ledger with all records, and true cash, which differs from `cash` by rounding to cents."""
        for security in sorted(self.settled):
            if security not in self.closed and abs(self.settled[security]) > 0:
                self.write_lots(security)
        fx, dollars = self.ledger.fx, cash - self.dollars
        balances = {name: round(share * dollars / fx[name], 2) for name, share in BALANCES.items()}
        balances["USD"] = round(dollars - math.fsum(amount * fx[name] for name, amount in balances.items()), 2)
        order = {custodian: place for place, custodian in enumerate(CUSTODIANS)}
        ledger = replace(
            self.ledger,
            lots=tuple(sorted(self.lots, key=lambda lot: (order[lot.custodian], lot.security))),
            orders=tuple(sorted(self.orders, key=lambda one: (one.trade_date, one.trade))),
            events=tuple(sorted(self.events, key=lambda event: (event.ex_date, event.event))),
            balances=balances,
        )
        return ledger, math.fsum(amount * fx[name] for name, amount in balances.items()) + self.dollars

    def _lots(self, security: str, units: float, back: int) -> None:
        self._lot(security, units, self.day(back), round(self.close(security, back), 4))

    def _lot(self, security: str, quantity: float, acquired: date, cost: float) -> None:
        number = f"L-{self._first_lot + len(self.lots)}"
        custodian = CUSTODIANS[int(self.rng.integers(2))]
        self.lots.append(Lot(custodian, number, security, acquired, quantity, cost))

    def _parts(self, total: float, unit: float, lots: tuple[int, int]) -> list[float]:
        count = int(self.rng.integers(*lots))
        if abs(total) < _SMALLEST * count * unit:
            return [total] if total else []
        shares: list[float] = self.rng.dirichlet(np.full(count, 6.0)).tolist()
        parts = [float(np.round(total * share / unit) * unit) for share in shares[:-1]]
        parts.append(total - math.fsum(parts))
        return [part for part in parts if part]
