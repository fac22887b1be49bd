"""Two sides on the same episodes: figures computed by hand, and what may not stand side by side."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.reports.compare.cases import row, run, two

from finskillbench.episode import Profile
from finskillbench.errors import InputError
from finskillbench.reports.compare.moves import (
    Cut,
    cheaper_table,
    noise_of,
    readable_table,
    resource_changes_table,
    score_changes_table,
    within_budget_table,
)
from finskillbench.reports.compare.paired import Paired, find_flips, flips_table, make_pairs
from finskillbench.reports.compare.sides import RowFilter, SideDimension, make_sides
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Table

BEFORE = [row("r1", 0.2), row("r2", 0.4), row("r3", 0.9), row("s1", 1.0, sub_task="stress_testing"), row("gone", 1.0)]
AFTER = [
    row("r1", 0.5, total_output_tokens=30),
    row("r2", 0.4),
    row("r3", 0.0),
    row("s1", 1.0, sub_task="stress_testing"),
    row("new", 1.0, sub_task="stress_testing"),
]


def pairs_of(runs: list[RunRows], over: SideDimension | None = None, **choice: list[str]) -> Paired:
    return make_pairs(make_sides(runs, over, RowFilter(**choice)))


def lines(found: Table) -> list[dict[str, object]]:
    return found.to_polars().to_dicts()


def test_two_runs_by_hand() -> None:
    found = lines(score_changes_table(pairs_of(two(BEFORE, AFTER))))
    said = [(one["by"], one["part"], one["pairs"], one["only_a"], one["only_b"]) for one in found]
    assert said == [
        ("headline", "all", 4, 1, 1),
        ("domain", "portfolio_construction", 3, 1, 0),
        ("domain", "risk_management", 1, 0, 1),
        ("subtask", "rebalancing", 3, 1, 0),
        ("subtask", "stress_testing", 1, 0, 1),
    ]
    headline, portfolio = found[0], found[1]
    assert [headline[name] for name in ("a", "b", "difference")] == pytest.approx([0.625, 0.475, -0.15])
    assert [portfolio[name] for name in ("a", "b", "difference")] == pytest.approx([0.5, 0.3, -0.2])
    assert (headline["better"], headline["worse"]) == (1, 1)
    assert found[2]["difference_low"] is None  # one episode says nothing of how far it may be off


def test_what_an_episode_took_is_paired_too_and_what_is_not_known_has_no_line() -> None:
    found = {one["what"]: one for one in lines(resource_changes_table(pairs_of(two(BEFORE, AFTER))))}
    assert (found["Output tokens"]["a"], found["Output tokens"]["b"], found["Output tokens"]["ratio"]) == (10, 15, 1.5)
    assert found["Latency (milliseconds)"]["a"] == 1000
    assert not {name for name in found if name.startswith(("Cost", "Reasoning"))}


def test_flips_go_from_the_worst_to_the_best() -> None:
    found = find_flips(pairs_of(two(BEFORE, AFTER)))
    assert [(one.task_id, one.a, one.b) for one in found] == [("r3", 0.9, 0.0), ("r1", 0.2, 0.5)]
    assert found[0].show_b is None  # the run has no folder
    assert lines(flips_table(found))[0]["change"] == pytest.approx(-0.9)
    assert flips_table([]).rows == ()


def test_the_command_of_a_flip_is_quoted_and_names_the_repeat_that_moved_most(tmp_path: Path) -> None:
    folder = tmp_path / "my runs"
    (folder / "trajectories").mkdir(parents=True)
    a = run(row("r 1", 1.0), row("r 1", 0.8, run_idx=1))
    b = run(row("r 1", 0.6), row("r 1", 0.0, run_idx=1), path=str(folder))
    (flip,) = find_flips(pairs_of([a, b]))
    assert (flip.a, flip.b) == (pytest.approx(0.9), pytest.approx(0.3))
    assert flip.show_b == f"finskillbench show '{folder}' 'r 1' --model m --condition curated --run-idx 1"
    assert flip.show_a is None


def test_of_a_model_with_several_entries_the_file_is_shown(tmp_path: Path) -> None:
    (tmp_path / "trajectories").mkdir()
    arguments = ['{"effort":"low"}', '{"effort":"high"}']
    rows = [row("r1", 0.1 * i, arguments=each) for i, each in enumerate(arguments)]
    mine = run(*rows, path=str(tmp_path))
    (flip,) = find_flips(pairs_of([mine], SideDimension("model", "m effort=low", "m effort=high")))
    assert flip.b == pytest.approx(0.1)
    assert flip.show_b is not None
    assert flip.show_b.startswith(f"finskillbench show {tmp_path}/trajectories/m__curated__")
    with pytest.raises(InputError, match="m has several entries; name one of m effort=low; m effort=high"):
        pairs_of([mine], SideDimension("model", "m", "m effort=high"))


def test_conditions_of_one_run() -> None:
    mine = run(row("r1", 0.2, condition="no_skill"), row("r1", 0.7), row("r2", 0.5))
    paired = pairs_of([mine], SideDimension("condition", "no_skill", "curated"))
    (line,) = lines(score_changes_table(paired, [Cut.HEADLINE]))
    assert (line["pairs"], line["only_b"], line["difference"]) == (1, 1, pytest.approx(0.5))


def test_models_of_two_runs_and_rows_that_stand_in_both_count_once() -> None:
    both = row("r1", 0.2)
    runs = two([both], [both, row("r1", 0.7, model="n")])
    (line,) = lines(score_changes_table(pairs_of(runs, SideDimension("model", "m", "n")), [Cut.HEADLINE]))
    assert line["difference"] == pytest.approx(0.5)
    runs = two([both], [row("r1", 0.3), row("r1", 0.7, model="n")])
    with pytest.raises(InputError, match="runs/a and runs/b: different rows of r1 under curated"):
        pairs_of(runs, SideDimension("model", "m", "n"))


def test_entries_with_other_arguments_are_one_where_each_side_has_one_and_it_is_told() -> None:
    a, b = [row("r1", 0.2, arguments='{"seed":1}')], [row("r1", 0.4, arguments='{"seed":2}')]
    paired = pairs_of(two(a, b))
    assert paired.frame["difference"].to_list() == pytest.approx([0.2])
    assert any('different arguments: A {"seed":1}; B {"seed":2}' in note for note in paired.sides.notes)
    several = pairs_of(two([*a, *b], b))  # now each is compared with its own
    assert several.frame["model"].to_list() == ["m seed=2"]


def test_repeats_are_averaged_and_count_once() -> None:
    a, b = [row("r1", 0.0), row("r1", 1.0, run_idx=1)], [row("r1", 0.75)]
    assert pairs_of(two(a, b)).frame["difference"].to_list() == [0.25]


def test_errors_are_no_scores_and_are_told() -> None:
    paired = pairs_of(two(BEFORE, [*AFTER, row("gone", None)]))
    (headline,) = lines(score_changes_table(paired, [Cut.HEADLINE]))
    assert (headline["pairs"], headline["only_a"]) == (4, 1)
    assert "1 of 6 rows of B ended in an error and have no score." in paired.sides.notes


def test_other_editions_scorers_and_profiles_are_refused() -> None:
    with pytest.raises(InputError, match=r"no edition in common \(A eeeeeeee, B ffffffff\)"):
        pairs_of(two([row("r1", 0.1)], [row("r1", 0.1, edition="f" * 64)]))
    with pytest.raises(InputError, match=r"runs/a: s1; runs/b: s2\); update the runs with finskillbench rescore"):
        pairs_of(two([row("r1", 0.1)], [row("r1", 0.1, scorer_version="s2")]))
    paper = {"paper": 0.1, "strict": None, "certified": None}
    runs = two([row("r1", 0.1)], [row("r1", 0.1, scores=paper)])
    with pytest.raises(InputError, match="rebalancing has scores under certified in A and only under paper in B"):
        make_sides(runs)
    assert make_pairs(make_sides(runs, profile=Profile.PAPER)).frame.height == 1


def test_of_mixed_editions_those_in_common_are_compared() -> None:
    other = row("r1", 0.9, edition="f" * 64)
    paired = pairs_of(two([row("r1", 0.1), other], [row("r1", 0.3)]))
    assert paired.frame["difference"].to_list() == pytest.approx([0.2])
    assert any("1 rows of A are omitted" in note for note in paired.sides.notes)
    both = pairs_of(two([row("r1", 0.1), other], [row("r1", 0.3), other]))
    assert sorted(both.frame["difference"].to_list()) == pytest.approx([0.0, 0.2])


def test_sides_with_nothing_in_common_say_what_to_do() -> None:
    with pytest.raises(InputError, match=r"no condition in common: .*--compare condition 'curated' 'no_skill'"):
        pairs_of(two([row("r1", 0.1)], [row("r1", 0.1, condition="no_skill")]))
    with pytest.raises(InputError, match="no episode has a score on both sides"):
        pairs_of(two([row("r1", 0.1)], [row("r2", 0.1)]))
    with pytest.raises(InputError, match="no episode of B has a score"):
        pairs_of(two([row("r1", 0.1)], [row("r1", None)]))
    with pytest.raises(InputError, match="compare takes two different runs"):
        pairs_of([run(row("r1", 0.1))])
    with pytest.raises(InputError, match="no rows of 'placebo'; choose from curated"):
        pairs_of([run(row("r1", 0.1))], SideDimension("condition", "curated", "placebo"))
    with pytest.raises(InputError, match="runs/a: has no model 'x'; it has m"):
        pairs_of(two([row("r1", 0.1)], [row("r1", 0.1)]), models=["x"])
    with pytest.raises(InputError, match="the table is empty"):
        pairs_of(two([], [row("r1", 0.1)]))


def test_other_packages_under_one_name_are_told() -> None:
    notes = pairs_of(two([row("r1", 0.1)], [row("r1", 0.1, mount="b" * 64)])).sides.notes
    assert notes == ("Under curated the sides mounted different packages: A aaaaaaaaaaaa; B bbbbbbbbbbbb.",)


def test_one_episode_and_nothing_that_moved() -> None:
    paired = pairs_of(two([row("r1", 0.1)], [row("r1", 0.1)]))
    shown = readable_table(score_changes_table(paired))
    assert shown.rows == ()
    assert shown.notes[0] == "3 of 3 lines without changes are omitted (--all shows them)."
    assert find_flips(paired) == []
    assert readable_table(resource_changes_table(paired)).rows == ()
    assert resource_changes_table(paired).notes == ()


def test_pairs_of_unknown_tokens_are_counted_below_what_an_episode_took() -> None:
    before = [row("r1", 0.1), row("r2", 0.1, total_output_tokens=None)]
    (note,) = resource_changes_table(pairs_of(two(before, [row("r1", 0.1), row("r2", 0.1)]))).notes
    assert note.endswith("one side is unknown: Output tokens 1 of 2.")


def test_rows_of_another_program_without_what_an_episode_took() -> None:
    tables = [each.rows.select("model", "condition", "task_id", "sub_task", "cluster", "status", "scores")
              for each in two([row("r1", 0.1)], [row("r1", 0.4)])]  # fmt: skip
    paired = pairs_of([RunRows(Path(name), each) for name, each in zip("ab", tables, strict=True)])
    assert paired.frame["difference"].to_list() == pytest.approx([0.3])
    assert resource_changes_table(paired).rows == ()


def test_programs_enter_no_mean_of_a_condition() -> None:
    a = [row("r1", 0.0), row("r1", 0.0, model="baseline/nop")]
    b = [row("r1", 0.5), row("r1", 0.1, model="baseline/nop")]
    paired = pairs_of(two(a, b))
    (line,) = lines(score_changes_table(paired, [Cut.CONDITION]))
    assert line["b"] == 0.5
    assert pl.Series([one["b"] for one in lines(score_changes_table(paired, [Cut.MODEL]))]).to_list() == [0.5, 0.1]


def test_scores_within_budgets_and_times_cheaper_by_hand() -> None:
    spent = {"r1": (2_000, 1_000), "r2": (6_000, 3_000), "r3": (20_000, 10_000), "r4": (40_000, 20_000)}
    a, b = (
        [row(task, 1.0, total_output_tokens=each[side], cluster=task) for task, each in spent.items()]
        for side in (0, 1)
    )
    paired = pairs_of(two(a, b))
    found = lines(within_budget_table(paired))
    assert [(one["budget"], one["a"], one["b"]) for one in found] == [
        (4_000, 0.25, 0.5),
        (8_000, 0.5, 0.5),
        (16_000, 0.5, 0.75),
        (32_000, 0.75, 1.0),
    ]
    assert [one["difference"] for one in found] == [0.25, 0.0, 0.25, 0.25]
    (line,) = lines(cheaper_table(paired))  # nine tenths of 1.0 are reached with the last episode
    assert (line["target"], line["a"], line["b"], line["times"]) == (0.9, 40_000, 20_000, 2.0)


def test_budgets_tell_groups_apart_and_say_nothing_where_tokens_are_not_known() -> None:
    runs = two([row("r1", 1.0), row("r1", 0.5, model="n")], [row("r1", 1.0), row("r1", 0.0, model="n")])
    found = lines(within_budget_table(pairs_of(runs)))
    assert [(one["model"], one["a"], one["b"]) for one in found[:2]] == [("m", 1.0, 1.0), ("n", 0.5, 0.0)]
    unknown = row("r1", 1.0, total_output_tokens=None)
    assert within_budget_table(pairs_of(two([unknown], [row("r1", 1.0)]))).rows == ()
    assert cheaper_table(pairs_of(two([unknown], [row("r1", 1.0)]))).rows == ()


def test_noise_by_group_and_the_episodes_for_a_gain() -> None:
    def side(shift: float, model: str, repeats: int) -> list[dict[str, object]]:
        return [
            row(f"r{i}", float((i + r) % 3 == 0) * 0.5 + shift * (i % 2), model=model, run_idx=r)
            for i in range(12)
            for r in range(repeats)
        ]

    a = [*side(0.0, "m", 3), *side(0.0, "n", 1), row("gone", 1.0), row("gone", 0.0, run_idx=1)]
    paired = pairs_of(two(a, [*side(0.5, "m", 1), *side(0.0, "n", 1)]))
    noise, sizes = noise_of(paired, 0.05)
    assert [(one["run"], one["model"], one["pairs"], one["repeats"]) for one in lines(noise)] == [
        ("runs/a", "m", 12, 3.0),
        ("A and B", "m", 12, None),
    ]
    first, both = lines(noise)
    # Each of 12 episodes scores 0.5 once in 3 repeats: 2 of 3 pairs differ, and none passes.
    assert (first["verdicts"], first["scores"]) == pytest.approx((0.0, 2 / 3))
    # t of 24 degrees; the variance within is 1 / 12; A has 3 repeats, B one.
    assert first["range"] == pytest.approx(2.0639 * (2 / 12 / 12 / 3) ** 0.5, rel=1e-4)
    assert both["range"] == pytest.approx(2.0639 * (4 / 3 / 12 / 12) ** 0.5, rel=1e-4)
    assert (both["observed"], both["beyond"]) == (pytest.approx(0.25), "yes")
    worse = lines(noise_of(pairs_of(two(side(0.5, "m", 1), side(0.0, "m", 3))))[0])[-1]
    assert (worse["observed"], worse["beyond"]) == (pytest.approx(-0.25), "yes")
    assert {one["repeats"] for one in lines(sizes) if one["model"] == "m"} == {1, 2, 4, 8}
    assert all(one["answers"] == one["episodes"] * one["repeats"] for one in lines(sizes))
    assert readable_table(sizes).rows == sizes.rows
    assert [table.name for table in noise_of(paired)] == ["noise"]
    assert noise_of(pairs_of(two(BEFORE, AFTER)))[0].rows == ()
