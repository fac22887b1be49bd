"""Rows become results: who is compared with what, which score is taken, what counts once, and what is refused."""

from __future__ import annotations

import pytest
from tests.small_rows import simple, table

from finskillbench.analysis.results import Comparison, collect, pairs
from finskillbench.episode import Profile
from finskillbench.errors import InputError


def score_of(rows, **chosen) -> list[float]:
    return collect(table(*rows)).episodes.filter(**chosen)["score"].to_list()


def test_skills_for_an_agent_that_programs_are_compared_with_that_agent() -> None:
    gains = {"no_skill": 0.0, "code": 0.1, "code_curated": 0.4}
    rows = [("m", arm, "rebalancing", f"r{i}", 0.1 * i + gain, 0.9) for arm, gain in gains.items() for i in range(4)]
    results = collect(table(*rows))
    assert results.comparisons == (("code", "no_skill"), ("code_curated", "no_skill"), ("code_curated", "code"))
    changes = [pairs(results, each)["difference"].mean() for each in results.comparisons]
    assert changes == pytest.approx([0.1, 0.4, 0.3])
    only = collect(table(*(row for row in rows if row[1] != "code")))
    assert only.comparisons == (("code_curated", "no_skill"),)


def test_skills_of_somebodys_own_are_compared_with_the_curated_ones_too() -> None:
    gains = {"skill:mine": 0.25, "curated": 0.5, "no_skill": 0.0}
    rows = [("m", name, "rebalancing", f"r{i}", 0.1 * i + gain, 0.9) for name, gain in gains.items() for i in range(4)]
    results = collect(table(*rows))
    assert results.conditions == ("no_skill", "curated", "skill:mine")
    assert results.comparisons == (*(("curated", "no_skill"), ("skill:mine", "no_skill")), ("skill:mine", "curated"))
    changes = [pairs(results, each)["difference"].mean() for each in results.comparisons]
    assert changes == pytest.approx([0.5, 0.25, -0.25])


def test_without_a_reference_there_are_no_comparisons() -> None:
    assert collect(table(*(row for row in simple() if row[1] == "curated"))).comparisons == ()


def test_repeats_are_averaged_before_episodes_are() -> None:
    rows = [("m", "no_skill", "rebalancing", "a", score, 1.0) for score in (1.0, 0.5, 0.0)]
    results = collect(table(*rows, ("m", "no_skill", "rebalancing", "b", 0.0, 0.0)))
    assert results.episodes.select("episode", "score", "repeats").rows() == [("a", 0.5, 3), ("b", 0.0, 1)]


def test_only_pairs_enter_a_difference() -> None:
    rows = [row for row in simple() if row[1] == "no_skill" or row[3] == "r3"]
    (pair,) = pairs(collect(table(*rows)), Comparison("curated", "no_skill")).rows(named=True)
    assert (pair["episode"], pair["treated"], pair["reference"]) == ("r3", pytest.approx(0.8), pytest.approx(0.3))


@pytest.mark.parametrize("stray", [None, 0.0])
def test_an_error_is_no_score_even_where_one_stands(stray) -> None:
    rows = [*simple(), ("m", "curated", "rebalancing", "r9", stray, stray, "error")]
    assert len(score_of(rows, condition="curated")) == 4
    assert collect(table(*rows)).rows["failed"].sum() == 1


def test_a_subtask_without_the_profile_takes_the_next() -> None:
    rows = table(*simple(), ("m", "no_skill", "stress_testing", "s0", None, 0.25))
    assert collect(rows).profiles == {"rebalancing": Profile.CERTIFIED, "stress_testing": Profile.STRICT}
    assert collect(rows).episodes.filter(sub_task="stress_testing")["score"].to_list() == [0.25]
    assert set(collect(rows, Profile.PAPER).profiles.values()) == {Profile.PAPER}


def test_the_same_names_of_two_editions_are_apart() -> None:
    rows = table(*simple(count=1))
    both = rows.with_columns(edition=rows["task_id"].str.replace("r0", "e" * 9)).vstack(
        rows.with_columns(edition=rows["task_id"].str.replace("r0", "f" * 9))
    )
    results = collect(both)
    assert sorted(results.episodes["episode"].unique()) == ["eeeeeeee/r0", "ffffffff/r0"]
    assert sorted(results.rows["cluster"].unique()) == ["eeeeeeee/r0", "ffffffff/r0"]
    assert results.episodes["repeats"].to_list() == [1] * 4


def test_rows_that_are_none_are_refused() -> None:
    rows = table(*simple())
    with pytest.raises(InputError, match="'scores' is missing"):
        collect(rows.drop("scores"))
    with pytest.raises(InputError, match="empty"):
        collect(rows.clear())
    with pytest.raises(InputError, match="x has no rows; models: m"):
        collect(rows, exclude=["x"])
    with pytest.raises(InputError, match="no rows remain without m"):
        collect(rows, exclude=["m"])
