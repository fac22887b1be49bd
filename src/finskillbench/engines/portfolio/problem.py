"""Portfolio problems: objective, limits, and their arrays.

Definitions (shown to agents by the subtasks): fully invested, Σw = 1; one-way turnover, Σ|w − w0|/2; annualised
tracking error, sqrt((w−b)'Σ(w−b)); active neutrality, |β_f'(w−b)| at most the tolerance; a holding is a weight of at
least `HOLDING_THRESHOLD`; with a least position, weights are 0 or at least that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.engines.statistics.risk_model import RiskModel
from finskillbench.errors import DimensionError, InputError

STUB = HOLDING_THRESHOLD - 1e-4
"""Greatest weight of a non-holding: below the threshold by more than a count's tolerance."""


class Objective(StrEnum):
    """Objectives, each minimised in the form of `PortfolioProblem.value`."""

    MAX_SHARPE = "max_sharpe"
    MIN_VARIANCE = "min_variance"
    MAX_RETURN = "max_return"
    RISK_PARITY = "risk_parity"


@dataclass(frozen=True, slots=True)
class PortfolioLimits:
    """Limits of a mandate, as fractions of NAV; None means no limit.

    `min_position` is the least weight of a held name, `sector_limits` the cap per sector. `max_turnover` is one-way
    from the current portfolio, `max_tracking_error` per year. `neutral_factors` are kept within `neutrality_tolerance`
    (betas).
    """

    long_only: bool = True
    min_weight: float | None = None
    max_weight: float | None = None
    sector_limits: Mapping[str, float] = field(default_factory=dict[str, float])
    min_position: float | None = None
    min_names: int | None = None
    max_names: int | None = None
    max_turnover: float | None = None
    max_tracking_error: float | None = None
    neutral_factors: tuple[str, ...] = ()
    neutrality_tolerance: float = 0.01

    @property
    def decide_names(self) -> bool:
        """True if a limit depends on the set of holdings."""
        return any(limit is not None for limit in (self.min_position, self.min_names, self.max_names))

    @property
    def least_held(self) -> float:
        return max(self.min_position or 0.0, HOLDING_THRESHOLD)

    @property
    def most_not_held(self) -> float:
        return STUB if self.min_position is None else 0.0


@dataclass(frozen=True)
class PortfolioProblem:
    """One optimisation over n tickers.

    Attributes
    ----------
    tickers : n symbols, the order of every array.
    risk : annualised covariance.
    objective, risk_aversion : λ enters max_sharpe only.
    expected_returns : (n,) decimals per year, None if not needed.
    limits : see `PortfolioLimits`.
    sectors : n sector names, empty without sector limits.
    benchmark, current : (n,) weights, None if no limit refers to them.
    exposures : (n, k) betas of `limits.neutral_factors`, or None.
    ceilings : (n,) further upper bounds by name, or None.
    """

    tickers: tuple[str, ...]
    risk: RiskModel
    objective: Objective
    limits: PortfolioLimits
    expected_returns: Floats | None = None
    risk_aversion: float = 1.0
    sectors: tuple[str, ...] = ()
    benchmark: Floats | None = None
    current: Floats | None = None
    exposures: Floats | None = None
    ceilings: Floats | None = None

    def __post_init__(self) -> None:
        n = len(self.tickers)
        if self.risk.size != n:
            raise DimensionError(f"covariance covers {self.risk.size} names, the problem {n}")
        for name in ("expected_returns", "benchmark", "current", "ceilings"):
            array = getattr(self, name)
            if array is not None and array.shape != (n,):
                raise DimensionError(f"{name} has shape {array.shape}; give one number for each of the {n} names")
        if self.limits.sector_limits and len(self.sectors) != n:
            raise DimensionError(
                f"sectors has {len(self.sectors)} entries; sector limits need one for each of {n} names"
            )
        if self.limits.decide_names and self.lower_bounds().min() < 0:
            raise InputError("min_position, min_names and max_names need a long-only portfolio; set long_only")
        if not self.risk_aversion >= 0:
            raise InputError(f"risk_aversion is {self.risk_aversion}; give a number that is not negative")
        if self.exposures is not None and self.exposures.shape != (n, len(self.limits.neutral_factors)):
            raise DimensionError(f"exposures have shape {self.exposures.shape}; give n x neutral factors")

    @property
    def size(self) -> int:
        return len(self.tickers)

    @property
    def inverse_variance(self) -> Floats:
        """(n,) Weights proportional to 1/Σ_ii, the anchor of risk_parity."""
        inverse = 1.0 / self.risk.variances
        return inverse / inverse.sum()

    def value(self, weights: Floats) -> float:
        """Return the objective in its minimisation form (specification: data, Truth).

        max_sharpe: λ w'Σw − μ'w; min_variance: w'Σw; max_return: −μ'w; risk_parity: ||w − w_invvar||² + ½ w'Σw.
        """
        if self.objective is Objective.MAX_RETURN:
            return -float(self.mean @ weights)
        variance = self.risk.variance(weights)
        if self.objective is Objective.MIN_VARIANCE:
            return variance
        if self.objective is Objective.MAX_SHARPE:
            return self.risk_aversion * variance - float(self.mean @ weights)
        distance = weights - self.inverse_variance
        return float(distance @ distance) + 0.5 * variance

    @property
    def mean(self) -> Floats:
        """(n,) Expected returns; raises `DimensionError` if missing."""
        if self.expected_returns is None:
            raise DimensionError(f"objective {self.objective} needs expected_returns")
        return self.expected_returns

    def lower_bounds(self) -> Floats:
        """(n,) Least weights: 0 if long-only, else −1, and `min_weight` if set."""
        floor = 0.0 if self.limits.long_only else -1.0
        if self.limits.min_weight is not None:
            floor = max(floor, self.limits.min_weight)
        return np.full(self.size, floor)

    def upper_bounds(self) -> Floats:
        """(n,) Greatest weights: the cap, else 1 (long-only) or 2 (short sales allowed)."""
        cap = self.limits.max_weight
        ceiling = 1.0 if self.limits.long_only else 2.0
        bound = np.full(self.size, ceiling if cap is None else min(cap, ceiling))
        return bound if self.ceilings is None else np.minimum(bound, self.ceilings)


def require_array(array: Floats | None, name: str) -> Floats:
    """Return the array that a limit needs; raise `DimensionError` if the problem lacks it."""
    if array is None:
        raise DimensionError(f"a limit refers to the {name}, which the problem does not give")
    return array
