"""The table: known means, paired intervals, absences and errors shown as what they are."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from finskillbench.analysis.intervals import paired_difference
from finskillbench.analysis.summary import HEADLINE, summary_table
from finskillbench.analysis.text import render_text
from finskillbench.episode import Profile
from finskillbench.errors import InputError

SCORES = pl.Struct({profile.value: pl.Float64 for profile in Profile})


def table(*rows) -> pl.DataFrame:
    """Rows of (model, condition, sub_task, task_id, certified, paper[, status])."""
    records = []
    for model, condition, sub_task, task_id, certified, paper, *status in rows:
        records.append(
            {
                "model": model,
                "condition": condition,
                "sub_task": sub_task,
                "task_id": task_id,
                "cluster": task_id,
                "status": status[0] if status else "scored",
                "scores": {"paper": paper, "strict": paper, "certified": certified},
            }
        )
    schema = {"model": pl.String, "condition": pl.String, "sub_task": pl.String, "task_id": pl.String}
    schema["cluster"] = pl.String
    return pl.DataFrame(records, schema={**schema, "status": pl.String, "scores": SCORES}, orient="row")


def simple(gain=0.5, model="m", count=4) -> list[tuple]:
    return [
        (model, condition, "rebalancing", f"r{i}", 0.1 * i + (gain if condition == "curated" else 0.0), 0.9)
        for condition in ("curated", "no_skill")
        for i in range(count)
    ]


def line_of(summary, sub_task, model="m"):
    return next(line for line in summary.lines if (line.model, line.sub_task) == (model, sub_task))


def test_means_and_a_constant_difference() -> None:
    summary = summary_table(table(*simple()))
    line = line_of(summary, "rebalancing")
    assert summary.conditions == ("no_skill", "curated")
    assert [cell.mean for cell in line.cells] == pytest.approx([0.15, 0.65])
    assert summary.comparisons == (("curated", "no_skill"),)
    (change,) = line.differences
    assert (change.mean, change.pairs) == (pytest.approx(0.5), 4)
    assert change.interval is None  # every pair differs by the same amount: nothing says how far that may be off


def test_skills_for_an_agent_that_programs_are_compared_with_that_agent() -> None:
    gains = {"no_skill": 0.0, "code": 0.1, "code_curated": 0.4}
    rows = [("m", arm, "rebalancing", f"r{i}", 0.1 * i + gain, 0.9) for arm, gain in gains.items() for i in range(4)]
    summary = summary_table(table(*rows))
    assert summary.comparisons == (("code", "no_skill"), ("code_curated", "no_skill"), ("code_curated", "code"))
    changes = [each.mean for each in line_of(summary, "rebalancing").differences if each is not None]
    assert changes == pytest.approx([0.1, 0.4, 0.3])
    assert "code_curated - code" in render_text(summary)
    only = summary_table(table(*(row for row in rows if row[1] != "code")))
    assert only.comparisons == (("code_curated", "no_skill"),)


def test_the_interval_is_the_usual_one_where_every_episode_stands_alone() -> None:
    gaps = np.random.default_rng(1).normal(0.3, 0.2, size=40)
    tasks = [f"t{i}" for i in range(gaps.size)]
    change = paired_difference(dict(zip(tasks, gaps, strict=True)), dict.fromkeys(tasks, 0.0), {t: t for t in tasks})
    assert change is not None
    usual = stats.ttest_1samp(gaps, 0.0).confidence_interval(0.95)
    assert change.interval == pytest.approx((usual.low, usual.high))
    assert (change.mean, change.clusters) == (pytest.approx(gaps.mean()), 40)


def test_the_interval_is_the_one_of_the_cluster_means_where_clusters_are_alike_in_size() -> None:
    means = np.random.default_rng(4).normal(0.1, 0.2, size=6)
    gaps = {f"{cluster}{i}": float(means[cluster]) for cluster in range(6) for i in range(5)}
    change = paired_difference(gaps, dict.fromkeys(gaps, 0.0), {task: task[0] for task in gaps})
    assert change is not None
    usual = stats.ttest_1samp(means, 0.0).confidence_interval(0.95)
    assert change.interval == pytest.approx((usual.low, usual.high))


def test_the_interval_covers_where_clusters_repeat_and_differ_in_size() -> None:
    """95 % of 1,500 draws: clusters of 1 to 9 episodes that share half of the variance; alone they would not do."""
    rng = np.random.default_rng(5)
    sizes = [1, 2, 2, 3, 3, 4, 5, 6, 7, 9]
    member = {f"t{i}": str(c) for i, c in enumerate(np.repeat(np.arange(len(sizes)), sizes))}
    alone = {task: task for task in member}
    held = {"clustered": 0, "alone": 0}
    for _ in range(1_500):
        shared = rng.normal(0, 0.1, size=len(sizes))
        gaps = {task: float(0.2 + shared[int(c)] + rng.normal(0, 0.1)) for task, c in member.items()}
        for name, clusters in (("clustered", member), ("alone", alone)):
            change = paired_difference(gaps, dict.fromkeys(gaps, 0.0), clusters)
            assert change is not None
            assert change.interval is not None
            held[name] += change.interval[0] <= 0.2 <= change.interval[1]
    assert 0.93 <= held["clustered"] / 1_500 <= 0.97
    assert held["alone"] / 1_500 < 0.85


@pytest.mark.parametrize("count", [10, 20, 40])
def test_rare_successes_are_covered_or_have_no_interval(count) -> None:
    """Every number of successes, weighed by its probability: a printed interval misses in at most 7.5 of 100 cases."""
    tasks = [f"t{i}" for i in range(count)]
    alone, nothing = {task: task for task in tasks}, dict.fromkeys(tasks, 0.0)
    intervals = []
    for successes in range(count + 1):
        change = paired_difference({t: float(i < successes) for i, t in enumerate(tasks)}, nothing, alone)
        assert change is not None
        intervals.append(change.interval)
    assert intervals[:5] == [None] * 5
    assert intervals[count // 2] is not None
    for rate in np.linspace(0.01, 0.5, 50):
        chances = stats.binom.pmf(np.arange(count + 1), count, rate)
        missed = [one is not None and not one[0] <= rate <= one[1] for one in intervals]
        assert chances[missed].sum() <= 0.075


SCORED = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1), max_size=8)


@settings(max_examples=50)
@given(SCORED, SCORED)
def test_a_difference_is_antisymmetric_and_lies_in_its_interval(one, other) -> None:
    clusters = {task: str("abcdefgh".index(task) // 2) for task in "abcdefgh"}
    forth, back = paired_difference(one, other, clusters), paired_difference(other, one, clusters)
    if forth is None:
        assert len(one.keys() & other.keys()) < 2
        assert back is None
        return
    assert back is not None
    assert forth.mean == pytest.approx(-back.mean)
    if forth.interval is None:
        assert back.interval is None
        return
    assert forth.interval == pytest.approx((-back.interval[1], -back.interval[0]))
    assert -1.0 <= forth.interval[0] <= forth.mean + 1e-12
    assert forth.mean - 1e-12 <= forth.interval[1] <= 1.0


def test_too_few_clusters_give_no_interval() -> None:
    gaps = {"a1": 0.1, "a2": 0.3, "b1": 0.5}
    change = paired_difference(gaps, dict.fromkeys(gaps, 0.0), {task: task[0] for task in gaps})
    assert change is not None
    assert (change.interval, change.clusters) == (None, 2)


def test_only_pairs_enter_the_difference_and_one_pair_is_not_enough() -> None:
    rows = [r for r in simple() if r[1] == "no_skill" or r[3] == "r3"]
    line = line_of(summary_table(table(*rows)), "rebalancing")
    assert line.cells[1].mean == pytest.approx(0.8)
    assert line.differences == (None,)


def test_repeats_are_averaged_before_episodes_are() -> None:
    rows = [("m", "no_skill", "rebalancing", "a", 1.0, 1.0)] * 3 + [("m", "no_skill", "rebalancing", "b", 0.0, 0.0)]
    cell = line_of(summary_table(table(*rows)), "rebalancing").cells[0]
    assert (cell.mean, cell.episodes) == (0.5, 2)


def test_the_headline_weighs_episodes_and_leaves_infeasibility_out() -> None:
    rows = [
        *simple(gain=0.0),
        *[("m", c, "black_litterman", "b0", 1.0, 1.0) for c in ("no_skill", "curated")],
        *[("m", c, "infeasibility_detection", f"i{i}", 1.0, 1.0) for c in ("no_skill", "curated") for i in range(9)],
    ]
    summary = summary_table(table(*rows))
    headline = line_of(summary, HEADLINE)
    assert headline.cells[0].mean == pytest.approx((0.0 + 0.1 + 0.2 + 0.3 + 1.0) / 5)
    assert headline.cells[0].episodes == 5
    assert summary.lines[-1] is headline
    assert [line.sub_task for line in summary.lines][:3] == [
        "rebalancing",
        "black_litterman",
        "infeasibility_detection",
    ]
    assert "Not in the headline: infeasibility_detection." in summary.notes


def test_errors_are_counted_apart_and_enter_no_mean() -> None:
    rows = [*simple(), ("m", "curated", "rebalancing", "r9", None, None, "error")]
    summary = summary_table(table(*rows))
    cell = line_of(summary, "rebalancing").cells[1]
    assert (cell.mean, cell.episodes, cell.errors) == (pytest.approx(0.65), 4, 1)
    assert "1 of 9 rows ended in an error" in " ".join(summary.notes)
    assert "0.650 (1 err)" in render_text(summary)


def test_a_mean_over_a_part_of_the_episodes_says_so() -> None:
    rows = [row for row in simple() if (row[1], row[3]) != ("curated", "r0")]
    summary = summary_table(table(*rows))
    assert [cell.episodes for cell in line_of(summary, "rebalancing").cells] == [4, 3]
    assert "(n=3)" in render_text(summary)
    assert "(n=" not in render_text(summary_table(table(*simple())))


def test_an_error_row_with_a_stray_score_is_still_no_score() -> None:
    rows = [*simple(), ("m", "curated", "rebalancing", "r9", 0.0, 0.0, "error")]
    assert line_of(summary_table(table(*rows)), "rebalancing").cells[1].episodes == 4


def test_a_condition_that_only_failed_shows_a_dash() -> None:
    rows = [r for r in simple() if r[1] == "no_skill"]
    rows.append(("m", "curated", "rebalancing", "r0", None, None, "error"))
    summary = summary_table(table(*rows))
    assert line_of(summary, "rebalancing").cells[1].mean is None
    assert "- (1 err)  -" in render_text(summary)


def test_a_subtask_without_the_profile_falls_back_and_says_so() -> None:
    rows = [*simple(), ("m", "no_skill", "stress_testing", "s0", None, 0.25)]
    summary = summary_table(table(*rows))
    line = line_of(summary, "stress_testing")
    assert (line.profile, line.cells[0].mean) == ("strict", 0.25)
    assert line_of(summary, HEADLINE).profile == "certified+strict"
    assert "No certified scores for: stress_testing (strict)." in summary.notes
    assert line_of(summary_table(table(*rows), Profile.PAPER), HEADLINE).profile == "paper"


def test_without_a_reference_there_are_no_differences() -> None:
    rows = [r for r in simple() if r[1] == "curated"]
    summary = summary_table(table(*rows))
    assert line_of(summary, "rebalancing").differences == ()
    assert " - no_skill" not in render_text(summary)


def test_skills_of_somebodys_own_are_compared_with_the_curated_ones_too() -> None:
    gains = {"skill:mine": 0.25, "curated": 0.5, "no_skill": 0.0}
    rows = [("m", name, "rebalancing", f"r{i}", 0.1 * i + gain, 0.9) for name, gain in gains.items() for i in range(4)]
    summary = summary_table(table(*rows))
    assert summary.conditions == ("no_skill", "curated", "skill:mine")
    assert summary.comparisons == (
        *(("curated", "no_skill"), ("skill:mine", "no_skill")),
        ("skill:mine", "curated"),
    )
    means = [change.mean for change in line_of(summary, "rebalancing").differences if change is not None]
    assert means == pytest.approx([0.5, 0.25, -0.25])
    header = render_text(summary).splitlines()[2].split("  ")
    assert [title for title in map(str.strip, header) if " - " in title] == [
        *("curated - no_skill", "skill:mine - no_skill", "skill:mine - curated")
    ]
    assert "Differences are against no_skill and curated, paired" in render_text(summary)


def test_a_line_does_not_depend_on_its_neighbours() -> None:
    rng = np.random.default_rng(3)
    rows = [(*row[:4], float(rng.uniform()), 0.0) for row in simple(count=20)]
    alone = line_of(summary_table(table(*rows)), "rebalancing")
    assert line_of(summary_table(table(*simple(model="other"), *rows)), "rebalancing") == alone


def test_baselines_are_labelled_as_programs() -> None:
    text = render_text(summary_table(table(*simple(model="baseline/nop"), *simple(model="provider/model"))))
    assert "baseline/nop (program)" in text
    assert "provider/model (program)" not in text
    assert "not language models" in text


def test_the_rendered_table() -> None:
    assert render_text(summary_table(table(*simple()))).splitlines()[:6] == [
        "Mean score, profile certified",
        "",
        "model  subtask      episodes  no_skill  curated  curated - no_skill",
        "-----  -----------  --------  --------  -------  ------------------",
        "m      rebalancing  4         0.150     0.650    +0.500 -",
        "       headline     4         0.150     0.650    +0.500 -",
    ]


def test_means_alone() -> None:
    text = render_text(summary_table(table(*simple())), differences=False)
    assert "m      rebalancing  4         0.150     0.650" in text.splitlines()


def test_rows_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="'scores' is missing"):
        summary_table(table(*simple()).drop("scores"))
    with pytest.raises(InputError, match="empty"):
        summary_table(table(*simple()).clear())
