"""What the house discloses of a screening world as numbers, and how archived cases predict a new one.

Every log ratio, freed of its industry's path, season, growth and announced changes, follows y_t = m + x_t with
x_t = persistence * x_{t-1} + e_t, e_t ~ N(shift * profile_t, v * sigma) across ratios, where sigma is the same for all
companies, v is the company's own volatility with v ~ inverse gamma(freedom/2, freedom/2), and its own level is
m ~ N(0, v * own^2). An acquisition adds N(0, v * acquired^2) to the level from its quarter on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The disclosed numbers, R ratios and K kinds.

    Attributes
    ----------
    persistence, deviation, own, acquired, growth, lease : (R,) per log ratio; `deviation` of innovations.
    correlation : (R, R) of the innovations.
    freedom : degrees of freedom of the companies' volatilities.
    shares : (K,) share of each kind among managed companies.
    profiles : (K, J) multiples of the shift in the quarters from the start on, 0 where a kind has run out.
    spread : standard deviation of a case's shift about its kind's mean, in units of `deviation`, per ratio.
    prior : standard deviation of a kind's mean shift before the archive, in the same unit.
    base_rate : share of managed companies.
    starts : number of quarters, the last ones, in which management may have begun, all equally likely.
    """

    persistence: Floats
    deviation: Floats
    own: Floats
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
        """Covariance (R, R) of the innovations of a company of volatility 1."""
        return self.correlation * np.outer(self.deviation, self.deviation)

    @property
    def stationary(self) -> Floats:
        """Covariance (R, R) of the deviations from a company's level in any one quarter."""
        return self.sigma / (1.0 - np.outer(self.persistence, self.persistence))


class Prediction(NamedTuple):
    """The shift of a new case of each kind: means (K, R), covariances (K, R, R) for a company of volatility 1."""

    mean: Floats
    covariance: Floats


def predicted(model: Model, innovations: Floats, kinds: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Prediction:
    """What qualifying archived cases say of a new one: normal mean with a normal prior, variances known.

    A case's own shift is measured by least squares on its profile, with error covariance correlation / sum of squares
    of the profile; the kind's mean has the posterior of a normal mean, and a new case scatters about it by `spread`.

    Parameters
    ----------
    innovations : (C, J, R) from the first managed quarter on, in units of `deviation`.
    kinds : (C,) which kind each case is.
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
