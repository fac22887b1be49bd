"""Measures of lots, orders, quotes and reference data: sums, repeats, ratios; what they mean is for the reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from finskillbench.engines.fields import list_of, number, table_of
from finskillbench.errors import InputError

Row = dict[str, Any]
LARGEST = 1e15
"""No quantity, price or amount is larger."""
AGREES = 0.0035
"""Relative difference of two sources of one price that is usual."""


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


def lots(data: Mapping[str, Any]) -> dict[str, Any]:
    """Units by security as printed; lots whose number is printed again, and lots alike under other numbers."""
    units: dict[str, float] = {}
    numbers: dict[str, list[Row]] = {}
    alike: dict[tuple[Any, ...], list[str]] = {}
    for row in rows(data, "custodian", "security", "lot", "acquired", "quantity", "unit_cost"):
        units[row["security"]] = units.get(row["security"], 0.0) + number(row, "quantity", "custodian", largest=LARGEST)
        numbers.setdefault(row["lot"], []).append(row)
        key = (row["security"], row["acquired"], row["quantity"], row["unit_cost"])
        alike.setdefault(key, []).append(row["lot"])
    return {
        "units_printed": dict(sorted(units.items())),
        "numbers_printed_again": [
            {"lot": lot, "times": len(found), "security": found[0]["security"], "quantity": found[0]["quantity"]}
            for lot, found in numbers.items()
            if len(found) > 1
        ],
        "alike_under_other_numbers": [
            {"security": key[0], "acquired": key[1], "quantity": key[2], "lots": sorted(set(found))}
            for key, found in alike.items()
            if len(set(found)) > 1
        ],
    }


def orders(data: Mapping[str, Any], as_of: str) -> list[Row]:
    """Each line of the blotter with its signed units, when it was traded and settles, and what takes its place."""
    lines = rows(data, "trades", "trade", "trade_date", "settle_date", "security", "side", "quantity", "price")
    taken = {row["replaces"]: row["trade"] for row in lines if row.get("replaces")}
    return [
        {
            "trade": row["trade"],
            "security": row["security"],
            "signed_units": row["quantity"] * (-1 if row["side"] == "sell" else 1),
            "price": row["price"],
            "trade_date": row["trade_date"],
            "traded": "later" if row["trade_date"] > as_of else "by the day",
            "settles": "later" if row["settle_date"] > as_of else "by the day",
            "replaced_by": taken.get(row["trade"]),
        }
        for row in lines
    ]


def quotes(data: Mapping[str, Any]) -> dict[str, Any]:
    """Dollars of a unit by either source and currency, closes that repeat, and lines whose sources differ."""
    fx = _fx(data)
    reference = {
        row["security"]: row for row in rows(data, "reference", "security", "issuer", "currency", "multiplier")
    }
    second = {row["security"]: row for row in rows(data, "second_source", "security", "close", "currency")}
    history: dict[str, list[Row]] = {}
    for row in rows(data, "prices", "date", "security", "close", "volume"):
        history.setdefault(row["security"], []).append(row)
    dollars: dict[str, float] = {}
    for name, line in reference.items():
        path = sorted(history.get(name, []), key=lambda row: row["date"])
        if not path:
            raise InputError(f"prices has no close of {name}")
        history[name] = path
        dollars[name] = path[-1]["close"] * line["multiplier"] * _rate(fx, line["currency"])
    return {
        "dollar_prices": dict(sorted(dollars.items())),
        "standing_still": [found for name in reference if (found := _repeats(name, history[name], second))],
        "sources_differ": [
            found for name, line in reference.items() if (found := _differing(name, line, history, second, dollars, fx))
        ],
    }


def _fx(data: Mapping[str, Any]) -> dict[str, float]:
    table = table_of(data.get("fx"))
    if table is None:
        raise InputError("fx must map currencies to dollars; inject it from the task data")
    fx = {name: number(table, name, "fx") for name in table}
    return {"USD": 1.0, **({"GBX": fx["GBP"] / 100} if "GBP" in fx else {}), **fx}


def _rate(fx: Mapping[str, float], currency: str) -> float:
    if currency not in fx:
        raise InputError(f"fx has no {currency}")
    return fx[currency]


def _repeats(name: str, path: Sequence[Row], second: Mapping[str, Row]) -> Row | None:
    """A close that has stood still for three sessions or longer."""
    close = path[-1]["close"]
    run = 1
    while run < len(path) and path[-1 - run]["close"] == close:
        run += 1
    if run < 3:
        return None
    traded = sum(row["volume"] or 0 for row in path[-run + 1 :])
    other = second.get(name, {}).get("close")
    return {"security": name, "sessions": run, "units_traded_since": traded, "close": close, "second_source": other}


def _differing(
    name: str,
    line: Row,
    history: Mapping[str, Sequence[Row]],
    second: Mapping[str, Row],
    dollars: Mapping[str, float],
    fx: Mapping[str, float],
) -> Row | None:
    """A line whose two sources name other currencies, or differ by more than is usual; held against the first line."""
    other = second.get(name)
    if other is None:
        return None
    close = history[name][-1]["close"]
    ratio = other["close"] / close
    if other["currency"] == line["currency"] and abs(ratio - 1) <= AGREES:
        return None
    first = dollars.get(line["issuer"] or "")
    by_currency = {
        currency: close * _rate(fx, currency) / first if first else None
        for currency in dict.fromkeys((line["currency"], other["currency"]))
    }
    return {"security": name, "second_over_first": ratio, "over_the_issuers_first_line_by_currency": by_currency}


def splits(data: Mapping[str, Any]) -> list[Row]:
    """Each lot from before a split: its unit cost over the close of the day on which it was acquired."""
    closes = {(row["security"], row["date"]): row["close"] for row in rows(data, "prices", "date", "security", "close")}
    found: list[Row] = []
    for event in _events(data, "split"):
        for lot in rows(data, "custodian", "security", "lot", "acquired", "quantity", "unit_cost"):
            if lot["security"] == event["security"] and lot["acquired"] < event["ex_date"]:
                then = closes.get((lot["security"], lot["acquired"]))
                cost = None if then is None else lot["unit_cost"] / then
                row = {"security": lot["security"], "ratio": event["ratio"], "ex_date": event["ex_date"]}
                found.append({**row, "lot": lot["lot"], "quantity": lot["quantity"], "cost_over_close_then": cost})
    return found


def _events(data: Mapping[str, Any], kind: str) -> Iterator[Row]:
    for row in rows(data, "corporate_actions", "type", "security", "ex_date", "ratio"):
        if row["type"] == kind:
            yield row


def fields(data: Mapping[str, Any], as_of: str) -> list[Row]:
    """Sectors and counts of shares of the reference file that differ from the benchmark file and the last filing."""
    sectors = {row["issuer"]: row["sector"] for row in rows(data, "benchmark", "issuer", "sector")}
    filed: dict[str, float] = {}
    filings = rows(data, "filings", "issuer", "filed", "period_end", "shares_outstanding")
    for row in sorted(filings, key=lambda row: (row["filed"], row["period_end"])):
        if row["filed"] <= as_of:
            filed[row["issuer"]] = row["shares_outstanding"]
    found: dict[tuple[str, str], Row] = {}
    for row in rows(data, "reference", "issuer", "sector", "shares_outstanding"):
        issuer = row["issuer"]
        if issuer in sectors and row["sector"] != sectors[issuer]:
            found[issuer, "sector"] = {"reference": row["sector"], "benchmark": sectors[issuer]}
        if issuer in filed and abs(row["shares_outstanding"] / filed[issuer] - 1) > 1e-3:
            found[issuer, "shares_outstanding"] = {
                "reference": row["shares_outstanding"],
                "last_filing": filed[issuer],
            }
    return [{"issuer": issuer, "field": field, **row} for (issuer, field), row in found.items()]
