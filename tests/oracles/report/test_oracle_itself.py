"""The oracle before it judges: textbook cases, statsmodels, scipy and the paper's own numbers."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint

from . import clustered, episodes, tables, textbook
from .cells import cells
from .rows import Shape, table


def _clustered(seed: int, sizes: tuple[int, ...]) -> list[clustered.Observation]:
    r = Random(seed)
    return [
        (f"{g}", f"{g % 2}", level + r.gauss(0, 1))
        for g, size in enumerate(sizes)
        for level in [r.gauss(0, 1)]
        for _ in range(size)
    ]


def test_equal_clusters_give_the_t_interval_of_their_means_and_the_error_of_statsmodels() -> None:
    observations = [(cluster, "", value) for cluster, _, value in _clustered(1, (4,) * 7)]
    robust = clustered.cr2(observations)
    means = [np.mean([v for c, _, v in observations if c == f"{g}"]) for g in range(7)]
    known = stats.ttest_1samp(means, 0.0).confidence_interval()
    assert robust.freedom == pytest.approx(6)
    assert (robust.low, robust.high) == pytest.approx((known.low, known.high), rel=1e-9)
    values = [v for _, _, v in observations]
    groups = np.array([int(c) for c, _, _ in observations])
    fit = sm.OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert robust.error == pytest.approx(float(fit.bse[0]), rel=1e-9)


def test_cr2_is_unbiased_under_its_working_model_and_loses_freedom_with_unequal_clusters() -> None:
    sizes = (1, 2, 3, 10, 4)
    variances = []
    for seed in range(4000):
        r = Random(seed)
        observations = [(f"{g}", "", r.gauss(0, 1)) for g, size in enumerate(sizes) for _ in range(size)]
        total = sum(v for _, _, v in observations)
        mean, n = total / sum(sizes), sum(sizes)
        # The closed form for a mean: each cluster's summed residual over the root of 1 - size / n.
        sums = [sum(v - mean for c, _, v in observations if c == f"{g}") for g in range(len(sizes))]
        variances.append(sum(s * s / (1 - size / n) for s, size in zip(sums, sizes, strict=True)) / n**2)
    assert np.mean(variances) == pytest.approx(1 / 20, rel=0.03)
    observations = [(f"{g}", "", Random(g).gauss(0, 1) + i) for g, size in enumerate(sizes) for i in range(size)]
    robust = clustered.cr2(observations)
    mean = clustered.pooled(observations)
    sums = [sum(v - mean for c, _, v in observations if c == f"{g}") for g in range(len(sizes))]
    closed = sum(s * s / (1 - size / 20) for s, size in zip(sums, sizes, strict=True)) / 400
    assert robust.error == pytest.approx(math.sqrt(closed), rel=1e-9)
    assert 1 < robust.freedom < 4


def test_macro_of_nested_clusters_adds_the_variances_of_the_subtasks() -> None:
    observations = _clustered(3, (3, 2, 4, 2, 1, 5, 3, 2))
    parts = [clustered.cr2([seen for seen in observations if seen[1] == name]) for name in ("0", "1")]
    robust = clustered.cr2(observations, "macro")
    assert robust.error == pytest.approx(math.hypot(*(part.error for part in parts)) / 2, rel=1e-9)
    assert robust.mean == pytest.approx(clustered.by_subtask(observations))


def test_one_cluster_and_no_spread_have_no_interval() -> None:
    assert clustered.cr2([("a", "x", 0.1), ("a", "x", 0.4)]).low is None
    assert clustered.cr2([("a", "x", 0.5), ("b", "x", 0.5)]).low is None
    assert clustered.cr2([("a", "x", 0.1), ("b", "x", 0.5), ("b", "y", 0.2)], "macro").low is None


def test_the_bootstrap_over_all_resamples_is_that_of_scipy() -> None:
    observations = _clustered(5, (1,) * 7)
    values = [v for _, _, v in observations]
    known = clustered.distribution(observations)
    assert sum(p for _, p in known) == pytest.approx(1)
    assert clustered.at_most(known, math.inf) == pytest.approx(1)
    mean = sum(values) / 7
    left_out = clustered.jackknife(observations)
    levels = clustered.bca_levels(clustered.bias(known, mean), clustered.acceleration(left_out))
    for method, wanted in (("percentile", (0.025, 0.975)), ("bca", levels)):
        drawn = stats.bootstrap((values,), np.mean, n_resamples=40_000, method=method, rng=7).confidence_interval
        for bound, level in zip(drawn, wanted, strict=True):
            assert clustered.at_most(known, bound) == pytest.approx(level, abs=0.006), method


@pytest.mark.slow
def test_textbook_figures() -> None:
    for passed, trials in ((0, 5), (1, 3), (7, 12), (9, 9)):
        known = proportion_confint(passed, trials, method="wilson")
        assert textbook.wilson(passed, trials) == pytest.approx(known, abs=1e-12)
    values = [0.01, 0.04, 0.03, 0.005, 0.9, 0.03]
    assert textbook.holm(values) == pytest.approx(multipletests(values, method="holm")[1])
    assert textbook.benjamini_hochberg(values) == pytest.approx(multipletests(values, method="fdr_bh")[1])
    assert textbook.pass_at([True, False, False, True, False], 2) == pytest.approx(1 - 3 / 10)
    assert textbook.pass_hat([True, False, False, True, False], 2) == pytest.approx(1 / 10)
    assert textbook.power_of(textbook.detectable(0.1, 9), 0.1, 9) == pytest.approx(0.8, abs=1e-4)
    # statsmodels' power of the one-sample t test, of 12 observations with a standard deviation of 1.
    alone = TTestPower().solve_power(nobs=12, alpha=0.05, power=0.8)
    assert textbook.detectable(1 / math.sqrt(12), 11) == pytest.approx(alone, rel=1e-4)
    assert textbook.needed(alone * 1.001, 1 / math.sqrt(5), 4, 5) == 12
    observed = [("a", "x", 1.0)] * 3 + [("b", "x", 2.0)]
    assert clustered.kish(observed) == pytest.approx(16 / 10)


def test_tables_by_hand() -> None:
    scores = {  # (model, condition, sub_task): scores of the episodes
        ("m", "no_skill"): {"normalization": (0.0, 0.4), "rebalancing": (0.2,)},
        ("m", "curated"): {"normalization": (0.5, 0.5), "rebalancing": (1.0,)},
        ("m", "self_generated"): {"normalization": (0.1, None), "rebalancing": (0.2,)},
    }
    pattern = table(Shape(seed=1))[0]
    rows = [
        pattern
        | {"model": model, "condition": condition, "sub_task": name, "task_id": f"{name}{i}", "cluster": f"{name}{i}"}
        | {"domain": name, "score": score, "status": "error" if score is None else "scored"}
        for (model, condition), of in scores.items()
        for name, values in of.items()
        for i, score in enumerate(values)
    ]
    second = tables.table_2(rows)
    assert second["no_skill"]["mean"] == pytest.approx(0.2)
    assert second["curated"]["delta"] == pytest.approx((0.5 + 0.1 + 0.8) / 3)
    assert second["self_generated"] == pytest.approx(
        {"mean": 0.15, "macro": 0.15, "n": 2, "delta": (0.1 + 0.0) / 2, "macro_delta": 0.05, "pairs": 2}
    )
    assert [line["sub_task"] for line in tables.table_4(rows)] == ["rebalancing", "normalization"]
    (line,) = tables.table_5(rows)
    assert (line["no_skill"], line["curated"], line["self_generated"]) == pytest.approx((0.2, 0.75, 0.15))
    assert line["overall"] == pytest.approx((0.2 + 0.75 + 0.15) / 3)
    assert line["delta_curated"] == pytest.approx(0.55)
    assert episodes.coverage(rows) == pytest.approx(8 / 9)
    assert episodes.bounds(rows) == pytest.approx((2.9 / 9, 3.9 / 9))


def test_budget_and_factorial_by_hand() -> None:
    pattern = table(Shape(seed=1))[0] | {"status": "scored"}
    rows = [pattern | {"score": s, "turns": t, "task_id": f"{t}"} for s, t in ((1.0, 2), (0.5, 6), (0.8, 20))]
    assert [episodes.within(rows, "turns", b) for b in (1, 2, 6)] == pytest.approx([0.0, 1 / 3, 0.5])
    # A score earned at t is there for the rest of the way: (1 - t / most) of it.
    assert episodes.area_within(rows, "turns", 10) == pytest.approx((1.0 * 0.8 + 0.5 * 0.4) / 3)
    arms = ("no_skill", "docs_only", "scripts_only", "curated")
    rows = [pattern | {"condition": arm, "score": score} for arm, score in zip(arms, (0.1, 0.2, 0.5, 0.9), strict=True)]
    effects = {name: values[0][2] for name, values in episodes.factorial(cells(rows)).items()}
    assert effects == pytest.approx({"first": 0.25, "second": 0.55, "interaction": 0.3})
