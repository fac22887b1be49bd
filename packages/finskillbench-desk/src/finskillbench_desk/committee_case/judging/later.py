"""Parts 3 to 5: breaches, cure and figures, each by the agent's own rules, book and trades where they say something.

Where by an agent's own parts nothing is in breach, or nothing is traded, there is nothing to be consistent with, and
the truth is what counts.

Part 1, the coded rules: by behaviour, clause by clause, the clauses that are easily misread weighing most.

The score of a case: the mean of five parts, and whether it could be signed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from finskillbench.episode import JsonObject, Score, Truth
from finskillbench.errors import FinSkillBenchError
from finskillbench.scoring.values import clip, closeness, mapping, mean, numbers, set_f1
from finskillbench.sums import exact_sum
from finskillbench_desk.committee_case.draw import breached, forbidden
from finskillbench_desk.committee_case.judging import papers
from finskillbench_desk.committee_case.judging.agent_documents import Facts, Own
from finskillbench_desk.committee_case.rules.judging import judge
from finskillbench_desk.engines.books.figures import figures
from finskillbench_desk.engines.guidelines.book import Book
from finskillbench_desk.engines.guidelines.cure import after, cheapest_cure
from finskillbench_desk.engines.guidelines.evaluation import evaluate
from finskillbench_desk.engines.guidelines.language import Rule

OF_TRAPS = 0.8
"""Share of the part that the reading traps carry; clauses that no trap touches carry the rest."""
RIGHT, WRONG = 0.95, 0.6
"""Agreement with a clause on its probes (2 x balanced accuracy - 1) from which it counts in full; up to which not."""


@dataclass(frozen=True, slots=True)
class Coding:
    """The part's score, each clause's, and what became of each reading trap."""

    score: float
    clauses: dict[str, float]
    traps: dict[str, str]


def judged(own: Own) -> Coding:
    """Judge the rules of an answer."""
    hidden = mapping(own.facts.known["coding"])
    changed = {name: [clause for clause, _ in rules] for name, rules in mapping(hidden["misread"]).items() if rules}
    if own.same_rules:
        agreement = {rule.clause: 1.0 for rule in own.facts.rules}
        phantoms: tuple[str, ...] = ()
        traps: dict[str, str] = dict.fromkeys(changed, "avoided")
    else:
        found = judge(own.answer.get("rules"), hidden)
        agreement, phantoms = dict(found.clauses), found.phantoms
        traps = {name: fate for name, fate in found.traps.items() if name in changed}
    credit = {clause: clip((score - WRONG) / (RIGHT - WRONG)) for clause, score in agreement.items()}
    of_traps = [
        mean([credit.get(clause, float(bool(own.rules) and clause not in phantoms)) for clause in clauses])
        for clauses in changed.values()
    ]
    inside = {clause for clauses in changed.values() for clause in clauses}
    plain = [value for clause, value in credit.items() if clause not in inside]
    weight = OF_TRAPS if plain and of_traps else float(bool(of_traps))
    score = (weight * mean(of_traps) + (1 - weight) * mean(plain)) * len(credit) / (len(credit) + len(phantoms))
    return Coding(score, agreement, traps)


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
    least = _least_cost(facts, rules, book)
    if least is None:
        rules, book, least = facts.rules, facts.book, float(facts.known["least_cost"])
    trades = own.trades
    if not trades or not keeps(rules, book, trades):
        return 0.0
    cost = exact_sum(facts.terms.rates.get(name, 1.0) * abs(value) for name, value in trades.items()) / book.nav
    if cost <= least * (1 + EXACT):
        return 1.0
    return clip((DEAREST - cost / least) / (DEAREST - 1))


def _least_cost(facts: Facts, rules: tuple[Rule, ...], book: Book) -> float | None:
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


FOUNDED = {"rules": 0.5, "book": 0.6}
UNFOUNDED = 0.2
"""What each of the first two parts must earn for the later ones to count in full, and up to which they count for
nothing: whoever has no rules, or no book, has nothing to be consistent with."""
SIGNED = 0.995
"""Score of every part of a case that could be signed."""


def score(answer: JsonObject, truth: Truth, task_input: Any) -> Score:
    """Judge an answer: rules, book, breaches, cure and figures, each by what the earlier ones come to."""
    del task_input  # its tables are not opened to judge
    own = Own(Facts.of(truth), answer)
    rules, book = judged(own), papers.judged(own)
    parts = {"rules": rules.score, "book": book.score}
    founded = min(clip((parts[name] - UNFOUNDED) / (full - UNFOUNDED)) for name, full in FOUNDED.items())
    for name, part in (("breaches", breaches), ("cure", cure), ("figures", after_cure)):
        parts[name] = founded * part(own) if founded else 0.0
    details = {
        "parts": parts,
        "signed": min(parts.values()) >= SIGNED,
        "traps": {**{f"{trap}@guidelines": fate for trap, fate in rules.traps.items()}, **book.traps},
        "controls": book.controls,
        "clauses": rules.clauses,
    }
    return Score(mean(list(parts.values())), details)
