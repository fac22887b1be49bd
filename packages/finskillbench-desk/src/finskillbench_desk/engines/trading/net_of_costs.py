"""One trading decision: expected return less risk and costs, under limits.

    maximise  U(w) = m'w − (λ/2) w'Σw − Σ κ_i |w_i − h_i| − Σ γ_i (w_i − h_i)²

over fully invested, long-only w under caps, group bounds and a turnover cap. Figures cover one horizon. At a price of
at least the greatest multiplier, no breach pays (exact penalty; Bertsekas 1999, section 4.3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.engines.optimisation.certified import Certified, certify
from finskillbench.engines.optimisation.formulation import CovarianceRoot, Formulation, FormulationBuilder
from finskillbench.engines.optimisation.program import Cone
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import DimensionError, InputError
from finskillbench.sums import exact_sum

LIMITS = ("fully_invested", "lower_bound", "upper_bound", "group_above", "group_below", "max_turnover")
"""Program blocks that state a limit; the other rows define trades."""


@dataclass(frozen=True)
class TradingProblem:
    """A book of n names in G groups, with the value and cost of trades.

    Attributes
    ----------
    expected, risk : (n,) expected returns and the covariance of returns over the horizon.
    held : (n,) weights before trading, fractions of NAV.
    linear, quadratic : (n,) κ and γ: a trade of size x of NAV costs κx + γx².
    caps, groups : (n,) greatest weights, and groups from 0 to G − 1.
    least, most : (G,) bounds of each group's weight.
    turnover : greatest one-way turnover, Σ|w − h|/2.
    """

    expected: Floats
    risk: RiskModel
    risk_aversion: float
    held: Floats
    linear: Floats
    quadratic: Floats
    caps: Floats
    groups: Integers
    least: Floats
    most: Floats
    turnover: float

    def __post_init__(self) -> None:
        n = self.risk.size
        for name in ("expected", "held", "linear", "quadratic", "caps", "groups"):
            if getattr(self, name).shape != (n,):
                raise DimensionError(f"{name} has shape {getattr(self, name).shape}; give one for each of {n} names")
        if self.least.shape != self.most.shape or self.groups.max() >= len(self.least):
            raise DimensionError("least and most must give one limit for each group")
        if not (self.risk_aversion > 0 and (self.linear >= 0).all() and (self.quadratic >= 0).all()):
            raise InputError("risk_aversion must be positive, and costs must not be negative")

    @cached_property
    def membership(self) -> Floats:
        """(G, n) one where a name belongs to a group."""
        return (np.arange(len(self.least))[:, None] == self.groups[None, :]).astype(np.float64)

    def utility(self, weights: Floats) -> float:
        """Return U(w) for any w, feasible or not."""
        trade = weights - self.held
        gain = float(self.expected @ weights) - self.risk_aversion / 2 * self.risk.variance(weights)
        return gain - float(self.linear @ np.abs(trade)) - float(self.quadratic @ (trade * trade))

    def excesses(self, weights: Floats) -> dict[str, float]:
        """Return by how much of NAV each kind of limit is broken, summed over names or groups."""
        inside = self.membership @ weights
        parts = {
            "fully_invested": abs(float(weights.sum()) - 1.0),
            "lower_bound": float(np.maximum(-weights, 0.0).sum()),
            "upper_bound": float(np.maximum(weights - self.caps, 0.0).sum()),
            "group_above": float(np.maximum(inside - self.most, 0.0).sum()),
            "group_below": float(np.maximum(self.least - inside, 0.0).sum()),
            "max_turnover": float(np.abs(weights - self.held).sum()) / 2 - self.turnover,
        }
        return {name: max(excess, 0.0) for name, excess in parts.items()}

    def penalised(self, weights: Floats, price: float) -> float:
        """Return U(w) less `price` for each unit of NAV by which a limit is broken."""
        return self.utility(weights) - price * exact_sum(self.excesses(weights).values())


def formulate_trades(problem: TradingProblem) -> Formulation:
    """Formulate the minimisation of −U, with blocks named after the limits."""
    n, groups = len(problem.held), len(problem.least)
    builder = FormulationBuilder(np.zeros(n), problem.caps, 1.0)
    weights = builder.weights
    CovarianceRoot(problem.risk, builder).add_variance(problem.risk_aversion / 2)
    builder.add_quadratic(weights, 2 * problem.quadratic)
    builder.add_linear(weights, -problem.expected - 2 * problem.quadratic * problem.held)
    builder.constant += float(problem.quadratic @ problem.held**2)
    builder.objective_curvature = problem.risk_aversion * problem.risk.smallest_eigenvalue
    builder.constrain("fully_invested", Cone.ZERO, np.ones(1), (weights, np.ones((1, n))))
    builder.bound_weights(np.arange(n))
    if groups:
        builder.at_most("group_above", problem.most, (weights, problem.membership))
        builder.at_most("group_below", -problem.least, (weights, -problem.membership))
    bounds = np.maximum(problem.held, np.abs(problem.caps - problem.held))
    trades = builder.add_trades(weights, problem.held, bounds, lambda new: np.abs(new - problem.held))
    builder.add_linear(trades, problem.linear)
    builder.cap_turnover("max_turnover", trades, problem.turnover)
    return builder.formulation()


def optimum(problem: TradingProblem, *, unique: bool = True, polished: bool = True) -> Certified:
    """Return the certified optimum, with `value` −U; raises InfeasibleError or UndecidedError as `certify`."""
    return certify(formulate_trades(problem), unique=unique, polished=polished)


def greatest_multiplier(formulation: Formulation, multipliers: Floats) -> float:
    """Return the least price per unit at which breaking a limit never pays."""
    blocks = [block for block in formulation.program.blocks if block.label in LIMITS]
    return max(float(np.abs(multipliers[block.rows]).max(initial=0.0)) for block in blocks)
