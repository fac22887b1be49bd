"""Where the papers of a case mislead, or look as if they did: found in the papers, answered by misreading them.

What somebody answers who falls for a place is not computed from what was planted there. It comes out of the papers as
that reader takes them: a lot that is printed twice as two lots, a line without the one that replaces it, a feed that
has not failed. A place is a trap where it is the papers' face that misleads, and a control where mending them does.

The true book from the papers: the valuation policy followed to the letter, row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

Columns = Mapping[str, Sequence[Any]]
"""A table as columns."""
Row = dict[str, Any]


def rows_of(table: Columns) -> Iterator[Row]:
    """The rows of a table."""
    names = list(table)
    for values in zip(*(table[name] for name in names), strict=True):
        yield dict(zip(names, values, strict=True))


@dataclass(frozen=True, slots=True)
class Recovered:
    """The true book: units, dollars of a unit, cash in dollars, sector and shares outstanding of each issuer.

    `currencies` are those that lines are quoted in, `units` the dollars of one unit at a price of 1.
    """

    quantities: dict[str, float]
    prices: dict[str, float]
    currencies: dict[str, str]
    units: dict[str, float]
    cash: float
    sectors: dict[str, str]
    shares: dict[str, float]


def histories(prices: Columns) -> dict[str, list[Row]]:
    """The rows of each line in a table of prices, by date."""
    found: dict[str, list[Row]] = {}
    for row in rows_of(prices):
        found.setdefault(row["security"], []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: row["date"])
    return found


def recovered(case: Mapping[str, Any], history: Mapping[str, list[Row]] | None = None) -> Recovered:
    """The book that the papers of a case support, on trade date.

    `history` is what `histories` gives for the case's prices, where somebody has it already.
    """
    day: str = case["as_of"]
    fx: dict[str, float] = {"GBX": case["fx"]["GBP"] / 100, **case["fx"]}
    reference = {row["security"]: row for row in rows_of(case["reference"])}
    if history is None:
        history = histories(case["prices"])
    second = {row["security"]: row for row in rows_of(case["second_source"])}
    quoted: dict[str, tuple[float, str]] = {name: _quote(name, history, second, reference, fx) for name in reference}
    unit = {name: reference[name]["multiplier"] * fx[quoted[name][1]] for name in reference}
    trades = standing(case["trades"], day)
    units = _settled(case, history)
    cash = math.fsum(amount * fx[currency] for currency, amount in case["cash_balances"].items())
    actions = sorted(rows_of(case["corporate_actions"]), key=lambda row: row["ex_date"])
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
    sectors |= {row["issuer"]: row["sector"] for row in rows_of(case["benchmark"])}
    shares = {row["issuer"]: row["shares_outstanding"] for row in reference.values() if row["shares_outstanding"]}
    shares |= {
        row["issuer"]: row["shares_outstanding"]
        for row in sorted(rows_of(case["filings"]), key=lambda row: (row["filed"], row["period_end"]))
        if row["filed"] <= day
    }
    held = {name: count for name, count in units.items() if abs(count) > 1e-6}
    prices = {name: quoted[name][0] * unit[name] for name in reference}
    currencies = {name: currency for name, (_, currency) in quoted.items()}
    return Recovered(held, prices, currencies, unit, cash, sectors, shares)


def _quote(
    name: str,
    history: Mapping[str, list[Row]],
    second: Mapping[str, Row],
    reference: Mapping[str, Row],
    fx: Mapping[str, float],
) -> tuple[float, str]:
    """The price of a line that the policy takes, and the currency that it is in."""
    close = history[name][-1]["close"]
    repeats = 1
    while repeats < len(history[name]) and history[name][-1 - repeats]["close"] == close:
        repeats += 1
    if repeats >= 3 and any(row["volume"] > 0 for row in history[name][-repeats + 1 :]):
        close = second[name]["close"]
    candidates = [reference[name]["currency"], second[name]["currency"]]
    first_line = reference[name]["issuer"]
    if candidates[0] != candidates[1] and first_line in history:
        level = history[first_line][-1]["close"] * fx[reference[first_line]["currency"]]
        candidates.sort(key=lambda currency: abs(close * fx[currency] / level - 1))
    return close, candidates[0]


def standing(trades: Columns, day: str) -> list[Row]:
    """The lines of the blotter up to the day that no later line has replaced."""
    rows = list(rows_of(trades))
    gone = {row["replaces"] for row in rows if row["replaces"]}
    return [row for row in rows if row["trade"] not in gone and row["trade_date"] <= day and row["quantity"]]


def _settled(case: Mapping[str, Any], history: Mapping[str, list[Row]]) -> dict[str, float]:
    """Units by the custodian: no lot twice, and every lot from before a split in units of today."""
    splits = [row for row in rows_of(case["corporate_actions"]) if row["type"] == "split"]
    closes: dict[str, dict[str, float]] = {}
    for split in splits:
        name = split["security"]
        closes[name] = {row["date"]: row["close"] for row in history.get(name, ())}
    units: dict[str, float] = {}
    seen: set[str] = set()
    for lot in rows_of(case["custodian"]):
        if lot["lot"] in seen:
            continue
        seen.add(lot["lot"])
        count = lot["quantity"]
        for split in splits:
            if split["security"] == lot["security"] and lot["acquired"] < split["ex_date"] <= case["as_of"]:
                then = closes[lot["security"]].get(lot["acquired"])
                if then is not None and abs(lot["unit_cost"] / then - 1) < abs(
                    lot["unit_cost"] * split["ratio"] / then - 1
                ):
                    count *= split["ratio"]
        units[lot["security"]] = units.get(lot["security"], 0.0) + count
    return units


_STANDS_STILL = 3
"""Sessions with one close from which a feed looks as if it had failed."""
_SAME = 1e-3
"""Relative difference up to which two counts of shares are one."""
Case = Mapping[str, Any]
History = Mapping[str, list[Row]]


def planted(case: Case, book: Recovered) -> list[Row]:
    """Every trap and control in the papers, by kind and place."""
    history = histories(case["prices"])
    priced = (_splits, _duplicates, _replacements, _standstills)
    found = [place for finder in priced for place in finder(case, book, history)]
    for finder in (_currencies, _sectors, _counts):
        found += finder(case, book)
    return sorted(found, key=lambda place: (place["kind"], place["where"]))


def _place(kind: str, where: str, field: str, right: Any, face: Any, mended: Any) -> Row:
    """A place: a trap where the papers' face is not right, else a control, where what is mended is wrong."""
    trap = face != right if isinstance(right, str) else abs(face - right) > _SAME * 1e-3 * abs(right)
    fallen = face if trap else mended
    return {"kind": kind, "where": where, "trap": trap, "field": field, "right": right, "fallen": fallen}


def _altered(case: Case, table: str, change: Callable[[Row], Row | None]) -> Case:
    """The case with each row of a table changed, or left out where the change is None."""
    rows = [row for given in rows_of(case[table]) if (row := change(given)) is not None]
    return {**case, table: {column: [row[column] for row in rows] for column in case[table]}}


def _with(case: Case, table: str, key: str, name: str, **values: Any) -> Case:
    """The case with other values in those rows of a table whose column `key` is `name`."""
    return _altered(case, table, lambda row: {**row, **values} if row[key] == name else row)


def _quantity(case: Case, name: str, history: History) -> float:
    """Units of a line in a case of which the prices are as they are printed."""
    return recovered(case, history).quantities.get(name, 0.0)


def _splits(case: Case, book: Recovered, history: History) -> Iterator[Row]:
    """Splits, booked by the custodian or not: the face of the papers is his extract, mending them books it (again)."""
    for event in rows_of(case["corporate_actions"]):
        if event["type"] == "split" and event["ex_date"] <= case["as_of"]:
            name = event["security"]
            face = _quantity(_altered(case, "corporate_actions", partial(_but, event)), name, history)
            mended = _quantity(_altered(case, "custodian", partial(_unbooked, event)), name, history)
            yield _place("missed_split", name, "quantity", book.quantities.get(name, 0.0), face, mended)


def _but(event: Row, row: Row) -> Row | None:
    return None if row["event"] == event["event"] else row


def _unbooked(event: Row, lot: Row) -> Row:
    """A lot with the cost that it would have if the split had not been booked."""
    before = lot["security"] == event["security"] and lot["acquired"] < event["ex_date"]
    return {**lot, "unit_cost": lot["unit_cost"] * event["ratio"]} if before else lot


def _alike(rows: Iterable[Row], keys: Sequence[str]) -> Iterator[tuple[Row, Row]]:
    """Pairs of rows with the same keys, the first of them and a later one."""
    first: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        earlier = first.setdefault(tuple(row[name] for name in keys), row)
        if earlier is not row:
            yield earlier, row


def _duplicates(case: Case, book: Recovered, history: History) -> Iterator[Row]:
    """Lots that are printed alike: their face is that all of them count, mending them leaves the second one out."""
    lots = list(rows_of(case["custodian"]))
    for earlier, later in _alike(lots, ("security", "acquired", "quantity", "unit_cost")):
        name = later["security"]
        face, mended = (
            _quantity(
                {**case, "custodian": _columns([*(row for row in lots if row is not later), other])}, name, history
            )
            for other in ({**later, "lot": f"{later['lot']} again"}, {**later, "lot": earlier["lot"]})
        )
        yield _place("duplicate_line", name, "quantity", book.quantities.get(name, 0.0), face, mended)


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {column: [row[column] for row in rows] for column in rows[0]}


def _replacements(case: Case, book: Recovered, history: History) -> Iterator[Row]:
    """Lines of the blotter that are alike: their face is what they say, that one replaces another or that both stand.

    A reader who is misled by the first takes both for standing, by the second the later one for the earlier one's.
    """
    orders = [row for row in rows_of(case["trades"]) if row["trade_date"] <= case["as_of"]]
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
    """Closes that stand still: their face is that they are prices, mending them takes the second source's."""
    events = [row for row in rows_of(case["corporate_actions"]) if row["ex_date"] <= case["as_of"]]
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
    """Lines that the two sources have in other currencies: the face is the reference file's."""
    second = {row["security"]: row["currency"] for row in rows_of(case["second_source"])}
    for row in rows_of(case["reference"]):
        name, own = row["security"], row["currency"]
        if own == second[name]:
            continue
        face, mended = (
            book.prices[name] / book.units[name] * row["multiplier"] * _rate(case, currency)
            for currency in (own, second[name])
        )
        yield _place("currency_unit", name, "price", book.prices[name], face, mended)


def _rate(case: Case, currency: str) -> float:
    return case["fx"]["GBP"] / 100 if currency == "GBX" else case["fx"][currency]


def _issuers(case: Case) -> dict[str, Row]:
    """A row of the reference file for each issuer of which it gives a sector."""
    return {row["issuer"]: row for row in rows_of(case["reference"]) if row["sector"]}


def _sectors(case: Case, book: Recovered) -> Iterator[Row]:
    """Sectors that the vendor has changed: the face is the new one, mending it takes the old one."""
    for issuer, row in _issuers(case).items():
        if row["sector"] != row["sector_before"]:
            yield _place(
                "overwritten_sector", issuer, "sector", book.sectors[issuer], row["sector"], row["sector_before"]
            )


def _counts(case: Case, book: Recovered) -> Iterator[Row]:
    """Counts of shares that the vendor has changed: the face is the new one, mending it takes the old one."""
    for issuer, row in _issuers(case).items():
        now, before = row["shares_outstanding"], row["shares_before"]
        if abs(now - before) > _SAME * before:
            yield _place("miscounted_shares", issuer, "shares", book.shares[issuer], now, before)
