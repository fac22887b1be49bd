"""The bootstrap of a whole report against scipy.stats.bootstrap, and the report itself: 17,820 rows, 324 groups.

    python benchmarks/report.py

Groups are 9 models x 12 subtasks x 3 conditions, and the three conditions pooled; both sides draw clusters. scipy is
given the clusters' sums and counts as paired samples with a vectorised statistic, its fastest way, group by group, and
is timed on every ninth group. The least of three times counts: others may be at work.

The report is what `finskillbench report` writes of these rows, in a process of its own: all tables, then the page with
its figures as SVG and PNG. Rows made here have no digest, which takes their check out of it. Exit code 1 if a
requirement fails.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.rows import synthetic_rows

from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.repeats import SpendingMeasure, area_within, score_within
from finskillbench.analysis.results import Comparison, collect, verdict_coverage
from finskillbench.analysis.savings import savings
from finskillbench.analysis.skills import use_effects

GROUPS = ["model", "sub_task", "condition"]
RESAMPLES, ONE_IN, REPEATS = 10_000, 9, 3
REQUIRED_RATIO, REQUIRED_SECONDS, REQUIRED_MEGABYTES = 5.0, 10.0, 1000.0
REQUIRED_PAGE = 5e6


def ours(episodes: pl.DataFrame, method: str) -> tuple[float, float, int]:
    """Seconds of all groups, of the conditions pooled under both weightings, and how many groups there are."""
    start = time.perf_counter()
    found = estimate_means(episodes, "score", GROUPS, method, resamples=RESAMPLES)
    between = time.perf_counter()
    for weighting in ("micro", "macro"):
        estimate_means(episodes, "score", ["condition"], method, weighting, RESAMPLES)
    return between - start, time.perf_counter() - between, found.height


def theirs(episodes: pl.DataFrame, method: str) -> float:
    """Seconds of a group."""
    sums = episodes.group_by(*GROUPS, "cluster").agg(pl.col("score").sum(), count=pl.len())
    parts = [part for part in sums.partition_by(GROUPS) if part["score"].n_unique() > 1][::ONE_IN]
    start = time.perf_counter()
    for part in parts:
        stats.bootstrap(
            (part["score"].to_numpy(), part["count"].to_numpy()),
            lambda total, count, axis: total.sum(axis=axis) / count.sum(axis=axis),
            n_resamples=RESAMPLES,
            paired=True,
            vectorized=True,
            method={"percentile": "percentile", "bca": "BCa"}[method],
            rng=np.random.default_rng(0),
        )
    return (time.perf_counter() - start) / len(parts)


def main() -> int:
    """Measure, print both sides, and say by the exit code whether the requirements hold."""
    rows = synthetic_rows()
    start = time.perf_counter()
    results = collect(rows)
    episodes = results.episodes
    print(f"{rows.height:,} rows collected in {time.perf_counter() - start:.2f} s")
    good = True
    ours(episodes, "t")  # Polars' first call builds its threads
    print(f"{'interval':<12}{'groups':>8}{'ours':>10}{'scipy':>10}{'ratio':>9}{'pooled':>10}")
    for method in ("t", "percentile", "bca"):
        mine, pooled, count = map(min, zip(*(ours(episodes, method) for _ in range(REPEATS)), strict=True))
        beside = f"{'-':>10}{'-':>9}"
        if method != "t":
            other = min(theirs(episodes, method) for _ in range(REPEATS)) * count
            good &= other / mine >= REQUIRED_RATIO
            beside = f"{other:>8.2f} s{other / mine:>8.1f}x"
        print(f"{method:<12}{count:>8}{mine:>8.2f} s{beside}{pooled:>8.2f} s")
    start = time.perf_counter()
    for measure in SpendingMeasure:
        score_within(results, measure)
        area_within(results, measure)
        savings(results, Comparison("curated", "no_skill"), measure)
    use_effects(results, Comparison("curated", "no_skill"))
    verdict_coverage(results)
    print(f"curves, areas and savings of four budgets, use and coverage: {time.perf_counter() - start:.2f} s")
    good &= written(rows.drop("digest"))
    print(f"required: {REQUIRED_RATIO:.0f}x; both {REQUIRED_SECONDS:.0f} s, {REQUIRED_MEGABYTES:.0f} MB")
    return 0 if good else 1


def written(rows: pl.DataFrame) -> bool:
    """Whether all tables and the page of some rows are written in time and in memory."""
    with tempfile.TemporaryDirectory() as folder:
        path, page = Path(folder) / "rows.parquet", Path(folder) / "page"
        rows.write_parquet(path)
        command = [str(Path(sys.executable).with_name("finskillbench")), "report", str(path)]
        total = 0.0
        for what, options in (("all tables", ["--format", "json", "--out", folder]), ("page", ["--out", str(page)])):
            start = time.perf_counter()
            chosen = options if what == "all tables" else ["--format", "html", *options]
            subprocess.run([*command, *chosen], check=True, capture_output=True)
            seconds = time.perf_counter() - start
            total += seconds
            print(f"{what}: {seconds:.1f} s")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        size = (page / "index.html").stat().st_size
        print(f"both {total:.1f} s, at most {peak:.0f} MB; index.html {size / 1e6:.2f} MB (at most 5)")
    return total <= REQUIRED_SECONDS and peak <= REQUIRED_MEGABYTES and size <= REQUIRED_PAGE


if __name__ == "__main__":
    sys.exit(main())
