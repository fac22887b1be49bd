"""Score a case: the mean of rules, book, breaches, cure and figures.

Rules are scored by behaviour, with most weight on clauses that are easily misread. Breaches, cure and figures are
scored against the agent's own rules, book and trades. If these yield no breach, or no trades, the truth is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from finskillbench.episode import JsonObject, Score, Truth
from finskillbench.errors import FinSkillBenchError
from finskillbench.scoring.values import as_object, clip, closeness, mean, numbers, set_f1
from finskillbench.sums import exact_sum
from finskillbench_desk.committee_case.draw import breached, forbidden
from finskillbench_desk.committee_case.judging import true_book
from finskillbench_desk.committee_case.judging.agent_documents import Facts, SubmittedAnswer
from finskillbench_desk.committee_case.rules.judging import judge_rules
from finskillbench_desk.engines.books.figures import figures
from finskillbench_desk.engines.guidelines.book import Book
from finskillbench_desk.engines.guidelines.cure import after, cheapest_cure
from finskillbench_desk.engines.guidelines.evaluation import evaluate
from finskillbench_desk.engines.guidelines.language import Rule

OF_TRAPS = 0.8
"""Weight of the reading traps in part 1; clauses without a trap carry the rest."""
RIGHT, WRONG = 0.95, 0.6
"""Balanced accuracy above chance at which a clause earns full credit, and up to which it earns none."""


@dataclass(frozen=True, slots=True)
class Coding:
    """Score of part 1, of each clause, and the verdict on each reading trap."""

    score: float
    clauses: dict[str, float]
    traps: dict[str, str]


def judge_coding(submitted: SubmittedAnswer) -> Coding:
    hidden = as_object(submitted.facts.known["coding"])
    changed = {name: [clause for clause, _ in rules] for name, rules in as_object(hidden["misread"]).items() if rules}
    if submitted.same_rules:
        agreement = {rule.clause: 1.0 for rule in submitted.facts.rules}
        phantoms: tuple[str, ...] = ()
        traps: dict[str, str] = dict.fromkeys(changed, "avoided")
    else:
        found = judge_rules(submitted.answer.get("rules"), hidden)
        agreement, phantoms = dict(found.clauses), found.phantoms
        traps = {name: fate for name, fate in found.traps.items() if name in changed}
    credit = {clause: clip((score - WRONG) / (RIGHT - WRONG)) for clause, score in agreement.items()}
    of_traps = [
        mean([credit.get(clause, float(bool(submitted.rules) and clause not in phantoms)) for clause in clauses])
        for clauses in changed.values()
    ]
    inside = {clause for clauses in changed.values() for clause in clauses}
    plain = [value for clause, value in credit.items() if clause not in inside]
    weight = OF_TRAPS if plain and of_traps else float(bool(of_traps))
    score = (weight * mean(of_traps) + (1 - weight) * mean(plain)) * len(credit) / (len(credit) + len(phantoms))
    return Coding(score, agreement, traps)


OF_BREACHES = 0.6
"""Share of part 3 that depends on breaches alone; the rest also needs the exclusions."""
ROUNDED = 0.003
"""Excess over a limit, in its unit, that rounded trades may leave; true books keep a larger distance."""
RESIDUE = 100.0
"""Dollars of a holding, or of debt, that rounding may leave."""
MAX_COST_RATIO = 1.25
"""Cost relative to the least cost from which a cure earns nothing."""
EXACT = 1e-3
"""Relative excess over the least cost that counts as rounding."""
FULL, ZERO = 5e-4, 0.01
"""Relative error of a figure up to which it earns full credit, and from which it earns none."""


def premises(submitted: SubmittedAnswer) -> tuple[tuple[Rule, ...], Book]:
    """Return rules and book for later parts: the agent's own if they yield a breach, else the true ones."""
    facts = submitted.facts
    rules = facts.rules if submitted.same_rules else submitted.rules
    book = facts.book if submitted.is_true or submitted.book is None else submitted.book
    if rules and breached(rules, book):
        return rules, book
    return facts.rules, facts.book


def breaches(submitted: SubmittedAnswer) -> float:
    """Score part 3: clauses in breach, and excluded lines."""
    rules, book = premises(submitted)
    found = set_f1(submitted.names("breaches"), set(breached(rules, book)))
    return found * (OF_BREACHES + (1 - OF_BREACHES) * set_f1(submitted.names("excluded"), set(forbidden(rules, book))))


def cure(submitted: SubmittedAnswer) -> float:
    """Score part 4: 0 unless the trades keep all limits, else by cost relative to the least cost."""
    rules, book = premises(submitted)
    facts = submitted.facts
    least = _least_cost(facts, rules, book)
    if least is None:
        rules, book, least = facts.rules, facts.book, float(facts.known["least_cost"])
    trades = submitted.trades
    if not trades or not cure_keeps_limits(rules, book, trades):
        return 0.0
    cost = exact_sum(facts.trading_costs.rates.get(name, 1.0) * abs(value) for name, value in trades.items()) / book.nav
    if cost <= least * (1 + EXACT):
        return 1.0
    return clip((MAX_COST_RATIO - cost / least) / (MAX_COST_RATIO - 1))


def _least_cost(facts: Facts, rules: tuple[Rule, ...], book: Book) -> float | None:
    """Return the least cost as a fraction of net asset value; None if unproved, or if nothing needs a cure."""
    if rules is facts.rules and book is facts.book:
        return float(facts.known["least_cost"])
    try:
        with np.errstate(all="ignore"):
            least = cheapest_cure(rules, book, facts.trading_costs).cost
    except (FinSkillBenchError, ArithmeticError, ValueError, np.linalg.LinAlgError):
        return None
    return least if least > 1e-12 else None


def cure_keeps_limits(rules: tuple[Rule, ...], book: Book, trades: dict[str, float]) -> bool:
    """Return True if the book after the trades keeps every limit up to rounding, without borrowing or short sales."""
    held = {position.instrument.name: position.value + position.notional for position in book.positions}
    # A holding within rounding of zero counts as sold.
    sold = {name for name, value in trades.items() if name in held and abs(held[name] + value) < RESIDUE}
    cured = after(book, {name: -held[name] if name in sold else value for name, value in trades.items()})
    for position in cured.positions:
        sign = -1.0 if held.get(position.instrument.name, 0.0) < 0 else 1.0
        if sign * (position.value + position.notional) < -RESIDUE:
            return False
    return all(
        outcome.state != "breach" or abs(outcome.measured - outcome.limit) <= ROUNDED
        for outcome in evaluate(rules, cured)
    )


def after_cure(submitted: SubmittedAnswer) -> float:
    """Score part 5: figures of the agent's own book after its own trades."""
    facts = submitted.facts
    _, book = premises(submitted)
    if submitted.trades:
        with np.errstate(all="ignore"):
            wanted = figures(after(book, submitted.trades), facts.risk)
    else:
        wanted = numbers(facts.expected["figures"])
    stated = numbers(submitted.answer.get("figures"))
    bounds = {"full": FULL, "full_floor": 1e-4, "zero": ZERO, "zero_floor": 1e-3}
    near = [closeness(stated.get(name), x, **bounds) if np.isfinite(x) else 0.0 for name, x in wanted.items()]
    return mean(near)


FULL_WEIGHT = {"rules": 0.5, "book": 0.6}
ZERO_WEIGHT = 0.2
"""Scores of parts 1 and 2 for full weight of the later parts, and the score up to which these earn nothing."""
SIGNED = 0.995
"""Least score of every part of a case that counts as signed."""


def score_committee_case(answer: JsonObject, truth: Truth, task_input: Any) -> Score:
    """Score an answer: rules, book, breaches, cure and figures, later parts against the agent's own earlier parts."""
    del task_input  # tables are not read for scoring
    submitted = SubmittedAnswer(Facts.of(truth), answer)
    rules, book = judge_coding(submitted), true_book.judge_book(submitted)
    parts = {"rules": rules.score, "book": book.score}
    weight = min(clip((parts[name] - ZERO_WEIGHT) / (full - ZERO_WEIGHT)) for name, full in FULL_WEIGHT.items())
    for name, part in (("breaches", breaches), ("cure", cure), ("figures", after_cure)):
        parts[name] = weight * part(submitted) if weight else 0.0
    details = {
        "parts": parts,
        "signed": min(parts.values()) >= SIGNED,
        "traps": {**{f"{trap}@guidelines": fate for trap, fate in rules.traps.items()}, **book.traps},
        "controls": book.controls,
        "clauses": rules.clauses,
    }
    return Score(mean(list(parts.values())), details)
