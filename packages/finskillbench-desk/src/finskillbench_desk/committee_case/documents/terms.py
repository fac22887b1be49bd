"""Defined terms: what a document says they mean, and what somebody takes them for who does not read the definition.

Limits that suit a book: a clause is given a usual number at which the book keeps it, or breaks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from finskillbench_desk.committee_case.documents.clauses import Carve, Clause, Terms, Timing, coded
from finskillbench_desk.committee_case.documents.kinds import KINDS
from finskillbench_desk.committee_case.documents.vocabulary import (
    EMERGING,
    EUROPE,
    PACIFIC,
    RATINGS,
    Vocabulary,
    listed,
)
from finskillbench_desk.engines.guidelines.book import Book
from finskillbench_desk.engines.guidelines.evaluation import Outcome, outcome
from finskillbench_desk.engines.guidelines.language import Among, Every, Filter, Not, Range, Some

KIND_WORDS = {
    "share": "shares",
    "preferred": "preferred shares",
    "receipt": "depositary receipts",
    "convertible": "convertible bonds",
    "corporate_bond": "corporate bonds",
    "government_bond": "government bonds",
}
DEFINED = (
    "{name} means {body}.",
    "{name}: {body}.",
    "In these guidelines {name} stands for {body}.",
    "References to {name} are to {body}.",
    "{name} shall mean {body}.",
    "{name} refers to {body}.",
    "By {name} are meant {body}.",
    "Wherever it is used, {name} denotes {body}.",
)


@dataclass(frozen=True, slots=True)
class Term:
    """A defined term.

    Attributes
    ----------
    key : under which rules look it up.
    name : as the document writes it.
    words : values of the definition by which it can be amended: kinds, countries, sub-sectors, a number.
    """

    key: str
    name: str
    words: tuple[str, ...] = ()
    number: float = 0.0
    sector: str = ""
    without: str = ""
    naive_words: tuple[str, ...] = ()

    def amended(self, **changes: object) -> Term:
        """The term with other values."""
        return replace(self, **changes)  # pyright: ignore[reportArgumentType] - names of fields


def _meaning(term: Term) -> Filter:
    """What the document says that a term means."""
    match term.key:
        case "securities" | "equities":
            return Among("kind", frozenset(term.words))
        case "emerging" | "region":
            return Among("country", frozenset(term.words))
        case "approved":
            return Among("issuer", frozenset(term.words))
        case "small":
            return Range("market_cap", "below", term.number * 1e9)
        case "junk":
            return Range("rating", "above", term.number)
        case "liquid":
            bonds = Every((Among("kind", frozenset(("government_bond",))), Range("maturity", "at_most", term.number)))
            return Some((Among("kind", frozenset(("cash",))), bonds))
        case _:
            inside = Every(
                (Among("sector", frozenset((term.sector,))), Not(Among("sub_sector", frozenset((term.without,)))))
            )
            return Some((inside, Among("sub_sector", frozenset(term.words))))


def taken_for(term: Term) -> Filter:
    """What the term sounds like."""
    match term.key:
        case "securities":
            return Not(Among("kind", frozenset(("cash", "equity_future", "bond_future"))))
        case "equities":
            return Among("kind", frozenset(("share",)))
        case "emerging" | "region":
            return Among("country", frozenset(term.naive_words))
        case "small":
            return Range("market_cap", "below", 2e9)
        case "junk":
            return Range("rating", "above", 10)
        case "liquid":
            return Among("kind", frozenset(("cash",)))
        case "group" | "theme":
            return Among("sector", frozenset((term.sector,)))
        case _:
            return _meaning(term)


def filters(terms: dict[str, Term], naive: bool) -> Terms:
    """Filters by key."""
    return {key: taken_for(term) if naive else _meaning(term) for key, term in terms.items()}


def body(term: Term, vocabulary: Vocabulary) -> str:
    """The words after "means"."""
    match term.key:
        case "securities" | "equities":
            rest = [word for kind, word in KIND_WORDS.items() if kind not in term.words]
            others = [*rest, "units of funds", "futures", "cash"]
            return f"{listed([KIND_WORDS[k] for k in term.words])}, but not {listed(others, 'or')}"
        case "emerging" | "region":
            names = [vocabulary.countries[code] for code in term.words]
            return f"{listed(sorted(names, key=lambda name: name.removeprefix('the ')))}, and no other Country"
        case "approved":
            return listed([f"{vocabulary.issuers[each]} ({each})" for each in term.words])
        case "small":
            return f"Issuers with a market capitalisation below USD {term.number:g} billion"
        case "junk":
            return f"corporate and government bonds with a rating below {RATINGS[int(term.number) - 1]}"
        case "liquid":
            years = "one year" if term.number == 1 else f"{term.number:g} years"
            return f"cash, and government bonds with no more than {years} to maturity"
        case _:
            also = listed(list(term.words))
            return (
                f"Issuers in the {term.sector} Sector except those of the Sub-Sector {term.without}, and in addition "
                f"Issuers of the Sub-Sector{'s' if len(term.words) > 1 else ''} {also}"
            )


def draw_terms(rng: np.random.Generator, vocabulary: Vocabulary) -> dict[str, Term]:
    """One document's terms by key."""

    def pick(names: tuple[str, ...]) -> str:
        return names[int(rng.integers(len(names)))]

    optional = [kind for kind in ("convertible", "corporate_bond") if rng.integers(2)]
    equities = ["share", *(["preferred"] if rng.integers(2) else []), "receipt"]
    issuers = list(vocabulary.issuers)
    approved = sorted(issuers[int(i)] for i in rng.choice(len(issuers), int(rng.integers(3, 5)), replace=False))
    pacific = bool(rng.integers(2))
    group, theme = _groups(rng, vocabulary)
    terms = [
        Term(
            "securities",
            pick(("Securities", "Eligible Securities", "Transferable Securities", "Permitted Securities")),
            ("share", "preferred", "receipt", *optional),
        ),
        Term(
            "equities",
            pick(("Equities", "Equity Securities", "Equity Instruments", "Equity Interests")),
            tuple(equities),
        ),
        group,
        theme,
        _places(rng, "emerging", "Emerging Markets", EMERGING, ("HK", "SG"), drop=3),
        _places(rng, "region", "the Pacific Region", PACIFIC, ("KR", "TW", "ID"), drop=1)
        if pacific
        else _places(rng, "region", "Core Europe", EUROPE, ("PL", "TR"), drop=2),
        Term("small", "Small Companies", number=float(rng.choice([3, 4, 5, 8, 10]))),
        Term("junk", "Lower-Rated Bonds", number=float(rng.choice([5, 6, 7, 8, 9]))),
        Term("liquid", "Liquid Assets", number=float(rng.choice([1, 2, 3]))),
        Term(
            "approved", pick(("Approved Issuers", "Core Issuers", "Named Issuers", "Schedule Issuers")), tuple(approved)
        ),
    ]
    return {term.key: term for term in terms}


def _places(
    rng: np.random.Generator, key: str, name: str, usual: tuple[str, ...], strangers: tuple[str, ...], drop: int
) -> Term:
    out = {usual[int(i)] for i in rng.choice(len(usual), drop, replace=False)}
    added = strangers[int(rng.integers(len(strangers)))]
    words = tuple(sorted([code for code in usual if code not in out] + [added]))
    return Term(key, name, words, naive_words=usual)


def _groups(rng: np.random.Generator, vocabulary: Vocabulary) -> tuple[Term, Term]:
    """Two groups of companies that cut across the data's sectors."""
    inside = {
        sector: [sub for sub, of in vocabulary.sub_sectors.items() if of == sector] for sector in vocabulary.sectors
    }
    wide = [sector for sector, subs in inside.items() if len(subs) > 1]
    first, second = (wide[int(i)] for i in rng.choice(len(wide), 2, replace=False))
    out: list[Term] = []
    for key, sector in (("group", first), ("theme", second)):
        subs = inside[sector]
        foreign = [sub for sub, of in vocabulary.sub_sectors.items() if of not in (first, second)]
        count = int(rng.integers(1, 3))
        added = tuple(sorted(foreign[int(i)] for i in rng.choice(len(foreign), count, replace=False)))
        without = subs[int(rng.integers(len(subs)))]
        name = f"{sector} {('Companies', 'Businesses', 'Names')[int(rng.integers(3))]}"
        out.append(Term(key, name, added, sector=sector, without=without))
    return out[0], out[1]


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
