"""Names and numbers: nobody goes by another's name, and who sends much weighs no more than who sends one."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from tests.publish.conftest import Bundled
from tests.publish.hostile import Forger, model_name
from tests.publish.test_ranking import results

from finskillbench.analysis.inference import holm, holm_weighted
from finskillbench.analysis.ranking import paired_differences
from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.publish.bundle import check_display_text
from finskillbench.publish.leaderboard import gather_bundles


@pytest.mark.parametrize("name", ["Bob\u200b", "\u202eBob", "B\u00adob", "Bob\ue000"])
def test_characters_that_are_not_visible_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="invisible character"):
        check_display_text("name", name)


def test_names_of_any_alphabet_are_taken() -> None:
    for name in ("Лаборатория Bob", "α-Lab", "株式会社カブ", "Müller & Söhne", "Lab №1"):
        check_display_text("name", name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("second", "taken"), [("bob", []), (None, ["1.zip"])], ids=["another key", "without a signature"]
)
def test_who_comes_first_does_not_take_the_name(
    second: str | None, taken: list[str], bundled: Bundled, small: Edition, tmp_path: Path
) -> None:
    """A name that two keys claim is of neither, in any order; an unsigned bundle cannot take it from a signed one."""
    paths = [bundled("weak", "Bob", "ann").rename(tmp_path / "1.zip")]
    paths.append(bundled("middle", "Bob", second).rename(tmp_path / "2.zip"))
    third = bundled("strong", "Carl", None)
    for order in (paths, paths[::-1]):
        found = gather_bundles([*order, third], small, unsigned=True, keep_going=True)
        assert [each.bundle.path.name for each in found.taken] == [*taken, third.name]
        assert all("has the submitter 'Bob'" in each.reason for each in found.refused)


def test_many_entries_of_one_make_it_no_harder_for_others() -> None:
    """Ten months that tell a from b at p < 0.05 alone, beside nine copies of c by one submitter."""
    generator = np.random.default_rng(5)
    noise = generator.normal(0, 0.1, 12)
    scores = {"a": (0.5 + noise).tolist(), "b": [0.3] * 12}
    copies = {f"c{number}": generator.random(12).tolist() for number in range(9)}
    owners = {"a": "ann", "b": "bob", **dict.fromkeys(copies, "eve")}

    def of_a_and_b(more: dict[str, list[float]], whose: dict[str, str] | None) -> float:
        every = {**scores, **more}
        told = paired_differences(results(**every), "no_skill", list(every), whose)
        return dict(zip(told.select("a", "b").iter_rows(), told["p_holm"].to_list(), strict=True))["a", "b"]

    alone = of_a_and_b({}, None)
    assert of_a_and_b(copies, owners) <= 4 * alone * (1 + 1e-9)  # pairs of three submitters, and eve's own
    assert of_a_and_b(copies, None) > 20 * alone


def test_equal_weights_are_the_usual_correction() -> None:
    values = np.random.default_rng(2).random(20) ** 4
    assert holm_weighted(values.tolist(), [0.5] * 20) == pytest.approx(holm(values.tolist()))


def test_a_weighted_correction_by_hand() -> None:
    """p / w are 0.02, 0.03 and 0.4: 0.01 * 1 / 0.5, then 0.0075 * 0.5 / 0.25, which is less, then 0.1 * 0.25 / 0.25."""
    assert holm_weighted([0.01, 0.0075, 0.1], [0.5, 0.25, 0.25]) == pytest.approx([0.02, 0.02, 0.1])


def test_a_board_takes_so_many_entries_of_one(
    bundled: Bundled, keys: dict[str, Path], small: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [
        model_name(Forger(bundled("weak").rename(tmp_path / f"{number}.zip"), keys["ann"]), f"sybil/{number}")
        for number in range(3)
    ]
    monkeypatch.setattr(import_module("finskillbench.publish.leaderboard.gather"), "MOST_ENTRIES", 2)
    with pytest.raises(InputError, match="makes 3 entries of 'Ann', but a leaderboard takes 2 of each submitter"):
        gather_bundles(paths, small)
    assert len(gather_bundles(paths[:2], small).taken) == 2


def test_what_a_reader_should_know_is_remarked(
    bundled: Bundled, keys: dict[str, Path], small: Edition, tmp_path: Path
) -> None:
    first = bundled()
    forger = Forger(bundled("weak", "Bob", "bob"), keys["bob"])
    forger.rows(lambda _, row: replace(row, run_idx=7, skills_loaded=("x",) if row.condition == "no_skill" else ()))
    forger.answers(lambda lines: [{**line, "run_idx": 7} for line in lines])
    told = {each.bundle.path.name: each.remarks for each in gather_bundles([first, forger.path], small).taken}
    assert "only repeats 7, counted from 0" in told["weak-bob.zip"]
    assert "skills were loaded in 36 no_skill episodes" in told["weak-bob.zip"]
    assert not any("repeats" in remark for remark in told["strong-ann.zip"])
