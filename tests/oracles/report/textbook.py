"""Proportions, many tests, repeats and power by their textbook definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from scipy import stats


def wilson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Roots p of (share - p)^2 = z^2 p (1 - p) / n (Wilson 1927)."""
    z = float(stats.norm.ppf(0.5 + confidence / 2))
    share = successes / trials
    # (1 + z2/n) p^2 - (2 share + z2/n) p + share^2 = 0
    a, b, c = 1 + z * z / trials, -(2 * share + z * z / trials), share * share
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def holm(values: Sequence[float]) -> list[float]:
    """Adjusted p by Holm (1979): for each, the largest of (m - rank) p over those not larger."""
    m = len(values)
    order = sorted(range(m), key=lambda i: values[i])
    adjusted = [0.0] * m
    for place, i in enumerate(order):
        steps = [(m - j) * values[order[j]] for j in range(place + 1)]
        adjusted[i] = min(1.0, max(steps))
    return adjusted


def benjamini_hochberg(values: Sequence[float]) -> list[float]:
    """Adjusted p by Benjamini & Hochberg (1995): for each, the smallest m p / rank over those not smaller."""
    m = len(values)
    order = sorted(range(m), key=lambda i: values[i])
    adjusted = [0.0] * m
    for place, i in enumerate(order):
        adjusted[i] = min(1.0, min(m * values[order[j]] / (j + 1) for j in range(place, m)))
    return adjusted


def pass_at(passed: Sequence[bool], k: int) -> float:
    """Share of the k-subsets of repeats in which at least one passed."""
    subsets = list(combinations(passed, k))
    return sum(any(subset) for subset in subsets) / len(subsets)


def pass_hat(passed: Sequence[bool], k: int) -> float:
    """Share of the k-subsets of repeats in which all passed."""
    subsets = list(combinations(passed, k))
    return sum(all(subset) for subset in subsets) / len(subsets)


def power_of(effect: float, error: float, freedom: float, alpha: float = 0.05) -> float:
    """Power of the two-sided t test for a true effect, from the non-central t distribution."""
    bound = float(stats.t.ppf(1 - alpha / 2, freedom))
    shift = effect / error
    return float(stats.nct.sf(bound, freedom, shift) + stats.nct.cdf(-bound, freedom, shift))


def detectable(error: float, freedom: float, alpha: float = 0.05, power: float = 0.8) -> float:
    """Bloom (1995): smallest effect found with that power, as a multiple of the standard error by t quantiles."""
    return (float(stats.t.ppf(1 - alpha / 2, freedom)) + float(stats.t.ppf(power, freedom))) * error


def detectable_normal(error: float, alpha: float = 0.05, power: float = 0.8) -> float:
    """The same with normal quantiles."""
    return (float(stats.norm.ppf(1 - alpha / 2)) + float(stats.norm.ppf(power))) * error
