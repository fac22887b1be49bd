"""Coded rules as linear rows over holdings, fractions of net asset value or notionals of futures.

Trades exchange holdings for cash or open and close futures, so net asset value is constant. A future keeps its sign.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from finskillbench.arrays import Booleans, Floats
from finskillbench_desk.engines.guidelines.book import Book, Books, InstrumentUniverse
from finskillbench_desk.engines.guidelines.evaluation import limits_of, matches, scope
from finskillbench_desk.engines.guidelines.language import Rule

BY_GROUP = frozenset(("weight", "ownership"))
"""Measures with one row per group."""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """`coefficients @ x <= limit` for one group of a rule without exceptions; `members` (n,) may belong to it.

    `conditional` rows apply only to groups with a holding.
    """

    atom: Rule
    group: str
    coefficients: Floats
    limit: float
    members: Booleans
    conditional: bool = False


@dataclass(frozen=True)
class HoldingsVector:
    """A book as holdings in the order of its universe, with the sign of each future (1 for others)."""

    universe: InstrumentUniverse
    x: Floats
    nav: float
    signs: Floats

    @classmethod
    def of(cls, book: Book) -> HoldingsVector:
        amounts, universe = exposures_of(book.books), book.universe
        signs = np.where(universe.is_future & (amounts < 0), -1.0, 1.0)
        return cls(universe, amounts, book.nav, signs)


def exposures_of(books: Books) -> Floats:
    """Return (n,) values and notionals of the first book, as fractions of its net asset value."""
    amounts = books.values[0].copy()
    future = books.universe.is_future
    amounts[future] = books.notionals[0][future]
    return np.array(amounts / float(books.nav[0]), dtype=np.float64)


def counted(atom: Rule, held: HoldingsVector) -> Floats:
    """Return (n, n) exposure of one unit of each holding (row), by instrument (column)."""
    universe = held.universe
    unit = np.ones(len(universe.instruments))
    if atom.futures == "ignore":
        unit = np.where(universe.is_future, 0.0, unit)
    elif atom.futures == "gross":
        unit = held.signs
    return unit[:, None] * (universe.through if atom.look_through else np.eye(len(unit)))


def basis_row(atom: Rule, held: HoldingsVector) -> tuple[Floats, float]:
    """Return the denominator of a weight as coefficients over holdings and a constant."""
    universe = held.universe
    if atom.basis == "nav":
        return np.zeros(len(held.x)), 1.0
    if isinstance(atom.basis, str):
        return np.where(universe.is_cash, 0.0, held.signs), 0.0
    return (matches(atom.basis, universe) & ~universe.is_future).astype(np.float64), 0.0


def linear_rows(atom: Rule, held: HoldingsVector) -> Iterator[RuleRow]:
    """Yield the rows of a rule without exceptions; none if its measure is not linear."""
    if atom.measure in BY_GROUP:
        yield from _by_group(atom, held)
    elif atom.measure == "days_to_sell" and atom.comparison == "at_most":
        yield from _days(atom, held)
    elif atom.measure == "average":
        yield from _average(atom, held)


def weight_rows(atom: Rule, held: HoldingsVector) -> tuple[tuple[str, ...], Floats, Floats, Booleans]:
    """Return groups, (G, n) coefficients of their amounts, (G,) benchmark weights and (G, n) members."""
    universe = held.universe
    who = scope(atom, universe)
    return who.names, (counted(atom, held) @ who.members).T, universe.benchmark @ who.members, who.members.T


def _by_group(atom: Rule, held: HoldingsVector) -> Iterator[RuleRow]:
    names, amounts, benchmark, members = weight_rows(atom, held)
    limits, sign = limits_of(atom.limit, benchmark), 1.0 if atom.comparison == "at_most" else -1.0
    coefficients, constant = basis_row(atom, held)
    named = isinstance(atom.by, str)
    sizes = held.universe.attribute("market_cap") / held.nav
    for place, name in enumerate(names):
        conditional = named and sign < 0 and not (atom.limit.relative and benchmark[place] > 0)
        share = limits[place] / 100
        if atom.measure == "ownership":
            known = sizes[members[place]]
            size = float(np.nanmax(known)) if np.isfinite(known).any() else 0.0
            yield RuleRow(atom, name, sign * amounts[place], sign * share * size, amounts[place] != 0, conditional)
        else:
            row = sign * (amounts[place] - share * coefficients)
            yield RuleRow(atom, name, row, sign * share * constant, amounts[place] != 0, conditional)


def _days(atom: Rule, held: HoldingsVector) -> Iterator[RuleRow]:
    universe = held.universe
    volume = universe.attribute("adv") / held.nav
    known = np.where(np.isfinite(volume) & (volume > 0), volume, 0.0)
    amounts = counted(atom, held)
    limit = float(limits_of(atom.limit, np.zeros(1))[0])
    for place in np.flatnonzero(matches(atom.of, universe)).tolist():
        column = amounts[:, place]
        if column.any():
            most = limit * known[place] * atom.participation / 100
            yield RuleRow(atom, universe.instruments[place].name, column, most, column != 0)


def _average(atom: Rule, held: HoldingsVector) -> Iterator[RuleRow]:
    attribute = held.universe.attribute(atom.attribute)
    known = matches(atom.of, held.universe) & np.isfinite(attribute)
    limit = float(limits_of(atom.limit, np.array([held.universe.benchmark[known].sum()]))[0])
    sign = 1.0 if atom.comparison == "at_most" else -1.0
    beyond = np.where(known, np.nan_to_num(attribute) - limit, 0.0)
    row = sign * (counted(atom, held) @ beyond)
    yield RuleRow(atom, "", row, 0.0, row != 0)
