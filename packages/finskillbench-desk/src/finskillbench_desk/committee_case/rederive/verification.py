"""Derive the verification data of a case and part `book` of its answer from the records, and compare JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from finskillbench.scoring.values import as_number, is_array, is_object, json_equal
from finskillbench_desk.committee_case.rederive.book_and_traps import (
    Recovered,
    Row,
    effective_trades,
    find_planted,
    table_rows,
)

CLOSE = 1e-7
"""Relative tolerance between two derivations of a number."""


def same(stated: object, again: object) -> bool:
    """Return True if two JSON values differ by rounding only."""
    return next(json_differences(stated, again, ""), None) is None


def json_differences(stated: object, again: object, path: str) -> Iterator[str]:
    """Yield paths at which two JSON values differ by more than rounding; list order counts."""
    if is_object(stated) and is_object(again):
        for key in sorted({*stated, *again}):
            where = f"{path}.{key}"
            yield from json_differences(stated[key], again[key], where) if key in stated and key in again else (where,)
    elif is_array(stated) and is_array(again):
        if len(stated) != len(again):
            yield path
        for place, (one, other) in enumerate(zip(stated, again, strict=False)):
            yield from json_differences(one, other, f"{path}[{place}]")
    elif (stated_number := as_number(stated)) is None or (derived := as_number(again)) is None:
        if not json_equal(stated, again):
            yield path
    elif abs(stated_number - derived) > CLOSE * abs(derived):
        yield path


_SIZED = ("share", "preferred", "receipt")
_NUMBERS = {"adv": "adv_usd", "rating": "rating", "maturity": "maturity_years", "beta": "beta"}
"""Reference file column by attribute of an instrument."""
_REPLACED = 1e-3
"""Relative difference of share counts from which the vendor's is replaced."""


def derive_verification(case: Mapping[str, Any], book: Recovered) -> dict[str, Any]:
    """Return the verification data that the records and the book support, by key."""
    return {
        "instruments": instruments(case, book),
        "prices": book.prices,
        "planted": find_planted(case, book),
        "trading": trading(case, book),
        "rates": {row["security"]: row["cost_bp"] / 1e4 for row in table_rows(case["reference"])},
        "vendor": vendor(case),
        "shown": _shown(case),
        "leverage": leverage(case),
        "risk_model": risk_model(case),
    }


def instruments(case: Mapping[str, Any], book: Recovered) -> list[Row]:
    weights = {row["issuer"]: 100 * row["weight"] for row in table_rows(case["benchmark"])}
    inside: dict[str, dict[str, float]] = {}
    for row in table_rows(case["constituents"]):
        inside.setdefault(row["security"], {})[row["issuer"]] = row["weight"]
    found = [_cash()]
    for row in table_rows(case["reference"]):
        name, issuer, currency = row["security"], row["issuer"] or "", book.currencies[row["security"]]
        attributes = {key: float(row[column]) for key, column in _NUMBERS.items() if row[column] is not None}
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
    text_fields = {"name": "CASH", "kind": "cash", "issuer": "CUSTODIAN", "sector": "", "sub_sector": ""}
    numbers: Row = {"lists": [], "benchmark": 0.0, "attributes": {}, "holdings": {}}
    return {**text_fields, "country": "US", "currency": "USD", **numbers}


def trading(case: Mapping[str, Any], book: Recovered) -> list[float]:
    """Return dollars of settled purchases and sales, and of pending purchases and sales, of the quarter."""
    day, pending = case["as_of"], {"buy": 0.0, "sell": 0.0}
    for order in effective_trades(case["trades"], day):
        if order["settle_date"] > day:
            pending[order["side"]] += order["quantity"] * order["price"] * book.units[order["security"]]
    settled = case["quarter_to_date"]
    return [settled["purchases"], settled["sales"], pending["buy"], pending["sell"]]


def vendor(case: Mapping[str, Any]) -> dict[str, Row]:
    rows = [row for row in table_rows(case["reference"]) if row["sector"]]
    return {row["issuer"]: {"sector": row["sector"], "shares": row["shares_outstanding"]} for row in rows}


def _shown(case: Mapping[str, Any]) -> dict[str, float]:
    """Return units by security as the custodians print them, duplicates included."""
    found: dict[str, float] = {}
    for lot in table_rows(case["custodian"]):
        found[lot["security"]] = found.get(lot["security"], 0.0) + lot["quantity"]
    return found


def leverage(case: Mapping[str, Any]) -> dict[str, float]:
    """Return total liabilities over equity by issuer, from its last filing with both."""
    filings = sorted(table_rows(case["filings"]), key=lambda row: (row["filed"], row["period_end"]))
    return {
        row["issuer"]: row["total_liabilities"] / row["stockholders_equity"]
        for row in filings
        if row["filed"] <= case["as_of"] and row["total_liabilities"] is not None and row["stockholders_equity"]
    }


def risk_model(case: Mapping[str, Any]) -> dict[str, list[float]]:
    return {row["issuer"]: [row[name] for name in row if name != "issuer"] for row in table_rows(case["risk_model"])}


def derive_book(case: Mapping[str, Any], book: Recovered) -> dict[str, Any]:
    _, _, purchases, sales = trading(case, book)
    positions = [
        {"security": name, "quantity": units, "value": units * book.prices[name]}
        for name, units in sorted(book.quantities.items())
    ]
    pending = {"pending_purchases": purchases, "pending_sales": sales}
    return {"positions": positions, "cash": book.cash, **pending, "replaced": replaced(case, book)}


def replaced(case: Mapping[str, Any], book: Recovered) -> list[Row]:
    """Return reference file fields that the policy replaces, with their true values, by issuer and field."""
    found: list[Row] = []
    for issuer, vendor_row in sorted(vendor(case).items()):
        sector, shares = book.sectors[issuer], book.shares[issuer]
        if vendor_row["sector"] != sector:
            found.append({"issuer": issuer, "field": "sector", "value": sector})
        if abs(vendor_row["shares"] - shares) > _REPLACED * shares:
            found.append({"issuer": issuer, "field": "shares_outstanding", "value": shares})
    return found
