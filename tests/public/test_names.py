"""Names and numbers: nobody goes by another's name, and who sends much weighs no more than who sends one."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from tests.public.conftest import Bundled
from tests.public.hostile import Forger, model_name
from tests.public.test_ranking import results

from finskillbench.analysis.inference.multiplicity import holm, holm_weighted
from finskillbench.analysis.ranking import differences
from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.reports.leaderboard import gather
from finskillbench.runs.bundle.names import folded
from finskillbench.runs.bundle.plain import refuse_words

ALIKE = ("Bob", "ＢＯＢ", "B0b", "b o b", "Bob\u0332", "\u0412\u043eb", "Bob.", "\u0392ob", "B\u00f6b")


@pytest.mark.parametrize("name", ALIKE)
def test_names_that_look_alike_are_the_same(name: str) -> None:
    assert folded(name) == folded("Bob")


def test_names_that_look_unlike_are_not() -> None:
    names = ("Ann", "Bob", "Carl", "Team 2", "Team 3", "北京", "東京", "Лаборатория", "Lab")
    assert len({folded(name) for name in names}) == len(names)


@pytest.mark.parametrize(
    "name", ["Bob\u3164", "\u115fBob", "Bob\u2800", "Bob\ufe0f", "B\u034fob", "B\u043eb", "B\u03bfb", "Bob\U000e0101"]
)
def test_what_cannot_be_seen_or_is_of_two_alphabets_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"cannot be seen|mixes letters"):
        refuse_words("name", name)


def test_words_of_one_alphabet_each_are_taken() -> None:
    for name in ("Лаборатория Bob", "α-Lab", "株式会社カブ", "Müller & Söhne", "Lab №1"):
        refuse_words("name", name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signers", "taken"),
    [
        (None, []),
        ("eve@x {ann}bob@x {bob}", ["2.zip"]),
        ("eve@x {ann}else@x {bob}", []),
        ("bob@x {ann}bob@y {bob}", []),
    ],
    ids=["nobody is known", "the owner is called so", "neither owner is", "both owners are"],
)
def test_who_comes_first_does_not_take_the_name(
    signers: str | None, taken: list[str], bundled: Bundled, keys: dict[str, Path], small: Edition, tmp_path: Path
) -> None:
    paths = [bundled("weak", "Bob", "ann").rename(tmp_path / "1.zip"), bundled("middle", "BOB", "bob")]
    paths[1] = paths[1].rename(tmp_path / "2.zip")
    third = bundled("strong", "Carl", None)
    allowed = None
    if signers is not None:
        allowed = tmp_path / "allowed"
        allowed.write_text(signers.format(**{who: key.with_suffix(".pub").read_text() for who, key in keys.items()}))
    found = gather([*paths, third], small, signers=allowed, unsigned=True, keep_going=True)
    assert [each.bundle.path.name for each in found.taken] == [*taken, third.name]
    assert all("calls itself" in each.reason for each in found.refused)


def test_many_entries_of_one_make_it_no_harder_for_others() -> None:
    """Ten months that tell a from b at p < 0.05 alone, beside nine copies of c by one submitter."""
    generator = np.random.default_rng(5)
    noise = generator.normal(0, 0.1, 12)
    scores = {"a": (0.5 + noise).tolist(), "b": [0.3] * 12}
    copies = {f"c{number}": generator.random(12).tolist() for number in range(9)}
    owners = {"a": "ann", "b": "bob", **dict.fromkeys(copies, "eve")}

    def of_a_and_b(more: dict[str, list[float]], whose: dict[str, str] | None) -> float:
        every = {**scores, **more}
        told = differences(results(**every), "no_skill", list(every), whose)
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
    monkeypatch.setattr(import_module("finskillbench.reports.leaderboard.gather"), "MOST_ENTRIES", 2)
    with pytest.raises(InputError, match="makes 3 entries of 'Ann', and a board takes 2 of each submitter"):
        gather(paths, small)
    assert len(gather(paths[:2], small).taken) == 2


def test_what_a_reader_should_know_is_remarked(
    bundled: Bundled, keys: dict[str, Path], small: Edition, tmp_path: Path
) -> None:
    first, copy = bundled(), bundled("strong", "Bob", "bob")
    forger = Forger(bundled("weak", "Bob", "bob"), keys["bob"])
    forger.rows(
        lambda _, row: replace(row, run_idx=7, skills_loaded=("x",) if row.condition == "no_skill" else ()),
    )
    forger.answers(lambda lines: [{**line, "run_idx": 7} for line in lines])
    told = {each.bundle.path.name: each.remarks for each in gather([first, copy, forger.path], small).taken}
    assert "of its repeats only 7, counted from 0" in told["weak-bob.zip"]
    assert "skills were loaded in 36 episodes without any" in told["weak-bob.zip"]
    assert "72 of 72 answers are byte for byte those of strong-bob.zip" in told["strong-ann.zip"]
    assert "72 of 72 answers are byte for byte those of strong-ann.zip" in told["strong-bob.zip"]
    assert not any(
        "byte for byte" in remark or "repeats" in remark for remark in gather([first], small).taken[0].remarks
    )
