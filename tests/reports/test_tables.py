"""Each table on small runs whose figures are worked out by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from tests.small_rows import simple, table

from finskillbench.analysis.results import collect
from finskillbench.episode import Profile
from finskillbench.errors import InputError
from finskillbench.reports.report import report
from finskillbench.reports.tables.base import Estimate
from finskillbench.reports.tables.common import gaps_of
from finskillbench.reports.tables.episodes.conduct import budgets_table, resources_table
from finskillbench.reports.tables.episodes.endings import failures_table
from finskillbench.reports.tables.scores.grouped import (
    domains_table,
    harnesses_table,
    mean_difference,
    pooled_table,
    subtasks_table,
)
from finskillbench.reports.tables.scores.models import models_table
from finskillbench.reports.tables.scores.overview import overview_table

GAINS = (0.1, 0.3, 0.2, 0.4)


def two_models() -> list[tuple]:
    """Four episodes of rebalancing and one of stress testing, each for two models; the second gains nothing."""
    rows = [("baseline/trivial", "no_skill", "rebalancing", "r0", 1.0, 1.0)]
    for place, gain in enumerate(GAINS):
        for model, own in (("a", gain), ("b", 0.0)):
            rows.append((model, "no_skill", "rebalancing", f"r{place}", 0.5, 0.5))
            rows.append((model, "curated", "rebalancing", f"r{place}", 0.5 + own, 0.5))
    rows += [(model, arm, "stress_testing", "s0", 1.0, 1.0) for model in "ab" for arm in ("no_skill", "curated")]
    return rows


def test_pooled_means_and_their_difference() -> None:
    found = pooled_table(collect(table(*two_models())))
    assert found.column("condition") == ("no_skill", "curated")
    assert found.column("episodes") == (10, 10)
    assert found.column("mean") == pytest.approx(((8 * 0.5 + 2) / 10, (8 * 0.5 + 1.0 + 2) / 10))
    assert found.column("macro_mean") == pytest.approx(((0.5 + 1) / 2, (0.5 + 1.0 / 8 + 1) / 2))
    assert found.column("against") == (None, "no_skill")
    assert found.column("pairs") == (None, 10)
    assert found.column("clusters") == (None, 5)
    none, change = found.column("difference")
    assert none is None
    assert isinstance(change, Estimate)
    # Every cluster has one episode for each of the two models: the interval is that of the five cluster means.
    usual = stats.ttest_1samp([gain / 2 for gain in GAINS] + [0.0], 0.0).confidence_interval(0.95)
    assert change == pytest.approx((0.1, usual.low, usual.high))


def test_the_headline_has_one_interval_wherever_it_stands() -> None:
    """That subtasks differ in their means is no chance: no table may take the headline's episodes for one stratum."""
    rng = np.random.default_rng(4)
    rows = [
        ("a", arm, sub_task, f"{sub_task[0]}{number}", base + (gain + 0.1 * rng.uniform()) * (arm == "curated"), None)
        for sub_task, base, gain in (("rebalancing", 0.1, 0.7), ("stress_testing", 0.5, 0.0))
        for number in range(8)
        for arm in ("no_skill", "curated")
    ]
    results = collect(table(*rows))
    _, pooled = pooled_table(results).column("difference")
    shown = overview_table(results)
    assert shown.column("sub_task")[-1] == "headline"
    assert shown.column("curated_minus_no_skill")[-1] == pytest.approx(pooled)
    (line,) = report(table(*rows)).to_polars().filter(sub_task="headline", reference="no_skill").to_dicts()
    assert (line["mean"], line["low"], line["high"]) == pytest.approx(pooled)
    assert pooled.high - pooled.low < 0.1


def test_weighing_subtasks_alike() -> None:
    """The mean of the two subtasks' means, and of their differences; the latter has no interval, of one cluster."""
    found = pooled_table(collect(table(*two_models())))
    assert found.column("macro_difference")[1] == Estimate(pytest.approx(0.125 / 2))


def test_programs_alone_are_told() -> None:
    found = pooled_table(collect(table(("baseline/trivial", "no_skill", "rebalancing", "r0", 1.0, 1.0))))
    assert found.rows == (("no_skill", None, 1, 1.0, None, None, None, None, 1.0, None),)
    assert "baseline/trivial, a program, replaces it" in str(found)


def test_who_is_left_out_is_named() -> None:
    found = pooled_table(collect(table(*two_models()), exclude=["b"]))
    assert found.notes[0] == "Without b."
    assert found.column("mean") == pytest.approx((0.6, 0.8))


def test_domains_and_subtasks_with_the_floor_of_a_program() -> None:
    results = collect(table(*two_models()))
    domains = domains_table(results)
    assert domains.column("domain") == ("portfolio_construction", "risk_management")
    assert domains.column("episodes") == (8, 1 * 2)
    assert domains.column("mean_curated") == pytest.approx((0.625, 1.0))
    assert domains.column("floor") == (1.0, None)
    subtasks = subtasks_table(results)
    assert subtasks.column("sub_task") == ("rebalancing", "stress_testing")
    assert [subtasks.column("curated_minus_no_skill")[i].value for i in (0, 1)] == [pytest.approx(0.125), 0.0]


def test_subtasks_are_sorted_by_what_they_gain_and_the_unknown_is_last() -> None:
    rows = [
        *(("m", arm, "rebalancing", "r0", 0.5, 0.5) for arm in ("no_skill", "curated")),
        *(("m", arm, "normalization", "n0", score, 0.5) for arm, score in (("no_skill", 0.1), ("curated", 0.9))),
        *(("m", arm, "stress_testing", "s0", score, 0.5) for arm, score in (("no_skill", 0.9), ("curated", 0.1))),
        ("m", "no_skill", "black_litterman", "b0", 0.5, 0.5),
    ]
    found = subtasks_table(collect(table(*rows)))
    assert found.column("sub_task") == ("normalization", "rebalancing", "stress_testing", "black_litterman")


def test_models_are_unweighted_over_subtasks_and_then_over_conditions() -> None:
    found = models_table(collect(table(*two_models())))
    assert found.column("model") == ("a", "b", "floor (baseline/trivial)")
    assert found.column("mean_no_skill") == pytest.approx((0.75, 0.75, 1.0))
    assert found.column("mean_curated")[:2] == pytest.approx((0.875, 0.75))
    assert found.column("overall") == (pytest.approx(0.8125), pytest.approx(0.75), None)
    first, second, _ = found.column("curated_minus_no_skill")
    assert isinstance(first, Estimate)
    assert isinstance(second, Estimate)
    assert (first.value, second.value) == (pytest.approx(0.125), 0.0)


def test_a_model_that_lacks_a_condition_has_no_overall_mean() -> None:
    rows = [row for row in two_models() if row[:2] != ("b", "curated")]
    found = models_table(collect(table(*rows)))
    assert dict(zip(found.column("model"), found.column("overall"), strict=True))["b"] is None


def test_a_table_is_found_by_its_name() -> None:
    found = report(table(*two_models()))
    assert found["domains"].name == "domains"
    with pytest.raises(InputError, match="table 'x' is not in this report; choose from: overview, pooled"):
        found["x"]


def test_answers_that_cannot_be_read_are_told_from_wrong_ones() -> None:
    rows = [
        *(("malformed", "no_skill", "rebalancing", f"r{i}", 0.0, 0.0, "invalid_submission") for i in range(4)),
        *(("wrong", "no_skill", "rebalancing", f"r{i}", 0.0, 0.0) for i in range(4)),
    ]
    for found in (models_table(collect(table(*rows))), overview_table(collect(table(*rows)))):
        assert found.column("mean_no_skill") == (0.0, 0.0)
        assert found.column("answered") == (0.0, 1.0)
        assert found.column("mostly") == ("invalid_submission 100 %", None)
    alone = overview_table(collect(table(*rows[:4])))
    assert alone.notes[0] == "Answered: 0 % of 4 rows, otherwise mostly invalid_submission 100 %."


def test_resources_are_those_of_rows_that_came_to_an_end() -> None:
    rows = table(
        ("m", "no_skill", "rebalancing", "r0", 0.5, 0.5),
        ("m", "no_skill", "rebalancing", "r1", 0.5, 0.5),
        ("m", "no_skill", "rebalancing", "r2", 0.5, 0.5),
        ("m", "no_skill", "rebalancing", "r3", None, None, "error"),
    ).with_columns(
        total_input_tokens=pl.Series([100, 200, 900, 10**6]),
        total_output_tokens=pl.Series([10, 20, 90, 10**6]),
        latency_seconds=pl.Series([1.0, 2.0, 6.0, 1e6]),
        turns=pl.Series([1, 2, 12, 999]),
        cost_usd=pl.Series([0.1, None, 0.3, 9.0]),
    )
    (row,) = resources_table(collect(rows)).rows
    assert row == ("no_skill", 3, 220.0, 440.0, 20.0, 40.0, 2.0, 3.0, 2.0, 5.0, None, None)
    bare = resources_table(collect(rows.drop("turns", "total_input_tokens")))
    assert bare.column("median_turns") == bare.column("mean_tokens") == (None,)
    assert bare.column("mean_latency") == (3.0,)


def test_unknown_tokens_are_left_out_of_means_and_counted() -> None:
    rows = table(*[("m", "no_skill", "rebalancing", f"r{i}", 0.5, 0.5) for i in range(3)]).with_columns(
        total_input_tokens=pl.Series([100, None, 900]), total_output_tokens=pl.Series([10, None, 90])
    )
    found = resources_table(collect(rows))
    assert (found.column("mean_tokens"), found.column("mean_output_tokens")) == ((550.0,), (50.0,))
    assert found.notes[-1].endswith("omitted from the token columns: no_skill: 1 of 3.")


def test_a_group_of_unknown_tokens_is_within_no_budget_and_named() -> None:
    rows = table(*[(m, "no_skill", "rebalancing", f"r{i}", 1.0, 1.0) for m in ("m", "n") for i in range(2)])
    found = budgets_table(collect(rows.with_columns(total_output_tokens=pl.Series([10, 20, None, 5]))))
    assert found is not None
    assert found.column("model") == ("m",)
    assert found.notes[-1] == "Omitted, with the number of scored episodes without token counts: n, no_skill (1)."


def test_harnesses_have_the_means_of_two_conditions() -> None:
    found = harnesses_table(collect(table(*two_models())))
    assert found.column("name") == ("all", "portfolio_construction", "risk_management", "a", "b")
    assert found.column("episodes_reference") == (10, 8, 2, 5, 5)
    values = [each.value for each in found.column("difference") if isinstance(each, Estimate)]
    assert values == pytest.approx([0.1, 0.125, 0.0, 0.2, 0.0])


def test_the_mean_of_other_episodes_differs_by_the_means() -> None:
    """Six episodes against two others, no cluster shared: Welch's standard error, but for the small-sample factors."""
    rng = np.random.default_rng(2)
    sides = [
        pl.DataFrame({"sub_task": "s", "cluster": [f"{name}{i}" for i in range(n)], "score": rng.uniform(size=n)})
        for name, n in (("t", 60), ("r", 40))
    ]
    gap = mean_difference(*sides)
    assert gap is not None
    usual = stats.ttest_ind(*(side["score"].to_numpy() for side in sides), equal_var=False)
    interval = usual.confidence_interval(0.95)
    assert gap.estimate.value == pytest.approx(sides[0]["score"].mean() - sides[1]["score"].mean())
    assert gap.estimate[1:] == pytest.approx((interval.low, interval.high), abs=0.003)


def test_the_mean_of_the_same_episodes_differs_as_their_pairs_do() -> None:
    rng = np.random.default_rng(3)
    base = pl.DataFrame({"sub_task": "s", "cluster": [f"{i // 3}" for i in range(30)], "score": rng.uniform(size=30)})
    treated = base.with_columns(score=pl.col("score") * 0.5 + 0.4)
    paired = base.with_columns(difference=treated["score"] - base["score"])
    gap, usual = mean_difference(treated, base), gaps_of(paired)[()]
    assert gap is not None
    assert gap.estimate == pytest.approx(usual.estimate, abs=1e-9)


def test_programs_are_folded_into_a_ceiling_and_floors() -> None:
    rows = [
        ("baseline/reference", "no_skill", "rebalancing", "r0", 0.25, 0.3),
        ("baseline/reference", "curated", "rebalancing", "r0", 1.0, 0.9),
        ("baseline/trivial", "no_skill", "rebalancing", "r0", 0.0, 0.4),
        ("baseline/heuristic", "no_skill", "infeasibility_detection", "i0", 0.5, 0.5),
    ]
    found = report(table(*rows)).overview
    assert [column.name for column in found.columns] == [
        *("sub_task", "episodes", "ceiling", "no_skill_baseline", "heuristic", "floor", "floor_paper")
    ]
    assert found.rows == (
        ("rebalancing", 1, 1.0, 0.25, None, 0.0, 0.4),
        ("infeasibility_detection", 1, None, None, 0.5, None, None),
        ("headline", 1, 1.0, 0.25, None, 0.0, 0.4),
    )
    assert "curated - no_skill: +0.750 [n/a]" in found.notes[1]


def test_what_a_mean_lacks_is_told_beside_it() -> None:
    rows = [row for row in two_models() if row[:4] != ("a", "curated", "rebalancing", "r0")]
    rows.append(("a", "curated", "rebalancing", "r0", None, None, "error"))
    found = subtasks_table(collect(table(*rows)))
    assert found.column("remarks") == ("curated 7 of 8, curated 1 err", "")
    assert "1 of 21 rows ended in an error" in " ".join(found.notes)
    assert "remarks" not in [column.name for column in subtasks_table(collect(table(*two_models()))).columns]


def test_the_tidy_frame_has_every_mean_and_difference() -> None:
    frame = report(table(*two_models())).to_polars()
    assert frame.filter(model="a", sub_task="headline")["mean"].to_list() == pytest.approx([0.6, 0.8, 0.2])
    assert frame.filter(model="a", sub_task="headline")["reference"].to_list() == [None, None, "no_skill"]
    assert frame.filter(model="baseline/trivial")["condition"].to_list() == ["no_skill"] * 2


def test_the_headline_weighs_episodes_and_leaves_infeasibility_out() -> None:
    rows = [
        *simple(gain=0.0),
        *[("m", c, "black_litterman", "b0", 1.0, 1.0) for c in ("no_skill", "curated")],
        *[("m", c, "infeasibility_detection", f"i{i}", 1.0, 1.0) for c in ("no_skill", "curated") for i in range(9)],
    ]
    found = overview_table(collect(table(*rows)))
    assert found.column("sub_task") == ("rebalancing", "black_litterman", "infeasibility_detection", "headline")
    assert found.column("mean_no_skill")[-1] == pytest.approx((0.0 + 0.1 + 0.2 + 0.3 + 1.0) / 5)
    assert found.column("episodes") == (4, 1, 9, 5)
    assert "Not in the headline: infeasibility_detection." in found.notes


def test_a_condition_that_only_failed_has_no_mean() -> None:
    rows = [row for row in simple() if row[1] == "no_skill"]
    found = overview_table(collect(table(*rows, ("m", "curated", "rebalancing", "r0", None, None, "error"))))
    assert found.column("mean_curated") == found.column("curated_minus_no_skill") == (None, None)
    assert found.column("remarks") == ("curated 1 err",) * 2


def test_a_profile_that_a_subtask_lacks_is_told() -> None:
    rows = table(*simple(), ("m", "no_skill", "stress_testing", "s0", None, 0.25))
    assert "No certified scores for: stress_testing (strict)." in overview_table(collect(rows)).notes


def test_scores_above_1_are_explained_under_the_profile_that_has_them() -> None:
    rows = table(*simple(), ("m", "no_skill", "risk_identification", "r0", 1.0, 1.034))
    (told,) = [note for note in overview_table(collect(rows, profile=Profile.PAPER)).notes if "exceed 1" in note]
    assert told.startswith("risk_identification: scores may exceed 1")
    assert not any("exceed 1" in note for note in overview_table(collect(rows)).notes)


def test_without_a_reference_it_is_said_that_there_are_no_differences() -> None:
    found = pooled_table(collect(table(*(row for row in simple() if row[1] == "curated"))))
    assert any(note.startswith("No differences:") for note in found.notes)
    assert found.column("difference") == (None,)


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    rng = np.random.default_rng(3)
    rows = [(*row[:4], float(rng.uniform()), 0.0) for row in simple(count=20)]
    alone, beside = (models_table(collect(table(*each))) for each in (rows, [*simple(model="other"), *rows]))
    assert alone.rows[0] in beside.rows


def test_the_short_table_of_one_model() -> None:
    assert str(overview_table(collect(table(*simple())))).splitlines()[:6] == [
        "Mean score of m, profile certified",
        "",
        "Subtask      Episodes  no_skill  curated  curated - no_skill",
        "-----------  --------  --------  -------  ------------------",
        "rebalancing         4     0.150    0.650        +0.500 [n/a]",
        "headline            4     0.150    0.650        +0.500 [n/a]",
    ]


def test_causes_of_failure_are_counted_for_the_models_that_are_compared() -> None:
    keys = {"condition": "no_skill", "run_idx": 0, "domain": "d", "sub_task": "rebalancing", "status": "scored"}
    rest = {**keys, "arguments": "{}", "score": 0.5, "evidence": "", "output_use": "none", "not_tried": []}
    failures = pl.DataFrame(
        [
            {**rest, "model": "a", "task_id": "r0", "cause": "wrong_unit", "causes": ["wrong_unit", "arithmetic"]},
            {**rest, "model": "a", "task_id": "r1", "cause": "arithmetic", "causes": ["arithmetic"]},
            {**rest, "model": "baseline/trivial", "task_id": "r0", "cause": "arithmetic", "causes": ["arithmetic"]},
        ]
    )
    found = failures_table(collect(table(*two_models())), failures)
    assert found is not None
    told = ("model", "cause", "primary", "applies")
    assert list(zip(*(found.column(name) for name in told), strict=True)) == [
        ("a", "wrong_unit", 1, 1),
        ("a", "arithmetic", 1, 2),
    ]
    assert failures_table(collect(table(*two_models()), exclude=["a"]), failures) is None


def test_a_harness_in_which_skills_harm_is_marked_too() -> None:
    rows = [
        ("m", arm, "rebalancing", f"r{i}", level + 0.01 * (i % 3), 0.5)
        for arm, level in (("no_skill", 0.8), ("curated", 0.2))
        for i in range(12)
    ]
    assert harnesses_table(collect(table(*rows))).column("apart") == ("†",) * 3
    alike = harnesses_table(collect(table(*rows[:12], *((row[0], "curated", *row[2:]) for row in rows[:12]))))
    assert alike.column("apart") == ("",) * 3
