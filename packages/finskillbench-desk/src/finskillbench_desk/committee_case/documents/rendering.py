"""Render guidelines as text, and code their rules as read correctly or with reading traps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from finskillbench_desk.committee_case.documents import phrases
from finskillbench_desk.committee_case.documents.clauses import CarveOut, Clause, Timing, coded_rule
from finskillbench_desk.committee_case.documents.kinds import KINDS
from finskillbench_desk.committee_case.documents.terms import DEFINED, KIND_NAMES, DefinedTerm, body, term_filters
from finskillbench_desk.committee_case.documents.vocabulary import RATINGS, Vocabulary, sentence_list
from finskillbench_desk.engines.guidelines.language import Rule

_OnClauses: TypeAlias = Literal[
    "number", "basis", "timing", "replace", "delete", "insert", "exception_add", "exception_drop"
]
Operation: TypeAlias = _OnClauses | Literal["definition_in", "definition_out", "definition_number"]
Definitions: TypeAlias = Mapping[str, DefinedTerm]


class ReadingTrap(StrEnum):
    """Kinds of misreading.

    - definition: defined terms are taken for what they sound like
    - amendment: the original text is coded and the amendments are not
    - exception: exceptions, and clauses that prevail over others, are left out
    - reporting: reporting thresholds are coded as limits
    - basis: shares of the equities are measured against net asset value
    - timing: limits that are tested at purchase are tested at all times
    """

    DEFINITION = "definition"
    AMENDMENT = "amendment"
    EXCEPTION = "exception"
    REPORTING = "reporting"
    BASIS = "basis"
    TIMING = "timing"


@dataclass(frozen=True, slots=True)
class Grant:
    """Clause that changes another one: a higher limit for a party, or precedence of a third clause."""

    number: str
    target: str
    who: str
    limit: float | None
    prevails: str = ""
    frame: int = 0


@dataclass(frozen=True, slots=True)
class AmendmentItem:
    """Amendment item with its clause or term afterwards (None if deleted); `details` fill the slots of its sentence."""

    number: str
    operation: Operation
    target: str
    clause: Clause | None = None
    term: DefinedTerm | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    frame: int = 0


@dataclass(frozen=True, slots=True)
class Style:
    """Names, percent sign and phrase numbers of one document."""

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
    """Original guidelines (`clauses`, `definitions`, `grants`) and their amendments.

    Attributes
    ----------
    default : timing of caps that state none.
    amendments : items by amendment, in order.
    sections : headings in the order of clause numbers.
    text : the whole document.
    """

    style: Style
    default: Timing
    definitions: Mapping[str, DefinedTerm]
    sections: tuple[str, ...]
    clauses: tuple[Clause, ...]
    grants: tuple[Grant, ...]
    amendments: tuple[tuple[AmendmentItem, ...], ...]
    text: str = ""

    @property
    def paragraphs(self) -> int:
        return sum(re.match(r"A?\d+\.\d+ ", line) is not None for line in self.text.splitlines())

    def in_force(self, amended: bool = True) -> tuple[tuple[Clause, ...], Mapping[str, DefinedTerm]]:
        """Return clauses and terms after all amendments, or before any."""
        clauses = {clause.number: clause for clause in self.clauses}
        definitions = dict(self.definitions)
        for item in (item for items in self.amendments for item in items if amended):
            if item.term is not None:
                definitions[item.term.key] = item.term
            elif item.clause is None:
                clauses.pop(item.target)
            else:
                clauses[item.target] = item.clause
        return tuple(clauses.values()), definitions

    def rules(self, misread: frozenset[ReadingTrap] = frozenset()) -> tuple[Rule, ...]:
        """Return the coded rules in force, or those of a reader with some misreadings."""
        clauses, definitions = self.in_force(ReadingTrap.AMENDMENT not in misread)
        meant = term_filters(definitions, ReadingTrap.DEFINITION in misread)
        out: list[Rule] = []
        for each in clauses:
            clause = self._with_grants(each)
            if ReadingTrap.EXCEPTION in misread:
                clause = clause.amended(exceptions=(), extra={**clause.extra, "spared": False})
            if ReadingTrap.BASIS in misread:
                clause = clause.amended(basis="nav")
            rule = coded_rule(KINDS[clause.kind], clause, meant, self.default)
            rule = replace(rule, effect="limit") if ReadingTrap.REPORTING in misread else rule
            out.append(replace(rule, when="always") if ReadingTrap.TIMING in misread else rule)
        return tuple(out)

    def _with_grants(self, clause: Clause) -> Clause:
        """Return the clause with exceptions granted by other clauses first, since they prevail."""
        grants = [grant for grant in self.grants if grant.target == clause.number]
        granted = [CarveOut(grant.who, grant.limit, grant.number) for grant in grants]
        return clause.amended(exceptions=(*granted, *clause.exceptions)) if granted else clause


def fill(template: str, slots: Mapping[str, Any]) -> str:
    """Fill a template, with a capital where a slot begins a sentence."""
    marked = re.sub(r"(^|\. )\{(\w+)\}", r"\1{\2_capital}", template)
    texts = {key: value for key, value in slots.items() if isinstance(value, str)}
    capitals = {f"{key}_capital": value[:1].upper() + value[1:] for key, value in texts.items()}
    return marked.format(**slots, **capitals)


def quantity(value: float, unit: str, style: Style) -> str:
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
    return f"the “{name.removeprefix('the ')}”" if name.startswith("the ") else f"“{name}”"


def basis_name(clause: Clause, style: Style) -> str:
    return style.equity if clause.basis == "equity" else style.nav


_PLURAL, _SINGULAR = {"are": "are", "them": "them"}, {"are": "is", "them": "it"}


def exemption_phrases(who: str, level: str, definitions: Definitions, vocabulary: Vocabulary) -> dict[str, str]:
    """Return phrases for an exempted party: plural `who` with `are` and `them`, and singular `one`."""
    label, _, word = who.partition(":")
    if not word:
        name = definitions[label].name
        if label in ("emerging", "region"):
            return {"who": name, "one": name, **(_PLURAL if label == "emerging" else _SINGULAR)}
        single = name.replace("Companies", "Company") if label == "small" else name.removesuffix("s")
        plural = name if label == "small" else f"the {name}"
        return {"who": plural, "one": f"any one {single}", **_PLURAL}
    if label == "kind":
        return {"who": KIND_NAMES[word], "one": f"one Issuer's {KIND_NAMES[word]}", **_PLURAL}
    if label == "country":
        name = vocabulary.countries[word]
    else:
        name = f"the {word} Sector" if label == "sector" else f"the Sub-Sector {word}"
    if level == "issuer":
        return {"who": f"Issuers in {name}", "one": f"any one Issuer in {name}", **_PLURAL}
    return {"who": name, "one": name, **_SINGULAR}


def sentence(clause: Clause, style: Style, definitions: Definitions, vocabulary: Vocabulary) -> str:
    """Return a clause as text, with its own exceptions."""
    kind = KINDS[clause.kind]
    timing = {"always": phrases.ALWAYS, "purchase": phrases.PURCHASE}.get(clause.when)
    subject = "group" if kind.name == "group_cap" else "theme" if kind.name == "group_floor" else "region"
    slots = {
        "x": quantity(clause.extra.get("years", clause.limit), kind.unit, style),
        "B": basis_name(clause, style),
        "W": timing[clause.word % len(timing)] if timing else "",
        "S": definitions["securities"].name,
        "Q": definitions["equities"].name,
        "T": definitions[subject].name if subject in definitions else "",
        "M": style.manager,
        "F": style.fund,
        **_extra(clause, style, vocabulary),
    }
    text = fill(kind.frames[clause.frame % len(kind.frames)], slots)
    return " ".join((text, *exceptions(clause, style, definitions, vocabulary)))


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
        out |= {"subs": sentence_list(extra["sub_sectors"]), "either": sentence_list(extra["sub_sectors"], "or")}
    if "countries" in extra:
        names = [vocabulary.countries[code] for code in extra["countries"]]
        out |= {"places": sentence_list(names), "either_place": sentence_list(names, "or")}
    return out


def exceptions(clause: Clause, style: Style, definitions: Definitions, vocabulary: Vocabulary) -> list[str]:
    """Return the exceptions within a clause, a sentence each."""
    kind = KINDS[clause.kind]
    out: list[str] = []
    for i, each in enumerate(clause.exceptions):
        slots = exemption_phrases(each.who, kind.carves, definitions, vocabulary)
        frames = phrases.EXEMPT if each.limit is None else phrases.RAISED
        y = "" if each.limit is None else quantity(each.limit, kind.unit, style)
        out.append(fill(frames[(clause.word + i) % len(frames)], {**slots, "y": y}))
    return out


def _granted(grant: Grant, target: Clause, style: Style, definitions: Definitions, vocabulary: Vocabulary) -> str:
    kind = KINDS[target.kind]
    frames = phrases.PRECEDENCE if grant.limit is None else phrases.NOTWITHSTANDING
    y = "" if grant.limit is None else quantity(grant.limit, kind.unit, style)
    slots = {"c": target.number, "d": grant.prevails, "y": y, "B": basis_name(target, style), "F": style.fund}
    slots |= exemption_phrases(grant.who, kind.carves, definitions, vocabulary)
    return fill(frames[grant.frame % len(frames)], slots)


def amended(item: AmendmentItem, style: Style, definitions: Definitions, vocabulary: Vocabulary) -> str:
    """Return one item of an amendment as text; `definitions` are those in force before it."""
    frames = phrases.AMENDED[item.operation]
    slots: dict[str, Any] = {"c": item.target, **item.details}
    if "term" in slots:
        slots["term"] = _quoted(slots["term"])
    if item.operation in ("replace", "insert") and item.clause is not None:
        slots["text"] = sentence(item.clause, style, definitions, vocabulary)
    if item.operation == "exception_add" and item.clause is not None:
        slots["text"] = exceptions(item.clause, style, definitions, vocabulary)[-1]
    return fill(frames[item.frame % len(frames)], slots)


def defined(definitions: Definitions, style: Style, vocabulary: Vocabulary) -> list[str]:
    """Return the definition paragraphs, with the values after the equities they refer to."""
    picks = style.picks
    slots = {"n": _quoted(style.nav), "v": _quoted(style.equity), "Q": definitions["equities"].name}
    values = fill(phrases.VALUES[picks["values"]], slots)
    out: list[str] = []
    for i, term in enumerate(definitions.values()):
        frame = DEFINED[(picks["defined"] + i * (picks["stride"] | 1)) % len(DEFINED)]
        out.append(fill(frame, {"name": _quoted(term.name), "body": body(term, vocabulary)}))
        if term.key == "equities":
            out.append(values)
    return out


def interpretation(guidelines: Guidelines) -> list[str]:
    style, picks = guidelines.style, guidelines.style.picks
    slots = {"N": style.nav, "V": style.equity, "M": style.manager}
    testing = phrases.AT_PURCHASE if guidelines.default == "purchase" else phrases.AT_ALL_TIMES
    return [fill(testing[picks["testing"]], slots), phrases.READING[picks["reading"]], phrases.ORDER[picks["order"]]]


def rendered(guidelines: Guidelines, vocabulary: Vocabulary, dates: tuple[str, ...]) -> str:
    """Return the whole document: opening, definitions, interpretation, sections and dated amendments."""
    style, definitions = guidelines.style, dict(guidelines.definitions)
    names = {"m": style.manager.removeprefix("the "), "f": style.fund.removeprefix("the ")}
    slots = {"client": style.client, "firm": style.firm, **names}
    lines = ["INVESTMENT GUIDELINES", "", fill(phrases.OPENINGS[style.picks["opening"]], slots)]
    fixed = (("Definitions", defined(definitions, style, vocabulary)), ("Interpretation", interpretation(guidelines)))
    for i, (heading, paragraphs) in enumerate(fixed, 1):
        lines += ["", f"{i}. {heading}", *(f"{i}.{j} {text}" for j, text in enumerate(paragraphs, 1))]
    clauses = {clause.number: clause for clause in guidelines.clauses}
    texts = {number: sentence(clause, style, definitions, vocabulary) for number, clause in clauses.items()}
    for grant in guidelines.grants:
        texts[grant.number] = _granted(grant, clauses[grant.target], style, definitions, vocabulary)
    for i, heading in enumerate(guidelines.sections, len(fixed) + 1):
        inside = sorted((int(number.split(".")[1]), number) for number in texts if number.startswith(f"{i}."))
        lines += ["", f"{i}. {heading}", *(f"{number} {texts[number]}" for _, number in inside)]
    for i, (items, day) in enumerate(zip(guidelines.amendments, dates, strict=True), 1):
        lines += ["", f"Amendment No. {i}, in force from {day}"]
        for item in items:
            lines.append(f"{item.number} {amended(item, style, definitions, vocabulary)}")
            if item.term is not None:
                definitions[item.term.key] = item.term
    return "\n".join(lines) + "\n"
