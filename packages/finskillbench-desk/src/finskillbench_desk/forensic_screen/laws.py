"""Laws by which the companies of a case manage their accounts, and by which archived cases were labelled.

A law is drawn for each case from one of eight structures with wide ranges of parameters. Agents are not given the law.
Every adjusted log ratio follows y_t = m + x_t with x_t = persistence * x_{t-1} + e_t (`RatioModel`), unless the company
manages its accounts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.scoring.values import is_array
from finskillbench_desk.engines.posterior.model import RatioModel
from finskillbench_desk.forensic_screen.difficulty import (
    ACQUIRED,
    INDUSTRIES,
    KINDS,
    LEVEL_DEVIATION,
    MEASURES,
    RATIOS,
    WINDOW,
)

Form = Literal["growing", "year_end", "growth", "reversing", "step", "size", "smoothing"]

BASES = 4
"""Number of bases on which a case of the archive was resolved."""
_LEAST = 0.3
"""Least entry of a kind's direction that counts as a ratio of that kind."""
_DIRECTION_NOISE = 0.3
"""Standard deviation by which a signature's entries differ from the kind's usual direction."""
_SPREAD = (0.16, 0.27)
"""Standard deviation of a case's shift per ratio, as a share of the least strength of the structure."""
_RELATIVE_RATES = np.exp(np.linspace(-1.2, 0.9, len(INDUSTRIES)))
"""Probabilities of management by industry, up to a factor, where they differ."""
_ARCHIVE = (0.9, 1.9)
"""Range of the factors by which traces in the archive are stronger than today's."""
MOST_LATE = 5
"""Greatest number of quarters by which a reported start is late."""


GROWTH_UNIT = 0.03
"""Unit of excess growth: change of log revenue over a quarter."""


class Covariates(NamedTuple):
    """Public facts on which management may depend.

    Attributes
    ----------
    fiscal : (n, T) fiscal quarter, from 0.
    growth : (n, T) change of log revenue less the median of industry and quarter, in units of `GROWTH_UNIT`.
    size : (n,) log of mean revenue, standardised over the companies of the list.
    industry : (n,) index.
    """

    fiscal: Integers
    growth: Floats
    size: Floats
    industry: Integers

    def at(self, which: Integers) -> Covariates:
        """Return the facts of some companies."""
        return Covariates(self.fiscal[which], self.growth[which], self.size[which], self.industry[which])


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Reliability of the archive.

    Attributes
    ----------
    wrong : (BASES,) probability that a case resolved on a basis is reported as another kind.
    confused : (K,) the kind that is reported instead of each kind.
    late : (L,) probabilities that management began 0, 1, ... quarters before its reported first quarter.
    unreported : share of managed companies among those that were examined and cleared.
    """

    wrong: Floats
    confused: Integers
    late: Floats
    unreported: float


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """Law of one case.

    Attributes
    ----------
    form : effect of management on a log ratio from the first managed quarter on: a `growing` deviation of level; a
        deviation in each fiscal fourth quarter (`year_end`); one proportional to the company's `growth`; one that is
        built up for `half` quarters and turned into its opposite for as many (`reversing`); a `step` of the level; one
        that grows and is proportional to the company's standardised log `size`; or, without any shift, innovations of
        the kind's ratios multiplied by `damping` (`smoothing`).
    together : all ratios of a signature move; otherwise one of them, each equally likely.
    either_sign : the opposite of a signature is as likely as the signature.
    separate_volatility : each ratio of a company has a separate volatility, and innovations are not correlated.
    shock, shock_size : probability that a company has one quarter of innovations that are larger by a factor of
        sqrt(1 + shock_size^2), and that size.
    rates : (I,) probability of management by industry.
    signature : (K, R) mean shift in standard deviations of innovations.
    model : parameters of unmanaged ratios, shares of kinds, spread of shifts and number of possible starts.
    archive : (K,) factor of each kind's signature in the archive; the mean is the power of the damping there.
    labels : reliability of the archive.
    """

    form: Form
    together: bool
    either_sign: bool
    separate_volatility: bool
    shock: float
    shock_size: float
    half: int
    damping: float
    rates: Floats
    signature: Floats
    model: RatioModel
    archive: Floats
    labels: Labels

    @property
    def archived(self) -> Law:
        """Return the law of the cases in the archive."""
        damping = self.damping ** float(self.archive.mean())
        return replace(self, signature=self.signature * self.archive[:, None], damping=damping)

    @property
    def touched(self) -> Floats:
        """Return 1 for the ratios (K, R) of each kind, otherwise 0."""
        return (self.signature != 0.0).astype(np.float64)


@dataclass(frozen=True, slots=True)
class _Structure:
    """Structure of laws; pairs are ranges of parameters, drawn uniformly.

    `strength` is the length of a signature, in standard deviations of innovations; the damping of `smoothing`.
    """

    form: Form
    strength: tuple[float, float]
    labels: tuple[Literal["wrong", "late", "unreported"], ...]
    together: bool = True
    either_sign: bool = False
    separate_volatility: bool = False
    shock: tuple[float, float] = (0.0, 0.0)
    by_industry: bool = False
    freedom: tuple[float, float] = (5.0, 12.0)


STRUCTURES: Mapping[str, _Structure] = {
    "growing_signature": _Structure("growing", (1.3, 1.9), ("wrong", "late"), either_sign=True),
    "year_end_signature": _Structure("year_end", (1.2, 1.7), ("wrong", "unreported")),
    "growth_response": _Structure("growth", (0.55, 0.8), ("wrong", "unreported"), by_industry=True),
    "reversing_either_sign": _Structure("reversing", (1.7, 2.3), ("wrong", "late"), either_sign=True),
    "single_ratio_heavy_tails": _Structure(
        "step", (2.8, 3.8), ("wrong",), together=False, separate_volatility=True, by_industry=True, freedom=(3.0, 5.0)
    ),
    "smoothing": _Structure("smoothing", (0.64, 0.75), ("wrong", "late"), by_industry=True),
    "step_among_shocks": _Structure("step", (3.0, 4.0), ("unreported", "late"), either_sign=True, shock=(0.3, 0.6)),
    "size_opposed": _Structure("size", (2.2, 3.2), ("wrong", "unreported"), by_industry=True),
}


def law_json(law: Law) -> dict[str, Any]:
    """Return a law as JSON values."""
    return json.loads(json.dumps(asdict(law), default=np.ndarray.tolist))


def read_law(stored: Mapping[str, Any]) -> Law:
    """Return the law of `law_json`; raise KeyError or TypeError if it is incomplete."""
    parts: dict[str, Any] = {
        "model": RatioModel(**_arrays(stored["model"])),
        "labels": Labels(**_arrays(stored["labels"])),
    }
    return Law(**{**_arrays(stored), **parts})


def _arrays(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.array(value) if is_array(value) else value for name, value in stored.items()}


def draw_law(rng: np.random.Generator, structure: str, scale: float = 1.0) -> Law:
    """Draw the parameters of a structure, with `scale` times its usual strength."""
    ranges = STRUCTURES[structure]
    strength = float(rng.uniform(*ranges.strength))
    smooth = ranges.form == "smoothing"
    strength = 1.0 - (1.0 - strength) * scale if smooth else strength * scale
    directions = np.array([kind.direction for kind in KINDS])
    touched = np.abs(directions) >= _LEAST
    directions = np.where(touched, directions + _DIRECTION_NOISE * rng.standard_normal(directions.shape), 0.0)
    if ranges.together and not smooth:
        signature = strength * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    else:
        signature = np.sign(directions) * (1.0 if smooth else strength)
    rate = float(rng.uniform(0.10, 0.20))
    rates = np.full(len(INDUSTRIES), rate)
    if ranges.by_industry:
        rates = rate * rng.permutation(_RELATIVE_RATES) / _RELATIVE_RATES.mean()
    return Law(
        form=ranges.form,
        together=ranges.together,
        either_sign=ranges.either_sign,
        separate_volatility=ranges.separate_volatility,
        shock=float(rng.uniform(*ranges.shock)),
        shock_size=float(rng.uniform(2.5, 4.0)),
        half=int(rng.integers(2, 5)),
        damping=strength if smooth else 1.0,
        rates=_rounded(rates.tolist(), 3),
        signature=np.round(signature, 3),
        model=_draw_model(rng, ranges),
        archive=np.round(rng.uniform(*_ARCHIVE, len(KINDS)), 2),
        labels=_draw_labels(rng, ranges),
    )


def _draw_model(rng: np.random.Generator, ranges: _Structure) -> RatioModel:
    persistence = _rounded([ratio.persistence + rng.uniform(-0.10, 0.10) for ratio in RATIOS], 2)
    deviation = _rounded([ratio.innovation * np.exp(rng.uniform(-0.3, 0.3)) for ratio in RATIOS], 4)
    common = rng.standard_normal((MEASURES, 3))
    correlation = np.eye(MEASURES) if ranges.separate_volatility else common @ common.T * 0.15 + np.eye(MEASURES)
    root = np.sqrt(np.diag(correlation))
    shares = rng.dirichlet(np.full(len(KINDS), 8.0))
    return RatioModel(
        persistence=persistence,
        deviation=deviation,
        level_deviation=LEVEL_DEVIATION * deviation,
        acquired=ACQUIRED * deviation,
        growth=_rounded([ratio.growth * np.exp(rng.uniform(-0.3, 0.3)) for ratio in RATIOS], 2),
        lease=_rounded([ratio.lease * np.exp(rng.uniform(-0.2, 0.2)) for ratio in RATIOS], 2),
        correlation=np.round(correlation / np.outer(root, root), 2),
        freedom=round(float(rng.uniform(*ranges.freedom)), 1),
        shares=shares,
        profiles=np.zeros((len(KINDS), 1)),
        spread=round(float(rng.uniform(*_SPREAD)) * ranges.strength[0], 2),
        prior=0.0,
        base_rate=0.0,
        starts=WINDOW,
    )


def _draw_labels(rng: np.random.Generator, ranges: _Structure) -> Labels:
    order = rng.permutation(len(KINDS))
    confused = np.empty(len(KINDS), dtype=np.int64)
    confused[order] = np.roll(order, 1)
    wrong = np.full(BASES, 0.15)
    if "wrong" in ranges.labels:
        wrong[rng.permutation(BASES)[:2]] = rng.uniform(0.6, 0.9, 2)
    late = np.array([1.0])
    if "late" in ranges.labels:
        most = int(rng.integers(2, MOST_LATE + 1))
        late = np.append(rng.uniform(0.1, 0.4), np.full(most, 1.0))
        late[1:] *= (1.0 - late[0]) / most
    unreported = float(rng.uniform(0.3, 0.5)) if "unreported" in ranges.labels else 0.0
    return Labels(wrong, confused, late, round(unreported, 2))


def _rounded(values: list[float], digits: int) -> Floats:
    return np.round(np.array(values, dtype=np.float64), digits)
