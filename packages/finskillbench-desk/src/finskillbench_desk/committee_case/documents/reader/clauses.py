"""One clause as amended, as a coded rule: what it speaks of, compared how, with what number, of which basis, when."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from finskillbench_desk.committee_case.documents.reader.amendments import State
from finskillbench_desk.committee_case.documents.reader.definitions import Defined
from finskillbench_desk.committee_case.documents.reader.exceptions import AMOUNT, grants_for, own_exceptions
from finskillbench_desk.committee_case.documents.reader.structure import UnreadableError, sentences
from finskillbench_desk.committee_case.documents.reader.subjects import Subject, subject_of
from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary

_ALWAYS = re.compile(
    r"at any time|at all times|at no time|tested every day|both (?:upon purchase|when buying)|not only at purchase|"
    r"whether or not|cause of a breach|the excess has come|continuously|life of a holding|"
    r"market movements (?:and flows )?being no"
)
_PURCHASE = re.compile(r"purchase|being bought|acquisition|something is bought")
_FLOOR = re.compile(
    r"at least|at the least|no less than|not less than|never be less|minimum|\bor more\b|fall below|fewer than|"
    r"floor for|be less than|worth less than"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a clause is read with."""

    terms: Defined
    countries: Mapping[str, str]
    vocabulary: Vocabulary
    timing: str


def coded_clause(number: str, body: str, reading: Reading, state: State, grants: Mapping[str, str]) -> dict[str, Any]:
    """The coded rule of one clause."""
    first, *rest = sentences(body)
    marked = _marked(first, reading.terms)
    subject = subject_of(marked, reading.terms, reading.countries, reading.vocabulary)
    reports = re.search(r"client|report", marked) is not None
    equity_basis = "<value>" in marked
    rule: dict[str, Any] = {"clause": number, **subject.measure}
    floor = subject.floor or (not (subject.forbids or subject.at_most) and _FLOOR.search(_plain(marked)) is not None)
    if subject.forbids:
        rule["comparison"] = "none"
    else:
        rule |= {"comparison": "at_least" if floor else "at_most", "limit": _limit(marked, subject, floor)}
    if equity_basis:
        rule["basis"] = reading.terms.filters[reading.terms.equities]
    if reports:
        rule["effect"] = "report"
    share = AMOUNT.search(marked) is not None and ("<nav>" in marked or equity_basis)
    silent = reading.timing if share and not (floor or reports or subject.forbids or subject.flow) else "always"
    timing = state.timing.get(number) or _said(marked) or silent
    if timing == "purchase":
        rule["when"] = "purchase"
    words = (reading.terms, reading.countries, reading.vocabulary)
    exceptions = grants_for(number, state.texts, grants, *words) + own_exceptions(rest, *words)
    exceptions += [{"of": each, "limit": None} for each in subject.spared]
    if exceptions:
        rule["exceptions"] = [_like(each, rule.get("limit")) for each in exceptions]
    return rule


def _like(exception: dict[str, Any], limit: Any) -> dict[str, Any]:
    """An exception whose limit has the form of the general one."""
    if isinstance(limit, dict) and exception["limit"] is not None:
        return exception | {"limit": limit | {"plus": exception["limit"]}}
    return exception


def _said(marked: str) -> str:
    """What the clause itself says on timing, "" for nothing."""
    if _ALWAYS.search(marked):
        return "always"
    return "purchase" if _PURCHASE.search(re.sub(r"purchases (?:and|plus) sales", "", marked)) else ""


def _plain(marked: str) -> str:
    """The sentence without maximums that sound like minimums."""
    return re.sub(r"\bor less\b|not more than|no more than", "", marked)


def _marked(sentence: str, terms: Defined) -> str:
    """The sentence in lower case with the document's own terms in angle brackets."""
    out = re.sub(r"\b[Tt]he (Fund|Portfolio|Account|Mandate)\b", "<account>", _bases_marked(sentence, terms))
    out = re.sub(r"\b[Tt]he (Investment |Portfolio )?(Manager|Adviser)\b", "<manager>", out)
    for name in sorted(terms.sorts, key=len, reverse=True):
        mark = "<eq>" if name == terms.equities else "<sec>" if name == terms.securities else f"<{name.lower()}>"
        out = re.sub(rf"\b{re.escape(name)}\b", mark, out)
        out = re.sub(rf"\b{re.escape(name[:1].upper() + name[1:])}\b", mark, out)
    return out.lower()


def _bases_marked(sentence: str, terms: Defined) -> str:
    for name, mark in ((terms.equity_value, "<value>"), (terms.nav, "<nav>")):
        for spelled in {name, name[:1].upper() + name[1:]}:
            sentence = re.sub(rf"\b{re.escape(spelled)}\b", mark, sentence)
    return sentence


def _limit(marked: str, subject: Subject, floor: bool) -> Any:
    amounts = [float(found[1]) for found in AMOUNT.finditer(marked)]
    if subject.limit is not None:
        return subject.limit
    amounts = [amount for amount in amounts if amount not in subject.taken]
    if not amounts:
        raise UnreadableError(f"a clause without a limit: {marked}")
    value = max(amounts) if subject.measure["measure"] == "sum_above" else amounts[0]
    if subject.relative == "plus":
        return {"benchmark_times": 1, "plus": -value if floor else value}
    if subject.relative:
        return {"greater_of": [value, {"benchmark_times": float(subject.relative)}]}
    return value
