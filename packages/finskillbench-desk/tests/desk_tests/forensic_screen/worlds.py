"""Worlds for the tests of forensic_screen, each drawn once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from finskillbench.arrays import Floats
from finskillbench_desk.engines.posterior.posterior import kind_probabilities
from finskillbench_desk.forensic_screen import procedures
from finskillbench_desk.forensic_screen.generator.world import ScreeningWorld, drawn_world
from finskillbench_desk.forensic_screen.reading import AdjustedRatios, read_adjusted_ratios

QUARTERS = [f"{2014 + number // 4}Q{number % 4 + 1}" for number in range(40)]


@dataclass(frozen=True)
class FullTable:
    """What a table field is at full precision, as far as a second derivation looks at it."""

    frame: pl.DataFrame


@lru_cache(maxsize=8)
def world(tier: str, seed: int) -> ScreeningWorld:
    return drawn_world(np.random.default_rng(seed), tier, QUARTERS)


@lru_cache(maxsize=8)
def panel(tier: str, seed: int) -> AdjustedRatios:
    made = world(tier, seed)
    return read_adjusted_ratios(made.tables, made.model, made.rules)


@lru_cache(maxsize=8)
def posterior(tier: str, seed: int) -> Floats:
    made, seen = world(tier, seed), panel(tier, seed)
    return kind_probabilities(seen.y, seen.acquired, made.model, made.prediction)


def task_input(tier: str, seed: int) -> dict[str, Any]:
    made = world(tier, seed)
    return {name: FullTable(frame) for name, frame in made.tables.items()} | {
        "model": procedures.disclosed(made.model),
        "documents": procedures.documents(made.model, made.rules),
    }
