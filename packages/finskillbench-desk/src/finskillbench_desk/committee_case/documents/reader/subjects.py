"""Translate one amended clause into a coded rule: subject, comparison, limit, basis and timing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from finskillbench_desk.committee_case.documents.reader.amendments import AmendedTexts
from finskillbench_desk.committee_case.documents.reader.definitions import (
    AMOUNT,
    ParsedDefinitions,
    ReadingContext,
    UnreadableError,
    clause_exceptions,
    countries_in,
    grants_for,
    sentences,
)
from finskillbench_desk.committee_case.documents.vocabulary import RATINGS

_BONDS = {"kind": ["corporate_bond", "government_bond"]}
_CASH = {"kind": "cash"}
_THROUGH = re.compile(
    r"look|indirectly|inside funds|underlying holdings|portfolios of funds|by a fund|"
    r"(?:that|what) funds hold|those of funds"
)
_EACH_CURRENCY = re.compile(r"(?:one|single|each|individual|particular) currency|currency by currency|by itself")
_EACH_FUND = re.compile(r"any one|individual|each fund|single|fund by fund|same fund|particular|by itself")


@dataclass
class _Subject:
    """Subject of a clause.

    `measure` has keys of the rule; `relative` is "plus" for an offset to the benchmark, or a multiple of it. `limit` is
    a limit that is no percentage, `taken` percentages that are no limit, `spared` exemptions of a prohibition. `flow`
    marks turnover; `floor` and `at_most` fix the comparison.
    """

    measure: dict[str, Any]
    forbids: bool = False
    relative: str = ""
    limit: float | None = None
    taken: list[float] = field(default_factory=list[float])
    spared: list[Any] = field(default_factory=list[Any])
    flow: bool = False
    at_most: bool = False
    floor: bool = False


@dataclass(frozen=True, slots=True)
class _MarkedSentence:
    """Lower-case sentence with marked terms, and the context to resolve them."""

    text: str
    reading: ReadingContext

    @property
    def equities(self) -> Any:
        return self.named(self.reading.definitions.equities)

    @property
    def securities(self) -> Any:
        return self.named(self.reading.definitions.securities)

    def named(self, term: str) -> Any:
        return self.reading.definitions.filters[term]

    def has(self, pattern: str) -> bool:
        return re.search(pattern, self.text) is not None


def _both(*filters: Any) -> Any:
    return {"all": list(filters)}


def _weight(of: Any, **more: Any) -> dict[str, Any]:
    return {"measure": "weight", "of": of, **more}


def subject_of(text: str, reading: ReadingContext) -> _Subject:
    marked = _MarkedSentence(text, reading)
    for attempt in (_trading, _average, _derivatives, _lists, _bonds, _money, _special, _places, _sectors, _issuers):
        subject = attempt(marked)
        if subject is not None:
            return subject
    raise UnreadableError(f"subject of the clause not recognised: {text}")


def _trading(w: _MarkedSentence) -> _Subject | None:
    if w.has(r"turnover|turned over"):
        cues = {"half": r"half", "lesser": r"lesser|smaller", "greater": r"greater of|larger of"}
        convention = next((name for name, cue in cues.items() if w.has(cue)), "sum")
        only = w.has(r"not count until|pending do not|leaves out pending|pending orders left out")
        measure = {"measure": "turnover", "convention": convention, "trades": "used" if only else "all"}
        return _Subject(measure, flow=True, at_most=True)
    if w.has(r"active share"):
        return _Subject({"measure": "active_share", "of": w.equities, "by": "issuer"})
    if not w.has(r"average daily volume"):
        return None
    rate = re.search(r"(\d+(?:\.\d+)?)(?:%| per cent| percent) (?:of (?:its )?average|in average)", w.text)
    if rate is None:
        raise UnreadableError(f"clause without a share of daily volume: {w.text}")
    share = float(rate[1])
    days = 0.5 if w.has(r"half a trading day") else None
    if found := re.search(r"(\d+(?:\.\d+)?) trading days?", w.text):
        days = float(found[1])
    if w.has(r"\bcash\b"):
        taken = [share] if len({float(x[1]) for x in AMOUNT.finditer(w.text)}) > 1 else []
        return _Subject({"measure": "sellable", "days": days, "participation": share}, taken=taken)
    measure = {"measure": "days_to_sell", "of": w.equities, "by": "instrument", "participation": share}
    return _Subject(measure, limit=days, at_most=True)


def _average(w: _MarkedSentence) -> _Subject | None:
    if not w.has(r"average"):
        return _longest(w)
    if w.has(r"rat(ing|ed)"):
        found = re.search(r"(?:of|than|least|below|be) ((?:aaa|aa|a|bbb)[+-]?)(?=[ .,]|$)(?! value)", w.text)
        if found is None:
            raise UnreadableError(f"clause without a rating: {w.text}")
        return _averaged(_BONDS, "rating", float(RATINGS.index(found[1].upper()) + 1))
    if w.has(r"maturity"):
        found = re.search(r"(\d+(?:\.\d+)?) years", w.text)
        return _averaged(_BONDS, "maturity", None if found is None else float(found[1]))
    if w.has(r"beta"):
        found = re.search(r"(?<![\d.])(\d(?:\.\d+)?)(?![\d%])", w.text)
        return _averaged(w.equities, "beta", None if found is None else float(found[1]))
    return None


def _averaged(of: Any, attribute: str, limit: float | None) -> _Subject:
    return _Subject({"measure": "average", "of": of, "attribute": attribute}, limit=limit, at_most=True)


def _longest(w: _MarkedSentence) -> _Subject | None:
    found = re.search(r"(\d+(?:\.\d+)?) years", w.text)
    if found is None or not w.has(r"bond"):
        return None
    of = {**_BONDS, "maturity": {"above": float(found[1])}}
    return _Subject(_weight(of), forbids=True)


def _derivatives(w: _MarkedSentence) -> _Subject | None:
    if w.has(r"overdr|negative cash"):
        return _Subject({"measure": "short", "of": _CASH}, at_most=True)
    if w.has(r"\bfutures?\b"):
        futures = {"kind": ["equity_future", "bond_future"]}
        if w.has(r"cash"):
            return _Subject(_weight({"not": _CASH}, futures="gross"))
        if w.has(r"<eq>"):
            return _Subject(_weight({"any": [w.equities, {"kind": "equity_future"}]}, futures="net"))
        if w.has(r"gross|absolute|without netting|plus sold"):
            return _Subject(_weight(futures, futures="gross"), at_most=True)
        return _Subject(_weight({"kind": "equity_future"}, futures="net"), at_most=True)
    if w.has(r"(?<!fall )\bshort\b|be negative"):
        return _Subject({"measure": "short", "of": w.securities}, forbids=True)
    return None


def _lists(w: _MarkedSentence) -> _Subject | None:
    if w.has(r"restricted list"):
        spared = [_BONDS] if w.has(r"bonds") else []
        return _Subject(_weight({"list": "Restricted List"}), forbids=True, spared=spared)
    if w.has(r"affiliated funds"):
        return _Subject(_weight({"list": "Affiliated Funds"}), forbids=True)
    if w.has(r"unlisted"):
        return _Subject(_weight({"list": "Unlisted"}))
    return None


def _bonds(w: _MarkedSentence) -> _Subject | None:
    if w.has(r"<lower-rated bonds>"):
        return _Subject(_weight(w.named("Lower-Rated Bonds")))
    if w.has(r"convertible bonds"):
        return _Subject(_weight({"kind": ["preferred", "convertible"]}))
    if w.has(r"depositary receipts"):
        return _Subject(_weight({"kind": "receipt"}))
    if w.has(r"bonds") and w.has(r"government"):
        return _Subject(_weight(_BONDS))
    if w.has(r"corporate bonds"):
        return _Subject(_weight({"kind": "corporate_bond"}, by="issuer"))
    return None


def _money(w: _MarkedSentence) -> _Subject | None:
    if w.has(r"dollar|foreign currenc"):
        of = {"not": {"currency": "USD"}}
        by = {"by": "currency"} if w.has(_EACH_CURRENCY.pattern) else {}
        return _Subject(_weight(of, **by), at_most=True)
    if w.has(r"<liquid assets>"):
        return _Subject(_weight(w.named("Liquid Assets")))
    if w.has(r"\bbanks?\b") and w.has(r"\bcash\b"):
        return _Subject(_weight(_CASH, by="issuer"))
    if w.has(r"\bcash\b"):
        return _Subject(_weight(_CASH))
    if w.has(r"\bfunds?\b") and not w.has(r"<(eq|sec)>"):
        by = {"by": "instrument"} if w.has(_EACH_FUND.pattern) else {}
        return _Subject(_weight({"kind": "fund"}, **by))
    return None


def _special(w: _MarkedSentence) -> _Subject | None:
    for name, sort in w.reading.definitions.sorts.items():
        if sort in ("group", "countries", "size") and f"<{name.lower()}>" in w.text:
            return _Subject(_weight(_both(w.equities, w.named(name))))
    return None


def _places(w: _MarkedSentence) -> _Subject | None:
    named = countries_in(w.text.title().replace("Of", "of"), w.reading.countries)
    if w.has(r"\bcountr(y|ies)\b") and w.has(r"united states"):
        return _Subject(_weight(_both(w.equities, {"not": {"country": "US"}}), by="country"))
    if w.has(r"united states"):
        return _Subject(_weight(_both(w.equities, {"country": "US"})))
    if named and AMOUNT.search(w.text) is None:
        return _Subject(_weight(_both(w.securities, {"country": named})), forbids=True)
    return None


def _sectors(w: _MarkedSentence) -> _Subject | None:
    subs = [sub for sub in w.reading.vocabulary.sub_sectors if sub.lower() in w.text]
    if w.has(r"sub-sector"):
        if subs and AMOUNT.search(w.text) is None:
            return _Subject(_weight(_both(w.securities, {"sub_sector": subs})), forbids=True)
        return _Subject(_weight(w.equities, by="sub_sector"))
    if not w.has(r"\bsectors?\b"):
        return None
    sectors = w.reading.vocabulary.sectors
    if named := [sector for sector in sectors if w.has(rf"{sector.lower()}(?= sectors?\b| and )")]:
        return _Subject(_weight(_both(w.equities, {"sector": named})))
    if w.has(r"benchmark"):
        below = w.has(r"underweight|fall|least|minimum")
        return _Subject(_weight(w.equities, by="sector"), relative="plus", floor=below)
    more = {"look_through": True} if w.has(_THROUGH.pattern) else {}
    return _Subject(_weight(w.equities, by="sector", **more))


def _issuers(w: _MarkedSentence) -> _Subject | None:
    of = w.equities if w.has(r"<eq>") else w.securities
    if w.has(r"market capitalisation"):
        return _Subject({"measure": "ownership", "of": of, "by": "issuer"})
    if found := re.search(r"(\d+(?:\.\d+)?) times", w.text):
        return _Subject(_weight(of, by="issuer"), relative=found[1], at_most=True)
    if w.has(r"benchmark"):
        return _Subject(_weight(of, by="issuer"), relative="plus", at_most=True)
    if found := re.search(r"(\d+) (?:largest|biggest)|top (\d+)|first (\d+)|the (\d+) issuers", w.text):
        n = int(next(group for group in found.groups() if group))
        return _Subject({"measure": "top", "of": of, "by": "issuer", "n": n})
    amounts = [float(found[1]) for found in AMOUNT.finditer(w.text)]
    if not amounts and (found := re.search(r"(?<![\d.])(\d+)(?!\.?\d)", w.text)):
        return _Subject({"measure": "count", "of": of, "by": "issuer"}, limit=float(found[1]))
    if len(set(amounts)) == 2:
        return _Subject({"measure": "sum_above", "of": of, "by": "issuer", "above": min(amounts)})
    if w.has(r"\blines?\b"):
        return _Subject(_weight(of, by="instrument"))
    more = {"look_through": True} if w.has(_THROUGH.pattern) else {}
    return _Subject(_weight(of, by="issuer", **more))


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


def coded_clause(
    number: str, body: str, reading: ReadingContext, state: AmendedTexts, grants: Mapping[str, str]
) -> dict[str, Any]:
    first, *rest = sentences(body)
    marked = _marked(first, reading.definitions)
    subject = subject_of(marked, reading)
    reports = re.search(r"client|report", marked) is not None
    equity_basis = "<value>" in marked
    rule: dict[str, Any] = {"clause": number, **subject.measure}
    floor = subject.floor or (not (subject.forbids or subject.at_most) and _FLOOR.search(_plain(marked)) is not None)
    if subject.forbids:
        rule["comparison"] = "none"
    else:
        rule |= {"comparison": "at_least" if floor else "at_most", "limit": _limit(marked, subject, floor)}
    if equity_basis:
        rule["basis"] = reading.definitions.filters[reading.definitions.equities]
    if reports:
        rule["effect"] = "report"
    share = AMOUNT.search(marked) is not None and ("<nav>" in marked or equity_basis)
    silent = reading.timing if share and not (floor or reports or subject.forbids or subject.flow) else "always"
    timing = state.timing.get(number) or _stated_timing(marked) or silent
    if timing == "purchase":
        rule["when"] = "purchase"
    exceptions = grants_for(number, state.texts, grants, reading) + clause_exceptions(rest, reading)
    exceptions += [{"of": each, "limit": None} for each in subject.spared]
    if exceptions:
        rule["exceptions"] = [_like(each, rule.get("limit")) for each in exceptions]
    return rule


def _like(exception: dict[str, Any], limit: Any) -> dict[str, Any]:
    """Give the limit of an exception the form of the general limit."""
    if isinstance(limit, dict) and exception["limit"] is not None:
        return exception | {"limit": limit | {"plus": exception["limit"]}}
    return exception


def _stated_timing(marked: str) -> str:
    """Return the timing that the clause states, "" if it states none."""
    if _ALWAYS.search(marked):
        return "always"
    return "purchase" if _PURCHASE.search(re.sub(r"purchases (?:and|plus) sales", "", marked)) else ""


def _plain(marked: str) -> str:
    return re.sub(r"\bor less\b|not more than|no more than", "", marked)


def _marked(sentence: str, definitions: ParsedDefinitions) -> str:
    """Return the sentence in lower case with the document's terms in angle brackets."""
    out = re.sub(r"\b[Tt]he (Fund|Portfolio|Account|Mandate)\b", "<account>", _bases_marked(sentence, definitions))
    out = re.sub(r"\b[Tt]he (Investment |Portfolio )?(Manager|Adviser)\b", "<manager>", out)
    marks = {definitions.equities: "<eq>", definitions.securities: "<sec>"}
    for name in sorted(definitions.sorts, key=len, reverse=True):
        mark = marks.get(name, f"<{name.lower()}>")
        out = re.sub(rf"\b{re.escape(name)}\b", mark, out)
        out = re.sub(rf"\b{re.escape(name[:1].upper() + name[1:])}\b", mark, out)
    return out.lower()


def _bases_marked(sentence: str, definitions: ParsedDefinitions) -> str:
    for name, mark in ((definitions.equity_value, "<value>"), (definitions.nav, "<nav>")):
        for spelled in {name, name[:1].upper() + name[1:]}:
            sentence = re.sub(rf"\b{re.escape(spelled)}\b", mark, sentence)
    return sentence


def _limit(marked: str, subject: _Subject, floor: bool) -> Any:
    amounts = [float(found[1]) for found in AMOUNT.finditer(marked)]
    if subject.limit is not None:
        return subject.limit
    amounts = [amount for amount in amounts if amount not in subject.taken]
    if not amounts:
        raise UnreadableError(f"clause without a limit: {marked}")
    value = max(amounts) if subject.measure["measure"] == "sum_above" else amounts[0]
    if subject.relative == "plus":
        return {"benchmark_times": 1, "plus": -value if floor else value}
    if subject.relative:
        return {"greater_of": [value, {"benchmark_times": float(subject.relative)}]}
    return value
