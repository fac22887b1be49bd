"""How often the 95 % interval of a paired difference covers the truth.

    python benchmarks/intervals.py [--draws N]

First by method, number of clusters and how alike episodes of a cluster are (ICC), by simulation; beside them the
interval that takes every episode for a cluster of its own. Then of the headline, whose subtasks are unlike. Then where
successes are rare: exact for single episodes
that succeed or fail (every number of successes is tried and weighed by its probability), by simulation where clusters
share their outcome.
"""

from __future__ import annotations

import argparse
from math import comb

import numpy as np
import polars as pl

from finskillbench.analysis.intervals import Method, Weighting, estimate_means

CLUSTERS = (5, 8, 12, 40, 150)
ALIKE = (0.0, 0.3, 0.85)
TRUTH, DEVIATION = 0.2, 0.15
RESAMPLES = 2_000
COUNTS = (10, 20, 40, 100)
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
DRAWS = 400


def exact(count: int, rate: float) -> tuple[float, float]:
    """Share of cases in which an interval is printed, and in which a printed one covers."""
    printed = covered = 0.0
    for successes in range(count + 1):
        chance = comb(count, successes) * rate**successes * (1 - rate) ** (count - successes)
        interval = interval_of(np.arange(count) < successes, np.arange(count))
        printed += chance * (interval is not None)
        covered += chance * (interval is not None and interval[0] <= rate <= interval[1])
    return printed, covered / printed if printed else float("nan")


def clustered(clusters: int, rate: float) -> tuple[float, float]:
    """The same for clusters of one to nine episodes that succeed together."""
    rng = np.random.default_rng(clusters)
    sizes = rng.integers(1, 10, size=clusters)
    member = np.repeat(np.arange(clusters), sizes)
    intervals = [interval_of((rng.random(clusters) < rate)[member], member) for _ in range(DRAWS)]
    there = [one for one in intervals if one is not None]
    covered = sum(low <= rate <= high for low, high in there)
    return len(there) / DRAWS, covered / len(there) if there else float("nan")


def interval_of(gaps: np.ndarray, member: np.ndarray) -> tuple[float, float] | None:
    """The interval of differences in clusters."""
    found = estimate_means(pl.DataFrame({"cluster": member, "sub_task": "s", "difference": gaps.astype(float)}))
    low, high = found.select("low", "high").row(0)
    return None if low is None else (low, high)


def simulated(clusters: int, alike: float, draws: int, skewed: bool) -> pl.DataFrame:
    """Differences of so many draws: clusters of one to nine episodes, normal or skewed about the truth."""
    rng = np.random.default_rng([clusters, int(100 * alike), skewed])
    sizes = rng.integers(1, 10, size=(draws, clusters)).ravel()

    def noise(share: float, size: int) -> np.ndarray:
        standard = rng.exponential(size=size) - 1.0 if skewed else rng.normal(size=size)
        return DEVIATION * share**0.5 * standard

    member = np.repeat(np.arange(draws * clusters), sizes)
    values = TRUTH + noise(alike, draws * clusters)[member] + noise(1.0 - alike, member.size)
    return pl.DataFrame({"draw": member // clusters, "cluster": member, "sub_task": "s", "difference": values})


def coverage(found: pl.DataFrame, truth: float = TRUTH) -> float:
    """Share of the draws whose interval holds the truth, of those that have one."""
    return float(found.select((pl.col("low") <= truth) & (pl.col("high") >= truth)).to_series().mean())


def by_method(draws: int) -> None:
    """Print the coverage of every method."""
    print(
        f"{'clusters':<10}{'ICC':>6}{'noise':>9}" + "".join(f"{each.value:>12}" for each in Method) + f"{'alone':>12}"
    )
    for clusters in CLUSTERS:
        for alike in ALIKE:
            for skewed in (False, True):
                data = simulated(clusters, alike, draws, skewed)
                every = [
                    coverage(estimate_means(data, by=["draw"], method=each, resamples=RESAMPLES)) for each in Method
                ]
                alone = data.with_columns(cluster=pl.int_range(pl.len()))
                every.append(coverage(estimate_means(alone, by=["draw"])))
                noise = "skewed" if skewed else "normal"
                print(f"{clusters:<10}{alike:>6.2f}{noise:>9}" + "".join(f"{each:>12.3f}" for each in every))


def headline(draws: int) -> None:
    """Print the coverage and the width of a mean over the twelve subtasks of the protocol, whose own means are unlike.

    Five subtasks share twelve market dates, four share forty portfolios, three share sixty companies. Beside it the
    interval of the same mean that takes subtasks as drawn.
    """
    rng = np.random.default_rng(9)
    sizes = np.array([40] * 9 + [100] * 3)
    sub_task = np.repeat(np.arange(12), sizes)
    shared = [np.arange(size) % count for size, count in zip(sizes, [12] * 5 + [40] * 4 + [60] * 3, strict=True)]
    cluster = np.concatenate(shared) + 100 * np.searchsorted([5, 9], sub_task, side="right")
    means = np.linspace(0.9, -0.1, 12)
    print(f"{'headline':<16}{'stratified':>12}{'half width':>12}{'as drawn':>12}{'half width':>12}")
    for weighting in Weighting:
        truth = float(means[sub_task].mean() if weighting is Weighting.MICRO else means.mean())
        data = pl.concat(
            pl.DataFrame(
                {"draw": draw, "cluster": cluster, "sub_task": sub_task, "difference": means[sub_task] + noise}
            )
            for draw in range(draws)
            for noise in [rng.normal(0, 0.1, 400)[cluster] + rng.normal(0, 0.2, cluster.size)]
        )
        cells: list[float] = []
        for each in (data, data.with_columns(sub_task=0)) if weighting is Weighting.MICRO else (data,):
            found = estimate_means(each, by=["draw"], weighting=weighting)
            cells += [coverage(found, truth), float(found.select((pl.col("high") - pl.col("low")).mean()).item()) / 2]
        print(f"{weighting.value:<16}" + "".join(f"{cell:>12.3f}" for cell in cells))


def main() -> None:
    """Print coverage where an interval is printed, and in brackets how often one is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1_000)
    draws = parser.parse_args().draws
    by_method(draws)
    print()
    headline(draws)
    print()
    print(f"{'':<22}" + "".join(f"{f'rate {rate:.2f}':>14}" for rate in RATES))
    for title, measure in (("single episodes", exact), ("clusters of 1 to 9", clustered)):
        for count in COUNTS:
            cells = (f"{covered:.3f} ({printed:.2f})" for printed, covered in (measure(count, one) for one in RATES))
            print(f"{count:>3} {title:<18}" + "".join(f"{cell:>14}" for cell in cells))


if __name__ == "__main__":
    main()
