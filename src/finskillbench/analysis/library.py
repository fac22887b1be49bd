"""Use of skills in libraries: precision and recall of what was loaded and run, and what is left of gains.

Relevant packages are those of the episode's domain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from finskillbench.analysis.inference import proportions
from finskillbench.analysis.results import CURATED, Results, distinct_values
from finskillbench.domains import domain as registered
from finskillbench.domains import domains
from finskillbench.harness.conditions import LIBRARY_PREFIX, arm_of, package_names

DISTRACTORS, DISCOVERY = "distractors", "discovery_tokens"
"""Optional row columns: source of the distractors, and estimated tokens of the listing and of irrelevant loads."""
_GROUP = ("model", "harness", "condition")


def library_sizes(results: Results) -> dict[str, int]:
    """Return the listed packages of `curated` and of each library condition, ascending; empty without a library."""
    sizes = {name: arm_of(name).library for name in results.conditions if name.startswith(LIBRARY_PREFIX)}
    if sizes and CURATED in results.conditions:
        suite = registered(distinct_values(results.rows, "domain")[0]).suite
        sizes[CURATED] = len({name for each in domains() if each.suite == suite for name in package_names(each.name)})
    return dict(sorted(sizes.items(), key=lambda pair: pair[1]))


def precision_and_recall(results: Results, by: Sequence[str] = _GROUP) -> pl.DataFrame:
    """Estimate the shares of loaded and of run packages that are relevant, and of relevant ones loaded and run.

    Rows in error are left out.

    Returns
    -------
    The columns of `by`, and for each of `loaded_precision`, `loaded_recall`, `ran_precision` and `ran_recall` the share
    with its interval in `NAME_low` and `NAME_high`, as from `proportions`; null without loads or runs.
    """
    needed = {name: list(package_names(name)) for name in distinct_values(results.rows, "domain")}
    packages_run = pl.col("scripts_run").list.eval(pl.element().str.split("/").list.first()).list.unique()
    rows = results.rows.filter(~pl.col("failed")).with_columns(
        loaded="skills_loaded",
        ran=packages_run,
        needed=pl.col("domain").replace_strict(needed, return_dtype=pl.List(pl.String)),
    )
    found = rows.select(by).unique(maintain_order=True)
    for step in ("loaded", "ran"):
        used, wanted = rows.explode(step).drop_nulls(step), rows.explode("needed")
        hits = {
            "precision": used.with_columns(hit=pl.col("needed").list.contains(pl.col(step))),
            "recall": wanted.with_columns(hit=pl.col(step).list.contains(pl.col("needed"))),
        }
        for measure, lines in hits.items():
            name = f"{step}_{measure}"
            shares = proportions(lines, "hit", by).select(
                *by, **{name: "share", f"{name}_low": "low", f"{name}_high": "high"}
            )
            found = found.join(shares, on=by, how="left", maintain_order="left")
    return found


def half_gone(gains: Sequence[tuple[int, float]]) -> float | None:
    """Return the number of packages at which half of the first gain is gone, interpolated in its logarithm.

    None if the gain stays above, or there is no gain at first.

    Parameters
    ----------
    gains : numbers of packages, ascending, and gains over no skills.
    """
    half = gains[0][1] / 2.0
    for (few, before), (many, after) in pairwise(gains):
        if half > 0.0 and after <= half:
            return math.exp(math.log(few) + (before - half) / (before - after) * math.log(many / few))
    return None
