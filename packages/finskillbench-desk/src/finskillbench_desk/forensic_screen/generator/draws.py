"""Draws made once per world: the disclosed model, industry paths and seasons, and the archive of cases."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.engines.posterior.model import RatioModel
from finskillbench_desk.forensic_screen.difficulty import (
    ACQUIRED,
    AFTER,
    BEFORE,
    CASES,
    FINANCIALS,
    INDUSTRIES,
    KIND_NAMES,
    KINDS,
    LEVEL_DEVIATION,
    MEAN_PRIOR,
    MEASURES,
    NAMES,
    QUARTERS,
    RATIOS,
    WINDOW,
    ScreeningTier,
)

BASES = ("court judgment", "regulator's order", "settlement without findings", "press report")
USABLE = BASES[:2]
"""Bases on which a case counts; on the others its label is the easiest allegation."""
LOG_UNIT = 1e-4
"""Unit of the industry tables: ten-thousandths of a natural logarithm."""
CASE_UNIT = 1e-2
"""Unit of the archive: hundredths of a standard deviation of innovations."""


class Background(NamedTuple):
    """Industry paths (I, T, R) and seasons (I, 4, R) of log ratios, whole numbers of `LOG_UNIT`."""

    paths: Integers
    seasons: Integers


def drawn_model(rng: np.random.Generator, tier: ScreeningTier) -> RatioModel:
    """Draw the disclosed parameters, rounded as printed."""
    persistence = _rounded([ratio.persistence + rng.uniform(-0.08, 0.08) for ratio in RATIOS], 2)
    deviation = _rounded([ratio.innovation * np.exp(rng.uniform(-0.2, 0.2)) for ratio in RATIOS], 4)
    common = rng.standard_normal((MEASURES, 3))
    correlation = common @ common.T * 0.15 + np.eye(MEASURES)
    root = np.sqrt(np.diag(correlation))
    correlation = np.round(correlation / np.outer(root, root), 2)
    profiles = np.zeros((len(KINDS), AFTER))
    for row, kind in enumerate(KINDS):
        chosen = kind.profiles[rng.integers(len(kind.profiles))]
        profiles[row, : len(chosen)] = chosen
    shares = rng.multinomial(50 - 4 * len(KINDS), np.full(len(KINDS), 1 / len(KINDS))) + 4
    return RatioModel(
        persistence=persistence,
        deviation=deviation,
        level_deviation=LEVEL_DEVIATION * deviation,
        acquired=ACQUIRED * deviation,
        growth=_rounded([ratio.growth * np.exp(rng.uniform(-0.2, 0.2)) for ratio in RATIOS], 2),
        lease=_rounded([ratio.lease * np.exp(rng.uniform(-0.2, 0.2)) for ratio in RATIOS], 2),
        correlation=correlation,
        freedom=tier.freedom,
        shares=shares / 50.0,
        profiles=profiles,
        spread=tier.spread,
        prior=MEAN_PRIOR,
        base_rate=float(rng.choice(tier.base_rates)),
        starts=WINDOW,
    )


def drawn_background(rng: np.random.Generator, model: RatioModel) -> Background:
    """Draw slowly moving industry paths about the usual levels, and one seasonal pattern per industry."""
    level = np.log([ratio.level for ratio in RATIOS]) + 0.12 * rng.standard_normal((len(INDUSTRIES), MEASURES))
    steps = rng.standard_normal((len(INDUSTRIES), QUARTERS, MEASURES)) * model.deviation * 0.6
    paths = level[:, None, :] + np.cumsum(steps, axis=1)
    seasons = rng.standard_normal((len(INDUSTRIES), 4, MEASURES)) * [ratio.season for ratio in RATIOS]
    seasons -= seasons.mean(axis=1, keepdims=True)
    return Background(_units(paths, LOG_UNIT), _units(seasons, LOG_UNIT))


def drawn_archive(rng: np.random.Generator, model: RatioModel, tier: ScreeningTier, orderly: bool) -> pl.DataFrame:
    """Draw 300 resolved cases, quarter by quarter about their start.

    Settlements and press reports name another kind than the true one; financial cases move in the opposite direction.
    An
    `orderly` archive has neither.
    """
    kinds = rng.choice(len(KINDS), CASES, p=rng.dirichlet(np.full(len(KINDS), 12.0)))
    unusable = rng.random(CASES) < (0.0 if orderly else tier.unusable)
    financial = unusable & (rng.random(CASES) < 0.35)
    alleged = unusable & ~financial
    mean = _mean_shifts(rng, tier)
    confused = _derangement(rng, len(KINDS))
    done = np.where(alleged, confused[kinds], kinds)
    shift = mean[done] + tier.spread * rng.standard_normal((CASES, MEASURES))
    shift = np.where(financial[:, None], -0.6 * shift, shift)
    noise = rng.standard_normal((CASES, BEFORE + AFTER, MEASURES)) @ np.linalg.cholesky(model.correlation).T
    moves = noise.copy()
    moves[:, BEFORE:] += shift[:, None, :] * model.profiles[done][:, :, None]
    basis = np.where(alleged, rng.integers(2, 4, CASES), rng.integers(0, 2, CASES))
    industry = np.where(financial, len(INDUSTRIES), rng.integers(0, len(INDUSTRIES), CASES))
    rows = BEFORE + AFTER
    names = (*INDUSTRIES, FINANCIALS)
    columns: dict[str, Any] = {
        "case": _repeated([f"A{number:03d}" for number in range(1, CASES + 1)], rows),
        "kind": _repeated([KIND_NAMES[kind] for kind in kinds], rows),
        "basis": _repeated([BASES[number] for number in basis], rows),
        "industry": _repeated([names[number] for number in industry], rows),
        "quarter": np.tile(np.arange(-BEFORE, AFTER, dtype=np.int8), CASES),
    } | {name: _units(moves[:, :, place], CASE_UNIT).astype(np.int16).reshape(-1) for place, name in enumerate(NAMES)}
    return pl.DataFrame(columns)


def _repeated(values: list[str], times: int) -> list[str]:
    return [value for value in values for _ in range(times)]


def _rounded(values: list[float], digits: int) -> Floats:
    return np.round(np.array(values, dtype=np.float64), digits)


def _mean_shifts(rng: np.random.Generator, tier: ScreeningTier) -> Floats:
    directions = np.array([kind.direction for kind in KINDS]) + 0.12 * rng.standard_normal((len(KINDS), MEASURES))
    return tier.size * directions / np.linalg.norm(directions, axis=1, keepdims=True)


def _derangement(rng: np.random.Generator, size: int) -> Integers:
    """Draw one cycle through all kinds, so that none maps to itself."""
    order = rng.permutation(size)
    following = np.empty(size, dtype=np.int64)
    following[order] = np.roll(order, 1)
    return following


def _units(values: Floats, unit: float) -> Integers:
    return np.rint(values / unit).astype(np.int32)
