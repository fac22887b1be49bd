"""Disclosure of cases: every structure at every level, and no structure told by a case's number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from finskillbench.domains.building import BuildContext
from finskillbench.edition import build_edition
from finskillbench.episode import Episode, Prompt
from finskillbench.errors import InputError
from finskillbench.splits import is_reserved
from finskillbench_desk.allocate import laws as allocate
from finskillbench_desk.disclosure import PlannedCase, plan, structure_of
from finskillbench_desk.domain import DOMAIN
from finskillbench_desk.forensic_screen import laws as forensic_screen
from finskillbench_desk.trade_over_time import laws as trade_over_time

STRUCTURES, TIERS = ("a", "b", "c", "d", "e", "f"), ("easy", "medium", "hard")


def planned(seed: int, structures: Sequence[str] = STRUCTURES, **options: Any) -> list[PlannedCase]:
    panels: Any = SimpleNamespace(universe=("AAA",))
    return list(plan(BuildContext(panels, seed, **options), 36, structures, TIERS))


def test_every_structure_has_every_level_and_tier_equally_often() -> None:
    cases = planned(1)
    assert [case.number for case in cases] == list(range(36))
    assert set(Counter((case.structure, case.disclosure) for case in cases).values()) == {3}
    assert set(Counter((case.structure, case.tier) for case in cases).values()) == {2}


def test_a_number_tells_no_structure() -> None:
    orders = {tuple(case.structure for case in planned(seed)[:6]) for seed in range(20)}
    assert len(orders) > 15
    assert all(set(order) == set(STRUCTURES) for order in orders)


def test_ten_cases_have_every_structure() -> None:
    """A thorough run validates as many of each kind; the first cases have a structure each."""
    for kind in (allocate, trade_over_time, forensic_screen):
        cases = planned(1, tuple(kind.STRUCTURES), episodes=10)
        assert {case.structure for case in cases} == set(kind.STRUCTURES)


@pytest.mark.parametrize("level", ["described", "data"])
def test_a_build_may_be_of_one_level(level: str) -> None:
    assert {case.disclosure for case in planned(1, disclosure=level)} == {level}
    full = planned(1, disclosure="full", episodes=4)
    assert full == [PlannedCase(number, "full", None, TIERS[number % 3]) for number in range(4)]


def test_some_structures_of_each_kind_are_reserved_for_tests() -> None:
    for structures in (allocate.STRUCTURES, trade_over_time.STRUCTURES, forensic_screen.STRUCTURES):
        assert 1 <= sum(map(is_reserved, structures)) <= len(structures) / 3


def test_the_template_of_a_case_is_its_structure_or_date() -> None:
    episode = Episode("id", "desk", "allocate", date(2021, 6, 30), "easy", {}, Prompt("", ""))
    assert structure_of(episode, {"structure": "market_level_break"}) == "market_level_break"
    assert structure_of(episode, {}) == "2021-06-30"
    for subtask in DOMAIN.subtasks[:3]:
        assert subtask.template(episode, {"structure": "a"}) == "a"


def test_a_suite_without_laws_has_no_disclosure(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--disclosure: no case of the suite paper follows a law; leave it out or"):
        build_edition(disclosure="full", out=tmp_path / "edition")
    assert not (tmp_path / "edition").exists()
