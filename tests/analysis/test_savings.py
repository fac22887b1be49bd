"""Equal scores for less: by hand, what is not reached, and intervals that hold the truth."""

import numpy as np
import pytest
from tests.analysis.scenes import results, row

from finskillbench.analysis.repeats import SpendingMeasure
from finskillbench.analysis.results import Comparison
from finskillbench.analysis.savings import savings

CURATED = Comparison("curated", "no_skill")


def spent(condition: str, task: str, score: float, tokens: int, **more):
    return row(condition, task, score, total_output_tokens=tokens, **more)


def line(*rows, **options):
    return savings(results(*rows), CURATED, **options).row(0, named=True)


def test_by_hand() -> None:
    reference = [
        spent("no_skill", task, 0.5, tokens) for task, tokens in zip("abcd", (4000, 6000, 8000, 90000), strict=True)
    ]
    treated = [
        spent("curated", task, 1.0, tokens) for task, tokens in zip("abcd", (1000, 2000, 3000, 4000), strict=True)
    ]
    found = line(*reference, *treated, share=0.75)
    # 0.375 of the reference's 0.5: its third submission; the treated one's second.
    assert (found["target"], found["reference_budget"], found["treated_budget"], found["times"]) == (
        0.375,
        8000,
        2000,
        4,
    )
    assert (found["pairs"], found["clusters"]) == (4, 4)
    assert line(*reference, *treated, share=1.0)["reference_budget"] == 90000
    back = savings(results(*reference, *treated), Comparison(*CURATED[::-1]), share=0.5).row(0, named=True)
    assert (back["reference_budget"], back["treated_budget"], back["times"]) == (2000, 90000, pytest.approx(2 / 90))


def test_repeats_weigh_as_one_episode() -> None:
    reference = [spent("no_skill", "a", 1.0, 100, run_idx=run) for run in range(3)] + [spent("no_skill", "b", 1.0, 900)]
    treated = [spent("curated", task, 1.0, 50) for task in "ab"]
    found = line(*reference, *treated)
    assert (found["target"], found["reference_budget"], found["pairs"]) == (0.9, 900, 2)


def test_what_is_not_reached_has_no_ratio() -> None:
    reference = [spent("no_skill", task, 1.0, 100) for task in "abcd"]
    found = line(*reference, *(spent("curated", task, 0.5, 10) for task in "abcd"))
    assert (found["target"], found["reference_budget"]) == (0.9, 100)
    assert [found[name] for name in ("treated_budget", "times", "low", "high")] == [None] * 4


def test_where_the_reference_scores_nothing_or_nothing_is_spent_there_is_no_ratio() -> None:
    nothing = line(*(spent(arm, task, float(arm == "curated"), 100) for arm in CURATED for task in "abcd"))
    assert [nothing[name] for name in ("target", "treated_budget", "reference_budget", "times")] == [None] * 4
    free = line(*(spent(arm, task, 1.0, 0) for arm in CURATED for task in "abcd"))
    assert (free["treated_budget"], free["times"], free["low"]) == (0.0, None, None)


def test_only_episodes_of_both_count_and_unknown_spending_has_no_line() -> None:
    reference = [spent("no_skill", task, 1.0, 100) for task in "abcd"]
    found = line(*reference, spent("curated", "a", 1.0, 50), spent("curated", "b", 1.0, 50))
    assert found["pairs"] == 2
    assert savings(results(*reference, spent("curated", "a", 1.0, 50)), CURATED, SpendingMeasure.DOLLARS).is_empty()


def test_one_ratio_everywhere_has_no_interval_and_few_clusters_have_none() -> None:
    alike = [spent(arm, task, 1.0, 100 if arm == "curated" else 300) for arm in CURATED for task in "abcdef"]
    assert [line(*alike)[name] for name in ("times", "low", "high")] == [3.0, None, None]
    few = [*alike, spent("no_skill", "g", 1.0, 900), spent("curated", "g", 1.0, 100)]
    assert [line(*few, share=0.5)[name] for name in ("times", "low", "high")] == [3.0, None, None]
    rng = np.random.default_rng(0)
    two = [
        spent(arm, f"{task}{i}", 1.0, int(rng.integers(9, 99))) for arm in CURATED for task in "ab" for i in range(9)
    ]
    assert line(*two)["low"] is None


def test_the_interval_holds_the_true_ratio() -> None:
    """Spending is log-normal and twice as high without skills, every score 1: 40 draws of 40 clusters."""
    rng = np.random.default_rng(5)
    letters = [chr(0x4E00 + place) for place in range(40)]
    held = 0
    for draw in range(40):
        rows = []
        for letter in letters:
            shared = rng.normal(0, 0.3)
            for arm, level in (("no_skill", np.log(2)), ("curated", 0.0)):
                tokens = np.exp(9 + level + shared + rng.normal(0, 0.3, 2)).astype(int)
                rows += [spent(arm, f"{letter}{i}", 1.0, int(each)) for i, each in enumerate(tokens)]
        found = line(*rows, share=0.5, resamples=300, seed=draw)
        assert found["low"] <= found["times"] <= found["high"]
        held += found["low"] <= 2.0 <= found["high"]
    assert held >= 34
