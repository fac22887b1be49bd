"""Draw a guideline document (`draw_guidelines`): clauses in force first, then undo its amendments item by item."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import numpy as np

from finskillbench.errors import InputError
from finskillbench_desk.committee_case.documents import phrases
from finskillbench_desk.committee_case.documents.clauses import CarveOut, Clause, Timing
from finskillbench_desk.committee_case.documents.drafting import (
    GRANTS,
    GuidelineDraft,
    choose_clauses,
    draw_carve,
    draw_style,
)
from finskillbench_desk.committee_case.documents.kinds import KINDS
from finskillbench_desk.committee_case.documents.rendering import (
    AmendmentItem,
    Grant,
    Guidelines,
    Operation,
    Style,
    basis_name,
    exemption_phrases,
    quantity,
    rendered,
    sentence,
)
from finskillbench_desk.committee_case.documents.terms import DefinedTerm, draw_definitions, raised
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.engines.guidelines.book import Book

AMENDMENTS, ITEMS = 2, 3
"""Amendments per document, and items per amendment."""


@dataclass
class UndoState:
    """Document while its amendments are undone: `clauses` and `definitions` become the original ones.

    `free` numbers belong to clauses without references or changes, `spare` clauses exist only to be deleted. `numbers`
    are all numbers in use, and `items` run from the last to the first.
    """

    draft: GuidelineDraft
    style: Style
    clauses: dict[str, Clause]
    definitions: dict[str, DefinedTerm]
    free: list[str]
    spare: list[Clause]
    numbers: frozenset[str]
    items: list[AmendmentItem] = field(default_factory=list[AmendmentItem])

    def add(self, operation: Operation, after: Clause | None, before: Clause, **details: Any) -> bool:
        """Add an item that changed `before` to `after`, restore `before`, and return True."""
        frame = int(self.draft.rng.integers(8))
        self.items.append(AmendmentItem("", operation, before.number, after, None, details, frame))
        self.clauses[before.number] = before
        self.free = [number for number in self.free if number != before.number]
        return True

    def add_term(self, operation: Operation, after: DefinedTerm, before: DefinedTerm, **details: Any) -> bool:
        """Add an item that changed a defined term, restore it, and return True."""
        frame = int(self.draft.rng.integers(8))
        self.items.append(AmendmentItem("", operation, "", None, after, {"term": after.name, **details}, frame))
        self.definitions[before.key] = before
        return True

    def undo(self, name: str) -> bool:
        """Undo a change of this name, on a random free clause that allows it; return False if none does."""
        if name == "definition":
            return _definition(self)
        if name == "delete":
            return bool(self.spare) and self.add("delete", None, self.spare.pop())
        allowed, change = UNDO[name]
        fitting = [number for number in self.free if allowed(self, self.clauses[number])]
        return bool(fitting) and change(self, self.clauses[self.draft.one_of(fitting)])


def _other_limit(undo: UndoState, clause: Clause) -> float | None:
    """Return another usual limit, more than 12 % away and below those of exceptions; None if there is none."""
    most = min((each.limit for each in clause.exceptions if each.limit is not None), default=float("inf"))
    grid = [v for v in KINDS[clause.kind].grid if abs(v - clause.limit) > 0.12 * clause.limit and v < most]
    near = sorted(grid, key=lambda value: abs(value - clause.limit))[:4]
    return float(near[int(undo.draft.rng.integers(len(near)))]) if near else None


def _plainly(undo: UndoState, before: Clause, old: str) -> bool:
    """Return True if the old value occurs exactly once in the clause, so that the replaced text is clear."""
    text = sentence(before, undo.style, undo.definitions, undo.draft.vocabulary)
    return text.count(old) == 1 and f"1{old}" not in text and f"2{old}" not in text


def _number(undo: UndoState, clause: Clause) -> bool:
    old = _other_limit(undo, clause)
    if old is None:
        return False
    before = clause.amended(limit=old)
    was, now = (quantity(each.limit, KINDS[clause.kind].unit, undo.style) for each in (before, clause))
    return _plainly(undo, before, was) and undo.add("number", clause, before, old=was, new=now)


def _other_basis(clause: Clause) -> Clause:
    return clause.amended(basis="nav" if clause.basis == "equity" else "equity")


def _basis(undo: UndoState, clause: Clause) -> bool:
    before = _other_basis(clause)
    was, now = (basis_name(each, undo.style) for each in (before, clause))
    return _plainly(undo, before, was) and undo.add("basis", clause, before, old=was, new=now)


def _timing(undo: UndoState, clause: Clause) -> bool:
    default = undo.draft.default
    now = default if clause.when == "silent" else clause.when
    was: Timing = "always" if now == "purchase" else "purchase"
    before = clause.amended(when="silent" if was == default else was)
    return undo.add("timing", clause.amended(when=now), before, timing=undo.draft.one_of(phrases.TIMING[now]))


def _replace(undo: UndoState, clause: Clause) -> bool:
    old = _other_limit(undo, clause)
    if old is None:
        return False
    before = clause.amended(limit=old, frame=clause.frame + 1 + int(undo.draft.rng.integers(6)))
    if KINDS[clause.kind].equity and undo.draft.rng.integers(2):
        before = _other_basis(before)
    return undo.add("replace", clause, before)


def _is_last(undo: UndoState, clause: Clause) -> bool:
    """Return True for the last of several clauses of a section."""
    section, _, place = clause.number.partition(".")
    numbers = [number.split(".") for number in undo.numbers]
    return int(place) == max(int(number[1]) for number in numbers if number[0] == section) > 1


def _insert(undo: UndoState, clause: Clause) -> bool:
    """Remove a clause, so that an amendment inserts it."""
    undo.add("insert", clause, clause)
    del undo.clauses[clause.number]
    return True


def _exception_drop(undo: UndoState, clause: Clause) -> bool:
    carves, vocabulary = KINDS[clause.kind].carves, undo.draft.vocabulary
    carve = draw_carve(undo.draft, carves)
    if carve.who == "approved" and "approved" not in undo.definitions:
        return False
    if carve.limit is not None:
        carve = CarveOut(carve.who, raised(clause.limit, undo.draft.rng))
    who = exemption_phrases(carve.who, carves, undo.definitions, vocabulary)["who"]
    return undo.add("exception_drop", clause, clause.amended(exceptions=(carve,)), who=who)


def _definition(undo: UndoState) -> bool:
    keys = [key for key in ("emerging", "region", "small", "group", "theme") if key in undo.definitions]
    if not keys or any(item.term for item in undo.items):
        return False
    term = undo.definitions["small" if "small" in keys and undo.draft.rng.integers(2) else undo.draft.one_of(keys)]
    rng, vocabulary = undo.draft.rng, undo.draft.vocabulary
    if term.key == "small":
        was = float(rng.choice([v for v in (1, 2, 3, 4, 5, 8, 10) if v != term.number]))
        details = {"old": f"USD {was:g} billion", "new": f"USD {term.number:g} billion"}
        return undo.add_term("definition_number", term, term.amended(number=was), **details)
    if term.key in ("emerging", "region"):
        unused = [code for code in term.naive_values if code not in term.values]
        word = str(rng.choice(term.values if rng.integers(2) else unused))
        name = vocabulary.countries[word]
    else:
        subs = [sub for sub in vocabulary.sub_sectors if vocabulary.sub_sectors[sub] != term.sector]
        adding = len(term.values) > 1 and bool(rng.integers(2))
        word = str(rng.choice(term.values if adding else [sub for sub in subs if sub not in term.values]))
        name = f"the Sub-Sector {word}"
    inside = word in term.values
    values = tuple(each for each in term.values if each != word) if inside else tuple(sorted((*term.values, word)))
    operation: Operation = "definition_in" if inside else "definition_out"
    return undo.add_term(operation, term, term.amended(values=values), word=name)


UNDO: Mapping[str, tuple[Callable[[UndoState, Clause], bool], Callable[[UndoState, Clause], bool]]] = {
    "number": (lambda undo, c: KINDS[c.kind].unit in ("percent", "points") and c.limit > 0, _number),
    "basis": (lambda undo, c: KINDS[c.kind].equity and KINDS[c.kind].cls == "cap", _basis),
    "timing": (lambda undo, c: KINDS[c.kind].cls == "cap", _timing),
    "replace": (lambda undo, c: KINDS[c.kind].cls in ("cap", "other") and c.limit > 0, _replace),
    "insert": (_is_last, _insert),
    "exception_add": (
        lambda undo, c: len(c.exceptions) == 1,
        lambda undo, c: undo.add("exception_add", c, c.amended(exceptions=())),
    ),
    "exception_drop": (lambda undo, c: KINDS[c.kind].carves != "" and not c.exceptions, _exception_drop),
}
"""Changes of clauses by name: whether a clause allows one, and the function that undoes it, True if it could."""

PARAGRAPHS = 40
_FIRST_SECTION, _LAST = 3, "Reporting"
_READING = 3
_TRIES = 60


def draw_guidelines(
    rng: np.random.Generator,
    vocabulary: Vocabulary,
    as_of: date,
    book: Book | None = None,
    breaches: int = 4,
    requested: Sequence[str] = (),
) -> Guidelines:
    """Draw a document of forty paragraphs with its coded rules.

    With a book, its limits are usual numbers that the book keeps, except for `breaches` clauses and half of the
    reporting thresholds. There are fewer breaches if no usual number allows as many. `requested` kinds are included if
    they fit.

    Raises
    ------
    InputError : if no document suits the book after 60 attempts.
    """
    for _ in range(_TRIES):
        default: Timing = "purchase" if rng.integers(2) else "always"
        draft = GuidelineDraft(rng, vocabulary, draw_definitions(rng, vocabulary), default, book)
        guidelines = _attempt(draft, breaches, requested)
        if guidelines is not None:
            return replace(guidelines, text=rendered(guidelines, vocabulary, _dates(rng, as_of)))
    raise InputError("no guidelines fit the book; add positions of more instrument kinds")


def _attempt(draft: GuidelineDraft, breaches: int, requested: Sequence[str]) -> Guidelines | None:
    """Return guidelines without text; None if too few clauses, grants or amendments suit the draft."""
    rng, style = draft.rng, draw_style(draft.rng)
    drawn = choose_clauses(draft, requested, breaches)
    if drawn is None:
        return None
    needed = {"securities", "equities", *_needs(drawn)}
    definitions = {key: term for key, term in draft.definitions.items() if key in needed}
    draft = replace(draft, definitions=definitions)
    inserted = bool(rng.integers(2))
    deleted = bool(rng.integers(2)) or not inserted
    count = PARAGRAPHS - 1 - len(definitions) - _READING - GRANTS - AMENDMENTS * ITEMS + inserted - deleted
    clauses, spare = drawn[:count], drawn[count]
    sections, numbered, grants = _numbered(draft, [*clauses, *([spare] if deleted else [])])
    if len(grants) != GRANTS:
        return None
    last = numbered.pop() if deleted else None
    touched = {number for grant in grants for number in (grant.target, grant.prevails)}
    by_number, spares = {clause.number: clause for clause in numbered}, [last] if last else []
    free = [number for number in by_number if number not in touched]
    numbers = frozenset((*by_number, *(each.number for each in (*grants, *spares))))
    undo = UndoState(draft, style, by_number, dict(definitions), free, spares, numbers)
    items = _undone(undo, inserted, deleted)
    if items is None:
        return None
    original = tuple(sorted(undo.clauses.values(), key=lambda c: tuple(map(int, c.number.split(".")))))
    return Guidelines(style, draft.default, undo.definitions, sections, original, tuple(grants), items)


def _needs(clauses: Sequence[Clause]) -> set[str]:
    carves = {carve.who for clause in clauses for carve in clause.exceptions}
    used = {key for clause in clauses for key in KINDS[clause.kind].uses}
    return used | (carves & {"approved"})


def _numbered(draft: GuidelineDraft, clauses: list[Clause]) -> tuple[tuple[str, ...], list[Clause], list[Grant]]:
    """Return headings, the clauses with numbers in the same order, and grants made from exceptions of other clauses."""
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


def _undone(undo: UndoState, inserted: bool, deleted: bool) -> tuple[tuple[AmendmentItem, ...], ...] | None:
    draft = undo.draft
    pair = bool(draft.rng.integers(2)) and undo.undo("number") and _number(undo, undo.clauses[undo.items[-1].target])
    wanted = [*(["insert"] if inserted else []), *(["delete"] if deleted else []), "replace", "number"]
    wanted += draft.some(("basis", "timing", "exception_add", "exception_drop", "definition"), 5)
    for name in (*wanted, "number", "number", "number"):
        if len(undo.items) == AMENDMENTS * ITEMS:
            break
        if not undo.undo(name) and name in ("insert", "delete"):
            return None
    if len(undo.items) != AMENDMENTS * ITEMS:
        return None
    first_items, later_items = ([undo.items[1]], [undo.items[0]]) if pair else ([], [])
    remaining = undo.items[2:] if pair else undo.items
    order = [remaining[int(i)] for i in draft.rng.permutation(len(remaining))]
    first_items += order[: ITEMS - len(first_items)]
    later_items += order[ITEMS - pair :]
    return tuple(
        tuple(replace(item, number=f"A{i}.{j}") for j, item in enumerate(items, 1))
        for i, items in enumerate((first_items, later_items), 1)
    )


def _dates(rng: np.random.Generator, as_of: date) -> tuple[str, ...]:
    back = sorted((int(days) for days in rng.choice(np.arange(40, 2_000), AMENDMENTS, replace=False)), reverse=True)
    days = [as_of - timedelta(days=each) for each in back]
    return tuple(f"{day.day} {day:%B} {day.year}" for day in days)
