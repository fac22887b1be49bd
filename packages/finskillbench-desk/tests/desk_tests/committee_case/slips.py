"""Answers with a slip in an early part and everything after it consistent with it."""

from __future__ import annotations

import copy
from typing import Any

from finskillbench.episode import Truth
from finskillbench_desk.committee_case.draw import breached, forbidden
from finskillbench_desk.committee_case.judging.agent_documents import Facts, SubmittedAnswer
from finskillbench_desk.engines.books.figures import figures
from finskillbench_desk.engines.guidelines.cure import after, cheapest_cure

FIELDS = {"sector": "sector", "shares": "shares_outstanding"}


def consistent(answer: dict[str, Any], truth: Truth) -> dict[str, Any] | None:
    """The answer with breaches, exclusions, cure and figures by its own rules and book; None where nothing breaks."""
    own = SubmittedAnswer(Facts.of(truth), answer)
    book = own.book
    assert book is not None
    if not breached(own.rules, book):
        return None
    cure = cheapest_cure(own.rules, book, own.facts.trading_costs)
    return {
        **answer,
        "breaches": list(breached(own.rules, book)),
        "excluded": list(forbidden(own.rules, book)),
        "trades": [{"security": name, "value": value} for name, value in cure.trades.items()],
        "figures": figures(after(book, cure.trades), own.facts.risk),
    }


def with_field(answer: dict[str, Any], planted: dict[str, Any], value: Any) -> dict[str, Any]:
    """The answer of somebody who takes a planted field for `value`."""
    changed = copy.deepcopy(answer)
    book, where, field = changed["book"], planted["where"], planted["field"]
    if field in FIELDS:
        rows = [row for row in book["replaced"] if (row["issuer"], row["field"]) != (where, FIELDS[field])]
        book["replaced"] = [*rows, {"issuer": where, "field": FIELDS[field], "value": value}]
        return changed
    row = next(row for row in book["positions"] if row["security"] == where)
    price = row["value"] / row["quantity"]
    if field == "quantity":
        row["quantity"], row["value"] = value, value * price
    else:
        row["value"] = value * row["quantity"]
    return changed
