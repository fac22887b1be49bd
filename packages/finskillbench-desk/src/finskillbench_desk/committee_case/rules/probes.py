"""Draw probe portfolios near every boundary of a clause.

Boundaries are a clause's own limit and those of its exceptions. For each, some holdings of random books are scaled to a
chosen distance from the limit. Purchases are marked so that a test at purchase differs from one at all times. Half of
the probes are within 2 % of the limit, and half exceed it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from finskillbench.arrays import Booleans, Floats, Integers
from finskillbench_desk.engines.guidelines import evaluation
from finskillbench_desk.engines.guidelines.book import Books, InstrumentUniverse, stack_books
from finskillbench_desk.engines.guidelines.evaluation import exceeded, matches, measure_rule, scope
from finskillbench_desk.engines.guidelines.language import Every, Not, Rule

PROBES = 256
NEAR, LEAST, FAR = 0.02, 0.001, 0.4
"""Relative distances from the limit: half of the probes are between the first two, the others up to the last."""
_NARROW = {"average": 0.08, "active_share": 0.2, "top": 0.15, "sum_above": 0.3}
"""Largest relative distance of measures that cannot be moved as far."""
_SCALES = np.concatenate(([0.0], np.geomspace(1e-3, 3e3, 9)))
_STEPS, _LIMIT_ROUNDS = 18, 6
_CLOSE = 1e-6
"""Tolerance of the distance from a chosen margin."""
_ROUNDS = 40
"""Most draws of candidates per boundary."""
_SPARE, _MOST_SPARE = 1.1, 64.0
"""Candidates per missing probe: most are usable, but only one in a hundred for a few limits."""


@dataclass(frozen=True, slots=True)
class Probes:
    """Probe books of one clause with their boundary, their distance class, and the truth."""

    clause: str
    effect: str
    books: Books
    boundary: Integers
    near: Booleans
    exceeds: Booleans


def clause_probes(rules: Sequence[Rule], pool: Books, rng: np.random.Generator, count: int = PROBES) -> Probes:
    """Return the probes of one clause from its true rules and books of a pool (see `random_books`)."""
    atoms = [(rule, atom) for rule in rules for atom in rule.atoms()]
    shares = [count // len(atoms) + (i < count % len(atoms)) for i in range(len(atoms))]
    found = [boundary_probes(rule, atom, pool, rng, size) for (rule, atom), size in zip(atoms, shares, strict=True)]
    books = stack_books(pool.universe, [books for books, _, _ in found])
    fires = np.any([exceeded(rule, books) for rule in rules], axis=0)
    boundary = np.concatenate([2 * i + side for i, (_, _, side) in enumerate(found)])
    near = np.concatenate([near for _, near, _ in found])
    return Probes(rules[0].clause, rules[0].effect, books, boundary, near, fires)


def boundary_probes(
    rule: Rule, atom: Rule, pool: Books, rng: np.random.Generator, size: int
) -> tuple[Books, Booleans, Integers]:
    """Return books near one limit of a rule, which of them are within 2 %, and the side of each.

    Side 0 separates books that keep the limit from those that exceed it by a purchase. Side 1 tests timing: for a rule
    tested at purchase, an excess by a purchase against one without; for any other, no excess against one without a
    purchase.
    """
    quota = _quota(size, (2, 2, 2) if atom.when == "purchase" else (2, 1, 1))
    have = dict.fromkeys(quota, 0)
    books: list[Books] = []
    near: list[Booleans] = []
    sides: list[Integers] = []
    spare = _SPARE
    for _ in range(_ROUNDS):
        lacking = [key for key in quota if quota[key] > have[key]]
        if not lacking:
            break
        cells = [key for key in lacking for _ in range(round(spare * (quota[key] - have[key])) + 4)]
        spare = min(2 * spare, _MOST_SPARE)
        wanted, close = np.array([case for case, _ in cells]), np.array([is_close for _, is_close in cells])
        drawn, usable = _at_distance(rule, atom, pool, rng, wanted, close)
        for (case, is_close), number in quota.items():
            chosen = np.flatnonzero(usable & (wanted == case) & (close == is_close))[: number - have[case, is_close]]
            have[case, is_close] += len(chosen)
            books.append(_taken(drawn, chosen))
            near.append(np.full(len(chosen), is_close))
            sides.append(_sides(atom, case, len(chosen)))
    return stack_books(pool.universe, books), np.concatenate(near), np.concatenate(sides)


def _quota(size: int, shares: tuple[int, int, int]) -> dict[tuple[int, bool], int]:
    """Split `size` by case in these proportions, half near the limit and half not."""
    cells = [(case, close) for case in range(3) for close in (True, False)]
    ends = np.cumsum([shares[case] for case, _ in cells]) / (2 * sum(shares)) * size
    counts = np.diff(np.rint(np.concatenate(([0.0], ends))))
    return {cell: int(count) for cell, count in zip(cells, counts, strict=True)}


def _sides(atom: Rule, case: int, count: int) -> Integers:
    """Return sides of `count` books that keep the limit (case 0), exceed it by a purchase (1), or without one (2)."""
    if case == 2:
        return np.ones(count, dtype=np.intp)
    split = (case == 1) == (atom.when == "purchase")
    return np.arange(count) % 2 if split else np.zeros(count, dtype=np.intp)


def _taken(books: Books, rows: Integers) -> Books:
    values, notionals, trading = (
        np.take(part, rows, axis=0) for part in (books.values, books.notionals, books.trading)
    )
    return Books(books.universe, values, notionals, np.take(books.bought, rows, axis=0), trading)


def _cents(amounts: Floats) -> Floats:
    return np.rint(amounts * 100) / 100


def random_books(universe: InstrumentUniverse, rng: np.random.Generator, count: int) -> Books:
    """Return diversified books of all instrument kinds, with net asset values around 100 million."""
    n = len(universe.instruments)
    kinds = np.array([each.kind for each in universe.instruments])
    raw = rng.lognormal(0.0, 0.9, (count, n)) * (rng.random((count, n)) < rng.uniform(0.35, 0.95, (count, 1)))
    values = np.zeros((count, n))
    parts = {"share": 6.0, "receipt": 0.6, "preferred": 0.6, "convertible": 0.5, "corporate_bond": 0.9}
    parts |= {"government_bond": 0.9, "fund": 1.0, "cash": 0.8}
    for kind, alpha in parts.items():
        inside = kinds == kind
        total = raw[:, inside].sum(axis=1, keepdims=True)
        share = rng.gamma(alpha, 1.0, (count, 1))
        values[:, inside] = np.where(total > 0, raw[:, inside] / np.where(total > 0, total, 1.0), 0.0) * share
    values *= 1e8 * rng.lognormal(0.0, 0.3, (count, 1)) / values.sum(axis=1, keepdims=True)
    values = _cents(values)
    sign = np.where(rng.random((count, n)) < 0.4, -1.0, 1.0)
    notionals = _cents(np.where(universe.is_future, raw * sign * 2.5e6, 0.0))
    trading = rng.lognormal(0.0, 0.8, (count, 4)) * 2e6
    return Books(universe, values, notionals, rng.random((count, n)) < 0.3, trading)


def _at_distance(
    rule: Rule, atom: Rule, pool: Books, rng: np.random.Generator, wanted: Integers, close: Booleans
) -> tuple[Books, Booleans]:
    """Return books for the wanted cases (0 keeps, 1 exceeds by a purchase, 2 without one), and which are usable."""
    outside, count = wanted > 0, len(wanted)
    drawn = _taken(pool, rng.integers(len(pool.values), size=count))
    base = _within_limits(rule, _like_benchmark(atom, drawn, rng))
    base = _planted(rule, atom, base, rng)
    little = rng.uniform(LEAST, NEAR * 0.98, count)
    margin = np.where(close, little, rng.uniform(NEAR * 1.1, _NARROW.get(atom.measure, FAR), count))
    if atom.measure == "count":
        books = _of_number(atom, base, rng, outside, close)
    elif atom.limit.terms[0].plus == 0 and not atom.limit.relative:
        books = _with_or_without(atom, base, rng, outside)
    else:
        books = _scaled(atom, base, rng, np.where(outside, margin, -margin))
    books = _marked(atom, books, rng, wanted)
    right: Booleans = np.equal(exceeded(replace(rule, when="always"), books), outside)
    if atom.limit.terms[0].plus and atom.measure != "count":
        right &= np.equal(np.abs(evaluation.distance(atom, books)) <= NEAR, close)
    right &= exceeded(replace(atom, when="always"), books) == outside
    right &= exceeded(replace(rule, when="purchase"), books) == (wanted == 1)
    return books, right


def _marked(atom: Rule, books: Books, rng: np.random.Generator, wanted: Integers) -> Books:
    """Mark purchases of exceeding holdings where case 1 is wanted, and remove them where case 2 is."""
    found = measure_rule(atom, books)
    beyond = found.values - found.limits if atom.comparison == "at_most" else found.limits - found.values
    members = scope(atom, books.universe).members
    if atom.measure in ("turnover", "active_share"):
        inside = np.ones(books.values.shape, dtype=np.bool_)
    elif found.values.shape[1] == members.shape[1]:
        inside = ((beyond > 0).astype(np.float64) @ members.T.astype(np.float64)) > 0
    else:
        inside = np.broadcast_to(members.any(axis=1), books.values.shape)
    if atom.look_through:
        inside = (inside.astype(np.float64) @ (books.universe.through > 0).T.astype(np.float64)) > 0
    bought: Booleans = np.logical_and(books.bought, ~(inside & np.equal(wanted, 2).reshape(-1, 1)))
    held: Booleans = inside & ((books.values != 0) | (books.notionals != 0)) & np.equal(wanted, 1).reshape(-1, 1)
    bought = np.logical_or(bought, held & (rng.random(held.shape) < 0.5))
    rows = np.flatnonzero(held.any(axis=1) & ~(bought & held).any(axis=1))
    bought[rows, np.argmax(held, axis=1)[rows]] = True
    return replace(books, bought=bought)


def _like_benchmark(atom: Rule, books: Books, rng: np.random.Generator) -> Books:
    """Return books with weights near the benchmark's, for measures relative to it."""
    if not atom.limit.relative and atom.measure != "active_share":
        return books
    weights = books.universe.benchmark
    noise = rng.lognormal(0.0, 0.15, books.values.shape)
    values = np.where(weights > 0, weights * noise / 100 * 0.97 * books.nav[:, None], books.values * 0.02)
    return replace(books, values=values)


def _planted(rule: Rule, atom: Rule, books: Books, rng: np.random.Generator) -> Books:
    """Move exempted holdings of most books beyond the general limit but within their own: no breach."""
    out = books
    for i, exception in enumerate(rule.exceptions):
        first = rule.limit.terms[0]
        limit = exception.limit or replace(rule.limit, terms=(replace(first, plus=2 * first.plus),))
        of = Every((rule.of, exception.of, *(Not(each.of) for each in rule.exceptions[:i])))
        seen = replace(rule, of=of, limit=limit, exceptions=())
        if seen.of == atom.of:
            continue
        raised = _scaled(seen, out, rng, -rng.uniform(0.02, 0.12, len(out.values)))
        chosen = rng.random((len(out.values), 1)) < 0.85
        out = replace(out, values=np.where(chosen, raised.values, out.values))
    return out


def _within_limits(rule: Rule, books: Books) -> Books:
    """Scale every group of a maximum to its limit, or that of its exception, so that one group at a time decides."""
    if rule.by is None or rule.comparison != "at_most" or rule.measure not in ("weight", "ownership", "days_to_sell"):
        return books
    universe, values = books.universe, books.values.copy()
    spare = universe.is_cash & ~matches(rule.of, universe)
    for _ in range(_LIMIT_ROUNDS):
        for atom in rule.atoms():
            found = measure_rule(atom, replace(books, values=values))
            ratio = 0.82 * np.maximum(found.limits, 0.0) / np.maximum(found.values, 1e-9)
            ratio = np.where(found.values > 0.9 * found.limits, ratio, 1.0)
            members = scope(atom, universe).members
            factor = np.where(members.any(axis=1), ratio[:, np.argmax(members, axis=1)], 1.0)
            if atom.look_through:
                for i in np.flatnonzero(np.diag(universe.through) < 1):
                    factor[:, i] = factor[:, universe.through[i] > 0].min(axis=1)
            values *= factor
        if spare.any():
            values[:, spare] += ((books.values.sum(axis=1) - values.sum(axis=1)) / spare.sum())[:, None]
    return replace(books, values=values)


def _lever(atom: Rule, books: Books, rng: np.random.Generator) -> tuple[Booleans, Booleans]:
    """Return masks (P, n) of holdings to scale, and of holdings to remove, within one group of the atom."""
    universe = books.universe
    count, n = books.values.shape
    nothing = np.zeros((count, n), dtype=np.bool_)
    chosen, members = matches(atom.of, universe), scope(atom, universe).members
    able = np.flatnonzero(members.any(axis=0))
    if not able.size:
        return nothing, nothing
    pick = able[rng.integers(len(able), size=count)]
    inside = members[:, pick].T.copy()
    if atom.measure in _OF_MANY:
        some = rng.random((count, n)) < rng.uniform(0.05, 0.6, (count, 1))
        return np.broadcast_to(chosen, (count, n)) & some, nothing
    lever = inside & (rng.random((count, n)) < np.where(rng.random((count, 1)) < 0.5, 1.0, 0.5))
    empty = ~lever.any(axis=1)
    lever[empty] = inside[empty]
    absent = inside & ~lever
    if atom.futures != "ignore":
        alone = (rng.random((count, 1)) < 0.5) & (inside & universe.is_future).any(axis=1, keepdims=True)
        lever, absent = np.where(alone, inside & universe.is_future, lever), absent & ~alone
    if atom.look_through:
        funds = (lever.astype(np.float64) @ (universe.through > 0).T.astype(np.float64)) > 0
        lever = np.where(rng.random((count, 1)) < 0.5, funds & ~chosen, lever | funds)
    return lever, absent


_OF_MANY = frozenset(("top", "sum_above", "active_share", "sellable", "average"))
"""Measures of many positions at once; any few of them can be scaled."""


def _scaled(atom: Rule, base: Books, rng: np.random.Generator, margin: Floats) -> Books:
    """Scale holdings until the atom is `margin` (relative) beyond its limit; unchanged if no scale does that."""
    lever, absent = _lever(atom, base, rng)
    base = replace(base, values=np.where(absent, 0.0, base.values), notionals=np.where(absent, 0.0, base.notionals))
    seed = base.values.sum(axis=1, keepdims=True) * 0.004
    sign = -1.0 if atom.measure == "short" else 1.0
    future = base.universe.is_future
    values = np.where(lever & ~future, np.where(base.values > 0, base.values, seed) * sign, base.values)
    notionals = np.where(lever & future, np.abs(np.where(base.notionals != 0, base.notionals, seed)), base.notionals)
    start = replace(base, values=values, notionals=notionals)

    moves = lever if atom.measure != "turnover" else np.zeros_like(lever)
    fixed, moving = (
        replace(start, values=np.where(part, start.values, 0.0), notionals=np.where(part, start.notionals, 0.0))
        for part in (~moves, moves)
    )
    still = np.zeros_like(start.trading)
    if atom.measure == "turnover":
        fixed = replace(fixed, trading=still)
    else:
        moving = replace(moving, trading=still)
    scale = _root(evaluation.distances_along(atom, fixed, moving), margin, rng)[:, None]
    values, notionals = fixed.values + scale * moving.values, fixed.notionals + scale * moving.notionals
    trading = fixed.trading + scale * moving.trading
    return replace(start, values=_cents(values), notionals=_cents(notionals), trading=trading)


def _root(distances: Callable[[Floats], Floats], margin: Floats, rng: np.random.Generator) -> Floats:
    """Find scales by the Illinois method (Dowell and Jarratt 1971), every third step a bisection; 1 without a root."""
    low, high, below, above, found = _bracket(lambda scale: distances(scale) - margin, len(margin), rng)
    weight_low, weight_high = np.ones_like(low), np.ones_like(low)
    middle = low
    for step in range(_STEPS):
        left, right = weight_low * below, weight_high * above
        slope = np.where(right != left, right - left, 1.0)
        middle = (low + high) / 2 if step % 3 == 2 else np.clip((low * right - high * left) / slope, low, high)
        value = distances(middle) - margin
        if np.all((np.abs(value) < _CLOSE) | ~found):
            break
        same = (value < 0) == (below < 0)
        low, below = np.where(same, middle, low), np.where(same, value, below)
        high, above = np.where(same, high, middle), np.where(same, above, value)
        weight_low, weight_high = np.where(same, 1.0, weight_low / 2), np.where(same, weight_high / 2, 1.0)
    return np.where(found, middle, 1.0)


def _bracket(
    beyond: Callable[[Floats], Floats], count: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats, Booleans]:
    """Return random neighbouring scales between which the sign changes, their values, and whether any exist."""
    values: Floats = np.array([beyond(np.full(count, scale)) for scale in _SCALES])
    changes: Booleans = np.not_equal(values[1:] < 0, values[:-1] < 0)
    drawn: Floats = np.where(changes, rng.random(changes.shape), 0.0)
    at, books = np.argmax(drawn, axis=0), np.arange(count)
    found: Booleans = np.sum(changes, axis=0) > 0
    return _SCALES[at], _SCALES[at + 1], values[at, books], values[at + 1, books], found


def _of_number(atom: Rule, base: Books, rng: np.random.Generator, outside: Booleans, close: Booleans) -> Books:
    """Return books with too many or too few groups where `outside`, else with an allowed number."""
    universe = base.universe
    members = scope(atom, universe).members
    limit = round(atom.limit.terms[0].plus)
    step = np.where(close, 0, rng.integers(1, 6, len(outside)))
    up = outside == (atom.comparison == "at_most")
    number = np.where(up, limit + step + (atom.comparison == "at_most"), limit - step - (atom.comparison == "at_least"))
    members = members[:, members.any(axis=0)]
    chosen = rng.random((len(number), members.shape[1])).argsort(axis=1).argsort(axis=1) < number[:, None]
    gone = members.any(axis=1) & ~_meets(chosen, members.T)
    values = np.where(gone, 0.0, base.values)
    books, groups = np.nonzero(chosen & ~_meets(values != 0, members))
    lines = np.where(members.T[groups], rng.random((len(groups), len(members))), -1.0).argmax(axis=1)
    values[books, lines] = 2e5
    return replace(base, values=values)


def _meets(marks: Booleans, members: Booleans) -> Booleans:
    """Return a mask (P, G): True if any marked holding (P, n) is in the group (n, G)."""
    return (marks.astype(np.float64) @ members.astype(np.float64)) > 0


def _with_or_without(atom: Rule, base: Books, rng: np.random.Generator, outside: Booleans) -> Books:
    """Return books that hold some of the forbidden instruments where `outside`, else none."""
    chosen, short = matches(atom.of, base.universe), atom.measure == "short"
    values = np.where(chosen, np.abs(base.values) if short else 0.0, base.values)
    able: list[int] = np.flatnonzero(chosen).tolist()
    for i in np.flatnonzero(outside):
        for at in rng.permutation(len(able))[: int(rng.integers(1, 3))]:
            values[i, able[int(at)]] = (-1.0 if short else 1.0) * rng.lognormal(13.0, 1.0)
    return replace(base, values=values)
