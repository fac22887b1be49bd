"""The covariance panel: Ledoit-Wolf on the trailing 252 sessions at month-ends and risk dates, annualised."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from finskillbench.arrays import Floats
from finskillbench.engines.statistics.covariance import RIDGE, Covariance, ledoit_wolf
from finskillbench.errors import SourceError

WINDOW = 252
LARGE_FACTORS = 20
"""Factors of a universe of more names than the window has sessions.

A sample of 252 sessions has no more than 252 directions, most of them noise at that size, and every optimisation pays
for each. Variances stay those of Ledoit-Wolf.
"""


class CovariancePanel(NamedTuple):
    """A covariance per date, its shrinkage, and the dates that needed a ridge."""

    covariance: Mapping[date, Covariance]
    shrinkage: Mapping[date, float]
    ridged: tuple[date, ...]


def build_covariance(
    universe: tuple[str, ...],
    sessions: tuple[date, ...],
    simple: Floats,
    members: Mapping[int, NDArray[np.intp]],
) -> CovariancePanel:
    """Estimate the covariance of simple returns (T, n) over the 252 sessions up to each of the rows.

    `members` gives the places of the names of each row.

    The factor form is positive semidefinite by construction and positive definite if every specific variance is
    positive; should shrinkage vanish, the ridge 1e-8 (λmin being 0 or more) is added to them. More names than the
    window has sessions are reduced to `LARGE_FACTORS` factors.

    Raises
    ------
    SourceError : a name whose 252 returns are not all there, or too few sessions.
    """
    estimates: dict[date, Covariance] = {}
    shrinkage: dict[date, float] = {}
    ridged: list[date] = []
    for row, places in members.items():
        day = sessions[row]
        if row < WINDOW:
            raise SourceError(
                "prices", f"{row} returns before {day}, the covariance needs {WINDOW}", remedy="add earlier prices"
            )
        window = np.ascontiguousarray(simple[row - WINDOW + 1 : row + 1, places])
        symbols = tuple(map(universe.__getitem__, places))
        missing = np.isnan(window).sum(axis=0)
        if missing.any():
            place = int(np.argmax(missing))
            hole = sessions[row - WINDOW + 1 + int(np.argmax(np.isnan(window[:, place])))]
            raise SourceError(
                f"prices of {symbols[place]}",
                f"{missing[place]} of the {WINDOW} returns up to {day} are missing, the first on {hole}",
                remedy="supply the prices or leave the name out of the universe",
            )
        intensity, estimate = ledoit_wolf(window, symbols)
        if len(symbols) > WINDOW:
            estimate = estimate.reduced(LARGE_FACTORS)
        if estimate.least_eigenvalue_bound() <= 0:
            estimate = replace(estimate, specific=estimate.specific + RIDGE)
            ridged.append(day)
        estimates[day], shrinkage[day] = estimate, intensity
    return CovariancePanel(estimates, shrinkage, tuple(ridged))
