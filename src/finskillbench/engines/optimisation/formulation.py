"""Conic formulation of portfolio problems: weights, trades, variance and limits.

Callers add their objective and limits; each limit is a named block of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.program import Coefficients, Cone, ConicProgram, ProgramBuilder
from finskillbench.engines.statistics.risk_model import RiskModel

Fill = Callable[[Floats], Floats]
"""(n,) weights -> the implied values of an auxiliary variable."""


@dataclass(frozen=True)
class Formulation:
    """A conic program with the data to interpret it.

    `curvature` maps a second-order block to a lower bound on the curvature, in the weights, of ½(||s1||² − s0²);
    `objective_curvature` is that of the objective. The uniqueness proof uses both. `indicators` are the holding
    variables in [0, 1], or None.
    """

    program: ConicProgram
    weights: slice
    indicators: slice | None
    objective_curvature: float
    curvature: dict[str, float]
    fills: tuple[tuple[slice, Fill], ...]

    def point(self, weights: Floats) -> Floats:
        """(N,) Point with these weights and their least auxiliary variables."""
        x = np.zeros(len(self.program.linear))
        for place, fill in self.fills:
            x[place] = fill(weights)
        return x


class FormulationBuilder(ProgramBuilder):
    """Builds a program over n weights within (n,) bounds and with gross exposure of at most `gross`."""

    def __init__(self, lower: Floats, upper: Floats, gross: float) -> None:
        super().__init__()
        self.n, self.lower, self.upper, self.gross = len(lower), lower, upper, gross
        self.objective_curvature = 0.0
        self.curvature: dict[str, float] = {}
        self.indicators: slice | None = None
        self._fills: list[tuple[slice, Fill]] = []
        self.weights = self.auxiliary(np.maximum(np.abs(lower), np.abs(upper)), lambda weights: weights)

    def auxiliary(self, bounds: Floats, fill: Fill) -> slice:
        """Add variables that follow from the weights by `fill`."""
        place = self.variables(bounds)
        self._fills.append((place, fill))
        return place

    def at_most(self, label: str, limits: Floats, *coefficients: Coefficients) -> None:
        """Add rows Σ M x[place] <= limits."""
        self.constrain(label, Cone.NONNEGATIVE, limits, *coefficients)

    def bound_weights(self, capped: Integers) -> None:
        """Add all lower bounds, and upper bounds at `capped`; other rows imply the rest."""
        n = self.n
        self.at_most("lower_bound", -self.lower, (self.weights, -np.ones(n)))
        if capped.size == n:
            self.at_most("upper_bound", self.upper, (self.weights, np.ones(n)))
        elif capped.size:
            self.at_most("upper_bound", self.upper[capped], (self.weights, np.eye(n)[capped]))

    def add_trades(self, place: slice, current: Floats, bounds: Floats, fill: Fill) -> slice:
        """Add absolute trades u >= |x − current| of the variables at `place`; half their sum is one-way turnover."""
        ones = np.ones(len(current))
        trades = self.auxiliary(bounds, fill)
        self.at_most("buys", current, (place, ones), (trades, -ones))
        self.at_most("sells", -current, (place, -ones), (trades, -ones))
        return trades

    def add_turnover(self, trades: slice[int, int, Any]) -> None:
        self.add_linear(trades, np.full(trades.stop - trades.start, 0.5))

    def cap_turnover(self, label: str, trades: slice[int, int, Any], cap: float) -> None:
        """Limit one-way turnover to `cap`."""
        self.at_most(label, np.array([cap], dtype=np.float64), (trades, np.full((1, trades.stop - trades.start), 0.5)))

    def add_squared_distance(self, place: slice, anchor: Floats) -> None:
        """Add ||x − anchor||² of the variables at `place` to the objective."""
        self.add_quadratic(place, np.full(len(anchor), 2.0))
        self.add_linear(place, -2 * anchor)
        self.constant += float(anchor @ anchor)

    def cap_norm(self, label: str, cap: float, centre: Floats, *coefficients: Coefficients, curvature: float) -> None:
        """Add ||centre − Σ M x[place]|| <= cap; row offsets count from the head, row 0."""
        self.constrain(label, Cone.SECOND_ORDER, np.concatenate([[cap], centre]), *coefficients)
        self.curvature[label] = curvature

    def cap_square(
        self,
        label: str,
        ends: tuple[float, float],
        count: int,
        slope: tuple[slice, Floats],
        *coefficients: Coefficients,
        curvature: float,
    ) -> None:
        """Add ||y||² <= t for `count` rows y, half the given ones, as ||(2y, t/a − a)|| <= t/a + a.

        `ends` are the constants of t/a + a and t/a − a, `slope` is minus the coefficients of t/a; a² near t scales the
        cone.
        """
        head, tail = ends
        rows = (*coefficients, slope, (*slope, 1 + count))
        self.constrain(label, Cone.SECOND_ORDER, np.concatenate([[head], np.zeros(count), [tail]]), *rows)
        self.curvature[label] = curvature

    def add_indicators(self, labels: tuple[str, str], floor: Floats, ceiling: Floats, fill: Fill) -> slice:
        """Add indicators between `floor` and `ceiling`, each 0 or 1."""
        ones = np.ones(len(floor))
        self.indicators = self.auxiliary(ones, fill)
        self.at_most(labels[0], -floor, (self.indicators, -ones))
        self.at_most(labels[1], ceiling, (self.indicators, ones))
        return self.indicators

    def formulation(self) -> Formulation:
        return Formulation(
            program=self.build(),
            weights=self.weights,
            indicators=self.indicators,
            objective_curvature=self.objective_curvature,
            curvature=self.curvature,
            fills=tuple(self._fills),
        )


class CovarianceRoot:
    """R with Σ = R'R, applied to the weights: dense below n rows, with k factor variables above.

    `rows(scale, skip)` gives the `count` rows scale·R w after `skip` head rows; `factors` are the factor variables or
    None.
    """

    def __init__(self, risk: RiskModel, builder: FormulationBuilder) -> None:
        self._risk, self._builder = risk, builder
        self.factors: slice | None = None
        k = self._factor_count = len(risk.root)
        self.count: int = k
        if not risk.is_dense:
            self.count += risk.size
            # |F w| <= max|F| Σ|w|
            bounds = np.abs(risk.root).max(axis=1) * builder.gross
            self.factors = builder.auxiliary(bounds, lambda weights: risk.root @ weights)
            exposures = (builder.weights, risk.root), (self.factors, -np.ones(k))
            builder.constrain("factor_exposure", Cone.ZERO, np.zeros(k), *exposures)

    def add_variance(self, scale: float) -> None:
        """Add scale·w'Σw to the objective."""
        if self.factors is None:
            self._builder.add_quadratic(self._builder.weights, 2 * scale * self._risk.matrix)
        else:
            self._builder.add_quadratic(self.factors, np.full(self._factor_count, 2 * scale))
            self._builder.add_quadratic(self._builder.weights, 2 * scale * self._risk.diagonal)

    def image(self, weights: Floats) -> Floats:
        exposure = self._risk.root @ weights
        return exposure if self.factors is None else np.concatenate([exposure, np.sqrt(self._risk.diagonal) * weights])

    def rows(self, scale: float, skip: int) -> list[Coefficients]:
        """Return coefficients with `skip` zero rows, then scale·R w."""
        weights = self._builder.weights
        if self.factors is None:
            return [(weights, scale * self._risk.root, skip)]
        k = self._factor_count
        specific = scale * np.sqrt(self._risk.diagonal)
        return [(self.factors, np.full(k, scale), skip), (weights, specific, skip + k)]
