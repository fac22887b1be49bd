"""Linear program of a cure: purchases and sales as variables, one row per linear rule over the resulting holdings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.certified import Certified, UndecidedError, certify, certify_solution
from finskillbench.engines.optimisation.formulation import Formulation
from finskillbench.engines.optimisation.program import Cone, ProgramBuilder, solve_conic
from finskillbench.errors import InputError
from finskillbench_desk.engines.guidelines.book import QuarterTrades
from finskillbench_desk.engines.guidelines.repairs import Node
from finskillbench_desk.engines.guidelines.rows import HoldingsVector

LARGEST = 1.0
"""Largest purchase of one instrument, as a fraction of net asset value."""
CLEAR = 5e-9
"""Distance of a row inside its limit, so that it still holds after trades are rounded to cents."""
NARROW = 0.002
"""Headroom, as a fraction of net asset value, up to which a row is included at once; most others never bind."""
_RESIDUE = 1e-10
_NOTHING = 1e-9
"""Holdings below this size are sold entirely."""


class CureProgram:
    """Rows over holdings x = held + bought - sold with cash as counterparty, without borrowing or short sales."""

    def __init__(self, held: HoldingsVector, rates: Floats, trading: QuarterTrades) -> None:
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
        """Impose `coefficients @ x <= limit` in every branch."""
        self._rows.append(coefficients)
        self._limits.append(limit)

    def _over_trades(self, row: Floats) -> Floats:
        """Convert a row over holdings to net purchases, with cash as counterparty."""
        return row - row[self.cash] * self.pays

    def solved(self, node: Node) -> tuple[Certified, Floats]:
        """Return the certificate and the cheapest trades of a branch; raises as `certify`."""
        matrix = np.array([*self._rows, *(row for row, _ in node.rows)])
        limits = np.array([*self._limits, *(limit for _, limit in node.rows)])
        # A zero limit has no room for the margin.
        limits = limits - np.where((limits > CLEAR) | (matrix < 0).any(axis=1), CLEAR, 0.0)
        over = matrix - matrix[:, [self.cash]] * self.pays
        headroom = limits - matrix @ self.held.x
        active = np.zeros(len(headroom), dtype=np.bool_)
        active[: len(self._active)] = self._active
        active |= (headroom < NARROW) | (np.arange(len(headroom)) >= len(self._rows))
        while True:
            certified = self._relaxed(node, over[active], headroom[active])
            trades = certified.weights[: len(self.pays)] - certified.weights[len(self.pays) :]
            missed = ~active & (over @ trades > headroom)
            if not missed.any():
                break
            active |= missed
        self._active = active[: len(self._rows)]
        trades = np.where(np.abs(trades) <= _RESIDUE, 0.0, trades)
        sold_off = (trades != 0) & (np.abs(self.held.x + trades) <= _NOTHING)
        return certified, np.where(sold_off, -self.held.x, trades)

    def _relaxed(self, node: Node, over: Floats, headroom: Floats) -> Certified:
        """Solve a relaxation with some rows; it bounds the cost and is optimal if the other rows hold."""
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
        builder.constrain("rules", Cone.NONNEGATIVE, headroom, (buys, over), (sells, -over))
        if node.turnover:
            builder.constrain("turnover", Cone.NONNEGATIVE, *self._turnover(node.turnover, buys, sells))
        program = builder.build()
        return _certified(Formulation(program, slice(0, 2 * n), None, 0.0, {}, ()))

    def _turnover(self, limits: Sequence[tuple[float, float, float]], buys: slice, sells: slice):
        rhs = np.array([limit for _, _, limit in limits]) - CLEAR
        a = np.array([one for one, _, _ in limits])[:, None] * self.pays
        b = np.array([one for _, one, _ in limits])[:, None] * self.pays
        return rhs, (buys, a), (sells, b)


def _certified(formulation: Formulation) -> Certified:
    """Certify the optimum, with a tighter solver tolerance if the first attempt is undecided."""
    try:
        return certify(formulation, unique=False)
    except UndecidedError:
        return certify_solution(formulation, solve_conic(formulation.program, tolerance=1e-12), unique=False)
