"""Drawing the clauses of one document: which kinds, in whose terms, with which exceptions, at which limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from finskillbench_desk.committee_case.documents import phrases
from finskillbench_desk.committee_case.documents.clauses import Carve, Clause, Timing
from finskillbench_desk.committee_case.documents.fitting import fitted
from finskillbench_desk.committee_case.documents.guidelines import Style
from finskillbench_desk.committee_case.documents.kinds import KINDS
from finskillbench_desk.committee_case.documents.terms import DEFINED, Term
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.engines.guidelines.book import Book

CARVED = ("issuer_cap", "issuer_through", "sector_cap", "sub_sector_cap", "sector_through", "country_cap")
"""Kinds that take exceptions; a document has five of them."""
BY_TERM = ("group_cap", "group_floor", "emerging_cap", "region_cap", "small_cap", "junk_cap", "liquid_floor")
"""Kinds that only their definition explains; a document has four of them."""
ASKED = 4
"""Kinds that a document may be asked for: a core of fifteen leaves room for them."""
GENERAL = (
    ("small_cap", "issuer_cap", "small"),
    ("bond_issuer_cap", "issuer_cap", "kind:corporate_bond"),
    ("emerging_cap", "country_cap", "emerging"),
    ("region_cap", "country_cap", "region"),
)
"""Which special clause may be given precedence over which general one, and for whom."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a document is drawn with: the stream, the words, the book whose limits are sought, the terms in force."""

    rng: np.random.Generator
    vocabulary: Vocabulary
    terms: Mapping[str, Term]
    default: Timing
    book: Book | None

    def some(self, names: Sequence[str], count: int) -> list[str]:
        """So many of the names, in a random order."""
        return [names[int(i)] for i in self.rng.permutation(len(names))[:count]]

    def one_of(self, words: Sequence[str]) -> str:
        """One of the words."""
        return words[int(self.rng.integers(len(words)))]


def draw_style(rng: np.random.Generator) -> Style:
    """Names and phrases of one document."""

    def one(words: tuple[str, ...]) -> str:
        return words[int(rng.integers(len(words)))]

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
    """Kinds to ask for in the document of this number, so that forty documents hold every kind at least three times."""
    names = [name for name, kind in KINDS.items() if name not in (*CARVED, *BY_TERM) and kind.cls != "report"]
    return tuple(names[(number * ASKED + i) % len(names)] for i in range(ASKED))


def draw_clause(
    draft: Draft,
    name: str,
    word: int,
    exceeded: bool = False,
    carve: Carve | None = None,
    odd: bool = False,
    equity: bool = False,
) -> Clause | None:
    """One clause as it stands in the end, without its number; None where no usual limit suits the book.

    `word` picks phrases; `odd` has a cap say that it is tested when caps usually are not, `equity` has it measured
    against the equities.
    """
    kind, rng = KINDS[name], draft.rng
    when: Timing = "silent"
    if kind.cls == "other" and draft.default == "purchase":
        when = "always"
    elif kind.cls == "cap":
        opposite: Timing = "purchase" if draft.default == "always" else "always"
        when = opposite if odd else "silent"
    clause = Clause(
        number="",
        kind=name,
        limit=0.0,
        basis="equity" if equity and kind.equity else "nav",
        when=when,
        extra=dict(kind.extra(rng, draft.vocabulary)),
        exceptions=(carve,) if carve else (),
        frame=int(rng.integers(len(kind.frames))),
        word=word,
    )
    return fitted(clause, draft.book, draft.terms, draft.default, rng, exceeded)


def draw_carve(draft: Draft, level: str) -> Carve:
    """Who is excepted: of issuers a list, a country or a sector; of sectors and countries one of them."""
    rng, vocabulary = draft.rng, draft.vocabulary
    abroad = [code for code in vocabulary.countries if code != "US"]
    ways = {
        "issuer": (
            "approved",
            "approved",
            f"country:{draft.one_of(abroad)}",
            f"sector:{draft.one_of(vocabulary.sectors)}",
        ),
        "sector": (f"sector:{draft.one_of(vocabulary.sectors)}",),
        "sub_sector": (f"sub_sector:{draft.one_of(list(vocabulary.sub_sectors))}",),
        "country": (f"country:{draft.one_of(abroad)}",),
    }
    return Carve(draft.one_of(ways[level]), 1.0 if rng.random() < 0.65 else None)
