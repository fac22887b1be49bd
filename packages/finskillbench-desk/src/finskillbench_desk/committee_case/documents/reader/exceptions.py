"""Who is excepted from a clause, by the clause itself or by another one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from finskillbench_desk.committee_case.documents.reader.definitions import Defined, countries_in, kinds_in
from finskillbench_desk.committee_case.documents.reader.structure import UnreadableError
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary

_REFERENCE = re.compile(r"\b[Cc]lauses? \d+\.\d+")
_NUMBER = re.compile(r"(?<![\d.])(\d+\.\d+)(?!\d)")
AMOUNT = re.compile(r"(\d+(?:\.\d+)?)(?:%| per cent| percent| percentage points?)")


def granted(body: str) -> bool:
    """Whether a clause is about other clauses."""
    return _REFERENCE.search(body) is not None


def party(text: str, terms: Defined, countries: Mapping[str, str], vocabulary: Vocabulary) -> dict[str, Any]:
    """The filter of whoever a sentence speaks of."""
    for name, sort in terms.sorts.items():
        stem = name.removesuffix("ies").removesuffix("s")
        if sort != "kinds" and re.search(rf"\b{re.escape(stem)}", text, re.IGNORECASE):
            return terms.filters[name]
    if found := [sub for sub in vocabulary.sub_sectors if f"Sub-Sector {sub}" in text]:
        return {"sub_sector": [max(found, key=len)]}
    if found := [sector for sector in vocabulary.sectors if f"{sector} Sector" in text]:
        return {"sector": [max(found, key=len)]}
    if codes := countries_in(text, countries):
        return {"country": codes}
    if kinds := kinds_in(text):
        return {"kind": kinds}
    raise UnreadableError(f"an exception for nobody: {text}")


def own_exceptions(
    parts: list[str], terms: Defined, countries: Mapping[str, str], vocabulary: Vocabulary
) -> list[dict[str, Any]]:
    """What the sentences after the first one except."""
    out: list[dict[str, Any]] = []
    for part in parts:
        amount = AMOUNT.search(part)
        who = party(part, terms, countries, vocabulary)
        out.append({"of": who, "limit": None if amount is None else float(amount[1])})
    return out


def grants_for(
    clause: str,
    texts: Mapping[str, str],
    grants: Mapping[str, str],
    terms: Defined,
    countries: Mapping[str, str],
    vocabulary: Vocabulary,
) -> list[dict[str, Any]]:
    """What other clauses except from this one: a higher limit, or the precedence of a more special clause."""
    out: list[dict[str, Any]] = []
    for body in grants.values():
        amount = AMOUNT.search(body)
        bare = AMOUNT.sub("", body)
        named = [number for number in _NUMBER.findall(bare) if number in texts]
        who = party(body, terms, countries, vocabulary)
        if amount is not None:
            if named == [clause]:
                out.append({"of": who, "limit": float(amount[1])})
        elif clause in named and _general(clause, named, texts, who, (terms, countries, vocabulary)):
            out.append({"of": who, "limit": None})
    return out


def _general(
    clause: str, named: list[str], texts: Mapping[str, str], who: dict[str, Any], words: tuple[Any, Any, Any]
) -> bool:
    """Whether of two clauses this is the one that is not about the party itself."""

    def about(number: str) -> bool:
        try:
            return party(texts[number].split(". ")[0], *words) == who
        except UnreadableError:
            return False

    others = [number for number in named if number != clause]
    return bool(others) and not about(clause) and all(about(number) for number in others)
