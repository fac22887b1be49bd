"""The cheapest trades after which a book keeps its coded rules, certified.

Linear rules are rows of a linear program over purchases and sales. What is not linear is looked at after each
solution: where it is broken, a row that every cure satisfies cuts the solution off, or the search branches: a group
that is only tested at purchase is not bought or is kept within its limit, a large position counts as one or is cut.
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
from finskillbench_desk.engines.guidelines.program import Program
from finskillbench_desk.engines.guidelines.repairs import Node, broken, children, cut
from finskillbench_desk.engines.guidelines.rows import Holdings, rows

MOST_PROGRAMS = 200
ACCEPTED_GAP = 1e-8
"""Gap, in fractions of net asset value, that the open branches may leave."""
RESIDUE = 1e-10
"""A trade of this size is rounding of the solver."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What trading costs, by instrument: a fraction of the value traded. What is not in here is not traded.

    `margin` is how far inside its limit each linear rule is to be kept, as a fraction of the limit.
    """

    rates: Mapping[str, float]
    margin: float = 0.0


@dataclass(frozen=True)
class Cure:
    """Trades by instrument in the currency of the book (of a future its notional), their cost, and the proof.

    `cost` is a fraction of net asset value, `bound` what no cure can cost less than; `programs` were solved.
    """

    trades: dict[str, float]
    cost: float
    bound: float
    programs: int
    certified: Certified = field(repr=False)


def after(book: Book, trades: Mapping[str, float]) -> Book:
    """The book after trades, paid for by its first position in cash; what is bought counts as being bought.

    An instrument that is not in the book is not traded. A purchase and a sale count towards the quarter's turnover,
    trades in futures do not.
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
            values = (0.0, amount) if name in future else (amount, 0.0)
            positions.append(Position(instruments[name], *values, bought=amount > 0))
    securities = [amount for name, amount in known.items() if name not in future]
    trading = replace(
        book.trading,
        pending_purchases=book.trading.pending_purchases + exact_sum(max(amount, 0.0) for amount in securities),
        pending_sales=book.trading.pending_sales + exact_sum(max(-amount, 0.0) for amount in securities),
    )
    names = {position.instrument.name for position in positions}
    others = [each for each in book.universe.instruments if each.name not in names]
    return Book(tuple(positions), tuple(others), trading)


def cheapest_cure(rules: Sequence[Rule], book: Book, terms: Terms, *, most_programs: int = MOST_PROGRAMS) -> Cure:
    """The least cost of trading into all rules whose effect is a limit, with nothing borrowed and nothing sold short.

    Raises
    ------
    InfeasibleError : no trades keep the rules.
    UndecidedError : the search is too long, or a rule is broken that it has no way to mend.
    """
    return _Search(rules, book, terms, most_programs).run()


class _Search:
    def __init__(self, rules: Sequence[Rule], book: Book, terms: Terms, most_programs: int) -> None:
        self.most_programs = most_programs
        self.atoms = [atom for rule in rules if rule.effect == "limit" for atom in rule.atoms()]
        self.book, self.held = book, Holdings.of(book)
        names = [each.name for each in self.held.universe.instruments]
        rates = np.array([terms.rates.get(name, np.inf) for name in names])
        self.program = Program(self.held, rates, book.trading)
        for atom in self.atoms:
            if atom.when == "always":
                for row in rows(atom, self.held):
                    if not row.conditional:
                        self.program.keep(row.coefficients, row.limit - terms.margin * abs(row.limit))
        self.programs = 0
        self.margin = terms.margin

    def run(self) -> Cure:
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
        names = [each.name for each in self.held.universe.instruments]
        cash = self.program.cash
        moved = {
            name: float(trade) * self.held.nav
            for place, (name, trade) in enumerate(zip(names, trades.tolist(), strict=True))
            if trade and place != cash
        }
        return Cure(moved, value, bound, self.programs, certified)

    def _solved(self, node: Node, value: float) -> tuple[Certified, Floats, Node]:
        """The node's program, solved again with every cut that its solution calls for."""
        while True:
            self.programs += 1
            if self.programs > self.most_programs:
                raise UndecidedError(f"the cure is not settled after {self.most_programs} programs")
            certified, trades = self.program.solved(node)
            if certified.optimality.lower_bound >= value:
                return certified, trades, node
            question = self._broken(trades)
            found = None if question is None else cut(question)
            if found is None:
                return certified, trades, node
            node = node.with_row(*found)

    def _broken(self, trades: Floats):
        return broken(self.atoms, self.held, self.book.trading, trades, self.program.cash)
