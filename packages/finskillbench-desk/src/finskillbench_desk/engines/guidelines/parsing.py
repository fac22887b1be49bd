"""Parser of coded rules from JSON; errors are collected as texts, and no JSON value raises."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from finskillbench.engines.fields import list_of, table_of
from finskillbench_desk.engines.guidelines.book import ATTRIBUTES, LABELS
from finskillbench_desk.engines.guidelines.language import (
    BOUNDS,
    CONVENTIONS,
    EFFECTS,
    EVERYTHING,
    FUTURES_COUNT,
    GROUPS,
    MEASURES,
    TRADES,
    WHEN,
    Among,
    Every,
    Exemption,
    Filter,
    Limit,
    LimitTerm,
    Not,
    Range,
    Rule,
    Some,
    fixed,
)

T = TypeVar("T", bound=str)
DEPTH = 12
"""Greatest nesting of filters; guidelines need at most four levels."""
MOST_RULES = 120
"""Most rules read from an answer; guidelines have about forty clauses."""
MOST_LABELS = 2_000
MOST_PARTS = 40
"""Most groups, exceptions or parts of a filter; each costs a pass over the instruments."""

SCHEMA = """A coded rule is a JSON object. Weights and limits are in percent, amounts in the currency of the book.
{"clause": "4.2",                  the number of the clause whose limit it states
 "measure": "weight" | "sum_above" | "top" | "count" | "active_share" | "turnover" | "days_to_sell" | "sellable" |
            "average" | "ownership" | "short",
 "comparison": "at_most" | "at_least" | "none",   "none" needs no limit: nothing that matches may be held
 "limit": LIMIT,
 "of": FILTER,                     which positions count (default: all, cash included)
 "by": "issuer" | "instrument" | "sector" | "sub_sector" | "country" | "currency" | {"NAME": FILTER, ...},
                                   measured for each group alone (default: all together; an empty label is no group)
 "basis": "nav" | "gross" | FILTER,   denominator (default nav); gross: market values without cash, plus notionals;
                                   FILTER: the market value of what matches
 "effect": "limit" | "report",     report: exceeding it is reported and is no breach (default limit)
 "when": "always" | "purchase",    purchase: only a group in which something is bought can break it (default always)
 "futures": "ignore" | "net" | "gross",   futures count by market value, signed or absolute notional (default ignore)
 "look_through": false | true,     funds count as their holdings (default false)
 "exceptions": [{"of": FILTER, "limit": LIMIT | null}, ...]}   a match is taken out of the rule; the first
                                   match decides; with a limit it is tested against that limit separately
weight: sum over basis. sum_above: sum of those group weights that exceed "above". top: sum of the "n" largest group
weights. count: number of groups whose weight exceeds "above" (default 0). active_share: half the sum of absolute
differences from the benchmark over the groups. turnover: of the quarter; "trades": "used", "pending", "all" (default);
"convention": "half" (of purchases plus sales, default) | "lesser" | "greater" | "sum". days_to_sell: of the slowest
instrument at "participation" percent of its daily volume. sellable: percent of the basis that can be sold within "days"
at "participation" percent, cash included where it matches. average: of "attribute", weighted by value. ownership:
percent of the issuer's market_cap. short: sum of the negative positions, positive.
LIMIT: a number, {"benchmark_times": a, "plus": b} (a times the group's weight in the benchmark, plus b), or
{"greater_of": [LIMIT, ...]} or {"lesser_of": [LIMIT, ...]} of those.
FILTER: an object of which every entry must hold: "kind", "sector", "sub_sector", "country", "currency", "issuer",
"instrument", "list": a word or a list of words; "market_cap", "adv", "rating", "maturity", "beta", "yield":
{"above" | "at_least" | "below" | "at_most": number}; "all": [FILTER, ...], "any": [FILTER, ...], "not": FILTER.
rating is a notch: 1 is AAA, 2 AA+, ... 10 BBB-, 11 BB+, ... 22 D. An instrument without such a number satisfies no
condition on it; one without adv cannot be sold. A clause with several limits is several rules. An exception that
another clause grants, and any change by an amendment, belongs in the rule of the clause that is changed; a clause that
states no limit or threshold itself has no rule.
"""
_CONDITIONS = ("clause", "measure", "comparison", "limit", "of", "by", "basis", "effect", "when", "futures")
_DETAILS = ("above", "n", "days", "participation", "attribute", "trades", "convention")
_KEYS = frozenset((*_CONDITIONS, "look_through", "exceptions", *_DETAILS))


class _RefusedError(Exception):
    """A rule cannot be read; the message gives the reason."""


def parse_rules(value: object) -> tuple[tuple[Rule, ...], list[str]]:
    """Return the readable rules of a list, and the errors of the others."""
    items = list_of(value)
    if items is None:
        return (), ["rules must be a list of objects"]
    problems = [] if len(items) <= MOST_RULES else [f"only the first {MOST_RULES} of {len(items)} rules are read"]
    rules: list[Rule] = []
    for i, item in enumerate(items[:MOST_RULES]):
        rule, wrong = parse_rule(item, f"rules[{i}]")
        problems += wrong
        if rule is not None:
            rules.append(rule)
    return tuple(rules), problems


def parse_rule(value: object, where: str = "rule") -> tuple[Rule | None, list[str]]:
    """Return a rule and no errors, or None and the errors."""
    try:
        return _rule(value, where), []
    except _RefusedError as refused:
        return None, [str(refused)]


def _rule(value: object, where: str) -> Rule:
    data = table_of(value)
    if data is None:
        raise _RefusedError(f"{where}: must be an object")
    if unknown := sorted(str(key)[:40] for key in data if key not in _KEYS):
        raise _RefusedError(f"{where}: {unknown[0]} is no key of a rule; use {', '.join(sorted(_KEYS))}")
    clause = data.get("clause")
    if not isinstance(clause, str) or not clause.strip():
        raise _RefusedError(f"{where}: clause must be the number of the clause, as text")
    word = _choice_of(data, where)
    by = _by(data.get("by"), where)
    measure = word("measure", MEASURES, None)
    if by is None and measure in ("sum_above", "top", "count", "active_share"):
        raise _RefusedError(f"{where}: {measure} adds up groups; state `by`")
    if measure == "ownership" and by is None:
        by = "issuer"
    none = data.get("comparison") == "none"
    limit = fixed(0.0) if none and data.get("limit") is None else limit_of(data.get("limit"), f"{where}.limit")
    look = data.get("look_through", False)
    if not isinstance(look, bool):
        raise _RefusedError(f"{where}: look_through must be true or false")
    basis = data.get("basis", "nav")
    return Rule(
        clause=clause.strip(),
        measure=measure,
        limit=limit,
        comparison="at_most" if none else word("comparison", ("at_most", "at_least"), None),
        of=filter_of(data.get("of"), f"{where}.of"),
        by=by,
        basis=basis if basis in ("nav", "gross") else filter_of(basis, f"{where}.basis"),
        effect=word("effect", EFFECTS, "limit"),
        when=word("when", WHEN, "always"),
        futures=word("futures", FUTURES_COUNT, "ignore"),
        look_through=look,
        exceptions=tuple(_exceptions(data.get("exceptions"), f"{where}.exceptions")),
        above=_number(data.get("above", 0.0), f"{where}.above"),
        n=int(_number(data.get("n", 10), f"{where}.n", 1, 10_000)),
        days=_number(data.get("days", 1.0), f"{where}.days", 0, 10_000),
        participation=_number(data.get("participation", 100.0), f"{where}.participation", 1e-6, 1e6),
        attribute=word("attribute", ATTRIBUTES, "rating"),
        trades=word("trades", TRADES, "all"),
        convention=word("convention", CONVENTIONS, "half"),
    )


def _choice_of(data: Any, where: str) -> Callable[..., Any]:
    def word(key: str, among: tuple[T, ...], default: T | None) -> T:
        value = data.get(key, default)
        for known in among:
            if known == value and isinstance(value, str):
                return known
        raise _RefusedError(f"{where}: {key} must be one of {', '.join(among)}")

    return word


def _number(value: object, where: str, least: float = -1e15, most: float = 1e15) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _RefusedError(f"{where}: must be a number")
    if isinstance(value, int) and abs(value) > 10**15:
        raise _RefusedError(f"{where}: must be a number of usual size")
    if not math.isfinite(value) or not least <= value <= most:
        raise _RefusedError(f"{where}: must lie between {least:g} and {most:g}")
    return float(value)


def limit_of(value: object, where: str) -> Limit:
    data = table_of(value)
    if data is None:
        return fixed(_number(value, where))
    for pick in ("greater_of", "lesser_of"):
        if pick in data:
            alternatives = list_of(data[pick])
            if not alternatives or len(alternatives) > MOST_PARTS or len(data) > 1:
                raise _RefusedError(f"{where}: {pick} must be a list of limits, alone")
            return Limit(tuple(_term(term, f"{where}.{pick}") for term in alternatives), pick)
    return Limit((_term(data, where),))


def _term(value: object, where: str) -> LimitTerm:
    data = table_of(value)
    if data is None:
        return LimitTerm(_number(value, where))
    if not data or set(data) - {"benchmark_times", "plus"}:
        raise _RefusedError(f"{where}: a limit is a number or an object with benchmark_times and plus")
    times = _number(data.get("benchmark_times", 0.0), f"{where}.benchmark_times", -1e6, 1e6)
    return LimitTerm(_number(data.get("plus", 0.0), f"{where}.plus"), times)


def _exceptions(value: object, where: str) -> Iterable[Exemption]:
    if value is None:
        return
    items = list_of(value)
    if items is None or len(items) > MOST_PARTS:
        raise _RefusedError(f"{where}: must be a list of at most {MOST_PARTS} objects")
    for i, item in enumerate(items):
        data = table_of(item)
        if data is None or set(data) - {"of", "limit"} or "of" not in data:
            raise _RefusedError(f"{where}[{i}]: must be an object with `of` and `limit`")
        limit = data.get("limit")
        of = filter_of(data["of"], f"{where}[{i}].of")
        yield Exemption(of, None if limit is None else limit_of(limit, f"{where}[{i}].limit"))


def _by(value: object, where: str) -> str | tuple[tuple[str, Filter], ...] | None:
    if value is None:
        return None
    data = table_of(value)
    if data is None:
        if isinstance(value, str) and value in GROUPS:
            return value
        raise _RefusedError(f"{where}: by must be one of {', '.join(GROUPS)}, or an object of named filters")
    if not data or len(data) > MOST_PARTS:
        raise _RefusedError(f"{where}: by must name 1 to {MOST_PARTS} groups")
    return tuple((str(name), filter_of(each, f"{where}.by")) for name, each in data.items())


def filter_of(value: object, where: str, depth: int = 0) -> Filter:
    if value is None:
        return EVERYTHING
    data = table_of(value)
    if data is None or depth > DEPTH:
        raise _RefusedError(f"{where}: must be an object of conditions, at most {DEPTH} deep")
    if len(data) > MOST_PARTS:
        raise _RefusedError(f"{where}: has more than {MOST_PARTS} conditions")
    parts = [_condition(key, each, where, depth) for key, each in data.items()]
    return parts[0] if len(parts) == 1 else Every(tuple(parts))


def _condition(key: object, value: object, where: str, depth: int) -> Filter:
    if key in ("all", "any"):
        items = list_of(value)
        if items is None or len(items) > MOST_PARTS:
            raise _RefusedError(f"{where}.{key}: must be a list of at most {MOST_PARTS} conditions")
        parts = tuple(filter_of(item, f"{where}.{key}", depth + 1) for item in items)
        return Every(parts) if key == "all" else Some(parts)
    if key == "not":
        return Not(filter_of(value, f"{where}.not", depth + 1))
    if isinstance(key, str) and (key in LABELS or key == "list"):
        labels = [value] if isinstance(value, str) else list_of(value)
        if labels is None or len(labels) > MOST_LABELS or not all(isinstance(word, str) for word in labels):
            raise _RefusedError(f"{where}.{key}: must be a word or a list of words")
        return Among(key, frozenset(labels))
    if isinstance(key, str) and key in ATTRIBUTES:
        return _range(key, value, f"{where}.{key}")
    raise _RefusedError(f"{where}: {str(key)[:40]} is no condition; use {', '.join((*LABELS, 'list', *ATTRIBUTES))}")


def _range(attribute: str, value: object, where: str) -> Filter:
    data = table_of(value)
    if not data or set(data) - set(BOUNDS):
        raise _RefusedError(f"{where}: must be an object with {', '.join(BOUNDS)}")
    parts = [Range(attribute, bound, _number(data[bound], where)) for bound in BOUNDS if bound in data]
    return parts[0] if len(parts) == 1 else Every(tuple(parts))
