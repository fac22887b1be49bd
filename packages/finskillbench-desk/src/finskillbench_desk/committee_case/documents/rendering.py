"""Guidelines as text.

Guidelines before they are words: clauses, terms, grants, amendments, and the rules that are in force in the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from finskillbench_desk.committee_case.documents import phrases
from finskillbench_desk.committee_case.documents.clauses import Carve, Clause, Timing, coded
from finskillbench_desk.committee_case.documents.kinds import KINDS
from finskillbench_desk.committee_case.documents.terms import DEFINED, KIND_WORDS, Term, body, filters
from finskillbench_desk.committee_case.documents.vocabulary import RATINGS, Vocabulary, listed
from finskillbench_desk.engines.guidelines.language import Rule

Operation: TypeAlias = Literal[
    "number",
    "basis",
    "timing",
    "replace",
    "delete",
    "insert",
    "exception_add",
    "exception_drop",
    "definition_in",
    "definition_out",
    "definition_number",
]


class Trap(StrEnum):
    """How guidelines are misread."""

    DEFINITION = "definition"
    AMENDMENT = "amendment"
    EXCEPTION = "exception"
    REPORTING = "reporting"
    BASIS = "basis"
    TIMING = "timing"


TRAP_WORDS: Mapping[Trap, str] = {
    Trap.DEFINITION: "defined terms are taken for what they sound like",
    Trap.AMENDMENT: "the original text is coded and the amendments are not",
    Trap.EXCEPTION: "exceptions, and clauses that prevail over others, are left out",
    Trap.REPORTING: "reporting thresholds are coded as limits",
    Trap.BASIS: "shares of the equities are measured against net asset value",
    Trap.TIMING: "limits that are tested at purchase are tested at all times",
}


@dataclass(frozen=True, slots=True)
class Grant:
    """A clause that changes another one: it raises the limit for somebody, or gives precedence to a third clause."""

    number: str
    target: str
    who: str
    limit: float | None
    prevails: str = ""
    frame: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """One item of an amendment.

    `clause` is the clause as it stands afterwards, None where it is deleted; `term` likewise for a definition. `words`
    are what the sentence says beside: the old value and the new one.
    """

    number: str
    operation: Operation
    target: str
    clause: Clause | None = None
    term: Term | None = None
    words: Mapping[str, Any] = field(default_factory=dict[str, Any])
    frame: int = 0


@dataclass(frozen=True, slots=True)
class Style:
    """How one document says what all of them say: names, the sign of per cent, phrases by position."""

    percent: str
    nav: str
    equity: str
    manager: str
    fund: str
    client: str
    firm: str
    picks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Guidelines:
    """Guidelines: as first agreed (`clauses`, `terms`, `grants`), and what amendments made of them.

    Attributes
    ----------
    default : when a cap is tested that does not say so.
    amendments : items by amendment, in order.
    sections : headings in the order in which clauses are numbered.
    text : the whole document.
    """

    style: Style
    default: Timing
    terms: Mapping[str, Term]
    sections: tuple[str, ...]
    clauses: tuple[Clause, ...]
    grants: tuple[Grant, ...]
    amendments: tuple[tuple[Item, ...], ...]
    text: str = ""

    @property
    def paragraphs(self) -> int:
        """Numbered paragraphs."""
        return sum(re.match(r"A?\d+\.\d+ ", line) is not None for line in self.text.splitlines())

    def in_force(self, amended: bool = True) -> tuple[tuple[Clause, ...], Mapping[str, Term]]:
        """Clauses and terms after all amendments, or before any."""
        clauses = {clause.number: clause for clause in self.clauses}
        terms = dict(self.terms)
        for item in (item for items in self.amendments for item in items if amended):
            if item.term is not None:
                terms[item.term.key] = item.term
            elif item.clause is None:
                clauses.pop(item.target)
            else:
                clauses[item.target] = item.clause
        return tuple(clauses.values()), terms

    def rules(self, misread: frozenset[Trap] = frozenset()) -> tuple[Rule, ...]:
        """The coded rules in force, or those of a reader who falls for some traps."""
        clauses, terms = self.in_force(Trap.AMENDMENT not in misread)
        meant = filters(dict(terms), Trap.DEFINITION in misread)
        out: list[Rule] = []
        for each in clauses:
            clause = self._with_grants(each)
            if Trap.EXCEPTION in misread:
                clause = clause.amended(exceptions=(), extra={**clause.extra, "spared": False})
            if Trap.BASIS in misread:
                clause = clause.amended(basis="nav")
            rule = coded(KINDS[clause.kind], clause, meant, self.default)
            rule = replace(rule, effect="limit") if Trap.REPORTING in misread else rule
            out.append(replace(rule, when="always") if Trap.TIMING in misread else rule)
        return tuple(out)

    def _with_grants(self, clause: Clause) -> Clause:
        """The clause with what other clauses grant from it; those come first, since they prevail."""
        granted = tuple(
            Carve(grant.who, grant.limit, grant.number) for grant in self.grants if grant.target == clause.number
        )
        return clause.amended(exceptions=(*granted, *clause.exceptions)) if granted else clause


Terms = Mapping[str, Term]


def fill(template: str, words: Mapping[str, Any]) -> str:
    """A template with its words, a capital wherever a sentence begins with one of them."""
    marked = re.sub(r"(^|\. )\{(\w+)\}", r"\1{\2_capital}", template)
    capitals = {
        f"{key}_capital": value[:1].upper() + value[1:] for key, value in words.items() if isinstance(value, str)
    }
    return marked.format(**words, **capitals)


def quantity(value: float, unit: str, style: Style) -> str:
    """A limit as words."""
    match unit:
        case "percent":
            return f"{value:g}{style.percent}"
        case "points":
            return f"{value:g} percentage point{'' if value == 1 else 's'}"
        case "days":
            return "half a trading day" if value == 0.5 else f"{value:g} trading day{'' if value == 1 else 's'}"
        case "years":
            return f"{value:g} years"
        case "notch":
            return RATINGS[int(value) - 1]
        case _:
            return f"{value:g}"


def _quoted(name: str) -> str:
    """A term in quotation marks, its article before them."""
    return f"the “{name.removeprefix('the ')}”" if name.startswith("the ") else f"“{name}”"


def basis_name(clause: Clause, style: Style) -> str:
    """What a share is a share of."""
    return style.equity if clause.basis == "equity" else style.nav


def spoken(who: str, level: str, terms: Terms, vocabulary: Vocabulary) -> dict[str, str]:
    """An exception's party: in the plural (`who`, with `are` and `them`), and as one of them (`one`)."""
    label, _, word = who.partition(":")
    if not word:
        name = terms[label].name
        if label in ("emerging", "region"):
            plural = label == "emerging"
            return {"who": name, "one": name, "are": "are" if plural else "is", "them": "them" if plural else "it"}
        single = name.replace("Companies", "Company") if label == "small" else name.removesuffix("s")
        plural = name if label == "small" else f"the {name}"
        return {"who": plural, "one": f"any one {single}", "are": "are", "them": "them"}
    if label == "kind":
        return {"who": KIND_WORDS[word], "one": f"one Issuer's {KIND_WORDS[word]}", "are": "are", "them": "them"}
    if label == "country":
        name = vocabulary.countries[word]
        if level == "issuer":
            return {"who": f"Issuers in {name}", "one": f"any one Issuer in {name}", "are": "are", "them": "them"}
        return {"who": name, "one": name, "are": "is", "them": "it"}
    name = f"the {word} Sector" if label == "sector" else f"the Sub-Sector {word}"
    if level == "issuer":
        return {"who": f"Issuers in {name}", "one": f"any one Issuer in {name}", "are": "are", "them": "them"}
    return {"who": name, "one": name, "are": "is", "them": "it"}


def sentence(clause: Clause, style: Style, terms: Terms, vocabulary: Vocabulary) -> str:
    """A clause as words, with its own exceptions."""
    kind = KINDS[clause.kind]
    timing = {"always": phrases.ALWAYS, "purchase": phrases.PURCHASE}.get(clause.when)
    subject = "group" if kind.name == "group_cap" else "theme" if kind.name == "group_floor" else "region"
    words = {
        "x": quantity(clause.extra.get("years", clause.limit), kind.unit, style),
        "B": basis_name(clause, style),
        "W": timing[clause.word % len(timing)] if timing else "",
        "S": terms["securities"].name,
        "Q": terms["equities"].name,
        "T": terms[subject].name if subject in terms else "",
        "M": style.manager,
        "F": style.fund,
        **_extra(clause, style, vocabulary),
    }
    text = fill(kind.frames[clause.frame % len(kind.frames)], words)
    return " ".join((text, *exceptions(clause, style, terms, vocabulary)))


def _extra(clause: Clause, style: Style, vocabulary: Vocabulary) -> dict[str, str]:
    extra, word = clause.extra, clause.word
    out = {key: f"{extra[key]:g}" for key in ("n", "k") if key in extra}
    out |= {key: quantity(extra[key], "percent", style) for key in ("y", "p") if key in extra}
    out |= {key: extra[key] for key in ("sector", "other") if key in extra}
    if "d" in extra:
        out["d"] = quantity(extra["d"], "days", style)
    if "convention" in extra:
        ways, scopes = phrases.HOW[extra["convention"]], phrases.SCOPE[extra["trades"]]
        out["how"] = f"{phrases.HOW_LEADS[word % len(phrases.HOW_LEADS)]} {ways[word % len(ways)]}"
        out["scope"] = scopes[(word // 2) % len(scopes)]
    if "spared" in extra:
        out["E"] = phrases.SPARED[word % len(phrases.SPARED)] if extra["spared"] else ""
    if "sub_sectors" in extra:
        out |= {"subs": listed(extra["sub_sectors"]), "either": listed(extra["sub_sectors"], "or")}
    if "countries" in extra:
        names = [vocabulary.countries[code] for code in extra["countries"]]
        out |= {"places": listed(names), "either_place": listed(names, "or")}
    return out


def exceptions(clause: Clause, style: Style, terms: Terms, vocabulary: Vocabulary) -> list[str]:
    """The exceptions that a clause grants itself, a sentence each."""
    kind = KINDS[clause.kind]
    out: list[str] = []
    for i, each in enumerate(clause.exceptions):
        words = spoken(each.who, kind.carves, terms, vocabulary)
        frames = phrases.EXEMPT if each.limit is None else phrases.RAISED
        y = "" if each.limit is None else quantity(each.limit, kind.unit, style)
        out.append(fill(frames[(clause.word + i) % len(frames)], {**words, "y": y}))
    return out


def _granted(grant: Grant, target: Clause, style: Style, terms: Terms, vocabulary: Vocabulary) -> str:
    """A clause that changes another one, as words."""
    kind = KINDS[target.kind]
    frames = phrases.PRECEDENCE if grant.limit is None else phrases.NOTWITHSTANDING
    y = "" if grant.limit is None else quantity(grant.limit, kind.unit, style)
    words = {"c": target.number, "d": grant.prevails, "y": y, "B": basis_name(target, style), "F": style.fund}
    return fill(frames[grant.frame % len(frames)], words | spoken(grant.who, kind.carves, terms, vocabulary))


def amended(item: Item, style: Style, terms: Terms, vocabulary: Vocabulary) -> str:
    """One item of an amendment, as words; `terms` are those in force before it."""
    frames = phrases.AMENDED[item.operation]
    words: dict[str, Any] = {"c": item.target, **item.words}
    if "term" in words:
        words["term"] = _quoted(words["term"])
    if item.operation in ("replace", "insert") and item.clause is not None:
        words["text"] = sentence(item.clause, style, terms, vocabulary)
    if item.operation == "exception_add" and item.clause is not None:
        words["text"] = exceptions(item.clause, style, terms, vocabulary)[-1]
    return fill(frames[item.frame % len(frames)], words)


def defined(terms: Terms, style: Style, vocabulary: Vocabulary) -> list[str]:
    """The paragraphs with definitions; values are explained after the equities that they are values of."""
    picks = style.picks
    words = {"n": _quoted(style.nav), "v": _quoted(style.equity), "Q": terms["equities"].name}
    values = fill(phrases.VALUES[picks["values"]], words)
    out: list[str] = []
    for i, term in enumerate(terms.values()):
        frame = DEFINED[(picks["defined"] + i * (picks["stride"] | 1)) % len(DEFINED)]
        out.append(fill(frame, {"name": _quoted(term.name), "body": body(term, vocabulary)}))
        if term.key == "equities":
            out.append(values)
    return out


def interpretation(guidelines: Guidelines) -> list[str]:
    """The paragraphs on how the document is read."""
    style, picks = guidelines.style, guidelines.style.picks
    words = {"N": style.nav, "V": style.equity, "M": style.manager}
    testing = phrases.AT_PURCHASE if guidelines.default == "purchase" else phrases.AT_ALL_TIMES
    return [
        fill(testing[picks["testing"]], words),
        phrases.READING[picks["reading"]],
        phrases.ORDER[picks["order"]],
    ]


def rendered(guidelines: Guidelines, vocabulary: Vocabulary, dates: tuple[str, ...]) -> str:
    """The whole document: opening, definitions, interpretation, sections, amendments of those dates."""
    style, terms = guidelines.style, dict(guidelines.terms)
    words = {
        "client": style.client,
        "firm": style.firm,
        "m": style.manager.removeprefix("the "),
        "f": style.fund.removeprefix("the "),
    }
    lines = ["INVESTMENT GUIDELINES", "", fill(phrases.OPENINGS[style.picks["opening"]], words)]
    fixed = (("Definitions", defined(terms, style, vocabulary)), ("Interpretation", interpretation(guidelines)))
    for i, (heading, paragraphs) in enumerate(fixed, 1):
        lines += ["", f"{i}. {heading}", *(f"{i}.{j} {text}" for j, text in enumerate(paragraphs, 1))]
    clauses = {clause.number: clause for clause in guidelines.clauses}
    texts = {number: sentence(clause, style, terms, vocabulary) for number, clause in clauses.items()}
    texts |= {
        grant.number: _granted(grant, clauses[grant.target], style, terms, vocabulary) for grant in guidelines.grants
    }
    for i, heading in enumerate(guidelines.sections, len(fixed) + 1):
        inside = sorted((int(number.split(".")[1]), number) for number in texts if number.startswith(f"{i}."))
        lines += ["", f"{i}. {heading}", *(f"{number} {texts[number]}" for _, number in inside)]
    for i, (items, day) in enumerate(zip(guidelines.amendments, dates, strict=True), 1):
        lines += ["", f"Amendment No. {i}, in force from {day}"]
        for item in items:
            lines.append(f"{item.number} {amended(item, style, terms, vocabulary)}")
            if item.term is not None:
                terms[item.term.key] = item.term
    return "\n".join(lines) + "\n"
