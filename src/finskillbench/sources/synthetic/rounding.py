"""Drawn numbers on a grid: logarithms and exponentials differ between processors in the last bits only."""

import math

import numpy as np

from finskillbench.arrays import Floats


def on_grid(value: float, places: int, low: float = -math.inf, high: float = math.inf) -> float:
    """A number within limits, rounded as NumPy rounds."""
    within: np.float64 = np.clip(np.float64(value), low, high)
    return float(np.round(within, places))


def rounded(values: Floats, places: int) -> Floats:
    """Every value rounded to so many places."""
    return np.round(values, places)


def thousands(values: Floats) -> Floats:
    """Whole thousands of dollars."""
    return rounded(values, -3)
