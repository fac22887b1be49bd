"""Limits that suit a book: a clause is given a usual number at which the book keeps it, or breaks it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from finskillbench_desk.committee_case.documents.clauses import Carve, Clause, Timing, coded
from finskillbench_desk.committee_case.documents.kinds import KINDS
from finskillbench_desk.committee_case.documents.terms import Term, filters
from finskillbench_desk.engines.guidelines.book import Book
from finskillbench_desk.engines.guidelines.evaluation import Outcome, outcome

NEAREST = 3
"""A limit is drawn among so many usual numbers next to what the book measures: one far away tests nothing."""


def said(clause: Clause, book: Book, terms: Mapping[str, Term], default: Timing) -> Outcome:
    """What a clause says of a book, by its true meaning."""
    return outcome(coded(KINDS[clause.kind], clause, filters(dict(terms), naive=False), default), book)


def fitted(
    clause: Clause,
    book: Book | None,
    terms: Mapping[str, Term],
    default: Timing,
    rng: np.random.Generator,
    exceeded: bool,
) -> Clause | None:
    """The clause with a usual limit that the book keeps, or exceeds; None where no usual number does that.

    Without a book any usual limit does. Exceptions keep their distance from the limit.
    """
    grid = KINDS[clause.kind].grid
    if book is None:
        return with_limit(clause, grid[int(rng.integers(len(grid)))], rng)
    suited: list[tuple[float, Clause]] = []
    for value in grid:
        tried = with_limit(clause, value, rng)
        found = said(tried, book, terms, default)
        if (found.state in ("breach", "report")) == exceeded:
            suited.append((abs(found.measured - found.limit), tried))
    if not suited:
        return None
    suited.sort(key=lambda pair: pair[0])
    return suited[int(rng.integers(min(NEAREST, len(suited))))][1]


def with_limit(clause: Clause, value: float, rng: np.random.Generator) -> Clause:
    """The clause with another limit; an exception that has a limit is given a usual one above it."""
    carves = tuple(
        each if each.limit is None else Carve(each.who, raised(value, rng), each.by) for each in clause.exceptions
    )
    return clause.amended(limit=float(value), exceptions=carves)


def raised(value: float, rng: np.random.Generator) -> float:
    """A limit for an exception: a quarter to the whole above the general one, in round numbers."""
    steps = 2 if value < 8 else 1
    return float(np.ceil(steps * value * rng.uniform(1.25, 2.0)) / steps)
