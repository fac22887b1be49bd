"""Places: what the episodes tell apart and nothing else."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from tests.small_rows import table

from finskillbench.analysis.ranking import RankRange, paired_differences, rank_ranges
from finskillbench.analysis.results import collect


def results(**scores: list[float]):
    return collect(
        table(
            *(
                (model, "no_skill", "rebalancing", f"r{number}", score, score)
                for model, each in scores.items()
                for number, score in enumerate(each)
            )
        )
    )


def placed(**scores: list[float]) -> dict[str, str]:
    told = paired_differences(results(**scores), "no_skill", list(scores))
    return {place.model: str(place) for place in rank_ranges(list(scores), told)}


def test_what_is_alike_shares_its_places() -> None:
    assert placed(a=[0.5] * 8, b=[0.5] * 8) == {"a": "1-2", "b": "1-2"}


def test_one_alone_is_first() -> None:
    assert placed(a=[0.5, 0.1]) == {"a": "1"}


def test_a_difference_that_never_varies_is_told_by_the_sign_test() -> None:
    """Eight of eight: two-sided 2 / 2^8 = 0.0078; five of five: 2 / 2^5 = 0.0625."""
    assert placed(a=[1.0] * 8, b=[0.0] * 8) == {"a": "1", "b": "2"}
    assert placed(a=[1.0] * 5, b=[0.0] * 5) == {"a": "1-2", "b": "1-2"}
    (p,) = paired_differences(results(a=[1.0] * 8, b=[0.0] * 8), "no_skill", ["a", "b"])["p"]
    assert p == pytest.approx(2 / 2**8)


def test_a_difference_that_varies_is_told_by_the_t_test() -> None:
    """Against a paired t test by hand: one episode in each cluster, so CR2 is the usual standard error."""
    generator = np.random.default_rng(3)
    a, b = generator.random(12), generator.random(12)
    (line,) = paired_differences(results(a=a.tolist(), b=b.tolist()), "no_skill", ["a", "b"]).iter_rows(named=True)
    change = a - b
    assert line["mean"] == pytest.approx(change.mean())
    assert line["error"] == pytest.approx(change.std(ddof=1) / math.sqrt(12))
    from scipy.stats import ttest_rel

    assert line["p"] == pytest.approx(ttest_rel(a, b).pvalue)


def test_the_more_entries_the_more_it_takes() -> None:
    """Six of six, p = 0.031, tells two apart; of three with three such pairs the largest Holm p is 0.094."""
    assert placed(a=[1.0] * 6, b=[0.5] * 6) == {"a": "1", "b": "2"}
    assert placed(a=[1.0] * 6, b=[0.5] * 6, c=[0.0] * 6) == {"a": "1-3", "b": "1-3", "c": "1-3"}


def test_where_mean_and_most_clusters_disagree_nothing_is_told() -> None:
    """One month of 200 episodes for a, twelve of one episode each for b: too little varies for a t test."""
    scores = [("a", month, 1.0 if month == 0 else 0.0) for month in range(13)]
    scores += [("b", month, 0.5) for month in range(13)]
    rows = table(
        *(
            (model, "no_skill", "rebalancing", f"r{month}_{number}", score, score)
            for model, month, score in scores
            for number in range(200 if month == 0 else 1)
        )
    )
    told = paired_differences(
        collect(rows.with_columns(cluster=pl.col("task_id").str.split("_").list.first())), "no_skill", ["a", "b"]
    )
    assert told["mean"].item() > 0.4
    assert [str(place) for place in rank_ranges(["a", "b"], told)] == ["1-2", "1-2"]


def test_pairs_that_never_differ_count_in_the_family() -> None:
    """Seven of seven: 2 / 2^7 = 0.0156, and three pairs with that of a and b, which are the same: Holm's is 0.047."""
    told = paired_differences(results(a=[1.0] * 7, b=[1.0] * 7, c=[0.0] * 7), "no_skill", ["a", "b", "c"])
    assert told["p"].to_list() == [1.0, 2 / 2**7, 2 / 2**7]
    assert told["p_holm"].to_list() == pytest.approx([1.0, 6 / 2**7, 6 / 2**7])


def test_the_middle_may_be_either() -> None:
    said = [("x", "y", 0.5, 0.001), ("x", "m", 0.2, 0.3), ("m", "y", 0.3, 0.2)]
    told = pl.DataFrame(said, schema=["a", "b", "mean", "p_holm"], orient="row")
    assert rank_ranges(["x", "m", "y"], told) == [RankRange("x", 1, 2), RankRange("m", 1, 3), RankRange("y", 2, 3)]
