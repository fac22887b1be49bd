"""Intervals of a mean whose observations come in clusters, straight from the papers.

Bell & McCaffrey (2002), Imbens & Kolesar (2016): the bias-reduced cluster-robust variance (CR2) with Satterthwaite
degrees of freedom under independent errors of one variance. Davison & Hinkley (1997), Efron (1987): the cluster
bootstrap, here over all resamples with their multinomial probabilities instead of a draw of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from scipy import stats

Observation = tuple[str, str, float]  # cluster, sub_task, value
Statistic = Callable[[Sequence[Observation]], float]


@dataclass(frozen=True)
class Robust:
    """A mean with its CR2 standard error; `low` and `high` are None where no interval can be said."""

    mean: float
    error: float
    freedom: float
    low: float | None
    high: float | None


def pooled(observations: Sequence[Observation]) -> float:
    return sum(value for _, _, value in observations) / len(observations)


def by_subtask(observations: Sequence[Observation]) -> float:
    """Unweighted mean over the subtasks."""
    groups: dict[str, list[float]] = {}
    for _, sub_task, value in observations:
        groups.setdefault(sub_task, []).append(value)
    return sum(sum(group) / len(group) for group in groups.values()) / len(groups)


def strata(observations: Sequence[Observation]) -> dict[str, str]:
    """The stratum of each subtask, named by its first subtask, where episodes weigh alike.

    Subtasks that are one cluster alone are taken together; should that be one cluster still, with the subtask of fewest
    clusters, the first by name among equals.
    """
    clusters: dict[str, set[str]] = {}
    for cluster, sub_task, _ in observations:
        clusters.setdefault(sub_task, set()).add(cluster)
    alone = sorted(name for name, seen in clusters.items() if len(seen) == 1)
    others = sorted((name for name in clusters if name not in alone), key=lambda name: (len(clusters[name]), name))
    if alone and others and len(set.union(*(clusters[name] for name in alone))) == 1:
        alone.append(others[0])
    return {name: alone[0] if name in alone else name for name in clusters}


def post_stratified(observations: Sequence[Observation], shares: dict[str, float], home: dict[str, str]) -> float:
    """The mean of the strata's means, each weighed by the share that was fixed beforehand."""
    groups: dict[str, list[float]] = {}
    for _, sub_task, value in observations:
        groups.setdefault(home[sub_task], []).append(value)
    return sum(shares[name] * sum(group) / len(group) for name, group in groups.items())


def home_of(observations: Sequence[Observation], weighting: str) -> dict[str, str]:
    """The stratum of each subtask; where subtasks weigh alike each is its own."""
    if weighting == "macro":
        return {sub_task: sub_task for _, sub_task, _ in observations}
    return strata(observations)


def statistic_of(observations: Sequence[Observation], weighting: str) -> Statistic:
    """What a bootstrap computes of each resample of these observations."""
    if weighting == "macro":
        return by_subtask
    home = strata(observations)
    count = Counter(home[sub_task] for _, sub_task, _ in observations)
    shares = {name: size / len(observations) for name, size in count.items()}
    return lambda sample: post_stratified(sample, shares, home)


def cr2(observations: Sequence[Observation], weighting: str = "micro", confidence: float = 0.95) -> Robust:
    """The t interval of a regression on one dummy per stratum: a weighted sum of their coefficients.

    `macro` weighs every subtask alike, `micro` every episode.
    """
    y = np.array([value for _, _, value in observations])
    home = home_of(observations, weighting)
    columns = sorted(set(home.values()))
    x = np.array([[float(name == home[sub_task]) for name in columns] for _, sub_task, _ in observations])
    contrast = np.full(len(columns), 1 / len(columns)) if weighting == "macro" else x.mean(axis=0)
    inverse = np.linalg.inv(x.T @ x)
    coefficients = inverse @ x.T @ y
    mean = float(contrast @ coefficients)
    residuals = y - x @ coefficients
    annihilator = np.eye(len(y)) - x @ inverse @ x.T
    variance = 0.0
    vectors = []
    for cluster in sorted({name for name, _, _ in observations}):
        rows = [i for i, (name, _, _) in enumerate(observations) if name == cluster]
        roots, basis = np.linalg.eigh(annihilator[np.ix_(rows, rows)])
        if roots.min() < 1e-9:
            # The cluster alone decides a coefficient: nothing is left to tell how it varies.
            return Robust(mean, math.nan, math.nan, None, None)
        half = basis @ np.diag(roots**-0.5) @ basis.T
        weights = half @ x[rows] @ inverse @ contrast
        variance += float(weights @ residuals[rows]) ** 2
        vectors.append(annihilator[:, rows] @ weights)
    gram = np.array(vectors) @ np.array(vectors).T
    freedom = float(np.trace(gram) ** 2 / np.trace(gram @ gram))
    error = math.sqrt(variance)
    if error < 1e-12:
        return Robust(mean, 0.0, freedom, None, None)
    reach = float(stats.t.ppf(0.5 + confidence / 2, freedom)) * error
    return Robust(mean, error, freedom, mean - reach, mean + reach)


def resamples(
    observations: Sequence[Observation], stratified: bool = False
) -> Iterator[tuple[float, list[Observation]]]:
    """Every resample of as many clusters as there are, with its probability; `stratified` draws within each subtask."""
    strata = sorted({sub_task for _, sub_task, _ in observations}) if stratified else [None]
    partial: list[tuple[float, list[Observation]]] = [(1.0, [])]
    for stratum in strata:
        here = [seen for seen in observations if stratum in (None, seen[1])]
        clusters = sorted({cluster for cluster, _, _ in here})
        members = {cluster: [seen for seen in here if seen[0] == cluster] for cluster in clusters}
        grown = []
        for drawn in combinations_with_replacement(clusters, len(clusters)):
            ways = math.factorial(len(clusters))
            for times in Counter(drawn).values():
                ways //= math.factorial(times)
            sample = [seen for cluster in drawn for seen in members[cluster]]
            grown.append((ways / len(clusters) ** len(clusters), sample))
        partial = [(p * q, first + second) for p, first in partial for q, second in grown]
    yield from partial


Distribution = list[tuple[float, float]]  # value, probability


def distribution(
    observations: Sequence[Observation],
    statistic: Statistic = pooled,
    stratified: bool = False,
    whole: dict[str, str] | None = None,
) -> Distribution:
    """The bootstrap distribution of the statistic, values rounded so that equal ones count as equal.

    With `whole`, given that every stratum was drawn: it says which each subtask is of.
    """
    found: dict[float, float] = {}
    for probability, sample in resamples(observations, stratified):
        if whole and {whole[sub_task] for _, sub_task, _ in sample} != set(whole.values()):
            continue
        value = round(statistic(sample), 12) + 0.0
        found[value] = found.get(value, 0.0) + probability
    total = sum(found.values())
    return sorted((value, probability / total) for value, probability in found.items())


def below(known: Distribution, value: float, slack: float = 1e-9) -> float:
    """Probability strictly below."""
    return sum(p for seen, p in known if seen < value - slack)


def at_most(known: Distribution, value: float, slack: float = 1e-9) -> float:
    """Probability at or below."""
    return sum(p for seen, p in known if seen <= value + slack)


def quantile(known: Distribution, level: float) -> float:
    """Smallest value with at least this much probability at or below it."""
    total = 0.0
    for value, probability in known:
        total += probability
        if total >= level - 1e-12:
            return value
    return known[-1][0]


def jackknife(observations: Sequence[Observation], statistic: Statistic = pooled) -> list[float]:
    """The statistic without each cluster in turn."""
    clusters = sorted({cluster for cluster, _, _ in observations})
    return [statistic([seen for seen in observations if seen[0] != cluster]) for cluster in clusters]


def acceleration(left_out: Sequence[float]) -> float:
    """Efron (1987), eq. 6.6 with the jackknife: sum of cubes over six times the sum of squares to the power 3/2."""
    centre = sum(left_out) / len(left_out)
    squares = sum((centre - value) ** 2 for value in left_out)
    return sum((centre - value) ** 3 for value in left_out) / (6 * squares**1.5)


def bias(known: Distribution, mean: float) -> float:
    """z0, with half of the probability of a tie."""
    return float(stats.norm.ppf((below(known, mean) + at_most(known, mean)) / 2))


def bca_levels(z0: float, a: float, confidence: float = 0.95) -> tuple[float, float]:
    """The two levels at which the bootstrap distribution is read (Efron & Tibshirani 1993, eq. 14.10)."""
    levels = []
    for tail in ((1 - confidence) / 2, (1 + confidence) / 2):
        shifted = z0 + float(stats.norm.ppf(tail))
        levels.append(float(stats.norm.cdf(z0 + shifted / (1 - a * shifted))))
    return levels[0], levels[1]


def kish(observations: Sequence[Observation], weighting: str = "micro") -> float:
    """Number of equal clusters that would weigh the same (Kish 1965): one over the sum of squared shares."""
    subtasks = Counter(sub_task for _, sub_task, _ in observations)
    shares: dict[str, float] = {}
    for cluster, sub_task, _ in observations:
        weight = 1 / len(observations) if weighting == "micro" else 1 / (len(subtasks) * subtasks[sub_task])
        shares[cluster] = shares.get(cluster, 0.0) + weight
    return 1 / sum(share**2 for share in shares.values())
