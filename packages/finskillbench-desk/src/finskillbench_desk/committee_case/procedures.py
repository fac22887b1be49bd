"""Scripted agents of the committee case: reference, textbook and trapped; they use only what the tools return."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from finskillbench.domains.interactive import ProcedureCall
from finskillbench.episode import JsonObject
from finskillbench_desk.committee_case.documents.reader import read_guidelines
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary

REVIEW, SCREENING = "mandate-review", "account-screening"
T = TypeVar("T")
_Calling: TypeAlias = Generator[tuple[ProcedureCall, ...], list[JsonObject], T]
"""Generator that yields tool calls, receives their results, and returns T."""
Playing: TypeAlias = _Calling[JsonObject]
Row = dict[str, Any]
_BOOK = ["reference", "benchmark", "constituents", "prices", "fx"]
_FIELDS = ("documents.guidelines", "as_of", "fx", "cash_balances", "quarter_to_date")
_FIRST_ROWS = {"trades": (0, 200), "corporate_actions": (0,), "reference": (0, 200), "second_source": (0, 200)}
_PAGES = [(table, first) for table, rows in _FIRST_ROWS.items() for first in rows]


@dataclass
class _Found:
    """Fields and rows read so far, and corrections decided from them."""

    fields: Row
    rows: dict[str, list[Row]]
    printed: dict[str, float] = field(default_factory=dict[str, float])
    closes: dict[str, float] = field(default_factory=dict[str, float])
    currencies: dict[str, str] = field(default_factory=dict[str, str])
    replaced: list[Row] = field(default_factory=list[Row])
    void: list[str] = field(default_factory=list[str])

    @property
    def day(self) -> str:
        return str(self.fields["as_of"])

    @property
    def rates(self) -> dict[str, float]:
        return {"USD": 1.0, **self.fields["fx"]}


def reference() -> Playing:
    """Play the case by the documents."""
    return play_case()


def trapped() -> Playing:
    """Play the case without checking records against each other, reading clauses at face value."""
    return play_case(careful=False)


def textbook() -> Playing:
    """Play the case from the custodians' extracts and the vendor's closes, with usual limits and no trades."""
    found = yield from _opened()
    (answers,) = yield (_ask([_PRINTED], ["custodian"]),)
    (printed,) = _answers(answers)
    units = printed["sums"]
    (valued,) = yield (_ask([{"ask": "values", "units": units}], ["prices", "reference", "fx"]),)
    dollars = _answers(valued)[0]["dollars"]
    rules = [
        {"clause": "1", "measure": "weight", "by": "issuer", "comparison": "at_most", "limit": 10},
        {"clause": "2", "measure": "weight", "by": "sector", "comparison": "at_most", "limit": 30},
    ]
    book = _book(units, dollars, _settled_cash(found), (0, 0), [])
    return {"rules": rules, "book": book, "breaches": [], "excluded": [], "trades": [], "figures": {}}


def _opened() -> _Calling[_Found]:
    results = yield (
        ProcedureCall("load_skill", {"skill_name": REVIEW}),
        *(ProcedureCall("get_task_data", {"field": name}) for name in _FIELDS),
        *(ProcedureCall("read_table", {"table": table, "first": first, "rows": 200}) for table, first in _PAGES),
    )
    fields = {name: found["value"] for name, found in zip(_FIELDS, results[1:], strict=False)}
    rows: dict[str, list[Row]] = {}
    for (table, _), page in zip(_PAGES, results[1 + len(_FIELDS) :], strict=True):
        rows.setdefault(table, []).extend(dict(zip(page["columns"], row, strict=True)) for row in page["rows"])
    return _Found(fields, rows)


def play_case(*, careful: bool = True, reconciles: bool = True, largest: int | None = None) -> Playing:
    """Play a case.

    Parameters
    ----------
    careful : read terms, exceptions, bases and timing of the guidelines.
    reconciles : check the records against each other; ignored unless `careful`.
    largest : report only so many of the largest positions; None for all.
    """
    found = yield from _opened()
    yield from _reconciled(found, careful and reconciles)
    units, cash, pending = yield from _traded(found)
    (valued,) = yield (_ask([_values(found, units)], ["prices", "reference", "fx"]),)
    dollars = _answers(valued)[0]["dollars"]
    if largest is not None:
        kept = sorted(units, key=lambda name: -abs(dollars[name]))[:largest]
        units = {name: units[name] for name in kept}
    rules = _rules(str(found.fields["documents.guidelines"]), found.rows["reference"], careful)
    book = _book(units, dollars, cash, pending, found.replaced)
    return (yield from _decided(found, rules, book, units))


def _decided(found: _Found, rules: list[Row], book: Row, units: Mapping[str, float]) -> Playing:
    """Test the rules on the book, cure its breaches, measure the result, and return the answer."""
    pending = {name: book[name] for name in ("pending_purchases", "pending_sales")}
    stated = {"units": units, "cash": book["cash"], "closes": found.closes, "currencies": found.currencies}
    stated |= {"replaced": found.replaced, "quarter": {**found.fields["quarter_to_date"], **pending}}
    measured, cured = yield (
        _run(REVIEW, "run_rules", {"rules": rules, **stated}, _BOOK),
        _run(REVIEW, "cheapest_cure", {"rules": rules, **stated}, _BOOK),
    )
    orders: dict[str, float] = cured.get("output", {}).get("orders", {})
    _, after = yield (
        ProcedureCall("load_skill", {"skill_name": SCREENING}),
        _run(REVIEW, "active_risk", {**stated, "orders": orders}, [*_BOOK, "risk_model"]),
    )
    risk = after["output"]
    ratio = {"numerator": "total_liabilities", "denominator": "stockholders_equity", "weights": risk["equity_dollars"]}
    (levered,) = yield (_run(SCREENING, "statement_lineage", ratio, ["as_of", "filings"]),)
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


_PRINTED = {"ask": "sums", "table": "custodian", "column": "quantity", "by": "security"}
_TABLES = ["custodian", "prices", "second_source", "reference", "benchmark", "filings", "fx"]


def _reconciled(found: _Found, careful: bool) -> _Calling[None]:
    """Read the custodians' units and record where the policy overrules a source."""
    if not careful:
        (answers,) = yield (_ask([_PRINTED], _TABLES),)
        found.printed = _answers(answers)[0]["sums"]
        return
    found.void = [row["replaces"] for row in found.rows["trades"] if row["replaces"]]
    secondary = {row["security"]: row for row in found.rows["second_source"]}
    lines = {row["security"]: row for row in found.rows["reference"]}
    other = [name for name, row in lines.items() if row["currency"] != secondary[name]["currency"]]
    pairs = {name: [lines[name]["currency"], secondary[name]["currency"]] for name in other}
    split = [row for row in found.rows["corporate_actions"] if row["type"] == "split" and row["ex_date"] <= found.day]
    filed = _side("filings", "shares_outstanding") | {"latest": "filed", "until": {"filed": found.day}}
    vendor = _side("reference", "shares_outstanding")
    questions: list[Row] = [
        {**_PRINTED, "once": "lot"},
        {"ask": "unchanged", "sessions": 3},
        {"ask": "differences", "left": _side("reference", "sector"), "right": _side("benchmark", "sector")},
        {"ask": "differences", "left": vendor, "right": filed, "beyond": 0.001},
        {"ask": "costs", "securities": [row["security"] for row in split]},
        {"ask": "levels", "securities": other, "currencies": sorted({one for pair in pairs.values() for one in pair})},
    ]
    (answers,) = yield (_ask(questions, _TABLES),)
    printed, still, sectors, shares, costs, levels = _answers(answers)
    found.printed = printed["sums"]
    gone = {row["security"] for row in found.rows["corporate_actions"] if row["type"] == "merger"}
    for row in still["lines"]:
        if math.fsum(row["volumes"][1:]) > 0 and row["security"] not in gone:
            found.closes[row["security"]] = secondary[row["security"]]["close"]
    for name, row in (("sector", sectors), ("shares_outstanding", shares)):
        for each in row["differences"]:
            found.replaced.append({"issuer": each["key"], "field": name, "value": each["right"]})
    for name, level in levels["over_the_issuers_first_line"].items():
        right = min(pairs[name], key=lambda currency: abs(level[currency] - 1))
        if right != pairs[name][0]:
            found.currencies[name] = right
    _booked(found, split, costs["lots"])


def _side(table: str, column: str) -> Row:
    return {"table": table, "key": "issuer", "column": column}


def _booked(found: _Found, splits: Sequence[Row], lots: Sequence[Row]) -> None:
    """Restate lots from before an unbooked split in post-split units, each lot once."""
    ratios = {row["security"]: row for row in splits}
    for lot in {row["lot"]: row for row in lots}.values():
        split, then = ratios[lot["security"]], lot["close_then"]
        if lot["acquired"] < split["ex_date"] and then is not None:
            cost, ratio = lot["unit_cost"] / then, split["ratio"]
            if abs(cost - 1) < abs(cost * ratio - 1):
                found.printed[lot["security"]] += lot["quantity"] * (ratio - 1)


def _traded(found: _Found) -> _Calling[tuple[dict[str, float], float, tuple[float, float]]]:
    """Return units on trade date, cash with everything due, and dollars of pending purchases and sales."""
    later = {"until": {"trade_date": found.day}, "after": {"settle_date": found.day}}
    pending: Row = {"ask": "sums", "table": "trades", "column": "quantity", "by": "security", **later}
    pending |= {"without": {"trade": found.void}, "negative": {"side": "sell"}}
    dollars = {**pending, "by": "side", "times": ["price"], "in_dollars": True, "currencies": found.currencies}
    (answers,) = yield (_ask([pending, dollars], ["trades", "reference", "fx"]),)
    ordered, paid = _answers(answers)
    units = dict(found.printed)
    for name, count in ordered["sums"].items():
        units[name] = units.get(name, 0.0) + count
    bought, sold = paid["sums"].get("buy", 0.0), -paid["sums"].get("sell", 0.0)
    cash = _settled_cash(found) - bought + sold
    traded = [row for row in found.rows["trades"] if row["trade_date"] <= found.day]
    cash += _actions(units, [row for row in traded if row["trade"] not in found.void], found)
    return {name: count for name, count in units.items() if abs(count) > 1e-6}, cash, (bought, sold)


def _settled_cash(found: _Found) -> float:
    rates = found.rates
    return math.fsum(amount * rates[name] for name, amount in found.fields["cash_balances"].items())


def _actions(units: dict[str, float], orders: Sequence[Row], found: _Found) -> float:
    """Apply dividends, spin-offs and mergers that are not booked yet to `units`; return dollars due."""
    due, day, rates = 0.0, found.day, found.rates
    lines = {row["security"]: row for row in found.rows["reference"]}
    for event in sorted(found.rows["corporate_actions"], key=lambda row: row["ex_date"]):
        name, into = event["security"], event["into"]
        if event["type"] == "split" or event["ex_date"] > day:
            continue
        since = math.fsum(
            row["quantity"] * (-1 if row["side"] == "sell" else 1)
            for row in orders
            if row["security"] == name and row["trade_date"] >= event["ex_date"]
        )
        held = units.get(name, 0.0) - since
        if event["cash"] and event["pay_date"] > day:
            currency = found.currencies.get(name) or lines[name]["currency"]
            rate = rates["GBP"] / 100 if currency == "GBX" else rates[currency]
            due += held * event["cash"] * lines[name]["multiplier"] * rate
        if event["type"] == "spin-off" and into not in units:
            units[into] = held * event["ratio"]
        if event["type"] == "merger" and held:
            units[into] = units.get(into, 0.0) + held * event["ratio"]
            units[name] = 0.0
    return due


def _values(found: _Found, units: Mapping[str, float]) -> Row:
    return {"ask": "values", "units": dict(units), "closes": found.closes, "currencies": found.currencies}


def _ask(questions: Sequence[Row], fields: list[str]) -> ProcedureCall:
    return _run(REVIEW, "reconcile", {"questions": list(questions)}, fields)


def _answers(result: JsonObject) -> list[Row]:
    return result["output"]["answers"]


def _run(package: str, script: str, payload: dict[str, Any], fields: list[str]) -> ProcedureCall:
    path = f"{package}/scripts/{script}.py"
    return ProcedureCall("run_skill_script", {"script_path": path, "input_data": payload, "inject_task_fields": fields})


def _rules(text: str, lines: list[Row], careful: bool) -> list[Row]:
    """Return the rules as read; unless `careful`, without terms, exceptions, bases and timing."""
    issuers = {row["issuer"]: row["issuer"] for row in lines if row["issuer"]}
    rules = read_guidelines(text, Vocabulary(issuers))
    if careful:
        return rules
    plain = ("clause", "measure", "limit", "comparison", "by", "n", "above", "days", "participation", "attribute")
    return [{key: rule[key] for key in plain if key in rule} for rule in rules]


def _book(
    units: Mapping[str, float], dollars: Mapping[str, float], cash: float, pending: tuple[float, float], replaced: Any
) -> Row:
    positions = [{"security": name, "quantity": units[name], "value": dollars[name]} for name in sorted(units)]
    trades = {"pending_purchases": pending[0], "pending_sales": pending[1]}
    return {"positions": positions, "cash": cash, **trades, "replaced": replaced}
