"""The types of a coded rule: what is measured of whom, against which limit, when, with which exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

Measure: TypeAlias = Literal[
    "weight",
    "sum_above",
    "top",
    "count",
    "active_share",
    "turnover",
    "days_to_sell",
    "sellable",
    "average",
    "ownership",
    "short",
]
Comparison: TypeAlias = Literal["at_most", "at_least"]
When: TypeAlias = Literal["always", "purchase"]
Effect: TypeAlias = Literal["limit", "report"]
Futures: TypeAlias = Literal["ignore", "net", "gross"]
Trades: TypeAlias = Literal["used", "pending", "all"]
Convention: TypeAlias = Literal["half", "lesser", "greater", "sum"]
Bound: TypeAlias = Literal["above", "at_least", "below", "at_most"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
EFFECTS: tuple[Effect, ...] = get_args(Effect)
WHEN: tuple[When, ...] = get_args(When)
FUTURES_COUNT: tuple[Futures, ...] = get_args(Futures)
TRADES: tuple[Trades, ...] = get_args(Trades)
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
BOUNDS: tuple[Bound, ...] = get_args(Bound)
GROUPS = ("issuer", "instrument", "sector", "sub_sector", "country", "currency")
"""What positions can be added up by, beside groups that a rule names itself."""


@dataclass(frozen=True, slots=True)
class Among:
    """The instrument's word in `label` (or one of its `list`s) is among `words`."""

    label: str
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class Range:
    """The instrument has the attribute, and it lies on that side of `value`."""

    attribute: str
    bound: Bound
    value: float


@dataclass(frozen=True, slots=True)
class Every:
    """All parts hold; without parts everything does."""

    parts: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    """At least one part holds; without parts nothing does."""

    parts: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Filter


Filter: TypeAlias = Among | Range | Every | Some | Not
EVERYTHING = Every()


@dataclass(frozen=True, slots=True)
class Term:
    """`benchmark_times` x the group's weight in the benchmark + `plus`."""

    plus: float
    benchmark_times: float = 0.0


@dataclass(frozen=True, slots=True)
class Limit:
    """The greater or the lesser of some terms, in the unit of the measure (percent for weights)."""

    terms: tuple[Term, ...]
    pick: Literal["greater_of", "lesser_of"] = "greater_of"

    @property
    def relative(self) -> bool:
        """Whether it moves with the benchmark."""
        return any(term.benchmark_times for term in self.terms)


def fixed(value: float) -> Limit:
    """A limit that is one number."""
    return Limit((Term(value),))


@dataclass(frozen=True, slots=True)
class Exemption:
    """What matches `of` is taken out of the rule; with a limit it is held to that one by itself instead."""

    of: Filter
    limit: Limit | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One coded rule; see `SCHEMA` in `parsing` for the words that an agent is shown.

    Attributes
    ----------
    clause : number of the clause that states it.
    measure : what is measured.
    limit, comparison : what it is held against.
    of : which positions count.
    by : groups that are measured one by one: a label, groups by name, or None for all together.
    basis : denominator of a weight: "nav", "gross", or what matches a filter.
    effect : whether exceeding it is a breach or only to be reported.
    when : "purchase" means that only what is being bought can break it.
    futures : how futures count.
    look_through : whether funds count as what they hold.
    exceptions : taken out one after the other, in this order.
    above : threshold of `sum_above`, or the least weight that `count` counts, percent.
    n : how many groups `top` adds up.
    days, participation : trading days and percent of a day's volume of `days_to_sell` and `sellable`.
    attribute : what `average` averages.
    trades, convention : which trades `turnover` counts, and how.
    """

    clause: str
    measure: Measure
    limit: Limit
    comparison: Comparison = "at_most"
    of: Filter = EVERYTHING
    by: str | tuple[tuple[str, Filter], ...] | None = None
    basis: str | Filter = "nav"
    effect: Effect = "limit"
    when: When = "always"
    futures: Futures = "ignore"
    look_through: bool = False
    exceptions: tuple[Exemption, ...] = ()
    above: float = 0.0
    n: int = 10
    days: float = 1.0
    participation: float = 100.0
    attribute: str = "rating"
    trades: Trades = "all"
    convention: Convention = "half"

    def atoms(self) -> tuple[Rule, ...]:
        """The rule without its exceptions, and one rule for each exception that has a limit of its own."""
        if not self.exceptions:
            return (self,)
        taken: list[Filter] = []
        out: list[Rule] = []
        for exception in self.exceptions:
            if exception.limit is not None:
                of = Every((self.of, exception.of, *(Not(each) for each in taken)))
                out.append(replace(self, of=of, limit=exception.limit, exceptions=()))
            taken.append(exception.of)
        rest = Every((self.of, *(Not(each) for each in taken)))
        return (replace(self, of=rest, exceptions=()), *out)


def rule_json(rule: Rule) -> dict[str, Any]:
    """A rule as the JSON that `parse_rule` reads, without what is as by default."""
    plain = Rule(rule.clause, rule.measure, rule.limit)
    out: dict[str, Any] = {"clause": rule.clause, "measure": rule.measure}
    for name in ("effect", "when", "futures", "look_through", "above", "n", "days", "participation", "attribute"):
        if getattr(rule, name) != getattr(plain, name):
            out[name] = getattr(rule, name)
    for name in ("trades", "convention"):
        if rule.measure == "turnover":
            out[name] = getattr(rule, name)
    if rule.of != EVERYTHING:
        out["of"] = filter_json(rule.of)
    if rule.by is not None:
        out["by"] = rule.by if isinstance(rule.by, str) else {name: filter_json(each) for name, each in rule.by}
    if rule.basis != "nav":
        out["basis"] = rule.basis if isinstance(rule.basis, str) else filter_json(rule.basis)
    if rule.exceptions:
        out["exceptions"] = [
            {"of": filter_json(each.of), "limit": None if each.limit is None else limit_json(each.limit)}
            for each in rule.exceptions
        ]
    return out | {"comparison": rule.comparison, "limit": limit_json(rule.limit)}


def limit_json(limit: Limit) -> float | dict[str, Any]:
    """A limit as JSON."""
    terms = [
        {"benchmark_times": term.benchmark_times, "plus": term.plus} if term.benchmark_times else term.plus
        for term in limit.terms
    ]
    return terms[0] if len(terms) == 1 else {limit.pick: terms}


def filter_json(of: Filter) -> dict[str, Any]:
    """A filter as JSON."""
    match of:
        case Among(label, words):
            return {label: sorted(words)}
        case Range(attribute, bound, value):
            return {attribute: {bound: value}}
        case Not(part):
            return {"not": filter_json(part)}
        case Some(parts):
            return {"any": [filter_json(part) for part in parts]}
        case Every(parts):
            return {"all": [filter_json(part) for part in parts]} if parts else {}


Json: TypeAlias = Mapping[str, Any]
"""A JSON object."""
