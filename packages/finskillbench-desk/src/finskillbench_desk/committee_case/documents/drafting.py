"""Draw the clauses of one document: kinds, exceptions and limits that suit the book and contain reading traps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from finskillbench_desk.committee_case.documents import phrases
from finskillbench_desk.committee_case.documents.clauses import Basis, CarveOut, Clause, Timing, coded_rule
from finskillbench_desk.committee_case.documents.kinds import KINDS
from finskillbench_desk.committee_case.documents.rendering import Style
from finskillbench_desk.committee_case.documents.terms import DEFINED, DefinedTerm, raised, term_filters
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.engines.guidelines.book import Book
from finskillbench_desk.engines.guidelines.evaluation import outcome

CARVED = ("issuer_cap", "issuer_through", "sector_cap", "sub_sector_cap", "sector_through", "country_cap")
"""Kinds with exceptions; a document has up to five of them."""
BY_TERM = ("group_cap", "group_floor", "emerging_cap", "region_cap", "small_cap", "junk_cap", "liquid_floor")
"""Kinds that depend on a definition; a document has up to four of them."""
NEAREST = 3
"""Limits are drawn among so many usual numbers nearest to the book's measure; distant ones test nothing."""
REQUESTED = 4
"""Kinds to request per document; they fit in addition to the fifteen core clauses."""
GENERAL = (
    ("small_cap", "issuer_cap", "small"),
    ("bond_issuer_cap", "issuer_cap", "kind:corporate_bond"),
    ("emerging_cap", "country_cap", "emerging"),
    ("region_cap", "country_cap", "region"),
)
"""Special clauses that may prevail over a general one: special kind, general kind, exempted party."""


@dataclass(frozen=True, slots=True)
class GuidelineDraft:
    """Inputs of a document: random stream, vocabulary, definitions in force, default timing, and the book to fit."""

    rng: np.random.Generator
    vocabulary: Vocabulary
    definitions: Mapping[str, DefinedTerm]
    default: Timing
    book: Book | None

    def some(self, names: Sequence[str], count: int) -> list[str]:
        return [names[int(i)] for i in self.rng.permutation(len(names))[:count]]

    def one_of(self, choices: Sequence[str]) -> str:
        return choices[int(self.rng.integers(len(choices)))]


def draw_style(rng: np.random.Generator) -> Style:
    def one(choices: tuple[str, ...]) -> str:
        return choices[int(rng.integers(len(choices)))]

    lengths = {
        "opening": len(phrases.OPENINGS),
        "values": len(phrases.VALUES),
        "testing": len(phrases.AT_PURCHASE),
        "reading": len(phrases.READING),
        "order": len(phrases.ORDER),
        "defined": len(DEFINED),
    }
    picks = {name: int(rng.integers(length)) for name, length in lengths.items()} | {"stride": int(rng.integers(1, 8))}
    return Style(
        percent=one(("%", " per cent", " percent")),
        nav=one(("Net Asset Value", "Net Assets", "NAV", "Total Net Value", "Fund Value")),
        equity=one(("Equity Assets", "Equity Value", "the Equity Portfolio", "the Equity Component")),
        manager=one(("the Manager", "the Investment Manager", "the Adviser", "the Portfolio Manager")),
        fund=one(("the Fund", "the Portfolio", "the Account", "the Mandate")),
        client=one(phrases.CLIENTS),
        firm=one(phrases.FIRMS),
        picks=picks,
    )


def rotation(number: int) -> tuple[str, ...]:
    """Return the kinds to request in document `number`; 40 documents contain every kind at least three times."""
    names = [name for name, kind in KINDS.items() if name not in (*CARVED, *BY_TERM) and kind.cls != "report"]
    return tuple(names[(number * REQUESTED + i) % len(names)] for i in range(REQUESTED))


def draw_clause(
    draft: GuidelineDraft, name: str, word: int, exceeded: bool, carve: CarveOut | None, odd: bool, equity: bool
) -> Clause | None:
    """Draw a clause without number; `odd` states a timing other than the default. None if no limit suits the book."""
    kind, rng = KINDS[name], draft.rng
    when: Timing = "silent"
    if kind.cls == "other" and draft.default == "purchase":
        when = "always"
    elif kind.cls == "cap" and odd:
        when = "purchase" if draft.default == "always" else "always"
    basis: Basis = "equity" if equity and kind.equity else "nav"
    extra, frame = dict(kind.extra(rng, draft.vocabulary)), int(rng.integers(len(kind.frames)))
    clause = Clause("", name, 0.0, basis, when, extra, (carve,) if carve else (), frame, word)
    return _fitted(clause, draft, exceeded)


def _fitted(clause: Clause, draft: GuidelineDraft, exceeded: bool) -> Clause | None:
    """Return the clause with a usual limit that the book keeps, or exceeds; None if there is none.

    Without a book any usual limit fits. Limits of exceptions scale with the general limit.
    """
    kind, rng = KINDS[clause.kind], draft.rng
    if draft.book is None:
        return _with_limit(clause, kind.grid[int(rng.integers(len(kind.grid)))], rng)
    meanings = term_filters(draft.definitions, naive=False)
    suited: list[tuple[float, Clause]] = []
    for value in kind.grid:
        tried = _with_limit(clause, value, rng)
        found = outcome(coded_rule(kind, tried, meanings, draft.default), draft.book)
        if (found.state in ("breach", "report")) == exceeded:
            suited.append((abs(found.measured - found.limit), tried))
    suited.sort(key=lambda pair: pair[0])
    return suited[int(rng.integers(min(NEAREST, len(suited))))][1] if suited else None


def _with_limit(clause: Clause, value: float, rng: np.random.Generator) -> Clause:
    """Return the clause with another limit, and usual higher limits for exceptions that have one."""
    carves = tuple(
        each if each.limit is None else CarveOut(each.who, raised(value, rng), each.by) for each in clause.exceptions
    )
    return clause.amended(limit=float(value), exceptions=carves)


def draw_carve(draft: GuidelineDraft, level: str) -> CarveOut:
    """Draw an exception: a list, country or sector for issuer limits, otherwise one sector, sub-sector or country."""
    vocabulary, one_of = draft.vocabulary, draft.one_of
    abroad = [code for code in vocabulary.countries if code != "US"]
    ways = {
        "issuer": ("approved", "approved", f"country:{one_of(abroad)}", f"sector:{one_of(vocabulary.sectors)}"),
        "sector": (f"sector:{one_of(vocabulary.sectors)}",),
        "sub_sector": (f"sub_sector:{one_of(list(vocabulary.sub_sectors))}",),
        "country": (f"country:{one_of(abroad)}",),
    }
    return CarveOut(one_of(ways[level]), 1.0 if draft.rng.random() < 0.65 else None)


GRANTS = 2
"""Exceptions of a document that another clause grants."""
_ODD, _EQUITY = 5, 5
"""Caps that state a timing other than the default, and caps with the equities as basis."""
_BROKEN = 0.7
"""Probability that a clause is one the book breaks, while breaches are missing."""
_TRIES = 3


@dataclass
class _Selection:
    """Clauses chosen so far, in order; `breaches` is the number still missing."""

    draft: GuidelineDraft
    breaches: int
    phrases: list[int]
    clauses: list[Clause] = field(default_factory=list[Clause])
    odd: int = 0
    equity: int = 0

    def has(self, name: str) -> bool:
        return any(clause.kind == name for clause in self.clauses)

    def add(self, name: str, carve: CarveOut | None = None) -> bool:
        """Add a clause of this kind if one suits the book, as a breach if one is missing and possible."""
        kind, rng = KINDS[name], self.draft.rng
        report = kind.cls == "report"
        exceeded = self.draft.book is not None and bool(rng.integers(2))
        if not report:
            exceeded = self.breaches > 0 and self.draft.book is not None and bool(rng.random() < _BROKEN)
        odd = kind.cls == "cap" and self.odd < _ODD and bool(rng.random() < 0.6)
        equity = kind.equity and self.equity < _EQUITY and bool(rng.random() < 0.8)
        for wanted in (True, False) if exceeded else (False,):
            word = self.phrases[len(self.clauses)]
            clause = draw_clause(self.draft, name, word, wanted, carve, odd, equity)
            if clause is not None:
                self.clauses.append(clause)
                self.odd += odd
                self.equity += equity
                self.breaches -= wanted and not report
                return True
        return False

    def some_of(self, names: Sequence[str], most: int, least: int) -> bool:
        """Add clauses of up to `most` of these kinds; return True if at least `least` fit."""
        count = 0
        for name in names:
            if count == most:
                break
            count += self.add(name)
        return count >= least

    def carved(self, most: int, least: int) -> bool:
        """Add clauses with an exception, the first `GRANTS` granted by another clause; True if `least` of them fit."""
        special = self._special()
        names = sorted(self.draft.some(CARVED, len(CARVED)), key=lambda name: name not in special)
        count = 0
        for name in names:
            if count == most:
                break
            count += self._with_exception(name, special, count < GRANTS)
        return count >= least

    def _with_exception(self, name: str, special: dict[str, tuple[str, str]], grant: bool) -> bool:
        if grant and name in special:
            kind, who = special[name]
            if self.add(name, CarveOut(who, None, kind)):
                return True
        for _ in range(_TRIES):
            carve = draw_carve(self.draft, KINDS[name].carves)
            if self.add(name, CarveOut(carve.who, 1.0, "grant") if grant else carve):
                return True
        return False

    def _special(self) -> dict[str, tuple[str, str]]:
        """Return chosen special clauses with their exempted party, by the kind of the general clause."""
        securities = self.draft.definitions["securities"].values
        return {
            general: (kind, who)
            for kind, general, who in GENERAL
            if self.has(kind) and (who != "kind:corporate_bond" or "corporate_bond" in securities)
        }


def choose_clauses(draft: GuidelineDraft, requested: Sequence[str], breaches: int) -> list[Clause] | None:
    """Choose clauses with traps, then requested and other kinds; None if too few suit the book."""
    phrase_numbers = [int(i) for i in draft.rng.permutation(2 * len(KINDS))]
    chosen = _Selection(draft, breaches, phrase_numbers)
    reports = [name for name, kind in KINDS.items() if kind.cls == "report"]
    away = {*CARVED, *BY_TERM, *reports}
    caps = [name for name, kind in KINDS.items() if kind.cls == "cap" and name not in away]
    enough = (
        chosen.some_of(draft.some(BY_TERM, len(BY_TERM)), 4, 3)
        and chosen.some_of(draft.some(caps, len(caps)), 3, 2)
        and chosen.carved(5, 3)
        and chosen.some_of(draft.some(reports, len(reports)), 3, 3)
    )
    if not enough:
        return None
    rest = [name for name in KINDS if name not in {*BY_TERM, *reports} and not chosen.has(name)]
    for name in sorted(draft.some(rest, len(rest)), key=lambda name: name not in requested):
        chosen.add(name)
    return chosen.clauses
