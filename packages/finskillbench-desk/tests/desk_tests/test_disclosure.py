"""Disclosure of cases: every structure at every level, and no structure told by a case's number."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from finskillbench.domains.building import BuildContext
from finskillbench.edition import build_edition
from finskillbench.errors import InputError
from finskillbench_desk.disclosure import PlannedCase, plan

STRUCTURES, TIERS = ("a", "b", "c", "d", "e", "f"), ("easy", "medium", "hard")


def planned(seed: int, **options: Any) -> list[PlannedCase]:
    panels: Any = SimpleNamespace(universe=("AAA",))
    return list(plan(BuildContext(panels, seed, **options), 36, STRUCTURES, TIERS))


def test_every_structure_has_every_level_and_tier_equally_often() -> None:
    cases = planned(1)
    assert [case.number for case in cases] == list(range(36))
    assert set(Counter((case.structure, case.disclosure) for case in cases).values()) == {3}
    assert set(Counter((case.structure, case.tier) for case in cases).values()) == {2}


def test_a_number_tells_no_structure() -> None:
    orders = {tuple(case.structure for case in planned(seed)[:6]) for seed in range(20)}
    assert len(orders) > 15
    assert all(set(order) == set(STRUCTURES) for order in orders)


@pytest.mark.parametrize("level", ["described", "data"])
def test_a_build_may_be_of_one_level(level: str) -> None:
    assert {case.disclosure for case in planned(1, disclosure=level)} == {level}
    full = planned(1, disclosure="full", episodes=4)
    assert full == [PlannedCase(number, "full", None, TIERS[number % 3]) for number in range(4)]


def test_a_suite_without_laws_has_no_disclosure(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--disclosure: no case of the suite paper follows a law; leave it out or"):
        build_edition(disclosure="full", out=tmp_path / "edition")
    assert not (tmp_path / "edition").exists()
