"""Quotations by topic, cross-references and gaps of a guideline document, without interpretation.

Topics are found by keywords, so a paragraph may belong to several.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from finskillbench.errors import InputError

_NUMBERED = re.compile(r"^\s*\(?((?:[A-Z]\.?)?\d+(?:\.\d+)+)\)?[.:]?\s+(\S.*)$")
_REFERENCE = re.compile(
    r"\b(?:clauses?|paragraphs?|sections?)\s+((?:\d+\.\d+)(?:(?:,| and| or| to)\s+\d+\.\d+)*)", re.I
)
_ADDED = re.compile(r"^[^“]*?(?<!\bof )(?<!\bto )(?<!\bin )\bclause (\d+\.\d+)[^“]*“", re.I)
_ADDING = re.compile(r"\b(?:insert|introduc|extend|add(?:s|ed)?\b)", re.I)
_DEFINED = re.compile(r"[“\"]([^”\"]{2,60})[”\"]")
_DEFINING = re.compile(
    r"\b(means|shall mean|(?:is|are) meant|stands? for|denotes?|refers? to|are to|has the meaning|is the)\b|"
    r"\bis (?:the )?[“\"]|[”\"]:",
    re.I,
)
_CAPITALS = re.compile(r"(?<![.“\"] )(?<!^)\b([A-Z][a-z]+(?:[- ][A-Z][a-z]+)*)\b")
_NUMBER = re.compile(r"\d")

TOPICS: Mapping[str, str] = {
    "single issuers": r"\bissuers?\b",
    "single lines": r"\blines?\b|\bclass(?:es)?\b",
    "concentration": r"\blargest\b|\btop\b|\bbiggest\b|\baggregate\b|\badd(?:ed|ing)? (?:up|together)\b|\bcombined\b",
    "number of holdings": r"\bnumber of\b|\bdifferent\b|\bfewer\b|\bseparate\b",
    "sectors": r"\bsub-?sectors?\b|\bsectors?\b|\bindustr(?:y|ies)\b",
    "countries": r"\bcountr(?:y|ies)\b|\bmarkets?\b|\bregion",
    "currencies": r"\bcurrenc(?:y|ies)\b|\bdollars?\b",
    "benchmark": r"\bbenchmark\b|\bactive share\b|\boverweight\b|\bunderweight\b",
    "cash and deposits": r"\bcash\b|\bbanks?\b|\bliquid assets\b|\boverdr",
    "funds": r"\bfunds?\b|\blook(?:ed|ing)?[- ]through\b|\bunderlying\b",
    "futures and leverage": r"\bfutures?\b|\bnotional|\bborrow|\bgross exposure\b|\bshort\b",
    "bonds and credit": r"\bbonds?\b|\brat(?:ing|ed)\b|\bmaturit|\bdebt\b",
    "exclusions": r"\bexclu|\bprohibit|\bnot permitted\b|\beligible\b|\blist\b|\bno .* may be held\b",
    "liquidity": r"\bdaily volume\b|\bsaleable\b|\bto sell\b|\brealis",
    "turnover": r"\bturnover\b|\bturned over\b|\bpending\b",
    "size and ownership": r"\bcapitalisation\b|\bsmall\b|\bown(?:s|ed|ership)?\b",
    "averages": r"\baverage\b(?! daily)|\bweighted\b|\bbeta\b",
    "reporting": r"\breport|\bnotify\b|\binform\b|\btold\b|\bexplanation\b|\bwrite to\b|\bexplain\b",
    "timing of tests": r"\bpurchase|\bbuy|\bbought\b|\bacquisition\b|\bat all times\b|\bat any time\b|\bafterwards\b",
    "exceptions and precedence": r"\bexcept|\bexempt|\bnotwithstanding\b|\bdespite\b|\bprevail|\bprecedence\b|"
    r"\bdoes not apply\b|\binstead\b|\bother than\b|\bsave for\b",
}
"""Pattern of keywords by topic."""


def paragraphs_of(text: str) -> dict[str, str]:
    """Return numbered paragraphs by number, with unnumbered lines appended; InputError without unique numbers."""
    out: dict[str, str] = {}
    last = ""
    for line in text.splitlines():
        found = _NUMBERED.match(line)
        if found:
            last = found[1]
            if last in out:
                raise InputError(f"two paragraphs are numbered {last}; read the document in parts")
            out[last] = found[2].strip()
        elif not line.strip():
            last = ""
        elif last:
            out[last] += f" {line.strip()}"
    if not out:
        raise InputError("the text has no numbered paragraphs (such as `4.2 ...`); give the whole document unchanged")
    return out


def evidence(text: str) -> dict[str, Any]:
    """Collect quotations by topic, defined terms and their uses, cross-references, and gaps."""
    paragraphs = paragraphs_of(text)
    quoted = [{"paragraph": number, "quote": body} for number, body in paragraphs.items()]
    topics = {topic: [each for each in quoted if re.search(cue, each["quote"], re.I)] for topic, cue in TOPICS.items()}
    definitions = _definitions(paragraphs)
    references = _references(paragraphs)
    known = {*paragraphs, *_added(paragraphs)}
    claimed = {quote["paragraph"] for quotes in topics.values() for quote in quotes}
    claimed |= {each["paragraph"] for each in references}
    return {
        "paragraphs": len(paragraphs),
        "topics": {topic: quotes for topic, quotes in topics.items() if quotes},
        "terms": definitions,
        "references": references,
        "gaps": {
            "topics_never_mentioned": [topic for topic, quotes in topics.items() if not quotes],
            "paragraphs_with_numbers_and_no_topic": [
                quote for quote in quoted if quote["paragraph"] not in claimed and _NUMBER.search(quote["quote"])
            ],
            "terms_never_used": [term["term"] for term in definitions if not term["used_in"]],
            "capitalised_and_not_defined": _undefined(paragraphs, [term["term"] for term in definitions]),
            "references_to_nothing": [each for each in references if any(name not in known for name in each["names"])],
        },
    }


def _definitions(paragraphs: Mapping[str, str]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for number, body in paragraphs.items():
        if not _DEFINING.search(body) or _REFERENCE.search(body):
            continue
        for term in _DEFINED.findall(body):
            stem = re.sub(r"(?:ies|y|s)$", "", term)
            spelled = re.compile(rf"\b{re.escape(stem)}", re.I)
            used = [other for other, other_body in paragraphs.items() if other != number and spelled.search(other_body)]
            out.append({"term": term, "paragraph": number, "quote": body, "used_in": used})
    return out


def _references(paragraphs: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return paragraphs that name others; later ones may amend earlier ones."""
    out: list[dict[str, Any]] = []
    for number, body in paragraphs.items():
        names = sorted({name for found in _REFERENCE.findall(body) for name in re.findall(r"\d+\.\d+", found)})
        if names:
            out.append({"paragraph": number, "names": names, "quote": body})
    return out


def _added(paragraphs: Mapping[str, str]) -> list[str]:
    """Return numbers of clauses that a paragraph adds in quotation marks."""
    found = ((_ADDED.search(body), body) for body in paragraphs.values())
    return [place[1] for place, body in found if place and _ADDING.search(body[: place.end()])]


def _undefined(paragraphs: Mapping[str, str], defined: Sequence[str]) -> list[str]:
    """Return undefined capitalised words that occur inside sentences of at least two paragraphs, commonest first."""
    known = {word for term in defined for word in (term.lower(), f"{term.lower()}s", term.lower().removesuffix("s"))}
    counts: dict[str, int] = {}
    for body in paragraphs.values():
        for word in set(_CAPITALS.findall(body)):
            inside = any(word.lower() in term for term in known)
            if word.lower() not in known and not inside:
                counts[word] = counts.get(word, 0) + 1
    often = [word for word, count in counts.items() if count > 1]
    return sorted(often, key=lambda word: (-counts[word], word))
