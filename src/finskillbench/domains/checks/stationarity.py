"""Whether a point is the optimum of a convex program, shown from its gradients alone.

No solver, no stored multiplier and no formulation is used: a caller writes the limits that hold at the point, with
their slacks and gradients, and the multipliers are found here by nonnegative least squares. What they leave is turned
into a bound on how much better any other point can be, so that nothing rests on how well they were found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_NEAR = 1e-4
"""A limit with more slack than this is taken to hold no multiplier."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits h(x) <= 0 at a point: their slacks -h (m,) and gradients (m, n); of equalities the gradients alone (k, n).

    Each h is convex, so that a'(y - x) <= slack for every point y that keeps it, a its gradient at x.
    """

    slacks: Floats
    gradients: Floats
    equalities: Floats


def stacked(parts: Sequence[tuple[Floats, Floats]], equalities: Sequence[Floats]) -> Limits:
    """Limits put together from parts of slacks (m,) and gradients (m, n)."""
    width = equalities[0].shape[1]
    return Limits(
        np.concatenate([slacks for slacks, _ in parts]),
        np.vstack([gradients.reshape(-1, width) for _, gradients in parts]),
        np.vstack(equalities),
    )


def possible_gain(gradient: Floats, limits: Limits, reach: float) -> float:
    """By how much, at most, another point that keeps the limits can lie below this one.

    With multipliers m >= 0 and r = gradient + sum m a + sum k e, every such y has
    f(y) >= f(x) + gradient'(y - x) >= f(x) - |r|_max ||y - x||_1 - sum m slack.

    Parameters
    ----------
    gradient : (n,) of the convex objective at the point.
    limits : those that hold at the point; more slack than rounding weighs on the result.
    reach : the largest ||y - x||_1 of two points that keep the limits.
    """
    near = limits.slacks < _NEAR
    slacks = np.maximum(limits.slacks[near], 0.0)
    columns = np.vstack([limits.gradients[near], limits.equalities, -limits.equalities]).T
    # The weight of a slack beside the residual lets a multiplier go to limits that really hold.
    system = np.vstack([columns, np.concatenate([slacks, np.zeros(2 * len(limits.equalities))])[None, :]])
    scale = np.linalg.norm(system, axis=0)
    scale[scale == 0] = 1.0
    # Imported here: it takes 0.3 s, which a build need not pay.
    import scipy.optimize as _optimize

    optimize: Any = _optimize  # SciPy comes without types
    multipliers, _ = optimize.nnls(system / scale, np.concatenate([-gradient, [0.0]]), maxiter=50 * system.shape[1])
    multipliers = multipliers / scale
    residual = gradient + columns @ multipliers
    return float(np.abs(residual).max() * reach + multipliers[: len(slacks)] @ slacks)
