"""Run coded rules on a book that you state: the measure of each, where, against which limit.

Payload: rules; reference, benchmark, constituents, prices and fx from the task data; the book as units (by security),
cash (dollars), closes and currencies (by security, where the last close or the reference's currency does not count),
replaced ({issuer, field, value} in place of the reference file's), quarter (purchases, sales, pending_purchases,
pending_sales). With `orders` (dollars by security) the book after these trades is measured too. An unknown key is
refused; references/books.md has a table of keys.
Result: outcomes (clause, measured, limit, where, state: ok, breach, report, or passive beyond a limit that
is only tested at purchase), none_allowed (by clause, the lines of which a rule allows nothing), and after.
"""

from typing import Any

import numpy as np

from finskillbench.engines.fields import refuse_unknown
from finskillbench.sandbox.script import cli, rounded
from finskillbench_desk.engines.guidelines.book import Book
from finskillbench_desk.engines.guidelines.cure import after
from finskillbench_desk.engines.guidelines.evaluation import evaluate, matches
from finskillbench_desk.engines.guidelines.language import Rule
from finskillbench_desk.engines.guidelines.stated import BOOK, book_from, orders_from, rules_from


def main(payload: dict[str, Any]) -> dict[str, Any]:
    """Measure a book, before and after trades."""
    refuse_unknown(payload, ("rules", "orders", *BOOK), "run_rules")
    rules, book = rules_from(payload), book_from(payload)
    result: dict[str, Any] = {"outcomes": _outcomes(rules, book), "none_allowed": _none_allowed(rules, book)}
    if trades := orders_from(payload, book):
        result["after"] = _outcomes(rules, after(book, trades))
    return rounded(result)


def _outcomes(rules: tuple[Rule, ...], book: Book) -> list[dict[str, Any]]:
    return [
        {
            "clause": outcome.rule.clause,
            "measured": outcome.measured,
            "limit": outcome.limit,
            "where": outcome.where,
            "state": outcome.state,
        }
        for outcome in evaluate(rules, book)
    ]


def _none_allowed(rules: tuple[Rule, ...], book: Book) -> dict[str, list[str]]:
    universe = book.universe
    found: dict[str, list[str]] = {}
    for atom in (atom for rule in rules if rule.effect == "limit" for atom in rule.atoms()):
        fixed = not atom.limit.relative and max(term.plus for term in atom.limit.terms) <= 0
        if atom.measure == "weight" and atom.comparison == "at_most" and fixed:
            places = np.flatnonzero(matches(atom.of, universe)).tolist()
            found.setdefault(atom.clause, []).extend(universe.instruments[place].name for place in places)
    return found


if __name__ == "__main__":
    cli(main)
