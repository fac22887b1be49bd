"""Parts 3 to 5: breaches, cure and figures, each by the agent's own rules, book and trades where they say something.

Where by an agent's own parts nothing is in breach, or nothing is traded, there is nothing to be consistent with, and
the truth is what counts.
"""

from __future__ import annotations

import numpy as np

from finskillbench.errors import FinSkillBenchError
from finskillbench.scoring.measures import clip, closeness, mean, set_f1
from finskillbench.scoring.values import numbers
from finskillbench.sums import summed
from finskillbench_desk.committee_case.judging.facts import Facts
from finskillbench_desk.committee_case.judging.own import Own
from finskillbench_desk.committee_case.standing import breached, forbidden
from finskillbench_desk.engines.books.figures import figures
from finskillbench_desk.engines.guidelines.book import Book
from finskillbench_desk.engines.guidelines.cure import after, cheapest_cure
from finskillbench_desk.engines.guidelines.evaluation import evaluate
from finskillbench_desk.engines.guidelines.language import Rule

OF_BREACHES = 0.6
"""Share of part 3 that needs the breaches alone; the rest also needs what may not be held."""
ROUNDED = 0.003
"""Excess over a limit, in its unit, that rounded trades may leave: no book is as near to a limit by design."""
CRUMBS = 100.0
"""Dollars of a holding, or owed, that rounding may leave."""
DEAREST = 1.25
"""Times the least cost from which a cure earns nothing."""
EXACT = 1e-3
"""Relative excess over the least cost that rounding explains."""
FULL, ZERO = 5e-4, 0.01
"""Relative errors of a figure that cost nothing, and everything."""


def premises(own: Own) -> tuple[tuple[Rule, ...], Book]:
    """The rules and the book that later parts are judged by: the agent's own, where by them something is in breach."""
    facts = own.facts
    rules = facts.rules if own.same_rules else own.rules
    book = facts.book if own.is_true or own.book is None else own.book
    if rules and breached(rules, book):
        return rules, book
    return facts.rules, facts.book


def breaches(own: Own) -> float:
    """Part 3: the clauses in breach, and the lines of which nothing may be held."""
    rules, book = premises(own)
    found = set_f1(own.names("breaches"), set(breached(rules, book)))
    return found * (OF_BREACHES + (1 - OF_BREACHES) * set_f1(own.names("excluded"), set(forbidden(rules, book))))


def cure(own: Own) -> float:
    """Part 4: trades after which all is kept, by what they cost against the least."""
    rules, book = premises(own)
    facts = own.facts
    least = least_cost(facts, rules, book)
    if least is None:
        rules, book, least = facts.rules, facts.book, float(facts.known["least_cost"])
    trades = own.trades
    if not trades or not keeps(rules, book, trades):
        return 0.0
    cost = summed(facts.terms.rates.get(name, 1.0) * abs(value) for name, value in trades.items()) / book.nav
    if cost <= least * (1 + EXACT):
        return 1.0
    return clip((DEAREST - cost / least) / (DEAREST - 1))


def least_cost(facts: Facts, rules: tuple[Rule, ...], book: Book) -> float | None:
    """The least cost of a cure, a fraction of net asset value; None where nothing can be proved, or nothing cured."""
    if rules is facts.rules and book is facts.book:
        return float(facts.known["least_cost"])
    try:
        with np.errstate(all="ignore"):
            least = cheapest_cure(rules, book, facts.terms).cost
    except (FinSkillBenchError, ArithmeticError, ValueError, np.linalg.LinAlgError):
        return None
    return least if least > 1e-12 else None


def keeps(rules: tuple[Rule, ...], book: Book, trades: dict[str, float]) -> bool:
    """Whether the book after the trades keeps every limit but for rounding, with nothing borrowed or sold short."""
    held = {position.instrument.name: position.value + position.notional for position in book.positions}
    # What rounding leaves of a holding is none.
    trades = {
        name: -held[name] if name in held and abs(held[name] + value) < CRUMBS else value
        for name, value in trades.items()
    }
    cured = after(book, trades)
    for position in cured.positions:
        sign = -1.0 if held.get(position.instrument.name, 0.0) < 0 else 1.0
        if sign * (position.value + position.notional) < -CRUMBS:
            return False
    return all(
        outcome.state != "breach" or abs(outcome.measured - outcome.limit) <= ROUNDED
        for outcome in evaluate(rules, cured)
    )


def after_cure(own: Own) -> float:
    """Part 5: the figures of the agent's own book after its own trades."""
    facts = own.facts
    _, book = premises(own)
    if own.trades:
        with np.errstate(all="ignore"):
            wanted = figures(after(book, own.trades), facts.risk)
    else:
        wanted = numbers(facts.expected["figures"])
    given = numbers(own.answer.get("figures"))
    return mean(
        [
            closeness(given.get(name), value, full=FULL, full_floor=1e-4, zero=ZERO, zero_floor=1e-3)
            if np.isfinite(value)
            else 0.0
            for name, value in wanted.items()
        ]
    )
