"""The linear program of a cure: purchases and sales as variables, every rule a row over what is held after them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.certified import Certified, UndecidedError, certify, certify_solution
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.program import Cone, ProgramBuilder, solve
from finskillbench.errors import InputError
from finskillbench_desk.engines.guidelines.book import Trading
from finskillbench_desk.engines.guidelines.repairs import Node
from finskillbench_desk.engines.guidelines.rows import Holdings

LARGEST = 1.0
"""What may be bought of one instrument at most, as a fraction of net asset value."""
CLEAR = 5e-9
"""How far inside its limit a row is kept, so that whoever measures it after rounding trades to cents finds it kept."""
NARROW = 0.002
"""Room of a row, as a fraction of net asset value, up to which it is in a program from the start; others come in when
they are broken, for most are never near."""
_RESIDUE = 1e-10
_NOTHING = 1e-9
"""A holding of this size is sold off."""


class Program:
    """Rows over holdings x = held + bought - sold, cash taking the other side; nothing borrowed, nothing sold short."""

    def __init__(self, held: Holdings, rates: Floats, trading: Trading) -> None:
        universe = held.universe
        cash = np.flatnonzero(universe.is_cash & (held.x != 0))
        if not cash.size:
            raise InputError("the book holds no cash position to pay from; add one, of kind cash, even of a cent")
        self.held, self.cash = held, int(cash[0])
        tradable = np.isfinite(rates) & ~universe.is_cash
        self.rates = np.where(tradable, rates, 0.0)
        most = np.where(tradable, LARGEST, 0.0)
        least = np.where(tradable, np.abs(held.x), 0.0)
        self.most_bought = np.where(held.signs < 0, least, most)
        self.most_sold = np.where(held.signs < 0, most, least)
        self.pays = np.where(universe.is_future | universe.is_cash, 0.0, 1.0)
        self._rows: list[Floats] = []
        self._limits: list[float] = []
        self._active = np.zeros(0, dtype=np.bool_)
        nothing = np.zeros(len(held.x))
        nothing[self.cash] = -1.0
        self.keep(nothing, -min(float(held.x[self.cash]), 0.0) if held.x[self.cash] < 0 else 0.0)
        self.trading = np.array(trading.row) / held.nav

    def keep(self, coefficients: Floats, limit: float) -> None:
        """Keep `coefficients @ x <= limit` in every branch."""
        self._rows.append(coefficients)
        self._limits.append(limit)

    def _over_trades(self, row: Floats) -> Floats:
        """Coefficients over purchases less sales of a row over holdings: cash pays."""
        return row - row[self.cash] * self.pays

    def solved(self, node: Node) -> tuple[Certified, Floats]:
        """The cheapest trades of a branch, and their proof.

        Raises
        ------
        InfeasibleError, UndecidedError : as `certify`.
        """
        matrix = np.array([*self._rows, *(row for row, _ in node.rows)])
        limits = np.array([*self._limits, *(limit for _, limit in node.rows)])
        # What may not be held at all cannot be held by less.
        limits = limits - np.where((limits > CLEAR) | (matrix < 0).any(axis=1), CLEAR, 0.0)
        over = matrix - matrix[:, [self.cash]] * self.pays
        room = limits - matrix @ self.held.x
        active = np.zeros(len(room), dtype=np.bool_)
        active[: len(self._active)] = self._active
        active |= (room < NARROW) | (np.arange(len(room)) >= len(self._rows))
        while True:
            certified = self._relaxed(node, over[active], room[active])
            trades = certified.weights[: len(self.pays)] - certified.weights[len(self.pays) :]
            missed = ~active & (over @ trades > room)
            if not missed.any():
                break
            active |= missed
        self._active = active[: len(self._rows)]
        trades = np.where(np.abs(trades) <= _RESIDUE, 0.0, trades)
        sold_off = (trades != 0) & (np.abs(self.held.x + trades) <= _NOTHING)
        return certified, np.where(sold_off, -self.held.x, trades)

    def _relaxed(self, node: Node, over: Floats, room: Floats) -> Certified:
        """The program with some of the rows: no cure costs less, and it is the whole one's if it keeps the others."""
        bought = self.most_bought.copy()
        for members in node.not_bought:
            bought[members] = 0.0
        n = len(bought)
        builder = ProgramBuilder()
        buys, sells = builder.variables(bought), builder.variables(self.most_sold)
        builder.add_linear(buys, self.rates)
        builder.add_linear(sells, self.rates)
        builder.constrain("not_negative", Cone.NONNEGATIVE, np.zeros(2 * n), (slice(0, 2 * n), -np.ones(2 * n)))
        ends = np.concatenate([bought, self.most_sold])
        builder.constrain("most", Cone.NONNEGATIVE, ends, (slice(0, 2 * n), np.ones(2 * n)))
        builder.constrain("rules", Cone.NONNEGATIVE, room, (buys, over), (sells, -over))
        if node.turnover:
            builder.constrain("turnover", Cone.NONNEGATIVE, *self._turnover(node.turnover, buys, sells))
        program = builder.build()
        return _certified(Formulation(program, slice(0, 2 * n), None, 0.0, {}, ()))

    def _turnover(self, limits: Sequence[tuple[float, float, float]], buys: slice, sells: slice):
        """Rows a purchases + b sales <= limit, of the cure's own trades."""
        rhs = np.array([limit for _, _, limit in limits]) - CLEAR
        a = np.array([one for one, _, _ in limits])[:, None] * self.pays
        b = np.array([one for _, one, _ in limits])[:, None] * self.pays
        return rhs, (buys, a), (sells, b)


def _certified(formulation: Formulation) -> Certified:
    """The optimum with its proof; where the solver stopped too early for one, it goes on."""
    try:
        return certify(formulation, unique=False)
    except UndecidedError:
        return certify_solution(formulation, solve(formulation.program, tolerance=1e-12), unique=False)
