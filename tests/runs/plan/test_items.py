"""What a run will do, in which order, under which file names."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition
from finskillbench.harness.models import NO_ARGUMENTS, ModelKey
from finskillbench.runs.plan.items import Item, choose_episodes, make_plan, requests_of
from finskillbench.runs.store.version import file_name

ARMS = [Condition.NO_SKILL, Condition.CURATED]


def test_the_full_run_protocol_takes_40_and_100(episodes_of) -> None:
    portfolio = episodes_of("rebalancing", "pc_rebal", 60)
    fundamental = episodes_of("normalization", "fa_norm", 150, "fundamental_analysis")
    chosen = choose_episodes([*fundamental, *portfolio], None)
    assert [e.task_id for e in chosen] == [e.task_id for e in fundamental[:100] + portfolio[:40]]


def test_a_limit_counts_per_subtask(edition) -> None:
    chosen = choose_episodes(edition.episodes(), 2)
    assert [e.task_id for e in chosen] == ["pc_uncon_000", "pc_uncon_001", "pc_infeas_000", "pc_infeas_001"]


def test_items_are_every_combination_in_order(edition) -> None:
    plan = make_plan(edition.episodes(), [ModelKey("a/x"), ModelKey("b")], ARMS, limit=1, epochs=2)
    assert len(plan.items) == 2 * 2 * 2 * 2
    assert plan.items[0] == Item("a/x", NO_ARGUMENTS, Condition.NO_SKILL, "pc_uncon_000", 0)
    assert plan.items[0].trajectory == "trajectories/a-x__no_skill/pc_uncon_000__0.json.gz"
    assert plan == make_plan(edition.episodes(), [ModelKey("b"), ModelKey("a/x")], ARMS[::-1], limit=1, epochs=2)


def test_the_order_is_entries_conditions_repeats_tasks(edition) -> None:
    entries = [ModelKey("baseline/nop"), ModelKey("m", '{"seed":1}'), ModelKey("baseline/reference"), ModelKey("a")]
    conditions = ["skill:b", Condition.CURATED, "skill:a", Condition.NO_SKILL]
    plan = make_plan(edition.episodes(), entries, conditions, limit=1, epochs=2)
    tasks, repeats = ["pc_uncon_000", "pc_infeas_000"], [0, 1]
    arms = [Condition.NO_SKILL, Condition.CURATED, "skill:a", "skill:b"]
    models = ["a", "m", "baseline/reference", "baseline/nop"]
    told = [(item.model, item.condition, item.run_idx, item.task_id) for item in plan.items]
    assert told == [*product(models, arms, repeats, tasks)]


def test_a_condition_may_have_a_limit_of_its_own(edition) -> None:
    """As the paper ran its second harness: fewer episodes without skills."""
    plan = make_plan(edition.episodes(), [ModelKey("a")], ARMS, limit=2, limits={"no_skill": 1})
    tasks = {arm: [item.task_id for item in plan.items if item.condition == arm] for arm in ARMS}
    assert tasks["no_skill"] == ["pc_uncon_000", "pc_infeas_000"]
    assert tasks["curated"] == ["pc_uncon_000", "pc_uncon_001", "pc_infeas_000", "pc_infeas_001"]
    assert [episode.task_id for episode in plan.episodes] == tasks["curated"]
    assert sum(len(each.items()) for each in requests_of(plan)) == len(plan.items) == 6


@pytest.mark.parametrize(
    ("models", "conditions", "more", "words"),
    [
        ([], ARMS, {}, "no model was chosen"),
        (["a"], [], {}, "no condition was chosen"),
        (["a", "a"], ARMS, {}, "a model was given twice"),
        (["a/b", "a-b"], ARMS, {}, "would share a file name"),
        (["Model", "model"], ARMS, {}, "would share a file name"),
        (["a"], ARMS, {"limit": 0}, "limit is 0"),
        (["a"], ARMS, {"epochs": 0}, "epochs is 0"),
        (["a"], ARMS, {"limits": {"no_skill": 0}}, "limit is 0"),
        (["a"], ARMS, {"limits": {"inline": 1}}, "limits: 'inline' is not a condition of this run"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(edition, models, conditions, more, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_plan(edition.episodes(), [*map(ModelKey, models)], conditions, **more)


def test_an_edition_without_the_subtasks_is_refused() -> None:
    with pytest.raises(InputError, match="no episode of the chosen subtasks"):
        make_plan([], [ModelKey("a")], ARMS)


@given(st.text(min_size=1), st.text(min_size=1))
def test_file_names_are_safe_and_tell_texts_apart(one: str, other: str) -> None:
    name = file_name(one)
    assert "/" not in name
    assert "\0" not in name
    assert name not in ("", ".", "..")
    assert len(name.encode()) <= 140
    if one.replace("/", "-") != other.replace("/", "-"):
        assert name != file_name(other)
