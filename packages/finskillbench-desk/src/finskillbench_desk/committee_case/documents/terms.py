"""Draw defined terms with their true and naive meanings, and fit clause limits to a book."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from finskillbench_desk.committee_case.documents.clauses import TermFilters, among
from finskillbench_desk.committee_case.documents.vocabulary import (
    EMERGING,
    EUROPE,
    PACIFIC,
    RATINGS,
    Vocabulary,
    sentence_list,
)
from finskillbench_desk.engines.guidelines.language import Every, Filter, Not, Range, Some

KIND_NAMES = {
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
class DefinedTerm:
    """A defined term.

    Attributes
    ----------
    key : key in rules.
    name : name in the document.
    values : kinds, countries, sub-sectors or issuers of the definition, which amendments can change.
    """

    key: str
    name: str
    values: tuple[str, ...] = ()
    number: float = 0.0
    sector: str = ""
    without: str = ""
    naive_values: tuple[str, ...] = ()

    def amended(self, **changes: object) -> DefinedTerm:
        return replace(self, **changes)  # pyright: ignore[reportArgumentType] - names of fields


def _meaning(term: DefinedTerm) -> Filter:
    match term.key:
        case "securities" | "equities":
            return among("kind", *term.values)
        case "emerging" | "region":
            return among("country", *term.values)
        case "approved":
            return among("issuer", *term.values)
        case "small":
            return Range("market_cap", "below", term.number * 1e9)
        case "junk":
            return Range("rating", "above", term.number)
        case "liquid":
            bonds = Every((among("kind", "government_bond"), Range("maturity", "at_most", term.number)))
            return Some((among("kind", "cash"), bonds))
        case _:
            inside = Every((among("sector", term.sector), Not(among("sub_sector", term.without))))
            return Some((inside, among("sub_sector", *term.values)))


def naive_meaning(term: DefinedTerm) -> Filter:
    """Return the meaning of a term at face value."""
    match term.key:
        case "securities":
            return Not(among("kind", "cash", "equity_future", "bond_future"))
        case "equities":
            return among("kind", "share")
        case "emerging" | "region":
            return among("country", *term.naive_values)
        case "small":
            return Range("market_cap", "below", 2e9)
        case "junk":
            return Range("rating", "above", 10)
        case "liquid":
            return among("kind", "cash")
        case "group" | "theme":
            return among("sector", term.sector)
        case _:
            return _meaning(term)


def term_filters(definitions: Mapping[str, DefinedTerm], naive: bool) -> TermFilters:
    return {key: naive_meaning(term) if naive else _meaning(term) for key, term in definitions.items()}


def body(term: DefinedTerm, vocabulary: Vocabulary) -> str:
    match term.key:
        case "securities" | "equities":
            rest = [word for kind, word in KIND_NAMES.items() if kind not in term.values]
            excluded = [*rest, "units of funds", "futures", "cash"]
            return f"{sentence_list([KIND_NAMES[k] for k in term.values])}, but not {sentence_list(excluded, 'or')}"
        case "emerging" | "region":
            names = [vocabulary.countries[code] for code in term.values]
            return f"{sentence_list(sorted(names, key=lambda name: name.removeprefix('the ')))}, and no other Country"
        case "approved":
            return sentence_list([f"{vocabulary.issuers[each]} ({each})" for each in term.values])
        case "small":
            return f"Issuers with a market capitalisation below USD {term.number:g} billion"
        case "junk":
            return f"corporate and government bonds with a rating below {RATINGS[int(term.number) - 1]}"
        case "liquid":
            years = "one year" if term.number == 1 else f"{term.number:g} years"
            return f"cash, and government bonds with no more than {years} to maturity"
        case _:
            also = sentence_list(list(term.values))
            return (
                f"Issuers in the {term.sector} Sector except those of the Sub-Sector {term.without}, and in addition "
                f"Issuers of the Sub-Sector{'s' if len(term.values) > 1 else ''} {also}"
            )


def draw_definitions(rng: np.random.Generator, vocabulary: Vocabulary) -> dict[str, DefinedTerm]:
    def pick(names: tuple[str, ...]) -> str:
        return names[int(rng.integers(len(names)))]

    optional = [kind for kind in ("convertible", "corporate_bond") if rng.integers(2)]
    equities = ["share", *(["preferred"] if rng.integers(2) else []), "receipt"]
    issuers = list(vocabulary.issuers)
    approved = sorted(issuers[int(i)] for i in rng.choice(len(issuers), int(rng.integers(3, 5)), replace=False))
    pacific = bool(rng.integers(2))
    group, theme = _groups(rng, vocabulary)
    securities_name = pick(("Securities", "Eligible Securities", "Transferable Securities", "Permitted Securities"))
    equities_name = pick(("Equities", "Equity Securities", "Equity Instruments", "Equity Interests"))
    definitions = [
        DefinedTerm("securities", securities_name, ("share", "preferred", "receipt", *optional)),
        DefinedTerm("equities", equities_name, tuple(equities)),
        group,
        theme,
        _places(rng, "emerging", "Emerging Markets", EMERGING, ("HK", "SG"), drop=3),
        _places(rng, "region", "the Pacific Region", PACIFIC, ("KR", "TW", "ID"), drop=1)
        if pacific
        else _places(rng, "region", "Core Europe", EUROPE, ("PL", "TR"), drop=2),
        DefinedTerm("small", "Small Companies", number=float(rng.choice([3, 4, 5, 8, 10]))),
        DefinedTerm("junk", "Lower-Rated Bonds", number=float(rng.choice([5, 6, 7, 8, 9]))),
        DefinedTerm("liquid", "Liquid Assets", number=float(rng.choice([1, 2, 3]))),
        DefinedTerm(
            "approved", pick(("Approved Issuers", "Core Issuers", "Named Issuers", "Schedule Issuers")), tuple(approved)
        ),
    ]
    return {term.key: term for term in definitions}


def _places(
    rng: np.random.Generator, key: str, name: str, usual: tuple[str, ...], strangers: tuple[str, ...], drop: int
) -> DefinedTerm:
    out = {usual[int(i)] for i in rng.choice(len(usual), drop, replace=False)}
    added = strangers[int(rng.integers(len(strangers)))]
    codes = tuple(sorted([code for code in usual if code not in out] + [added]))
    return DefinedTerm(key, name, codes, naive_values=usual)


def _groups(rng: np.random.Generator, vocabulary: Vocabulary) -> tuple[DefinedTerm, DefinedTerm]:
    """Draw two groups of companies that cut across the sectors of the data."""
    sub_sectors = vocabulary.sub_sectors.items()
    inside = {sector: [sub for sub, of in sub_sectors if of == sector] for sector in vocabulary.sectors}
    wide = [sector for sector, subs in inside.items() if len(subs) > 1]
    group_sector, theme_sector = (wide[int(i)] for i in rng.choice(len(wide), 2, replace=False))
    out: list[DefinedTerm] = []
    for key, sector in (("group", group_sector), ("theme", theme_sector)):
        subs = inside[sector]
        foreign = [sub for sub, of in sub_sectors if of not in (group_sector, theme_sector)]
        count = int(rng.integers(1, 3))
        added = tuple(sorted(foreign[int(i)] for i in rng.choice(len(foreign), count, replace=False)))
        without = subs[int(rng.integers(len(subs)))]
        name = f"{sector} {('Companies', 'Businesses', 'Names')[int(rng.integers(3))]}"
        out.append(DefinedTerm(key, name, added, sector=sector, without=without))
    return out[0], out[1]


def raised(value: float, rng: np.random.Generator) -> float:
    """Return a round limit for an exception, 25 to 100 % above the general one."""
    steps = 2 if value < 8 else 1
    return float(np.ceil(steps * value * rng.uniform(1.25, 2.0)) / steps)
