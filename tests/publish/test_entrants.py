"""Who an entrant is: nobody is ranked by the episodes that they chose, or on the line of another."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.publish.conftest import Bundled
from tests.publish.hostile import Forger, model_name
from tests.publish.test_round_trip import board_of, tables

from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.publish.bundle import MANIFEST


def only(forger: Forger, condition: str, **more) -> Path:
    """The bundle with one of its conditions."""
    forger.without(lambda row: row.condition == condition)
    mounts = json.loads(forger.files()[MANIFEST])["mounts"]
    return forger.manifest(mounts={condition: mounts[condition]}, **more)


def argued(forger: Forger, arguments: str) -> Path:
    """The model with other arguments, everywhere."""
    forger.rows(lambda _, row: replace(row, arguments=arguments))
    forger.answers(lambda lines: [{**line, "arguments": arguments} for line in lines])
    entrants = json.loads(forger.files()[MANIFEST])["entrants"]
    return forger.manifest(entrants=[{**each, "arguments": arguments} for each in entrants])


@pytest.mark.slow
def test_what_is_not_whole_is_not_ranked_with_what_is(
    bundled: Bundled, keys: dict[str, Path], small: Edition, tmp_path: Path
) -> None:
    whole = only(Forger(bundled("weak").rename(tmp_path / "a.zip"), keys["ann"]), "no_skill")
    chosen = Forger(bundled("weak").rename(tmp_path / "b.zip"), keys["ann"])
    chosen.without(lambda row: row.condition == "no_skill" or row.score == 1.0)
    part = only(chosen, "curated", partial="an outage")
    for paths in ((whole, part), (part, whole)):
        (suite,) = board_of(small, *paths).suites
        assert [table.name for table in suite.tables] == ["partial"]
        assert set(suite.tables[0].column("condition")) == {"no_skill", "curated"}


def test_conditions_of_one_entry_may_come_apart(
    bundled: Bundled, keys: dict[str, Path], small: Edition, tmp_path: Path
) -> None:
    together = tables(board_of(small, bundled("weak").rename(tmp_path / "whole.zip")))
    parts = [
        only(Forger(bundled("weak", name).rename(tmp_path / f"{place}.zip"), keys["ann"]), condition)
        for place, (condition, name) in enumerate((("no_skill", "Ann"), ("curated", "ann")))
    ]
    board = board_of(small, *parts)
    assert [each.label for each in board.entries] == ["lab/weak"]
    assert tables(board)["ranking_curated"].rows == together["ranking_curated"].rows
    assert together["ranking_curated"].column("gain_pairs") == (36,)


@pytest.mark.slow
def test_a_name_is_nobody_elses_line(bundled: Bundled, keys: dict[str, Path], small: Edition) -> None:
    paths = [bundled("middle"), bundled("middle", "Bob", "bob")]
    eve = model_name(Forger(bundled("weak", "Bob", "bob"), keys["bob"]), "other/middle (Bob)")
    for order in ((*paths, eve), (eve, *paths)):
        board = board_of(small, *order)
        assert len({each.label for each in board.entries}) == 3
        assert tables(board)["ranking_no_skill"].column("episodes") == (36, 36, 36)
        assert sorted(each.value for each in tables(board)["ranking_no_skill"].column("score")) == [1 / 12, 0.75, 0.75]


def test_arguments_of_one_change_no_label_of_another(bundled: Bundled, keys: dict[str, Path], small: Edition) -> None:
    bob = argued(Forger(bundled("middle", "Bob", "bob"), keys["bob"]), '{"temperature":0.5}')
    board = board_of(small, bundled("middle"), bob)
    assert [each.label for each in board.entries] == ["other/middle (Ann)", "other/middle (Bob)"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"note":"verified"}', "unknown field `note`"),
        ('{"max_tokens":"many"}', "Expected `int"),
        ('{"seed": 1}', "not as runs write them"),
        ('{"base_url":"a\\u202eb"}', "not as runs write them|invisible character"),
        ("[]", "Expected `object`"),
    ],
)
def test_only_arguments_of_runs_are_taken(
    arguments: str, said: str, bundled: Bundled, keys: dict[str, Path], small: Edition
) -> None:
    with pytest.raises(InputError, match=said):
        board_of(small, argued(Forger(bundled(), keys["ann"]), arguments))


def test_pairs_are_not_dropped_by_another_harness(bundled: Bundled, keys: dict[str, Path], small: Edition) -> None:
    forger = Forger(bundled(), keys["ann"])
    path = forger.rows(lambda place, row: replace(row, harness="mine") if row.task_id == "normalization_0" else row)
    with pytest.raises(InputError, match="its harness is 'mine', but 'finskillbench' by its arguments"):
        board_of(small, path)


def of_own_skills(forger: Forger, condition: str, digest: str) -> Path:
    """The curated episodes as if played with skills of somebody's own."""
    files = json.loads(forger.files()[MANIFEST])["mounts"]
    own = {"digest": dict.fromkeys(files["curated"]["digest"], digest), "packages": {"mine": digest}}
    mounts = {"no_skill": files["no_skill"], condition: own}
    forger.rows(lambda _, row: replace(row, condition=condition, mount=digest) if row.condition == "curated" else row)
    forger.answers(
        lambda lines: [{**line, "condition": condition} if line["condition"] == "curated" else line for line in lines]
    )
    return forger.manifest(mounts=mounts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"), [(("skill:mine", "a"), ("skill:mine", "b")), (("skill:a-b", "a"), ("skill:a.b", "a"))]
)
def test_skills_of_ones_own_share_no_table(
    first: tuple[str, str], second: tuple[str, str], bundled: Bundled, keys: dict[str, Path], small: Edition
) -> None:
    ann = of_own_skills(Forger(bundled(), keys["ann"]), first[0], first[1] * 64)
    bob = of_own_skills(Forger(bundled("middle", "Bob", "bob"), keys["bob"]), second[0], second[1] * 64)
    (suite,) = board_of(small, ann, bob).suites
    names = [table.name for table in suite.tables]
    assert len(set(names)) == len(names)
    own = [table for table in suite.tables if table.name.startswith("ranking_skill")]
    assert sorted(table.column("model") for table in own) == [("lab/strong",), ("other/middle",)]
