"""Parse numbered paragraphs, defined terms, the default timing, and exceptions of a guideline document."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from finskillbench.errors import InputError
from finskillbench_desk.committee_case.documents.vocabulary import EMERGING, EUROPE, PACIFIC, RATINGS, Vocabulary

_NUMBERED = re.compile(r"^(A?\d+\.\d+) (.*)$")


class UnreadableError(InputError):
    """A paragraph that the reader cannot parse."""


def parse_paragraphs(text: str) -> tuple[dict[str, str], list[str]]:
    """Return numbered paragraphs of the original text by number, and items of amendments in order."""
    paragraphs: dict[str, str] = {}
    items: list[str] = []
    for line in text.splitlines():
        found = _NUMBERED.match(line.strip())
        if found and found[1].startswith("A"):
            items.append(found[2])
        elif found:
            paragraphs[found[1]] = found[2]
    if not paragraphs:
        raise UnreadableError("the document has no numbered paragraphs")
    return paragraphs, items


def sentences(body: str) -> list[str]:
    """Split a paragraph at full stops; text after a semicolon stays in its sentence."""
    return [part.strip() for part in re.split(r"(?<=\.)\s+(?=[A-Z0-9“])", body) if part.strip()]


_QUOTED = re.compile(r"“([^”]+)”")
_NOUNS = (
    ("preferred shares", "preferred"),
    ("depositary receipts", "receipt"),
    ("convertible bonds", "convertible"),
    ("corporate bonds", "corporate_bond"),
    ("government bonds", "government_bond"),
    ("shares", "share"),
)

_USUAL = {"Emerging": EMERGING, "Pacific": PACIFIC, "Europe": EUROPE}
"""Countries usually meant by a term, by a word in its name."""


@dataclass
class ParsedDefinitions:
    """Terms of one document: the two bases, and for others the meaning (`filters`) and type (`sorts`) by name."""

    nav: str = ""
    equity_value: str = ""
    equities: str = ""
    securities: str = ""
    sorts: dict[str, str] = field(default_factory=dict[str, str])
    filters: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ReadingContext:
    definitions: ParsedDefinitions
    countries: Mapping[str, str]
    vocabulary: Vocabulary
    timing: str


def country_names(vocabulary: Vocabulary) -> dict[str, str]:
    return {name.removeprefix("the "): code for code, name in vocabulary.countries.items()}


def kinds_in(text: str) -> list[str]:
    text = text.lower()
    out: list[str] = []
    for noun, kind in _NOUNS:
        if noun in text:
            out.append(kind)
            text = text.replace(noun, "")
    return sorted(out)


def countries_in(text: str, countries: Mapping[str, str]) -> list[str]:
    return sorted(code for name, code in countries.items() if re.search(rf"\b{re.escape(name)}\b", text))


def parse_definitions(
    paragraphs: list[str], countries: Mapping[str, str], sub_sectors: Collection[str]
) -> ParsedDefinitions:
    out = ParsedDefinitions()
    for body in paragraphs:
        names = _QUOTED.findall(body)
        if len(names) == 2:
            _bases(out, body, names)
            continue
        if len(names) != 1:
            raise UnreadableError(f"definition without a quoted term: {body}")
        _one(out, names[0], body.replace(f"“{names[0]}”", ""), countries, sub_sectors)
    kinds = [name for name, sort in out.sorts.items() if sort == "kinds"]
    owned = next(body for body in paragraphs if f"“{out.nav}”" in body)
    out.equities = max((name for name in kinds if re.search(rf"\b{re.escape(name)}\b", owned)), key=len)
    out.securities = next(name for name in kinds if name != out.equities)
    return out


def _bases(out: ParsedDefinitions, body: str, names: list[str]) -> None:
    """Assign the two values of a paragraph; the one net of liabilities is net asset value."""
    places = [body.index(f"“{name}”") for name in names]
    net = re.search(r"liabilit|owed", body)
    held = re.search(r"held directly|directly held|direct holdings", body)
    if net is None or held is None:
        raise UnreadableError(f"definition of the two bases not recognised: {body}")
    # Each name is in the part of the paragraph that explains it.
    cut = _middle(body, places)
    first_is_net = net.start() < held.start()
    order = names if places[0] < places[1] else names[::-1]
    if (places[0] < cut) == (places[1] < cut):
        raise UnreadableError(f"cannot separate the definitions of the two bases: {body}")
    out.nav, out.equity_value = order if first_is_net else order[::-1]


def _middle(body: str, places: list[int]) -> int:
    """Return the start of the later explanation: the last full stop, semicolon or "and" before the later name."""
    last = max(places)
    marks = [found.start() for found in re.finditer(r"\. |; |, and | that of ", body) if found.start() < last]
    return marks[-1] + 1 if marks else last


def _one(
    out: ParsedDefinitions, name: str, body: str, countries: Mapping[str, str], sub_sectors: Collection[str]
) -> None:
    if "Sub-Sector" in body:
        found = re.search(r"in the (.+?) Sector except those of the Sub-Sector (.+?), and in addition", body)
        if found is None:
            raise UnreadableError(f"definition of a group not recognised: {body}")
        also = body[found.end() :].split("Sub-Sector", 1)[1].removeprefix("s").strip(" .")
        inside = {"sector": [found[1]], "not": {"sub_sector": [found[2]]}}
        out.sorts[name], out.filters[name] = "group", {"any": [inside, {"sub_sector": named_in(also, sub_sectors)}]}
    elif "no other Country" in body:
        out.sorts[name], out.filters[name] = "countries", {"country": countries_in(body, countries)}
    elif found := re.search(r"USD ([\d.]+) billion", body):
        out.sorts[name], out.filters[name] = "size", {"market_cap": {"below": float(found[1]) * 1e9}}
    elif found := re.search(r"rating below ([A-D]+[+-]?)", body):
        notch = RATINGS.index(found[1]) + 1
        bonds = {"kind": ["corporate_bond", "government_bond"], "rating": {"above": notch}}
        out.sorts[name], out.filters[name] = "rating", bonds
    elif "to maturity" in body:
        found = re.search(r"(one|[\d.]+) years?", body)
        years = 1.0 if found is None or found[1] == "one" else float(found[1])
        short = {"kind": "government_bond", "maturity": {"at_most": years}}
        out.sorts[name], out.filters[name] = "liquid", {"any": [{"kind": "cash"}, short]}
    elif "but not" in body:
        out.sorts[name], out.filters[name] = "kinds", {"kind": kinds_in(body.split("but not")[0])}
    elif codes := re.findall(r"\(([^()]+)\)", body):
        out.sorts[name], out.filters[name] = "issuers", {"issuer": codes}
    else:
        raise UnreadableError(f"definition of {name} not recognised: {body}")


def sounds_like(definitions: ParsedDefinitions, name: str) -> Any:
    """Return the meaning of a term at face value, without its definition."""
    meant: Any = definitions.filters[name]
    match definitions.sorts[name]:
        case "kinds" if name == definitions.equities:
            return {"kind": ["share"]}
        case "kinds":
            return {"not": {"kind": ["cash", "equity_future", "bond_future"]}}
        case "countries":
            usual = next((codes for word, codes in _USUAL.items() if word in name), ())
            return {"country": sorted(usual)}
        case "size":
            return {"market_cap": {"below": 2e9}}
        case "rating":
            return {**meant, "rating": {"above": RATINGS.index("BBB-") + 1}}
        case "liquid":
            return {"kind": "cash"}
        case "group":
            return {"sector": meant["any"][0]["sector"]}
        case _:
            return meant


def named_in(text: str, names: Collection[str]) -> list[str]:
    """Return names that occur in a text; longer names are matched first and removed."""
    out: list[str] = []
    for name in sorted(names, key=len, reverse=True):
        if name in text:
            out.append(name)
            text = text.replace(name, "")
    return sorted(out)


def default_timing(paragraphs: list[str]) -> str:
    """Return the timing of maximum shares whose clause states none: "purchase" or "always"."""
    for body in paragraphs:
        lowered = body.lower()
        if "amendment" in lowered or "security master" in lowered:
            continue
        at_purchase = re.search(
            r"purchase tests|upon a purchase|tested only when something|is tested at purchase|"
            r"bind at the time of purchase|only a purchase can breach|when buying something|acquisition test",
            lowered,
        )
        return "purchase" if at_purchase else "always"
    raise UnreadableError("no paragraph states when limits are tested")


_REFERENCE = re.compile(r"\b[Cc]lauses? \d+\.\d+")
_NUMBER = re.compile(r"(?<![\d.])(\d+\.\d+)(?!\d)")
AMOUNT = re.compile(r"(\d+(?:\.\d+)?)(?:%| per cent| percent| percentage points?)")


def granted(body: str) -> bool:
    """Return True if a clause refers to another clause."""
    return _REFERENCE.search(body) is not None


def exception_filter(text: str, reading: ReadingContext) -> dict[str, Any]:
    """Return the filter of the party that a sentence names."""
    definitions, vocabulary = reading.definitions, reading.vocabulary
    for name, sort in definitions.sorts.items():
        stem = name.removesuffix("ies").removesuffix("s")
        if sort != "kinds" and re.search(rf"\b{re.escape(stem)}", text, re.IGNORECASE):
            return definitions.filters[name]
    if found := [sub for sub in vocabulary.sub_sectors if f"Sub-Sector {sub}" in text]:
        return {"sub_sector": [max(found, key=len)]}
    if found := [sector for sector in vocabulary.sectors if f"{sector} Sector" in text]:
        return {"sector": [max(found, key=len)]}
    if codes := countries_in(text, reading.countries):
        return {"country": codes}
    if kinds := kinds_in(text):
        return {"kind": kinds}
    raise UnreadableError(f"exempted party not recognised: {text}")


def clause_exceptions(parts: list[str], reading: ReadingContext) -> list[dict[str, Any]]:
    """Parse exceptions from the sentences after the first one."""
    out: list[dict[str, Any]] = []
    for part in parts:
        amount = AMOUNT.search(part)
        who = exception_filter(part, reading)
        out.append({"of": who, "limit": None if amount is None else float(amount[1])})
    return out


def grants_for(
    clause: str, texts: Mapping[str, str], grants: Mapping[str, str], reading: ReadingContext
) -> list[dict[str, Any]]:
    """Return exceptions that other clauses grant from this one: a higher limit, or precedence of a special clause."""
    out: list[dict[str, Any]] = []
    for body in grants.values():
        amount = AMOUNT.search(body)
        bare = AMOUNT.sub("", body)
        named = [number for number in _NUMBER.findall(bare) if number in texts]
        who = exception_filter(body, reading)
        if amount is not None:
            if named == [clause]:
                out.append({"of": who, "limit": float(amount[1])})
        elif clause in named and _general(clause, named, texts, who, reading):
            out.append({"of": who, "limit": None})
    return out


def _general(clause: str, named: list[str], texts: Mapping[str, str], who: Any, reading: ReadingContext) -> bool:
    """Return True if only the other named clauses are about the party `who`."""

    def about(number: str) -> bool:
        try:
            return exception_filter(texts[number].split(". ")[0], reading) == who
        except UnreadableError:
            return False

    remaining = [number for number in named if number != clause]
    return bool(remaining) and not about(clause) and all(about(number) for number in remaining)
