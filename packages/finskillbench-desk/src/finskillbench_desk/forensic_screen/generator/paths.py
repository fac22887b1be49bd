"""What nature draws for companies: whether, how and from when they are managed, and their paths of log ratios."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.engines.posterior.model import Model, Prediction
from finskillbench_desk.engines.posterior.posterior import placed
from finskillbench_desk.forensic_screen.dials import QUARTERS


class Paths(NamedTuple):
    """Paths (n, T, R) of log ratios about what is announced; kind, -1 for none, and first managed quarter (n,)."""

    y: Floats
    kind: Integers
    start: Integers

    def at(self, place: int) -> Paths:
        """One company's."""
        which = slice(place, place + 1)
        return Paths(self.y[which], self.kind[which], self.start[which])


def drawn_paths(rng: np.random.Generator, model: Model, prediction: Prediction, acquired: Integers) -> Paths:
    """Companies as the disclosed model has them; `acquired` (n,) is the quarter of an acquisition, -1 for none."""
    n, ratios = len(acquired), len(model.deviation)
    managed = rng.random(n) < model.base_rate
    kind = np.where(managed, rng.choice(len(model.shares), n, p=model.shares), -1)
    start = np.where(managed, rng.integers(QUARTERS - model.starts, QUARTERS, n), -1)
    scale = np.sqrt(1.0 / rng.gamma(model.freedom / 2.0, 2.0 / model.freedom, n))
    noise = rng.standard_normal((n, QUARTERS, ratios))
    push = np.zeros_like(noise)
    freely = rng.standard_normal((n, ratios))
    for place in np.flatnonzero(managed):
        root = np.linalg.cholesky(prediction.covariance[kind[place]])
        shift = prediction.mean[kind[place]] + scale[place] * root @ freely[place]
        push[place] = placed(model.profiles[kind[place]], int(start[place]), QUARTERS)[:, None] * shift
    moves = scale[:, None, None] * (noise @ np.linalg.cholesky(model.sigma).T) + push
    x = np.empty_like(moves)
    x[:, 0] = scale[:, None] * (noise[:, 0] @ np.linalg.cholesky(model.stationary).T)
    for quarter in range(1, QUARTERS):
        x[:, quarter] = model.persistence * x[:, quarter - 1] + moves[:, quarter]
    own = scale[:, None] * model.own * rng.standard_normal((n, ratios))
    change = scale[:, None] * model.acquired * rng.standard_normal((n, ratios))
    later = (acquired[:, None] >= 0) & (np.arange(QUARTERS) >= acquired[:, None])
    return Paths(x + own[:, None, :] + later[:, :, None] * change[:, None, :], kind, start)
