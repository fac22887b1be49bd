"""How often the 95 % interval of a paired difference covers the truth, where successes are rare and where they are not.

Exact for single episodes that succeed or fail: every number of successes is tried and weighed by its probability. Where
episodes come in clusters that share their outcome, by simulation.
"""

from __future__ import annotations

from math import comb

import numpy as np

from finskillbench.analysis.intervals import paired_difference

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
    """The interval of differences of one cluster each."""
    scores = {str(place): float(gap) for place, gap in enumerate(gaps)}
    cluster_of = dict(zip(scores, map(str, member), strict=True))
    found = paired_difference(scores, dict.fromkeys(scores, 0.0), cluster_of)
    assert found is not None
    return found.interval


def main() -> None:
    """Print coverage where an interval is printed, and in brackets how often one is."""
    print(f"{'':<22}" + "".join(f"{f'rate {rate:.2f}':>14}" for rate in RATES))
    for title, measure in (("single episodes", exact), ("clusters of 1 to 9", clustered)):
        for count in COUNTS:
            cells = (f"{covered:.3f} ({printed:.2f})" for printed, covered in (measure(count, one) for one in RATES))
            print(f"{count:>3} {title:<18}" + "".join(f"{cell:>14}" for cell in cells))


if __name__ == "__main__":
    main()
