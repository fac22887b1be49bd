"""A book as somebody states it: tables of lines, benchmark and funds' holdings, values by name, changes to fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finskillbench.engines.books.papers import LARGEST, rows
from finskillbench.engines.fields import list_of, number, table_of
from finskillbench.engines.guidelines.book import FUTURES, KINDS, Book, Instrument, Position, Trading
from finskillbench.engines.guidelines.language import Rule
from finskillbench.engines.guidelines.parsing import parse_rules
from finskillbench.errors import InputError

CASH = "CASH"
_WORDS = ("issuer", "sector", "sub_sector", "country")
_NUMBERS = {"adv": "adv_usd", "rating": "rating", "maturity": "maturity_years", "beta": "beta"}
_SIZED = ("share", "preferred", "receipt")
_TRADING = ("purchases", "sales", "pending_purchases", "pending_sales")


def rules_from(data: Mapping[str, Any]) -> tuple[Rule, ...]:
    """The coded rules in `rules`.

    Raises
    ------
    InputError : naming the first that cannot be read.
    """
    rules, problems = parse_rules(data.get("rules"))
    if problems:
        raise InputError(problems[0])
    if not rules:
        raise InputError("rules holds no rule; state at least one")
    return rules


def book_from(data: Mapping[str, Any]) -> Book:
    """The book of `positions` (dollars by security, of futures notionals) and `cash`.

    `reference`, `benchmark` and `constituents` are tables; `replaced` is a list of {issuer, field, value} that count in
    place of what reference says; `first_line_prices` are dollars by issuer, for market capitalisations; `quarter` has
    purchases, sales, pending_purchases and pending_sales.

    Raises
    ------
    InputError : what is missing or unknown.
    """
    lines = _lines(data)
    values = table_of(data.get("positions"))
    if not values:
        raise InputError("positions must map securities to dollars")
    unknown = sorted(set(values) - set(lines))
    if unknown:
        raise InputError(f"positions names {unknown[0]}, which reference does not have")
    cash = Instrument(CASH, "cash", "CUSTODIAN", country="US", currency="USD")
    positions = [Position(cash, number(data, "cash", "book", largest=LARGEST))]
    for name in values:
        value = number(values, name, "positions", largest=LARGEST)
        positions.append(Position(lines[name], *((0.0, value) if lines[name].kind in FUTURES else (value, 0.0))))
    quarter = table_of(data.get("quarter")) or {}
    trading = Trading(*(number(quarter, key, "quarter", default=0.0, largest=LARGEST) for key in _TRADING))
    return Book(tuple(positions), tuple(line for name, line in lines.items() if name not in values), trading)


def rates_from(data: Mapping[str, Any]) -> dict[str, float]:
    """What trading costs, a fraction of value, by security of `reference`."""
    found = rows(data, "reference", "security", "cost_bp")
    return {row["security"]: number(row, "cost_bp", "reference") / 1e4 for row in found}


def _lines(data: Mapping[str, Any]) -> dict[str, Instrument]:
    replaced = {(row["issuer"], row["field"]): row["value"] for row in _replaced(data)}
    benchmark = {row["issuer"]: row["weight"] for row in rows(data, "benchmark", "issuer", "weight")}
    inside: dict[str, dict[str, float]] = {}
    for row in rows(data, "constituents", "security", "issuer", "weight"):
        inside.setdefault(row["security"], {})[row["issuer"]] = number(row, "weight", "constituents")
    prices = table_of(data.get("first_line_prices")) or {}
    lines: dict[str, Instrument] = {}
    for row in rows(data, "reference", "security", "kind", "currency", "lists", *_WORDS, *_NUMBERS.values()):
        issuer = row["issuer"] or ""
        given = {**row, **{field: value for (name, field), value in replaced.items() if name == issuer}}
        if row["kind"] not in KINDS:
            raise InputError(f"reference: {row['security']} is of no known kind: {row['kind']}")
        attributes = {name: float(row[column]) for name, column in _NUMBERS.items() if row[column] is not None}
        if row["kind"] in _SIZED and issuer in prices and given.get("shares_outstanding") is not None:
            attributes["market_cap"] = number(given, "shares_outstanding", issuer, largest=LARGEST) * number(
                prices, issuer, "first_line_prices", largest=LARGEST
            )
        lines[row["security"]] = Instrument(
            name=row["security"],
            kind=row["kind"],
            currency="GBP" if row["currency"] == "GBX" else row["currency"],
            lists=frozenset(word.strip() for word in (row["lists"] or "").split(";") if word.strip()),
            benchmark=100 * benchmark.get(row["security"], 0.0),
            attributes=attributes,
            holdings=inside.get(row["security"], {}),
            **{word: given[word] or "" for word in _WORDS},
        )
    return lines


def _replaced(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    items = list_of(data.get("replaced")) or ()
    found = [row for item in items if (row := table_of(item)) is not None and {"issuer", "field", "value"} <= set(row)]
    if len(found) != len(items):
        raise InputError("replaced must be a list of objects with issuer, field and value")
    return found
