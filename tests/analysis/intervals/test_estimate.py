"""Intervals of groups: against scipy, against CR2 by whole matrices, identities, and what cannot be said."""

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.linalg import fractional_matrix_power
from tests.sampling import examples

from finskillbench.analysis.clusters import Cells, resample
from finskillbench.analysis.intervals import Method, estimate_means
from finskillbench.errors import InternalError

METHODS = [method.value for method in Method]


def frame(seed: int = 0, clusters: int = 14, sub_tasks: int = 3, models: int = 2) -> pl.DataFrame:
    """Differences of clusters of one to nine episodes that span subtasks and models."""
    rng = np.random.default_rng(seed)
    records = []
    for cluster, size in enumerate(rng.integers(1, 10, size=clusters)):
        shared = rng.normal(0.2, 0.2)
        for _ in range(size):
            sub_task = f"s{rng.integers(sub_tasks)}"
            records += [(f"m{m}", sub_task, f"c{cluster}", shared + rng.gamma(1, 0.2)) for m in range(models)]
    return pl.DataFrame(records, schema=["model", "sub_task", "cluster", "difference"], orient="row")


@pytest.mark.parametrize(("method", "name"), [("percentile", "percentile"), ("bca", "BCa")])
@pytest.mark.parametrize("weighting", ["micro", "macro"])
def test_the_bootstrap_is_scipys_within_monte_carlo_error(method, name, weighting) -> None:
    """scipy resamples the clusters' places; ends lie within five standard errors of the difference of two draws."""
    data, draws = frame(seed=3, clusters=30), 4_000
    said = estimate_means(data, method=method, weighting=weighting, resamples=draws).row(0, named=True)
    part = data["sub_task"].cast(pl.Categorical).to_physical().to_numpy() * (weighting == "macro")
    _, member = np.unique(data["cluster"], return_inverse=True)
    counts, sums = np.zeros((2, part.max() + 1, member.max() + 1))
    np.add.at(counts, (part, member), 1.0)
    np.add.at(sums, (part, member), data["difference"].to_numpy())

    def mean(places, axis):
        return (sums[:, places].sum(axis=axis) / counts[:, places].sum(axis=axis)).mean(axis=0)

    theirs = stats.bootstrap(
        (np.arange(30),), mean, n_resamples=draws, method=name, vectorized=True, rng=np.random.default_rng(7)
    )
    spread = np.sort(theirs.bootstrap_distribution)
    places = np.array([0.025, 0.975]) * draws
    step = np.sqrt(0.025 * 0.975 * draws).astype(int)
    density = (spread[(places + step).astype(int)] - spread[(places - step).astype(int)]) / 2
    ends = [said["low"], said["high"]]
    assert np.abs(ends - np.array(theirs.confidence_interval)).max() < 5 * np.sqrt(2) * density.max()
    assert np.abs(ends - np.array(theirs.confidence_interval)).max() < 0.1 * (ends[1] - ends[0])


@pytest.mark.parametrize("turned", [1.0, -1.0])
def test_bca_by_its_definition_on_skewed_values(turned) -> None:
    """Efron (1987) from the same resamples: bias from the share below the mean, acceleration by leaving one out."""
    values = turned * np.random.default_rng(2).exponential(size=15) ** 2
    data = pl.DataFrame({"cluster": np.arange(15), "sub_task": "one", "tokens": values})
    said = estimate_means(data, "tokens", method="bca", resamples=3_000, seed=5).row(0, named=True)
    column = values[None, :]
    (means,) = resample([Cells(np.ones_like(column), column, np.ones(1))], 3_000, 5)
    bias = stats.norm.ppf((np.sum(means < values.mean()) + np.sum(means <= values.mean())) / 6_000)
    without = np.array([np.delete(values, place).mean() for place in range(15)])
    apart = without.mean() - without
    acceleration = (apart**3).sum() / (6 * (apart**2).sum() ** 1.5)
    assert turned * acceleration > 0.05
    shifted = bias + stats.norm.ppf([0.025, 0.975])
    expected = np.quantile(means, stats.norm.cdf(bias + shifted / (1 - acceleration * shifted)))
    assert [said["low"], said["high"]] == pytest.approx(expected.tolist())


@pytest.mark.parametrize("weighting", ["micro", "macro"])
def test_error_and_freedom_are_those_of_whole_matrices(weighting) -> None:
    data = frame(seed=5)
    said = estimate_means(data, weighting=weighting).row(0, named=True)
    design = data.select("sub_task").to_dummies().to_numpy().astype(float)
    y = data["difference"].to_numpy()
    bread = np.linalg.inv(design.T @ design)
    contrast = design.mean(axis=0) if weighting == "micro" else np.full(design.shape[1], 1 / design.shape[1])
    hat = np.eye(data.height) - design @ bread @ design.T
    columns = []
    for name in data["cluster"].unique(maintain_order=True):
        here = np.flatnonzero(data["cluster"] == name)
        adjusted = fractional_matrix_power(hat[np.ix_(here, here)], -0.5) @ design[here] @ bread @ contrast
        columns.append(hat[:, here] @ adjusted)
    scores = np.array(columns)
    covariance = scores @ scores.T
    assert said["mean"] == pytest.approx(contrast @ bread @ design.T @ y)
    assert said["error"] == pytest.approx(np.sqrt(((scores @ y) ** 2).sum()))
    assert said["freedom"] == pytest.approx(np.trace(covariance) ** 2 / (covariance**2).sum())
    half = stats.t.ppf(0.975, said["freedom"]) * said["error"]
    assert (said["low"], said["high"]) == pytest.approx((said["mean"] - half, said["mean"] + half))


@pytest.mark.parametrize("method", METHODS)
def test_a_group_does_not_depend_on_its_neighbours_or_the_order_of_rows(method) -> None:
    data, by = frame(), ["sub_task", "model"]
    every = estimate_means(data, by=by, method=method, resamples=700)
    assert every.select(by).rows() == data.select(by).unique(maintain_order=True).rows()
    for line in every.iter_rows(named=True):
        alone = data.filter(*(pl.col(name) == line[name] for name in by)).sample(fraction=1.0, shuffle=True, seed=1)
        again = estimate_means(alone, by=by, method=method, resamples=700).row(0)
        assert again[:2] == tuple(line.values())[:2]
        assert again[2:] == pytest.approx(tuple(line.values())[2:])


@pytest.mark.parametrize("method", METHODS)
def test_weights_make_no_difference_where_there_is_one_subtask(method) -> None:
    data = frame(sub_tasks=1)
    micro, macro = (estimate_means(data, method=method, weighting=each, resamples=500) for each in ("micro", "macro"))
    assert micro.row(0) == pytest.approx(macro.row(0))


def test_macro_adds_the_variances_of_subtasks_that_share_no_cluster() -> None:
    data = frame(sub_tasks=2).with_columns(cluster=pl.concat_str("sub_task", "cluster"))
    parts, whole = estimate_means(data, by=["sub_task"]), estimate_means(data, weighting="macro").row(0, named=True)
    assert whole["mean"] == pytest.approx(parts["mean"].mean())
    assert whole["error"] == pytest.approx(np.sqrt((parts["error"] ** 2).sum()) / 2)
    # 1 / sum(share²) of clusters of which each part's shares are halved
    assert whole["effective_clusters"] == pytest.approx(4 / (1 / parts["effective_clusters"]).sum())


def test_effective_clusters_by_hand() -> None:
    data = pl.DataFrame({"sub_task": "s", "cluster": ["a"] * 6 + ["b"] * 3 + ["c"], "difference": range(10)})
    line = estimate_means(data).row(0, named=True)
    assert (line["pairs"], line["clusters"], line["effective_clusters"]) == (10, 3, pytest.approx(100 / 46))


def test_bounds_are_those_of_the_column_or_the_given_ones() -> None:
    values = [0.0, 0.1, 0.9, 1.0, 0.5, 1.0]
    data = pl.DataFrame({"sub_task": "s", "cluster": list("aabbcc"), "score": values, "tokens": values})
    free = estimate_means(data, "tokens").row(0, named=True)
    assert free["low"] < 0.0
    assert free["high"] > 1.0
    assert estimate_means(data, "score").select("low", "high").row(0) == (0.0, 1.0)
    assert estimate_means(data, "tokens", bounds=(0.0, 9.0)).select("low", "high").row(0) == (0.0, free["high"])


@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_be_said_is_null(method) -> None:
    few = pl.DataFrame({"sub_task": "s", "cluster": ["a", "a", "b"], "difference": [0.1, 0.2, 0.9]})
    constant = pl.DataFrame({"sub_task": "s", "cluster": list("abcdef"), "difference": 0.5})
    one = few.head(1)
    for data, mean, counts in ((few, 0.4, (3, 2)), (constant, 0.5, (6, 6)), (one, 0.1, (1, 1))):
        line = estimate_means(data, method=method).row(0, named=True)
        assert line["mean"] == pytest.approx(mean)
        assert (line["pairs"], line["clusters"]) == counts
        assert [line[name] for name in ("low", "high", "error", "freedom")] == [None] * 4
    empty = estimate_means(few.clear(), method=method).row(0, named=True)
    assert empty == {**dict.fromkeys(empty), "pairs": 0, "clusters": 0}
    assert estimate_means(few.clear(), by=["sub_task"], method=method).is_empty()


def test_a_group_of_nulls_keeps_its_line() -> None:
    data = frame().with_columns(difference=pl.when(pl.col("model") == "m1").then("difference"))
    absent, there = estimate_means(data, by=["model"]).iter_rows(named=True)
    assert (absent["model"], absent["mean"], absent["pairs"]) == ("m0", None, 0)
    assert there["pairs"] == data.height / 2


@pytest.mark.parametrize("method", METHODS)
def test_a_subtask_of_one_cluster_leaves_the_macro_mean_without_an_interval(method) -> None:
    alone = pl.DataFrame({"model": "m0", "sub_task": "z", "cluster": "z", "difference": [0.3, 0.4]})
    data = pl.concat([frame(), alone])
    assert estimate_means(data, method=method, weighting="macro", resamples=200)["low"].to_list() == [None]
    assert estimate_means(data, method=method, resamples=200)["low"].is_not_null().all()


def test_resamples_without_a_subtask_are_set_aside_and_too_many_of_them_say_nothing() -> None:
    common = [("s", f"c{i}", i / 40) for i in range(20)]
    rare = [("z", f"c{i}", 0.5 + i / 40) for i in range(2)]
    columns = {"schema": ["sub_task", "cluster", "difference"], "orient": "row"}
    lost = estimate_means(pl.DataFrame([*common, *rare], **columns), method="percentile", weighting="macro")
    assert lost["low"].to_list() == [None]  # both clusters of z are missing in (18/20)^20 = 12 % of the resamples
    assert lost["error"].is_not_null().all()
    rare = [("z", f"c{i}", 0.5 + i / 40) for i in range(4)]
    kept = estimate_means(pl.DataFrame([*common, *rare], **columns), method="percentile", weighting="macro").row(
        0, named=True
    )
    assert kept["low"] < kept["mean"] < kept["high"]  # 1.2 % are


VALUES = st.lists(st.tuples(st.sampled_from("st"), st.sampled_from("abcdefgh"), st.floats(-1, 1)), min_size=1)


@settings(max_examples=examples(40))
@example(
    [("s", "a", 1.0), ("s", "c", 0.0), ("t", "a", 1.0), ("t", "b", 0.0)], "t", "micro"
)  # no value is the commonest
@given(VALUES, st.sampled_from(METHODS), st.sampled_from(["micro", "macro"]))
def test_an_interval_turns_with_its_values_and_stays_in_bounds(values, method, weighting) -> None:
    data = pl.DataFrame(values, schema=["sub_task", "cluster", "difference"], orient="row")
    forth = estimate_means(data, method=method, weighting=weighting, resamples=200).row(0, named=True)
    turned = data.with_columns(-pl.col("difference"))
    back = estimate_means(turned, method=method, weighting=weighting, resamples=200).row(0, named=True)
    assert back["mean"] == pytest.approx(-forth["mean"])
    assert (forth["low"] is None) == (back["low"] is None)
    if forth["low"] is not None:
        assert -1.0 <= forth["low"] <= forth["high"] <= 1.0
        assert (back["low"], back["high"]) == pytest.approx((-forth["high"], -forth["low"]), abs=1e-9)
    assert 1.0 - 1e-9 <= forth["effective_clusters"] <= forth["clusters"] + 1e-9


def test_groups_are_not_told_apart_by_a_column_of_the_result() -> None:
    with pytest.raises(InternalError, match="'mean'"):
        estimate_means(frame().with_columns(mean=1.0), by=["mean"])


def test_t_covers_where_few_clusters_are_alike_and_the_others_do_not() -> None:
    """500 draws of 8 clusters of 1 to 9 episodes, 85 % of the variance shared; benchmarks/intervals.py has more."""
    rng = np.random.default_rng(4)
    member = np.repeat(np.arange(4_000), rng.integers(1, 10, size=4_000))
    values = rng.normal(0.2, 0.15 * 0.85**0.5, 4_000)[member] + rng.normal(0, 0.15 * 0.15**0.5, member.size)
    data = pl.DataFrame({"draw": member // 8, "cluster": member, "sub_task": "one", "difference": values})
    alone = data.with_columns(cluster=pl.int_range(pl.len()))
    held = [
        estimate_means(each, by=["draw"], method=method, resamples=300)
        .select((pl.col("low") <= 0.2) & (pl.col("high") >= 0.2))
        .to_series()
        .mean()
        for each, method in ((data, "t"), (data, "percentile"), (data, "bca"), (alone, "t"))
    ]
    assert 0.925 <= held[0] <= 0.975
    assert max(held[1:3]) < 0.91
    assert held[3] < 0.65


@pytest.mark.parametrize("weighting", ["micro", "macro"])
def test_unlike_means_of_subtasks_are_no_chance(weighting) -> None:
    """300 draws of 20 market dates that three subtasks share, and 30 companies of a fourth: all have fixed means."""
    rng = np.random.default_rng(6)
    dates, companies = np.tile(np.arange(20), 3), 20 + np.repeat(np.arange(30), 4)
    cluster = np.concatenate([dates, companies])
    means = np.repeat([0.9, 0.4, 0.1, -0.2], [20, 20, 20, 120])
    sub_task = np.repeat(["a", "b", "c", "d"], [20, 20, 20, 120])
    truth = means.mean() if weighting == "micro" else 0.3
    draws = [
        pl.DataFrame({"draw": draw, "cluster": cluster, "sub_task": sub_task, "difference": means + noise})
        for draw in range(300)
        for noise in [rng.normal(0, 0.05, 50)[cluster] + rng.normal(0, 0.05, cluster.size)]
    ]
    said = estimate_means(pl.concat(draws), by=["draw"], weighting=weighting)
    assert 0.915 <= said.select((pl.col("low") <= truth) & (pl.col("high") >= truth)).to_series().mean() <= 0.985


def test_subtasks_of_one_cluster_are_taken_together() -> None:
    """One episode of each subtask tells no spread of its own; all of them do, as if they were of one subtask."""
    values = [0.1, 0.5, 0.9, 0.4, 0.2, 0.8]
    names = [f"s{place}" for place in range(6)]
    single = pl.DataFrame({"cluster": names, "sub_task": names, "difference": values})
    as_one = single.with_columns(sub_task=pl.lit("s0"))
    assert estimate_means(single).rows() == estimate_means(as_one).rows()
    assert estimate_means(single)["low"].item() is not None
    assert estimate_means(single, weighting="macro")["low"].item() is None
    # The one that is left joins the subtask of fewest clusters.
    more = [("d0", "x"), ("d1", "x"), ("d2", "x"), ("d0", "y"), ("d1", "y"), ("d3", "y"), ("d4", "y"), ("d9", "z")]
    data = pl.DataFrame(more, schema=["cluster", "sub_task"], orient="row")
    data = data.with_columns(difference=pl.Series([0.1, 0.4, 0.2, 0.9, 0.7, 0.8, 0.6, 0.3]))
    joined = data.with_columns(pl.col("sub_task").replace({"z": "x"}))
    assert estimate_means(data).drop("mean").rows() == estimate_means(joined).drop("mean").rows()
