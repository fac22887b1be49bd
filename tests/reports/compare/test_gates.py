"""Gates: floors by hand, regressions that were planted are found, and chance alone is seldom taken for one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from tests.reports.compare.cases import drawn, row, two
from tests.sampling import THOROUGH, thorough

from finskillbench.analysis.results import collect
from finskillbench.errors import InputError
from finskillbench.reports.compare.gates import (
    Threshold,
    ThresholdMeasure,
    check_finished,
    check_thresholds,
    gates_table,
    parse_floor,
)
from finskillbench.reports.compare.paired import Paired, check_regression, make_pairs, regressions
from finskillbench.reports.compare.sides import make_sides

ROWS = [
    row("r1", 0.5),
    row("r2", 0.7),
    row("s1", 0.1, sub_task="stress_testing"),
    row("r1", 0.0, condition="no_skill"),
    row("r1", 0.2, model="baseline/nop"),
]


def floors(*texts: str, rows: list[dict] = ROWS) -> list[tuple[bool, str]]:
    table = two(rows, rows)[0].rows
    return [tuple(each.outcome) for each in check_thresholds(collect(table), [parse_floor(text) for text in texts])]


def pairs(a: list[dict], b: list[dict]) -> Paired:
    return make_pairs(make_sides(two(a, b)))


def test_floors_are_read_as_they_are_written() -> None:
    assert parse_floor("headline=0.6") == Threshold("headline", None, 0.6)
    assert parse_floor("risk_management@skill:mine=1") == Threshold("risk_management", "skill:mine", 1.0)
    for wrong in ("headline", "=0.5", "headline=", "headline=60", "headline=nan", "headline=-1"):
        with pytest.raises(InputError, match=r"write headline=0\.6"):
            parse_floor(wrong)


def test_floors_hold_the_curated_condition_of_every_model_but_programs() -> None:
    assert floors("headline=0.4", "portfolio_construction=0.6", "stress_testing=0.2") == [
        (True, "headline of m under curated is 0.4333, not below 0.4"),
        (True, "portfolio_construction of m under curated is 0.6000, not below 0.6"),
        (False, "stress_testing of m under curated is 0.1000, below 0.2"),
    ]
    assert floors("headline@no_skill=0.1") == [(False, "headline of m under no_skill is 0.0000, below 0.1")]
    assert floors("headline=0.1", rows=ROWS[-1:])[0][0]  # where only programs ran, they are meant


def test_the_only_condition_is_meant_and_among_others_than_curated_one_must_be_named() -> None:
    assert floors("headline=0", rows=[row("r1", 0.0, condition="placebo")])[0][0]
    others = [row("r1", 0.0, condition="no_skill"), row("r1", 0.0, condition="code")]
    with pytest.raises(InputError, match="name the condition of headline, one of no_skill, code"):
        floors("headline=0", rows=others)
    with pytest.raises(InputError, match="no rows under condition 'curated'; choose from no_skill, code"):
        floors("headline@curated=0", rows=others)
    with pytest.raises(InputError, match="no rows of fundamental_analysis under curated; choose from headline, port"):
        floors("fundamental_analysis=0")


def test_a_floor_does_not_hold_because_of_episodes_that_nobody_judged() -> None:
    rows = [row("r1", 0.7), row("r2", None)]
    assert floors("headline=0.6", rows=rows) == [
        (False, "headline of m under curated is 0.7000, but 1 of 2 episodes have no score: "
                "with 0 for these it is 0.3500, below 0.6")
    ]  # fmt: skip
    assert floors("headline=0.3", rows=rows)[0][0]
    assert floors("headline=0", rows=[row("r1", None)]) == [
        (False, "headline of m under curated: none of 1 episodes has a score")
    ]


def test_a_mean_that_equals_the_floor_holds() -> None:
    rows = [row(f"r{i}", 0.1) for i in range(3)]  # their sum over three is not exactly 0.1
    assert floors("headline=0.1", rows=rows)[0][0]


def judge(measure: ThresholdMeasure, limit: float, *rows: dict, model: str | None = None) -> tuple[float | None, bool]:
    limits = [Threshold("headline", None, limit, measure, model)]
    (judged,) = check_thresholds(collect(two(rows, rows)[0].rows), limits)
    return judged.value, judged.outcome.holds


def test_a_lower_bound_is_that_of_student_and_counts_errors_as_zero() -> None:
    scores = [0.9, 0.7, 0.8, 0.6]
    low = float(np.mean(scores) - stats.t.ppf(0.975, 3) * stats.sem(scores))  # each episode is a cluster
    known = [row(f"r{i}", score) for i, score in enumerate(scores)]
    assert judge(ThresholdMeasure.LOWER_BOUND, low - 1e-9, *known) == (pytest.approx(low), True)
    assert judge(ThresholdMeasure.LOWER_BOUND, low + 1e-9, *known) == (pytest.approx(low), False)
    assert judge(ThresholdMeasure.LOWER_BOUND, 0.5, *known, row("r9", None)) == (pytest.approx(low), False)
    assert judge(ThresholdMeasure.LOWER_BOUND, 0.0, *known[:2]) == (None, False)  # two clusters have no interval


def test_coverage_is_bounded_from_below_and_incidents_from_above() -> None:
    rows = [row(f"r{i}", 0.5 if i else None) for i in range(20)]
    assert judge(ThresholdMeasure.COVERAGE, 0.95, *rows) == (0.95, True)
    assert judge(ThresholdMeasure.COVERAGE, 0.96, *rows) == (0.95, False)
    assert judge(ThresholdMeasure.INCIDENTS, 1.0, *rows) == (None, False)  # these rows do not record them
    table = two(rows, rows)[0].rows.with_columns(
        incidents=pl.Series([["a", "b"], *[[]] * 19], dtype=pl.List(pl.String))
    )
    for limit, holds in ((0.05, True), (0.04, False)):
        (judged,) = check_thresholds(collect(table), [Threshold("headline", None, limit, ThresholdMeasure.INCIDENTS)])
        assert (judged.value, judged.outcome.holds) == (0.05, holds)


def test_a_threshold_may_name_its_model() -> None:
    assert judge(ThresholdMeasure.MEAN, 0.1, *ROWS, model="baseline/nop") == (pytest.approx(0.2), True)
    with pytest.raises(InputError, match="--fail-under: no rows of model 'other'; choose from m, baseline/nop"):
        judge(ThresholdMeasure.MEAN, 0.1, *ROWS, model="other")


def test_gates_are_a_table_too() -> None:
    judged = check_thresholds(collect(two(ROWS, ROWS)[0].rows), [parse_floor("headline=0.9")])
    assert gates_table([each.outcome for each in judged]).rows == (
        ("fails", "headline of m under curated is 0.4333, below 0.9"),
    )


def test_a_drop_of_the_same_size_everywhere_has_no_interval_and_is_a_regression() -> None:
    def side(score: float) -> list[dict]:
        return [row(f"r{i}", score) for i in range(10)]

    (headline, subtask) = regressions(pairs(side(1.0), side(0.5)))
    # Ten clusters of ten fell: 2 / 2^10 by the sign test, twice over by Holm.
    assert (headline.hypothesis.low, headline.hypothesis.p) == (None, pytest.approx(2 / 1024))
    assert headline.adjusted == pytest.approx(4 / 1024)
    assert subtask.hypothesis.part == "rebalancing"
    assert check_regression(pairs(side(1.0), side(0.5)), 0.1).holds is False
    assert check_regression(pairs(side(1.0), side(0.5)), 0.5).holds is True
    assert check_regression(pairs(side(0.5), side(1.0))).holds is True


def test_the_p_value_is_that_of_t_where_every_episode_stands_alone() -> None:
    gaps = np.random.default_rng(5).normal(-0.1, 0.15, 40)
    a = [row(f"r{i}", 0.5) for i in range(40)]
    b = [row(f"r{i}", 0.5 + gap) for i, gap in enumerate(gaps)]
    found = regressions(pairs(a, b))[0].hypothesis
    assert found.p == pytest.approx(stats.ttest_1samp(gaps, 0.0).pvalue)
    shifted = regressions(pairs(a, b), 0.02)[0].hypothesis
    assert shifted.p == pytest.approx(stats.ttest_1samp(gaps, -0.02).pvalue)


def test_a_single_hypothesis_fails_exactly_where_its_interval_lies_below_the_margin() -> None:
    gaps = np.random.default_rng(6).normal(-0.1, 0.15, 40)
    a = [row(f"i{i}", 0.5, sub_task="infeasibility_detection") for i in range(40)]  # not in the headline
    b = [row(f"i{i}", 0.5 + gap, sub_task="infeasibility_detection") for i, gap in enumerate(gaps)]
    paired = pairs(a, b)
    high = regressions(paired)[0].hypothesis.high
    assert high is not None
    assert check_regression(paired, -high - 1e-9).holds is False
    assert check_regression(paired, -high + 1e-9).holds is True


def test_planted_regressions_are_found_and_named() -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        found = regressions(make_pairs(make_sides(drawn(rng, {"stress_testing": -0.15}))))
        assert "stress_testing" in {each.hypothesis.part for each in found}
    (first, *_) = regressions(make_pairs(make_sides(drawn(rng, {"stress_testing": -0.25}))), 0.1)
    assert (first.hypothesis.part, first.hypotheses) == ("stress_testing", 6)


@thorough
@pytest.mark.slow
def test_chance_alone_is_found_in_at_most_5_of_100_draws() -> None:
    """Of forty where the run is not thorough."""
    rng, draws = np.random.default_rng(2), 100 if THOROUGH else 40
    alarms = [not check_regression(make_pairs(make_sides(drawn(rng, {})))).holds for _ in range(draws)]
    assert sum(alarms) <= 0.05 * draws
    unclustered = 0  # what would be found if every episode counted by itself, without control over subtasks
    rng = np.random.default_rng(2)
    for _ in range(draws):
        frame = make_pairs(make_sides(drawn(rng, {}))).frame
        gaps = [each["difference"].to_numpy() for _, each in frame.group_by("sub_task")]
        unclustered += any(gap.mean() < 0 and stats.ttest_1samp(gap, 0.0).pvalue < 0.05 for gap in gaps)
    assert unclustered > 0.1 * draws


def test_a_part_in_which_nothing_moved_costs_the_others_nothing() -> None:
    def side(score: float) -> list[dict]:
        still = [
            row(f"{name}{i}", 0.5, sub_task=name) for name in ("stress_testing", "normalization") for i in range(9)
        ]
        return [*(row(f"r{i}", score) for i in range(10)), *still]

    assert {each.hypotheses for each in regressions(pairs(side(1.0), side(0.5)))} == {2}


def test_errors_cannot_hide_a_regression() -> None:
    a = [row(f"r{i}", 1.0) for i in range(20)]
    b = [row(f"r{i}", None if i < 10 else 1.0) for i in range(20)]
    outcome = check_regression(pairs(a, b))
    assert outcome.holds is False
    assert outcome.reason.startswith("10 episodes with a score in A ended in an error in B: with 0 for these, ")
    one = [row(f"r{i}", None if i < 1 else 1.0) for i in range(20)]
    assert check_regression(pairs(a, one)).holds is True


def test_episodes_that_were_not_asked_for_are_told() -> None:
    a = [row(f"r{i}", 1.0) for i in range(20)]
    assert check_regression(pairs(a, a[:5])) == (
        True,
        "no significant fall of more than 0; 15 of the 20 episodes of A are not in B",
    )


def test_no_gate_holds_of_a_run_that_is_not_finished() -> None:
    whole, half = two(ROWS, ROWS)
    assert check_finished([whole, replace(half, missing=3)]) == [
        (False, "runs/b is not finished: 3 episodes have no row yet; resume the run")
    ]
