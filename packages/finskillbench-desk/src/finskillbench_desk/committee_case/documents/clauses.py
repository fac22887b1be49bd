"""A clause before it is words: its kind, the values of its slots, and how both become a sentence and a rule."""

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
    Futures,
    Limit,
    Measure,
    Rule,
    fixed,
)

Class: TypeAlias = Literal["cap", "other", "always", "report"]
"""What the clause on testing says of it: a cap is tested at purchase where that is the default, whatever is "always" (a
minimum, a prohibition, turnover) and a report never is, and anything other says so itself."""
Timing: TypeAlias = Literal["silent", "always", "purchase"]
Basis: TypeAlias = Literal["nav", "equity"]
Terms: TypeAlias = Mapping[str, Filter]
"""What the defined terms of a document mean, or what somebody takes them for."""


@dataclass(frozen=True, slots=True)
class Carve:
    """An exception: whom it is for ("approved", "country:JP", "sector:Energy"), and their limit, None for no limit.

    `by` is the number of the clause that grants it, empty where the clause itself does.
    """

    who: str
    limit: float | None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Clause:
    """One operative clause; `word` picks among ways to say the same."""

    number: str
    kind: str
    limit: float
    basis: Basis = "nav"
    when: Timing = "silent"
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    exceptions: tuple[Carve, ...] = ()
    frame: int = 0
    word: int = 0

    def amended(self, **changes: Any) -> Clause:
        """The clause with other values."""
        return replace(self, **changes)


Extra: TypeAlias = Callable[[np.random.Generator, Vocabulary], Mapping[str, Any]]


def no_extra(rng: np.random.Generator, vocabulary: Vocabulary) -> Mapping[str, Any]:
    """Nothing beside the limit."""
    del rng, vocabulary
    return {}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of clause.

    Attributes
    ----------
    section : heading under which it stands.
    frames : sentences; {x} limit, {B} basis, {W} when it is tested, {S} and {Q} the terms for securities and equities,
        {M} the manager, {F} the fund, {T} a defined term, and the words of `extra`.
    rule : `(clause, terms) -> Rule` without timing, basis and exceptions, which `coded` adds.
    grid : limits that a document may state.
    cls : see `Class`.
    uses : defined terms that it needs.
    carves : what its exceptions are for: "issuer", "sector", "country", or "" for none.
    unit : how the limit is said: "percent", "points", "number", "days", "years", "notch", "times".
    equity : whether its basis may be the equities.
    extra : draws what else it states.
    """

    name: str
    section: str
    frames: tuple[str, ...]
    rule: Callable[[Clause, Terms], Rule]
    grid: tuple[float, ...]
    cls: Class = "cap"
    uses: tuple[str, ...] = ()
    carves: str = ""
    unit: str = "percent"
    equity: bool = False
    extra: Extra = no_extra


def measure(
    clause: Clause,
    of: Filter,
    by: str | None = None,
    what: Measure = "weight",
    comparison: Comparison = "at_most",
    limit: Limit | None = None,
    futures: Futures = "ignore",
    look_through: bool = False,
    **details: Any,
) -> Rule:
    """A rule of a clause."""
    return Rule(
        clause=clause.number,
        measure=what,
        limit=limit or fixed(clause.limit),
        comparison=comparison,
        of=of,
        by=by,
        futures=futures,
        look_through=look_through,
        **details,
    )


def whom(who: str, terms: Terms) -> Filter:
    """Filter of an exception."""
    label, _, word = who.partition(":")
    return Among(label, frozenset((word,))) if word else terms[label]


def coded(kind: Kind, clause: Clause, terms: Terms, default: Timing) -> Rule:
    """The rule of a clause in a document whose silent caps are tested as `default` says."""
    rule = kind.rule(clause, terms)
    timing = clause.when
    if timing == "silent":
        timing = default if kind.cls == "cap" else "always"
    exceptions = tuple(
        Exemption(whom(each.who, terms), None if each.limit is None else replace_limit(rule.limit, each.limit))
        for each in clause.exceptions
    )
    return replace(
        rule,
        basis=terms["equities"] if clause.basis == "equity" else "nav",
        effect="report" if kind.cls == "report" else "limit",
        when="purchase" if timing == "purchase" else "always",
        exceptions=exceptions,
    )


def replace_limit(limit: Limit, value: float) -> Limit:
    """A limit of the same form with another number in it."""
    first = replace(limit.terms[0], plus=value)
    return Limit((first, *limit.terms[1:]), limit.pick)
