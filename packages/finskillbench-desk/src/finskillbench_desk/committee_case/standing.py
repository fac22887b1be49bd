"""Where a book stands against rules: what it is in breach of, and what it may not hold at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from finskillbench_desk.engines.guidelines.book import Book
from finskillbench_desk.engines.guidelines.evaluation import evaluate, matches
from finskillbench_desk.engines.guidelines.language import Rule


def breached(rules: Sequence[Rule], book: Book) -> tuple[str, ...]:
    """Numbers of the clauses that a book is in breach of, sorted."""
    return tuple(sorted({outcome.rule.clause for outcome in evaluate(rules, book) if outcome.state == "breach"}))


def forbidden(rules: Sequence[Rule], book: Book) -> tuple[str, ...]:
    """Lines of which the rules allow none: a weight of at most 0 applies to them, whenever it is tested."""
    universe = book.universe
    found = np.zeros(len(universe.instruments), dtype=np.bool_)
    for atom in (atom for rule in rules if rule.effect == "limit" for atom in rule.atoms()):
        none = atom.measure == "weight" and atom.comparison == "at_most" and not atom.limit.relative
        if none and max(term.plus for term in atom.limit.terms) <= 0:
            found |= matches(atom.of, universe)
    out = zip(universe.instruments, found.tolist(), strict=True)
    return tuple(sorted(line.name for line, banned in out if banned and line.kind != "cash"))
