"""Strata by what is reached without skills, and the regression to the mean that they must not show."""

import numpy as np
import polars as pl
import pytest
from tests.analysis.scenes import results, row

from finskillbench.analysis.intervals import estimate_means
from finskillbench.analysis.results import Comparison, by_cell, by_other_half, pairs
from finskillbench.errors import InputError

CURATED = Comparison("curated", "no_skill")


def test_a_cell_is_told_by_its_mean() -> None:
    scores = {"stress_testing": (0.2, 0.28), "risk_identification": (0.5, 1.0), "normalization": (0.25, 0.25)}
    rows = []
    for sub_task, (one, other) in scores.items():
        rows += [
            row("no_skill", f"a{sub_task}", one, sub_task=sub_task),
            row("no_skill", f"b{sub_task}", other, sub_task=sub_task),
        ]
        rows += [row("curated", f"{name}{sub_task}", 1.0, sub_task=sub_task) for name in "ab"]
    found = by_cell(pairs(results(*rows), CURATED))
    told = dict(found.select("sub_task", "stratum").iter_rows())
    assert told == {"stress_testing": "0.00-0.25", "risk_identification": "0.75-1.00", "normalization": "0.25-0.50"}
    assert sorted(found["baseline"].unique()) == pytest.approx([0.24, 0.25, 0.75])
    assert set(by_cell(pairs(results(*rows), CURATED), levels=(0.5,))["stratum"]) == {"0.00-0.50", "0.50-1.00"}


def test_skills_that_change_nothing_gain_nothing_in_any_stratum() -> None:
    """Scores of 0 or 1 by chance alone: sorted by itself the poor seem to gain 0.5, by the other half none."""
    rng = np.random.default_rng(6)
    names = [f"{letter}{number}" for letter in "abcdefghijklmnopqrst" for number in range(20)]
    rows = [
        row(arm, name, float(rng.integers(2)), run_idx=run) for arm in CURATED for name in names for run in range(2)
    ]
    scene = results(*rows)
    naive = pairs(scene, CURATED).with_columns(stratum=pl.col("reference").cast(pl.String))
    assert estimate_means(naive, by=["stratum"]).sort("stratum")["mean"].to_list() == pytest.approx(
        [0.5, 0.0, -0.5], abs=0.1
    )
    honest = estimate_means(by_other_half(scene, CURATED), by=["stratum"]).sort("stratum")
    assert honest["stratum"].to_list() == ["0.00-0.25", "0.75-1.00"]
    assert honest["mean"].to_list() == pytest.approx([0.0, 0.0], abs=0.1)
    assert all(line["low"] < 0 < line["high"] for line in honest.iter_rows(named=True))


def test_halves_by_hand() -> None:
    reference = [row("no_skill", "a", score, run_idx=run) for run, score in enumerate((0.1, 0.6, 0.3, 0.8))]
    lost = [row("no_skill", "b", 0.5), row("no_skill", "b", None, run_idx=1), row("curated", "b", 1.0)]
    found = by_other_half(results(*reference, *lost, row("curated", "a", 0.9)), CURATED).row(0, named=True)
    assert (found["baseline"], found["reference"], found["treated"]) == pytest.approx((0.2, 0.7, 0.9))
    assert (found["difference"], found["stratum"]) == (pytest.approx(0.2), "0.00-0.25")


def test_without_repeats_there_is_no_other_half() -> None:
    with pytest.raises(InputError, match="no repeated episodes under no_skill"):
        by_other_half(results(row("no_skill", "a", 0.5), row("curated", "a", 1.0)), CURATED)
