"""Repairs of a rule that a program's solution breaks and that is not linear: a cutting row or two branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from finskillbench.arrays import Booleans, Floats
from finskillbench.engines.optimisation.certified import UndecidedError
from finskillbench_desk.engines.guidelines.book import Books, QuarterTrades
from finskillbench_desk.engines.guidelines.evaluation import TOLERANCE, RuleMeasurement, limits_of, measure_rule
from finskillbench_desk.engines.guidelines.language import Rule
from finskillbench_desk.engines.guidelines.rows import (
    HoldingsVector,
    RuleRow,
    basis_row,
    counted,
    exposures_of,
    linear_rows,
    weight_rows,
)

RowOf = tuple[Floats, float]
NOTICED = 1e-8
"""Fraction by which a counted group exceeds the threshold."""


@dataclass(frozen=True)
class Node:
    """A branch: additional rows, instruments not bought, turnover rows, and decided (rule, group) counts."""

    rows: tuple[RowOf, ...] = ()
    not_bought: tuple[Booleans, ...] = ()
    turnover: tuple[tuple[float, float, float], ...] = ()
    counting: tuple[tuple[int, int], ...] = ()

    def with_row(self, coefficients: Floats, limit: float) -> Self:
        return replace(self, rows=(*self.rows, (coefficients, limit)))


@dataclass(frozen=True)
class Violation:
    """A rule without exceptions that a solution breaks, with the group index and the measurements."""

    atom: Rule
    place: int
    found: RuleMeasurement
    number: int
    held: HoldingsVector
    trading: QuarterTrades
    x: Floats


def books_after(held: HoldingsVector, trading: QuarterTrades, trades: Floats, cash: int) -> Books:
    """Return the book after trades in fractions of net asset value, in the evaluator's form."""
    universe, nav = held.universe, held.nav
    future = universe.is_future
    x: Floats = held.x + trades
    x[cash] = held.x[cash] - trades[~future].sum()
    securities = np.where(future, 0.0, trades) * nav
    row = np.array(trading.row)
    row[2] += np.maximum(securities, 0.0).sum()
    row[3] += np.maximum(-securities, 0.0).sum()
    values, notionals = np.where(future, 0.0, x) * nav, np.where(future, x, 0.0) * nav
    return Books(universe, values[None, :], notionals[None, :], (trades > 0)[None, :], row[None, :])


def first_violation(
    atoms: Sequence[Rule], held: HoldingsVector, trading: QuarterTrades, trades: Floats, cash: int
) -> Violation | None:
    """Return the first rule that the book breaks after the trades, or None."""
    books = books_after(held, trading, trades, cash)
    x = exposures_of(books)
    for number, atom in enumerate(atoms):
        found = measure_rule(atom, books)
        beyond = found.values - found.limits if atom.comparison == "at_most" else found.limits - found.values
        live = found.counts & (beyond > TOLERANCE)
        if atom.when == "purchase":
            live = live & found.bought
        if live.any():
            place = int(np.argmax(np.where(live, beyond, -np.inf)[0]))
            return Violation(atom, place, found, number, held, trading, x)
    return None


def cutting_row(question: Violation) -> RowOf | None:
    """Return a row that every compliant book satisfies and this one does not, or None.

    Sums of the largest groups and sellable parts are convex; a group within its limit exceeds it only by purchases.
    """
    atom, held = question.atom, question.held
    if atom.when == "purchase":
        cuts = atom.measure in ("weight", "ownership", "days_to_sell") and atom.comparison == "at_most"
        for row in linear_rows(atom, held) if cuts and atom.basis == "nav" else ():
            if row.coefficients @ held.x <= row.limit < row.coefficients @ question.x:
                return row.coefficients, row.limit
        return None
    _, amounts, benchmark, _ = weight_rows(atom, held)
    if atom.measure == "top" and atom.comparison == "at_most":
        coefficients, constant = basis_row(atom, held)
        largest = np.argsort(-(amounts @ question.x), kind="stable")[: atom.n]
        share = float(limits_of(atom.limit, np.array([benchmark.sum()]))[0]) / 100
        return amounts[largest].sum(axis=0) - share * coefficients, share * constant
    if atom.measure == "sellable" and atom.comparison == "at_least" and atom.basis == "nav":
        volume = held.universe.attribute("adv") / held.nav
        most = np.where(np.isfinite(volume), volume, 0.0) * atom.days * atom.participation / 100
        whole = held.universe.is_cash | (question.x @ counted(atom, held) < most)
        chosen = amounts.any(axis=0)
        row = counted(atom, held) @ (whole & chosen).astype(np.float64)
        share = float(limits_of(atom.limit, np.array([benchmark.sum()]))[0]) / 100
        return -row, -(share - float(most[chosen & ~whole].sum()))
    return None


def children(node: Node, question: Violation) -> Iterator[Node]:
    """Yield branches that together contain every cure; UndecidedError if no repair is known for the rule."""
    atom, held = question.atom, question.held
    linear: list[RuleRow] = list(linear_rows(atom, held))
    names = question.found.names
    if atom.when == "purchase":
        members = _members(question)
        yield replace(node, not_bought=(*node.not_bought, members))
        for row in linear:
            if row.group == names[question.place] or atom.measure == "days_to_sell":
                if atom.measure == "days_to_sell" and row.coefficients @ question.x <= row.limit:
                    continue
                yield node.with_row(row.coefficients, row.limit)
                return
        if atom.measure in ("sum_above", "top", "sellable", "turnover"):
            yield from children(node, replace(question, atom=replace(atom, when="always")))
        return
    if atom.measure == "turnover":
        yield from _turnover(node, question)
        return
    if atom.measure == "count":
        yield from _counted(node, question)
        return
    again = cutting_row(question)
    if again is not None:
        yield node.with_row(*again)
        return
    if atom.measure == "sum_above" and atom.comparison == "at_most":
        yield from _large(node, question)
        return
    conditional = [row for row in linear if row.conditional and row.group == names[question.place]]
    if conditional:
        yield node.with_row(conditional[0].coefficients, conditional[0].limit)
        yield node.with_row(conditional[0].members.astype(np.float64), 0.0)
        return
    raise UndecidedError(f"clause {atom.clause}: no way is known to mend {atom.measure} {atom.comparison}")


def _counted(node: Node, question: Violation) -> Iterator[Node]:
    """Branch on an undecided group: held above the counting threshold, or below it."""
    atom, held = question.atom, question.held
    _, amounts, _, _ = weight_rows(atom, held)
    coefficients, constant = basis_row(atom, held)
    threshold = atom.above / 100
    rows_of = amounts - threshold * coefficients
    now, then = rows_of @ question.x - threshold * constant, rows_of @ held.x - threshold * constant
    decided = {place for number, place in node.counting if number == question.number}
    few = atom.comparison == "at_least"
    candidates = [place for place in np.flatnonzero((now > NOTICED) != few).tolist() if place not in decided]
    if not candidates:
        raise UndecidedError(f"clause {atom.clause}: all groups are decided on and their number still breaks it")
    nearest = max if few else min
    place = nearest(candidates, key=lambda one: float(then[one]))
    counting = (*node.counting, (question.number, place))
    row, limit = rows_of[place], threshold * constant
    yield replace(node.with_row(-row, -limit - NOTICED), counting=counting)
    yield replace(node.with_row(row, limit), counting=counting)


def _members(question: Violation) -> Booleans:
    """Return the instruments whose purchase breaks a rule tested at purchase."""
    _, amounts, _, _ = weight_rows(question.atom, question.held)
    if len(question.found.names) == len(amounts) and question.found.names != ("",):
        return np.not_equal(amounts[question.place], 0.0)
    if question.atom.measure == "active_share":
        return np.ones(len(question.x), dtype=np.bool_)
    return np.asarray(np.any(amounts != 0, axis=0), dtype=np.bool_)


def _turnover(node: Node, question: Violation) -> Iterator[Node]:
    atom, nav = question.atom, question.held.nav
    coefficients, constant = basis_row(atom, question.held)
    if coefficients.any() or atom.comparison != "at_most":
        raise UndecidedError(f"clause {atom.clause}: turnover is mended only as a share of net asset value")
    limit = float(limits_of(atom.limit, np.zeros(1))[0]) / 100 * constant
    if atom.trades == "used":
        raise UndecidedError(f"clause {atom.clause}: no trade mends the turnover that is used")
    spent = np.array(question.trading.row) / nav
    bought = spent[2] + (spent[0] if atom.trades == "all" else 0.0)
    sold = spent[3] + (spent[1] if atom.trades == "all" else 0.0)
    purchases, sales = (1.0, 0.0, limit - bought), (0.0, 1.0, limit - sold)
    if atom.convention == "lesser":
        yield replace(node, turnover=(*node.turnover, purchases))
        yield replace(node, turnover=(*node.turnover, sales))
        return
    both = {
        "half": ((0.5, 0.5, limit - (bought + sold) / 2),),
        "sum": ((1.0, 1.0, limit - bought - sold),),
        "greater": (purchases, sales),
    }[atom.convention]
    yield replace(node, turnover=(*node.turnover, *both))


def _large(node: Node, question: Violation) -> Iterator[Node]:
    """Branch on the largest undecided position: cut to the threshold, or counted in the sum."""
    atom, held = question.atom, question.held
    _, amounts, benchmark, _ = weight_rows(atom, held)
    coefficients, constant = basis_row(atom, held)
    threshold, share = atom.above / 100, float(limits_of(atom.limit, np.array([benchmark.sum()]))[0]) / 100
    weights = amounts @ question.x / (coefficients @ question.x + constant)
    decided = {place for number, place in node.counting if number == question.number}
    undecided = [place for place in np.flatnonzero(weights > threshold).tolist() if place not in decided]
    if not undecided:
        raise UndecidedError(f"clause {atom.clause}: large positions are decided on and still break it")
    counting = sorted(decided)
    # Between 0 and the limit, the counted weight is above the chord from the threshold.
    steep = 0.0 if coefficients.any() else share / max(share - threshold, 1e-9)
    row = amounts[counting].sum(axis=0) + steep * amounts[undecided].sum(axis=0) - share * coefficients
    most = share * constant + steep * threshold * len(undecided)
    if steep and row @ question.x > most + TOLERANCE:
        yield node.with_row(row, most)
        return
    place = min(undecided, key=lambda one: float(weights[one]))
    yield node.with_row(amounts[place] - threshold * coefficients, threshold * constant)
    row = amounts[[*counting, place]].sum(axis=0) - share * coefficients
    counted_in = node.with_row(row, share * constant)
    yield replace(counted_in, counting=(*node.counting, (question.number, place)))
