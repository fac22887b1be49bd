"""Queries on a fund's tables: sums, repeats and differences, with only the filters and corrections they state."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from finskillbench.engines.fields import describe_value, list_of, listed, number, refuse_unknown, table_of, texts_of
from finskillbench.errors import InputError
from finskillbench_desk.engines.books.papers import (
    LARGEST,
    Row,
    dollar_prices,
    dollars_of_a_unit,
    last_closes,
    rates,
    refuse_unknown_names,
    rows,
    stated,
)

_RECORDS = ("custodian", "trades", "corporate_actions")
TABLES = (*_RECORDS, "prices", "second_source", "reference", "benchmark", "constituents", "filings")
_FILTERS = ("where", "without", "until", "after")
MOST = 250
"""Largest number of entries in an answer."""


def answered(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Answer `questions` in their order; InputError names an unknown query, table, column or value."""
    items = list_of(data.get("questions"))
    if not items:
        raise InputError(f"questions must be a list of objects, each with ask, one of {', '.join(ASKS)}")
    found: list[dict[str, Any]] = []
    for place, item in enumerate(items):
        question = table_of(item)
        ask = None if question is None else question.get("ask")
        if question is None or not isinstance(ask, str) or ask not in ASKS:
            raise InputError(f"questions[{place}]: ask must be one of {', '.join(ASKS)}, not {describe_value(ask)}")
        keys, answer = ASKS[ask]
        refuse_unknown(question, ("ask", *keys), f"questions[{place}] ({ask})")
        found.append({"ask": ask, **answer(data, question)})
    return found


def _sums(data: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    by, column = _text(question, "by"), _text(question, "column")
    times = _texts(question, "times")
    chosen = _chosen(data, question, by, column, *times)
    negative, units = stated(question, "negative"), None
    if question.get("in_dollars"):
        units = dollars_of_a_unit(data, stated(question, "currencies"))
    once, seen = question.get("once"), set[Any]()
    sums: dict[str, float] = {}
    count = 0
    for row in chosen:
        if isinstance(once, str):
            if _entry(row, once) in seen:
                continue
            seen.add(_entry(row, once))
        amount = number(row, column, "sums", largest=LARGEST)
        for factor in times:
            amount *= number(row, factor, "sums", default=0.0, largest=LARGEST)
        if any(_entry(row, name) == word for name, word in negative.items()):
            amount = -amount
        if units is not None:
            amount *= units[_entry(row, "security")]
        key = str(_entry(row, by))
        sums[key] = sums.get(key, 0.0) + amount
        count += 1
    return {"rows": count, "sums": dict(sorted(sums.items())), "total": math.fsum(sums.values())}


def _repeats(data: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    columns = _texts(question, "columns")
    if not columns:
        raise InputError("repeats: columns must list those in which rows are to agree")
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in _chosen(data, question, *columns):
        groups.setdefault(tuple(row[name] for name in columns), []).append(row)
    again = [group for group in groups.values() if len(group) > 1]
    return {"groups": _few(again, "repeats")}


def _differences(data: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    left, right = (_column(data, question, side) for side in ("left", "right"))
    beyond = number(question, "beyond", "differences", default=0.0)
    found: list[Row] = []
    for key in sorted(left.keys() & right.keys()):
        one, other = left[key], right[key]
        if isinstance(one, int | float) and isinstance(other, int | float):
            if abs(one - other) <= beyond * abs(other):
                continue
        elif one == other:
            continue
        found.append({"key": key, "left": one, "right": other})
    return {"compared": len(left.keys() & right.keys()), "differences": _few(found, "differences")}


def _column(data: Mapping[str, Any], question: Mapping[str, Any], side: str) -> dict[str, Any]:
    """Return one side's entries by key; for repeated keys, the row with the greatest value in column `latest`."""
    selection = stated(question, side)
    refuse_unknown(selection, ("table", "key", "column", "latest", *_FILTERS), f"differences: {side}")
    key, column, latest = _text(selection, "key"), _text(selection, "column"), selection.get("latest")
    found: dict[str, tuple[Any, Any]] = {}
    for row in _chosen(data, selection, key, column):
        if row[key] is None or row[column] is None:
            continue
        rank = _entry(row, latest) if isinstance(latest, str) else ""
        if str(row[key]) not in found or rank >= found[str(row[key])][0]:
            found[str(row[key])] = (rank, row[column])
    return {name: value for name, (_, value) in found.items()}


def _unchanged(data: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    least = number(question, "sessions", "unchanged")
    found: list[Row] = []
    for name, path in _paths(data).items():
        run = 1
        while run < len(path) and path[-1 - run]["close"] == path[-1]["close"]:
            run += 1
        if run >= least:
            traded = [row["volume"] for row in path[-run:]]
            found.append({"security": name, "sessions": run, "close": path[-1]["close"], "volumes": traded})
    return {"lines": _few(found, "unchanged")}


def _costs(data: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    wanted = _texts(question, "securities")
    paths = _paths(data)
    closes = {(name, row["date"]): row["close"] for name in wanted for row in paths.get(name, [])}
    columns = ("security", "lot", "acquired", "quantity", "unit_cost")
    lots = [row for row in rows(data, "custodian", *columns) if row["security"] in wanted]
    return {"lots": [{**row, "close_then": closes.get((row["security"], row["acquired"]))} for row in lots]}


def _levels(data: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    """Return unit values relative to the issuer's first line, for the close in each of the currencies."""
    fx, closes = rates(data), last_closes(data)
    lines = {row["security"]: row for row in rows(data, "reference", "security", "issuer", "currency", "multiplier")}
    wanted, currencies = _texts(question, "securities"), _texts(question, "currencies")
    refuse_unknown_names(dict.fromkeys(wanted), list(lines), "levels: securities")
    if unknown := [name for name in currencies if name not in fx]:
        raise InputError(f"levels: fx has no {listed(unknown)}; it has {', '.join(fx)}")
    found: dict[str, dict[str, float | None]] = {}
    for name in wanted:
        first = lines.get(lines[name]["issuer"] or "")
        level = closes[first["security"]] * first["multiplier"] * fx[first["currency"]] if first else None
        local_price = closes[name] * lines[name]["multiplier"]
        found[name] = {each: local_price * fx[each] / level if level else None for each in currencies}
    return {"over_the_issuers_first_line": found}


def _values(data: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    units = stated(question, "units")
    prices = dollar_prices({**data, **{key: question.get(key) for key in ("closes", "currencies")}})
    refuse_unknown_names(units, list(prices), "values: units")
    found = {name: number(units, name, "values", largest=LARGEST) * prices[name] for name in units}
    return {"dollars": found, "total": math.fsum(found.values())}


def _paths(data: Mapping[str, Any]) -> dict[str, list[Row]]:
    paths: dict[str, list[Row]] = {}
    for row in rows(data, "prices", "date", "security", "close", "volume"):
        paths.setdefault(row["security"], []).append(row)
    return {name: sorted(path, key=lambda row: row["date"]) for name, path in paths.items()}


def _chosen(data: Mapping[str, Any], question: Mapping[str, Any], *columns: str) -> list[Row]:
    table = _text(question, "table")
    if table not in TABLES:
        raise InputError(f"table must be one of {', '.join(TABLES)}, not {table!r}")
    filters = {name: stated(question, name) for name in _FILTERS}
    found = rows(data, table, *columns, *(name for filter_ in filters.values() for name in filter_))
    for name, wanted in filters["where"].items():
        found = [row for row in found if row[name] in _many(wanted)]
    for name, unwanted in filters["without"].items():
        found = [row for row in found if row[name] not in _many(unwanted)]
    for name, last in filters["until"].items():
        found = [row for row in found if row[name] is not None and str(row[name]) <= str(last)]
    for name, first in filters["after"].items():
        found = [row for row in found if row[name] is not None and str(row[name]) > str(first)]
    return found


def _many(value: Any) -> Sequence[Any]:
    items = list_of(value)
    return [value] if items is None else items


def _entry(row: Row, column: str) -> Any:
    if column not in row:
        raise InputError(f"there is no column {column!r}; there are {', '.join(row)}")
    return row[column]


def _text(question: Mapping[str, Any], key: str) -> str:
    value = question.get(key)
    if not isinstance(value, str):
        raise InputError(f"{key} must be a text, not {describe_value(value)}")
    return value


def _texts(question: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = texts_of(question.get(key) if question.get(key) is not None else [])
    if found is None:
        raise InputError(f"{key} must be a list of texts, not {describe_value(question.get(key))}")
    return found


def _few(found: list[Any], ask: str) -> list[Any]:
    if len(found) > MOST:
        raise InputError(f"{ask}: {len(found)} entries are too many to be read; narrow the question by where or beyond")
    return found


Answer = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]
_SUMS = ("table", "column", "by", "times", "negative", "once", "in_dollars", "currencies", *_FILTERS)
ASKS: dict[str, tuple[tuple[str, ...], Answer]] = {
    "sums": (_SUMS, _sums),
    "repeats": (("table", "columns", *_FILTERS), _repeats),
    "differences": (("left", "right", "beyond"), _differences),
    "unchanged": (("sessions",), _unchanged),
    "costs": (("securities",), _costs),
    "levels": (("securities", "currencies"), _levels),
    "values": (("units", "closes", "currencies"), _values),
}
"""Query kinds: permitted keys and the function that answers."""
