"""Trades of a minimum ticket, against every combination of purchases, sales and names left alone."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import optimize as _optimize

from finskillbench.arrays import Floats
from finskillbench.engines.optimisation.certified import InfeasibleError
from finskillbench.engines.optimisation.formulation import Formulation, FormulationBuilder
from finskillbench.engines.optimisation.intervals import Intervals, IntervalSearch, intersect, ticket_intervals
from finskillbench.engines.optimisation.program import Cone
from finskillbench.engines.optimisation.uniqueness import Uniqueness

optimize: Any = _optimize  # SciPy comes without types

HELD = np.array([0.28, 0.35, 0.19, 0.18])
MEAN = np.array([0.06, 0.05, 0.07, 0.01])
COSTS = np.array([0.002, 0.002, 0.004, 0.005])
TICKET = 0.05
TARGET = 0.05
CAP = 0.5


class _Search(IntervalSearch):
    """Least cost of the trades that reach an expected return of 5 %."""

    def program(self, lower: Floats, upper: Floats) -> Formulation:
        builder = FormulationBuilder(lower, upper, 1.0)
        builder.constrain("fully_invested", Cone.ZERO, np.ones(1), (builder.weights, np.ones((1, 4))))
        builder.bound_weights(np.arange(4))
        builder.at_most("return", np.array([-TARGET]), (builder.weights, -MEAN[None, :]))
        trades = builder.add_trades(builder.weights, HELD, np.ones(4), lambda weights: np.abs(weights - HELD))
        builder.add_linear(trades, COSTS)
        return builder.formulation()


def _search(least: float) -> _Search:
    return _Search(Intervals.of([intersect(ticket_intervals(held, least), [(0.0, CAP)]) for held in HELD.tolist()]))


def _least_cost(least: float) -> list[float]:
    """The two least costs of all 81 combinations, by linear programs without absolute values."""
    costs: list[float] = []
    for sides in product((-1, 0, 1), repeat=4):
        side = np.array(sides)
        bounds = [
            (held, held) if s == 0 else (held + least, CAP) if s > 0 else (0.0, held - least)
            for s, held in zip(side, HELD, strict=True)
        ]
        if all(low <= high for low, high in bounds):
            limits: dict[str, Any] = {"A_ub": -MEAN[None, :], "b_ub": [-TARGET], "A_eq": np.ones((1, 4)), "b_eq": [1.0]}
            found = optimize.linprog(COSTS * side, bounds=bounds, **limits)
            if found.status == 0:
                costs.append(float(found.fun - (COSTS * side) @ HELD))
    return sorted(costs)[:2]


def test_the_optimum_is_the_least_of_all_combinations() -> None:
    search = _search(TICKET)
    best = search.minimum()
    least, second = _least_cost(TICKET)
    assert best.value == pytest.approx(least, abs=1e-12)
    assert second > least + 1e-6
    assert best.uniqueness.outcome is Uniqueness.BRANCHES
    assert search.broken(best.weights).max() == 0.0
    assert best.nodes > 1


def test_without_a_ticket_that_binds_the_relaxation_is_the_optimum() -> None:
    best = _search(1e-4).minimum()
    assert best.value == pytest.approx(_least_cost(1e-4)[0], abs=1e-12)
    assert best.uniqueness.outcome.proved


def test_a_ticket_that_no_name_has_room_for_is_infeasible() -> None:
    with pytest.raises(InfeasibleError):
        _search(0.36).minimum()
