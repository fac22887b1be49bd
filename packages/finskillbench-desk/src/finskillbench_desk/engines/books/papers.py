"""Tables of a fund's records: rows, last closes, exchange rates and dollar prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from finskillbench.engines.fields import list_of, listed, number, table_of
from finskillbench.errors import InputError

Row = dict[str, Any]
LARGEST = 1e15
"""Largest accepted quantity, price or amount."""


def rows(data: Mapping[str, Any], name: str, *columns: str) -> list[Row]:
    """Return the rows of a table given as columns; InputError for a missing or uneven column."""
    table = table_of(data.get(name))
    if table is None:
        raise InputError(f"{name} must be a table as columns; inject it from the task data")
    lists: dict[str, Sequence[Any]] = {}
    for column in table:
        values = list_of(table[column])
        if values is None:
            raise InputError(f"{name}.{column} must be a list of values")
        lists[column] = values
    missing = [column for column in columns if column not in lists]
    if missing:
        raise InputError(f"{name} has no column {missing[0]}; it has {', '.join(lists)}")
    if len({len(values) for values in lists.values()}) > 1:
        raise InputError(f"{name}: columns of different lengths")
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def last_closes(data: Mapping[str, Any]) -> dict[str, float]:
    """Return the latest close in `prices` by security."""
    latest: dict[str, Row] = {}
    for row in rows(data, "prices", "date", "security", "close"):
        if row["security"] not in latest or row["date"] > latest[row["security"]]["date"]:
            latest[row["security"]] = row
    return {name: number(row, "close", f"prices of {name}", largest=LARGEST) for name, row in latest.items()}


def rates(data: Mapping[str, Any]) -> dict[str, float]:
    """Return dollars per unit of each currency, with pence (GBX) derived from pounds."""
    table = table_of(data.get("fx"))
    if table is None:
        raise InputError("fx must map currencies to dollars; inject it from the task data")
    fx = {name: number(table, name, "fx") for name in table}
    return {"USD": 1.0, **({"GBX": fx["GBP"] / 100} if "GBP" in fx else {}), **fx}


def dollars_of_a_unit(data: Mapping[str, Any], currencies: Mapping[str, Any]) -> dict[str, float]:
    """Return dollars per unit at a price of 1, by security, in the stated currency where given."""
    fx, lines = rates(data), rows(data, "reference", "security", "currency", "multiplier")
    refuse_unknown_names(currencies, [row["security"] for row in lines], "currencies")
    found: dict[str, float] = {}
    for row in lines:
        currency = currencies.get(row["security"], row["currency"])
        if currency not in fx:
            raise InputError(f"fx has no {currency!r}, the currency of {row['security']}")
        found[row["security"]] = number(row, "multiplier", "reference") * fx[currency]
    return found


def dollar_prices(data: Mapping[str, Any]) -> dict[str, float]:
    """Return dollars per unit by security, from the last close or `closes`, in its currency or the stated one."""
    closes, currencies = stated(data, "closes"), stated(data, "currencies")
    units, last = dollars_of_a_unit(data, currencies), last_closes(data)
    refuse_unknown_names(closes, list(units), "closes")
    missing = [name for name in units if name not in last and name not in closes]
    if missing:
        raise InputError(f"prices has no close of {missing[0]}; state it in closes")
    return {
        name: unit * (number(closes, name, "closes", largest=LARGEST) if name in closes else last[name])
        for name, unit in units.items()
    }


def stated(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object of the payload, empty if absent."""
    value = data.get(name)
    if value is None:
        return {}
    if (found := table_of(value)) is None:
        raise InputError(f"{name} must be an object by name, not {type(value).__name__}")
    return found


def refuse_unknown_names(stated_names: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    """Raise InputError for names that are not known."""
    if unknown := sorted(set(stated_names) - set(names)):
        raise InputError(f"{where} names {listed(unknown[:5])}, which reference does not have")
