"""Book built from a payload: units by security, corrections of prices and fields, and reference tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finskillbench.engines.fields import list_of, number, refuse_unknown, table_of
from finskillbench.errors import InputError
from finskillbench_desk.engines.books.papers import LARGEST, dollar_prices, refuse_unknown_names, rows, stated
from finskillbench_desk.engines.guidelines.book import KINDS, Book, Instrument, Position, QuarterTrades
from finskillbench_desk.engines.guidelines.language import Rule
from finskillbench_desk.engines.guidelines.parsing import parse_rules

CASH = "CASH"
_TEXT_FIELDS = ("issuer", "sector", "sub_sector", "country")
_NUMBERS = {"adv": "adv_usd", "rating": "rating", "maturity": "maturity_years", "beta": "beta"}
_SIZED = ("share", "preferred", "receipt")
_TRADING = ("purchases", "sales", "pending_purchases", "pending_sales")
_FIELDS = ("sector", "shares_outstanding")
TABLES = ("reference", "benchmark", "constituents", "prices", "fx")
"""Injected tables that scripts with a stated book need."""
BOOK = (*TABLES, "units", "cash", "closes", "currencies", "replaced", "quarter")
"""Keys of a stated book."""


def rules_from(data: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Read the coded rules in `rules`; InputError names the first that cannot be read."""
    rules, problems = parse_rules(data.get("rules"))
    if problems:
        raise InputError(problems[0])
    if not rules:
        raise InputError("rules holds no rule; state at least one")
    return rules


def book_from(data: Mapping[str, Any]) -> Book:
    """Build the book of `units` by security and `cash` in dollars; InputError names a missing or unknown entry.

    Lines are valued at the last close or `closes`, in their currency or `currencies`. `replaced` lists {issuer, field,
    value} that override reference; `quarter` has purchases, sales, pending_purchases and pending_sales.
    """
    prices = dollar_prices(data)
    lines = _lines(data, prices)
    units = table_of(data.get("units"))
    if not units:
        raise InputError("units must map securities to the units held; state at least one")
    refuse_unknown_names(units, list(lines), "units")
    cash = Instrument(CASH, "cash", "CUSTODIAN", country="US", currency="USD")
    positions = [Position(cash, number(data, "cash", "book", largest=LARGEST))]
    for name in units:
        value = number(units, name, "units", largest=LARGEST) * prices[name]
        positions.append(Position.of(lines[name], value))
    quarter = stated(data, "quarter")
    refuse_unknown(quarter, _TRADING, "quarter")
    trading = QuarterTrades(*(number(quarter, key, "quarter", default=0.0, largest=LARGEST) for key in _TRADING))
    return Book(tuple(positions), tuple(line for name, line in lines.items() if name not in units), trading)


def orders_from(data: Mapping[str, Any], book: Book) -> dict[str, float]:
    """Read `orders`: dollars by security, notional for futures, negative if sold; InputError for unknown securities."""
    orders = stated(data, "orders")
    refuse_unknown_names(orders, [line.name for line in book.universe.instruments], "orders")
    return {name: number(orders, name, "orders", largest=LARGEST) for name in orders}


def rates_from(data: Mapping[str, Any]) -> dict[str, float]:
    """Return trading costs by security of `reference`, as fractions of value."""
    found = rows(data, "reference", "security", "cost_bp")
    return {row["security"]: number(row, "cost_bp", "reference") / 1e4 for row in found}


def _lines(data: Mapping[str, Any], prices: Mapping[str, float]) -> dict[str, Instrument]:
    replaced = {(row["issuer"], row["field"]): row["value"] for row in _replaced(data)}
    benchmark = {row["issuer"]: row["weight"] for row in rows(data, "benchmark", "issuer", "weight")}
    inside: dict[str, dict[str, float]] = {}
    for row in rows(data, "constituents", "security", "issuer", "weight"):
        inside.setdefault(row["security"], {})[row["issuer"]] = number(row, "weight", "constituents")
    lines: dict[str, Instrument] = {}
    for row in rows(data, "reference", "security", "kind", "currency", "lists", *_TEXT_FIELDS, *_NUMBERS.values()):
        issuer = row["issuer"] or ""
        merged = {**row, **{field: value for (name, field), value in replaced.items() if name == issuer}}
        if row["kind"] not in KINDS:
            raise InputError(f"reference: {row['security']} is of no known kind: {row['kind']}")
        attributes = {name: float(row[column]) for name, column in _NUMBERS.items() if row[column] is not None}
        if row["kind"] in _SIZED and issuer in prices and merged.get("shares_outstanding") is not None:
            shares = number(merged, "shares_outstanding", issuer, largest=LARGEST)
            attributes["market_cap"] = shares * prices[issuer]
        lines[row["security"]] = Instrument(
            name=row["security"],
            kind=row["kind"],
            currency="GBP" if row["currency"] == "GBX" else row["currency"],
            lists=frozenset(word.strip() for word in (row["lists"] or "").split(";") if word.strip()),
            benchmark=100 * benchmark.get(row["security"], 0.0),
            attributes=attributes,
            holdings=inside.get(row["security"], {}),
            **{word: merged[word] or "" for word in _TEXT_FIELDS},
        )
    return lines


def _replaced(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    value = data.get("replaced")
    items = list_of(value) if value is not None else ()
    found = [row for item in items or () if (row := table_of(item)) is not None]
    if items is None or len(found) != len(items) or any(set(row) != {"issuer", "field", "value"} for row in found):
        raise InputError("replaced must be a list of objects with issuer, field and value and nothing else")
    issuers = {row["issuer"] for row in rows(data, "reference", "issuer")}
    for row in found:
        if row["issuer"] not in issuers or row["field"] not in _FIELDS:
            raise InputError(
                f"replaced: reference has no {row['field']!r} of an issuer {row['issuer']!r} to replace; fields are "
                f"{', '.join(_FIELDS)}"
            )
    return found
