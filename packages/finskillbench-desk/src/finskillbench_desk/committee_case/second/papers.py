"""The true book from the papers: the valuation policy followed to the letter, row by row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
