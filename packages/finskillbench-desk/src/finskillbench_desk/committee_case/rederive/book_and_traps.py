"""Derive the true book from the records by the valuation policy, and find the traps and controls in them.

The misled value of each item comes from a misreading of the records, not from what was planted: a lot printed twice as
two lots, or a stale close as a price. An item is a trap if face values mislead, and a control if correcting them does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

Columns = Mapping[str, Sequence[Any]]
Row = dict[str, Any]
Case = Mapping[str, Any]
History = Mapping[str, list[Row]]


def table_rows(table: Columns) -> Iterator[Row]:
    names = list(table)
    for values in zip(*(table[name] for name in names), strict=True):
        yield dict(zip(names, values, strict=True))


@dataclass(frozen=True, slots=True)
class Recovered:
    """True book; `currencies` are quote currencies, `units` dollars of one unit at a price of 1."""

    quantities: dict[str, float]
    prices: dict[str, float]
    currencies: dict[str, str]
    units: dict[str, float]
    cash: float
    sectors: dict[str, str]
    shares: dict[str, float]


def histories(prices: Columns) -> dict[str, list[Row]]:
    """Group a price table by security, sorted by date."""
    found: dict[str, list[Row]] = {}
    for row in table_rows(prices):
        found.setdefault(row["security"], []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: row["date"])
    return found


def recovered(case: Case, history: History | None = None) -> Recovered:
    """Derive the trade-date book from the records of a case; `history` may pass the result of `histories`."""
    day: str = case["as_of"]
    fx: dict[str, float] = {"GBX": case["fx"]["GBP"] / 100, **case["fx"]}
    reference = {row["security"]: row for row in table_rows(case["reference"])}
    if history is None:
        history = histories(case["prices"])
    secondary = {row["security"]: row for row in table_rows(case["second_source"])}
    quoted: dict[str, tuple[float, str]] = {name: _quote(name, history, secondary, reference, fx) for name in reference}
    unit = {name: reference[name]["multiplier"] * fx[quoted[name][1]] for name in reference}
    trades = effective_trades(case["trades"], day)
    units = _settled(case, history)
    cash = math.fsum(amount * fx[currency] for currency, amount in case["cash_balances"].items())
    actions = sorted(table_rows(case["corporate_actions"]), key=lambda row: row["ex_date"])
    for trade in trades:
        if trade["settle_date"] > day:
            signed = trade["quantity"] * (1 if trade["side"] == "buy" else -1)
            units[trade["security"]] = units.get(trade["security"], 0.0) + signed
            cash -= signed * trade["price"] * unit[trade["security"]]
    for action in actions:
        name = action["security"]
        if action["ex_date"] > day or action["type"] == "split":
            continue
        since = [trade for trade in trades if trade["security"] == name and trade["trade_date"] >= action["ex_date"]]
        bought = math.fsum(trade["quantity"] * (1 if trade["side"] == "buy" else -1) for trade in since)
        entitled = units.get(name, 0.0) - bought
        if action["pay_date"] > day and action["cash"]:
            cash += entitled * action["cash"] * unit[name]
        if action["type"] == "spin-off" and action["into"] not in units:
            units[action["into"]] = entitled * action["ratio"]
        if action["type"] == "merger" and entitled:
            units[action["into"]] = units.get(action["into"], 0.0) + entitled * action["ratio"]
            units[name] = 0.0
    sectors = {row["issuer"]: row["sector"] for row in reference.values() if row["sector"]}
    sectors |= {row["issuer"]: row["sector"] for row in table_rows(case["benchmark"])}
    shares = {row["issuer"]: row["shares_outstanding"] for row in reference.values() if row["shares_outstanding"]}
    shares |= {
        row["issuer"]: row["shares_outstanding"]
        for row in sorted(table_rows(case["filings"]), key=lambda row: (row["filed"], row["period_end"]))
        if row["filed"] <= day
    }
    held = {name: count for name, count in units.items() if abs(count) > 1e-6}
    prices = {name: quoted[name][0] * unit[name] for name in reference}
    currencies = {name: currency for name, (_, currency) in quoted.items()}
    return Recovered(held, prices, currencies, unit, cash, sectors, shares)


def _quote(
    name: str, history: History, secondary: Mapping[str, Row], reference: Mapping[str, Row], fx: Mapping[str, float]
) -> tuple[float, str]:
    """Return the price of a line by the policy, and its currency."""
    rows = history[name]
    close = rows[-1]["close"]
    repeats = next((i for i in range(1, len(rows)) if rows[-1 - i]["close"] != close), len(rows))
    if repeats >= 3 and any(row["volume"] > 0 for row in rows[-repeats + 1 :]):
        close = secondary[name]["close"]
    candidates = [reference[name]["currency"], secondary[name]["currency"]]
    first_line = reference[name]["issuer"]
    if candidates[0] != candidates[1] and first_line in history:
        level = history[first_line][-1]["close"] * fx[reference[first_line]["currency"]]
        candidates.sort(key=lambda currency: abs(close * fx[currency] / level - 1))
    return close, candidates[0]


def effective_trades(trades: Columns, day: str) -> list[Row]:
    """Return blotter lines up to the day that no later line replaces."""
    rows = list(table_rows(trades))
    gone = {row["replaces"] for row in rows if row["replaces"]}
    return [row for row in rows if row["trade"] not in gone and row["trade_date"] <= day and row["quantity"]]


def _settled(case: Case, history: History) -> dict[str, float]:
    """Return the custodians' units: each lot once, and lots from before a split in current units."""
    splits = [row for row in table_rows(case["corporate_actions"]) if row["type"] == "split"]
    names = {split["security"] for split in splits}
    closes = {name: {row["date"]: row["close"] for row in history.get(name, ())} for name in names}
    units: dict[str, float] = {}
    seen: set[str] = set()
    for lot in table_rows(case["custodian"]):
        if lot["lot"] in seen:
            continue
        seen.add(lot["lot"])
        name, count, cost = lot["security"], lot["quantity"], lot["unit_cost"]
        for split in splits:
            if split["security"] == name and lot["acquired"] < split["ex_date"] <= case["as_of"]:
                then, ratio = closes[name].get(lot["acquired"]), split["ratio"]
                if then is not None and abs(cost / then - 1) < abs(cost * ratio / then - 1):
                    count *= ratio
        units[name] = units.get(name, 0.0) + count
    return units


_STANDS_STILL = 3
"""Sessions with an unchanged close that may indicate a failed feed."""
_SAME = 1e-3
"""Relative difference up to which two share counts are equal."""


def find_planted(case: Case, book: Recovered) -> list[Row]:
    """Return all traps and controls in the records, by kind and place."""
    history = histories(case["prices"])
    priced = (_splits, _duplicates, _replacements, _standstills)
    found = [place for finder in priced for place in finder(case, book, history)]
    for finder in (_currencies, _sectors, _counts):
        found += finder(case, book)
    return sorted(found, key=lambda place: (place["kind"], place["where"]))


def _place(kind: str, where: str, field: str, right: Any, face: Any, mended: Any) -> Row:
    """Return a trap if the face value is wrong, else a control with the corrected value as the wrong one."""
    trap = face != right if isinstance(right, str) else abs(face - right) > _SAME * 1e-3 * abs(right)
    fallen = face if trap else mended
    return {"kind": kind, "where": where, "trap": trap, "field": field, "right": right, "fallen": fallen}


def _altered(case: Case, table: str, change: Callable[[Row], Row | None]) -> Case:
    """Return the case with each row of a table changed, or dropped if `change` returns None."""
    rows = [row for original in table_rows(case[table]) if (row := change(original)) is not None]
    return {**case, table: {column: [row[column] for row in rows] for column in case[table]}}


def _with(case: Case, table: str, key: str, name: str, **values: Any) -> Case:
    """Return the case with `values` set in rows of a table where column `key` is `name`."""
    return _altered(case, table, lambda row: {**row, **values} if row[key] == name else row)


def _quantity(case: Case, name: str, history: History) -> float:
    """Return units of a line; the prices of the case must be unchanged."""
    return recovered(case, history).quantities.get(name, 0.0)


def _splits(case: Case, book: Recovered, history: History) -> Iterator[Row]:
    """Find splits: the face value is the custodians' extract, the correction books the split again."""
    for event in table_rows(case["corporate_actions"]):
        if event["type"] == "split" and event["ex_date"] <= case["as_of"]:
            name = event["security"]
            face = _quantity(_altered(case, "corporate_actions", partial(_but, event)), name, history)
            mended = _quantity(_altered(case, "custodian", partial(_unbooked, event)), name, history)
            yield _place("missed_split", name, "quantity", book.quantities.get(name, 0.0), face, mended)


def _but(event: Row, row: Row) -> Row | None:
    return None if row["event"] == event["event"] else row


def _unbooked(event: Row, lot: Row) -> Row:
    """Return a lot with its unit cost as if the split were not booked."""
    before = lot["security"] == event["security"] and lot["acquired"] < event["ex_date"]
    return {**lot, "unit_cost": lot["unit_cost"] * event["ratio"]} if before else lot


def _alike(rows: Iterable[Row], keys: Sequence[str]) -> Iterator[tuple[Row, Row]]:
    """Yield each later row with equal keys after the first such row."""
    first: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        earlier = first.setdefault(tuple(row[name] for name in keys), row)
        if earlier is not row:
            yield earlier, row


def _duplicates(case: Case, book: Recovered, history: History) -> Iterator[Row]:
    """Find equal lots: at face value all count, corrected the later one does not."""
    lots = list(table_rows(case["custodian"]))
    for earlier, later in _alike(lots, ("security", "acquired", "quantity", "unit_cost")):
        name = later["security"]
        remaining = [row for row in lots if row is not later]
        face, mended = (
            _quantity({**case, "custodian": _columns([*remaining, {**later, "lot": number}])}, name, history)
            for number in (f"{later['lot']} again", earlier["lot"])
        )
        yield _place("duplicate_line", name, "quantity", book.quantities.get(name, 0.0), face, mended)


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {column: [row[column] for row in rows] for column in rows[0]}


def _replacements(case: Case, book: Recovered, history: History) -> Iterator[Row]:
    """Find equal or replaced blotter lines: at face value both count, corrected the later replaces the earlier."""
    orders = [row for row in table_rows(case["trades"]) if row["trade_date"] <= case["as_of"]]
    named = {row["trade"]: row for row in orders}
    pairs = [(named[row["replaces"]], row) for row in orders if row["replaces"]]
    pairs += _alike(orders, ("security", "trade_date", "side", "quantity"))
    for earlier, later in pairs:
        name = later["security"]
        face, mended = (
            _quantity(_with(case, "trades", "trade", later["trade"], replaces=word), name, history)
            for word in (None, earlier["trade"])
        )
        yield _place("replaced_trade", name, "quantity", book.quantities.get(name, 0.0), face, mended)


def _standstills(case: Case, book: Recovered, history: History) -> Iterator[Row]:
    """Find unchanged closes: the face value is the close, the correction the secondary source's price."""
    events = [row for row in table_rows(case["corporate_actions"]) if row["ex_date"] <= case["as_of"]]
    gone = {row["security"] for row in events if row["type"] == "merger"}
    for name, rows in history.items():
        last = {row["close"] for row in rows[-_STANDS_STILL:]}
        if len(last) == 1 and name not in gone:
            face, mended = (
                recovered(case, {**history, name: [{**row, "volume": traded} for row in rows]}).prices[name]
                for traded in (0, 1)
            )
            yield _place("stale_price", name, "price", book.prices[name], face, mended)


def _currencies(case: Case, book: Recovered) -> Iterator[Row]:
    """Find lines with different currencies in the two sources: the face value uses the reference file's."""
    secondary = {row["security"]: row["currency"] for row in table_rows(case["second_source"])}
    fx = {"GBX": case["fx"]["GBP"] / 100, **case["fx"]}
    for row in table_rows(case["reference"]):
        name, currencies = row["security"], (row["currency"], secondary[row["security"]])
        if currencies[0] != currencies[1]:
            close = book.prices[name] / book.units[name]
            face, mended = (close * row["multiplier"] * fx[currency] for currency in currencies)
            yield _place("currency_unit", name, "price", book.prices[name], face, mended)


def _issuers(case: Case) -> dict[str, Row]:
    return {row["issuer"]: row for row in table_rows(case["reference"]) if row["sector"]}


def _sectors(case: Case, book: Recovered) -> Iterator[Row]:
    """Find changed vendor sectors: the face value is the new one, the correction the old one."""
    for issuer, row in _issuers(case).items():
        now, before = row["sector"], row["sector_before"]
        if now != before:
            yield _place("overwritten_sector", issuer, "sector", book.sectors[issuer], now, before)


def _counts(case: Case, book: Recovered) -> Iterator[Row]:
    for issuer, row in _issuers(case).items():
        now, before = row["shares_outstanding"], row["shares_before"]
        if abs(now - before) > _SAME * before:
            yield _place("miscounted_shares", issuer, "shares", book.shares[issuer], now, before)
