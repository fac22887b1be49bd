"""Disclosed parameters of a screening world, and prediction of a new case from archived ones.

Every adjusted log ratio follows y_t = m + x_t with x_t = persistence * x_{t-1} + e_t and e_t ~ N(shift * profile_t,
v * sigma). A company has the variance factor v ~ inverse gamma(freedom/2, freedom/2) and the level
m ~ N(0, v * level_deviation^2); an acquisition adds N(0, v * acquired^2) to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats


@dataclass(frozen=True, slots=True, eq=False)
class RatioModel:
    """The disclosed parameters, for R ratios and K kinds.

    Attributes
    ----------
    persistence, deviation, level_deviation, acquired, growth, lease : (R,) per log ratio; `deviation` of innovations.
    correlation : (R, R) of the innovations.
    shares : (K,) share of each kind among managed companies.
    profiles : (K, J) multiples of the shift from the start on, 0 after a kind's end.
    spread, prior : deviations of a case's shift about its kind's mean and of that mean, in units of `deviation`.
    starts : number of last quarters in which management may have begun, all equally likely.
    """

    persistence: Floats
    deviation: Floats
    level_deviation: Floats
    acquired: Floats
    growth: Floats
    lease: Floats
    correlation: Floats
    freedom: float
    shares: Floats
    profiles: Floats
    spread: float
    prior: float
    base_rate: float
    starts: int

    @property
    def sigma(self) -> Floats:
        """Covariance (R, R) of the innovations at volatility 1."""
        return self.correlation * np.outer(self.deviation, self.deviation)

    @property
    def stationary(self) -> Floats:
        """Covariance (R, R) of the deviations from a company's level in any one quarter."""
        return self.sigma / (1.0 - np.outer(self.persistence, self.persistence))


class Prediction(NamedTuple):
    """Shift of a new case by kind: means (K, R), covariances (K, R, R) at volatility 1."""

    mean: Floats
    covariance: Floats


def predict_shift(
    model: RatioModel, innovations: Floats, kinds: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> Prediction:
    """Predict a new case from archived ones, whose shifts are measured by least squares on their kind's profile.

    `innovations` (C, J, R) start in the first managed quarter, in units of `deviation`; `kinds` (C,) are indices.
    """
    kinds_known, ratios = len(model.shares), len(model.deviation)
    means, covariances = np.zeros((kinds_known, ratios)), np.zeros((kinds_known, ratios, ratios))
    unit = np.eye(ratios)
    for kind in range(kinds_known):
        profile = model.profiles[kind]
        weight = float(profile @ profile)
        measured = np.einsum("j,cjr->cr", profile, innovations[kinds == kind]) / weight
        precision = np.linalg.inv(model.spread**2 * unit + model.correlation / weight)
        uncertainty = np.linalg.inv(unit / model.prior**2 + len(measured) * precision)
        means[kind] = uncertainty @ precision @ measured.sum(axis=0)
        covariances[kind] = uncertainty + model.spread**2 * unit
    scale = np.outer(model.deviation, model.deviation)
    return Prediction(means * model.deviation, covariances * scale)
