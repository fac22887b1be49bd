"""Tables of a fund's papers, and what they say of a line at first sight: last closes, dollars of a unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from finskillbench.engines.fields import list_of, listed, number, table_of
from finskillbench.errors import InputError

Row = dict[str, Any]
LARGEST = 1e15
"""No quantity, price or amount is larger."""


def rows(data: Mapping[str, Any], name: str, *columns: str) -> list[Row]:
    """The rows of a table given as columns.

    Raises
    ------
    InputError : the table or a column is missing, or columns differ in length.
    """
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
    """The latest close in `prices`, by security."""
    latest: dict[str, Row] = {}
    for row in rows(data, "prices", "date", "security", "close"):
        if row["security"] not in latest or row["date"] > latest[row["security"]]["date"]:
            latest[row["security"]] = row
    return {name: number(row, "close", f"prices of {name}", largest=LARGEST) for name, row in latest.items()}


def rates(data: Mapping[str, Any]) -> dict[str, float]:
    """Dollars per unit of a currency, a penny (GBX) beside the pound."""
    table = table_of(data.get("fx"))
    if table is None:
        raise InputError("fx must map currencies to dollars; inject it from the task data")
    fx = {name: number(table, name, "fx") for name in table}
    return {"USD": 1.0, **({"GBX": fx["GBP"] / 100} if "GBP" in fx else {}), **fx}


def dollars_of_a_unit(data: Mapping[str, Any], currencies: Mapping[str, Any]) -> dict[str, float]:
    """Dollars of one unit at a price of 1, by security, in the stated currency if there is one."""
    fx, lines = rates(data), rows(data, "reference", "security", "currency", "multiplier")
    known(currencies, [row["security"] for row in lines], "currencies")
    found: dict[str, float] = {}
    for row in lines:
        currency = currencies.get(row["security"], row["currency"])
        if currency not in fx:
            raise InputError(f"fx has no {currency!r}, the currency of {row['security']}")
        found[row["security"]] = number(row, "multiplier", "reference") * fx[currency]
    return found


def dollar_prices(data: Mapping[str, Any]) -> dict[str, float]:
    """Dollars of one unit of each line: its last close or the one in `closes`, in its own or the stated currency.

    Raises
    ------
    InputError : what is missing, unknown or of the wrong kind.
    """
    closes, currencies = stated(data, "closes"), stated(data, "currencies")
    units, last = dollars_of_a_unit(data, currencies), last_closes(data)
    known(closes, list(units), "closes")
    missing = [name for name in units if name not in last and name not in closes]
    if missing:
        raise InputError(f"prices has no close of {missing[0]}; state it in closes")
    return {
        name: unit * (number(closes, name, "closes", largest=LARGEST) if name in closes else last[name])
        for name, unit in units.items()
    }


def stated(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object of the payload, empty where it was not given."""
    value = data.get(name)
    if value is None:
        return {}
    if (found := table_of(value)) is None:
        raise InputError(f"{name} must be an object by name, not {type(value).__name__}")
    return found


def known(given: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    """Refuse names that there are not."""
    if unknown := sorted(set(given) - set(names)):
        raise InputError(f"{where} names {listed(unknown[:5])}, which reference does not have")
