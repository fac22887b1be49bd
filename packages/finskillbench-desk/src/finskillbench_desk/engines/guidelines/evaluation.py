"""Evaluation of coded rules on many books at once; exact, and defined for every rule that `parse_rule` accepts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench_desk.engines.guidelines.book import Book, Books, InstrumentUniverse
from finskillbench_desk.engines.guidelines.language import Among, Every, Filter, Limit, Not, Range, Rule, Some

TOLERANCE = 1e-7
"""A limit is exceeded if the measure is beyond it by more, in its unit; rounding errors are smaller."""
LARGEST = 1e12
"""Value of a ratio with denominator zero."""
State: TypeAlias = Literal["ok", "passive", "report", "breach"]
"""`passive`: beyond the limit of a rule tested at purchase, without a purchase."""


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """Result of a rule on a book: measure and limit of the group nearest to or furthest beyond its limit.

    `where` names that group; `state` "report" means that a reporting threshold is exceeded.
    """

    rule: Rule
    measured: float
    limit: float
    where: str
    state: State


@dataclass(frozen=True, slots=True)
class RuleMeasurement:
    """An atom on P books: measure, limit, whether the group counts, and whether anything in it is bought, (P, G)."""

    names: tuple[str, ...]
    values: Floats
    limits: Floats
    counts: Booleans
    bought: Booleans


def matches(of: Filter, universe: InstrumentUniverse) -> Booleans:
    """Return (n,) True for the instruments that satisfy a filter; cached."""
    found: Booleans | None = universe.memo.get(of)
    if found is None:
        found = universe.memo[of] = _matches(of, universe)
    return found


def _matches(of: Filter, universe: InstrumentUniverse) -> Booleans:
    n = len(universe.instruments)
    match of:
        case Among("list", words):
            return np.array([not words.isdisjoint(each.lists) for each in universe.instruments], dtype=np.bool_)
        case Among(label, words):
            return np.array([each.label(label) in words for each in universe.instruments], dtype=np.bool_)
        case Range(attribute, bound, value):
            amounts = universe.attribute(attribute)
            sides = {"above": amounts > value, "at_least": amounts >= value, "below": amounts < value}
            return sides.get(bound, amounts <= value)
        case Not(part):
            return ~matches(part, universe)
        case Every(parts):
            return np.all([np.ones(n, np.bool_), *(matches(part, universe) for part in parts)], axis=0)
        case Some(parts):
            return np.any([np.zeros(n, np.bool_), *(matches(part, universe) for part in parts)], axis=0)


def _exposures(rule: Rule, books: Books) -> Floats:
    """Return (P, n) exposures: values, futures by notional, funds looked through, as the rule demands."""
    future = books.universe.is_future
    amounts = books.values
    if rule.futures != "ignore":
        notionals = np.abs(books.notionals) if rule.futures == "gross" else books.notionals
        amounts = np.where(future, notionals, amounts)
    return _through(amounts, books.universe) if rule.look_through else amounts


def _through(amounts: Floats, universe: InstrumentUniverse) -> Floats:
    funds = universe.funds
    return amounts + amounts[:, funds] @ (universe.through[funds] - np.eye(amounts.shape[1])[funds])


def _bought(rule: Rule, books: Books) -> Booleans:
    """Return (P, n) True where a purchase is being tested, looked through if the rule does."""
    bought = books.bought & ((books.values != 0) | (books.notionals != 0))
    if not rule.look_through:
        return bought
    return _through(bought.astype(np.float64), books.universe) > 0


def groups(rule: Rule, universe: InstrumentUniverse) -> tuple[tuple[str, ...], Booleans]:
    """Return the names of a rule's groups, and (n, G) memberships."""
    if rule.by is None:
        return ("",), np.ones((len(universe.instruments), 1), dtype=np.bool_)
    if not isinstance(rule.by, str):
        columns = [matches(of, universe) for _, of in rule.by]
        return tuple(name for name, _ in rule.by), np.array(columns, dtype=np.bool_).reshape(len(rule.by), -1).T
    labels = np.array([each.label(rule.by) for each in universe.instruments], dtype=np.str_)
    names = tuple(sorted(set(labels.tolist()) - {""}))
    return names, np.asarray(labels[:, None] == np.array(names, dtype=np.str_)[None, :], dtype=np.bool_)


def _over(amounts: Floats, basis: Floats) -> Floats:
    """Return 100 x amounts / basis, or ±LARGEST where the basis is zero."""
    empty = np.abs(basis) < 1e-12
    if not empty.any():
        return np.clip(100 * amounts / basis, -LARGEST, LARGEST)
    ratio = 100 * amounts / np.where(empty, 1.0, basis)
    return np.clip(np.where(empty, np.sign(amounts) * LARGEST, ratio), -LARGEST, LARGEST)


def _basis(rule: Rule, books: Books) -> Floats:
    if rule.basis == "nav":
        total = books.nav
    elif isinstance(rule.basis, str):
        securities = np.abs(books.values[:, ~books.universe.is_cash]).sum(axis=1)
        total = securities + np.abs(books.notionals[:, books.universe.is_future]).sum(axis=1)
    else:
        total = books.values[:, matches(rule.basis, books.universe)].sum(axis=1)
    return total[:, None]


def limits_of(limit: Limit, benchmark: Floats) -> Floats:
    """Return (G,) limits for groups with these benchmark weights, percent."""
    candidates = np.array([term.benchmark_times * benchmark + term.plus for term in limit.terms], dtype=np.float64)
    return candidates.max(axis=0) if limit.pick == "greater_of" else candidates.min(axis=0)


@dataclass(frozen=True, slots=True)
class Scope:
    """Extent of an atom: `chosen` (n,), groups by name, `members` (n, G), `limits` (G,).

    `always` marks groups that count even if empty. Disjoint groups are summed as runs of `order` that begin at
    `starts`.
    """

    chosen: Booleans
    names: tuple[str, ...]
    members: Booleans
    limits: Floats
    always: Booleans
    order: Integers | None
    starts: Integers

    def total(self, amounts: Floats) -> Floats:
        """Sum (P, n) amounts over groups to (P, G)."""
        if self.order is None:
            return amounts @ self.members.astype(np.float64)
        if not self.names:
            return np.zeros((len(amounts), 0))
        return np.add.reduceat(amounts[:, self.order], self.starts, axis=1)

    def some(self, marks: Booleans) -> Booleans:
        """Return (P, G) True for groups with a marked instrument."""
        return self.total(marks.astype(np.float64)) > 0


def scope(atom: Rule, universe: InstrumentUniverse) -> Scope:
    """Return the scope of an atom; cached."""
    key = ("scope", atom.of, atom.by, atom.limit)
    found: Scope | None = universe.memo.get(key)
    if found is None:
        any_limit = ("scope", atom.of, atom.by)
        grouped: tuple[Scope, Floats] | None = universe.memo.get(any_limit)
        if grouped is None:
            grouped = universe.memo[any_limit] = _grouped(atom, universe)
        plain, benchmark = grouped
        everywhere = not isinstance(atom.by, str)
        always = np.logical_or(everywhere, atom.limit.relative & (benchmark > 0))
        found = universe.memo[key] = replace(plain, limits=limits_of(atom.limit, benchmark), always=always)
    return found


def _grouped(atom: Rule, universe: InstrumentUniverse) -> tuple[Scope, Floats]:
    """Return the scope without limits, and (G,) benchmark weights of its groups."""
    chosen = matches(atom.of, universe)
    names, members = groups(atom, universe)
    members = members & chosen[:, None]
    order: Integers | None = None
    starts: Integers = np.zeros(0, dtype=np.intp)
    if isinstance(atom.by, str):
        there = np.flatnonzero(members.sum(axis=0))
        names, members = tuple(names[i] for i in there.tolist()), members[:, there]
        outside = np.ones((len(members), 1), dtype=np.bool_)  # instruments without a group come last
        group = np.argmax(np.hstack([members, outside]), axis=1)
        order = np.argsort(group, kind="stable")[: int(members.sum())]
        starts = np.cumsum(members.sum(axis=0)) - members.sum(axis=0)
    none = np.zeros(len(names))
    return Scope(chosen, names, members, none, none > 0, order, starts), universe.benchmark @ members


def measure_rule(atom: Rule, books: Books) -> RuleMeasurement:
    """Measure one rule without exceptions on P books."""
    who = scope(atom, books.universe)
    amounts = _exposures(atom, books)
    values, limits = _values(atom, books, amounts, who)
    held = np.abs(amounts) > 1e-9
    bought = who.some(_bought(atom, books) & held)
    if values.shape[1] == len(who.names) and atom.measure in _BY_GROUP:
        return RuleMeasurement(who.names, values, limits, np.logical_or(who.some(held), who.always), bought)
    touched: Booleans = books.bought if atom.measure in _OF_THE_BOOK else bought
    everywhere = np.ones(values.shape, dtype=np.bool_)
    return RuleMeasurement(("",), values, limits, everywhere, np.any(touched, axis=1).reshape(-1, 1))


def _values(atom: Rule, books: Books, amounts: Floats, who: Scope) -> tuple[Floats, Floats]:
    """Return (P, G) measures and limits, in one column for a measure of the whole book."""
    if atom.measure in _BY_GROUP:
        values = _by_group(atom, books, amounts, who)
        return values, np.broadcast_to(who.limits, values.shape)
    values = _of_all(atom, books, amounts, who)[:, None]
    limit = limits_of(atom.limit, np.array([books.universe.benchmark[who.chosen].sum()]))
    return values, np.broadcast_to(limit, values.shape)


def distance(atom: Rule, books: Books) -> Floats:
    """Return (P,) distances of the worst group beyond its limit, relative to the limit's size."""
    values, limits = _values(atom, books, _exposures(atom, books), scope(atom, books.universe))
    beyond = values - limits if atom.comparison == "at_most" else limits - values
    return (beyond / np.maximum(np.abs(limits), 1e-6)).max(axis=1, initial=-1.0)


def distances_along(atom: Rule, fixed: Books, moving: Books) -> Callable[[Floats], Floats]:
    """Return a function from scales (P,) >= 0 to distances (P,) of the books `fixed` + scale x `moving`, which are
    disjoint.
    """
    if atom.measure in ("weight", "ownership"):
        who = scope(atom, fixed.universe)
        rest, part = (who.total(_exposures(atom, books)) for books in (fixed, moving))
        if atom.measure == "weight":
            basis, more = _basis(atom, fixed), _basis(atom, moving)
        else:
            basis, more = _sizes(fixed.universe, who)[None, :], np.zeros(1)
        limits, sizes = who.limits, np.maximum(np.abs(who.limits), 1e-6)
        sign = 1.0 if atom.comparison == "at_most" else -1.0

        def beyond(scale: Floats) -> Floats:
            column = scale[:, None]
            found = _over(rest + column * part, basis + column * more)
            return (sign * (found - limits) / sizes).max(axis=1, initial=-1.0)

        return beyond
    held = bool(moving.notionals.any())

    def measure(scale: Floats) -> Floats:
        column = scale[:, None]
        notionals = fixed.notionals + column * moving.notionals if held else fixed.notionals
        values, trading = fixed.values + column * moving.values, fixed.trading + column * moving.trading
        return distance(atom, replace(fixed, values=values, notionals=notionals, trading=trading))

    return measure


_BY_GROUP = frozenset(("weight", "ownership", "days_to_sell"))
_OF_THE_BOOK = frozenset(("turnover", "active_share"))
"""Measures of the whole book, which any purchase affects."""


def _by_group(atom: Rule, books: Books, amounts: Floats, who: Scope) -> Floats:
    if atom.measure == "weight":
        return _over(who.total(amounts), _basis(atom, books))
    if atom.measure == "ownership":
        return _over(who.total(amounts), _sizes(books.universe, who)[None, :])
    attribute = books.universe.attribute("adv")
    known = np.where(np.isfinite(attribute) & (attribute > 0), attribute, np.nan)
    days = np.abs(amounts) / np.where(np.isfinite(known), known, 1.0) / (atom.participation / 100)
    days = np.where(np.isfinite(known), days, np.where(np.abs(amounts) > 0, LARGEST, 0.0))
    if who.order is not None and who.names:
        return np.maximum.reduceat(days[:, who.order], who.starts, axis=1)
    slowest = [days[:, column].max(axis=1, initial=0.0) for column in who.members.T]
    return np.array(slowest, dtype=np.float64).reshape(len(slowest), len(days)).T


def _sizes(universe: InstrumentUniverse, who: Scope) -> Floats:
    """Return (G,) the largest market capitalisation in each group, 0 if unknown."""
    size = universe.attribute("market_cap")
    known = np.where(np.isfinite(size) & (size > 0), size, 0.0)
    return np.where(who.members, known[:, None], 0.0).max(axis=0, initial=0.0)


def _of_all(atom: Rule, books: Books, amounts: Floats, who: Scope) -> Floats:
    chosen = who.members.any(axis=1)
    if atom.measure == "turnover":
        return _turnover(atom, books)
    if atom.measure == "short":
        return _over(np.maximum(-amounts[:, chosen], 0.0).sum(axis=1), _basis(atom, books)[:, 0])
    if atom.measure == "average":
        attribute = books.universe.attribute(atom.attribute)
        known = chosen & np.isfinite(attribute)
        total = amounts[:, known].sum(axis=1)
        return _over(amounts[:, known] @ attribute[known], total) / 100
    if atom.measure == "sellable":
        volume = books.universe.attribute("adv")
        most = np.where(np.isfinite(volume), volume, 0.0) * atom.days * atom.participation / 100
        sold = np.where(books.universe.is_cash, amounts, np.clip(amounts, 0.0, most))
        return _over(sold[:, chosen].sum(axis=1), _basis(atom, books)[:, 0])
    weights = _over(who.total(amounts), _basis(atom, books))
    if atom.measure == "active_share":
        return np.abs(weights - books.universe.benchmark @ who.members).sum(axis=1) / 2
    if atom.measure == "count":
        return (weights > atom.above + TOLERANCE).sum(axis=1).astype(np.float64)
    if atom.measure == "sum_above":
        return np.where(weights > atom.above + TOLERANCE, weights, 0.0).sum(axis=1)
    return np.sort(weights, axis=1)[:, ::-1][:, : atom.n].sum(axis=1)


def _turnover(atom: Rule, books: Books) -> Floats:
    used, pending = books.trading[:, :2], books.trading[:, 2:]
    trades = {"used": used, "pending": pending}.get(atom.trades, used + pending)
    most, least = trades.max(axis=1), trades.min(axis=1)
    amount = {"half": (most + least) / 2, "lesser": least, "greater": most}.get(atom.convention, most + least)
    return _over(amount, _basis(atom, books)[:, 0])


def _excess(atom: Rule, found: RuleMeasurement) -> Floats:
    """Return (P, G) excesses beyond the limit, -LARGEST where a group does not count."""
    beyond = found.values - found.limits if atom.comparison == "at_most" else found.limits - found.values
    return np.where(found.counts, beyond, -LARGEST)


def exceeded(rule: Rule, books: Books) -> Booleans:
    """Return (P,) True where the rule is exceeded; at purchase only by groups being bought."""
    out = np.zeros(len(books.values), dtype=np.bool_)
    for atom in rule.atoms():
        found = measure_rule(atom, books)
        beyond = _excess(atom, found) > TOLERANCE
        out |= (beyond & found.bought if atom.when == "purchase" else beyond).any(axis=1)
    return out


def outcome(rule: Rule, book: Book) -> RuleOutcome:
    """Evaluate one rule on one book."""
    worst = RuleOutcome(rule, 0.0, rule.limit.terms[0].plus, "", "ok")
    least = (False, -np.inf)
    passive = False
    for atom in rule.atoms():
        found = measure_rule(atom, book.books)
        beyond = _excess(atom, found)[0]
        if not beyond.size or not found.counts[0].any():
            continue
        active = found.bought[0] if atom.when == "purchase" else np.ones(beyond.shape, dtype=np.bool_)
        live = active & (beyond > TOLERANCE)
        passive = passive or bool(((beyond > TOLERANCE) & ~active).any())
        at = int(np.argmax(np.where(live, beyond, -np.inf) if live.any() else beyond))
        if (bool(live.any()), float(beyond[at])) > least:
            least = (bool(live.any()), float(beyond[at]))
            state: State = ("report" if rule.effect == "report" else "breach") if least[0] else "ok"
            worst = RuleOutcome(rule, float(found.values[0, at]), float(found.limits[0, at]), found.names[at], state)
    if worst.state == "ok" and passive:
        return RuleOutcome(rule, worst.measured, worst.limit, worst.where, "passive")
    return worst


def evaluate(rules: Sequence[Rule], book: Book) -> list[RuleOutcome]:
    """Evaluate rules on a book, in their order."""
    return [outcome(rule, book) for rule in rules]
