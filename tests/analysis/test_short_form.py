"""Item statistics, and short forms: the choice of episodes, its weights, and errors of models left out."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import synthetic_rows
from tests.small_rows import table

from finskillbench.analysis.results import collect
from finskillbench.analysis.short_form import (
    OVERALL,
    Accuracy,
    Population,
    ShortForm,
    choose_weights,
    equal_weights,
    held_out_errors,
    item_statistics,
    make_short_form,
    population_of,
    short_form_estimates,
)
from finskillbench.episode import Profile
from finskillbench.errors import InputError
from finskillbench.reports.tables.base import Estimate
from finskillbench.reports.tables.episodes.items import items_table, short_form_table

ROWS = synthetic_rows(models=12, episodes=10)


def items(scores: list[list[float]], subtasks: list[int]) -> pl.DataFrame:
    found = np.array(scores, dtype=float)[:, None, :]
    episodes = pl.DataFrame({"episode": list("abcdef")[: len(subtasks)], "sub_task": [f"s{each}" for each in subtasks]})
    known = np.full(len(subtasks), len(scores))
    return item_statistics(Population(("no_skill",), episodes, np.array(subtasks), found, known))


def test_item_statistics_equal_the_definitions() -> None:
    scores = np.random.default_rng(1).random((7, 5))
    found = items(scores.tolist(), [0, 0, 0, 1, 1])
    for place in range(5):
        rest = np.delete(scores, place, axis=1).sum(axis=1)
        assert found["discrimination"][place] == pytest.approx(np.corrcoef(scores[:, place], rest)[0, 1])
    assert found["difficulty"].to_list() == pytest.approx(scores.mean(axis=0).tolist())
    related = np.corrcoef(scores, rowvar=False)
    assert found["redundancy"].to_list() == pytest.approx(
        [max(related[0, 1:3]), max(related[1, [0, 2]]), max(related[2, :2]), related[3, 4], related[3, 4]]
    )
    assert found["redundant_with"][3:].to_list() == ["e", "d"]


def test_items_that_tell_nothing_or_the_wrong_thing_are_flagged() -> None:
    found = items([[0, 1, 0.0, 0.1, 0.9], [0, 1, 0.5, 0.5, 0.5], [0, 1, 1.0, 0.9, 0.1]], [0, 0, 0, 0, 1])
    assert found["flag"].to_list() == ["all 0", "all 1", "", "", "negative discrimination"]
    assert found["discrimination"][:2].to_list() == found["redundancy"][:2].to_list() == [None, None]
    assert found["redundant_with"].to_list() == [None, None, "d", "c", None]
    assert items([[0, 1], [1, 0]], [0, 0])["discrimination"].null_count() == 2


def test_the_note_states_the_error_of_a_correlation() -> None:
    (note, *_) = items_table(collect(ROWS)).notes
    assert "12 models" in note
    assert "standard error is about 0.32" in note


def test_only_complete_runs_of_models_count() -> None:
    unfinished = (pl.col("model") == "provider/model-1") & pl.col("task_id").str.ends_with("_003")
    alone = (pl.col("model") == "provider/model-2") & (pl.col("condition") == "curated")
    program = ROWS.filter(pl.col("model") == "provider/model-3").with_columns(model=pl.lit("baseline/reference"))
    more = ROWS.filter(pl.col("model") == "provider/model-4").with_columns(task_id=pl.col("task_id") + "_more")
    found = population_of(collect(pl.concat([ROWS.filter(~unfinished & ~alone), program, more])))
    assert (len(found.scores), found.conditions) == (10, ("no_skill", "curated", "self_generated"))
    assert found.episodes.height == 120

    with pytest.raises(InputError, match="no language model has scores"):
        population_of(collect(program))
    halves = [ROWS.filter(pl.col("model") == f"provider/model-{place + 1}", pl.col("condition") == condition)
              for place, condition in enumerate(("no_skill", "curated"))]  # fmt: skip
    with pytest.raises(InputError, match="no language model has scores"):
        population_of(collect(pl.concat(halves)))


def test_runs_of_a_sample_do_not_decide_which_episodes_count() -> None:
    sample = ROWS.filter(pl.col("task_id").str.ends_with("_001"))
    many = [sample.with_columns(model=pl.col("model") + f" {copy}") for copy in range(3)]
    found = population_of(collect(pl.concat([ROWS, *many])))
    assert (len(found.scores), found.episodes.height) == (12, 120)


def test_a_missing_score_is_the_mean_of_the_others() -> None:
    rows = [(f"m{model}", "no_skill", "rebalancing", f"r{item:02}", model / 10, 0.0) for model in range(3)
            for item in range(20)]  # fmt: skip
    found = population_of(collect(table(*[row for row in rows if (row[0], row[3]) != ("m0", "r07")])))
    assert found.scores[:, 0, 7].tolist() == pytest.approx([0.15, 0.1, 0.2])
    assert (found.known[6], found.known[7]) == (3, 2)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(12, 120))
def test_weights_of_a_short_form(seed: int, sizes: list[int], count: int) -> None:
    subtasks = np.repeat(np.arange(len(sizes)), sizes)
    scores = np.random.default_rng(seed).random((10, subtasks.size)).round(1)
    weights = choose_weights(scores, subtasks, count)
    assert (weights > 0).sum() == min(count, subtasks.size)
    assert np.bincount(subtasks, weights) == pytest.approx(np.full(len(sizes), 1 / len(sizes)))
    assert (weights == choose_weights(scores, subtasks, count)).all()
    if count >= subtasks.size:
        assert weights == pytest.approx(equal_weights(subtasks))


def test_the_episode_of_mean_difficulty_represents_its_bin() -> None:
    """Bins of 6, 5 and 5 episodes."""
    difficulty = np.array([1, 2, 4, 6, 7, 8, 30, 31, 33, 39, 40, 80, 81, 82, 83, 99]) / 100
    order = np.random.default_rng(0).permutation(16)
    scores = (difficulty + np.array([[-0.01], [0.01]]))[:, order]
    weights = choose_weights(scores, np.zeros(16, dtype=int), 3)
    (chosen,) = np.nonzero(weights)
    assert dict(zip(order[chosen], weights[chosen], strict=True)) == {2: 6 / 16, 8: 5 / 16, 14: 5 / 16}


def test_subtasks_on_which_models_differ_get_more_episodes() -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.random((10, 40)), np.full((10, 40), 0.5) + rng.random((10, 1)) / 10], axis=1)
    subtasks = np.repeat([0, 1], 40)
    counts = np.bincount(subtasks, choose_weights(scores, subtasks, 20) > 0)
    assert counts.tolist() == [16, 4]


def test_numbers_of_episodes_are_in_proportion_to_the_deviation_that_no_effect_explains() -> None:
    """Deviations 2 to 1; the second subtask has effects of models and episodes, too."""
    models, episodes = np.arange(10)[:, None], np.arange(40)
    alternating = (-1.0) ** (models + episodes)
    scores = np.concatenate([0.2 * alternating, 0.1 * alternating + models / 20 + episodes / 50], axis=1)
    subtasks = np.repeat([0, 1], 40)
    assert np.bincount(subtasks, choose_weights(scores, subtasks, 30) > 0).tolist() == [20, 10]


def test_an_error_is_the_estimate_less_the_score() -> None:
    scores = np.tile([0.0, 0.5, 1.0], (10, 1, 3))
    others = choose_weights(scores[1:, 0], np.zeros(9, dtype=int), 3)
    scores[0, 0] = others > 0
    assert held_out_errors(scores, np.zeros(9, dtype=int), 3)[0, 0] == pytest.approx(1 - 3 / 9)


def test_a_model_left_out_has_no_part_in_the_choice() -> None:
    """Its error is then linear in its scores: half of the scores, half of the error."""
    rng = np.random.default_rng(3)
    subtasks = np.repeat(np.arange(4), 30)
    scores = rng.random((10, 2, 120))
    errors = held_out_errors(scores, subtasks, 20)
    for model in range(10):
        other = scores.copy()
        other[model] = 0.5 * scores[model]
        assert held_out_errors(other, subtasks, 20)[model] == pytest.approx(0.5 * errors[model])
    alike = np.full((10, 2, 120), 0.4)
    assert np.abs(held_out_errors(alike, subtasks, 20)).max() < 1e-12


def test_estimates_are_those_of_the_errors_and_scores() -> None:
    """Near the scores of the models of the form, and exact if all episodes are in it."""
    results = collect(ROWS)
    form = make_short_form(results, 60)
    assert (form.models, len(form.weights), form.conditions) == (12, 60, ["no_skill", "curated", "self_generated"])
    chosen = collect(ROWS.filter(pl.col("task_id").is_in(list(form.weights))))
    found = short_form_estimates(chosen, form).filter(pl.col("condition") == OVERALL)
    means = results.episodes.group_by("model", "condition", "sub_task").agg(pl.mean("score"))
    truth = dict(means.group_by("model").agg(pl.mean("score")).iter_rows())
    errors = [row["estimate"] - truth[row["model"]] for row in found.iter_rows(named=True)]
    assert len(errors) == 12
    assert 0 < max(map(abs, errors)) < 4 * form.accuracy[OVERALL].error < 0.15
    t = 2.1788  # 12 degrees of freedom
    assert form.accuracy[OVERALL].half_width == pytest.approx(t * form.accuracy[OVERALL].error, rel=1e-4)
    every = dict.fromkeys(ROWS["task_id"].unique(), 0.1 / 12)
    whole = short_form_estimates(results, msgspec.structs.replace(form, weights=every))
    exact = whole.filter(pl.col("condition") == OVERALL).select("model", "estimate").iter_rows()
    assert dict(exact) == pytest.approx(truth)


def test_an_estimate_is_a_weighted_mean_of_each_subtask() -> None:
    known = Accuracy(0.1, 0.2, 0.0, 1.0)
    weights = {"a": 0.375, "b": 0.125, "c": 0.5}
    form = ShortForm("", Profile.PAPER, 10, 2, {OVERALL: known, "no_skill": known}, weights)
    scores = {"a": ("rebalancing", 1.0), "b": ("rebalancing", 0.2), "c": ("normalization", 0.1)}
    rows = table(*[("m", "no_skill", subtask, name, 0.5, score) for name, (subtask, score) in scores.items()])
    (overall, _) = short_form_table(rows, form).rows
    assert overall[3:] == (3, Estimate(pytest.approx(0.45), pytest.approx(0.25), pytest.approx(0.65)), "")
    low = short_form_table(rows.with_columns(scores=pl.struct(paper=0.1, strict=0.1, certified=0.5)), form).rows[0][4]
    high = short_form_table(rows.with_columns(scores=pl.struct(paper=0.9, strict=0.9, certified=0.5)), form).rows[0][4]
    assert (low.low, high.high) == (0.0, 1.0)
    lacking = short_form_table(rows.filter(pl.col("task_id") != "b"), form).rows[0]
    assert lacking[3:] == (2, Estimate(pytest.approx(0.55)), "2 of 3 episodes")


def test_incomplete_rows_have_no_estimate_and_others_are_marked() -> None:
    form = make_short_form(collect(ROWS), 60)
    assert make_short_form(collect(ROWS, Profile.PAPER), 60).profile is Profile.PAPER
    rows = ROWS.filter(pl.col("task_id").is_in(list(form.weights)), pl.col("model") == "provider/model-1")
    assert not short_form_table(rows.filter(pl.col("sub_task") != "rebalancing"), form).rows
    two = short_form_table(rows.filter(pl.col("condition") != "curated"), form)
    assert two.column("condition") == ("no_skill", "self_generated")
    inline = short_form_table(rows.with_columns(condition=pl.lit("inline")), form)
    assert [row[4:] for row in inline.rows] == [(Estimate(inline.rows[0][4].value), "a condition without short form")]
    perfect = rows.with_columns(scores=pl.struct(paper=1.0, strict=1.0, certified=1.0), status=pl.lit("scored"))
    assert set(short_form_table(perfect, form).column("remarks")) == {"outside the form's models"}
    program = rows.with_columns(model=pl.lit("baseline/reference"))
    assert short_form_table(pl.concat([rows, program]), form).rows == short_form_table(rows, form).rows
    estimate, remark = short_form_table(rows, form).rows[0][4:]
    assert (remark, estimate.high - estimate.low) == ("", pytest.approx(2 * form.accuracy[OVERALL].half_width))


@pytest.mark.parametrize(
    ("rows", "count", "words"),
    [
        (synthetic_rows(models=9, episodes=10), 60, r"9 models .* needs 10; use run --sample 60 instead"),
        (ROWS, 11, "of 120 episodes, 11 were requested; choose 12 to 119"),
        (ROWS, 120, "120 were requested"),
        (ROWS.with_columns(edition=pl.col("sub_task")), 60, "several editions"),
    ],
)
def test_what_is_refused(rows: pl.DataFrame, count: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_short_form(collect(rows), count)
