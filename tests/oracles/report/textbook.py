"""Proportions, many tests, repeats and power by their textbook definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from scipy import stats


def wilson(successes: float, trials: float, confidence: float = 0.95) -> tuple[float, float]:
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
    """Smallest effect of one sign that the two-sided t test finds with that power, by bisection."""
    bound = float(stats.t.ppf(1 - alpha / 2, freedom))
    low, high = 0.0, 1e4
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if stats.nct.sf(bound, freedom, middle) >= power else (middle, high)
    return high * error


def needed(effect: float, error: float, freedom: float, clusters: int) -> int:
    """Least number of clusters with that power, one by one: each is like those that were run.

    The variance of a mean is inversely proportional to their number, and so are, of clusters of one size, the degrees
    of freedom plus one.
    """
    number = 3  # of two no interval is said
    while True:
        left = (freedom + 1) * number / clusters - 1
        shift = abs(effect) / (error * (clusters / number) ** 0.5)
        if left > 0 and stats.nct.sf(float(stats.t.ppf(0.975, left)), left, shift) >= 0.8:
            return number
        number += 1
