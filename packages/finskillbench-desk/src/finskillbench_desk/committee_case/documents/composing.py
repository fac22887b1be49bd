"""One document from beginning to end: `draw_guidelines`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from finskillbench.errors import InputError
from finskillbench_desk.committee_case.documents.amending import AMENDMENTS, ITEMS, UNDO, Undoing, twice
from finskillbench_desk.committee_case.documents.clauses import Clause, Timing
from finskillbench_desk.committee_case.documents.drafting import GRANTS, Draft, choose_clauses, draw_style
from finskillbench_desk.committee_case.documents.guidelines import Grant, Guidelines, Item
from finskillbench_desk.committee_case.documents.kinds import KINDS
from finskillbench_desk.committee_case.documents.rendering import rendered
from finskillbench_desk.committee_case.documents.terms import draw_terms
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.engines.guidelines.book import Book

PARAGRAPHS = 40
_FIRST_SECTION, _LAST = 3, "Reporting"
_READING = 3
"""Paragraphs on how the document is read."""
_TRIES = 60


def draw_guidelines(
    rng: np.random.Generator,
    vocabulary: Vocabulary,
    as_of: date,
    book: Book | None = None,
    breaches: int = 4,
    asked: Sequence[str] = (),
) -> Guidelines:
    """A document of forty paragraphs with its coded rules.

    With a book, limits are usual numbers that the book keeps, except for so many clauses, which it breaks (fewer where
    the book cannot break as many by any usual number), and about half of the reporting thresholds. `asked` are kinds of
    clauses to have; see `drafting.rotation`.

    Raises
    ------
    InputError : if no document suits the book after many attempts.
    """
    for _ in range(_TRIES):
        guidelines = _attempt(rng, vocabulary, as_of, book, breaches, asked)
        if guidelines is not None:
            return guidelines
    raise InputError("no guidelines suit the book: give it more positions of more kinds")


def _attempt(
    rng: np.random.Generator,
    vocabulary: Vocabulary,
    as_of: date,
    book: Book | None,
    breaches: int,
    asked: Sequence[str],
) -> Guidelines | None:
    default: Timing = "purchase" if rng.integers(2) else "always"
    draft = Draft(rng, vocabulary, draw_terms(rng, vocabulary), default, book)
    style = draw_style(rng)
    drawn = choose_clauses(draft, asked, breaches)
    if drawn is None:
        return None
    needed = {"securities", "equities", *_needs(drawn)}
    terms = {key: term for key, term in draft.terms.items() if key in needed}
    draft = replace(draft, terms=terms)
    inserted = bool(rng.integers(2))
    deleted = bool(rng.integers(2)) or not inserted
    count = PARAGRAPHS - 1 - len(terms) - _READING - GRANTS - AMENDMENTS * ITEMS + inserted - deleted
    clauses, spare = drawn[:count], drawn[count]
    sections, numbered, grants = _numbered(draft, [*clauses, *([spare] if deleted else [])])
    if len(grants) != GRANTS:
        return None
    last = numbered.pop() if deleted else None
    touched = {number for grant in grants for number in (grant.target, grant.prevails)}
    undo = Undoing(
        draft,
        style,
        {clause.number: clause for clause in numbered},
        dict(terms),
        [clause.number for clause in numbered if clause.number not in touched],
        [last] if last else [],
        frozenset((*(c.number for c in numbered), *(g.number for g in grants), *([last.number] if last else []))),
    )
    items = _undone(undo, inserted, deleted)
    if items is None:
        return None
    original = tuple(sorted(undo.clauses.values(), key=lambda c: tuple(map(int, c.number.split(".")))))
    guidelines = Guidelines(style, default, undo.terms, sections, original, tuple(grants), items)
    return replace(guidelines, text=rendered(guidelines, vocabulary, _dates(rng, as_of)))


def _needs(clauses: Sequence[Clause]) -> set[str]:
    """Keys of the terms that clauses use."""
    carves = {carve.who for clause in clauses for carve in clause.exceptions}
    used = {key for clause in clauses for key in KINDS[clause.kind].uses}
    return used | (carves & {"approved"})


def _numbered(draft: Draft, clauses: list[Clause]) -> tuple[tuple[str, ...], list[Clause], list[Grant]]:
    """Headings, the clauses with their numbers in the order given, and the grants that were exceptions so far."""
    inside: dict[str, list[int | str]] = {}
    for i, clause in enumerate(clauses):
        inside.setdefault(KINDS[clause.kind].section, []).append(i)
        granting = [carve.who for carve in clause.exceptions if carve.by]
        inside[KINDS[clause.kind].section] += [clause.kind] * len(granting)
    headings = draft.some([heading for heading in inside if heading != _LAST], len(inside))
    sections = (*headings, *([_LAST] if _LAST in inside else []))
    numbers: dict[int | str, str] = {}
    for i, heading in enumerate(sections, _FIRST_SECTION):
        order = inside[heading]
        for j, at in enumerate(draft.rng.permutation(len(order)), 1):
            numbers[order[int(at)]] = f"{i}.{j}"
    by_kind = {clause.kind: numbers[i] for i, clause in enumerate(clauses)}
    grants: list[Grant] = []
    for clause in clauses:
        for carve in (carve for carve in clause.exceptions if carve.by):
            prevails = by_kind.get(carve.by, "")
            frame = int(draft.rng.integers(8))
            grants.append(Grant(numbers[clause.kind], by_kind[clause.kind], carve.who, carve.limit, prevails, frame))
    numbered = [
        clause.amended(number=numbers[i], exceptions=tuple(carve for carve in clause.exceptions if not carve.by))
        for i, clause in enumerate(clauses)
    ]
    return sections, numbered, grants


def _undone(undo: Undoing, inserted: bool, deleted: bool) -> tuple[tuple[Item, ...], ...] | None:
    """The items of the amendments, found by undoing them one after the other."""
    draft = undo.draft
    pair = bool(draft.rng.integers(2)) and twice(undo)
    wanted = [*(["insert"] if inserted else []), *(["delete"] if deleted else []), "replace", "number"]
    wanted += draft.some(("basis", "timing", "exception_add", "exception_drop", "definition"), 5)
    for name in (*wanted, "number", "number", "number"):
        if len(undo.items) == AMENDMENTS * ITEMS:
            break
        done = UNDO[name](undo)
        if not done and name in ("insert", "delete"):
            return None
    if len(undo.items) != AMENDMENTS * ITEMS:
        return None
    first, second = ([undo.items[1]], [undo.items[0]]) if pair else ([], [])
    others = undo.items[2:] if pair else undo.items
    order = [others[int(i)] for i in draft.rng.permutation(len(others))]
    first += order[: ITEMS - len(first)]
    second += order[ITEMS - pair :]
    return tuple(
        tuple(replace(item, number=f"A{i}.{j}") for j, item in enumerate(items, 1))
        for i, items in enumerate((first, second), 1)
    )


def _dates(rng: np.random.Generator, as_of: date) -> tuple[str, ...]:
    """Days on which amendments came into force, in order, all before the day of the case."""
    back = sorted((int(days) for days in rng.choice(np.arange(40, 2_000), AMENDMENTS, replace=False)), reverse=True)
    days = [as_of - timedelta(days=each) for each in back]
    return tuple(f"{day.day} {day:%B} {day.year}" for day in days)
