"""Types of a coded rule: measure, positions, limit, timing and exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

_OfGroups: TypeAlias = Literal["weight", "sum_above", "top", "count", "active_share"]
Measure: TypeAlias = Literal[_OfGroups, "turnover", "days_to_sell", "sellable", "average", "ownership", "short"]
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
"""Labels for groups; a rule can also define groups by filters."""


@dataclass(frozen=True, slots=True)
class Among:
    """The instrument's `label` (or one of its `list`s) is among `labels`."""

    label: str
    labels: frozenset[str]


@dataclass(frozen=True, slots=True)
class Range:
    """The instrument has the attribute, on the stated side of `value`."""

    attribute: str
    bound: Bound
    value: float


@dataclass(frozen=True, slots=True)
class Every:
    """All parts hold; true without parts."""

    parts: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    """At least one part holds; false without parts."""

    parts: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Not:
    part: Filter


Filter: TypeAlias = Among | Range | Every | Some | Not
EVERYTHING = Every()


@dataclass(frozen=True, slots=True)
class LimitTerm:
    """`benchmark_times` x the group's weight in the benchmark + `plus`."""

    plus: float
    benchmark_times: float = 0.0


@dataclass(frozen=True, slots=True)
class Limit:
    """The greater or lesser of some terms, in the unit of the measure (percent for weights)."""

    terms: tuple[LimitTerm, ...]
    pick: Literal["greater_of", "lesser_of"] = "greater_of"

    @property
    def relative(self) -> bool:
        """True if the limit depends on the benchmark."""
        return any(term.benchmark_times for term in self.terms)


def fixed(value: float) -> Limit:
    return Limit((LimitTerm(value),))


@dataclass(frozen=True, slots=True)
class Exemption:
    """Positions that match `of` are excluded from the rule; with a limit, that limit applies to them instead."""

    of: Filter
    limit: Limit | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One coded rule; `SCHEMA` in `parsing` describes its fields.

    Weights are in percent. `by` is a label, groups by name, or None for all positions together. `basis` is "nav",
    "gross" or a filter of the positions in the denominator. `exceptions` apply in their order.
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
        """Split into the rule without exceptions and one rule per exception with a limit."""
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
    """Return a rule as the JSON that `parse_rule` reads, without default values."""
    plain = Rule(rule.clause, rule.measure, rule.limit)
    out: dict[str, Any] = {"clause": rule.clause, "measure": rule.measure}
    for name in ("effect", "when", "futures", "look_through", "above", "n", "days", "participation", "attribute"):
        if getattr(rule, name) != getattr(plain, name):
            out[name] = getattr(rule, name)
    if rule.measure == "turnover":
        out |= {"trades": rule.trades, "convention": rule.convention}
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
    alternatives = [
        {"benchmark_times": term.benchmark_times, "plus": term.plus} if term.benchmark_times else term.plus
        for term in limit.terms
    ]
    return alternatives[0] if len(alternatives) == 1 else {limit.pick: alternatives}


def filter_json(of: Filter) -> dict[str, Any]:
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
