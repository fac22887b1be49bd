"""Cheapest trades after which a book satisfies its coded rules, with a certificate.

Linear rules are rows of a linear program over purchases and sales. Other rules are checked after each solution: a
broken one adds a valid cutting row, or the search branches.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.certified import Certified, InfeasibleError, UndecidedError
from finskillbench.sums import exact_sum
from finskillbench_desk.engines.guidelines.book import Book, Position
from finskillbench_desk.engines.guidelines.language import Rule
from finskillbench_desk.engines.guidelines.program import CureProgram
from finskillbench_desk.engines.guidelines.repairs import Node, children, cutting_row, first_violation
from finskillbench_desk.engines.guidelines.rows import HoldingsVector, linear_rows

MOST_PROGRAMS = 200
ACCEPTED_GAP = 1e-8
"""Gap in fractions of net asset value that open branches may leave."""
RESIDUE = 1e-10
"""Smaller trades are solver rounding."""


@dataclass(frozen=True, slots=True)
class CureRules:
    """Trading costs by tradable instrument, as a fraction of value; `margin` is a fraction of each limit."""

    rates: Mapping[str, float]
    margin: float = 0.0


@dataclass(frozen=True)
class CertifiedCure:
    """Trades by instrument in the book's currency (notional of futures), with certificate.

    `cost` and its lower `bound` are fractions of net asset value.
    """

    trades: dict[str, float]
    cost: float
    bound: float
    programs: int
    certified: Certified = field(repr=False)


def after(book: Book, trades: Mapping[str, float]) -> Book:
    """Return the book after trades, paid from its first cash position; purchases count as being tested.

    Unknown instruments are not traded; trades other than in futures count towards the quarter's turnover.
    """
    positions: list[Position] = []
    instruments = {each.name: each for each in book.universe.instruments}
    future = {name for name, place in book.universe.index.items() if book.universe.is_future[place]}
    known = {name: amount for name, amount in trades.items() if name in instruments}
    paid = exact_sum(amount for name, amount in known.items() if name not in future)
    cash = next((each.instrument.name for each in book.positions if each.instrument.kind == "cash"), "")
    held: set[str] = set()
    for position in book.positions:
        name = position.instrument.name
        held.add(name)
        amount = known.get(name, 0.0)
        value = position.value - (paid if name == cash else 0.0) + (0.0 if name in future else amount)
        notional = position.notional + (amount if name in future else 0.0)
        positions.append(Position(position.instrument, value, notional, position.bought or amount > 0))
    for name, amount in known.items():
        if name not in held and amount:
            positions.append(replace(Position.of(instruments[name], amount), bought=amount > 0))
    securities = [amount for name, amount in known.items() if name not in future]
    purchases = book.trading.pending_purchases + exact_sum(max(amount, 0.0) for amount in securities)
    sales = book.trading.pending_sales + exact_sum(max(-amount, 0.0) for amount in securities)
    trading = replace(book.trading, pending_purchases=purchases, pending_sales=sales)
    names = {position.instrument.name for position in positions}
    unheld = [each for each in book.universe.instruments if each.name not in names]
    return Book(tuple(positions), tuple(unheld), trading)


def cheapest_cure(
    rules: Sequence[Rule], book: Book, costs: CureRules, *, most_programs: int = MOST_PROGRAMS
) -> CertifiedCure:
    """Return the cheapest trades that satisfy all limit rules, without borrowing or short sales.

    Raises
    ------
    InfeasibleError : no trades satisfy the rules.
    UndecidedError : the search is too long, or no repair is known for a broken rule.
    """
    return _Search(rules, book, costs, most_programs).run()


class _Search:
    def __init__(self, rules: Sequence[Rule], book: Book, costs: CureRules, most_programs: int) -> None:
        self.most_programs = most_programs
        self.atoms = [atom for rule in rules if rule.effect == "limit" for atom in rule.atoms()]
        self.book, self.held = book, HoldingsVector.of(book)
        names = [each.name for each in self.held.universe.instruments]
        rates = np.array([costs.rates.get(name, np.inf) for name in names])
        self.program = CureProgram(self.held, rates, book.trading)
        for atom in self.atoms:
            if atom.when == "always":
                for row in linear_rows(atom, self.held):
                    if not row.conditional:
                        self.program.keep(row.coefficients, row.limit - costs.margin * abs(row.limit))
        self.programs = 0
        self.margin = costs.margin

    def run(self) -> CertifiedCure:
        order = count()
        queue: list[tuple[float, int, Node]] = [(-np.inf, next(order), Node())]
        best: tuple[Certified, Floats] | None = None
        value, closed = np.inf, np.inf
        failure: Exception = UndecidedError("no branch gave a cure")
        while queue and queue[0][0] < value - ACCEPTED_GAP:
            bound, _, node = heapq.heappop(queue)
            try:
                certified, trades, node = self._solved(node, value)
            except InfeasibleError as error:
                failure = error
                continue
            bound = max(bound, certified.optimality.lower_bound)
            if bound >= value - ACCEPTED_GAP:
                closed = min(closed, bound)
                continue
            open_question = self._broken(trades)
            if open_question is None:
                closed = min(closed, bound)
                if certified.value < value:
                    value, best = certified.value, (certified, trades)
                continue
            for child in children(node, open_question):
                heapq.heappush(queue, (bound, next(order), child))
        if best is None:
            raise failure
        certified, trades = best
        bound = min([closed, value, *(entry[0] for entry in queue)])
        instruments = self.held.universe.instruments
        places = [place for place in np.flatnonzero(trades).tolist() if place != self.program.cash]
        moved = {instruments[place].name: float(trades[place]) * self.held.nav for place in places}
        return CertifiedCure(moved, value, bound, self.programs, certified)

    def _solved(self, node: Node, value: float) -> tuple[Certified, Floats, Node]:
        """Solve a node's program, adding cutting rows until none applies."""
        while True:
            self.programs += 1
            if self.programs > self.most_programs:
                raise UndecidedError(f"the cure is not settled after {self.most_programs} programs")
            certified, trades = self.program.solved(node)
            if certified.optimality.lower_bound >= value:
                return certified, trades, node
            question = self._broken(trades)
            found = None if question is None else cutting_row(question)
            if found is None:
                return certified, trades, node
            node = node.with_row(*found)

    def _broken(self, trades: Floats):
        return first_violation(self.atoms, self.held, self.book.trading, trades, self.program.cash)
