"""Clauses as data: their kind and slot values, and their translation into coded rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from finskillbench_desk.committee_case.documents.vocabulary import Vocabulary
from finskillbench_desk.engines.guidelines.language import (
    Among,
    Comparison,
    Exemption,
    Filter,
    Limit,
    Measure,
    Rule,
    fixed,
)

TimingClass: TypeAlias = Literal["cap", "other", "always", "report"]
"""A "cap" has the default timing of its document, "other" states its own, the rest is tested at all times."""
Timing: TypeAlias = Literal["silent", "always", "purchase"]
Basis: TypeAlias = Literal["nav", "equity"]
TermFilters: TypeAlias = Mapping[str, Filter]
"""Filter by key of a defined term: its true meaning, or the one that a naive reader assumes."""


@dataclass(frozen=True, slots=True)
class CarveOut:
    """Exception for `who`, such as "country:JP", with its limit or None; `by` is a clause that grants it, or ""."""

    who: str
    limit: float | None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Clause:
    """One operative clause; `word` selects among equivalent phrases."""

    number: str
    kind: str
    limit: float
    basis: Basis = "nav"
    when: Timing = "silent"
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    exceptions: tuple[CarveOut, ...] = ()
    frame: int = 0
    word: int = 0

    def amended(self, **changes: Any) -> Clause:
        return replace(self, **changes)


Extra: TypeAlias = Callable[[np.random.Generator, Vocabulary], Mapping[str, Any]]


def no_extra(rng: np.random.Generator, vocabulary: Vocabulary) -> Mapping[str, Any]:
    """Return no extra values."""
    del rng, vocabulary
    return {}


@dataclass(frozen=True, slots=True)
class ClauseKind:
    """One kind of clause.

    Attributes
    ----------
    rule : `(clause, meanings) -> Rule` without timing, basis and exceptions, which `coded_rule` adds.
    grid : usual limits.
    cls : see `TimingClass`.
    uses : keys of the defined terms it needs, without securities and equities, which every document defines.
    carves : level of its exceptions: "issuer", "sector", "country", or "" for none.
    unit : unit of the limit: "percent", "points", "number", "days", "years", "notch", "times".
    equity : True if its basis may be the equities.
    extra : draws further values.
    section : heading of its section.
    frames : sentences; {x} limit, {B} basis, {W} timing, {S} and {Q} the terms for securities and equities, {M}
        manager, {F} fund, {T} a defined term, and the keys of `extra`.
    """

    name: str
    rule: Callable[[Clause, TermFilters], Rule]
    grid: tuple[float, ...]
    cls: TimingClass = "cap"
    uses: tuple[str, ...] = ()
    carves: str = ""
    unit: str = "percent"
    equity: bool = False
    extra: Extra = no_extra
    section: str = ""
    frames: tuple[str, ...] = ()

    def worded(self, *frames: str) -> ClauseKind:
        """Return the kind with its sentences."""
        return replace(self, frames=frames)


def in_section(heading: str, *kinds: ClauseKind) -> tuple[ClauseKind, ...]:
    """Return the kinds with the heading of their section."""
    return tuple(replace(kind, section=heading) for kind in kinds)


def among(label: str, *values: str) -> Filter:
    """Return the filter of positions with one of these values of a label."""
    return Among(label, frozenset(values))


def rule_for(
    clause: Clause,
    of: Filter,
    by: str | None = None,
    measure_kind: Measure = "weight",
    comparison: Comparison = "at_most",
    limit: Limit | None = None,
    **details: Any,
) -> Rule:
    return Rule(clause.number, measure_kind, limit or fixed(clause.limit), comparison, of=of, by=by, **details)


def exempted_filter(who: str, meanings: TermFilters) -> Filter:
    label, _, word = who.partition(":")
    return among(label, word) if word else meanings[label]


def coded_rule(kind: ClauseKind, clause: Clause, meanings: TermFilters, default: Timing) -> Rule:
    """Return the rule of a clause; `default` is the timing of caps that state none."""
    rule = kind.rule(clause, meanings)
    timing = clause.when
    if timing == "silent":
        timing = default if kind.cls == "cap" else "always"
    limits = [None if each.limit is None else replace_limit(rule.limit, each.limit) for each in clause.exceptions]
    parties = [exempted_filter(each.who, meanings) for each in clause.exceptions]
    return replace(
        rule,
        basis=meanings["equities"] if clause.basis == "equity" else "nav",
        effect="report" if kind.cls == "report" else "limit",
        when="purchase" if timing == "purchase" else "always",
        exceptions=tuple(map(Exemption, parties, limits)),
    )


def replace_limit(limit: Limit, value: float) -> Limit:
    """Return a limit of the same form with another number."""
    first = replace(limit.terms[0], plus=value)
    return Limit((first, *limit.terms[1:]), limit.pick)
