"""How programs play a committee case through the tools: the reference, the textbook, and somebody who falls for traps.

The reference reads the guidelines with the independent reader, decides by the valuation policy on the measures that the
primitives return, and retypes results as an agent would. None of them knows more than the tools tell.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from finskillbench.domains.desk.committee_case.documents.reader import read_guidelines
from finskillbench.domains.desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench.domains.playing import Ask
from finskillbench.episode import JsonObject

RISK, FILINGS = "risk-management", "fundamental-analysis"
Playing = Generator[tuple[Ask, ...], list[JsonObject], JsonObject]
Row = dict[str, Any]
_PAPERS = ["as_of", "fx", "custodian", "trades", "corporate_actions", "prices", "second_source", "reference"]
_BOOK = ["reference", "benchmark", "constituents"]
_FIELDS = ("documents.guidelines", "as_of", "fx", "cash_balances", "quarter_to_date")
_TABLES = ("custodian", "trades", "corporate_actions", "reference")


def reference() -> Playing:
    """Everything by the documents."""
    return _case(careful=True)


def trapped() -> Playing:
    """The same work by somebody who takes every paper at its word, and every clause for what it sounds like."""
    return _case(careful=False)


def textbook() -> Playing:
    """The custodian's extract at the vendor's closes, usual limits, and no trades."""
    found = yield (Ask("load_skill", {"skill_name": RISK}), *_asks(), _run(RISK, "reconcile", {}, [*_PAPERS, *_MORE]))
    fields, measures = _read(found[1:-1]), found[-1]["output"]
    prices = measures["quotes"]["dollar_prices"]
    rates = {"USD": 1.0, **fields["fx"]}
    cash = sum(amount * rates[name] for name, amount in fields["cash_balances"].items())
    units = measures["lots"]["units_printed"]
    rules = [
        {"clause": "1", "measure": "weight", "by": "issuer", "comparison": "at_most", "limit": 10},
        {"clause": "2", "measure": "weight", "by": "sector", "comparison": "at_most", "limit": 30},
    ]
    book = {"positions": _positions(units, prices), "cash": cash, "pending_purchases": 0, "pending_sales": 0}
    return {
        "rules": rules,
        "book": {**book, "replaced": []},
        "breaches": [],
        "excluded": [],
        "trades": [],
        "figures": {},
    }


_MORE = ["benchmark", "filings"]


def _case(careful: bool) -> Playing:
    found = yield (
        Ask("load_skill", {"skill_name": RISK}),
        *_asks(),
        _run(RISK, "reconcile", {}, [*_PAPERS, *_MORE]),
    )
    fields, measures = _read(found[1:-1]), found[-1]["output"]
    rules = _rules(str(fields["documents.guidelines"]), fields["reference"], careful)
    prices = _prices(measures["quotes"], careful)
    book = _true_book(fields, measures, prices, careful)
    stated = _stated(book, prices, fields)
    measured, cured = yield (
        _run(RISK, "run_rules", {"rules": rules, **stated}, _BOOK),
        _run(RISK, "cheapest_cure", {"rules": rules, **stated}, _BOOK),
    )
    orders: dict[str, float] = cured.get("output", {}).get("orders", {})
    _, after = yield (
        Ask("load_skill", {"skill_name": FILINGS}),
        _run(RISK, "active_risk", {**stated, "orders": orders}, [*_BOOK, "covariance_matrix"]),
    )
    shares = after["output"]["equity_dollars"]
    ratio = {"numerator": "total_liabilities", "denominator": "stockholders_equity", "weights": shares}
    (levered,) = yield (_run(FILINGS, "statement_lineage", ratio, ["as_of", "filings"]),)
    risk = after["output"]
    outcomes = measured["output"]["outcomes"]
    banned = {name for names in measured["output"]["none_allowed"].values() for name in names}
    return {
        "rules": rules,
        "book": book,
        "breaches": sorted({row["clause"] for row in outcomes if row["state"] == "breach"}),
        "excluded": sorted(banned - {"CASH"}),
        "trades": [{"security": name, "value": value} for name, value in orders.items()],
        "figures": {
            "tracking_error": risk["active_risk_pct"],
            "beta": risk["benchmark_beta"],
            "largest_issuer": max(risk["issuer_weights_pct"].values()),
            "cash": risk["cash_pct"],
            "turnover": risk["turnover_pct"],
            "leverage": levered["output"]["weighted_mean"],
        },
    }


def _asks() -> tuple[Ask, ...]:
    """The fields and tables that are read."""
    return (
        *(Ask("get_task_data", {"field": field}) for field in _FIELDS),
        *(Ask("read_table", {"table": table, "rows": 200}) for table in _TABLES),
    )


def _read(results: list[JsonObject]) -> dict[str, Any]:
    """Fields by name, tables as rows."""
    fields = {name: found["value"] for name, found in zip(_FIELDS, results, strict=False)}
    for name, page in zip(_TABLES, results[len(_FIELDS) :], strict=True):
        fields[name] = [dict(zip(page["columns"], row, strict=True)) for row in page["rows"]]
    return fields


def _run(package: str, script: str, payload: dict[str, Any], fields: list[str]) -> Ask:
    path = f"{package}/scripts/{script}.py"
    return Ask("run_skill_script", {"script_path": path, "input_data": payload, "inject_task_fields": fields})


def _rules(text: str, lines: list[Row], careful: bool) -> list[Row]:
    """The rules as read, or as somebody has them who looks at numbers alone: no terms, exceptions, bases or timing."""
    issuers = {row["issuer"]: row["issuer"] for row in lines if row["issuer"]}
    rules = read_guidelines(text, Vocabulary(issuers))
    if careful:
        return rules
    plain = ("clause", "measure", "limit", "comparison", "by", "n", "above", "days", "participation", "attribute")
    return [{key: rule[key] for key in plain if key in rule} for rule in rules]


def _true_book(fields: Mapping[str, Any], measures: Row, prices: Mapping[str, float], careful: bool) -> Row:
    """The book on trade date by the policy; somebody careless mends nothing and adds every line of the blotter."""
    units = dict(measures["lots"]["units_printed"])
    orders = [row for row in measures["orders"] if row["traded"] == "by the day"]
    if careful:
        for lot in measures["lots"]["numbers_printed_again"]:
            units[lot["security"]] -= lot["quantity"] * (lot["times"] - 1)
        for lot in measures["splits"]:
            cost, ratio = lot["cost_over_close_then"], lot["ratio"]
            if cost is not None and abs(cost - 1) < abs(cost * ratio - 1):
                units[lot["security"]] += lot["quantity"] * (ratio - 1)
        orders = [row for row in orders if row["replaced_by"] is None]
    rates = {"USD": 1.0, **fields["fx"]}
    closes = {row["security"]: row for row in fields["reference"]}
    cash = sum(amount * rates[name] for name, amount in fields["cash_balances"].items())
    unit = {name: _unit(closes[name], rates, prices, measures, careful) for name in closes}
    pending = [row for row in orders if row["settles"] == "later"]
    amounts = [row["signed_units"] * row["price"] * unit[row["security"]] for row in pending]
    for row, amount in zip(pending, amounts, strict=True):
        units[row["security"]] = units.get(row["security"], 0.0) + row["signed_units"]
        cash -= amount
    cash += _actions(units, orders, fields, unit)
    source = "benchmark", "last_filing"
    return {
        "positions": _positions(units, prices),
        "cash": cash,
        "pending_purchases": sum(amount for amount in amounts if amount > 0),
        "pending_sales": -sum(amount for amount in amounts if amount < 0),
        "replaced": [
            {"issuer": row["issuer"], "field": row["field"], "value": next(row[key] for key in source if key in row)}
            for row in measures["fields"]
            if careful
        ],
    }


def _prices(quotes: Row, careful: bool) -> dict[str, float]:
    """Dollars of a unit; mended where closes stand still while units change hands, or the first line refutes a unit."""
    prices = dict(quotes["dollar_prices"])
    for row in quotes["standing_still"] if careful else ():
        if row["units_traded_since"] > 0:
            prices[row["security"]] *= row["second_source"] / row["close"]
    for row in quotes["sources_differ"] if careful else ():
        ratios = row["over_the_issuers_first_line_by_currency"]
        if len(ratios) > 1 and all(ratios.values()):
            stated = next(iter(ratios.values()))
            prices[row["security"]] *= min(ratios.values(), key=lambda ratio: abs(ratio - 1)) / stated
    return prices


def _unit(line: Row, rates: Mapping[str, float], prices: Mapping[str, float], measures: Row, careful: bool) -> float:
    """Dollars of one unit at a price of 1, in the currency that was found to count."""
    rate = rates["GBP"] / 100 if line["currency"] == "GBX" else rates[line["currency"]]
    stated = measures["quotes"]["dollar_prices"][line["security"]]
    still = {row["security"] for row in measures["quotes"]["standing_still"]}
    factor = prices[line["security"]] / stated if careful and line["security"] not in still else 1.0
    return line["multiplier"] * rate * factor


def _actions(units: dict[str, float], orders: list[Row], fields: Mapping[str, Any], unit: Mapping[str, float]) -> float:
    """Dividends, spin-offs and mergers since their ex-dates, as far as they are not booked; returns dollars due."""
    due, day = 0.0, fields["as_of"]
    for event in sorted(fields["corporate_actions"], key=lambda row: row["ex_date"]):
        name, into = event["security"], event["into"]
        if event["type"] == "split" or event["ex_date"] > day:
            continue
        since = [
            row["signed_units"] for row in orders if row["security"] == name and row["trade_date"] >= event["ex_date"]
        ]
        held = units.get(name, 0.0) - sum(since)
        if event["cash"] and event["pay_date"] > day:
            due += held * event["cash"] * unit[name]
        if event["type"] == "spin-off" and into not in units:
            units[into] = held * event["ratio"]
        if event["type"] == "merger" and held:
            units[into] = units.get(into, 0.0) + held * event["ratio"]
            units[name] = 0.0
    return due


def _positions(units: Mapping[str, float], prices: Mapping[str, float]) -> list[Row]:
    return [
        {"security": name, "quantity": count, "value": count * prices[name]}
        for name, count in sorted(units.items())
        if abs(count) > 1e-6
    ]


def _stated(book: Row, prices: Mapping[str, float], fields: Mapping[str, Any]) -> Row:
    """The book as the scripts want it stated."""
    quarter = fields["quarter_to_date"]
    return {
        "positions": {row["security"]: row["value"] for row in book["positions"]},
        "cash": book["cash"],
        "replaced": book["replaced"],
        "first_line_prices": {
            row["issuer"]: prices[row["issuer"]] for row in fields["reference"] if row["issuer"] in prices
        },
        "quarter": {**quarter, "pending_purchases": book["pending_purchases"], "pending_sales": book["pending_sales"]},
    }
