"""Places where data mislead somebody who has not read the notes: which companies, from when, and what they look like.

A planted place makes an innocent path look managed to whoever leaves the correction out. Its path is drawn again until
it does. That looks only at what an agent can see, so the posterior of what happened is what it was.

What nature draws for companies: whether, how and from when they are managed, and their paths of log ratios.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.engines.posterior.model import Model, Prediction
from finskillbench_desk.engines.posterior.posterior import kind_probabilities, placed
from finskillbench_desk.forensic_screen.dials import MEASURES, QUARTERS, RATIOS
from finskillbench_desk.forensic_screen.generator.draws import LOG_UNIT, Background
from finskillbench_desk.forensic_screen.reading import BALANCE, SLIP, fiscal_quarter


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


LOCAL = ("unit_slip", "restatement", "acquisition", "lease_standard", "fiscal_year", "growth")
PLANTED, ORDERLY = 3, 2
"""How many of the kinds are planted in a case, and of how many there is a look-alike in which all is in order."""
SPURT, SPURT_QUARTERS = 0.15, 7
"""Extra growth of log revenue a quarter, and for how long."""
_CANDIDATES, _TRIES = 64, 12
_INNOCENT, _SUSPECT = 0.2, 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """One place.

    Attributes
    ----------
    kind : one of `LOCAL`.
    company : its number.
    quarter : from which it shows.
    planted : False where everything is in order.
    offset : (T, R) what stands in the log ratios of somebody who leaves the correction out; zero for an acquisition.
    """

    kind: str
    company: int
    quarter: int
    planted: bool
    offset: Floats


def drawn_places(
    rng: np.random.Generator, companies: int, each: int, model: Model, prediction: Prediction, common: CommonParts
) -> list[Place]:
    """Planted and orderly places, `each` companies a kind, no company twice; unlucky quarters come later."""
    kinds = [str(kind) for kind in rng.permutation(LOCAL)]
    chosen = rng.choice(companies, (PLANTED + ORDERLY) * each, replace=False)
    places: list[Place] = []
    for number, company in enumerate(chosen):
        order = number // each
        place = Place(kinds[order], int(company), 0, order < PLANTED, np.zeros((QUARTERS, MEASURES)))
        places.append(moved(rng, place, model, prediction, common))
    return places


@dataclass(frozen=True, slots=True, eq=False)
class CommonParts:
    """What a place's offset is made of beside the model: industries' seasons, each company's industry and year end.

    industry, year_end, new_year_end : (n,); months : (T,) calendar month in which each quarter ends.
    """

    background: Background
    industry: Integers
    year_end: Integers
    new_year_end: Integers
    months: Integers


def moved(rng: np.random.Generator, place: Place, model: Model, prediction: Prediction, common: CommonParts) -> Place:
    """The same place in another quarter of the window, with what it looks like from there."""
    quarter = int(rng.integers(QUARTERS - model.starts, QUARTERS - 3))
    if not place.planted:
        return replace(place, quarter=quarter)
    after = (np.arange(QUARTERS) >= quarter)[:, None]
    offset = np.zeros((QUARTERS, MEASURES))
    if place.kind == "unit_slip":
        offset[quarter] = [
            np.log(SLIP) * ((ratio.numerator in BALANCE) - (ratio.denominator in BALANCE)) for ratio in RATIOS
        ]
    elif place.kind == "restatement":
        kind = int(rng.integers(len(model.shares)))
        push = 1.5 * placed(model.profiles[kind], quarter, QUARTERS)[:, None] * prediction.mean[kind]
        for later in range(quarter, QUARTERS):
            offset[later] = model.persistence * offset[later - 1] + push[later]
    elif place.kind == "lease_standard":
        offset = after * model.lease
    elif place.kind == "fiscal_year":
        season = common.background.seasons[common.industry[place.company]] * LOG_UNIT
        old, new = (
            season[fiscal_quarter(common.months, np.full(QUARTERS, ends[place.company]))]
            for ends in (common.year_end, common.new_year_end)
        )
        offset = after * (new - old)
    elif place.kind == "growth":
        offset = (after & (np.arange(QUARTERS) < quarter + SPURT_QUARTERS)[:, None]) * (SPURT * model.growth)
    return replace(place, quarter=quarter, offset=offset)


def live_path(
    rng: np.random.Generator, place: Place, model: Model, prediction: Prediction, common: CommonParts
) -> tuple[Place, Paths]:
    """The place, perhaps in another quarter, with a path that is innocent and looks managed to whoever falls for it."""
    best: tuple[float, Place, Paths] | None = None
    for _ in range(_TRIES):
        acquired = np.full(_CANDIDATES, place.quarter if place.kind == "acquisition" else -1)
        paths = drawn_paths(rng, model, prediction, acquired)
        clean = kind_probabilities(paths.y, acquired, model, prediction).sum(axis=1)
        taken_in = fallen_probabilities(paths.y + place.offset, model, prediction).sum(axis=1)
        gap = np.where((clean < _INNOCENT) & (taken_in > _SUSPECT), 1.0, taken_in - clean)
        first = int(gap.argmax())
        if best is None or gap[first] > best[0]:
            best = float(gap[first]), place, paths.at(first)
        if best[0] >= 1.0:
            break
        place = moved(rng, place, model, prediction, common)
    assert best is not None
    return best[1], best[2]


def fallen_probabilities(y: Floats, model: Model, prediction: Prediction) -> Floats:
    """What somebody concludes (n, K) who leaves a correction out.

    Such a reader counts in standard deviations of the company's innovations before the window.
    """
    before = y[:, : QUARTERS - model.starts]
    change = before[:, 1:] - model.persistence * before[:, :-1]
    change = change - change.mean(axis=1, keepdims=True)
    squares = np.einsum("ntr,rs,nts->n", change, np.linalg.inv(model.sigma), change, optimize=True)
    volatility = squares / ((change.shape[1] - 1) * change.shape[2])
    return kind_probabilities(
        y / np.sqrt(volatility)[:, None, None], np.full(len(y), -1), replace(model, freedom=1e9), prediction
    )
