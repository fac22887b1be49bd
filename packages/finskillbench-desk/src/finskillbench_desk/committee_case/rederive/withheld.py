"""What a judge is told of a case beside the true answer, from the papers alone: lines, prices, what the vendor says.

Two derivations of one JSON value held against each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from finskillbench.scoring.values import is_array, is_object, json_equal, number
from finskillbench_desk.committee_case.rederive.places import Recovered, Row, planted, rows_of, standing

CLOSE = 1e-7
"""Relative difference of two derivations of one number."""


def same(stated: object, again: object) -> bool:
    """Whether two JSON values differ by rounding only."""
    return next(differences(stated, again, ""), None) is None


def differences(stated: object, again: object, path: str) -> Iterator[str]:
    """Paths at which two JSON values differ by more than rounding; lists are held against each other in their order."""
    if is_object(stated) and is_object(again):
        for key in sorted({*stated, *again}):
            where = f"{path}.{key}"
            yield from differences(stated[key], again[key], where) if key in stated and key in again else (where,)
    elif is_array(stated) and is_array(again):
        if len(stated) != len(again):
            yield path
        for place, (one, other) in enumerate(zip(stated, again, strict=False)):
            yield from differences(one, other, f"{path}[{place}]")
    elif (first := number(stated)) is None or (second := number(again)) is None:
        if not json_equal(stated, again):
            yield path
    elif abs(first - second) > CLOSE * abs(second):
        yield path


_SIZED = ("share", "preferred", "receipt")
"""Kinds whose issuer's market capitalisation rules ask for."""
_NUMBERS = {"adv": "adv_usd", "rating": "rating", "maturity": "maturity_years", "beta": "beta"}
"""Attribute of an instrument to the column of the reference file."""
_REPLACED = 1e-3
"""Relative difference between two counts of shares from which one does not count."""


def withheld(case: Mapping[str, Any], book: Recovered) -> dict[str, Any]:
    """Key of a verification to what the papers of a case, and the book that they support, give for it."""
    return {
        "instruments": instruments(case, book),
        "prices": book.prices,
        "planted": planted(case, book),
        "trading": trading(case, book),
        "rates": {row["security"]: row["cost_bp"] / 1e4 for row in rows_of(case["reference"])},
        "vendor": vendor(case),
        "shown": _shown(case),
        "leverage": leverage(case),
        "risk_model": risk_model(case),
    }


def instruments(case: Mapping[str, Any], book: Recovered) -> list[Row]:
    """Every line as the rules see it, cash too, by name."""
    weights = {row["issuer"]: 100 * row["weight"] for row in rows_of(case["benchmark"])}
    inside: dict[str, dict[str, float]] = {}
    for row in rows_of(case["constituents"]):
        inside.setdefault(row["security"], {})[row["issuer"]] = row["weight"]
    found = [_cash()]
    for row in rows_of(case["reference"]):
        name, issuer, currency = row["security"], row["issuer"] or "", book.currencies[row["security"]]
        attributes = {own: float(row[column]) for own, column in _NUMBERS.items() if row[column] is not None}
        if row["kind"] in _SIZED:
            attributes["market_cap"] = book.shares[issuer] * book.prices[issuer]
        found.append(
            {
                "name": name,
                "kind": row["kind"],
                "issuer": issuer,
                "sector": book.sectors.get(issuer, ""),
                "sub_sector": row["sub_sector"] or "",
                "country": row["country"],
                "currency": "GBP" if currency == "GBX" else currency,
                "lists": sorted(row["lists"].split("; ")) if row["lists"] else [],
                "benchmark": weights.get(name, 0.0),
                "attributes": attributes,
                "holdings": inside.get(name, {}),
            }
        )
    return sorted(found, key=lambda line: line["name"])


def _cash() -> Row:
    words = {"name": "CASH", "kind": "cash", "issuer": "CUSTODIAN", "sector": "", "sub_sector": ""}
    numbers: Row = {"lists": [], "benchmark": 0.0, "attributes": {}, "holdings": {}}
    return {**words, "country": "US", "currency": "USD", **numbers}


def trading(case: Mapping[str, Any], book: Recovered) -> list[float]:
    """Dollars of the quarter: purchases and sales that have settled, purchases and sales that are pending."""
    day, pending = case["as_of"], {"buy": 0.0, "sell": 0.0}
    for order in standing(case["trades"], day):
        if order["settle_date"] > day:
            pending[order["side"]] += order["quantity"] * order["price"] * book.units[order["security"]]
    settled = case["quarter_to_date"]
    return [settled["purchases"], settled["sales"], pending["buy"], pending["sell"]]


def vendor(case: Mapping[str, Any]) -> dict[str, Row]:
    """Sector and shares outstanding of each issuer as the reference file has them."""
    rows = [row for row in rows_of(case["reference"]) if row["sector"]]
    return {row["issuer"]: {"sector": row["sector"], "shares": row["shares_outstanding"]} for row in rows}


def _shown(case: Mapping[str, Any]) -> dict[str, float]:
    """Units of each security that the custodian prints, a lot twice where it is printed twice."""
    found: dict[str, float] = {}
    for lot in rows_of(case["custodian"]):
        found[lot["security"]] = found.get(lot["security"], 0.0) + lot["quantity"]
    return found


def leverage(case: Mapping[str, Any]) -> dict[str, float]:
    """Total liabilities over equity, by the last filing of each issuer that gives both."""
    filings = sorted(rows_of(case["filings"]), key=lambda row: (row["filed"], row["period_end"]))
    return {
        row["issuer"]: row["total_liabilities"] / row["stockholders_equity"]
        for row in filings
        if row["filed"] <= case["as_of"] and row["total_liabilities"] is not None and row["stockholders_equity"]
    }


def risk_model(case: Mapping[str, Any]) -> dict[str, list[float]]:
    """Specific variance and loadings of each issuer of the benchmark."""
    return {row["issuer"]: [row[name] for name in row if name != "issuer"] for row in rows_of(case["risk_model"])}


def stated_book(case: Mapping[str, Any], book: Recovered) -> dict[str, Any]:
    """The part `book` of the answer."""
    pending = trading(case, book)[2:]
    return {
        "positions": [
            {"security": name, "quantity": units, "value": units * book.prices[name]}
            for name, units in sorted(book.quantities.items())
        ],
        "cash": book.cash,
        "pending_purchases": pending[0],
        "pending_sales": pending[1],
        "replaced": replaced(case, book),
    }


def replaced(case: Mapping[str, Any], book: Recovered) -> list[Row]:
    """Fields of the reference file that the policy does not accept, with what counts instead, by issuer and field."""
    found: list[Row] = []
    for issuer, given in sorted(vendor(case).items()):
        sector, shares = book.sectors[issuer], book.shares[issuer]
        if given["sector"] != sector:
            found.append({"issuer": issuer, "field": "sector", "value": sector})
        if abs(given["shares"] - shares) > _REPLACED * shares:
            found.append({"issuer": issuer, "field": "shares_outstanding", "value": shares})
    return found
