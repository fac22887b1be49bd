"""Coded rules run on books: exact, and total on every rule that `parse_rule` lets through.

Everything is done for many books at once: a filter is decided once per instrument, a group is a column of a matrix, and
a weight is a product of the two. One book is many books of which there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench_desk.engines.guidelines.book import Book, Books, Universe
from finskillbench_desk.engines.guidelines.language import Among, Every, Filter, Limit, Not, Range, Rule, Some

TOLERANCE = 1e-7
"""A limit is exceeded where the measure lies beyond it by more, in its own unit: the noise of doubles is less."""
LARGEST = 1e12
"""What a ratio over nothing counts as."""
State: TypeAlias = Literal["ok", "passive", "report", "breach"]
"""`passive`: beyond the limit of a rule that is tested at purchase, and nothing of it is being bought."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a rule says of a book.

    Attributes
    ----------
    measured, limit : of the group that is nearest to or furthest beyond its limit, in the unit of the measure; a rule
        with nothing to measure has its own limit and 0.
    where : that group, empty where the rule has none.
    state : "ok", "passive", "report" (a reporting threshold is exceeded) or "breach".
    """

    rule: Rule
    measured: float
    limit: float
    where: str
    state: State


@dataclass(frozen=True, slots=True)
class Measured:
    """An atom on P books: the measure, its limit, whether it counts, and whether anything in it is bought, (P, G)."""

    names: tuple[str, ...]
    values: Floats
    limits: Floats
    counts: Booleans
    bought: Booleans


def matches(of: Filter, universe: Universe) -> Booleans:
    """(n,) which instruments a filter lets through."""
    found: Booleans | None = universe.memo.get(of)
    if found is None:
        found = universe.memo[of] = _matches(of, universe)
    return found


def _matches(of: Filter, universe: Universe) -> Booleans:
    match of:
        case Among("list", words):
            return np.array([not words.isdisjoint(each.lists) for each in universe.instruments], dtype=np.bool_)
        case Among(label, words):
            return np.array([each.label(label) in words for each in universe.instruments], dtype=np.bool_)
        case Range(attribute, bound, value):
            given = universe.attribute(attribute)
            sides = {"above": given > value, "at_least": given >= value, "below": given < value}
            return sides.get(bound, given <= value)
        case Not(part):
            return ~matches(part, universe)
        case Every(parts):
            return np.all(
                [np.ones(len(universe.instruments), np.bool_), *(matches(p, universe) for p in parts)], axis=0
            )
        case Some(parts):
            return np.any(
                [np.zeros(len(universe.instruments), np.bool_), *(matches(p, universe) for p in parts)], axis=0
            )


def _exposures(rule: Rule, books: Books) -> Floats:
    """(P, n) what each instrument counts as: its value, a future's notional, a fund as what it holds."""
    future = books.universe.is_future
    amounts = books.values
    if rule.futures != "ignore":
        notionals = np.abs(books.notionals) if rule.futures == "gross" else books.notionals
        amounts = np.where(future, notionals, amounts)
    return _through(amounts, books.universe) if rule.look_through else amounts


def _through(amounts: Floats, universe: Universe) -> Floats:
    """(P, n) amounts with funds replaced by what they hold."""
    funds = universe.funds
    return amounts + amounts[:, funds] @ (universe.through[funds] - np.eye(amounts.shape[1])[funds])


def _bought(rule: Rule, books: Books) -> Booleans:
    """(P, n) in which instruments, looked through if the rule does, a purchase is being tested."""
    bought = books.bought & ((books.values != 0) | (books.notionals != 0))
    if not rule.look_through:
        return bought
    return _through(bought.astype(np.float64), books.universe) > 0


def groups(rule: Rule, universe: Universe) -> tuple[tuple[str, ...], Booleans]:
    """Names of the groups of a rule, and (n, G) who is in which."""
    if rule.by is None:
        return ("",), np.ones((len(universe.instruments), 1), dtype=np.bool_)
    if not isinstance(rule.by, str):
        columns = [matches(of, universe) for _, of in rule.by]
        return tuple(name for name, _ in rule.by), np.array(columns, dtype=np.bool_).reshape(len(rule.by), -1).T
    words = np.array([each.label(rule.by) for each in universe.instruments], dtype=np.str_)
    names = tuple(sorted(set(words.tolist()) - {""}))
    return names, np.asarray(words[:, None] == np.array(names, dtype=np.str_)[None, :], dtype=np.bool_)


def _over(amounts: Floats, basis: Floats) -> Floats:
    """100 x amounts / basis, and a very large number of the sign of the amount where there is no basis."""
    empty = np.abs(basis) < 1e-12
    if not empty.any():
        return np.clip(100 * amounts / basis, -LARGEST, LARGEST)
    ratio = 100 * amounts / np.where(empty, 1.0, basis)
    return np.clip(np.where(empty, np.sign(amounts) * LARGEST, ratio), -LARGEST, LARGEST)


def _basis(rule: Rule, books: Books) -> Floats:
    """(P, 1) the denominator."""
    if rule.basis == "nav":
        total = books.nav
    elif isinstance(rule.basis, str):
        securities = np.abs(books.values[:, ~books.universe.is_cash]).sum(axis=1)
        total = securities + np.abs(books.notionals[:, books.universe.is_future]).sum(axis=1)
    else:
        total = books.values[:, matches(rule.basis, books.universe)].sum(axis=1)
    return total[:, None]


def _limits(limit: Limit, benchmark: Floats) -> Floats:
    """(G,) limits of groups with these weights in the benchmark."""
    terms = np.array([term.benchmark_times * benchmark + term.plus for term in limit.terms], dtype=np.float64)
    return terms.max(axis=0) if limit.pick == "greater_of" else terms.min(axis=0)


@dataclass(frozen=True, slots=True)
class Scope:
    """Whom an atom measures in a universe: (n,) what counts, groups by name, (n, G) their members, (G,) limits.

    `always` says which groups count even where nothing of them is held. Groups by a label share no member, so that
    they are added up as runs of `order` that begin at `starts`; `order` is None for groups that a rule names itself.
    """

    chosen: Booleans
    names: tuple[str, ...]
    members: Booleans
    limits: Floats
    always: Booleans
    order: Integers | None
    starts: Integers

    def total(self, amounts: Floats) -> Floats:
        """(P, G) sums of (P, n) amounts over groups."""
        if self.order is None:
            return amounts @ self.members.astype(np.float64)
        if not self.names:
            return np.zeros((len(amounts), 0))
        return np.add.reduceat(amounts[:, self.order], self.starts, axis=1)

    def some(self, marks: Booleans) -> Booleans:
        """(P, G) whether anything in a group is marked."""
        return self.total(marks.astype(np.float64)) > 0


def scope(atom: Rule, universe: Universe) -> Scope:
    """Whom an atom measures."""
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
        found = universe.memo[key] = replace(plain, limits=_limits(atom.limit, benchmark), always=always)
    return found


def _grouped(atom: Rule, universe: Universe) -> tuple[Scope, Floats]:
    """Whom an atom measures, whatever its limit, and (G,) what its groups weigh in the benchmark."""
    chosen = matches(atom.of, universe)
    names, members = groups(atom, universe)
    members = members & chosen[:, None]
    order: Integers | None = None
    starts: Integers = np.zeros(0, dtype=np.intp)
    if isinstance(atom.by, str):
        there = np.flatnonzero(members.sum(axis=0))
        names, members = tuple(names[i] for i in there.tolist()), members[:, there]
        outside = np.ones((len(members), 1), dtype=np.bool_)  # who is in no group comes last
        group = np.argmax(np.hstack([members, outside]), axis=1)
        order = np.argsort(group, kind="stable")[: int(members.sum())]
        starts = np.cumsum(members.sum(axis=0)) - members.sum(axis=0)
    none = np.zeros(len(names))
    return Scope(chosen, names, members, none, none > 0, order, starts), universe.benchmark @ members


def measured(atom: Rule, books: Books) -> Measured:
    """One rule without exceptions, measured on P books."""
    who = scope(atom, books.universe)
    amounts = _exposures(atom, books)
    values, limits = _values(atom, books, amounts, who)
    held = np.abs(amounts) > 1e-9
    bought = who.some(_bought(atom, books) & held)
    if values.shape[1] == len(who.names) and atom.measure in _BY_GROUP:
        return Measured(who.names, values, limits, np.logical_or(who.some(held), who.always), bought)
    touched: Booleans = books.bought if atom.measure in _OF_THE_BOOK else bought
    everywhere = np.ones(values.shape, dtype=np.bool_)
    return Measured(("",), values, limits, everywhere, np.any(touched, axis=1).reshape(-1, 1))


def _values(atom: Rule, books: Books, amounts: Floats, who: Scope) -> tuple[Floats, Floats]:
    """(P, G) the measure and its limits; of one column for a measure that a book has as a whole."""
    if atom.measure in _BY_GROUP:
        values = _by_group(atom, books, amounts, who)
        return values, np.broadcast_to(who.limits, values.shape)
    values = _of_all(atom, books, amounts, who)[:, None]
    limit = _limits(atom.limit, np.array([books.universe.benchmark[who.chosen].sum()]))
    return values, np.broadcast_to(limit, values.shape)


def distance(atom: Rule, books: Books) -> Floats:
    """(P,) how far the worst group of an atom lies beyond its limit, relative to the size of that limit."""
    values, limits = _values(atom, books, _exposures(atom, books), scope(atom, books.universe))
    beyond = values - limits if atom.comparison == "at_most" else limits - values
    return (beyond / np.maximum(np.abs(limits), 1e-6)).max(axis=1, initial=-1.0)


def distances_along(atom: Rule, fixed: Books, moving: Books) -> Callable[[Floats], Floats]:
    """Scales (P,) of what is `moving`, none negative, to the distances (P,) of the books `fixed` + scale x `moving`.

    No instrument is in both. What groups weigh is linear in the scale, so that only groups are added up again.
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
        trading = fixed.trading + column * moving.trading
        return distance(
            atom, replace(fixed, values=fixed.values + column * moving.values, notionals=notionals, trading=trading)
        )

    return measure


_BY_GROUP = frozenset(("weight", "ownership", "days_to_sell"))
_OF_THE_BOOK = frozenset(("turnover", "active_share"))
"""Measures of the whole book, which any purchase touches."""


def _by_group(atom: Rule, books: Books, amounts: Floats, who: Scope) -> Floats:
    """(P, G) a measure that every group has by itself."""
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


def _sizes(universe: Universe, who: Scope) -> Floats:
    """(G,) the largest market capitalisation in each group, 0 where none is known."""
    size = universe.attribute("market_cap")
    known = np.where(np.isfinite(size) & (size > 0), size, 0.0)
    return np.where(who.members, known[:, None], 0.0).max(axis=0, initial=0.0)


def _of_all(atom: Rule, books: Books, amounts: Floats, who: Scope) -> Floats:
    """(P,) a measure that a book has as a whole."""
    chosen = who.members.any(axis=1)
    if atom.measure == "turnover":
        return _turnover(atom, books)
    if atom.measure == "short":
        return _over(np.maximum(-amounts[:, chosen], 0.0).sum(axis=1), _basis(atom, books)[:, 0])
    if atom.measure == "average":
        given = books.universe.attribute(atom.attribute)
        known = chosen & np.isfinite(given)
        total = amounts[:, known].sum(axis=1)
        return _over(amounts[:, known] @ given[known], total) / 100
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
    """(P,) turnover of the quarter in percent of the basis."""
    used, pending = books.trading[:, :2], books.trading[:, 2:]
    trades = {"used": used, "pending": pending}.get(atom.trades, used + pending)
    most, least = trades.max(axis=1), trades.min(axis=1)
    amount = {"half": (most + least) / 2, "lesser": least, "greater": most}.get(atom.convention, most + least)
    return _over(amount, _basis(atom, books)[:, 0])


def _excess(atom: Rule, found: Measured) -> Floats:
    """(P, G) how far each group lies beyond its limit, -LARGEST where it does not count."""
    beyond = found.values - found.limits if atom.comparison == "at_most" else found.limits - found.values
    return np.where(found.counts, beyond, -LARGEST)


def exceeded(rule: Rule, books: Books) -> Booleans:
    """(P,) whether the rule is exceeded, at purchase only by what is being bought."""
    out = np.zeros(len(books.values), dtype=np.bool_)
    for atom in rule.atoms():
        found = measured(atom, books)
        beyond = _excess(atom, found) > TOLERANCE
        out |= (beyond & found.bought if atom.when == "purchase" else beyond).any(axis=1)
    return out


def outcome(rule: Rule, book: Book) -> Outcome:
    """One rule on one book."""
    worst = Outcome(rule, 0.0, rule.limit.terms[0].plus, "", "ok")
    least = (False, -np.inf)
    passive = False
    for atom in rule.atoms():
        found = measured(atom, book.books)
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
            worst = Outcome(rule, float(found.values[0, at]), float(found.limits[0, at]), found.names[at], state)
    if worst.state == "ok" and passive:
        return Outcome(rule, worst.measured, worst.limit, worst.where, "passive")
    return worst


def evaluate(rules: Sequence[Rule], book: Book) -> list[Outcome]:
    """What each rule says of a book, in their order."""
    return [outcome(rule, book) for rule in rules]
