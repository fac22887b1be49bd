"""The modules of research-methods, markets with planted effects and archives with planted traces."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np

from finskillbench_desk.domain import SKILLS

PACKAGE = next(root for root in SKILLS if root.name == "research-methods")
sys.path.append(str(PACKAGE / "scripts"))
panels, features, evidence, effect_search, archives, decisions = (
    import_module(name) for name in ("panels", "features", "evidence", "effect_search", "archives", "decisions")
)
Law = evidence.Law
NAMES, PERIODS, SOURCES = 40, 36, 12


def market_of(seed: int = 1) -> Any:
    """A market of four groups without any effect."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(PERIODS + 1, NAMES, SOURCES)).astype(np.float32)
    residuals = 0.1 * rng.normal(size=(PERIODS, NAMES))
    labels = [f"S{k:02d}" for k in range(SOURCES)]
    return panels.Market(
        residuals, np.full(NAMES, 0.1), values, panels.valid_from([1] * SOURCES, PERIODS), labels,
        np.arange(NAMES) % 4, [f"V{k // 3}" for k in range(SOURCES)],
    )  # fmt: skip


def plant(market: Any, form: str, label: str, names: Any, first: int, last: int, size: float) -> Any:
    """Add an effect of one label to some names in periods first to last, from 1."""
    values, labels = features.feature(market, form)
    added = np.zeros_like(market.residuals)
    added[first - 1 : last] = size * values[first - 1 : last, :, labels.index(label)] * names
    return market.less(-added)


def archive(seed: int = 1, wrong: float = 0.3) -> tuple[Any, ...]:
    """Levels of cases of two kinds with a lasting shift, labels of basis 1 often wrong, starts two periods late."""
    rng = np.random.default_rng(seed)
    count, periods = 150, 24
    kinds = np.repeat([0, 1, 2], 50)
    bases = np.tile([0, 1], 75)
    labels = np.where((bases == 1) & (kinds > 0) & (rng.random(count) < wrong), 3 - kinds, kinds)
    levels, y = np.zeros((count, periods, 3)), np.zeros((count, 3))
    shift = np.array([[0, 0, 0], [0.3, 0.2, 0], [0, -0.2, 0.3]])
    for t in range(periods):
        y = 0.6 * y + 0.1 * rng.normal(size=(count, 3))
        levels[:, t] = y + shift[kinds] * (t >= 14)
    return levels, kinds, labels, bases
