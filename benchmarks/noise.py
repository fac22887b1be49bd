"""Coverage of intervals of two identical runs, power of sample sizes, and errors of sequential stopping.

    python benchmarks/noise.py [--draws 1000] [--nulls 10000]

Simulated scores are like those of an edition: three subtasks, clusters of one to five episodes that share a part of
their difficulty, episodes that always score 0 (a quarter) or always 1 (a quarter), others with a chance of their own to
score 0, 1 or a part of it, and repeats of each. Exit code 1 if a coverage is outside of 93 to 97 %, a power outside of
74 to 86 %, or a sequential error above 5 %.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl

from finskillbench.analysis.clusters import LEVEL
from finskillbench.analysis.inference import clusters_needed, wilson
from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.noise import difference_noise, log_wealth, repeat_noise, sample_sizes
from finskillbench.reports.compare.noise import make_group, noise_tables
from finskillbench.reports.formats import Format, render

CLUSTERS = (12, 40, 120)
REPEATS = (2, 4)
GAINS = (0.1, 0.2, 0.4)
HORIZON = 300
"""Clusters after which a sequential run ends in any case."""
THRESHOLD = float(np.log(2.0 / (1.0 - LEVEL)))
LARGEST = 5
COVERED = ("interval", "beyond", "range")
"""Figures of `identical` with a nominal coverage of 95 %."""


class Episodes(NamedTuple):
    """(n,) cluster, subtask, and chance of a good answer of each episode."""

    cluster: np.ndarray
    sub_task: np.ndarray
    chance: np.ndarray


def drawn_episodes(rng: np.random.Generator, clusters: int) -> Episodes:
    """Draw episodes: about 30 % score always 0, 25 % always 1."""
    sizes = rng.integers(1, LARGEST + 1, size=clusters)
    cluster = np.repeat(np.arange(clusters), sizes)
    latent = rng.normal(0.0, 1.0, clusters)[cluster] + rng.normal(0.0, 1.5, cluster.size)
    chance = 1.0 / (1.0 + np.exp(-1.5 * latent))
    chance = np.where(chance < 0.15, 0.0, np.where(chance > 0.85, 1.0, chance))
    return Episodes(cluster, rng.integers(3, size=cluster.size), chance)


def played(rng: np.random.Generator, chance: np.ndarray, repeats: int) -> np.ndarray:
    """(n, repeats) Scores: a part of the good answers earns part of the score."""
    good = rng.random((chance.size, repeats)) < chance[:, None]
    part = rng.beta(4.0, 2.0, good.shape)
    partly = (rng.random(good.shape) < 0.3) & (chance < 1.0)[:, None]
    return np.where(good, np.where(partly, part, 1.0), 0.0)


def improved(rng: np.random.Generator, episodes: Episodes, gain: float) -> np.ndarray:
    """Return chances with a skill that turns some failures of each cluster into successes, and few successes back."""
    share = rng.beta(1.0, 1.5, episodes.cluster.max() + 1)[episodes.cluster] * gain * 4.0
    return np.where(rng.random(episodes.chance.size) < share, 0.95, episodes.chance)


def rows_of(episodes: Episodes, scores: np.ndarray, condition: str = "a") -> pl.DataFrame:
    """Rows as in `Results.rows`."""
    count, repeats = scores.shape
    place = np.repeat(np.arange(count), repeats)
    return pl.DataFrame(
        {
            "model": "m",
            "harness": "h",
            "condition": condition,
            "episode": place,
            "sub_task": episodes.sub_task[place],
            "cluster": episodes.cluster[place],
            "run_idx": np.tile(np.arange(repeats), count),
            "score": scores.ravel(),
        }
    )


def paired(episodes: Episodes, a: np.ndarray, b: np.ndarray) -> pl.DataFrame:
    """Pairs of the mean scores of two sides."""
    keys = rows_of(episodes, a[:, :1]).drop("run_idx", "score", "condition")
    return keys.with_columns(difference=b.mean(axis=1) - a.mean(axis=1))


def identical(clusters: int, repeats: int, draws: int) -> dict[str, float]:
    """Return how often intervals hold for two identical runs, and how wide the range of noise is.

    `interval`: the interval of the difference holds 0. `beyond`: the difference is within the range, from repeats of
    the same runs. `range`: the range holds the difference of two further runs.
    """
    rng = np.random.default_rng([clusters, repeats])
    frames: list[pl.DataFrame] = []
    within: list[bool] = []
    later: list[bool] = []
    width: list[float] = []
    for draw in range(draws):
        episodes = drawn_episodes(rng, clusters)
        a, b, c, d = (played(rng, episodes.chance, repeats) for _ in range(4))
        noise = difference_noise(repeat_noise(rows_of(episodes, a)), repeat_noise(rows_of(episodes, b)))
        frames.append(paired(episodes, a, b).with_columns(draw=pl.lit(draw)))
        if noise is not None and noise.half_width is not None:
            within.append(abs(float(b.mean() - a.mean())) <= noise.half_width)
            later.append(abs(float(d.mean() - c.mean())) <= noise.half_width)
            width.append(noise.half_width)
    found = estimate_means(pl.concat(frames), by=["draw"]).drop_nulls("low")
    holds = found.select(((pl.col("low") <= 0.0) & (pl.col("high") >= 0.0)).mean()).item()
    return {
        "interval": float(holds),
        "beyond": float(np.mean(within)),
        "range": float(np.mean(later)),
        "printed": len(within) / draws,
        "+-": float(np.mean(width)),
    }


def power(gain: float, repeats: int, draws: int) -> tuple[float, float, float]:
    """Return the recommended clusters, the power with these, and the true gain; the pilot has 60 clusters."""
    rng = np.random.default_rng([repeats, int(1000 * gain)])

    def one(clusters: int) -> tuple[Episodes, np.ndarray, np.ndarray]:
        episodes = drawn_episodes(rng, clusters)
        treated = improved(rng, episodes, gain)
        return episodes, played(rng, episodes.chance, repeats), played(rng, treated, repeats)

    _, untreated, treated = one(200_000)
    truth = float(treated.mean() - untreated.mean())
    pilots: list[int] = []
    for _ in range(100):
        episodes, a, b = one(60)
        noise = difference_noise(repeat_noise(rows_of(episodes, a)), repeat_noise(rows_of(episodes, b)))
        sizes = sample_sizes(paired(episodes, a, b), truth, noise)
        pilots += [size.clusters for size in sizes if size.repeats == repeats and size.clusters is not None]
    needed = round(float(np.median(pilots)))
    runs = [paired(*one(needed)).with_columns(draw=pl.lit(draw)) for draw in range(draws)]
    low = estimate_means(pl.concat(runs), by=["draw"])["low"]
    return needed, float((low > 0.0).mean() or 0.0), truth


def first_exit(clusters: np.ndarray) -> int | None:
    """Return after how many clusters a run that looks after each one stops; None if never."""
    wealth = np.maximum(log_wealth(clusters), log_wealth(-clusters))
    hits = np.flatnonzero(wealth >= THRESHOLD)
    return int(hits[0]) + 1 if hits.size else None


def cluster_differences(rng: np.random.Generator, clusters: int, gain: float) -> np.ndarray:
    """Mean differences of clusters, one repeat on both sides."""
    episodes = drawn_episodes(rng, clusters)
    treated = improved(rng, episodes, gain) if gain else episodes.chance
    change = (played(rng, treated, 1) - played(rng, episodes.chance, 1))[:, 0]
    return np.bincount(episodes.cluster, change) / np.bincount(episodes.cluster)


NULLS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "identical runs": lambda rng: cluster_differences(rng, HORIZON, 0.0),
    "normal, 0.4": lambda rng: rng.normal(0.0, 0.4, HORIZON).clip(-1.0, 1.0),
    "-1 or 1": lambda rng: rng.choice([-1.0, 1.0], HORIZON),
    "rarely -1": lambda rng: np.where(rng.random(HORIZON) < 0.05, -1.0, 0.05 / 0.95),
}


def stopping(gain: float, draws: int) -> tuple[float, float, float, float, int]:
    """Return the gain, the mean and the median stopping time, the share that stop, and the fixed sample size."""
    rng = np.random.default_rng(int(1000 * gain))
    runs = [cluster_differences(rng, HORIZON, gain) for _ in range(draws)]
    times = [first_exit(run) for run in runs]
    truth = float(np.mean([run.mean() for run in runs]))
    every = np.concatenate(runs)
    fixed = clusters_needed(truth, float(every.std(ddof=1)) / every.size**0.5, every.size - 1.0, every.size)
    stopped = [time or HORIZON for time in times]
    return truth, float(np.mean(stopped)), float(np.median(stopped)), 1.0 - times.count(None) / draws, fixed or 0


def example() -> None:
    """Print what `compare --gain 0.05` prints of 20 clusters with two repeats and a gain."""
    rng = np.random.default_rng(4)
    episodes = drawn_episodes(rng, 20)
    chances = (episodes.chance, improved(rng, episodes, 0.2))
    a, b = (rows_of(episodes, played(rng, chance, 2)) for chance in chances)
    means = [rows.group_by("episode", maintain_order=True).agg(pl.mean("score"))["score"] for rows in (a, b)]
    pairs = a.unique("episode", maintain_order=True).with_columns(difference=means[1] - means[0])
    tables = noise_tables([make_group((), pairs, a, b)], ("runs/a", "runs/b"), (), 0.05)
    print(render(tables, Format.TABLE, 100))


def main() -> None:
    """Print all figures, and compare them with their limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1_000)
    parser.add_argument("--nulls", type=int, default=10_000)
    options = parser.parse_args()
    fails: list[str] = []

    print("Coverage for two identical runs, nominal 0.95")
    print(f"{'clusters':<10}{'repeats':>8}{'interval':>10}{'same runs':>11}{'further runs':>14}{'printed':>9}{'+-':>8}")
    for clusters in CLUSTERS:
        for repeats in REPEATS:
            found = identical(clusters, repeats, options.draws)
            fails += [f"{name}, {clusters} x {repeats}" for name in COVERED if not 0.93 <= found[name] <= 0.97]
            cells = (f"{found[name]:>{size}.3f}" for name, size in zip(found, (10, 11, 14, 9, 8), strict=True))
            print(f"{clusters:<10}{repeats:>8}" + "".join(cells))

    print("\nPower of the recommended sample size, nominal 0.80")
    print(f"{'gain':<8}{'repeats':>8}{'clusters':>10}{'power':>8}")
    for gain in GAINS[:2]:
        for repeats in REPEATS:
            needed, share, truth = power(gain, repeats, options.draws)
            fails += [] if 0.74 <= share <= 0.86 else [f"power, gain {gain}, repeats {repeats}"]
            print(f"{truth:<8.3f}{repeats:>8}{needed:>10.0f}{share:>8.3f}")

    print(f"\nSequential stopping without any difference, a look after each of {HORIZON} clusters, limit 0.05")
    for name, draw in NULLS.items():
        rng = np.random.default_rng(7)
        rate = sum(first_exit(draw(rng)) is not None for _ in range(options.nulls)) / options.nulls
        low, high = wilson(rate, options.nulls) or (0.0, 1.0)
        fails += [f"sequential, {name}"] if rate > 0.05 else []
        print(f"{name:<16}{rate:>8.4f} [{low:.4f}, {high:.4f}]")

    print(f"\nClusters until a sequential run of at most {HORIZON} stops, and the fixed sample size for a known gain")
    print(f"{'gain':<8}{'mean':>8}{'median':>8}{'stopped':>9}{'fixed':>7}{'ratio':>7}")
    for gain in GAINS:
        truth, mean, median, stopped, fixed = stopping(gain, options.draws)
        print(f"{truth:<8.3f}{mean:>8.1f}{median:>8.1f}{stopped:>9.3f}{fixed:>7}{mean / fixed:>7.2f}")
    print()
    example()
    sys.exit("; ".join(fails) or 0)


if __name__ == "__main__":
    main()
