"""The traps of a case come out of its tables, by code that knows nothing of what was planted; defects are found."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, cast

import pytest
from desk_tests.forensic_screen.playing import full_input, task
from desk_tests.forensic_screen.worlds import panel, task_input, world
from tests.sampling import sampled

from finskillbench.domains.examples import Label
from finskillbench.findings import Findings
from finskillbench_desk.forensic_screen import subtask
from finskillbench_desk.forensic_screen.rederive import rederive_traps
from finskillbench_desk.forensic_screen.subtask import stored_traps

pytestmark = pytest.mark.slow

CASES = [("easy", 0), ("medium", 1), ("hard", 2)]
Stored = list[dict[str, Any]]


@pytest.mark.parametrize(("tier", "seed"), sampled(CASES, 2))
def test_traps_are_told_by_the_tables(tier: str, seed: int) -> None:
    stored, again = stored_traps(world(tier, seed), panel(tier, seed)), rederive_traps(task_input(tier, seed))
    assert [(trap["kind"], trap["where"]) for trap in stored] == [(trap["kind"], trap["where"]) for trap in again]
    for trap, other in zip(stored, again, strict=True):
        assert trap["probabilities"] == pytest.approx(other["probabilities"], abs=1e-6)


@pytest.mark.parametrize(("tier", "seed"), CASES)
def test_what_is_planted_is_a_trap(tier: str, seed: int) -> None:
    made = world(tier, seed)
    names = made.tables["companies"]["company"].to_list()
    planted = {(place.kind, names[place.company]) for place in made.pitfalls if place.planted}
    orderly = {names[place.company] for place in made.pitfalls if not place.planted}
    told = {(trap["kind"], trap["where"]) for trap in stored_traps(made, panel(tier, seed))}
    assert len(planted & told) >= 0.9 * len(planted)
    assert not orderly & {where for _, where in told}


def _nudge(stored: Stored) -> None:
    company = next(iter(stored[0]["probabilities"]))
    stored[0]["probabilities"][company] -= 1e-5


DEFECTS: dict[str, Callable[[Stored], object]] = {
    "one left out": lambda stored: stored.pop(0),
    "one told twice": lambda stored: stored.append(stored[0]),
    "another order": lambda stored: stored.reverse(),
    "another kind": lambda stored: stored[0].update(kind="press"),
    "another place": lambda stored: stored[0].update(where="memo"),
    "another company": lambda stored: stored[0].update(probabilities={"K000": 0.9}),
    "another probability": _nudge,
    "a field beside": lambda stored: stored[0].update(score=1.0),
    "no object": lambda stored: stored.append("base_rate"),  # pyright: ignore[reportArgumentType]
}


def _messages(stored: Stored) -> list[str]:
    """What the proof of a case finds wrong where these are its traps."""
    made, findings = task("medium", 1), Findings()
    truth = replace(made.truth, verification={**made.truth.verification, "traps": stored})
    subtask.proof(Label(made.episode, cast("Any", full_input(made)), truth, made.certificate), findings)
    return [finding.message for finding in findings.found]


def _stored() -> Stored:
    return copy.deepcopy(task("medium", 1).truth.verification["traps"])


@cache
def _shown() -> Stored:
    return rederive_traps(full_input(task("medium", 1)))


def test_the_traps_of_a_sound_case_are_sound() -> None:
    assert _messages(_stored()) == []


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_of_a_trap_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tables show is derived once for all defects of what is stored."""
    monkeypatch.setattr(subtask, "traps_again", lambda _: _shown())
    stored = _stored()
    DEFECTS[name](stored)
    assert _messages(stored)
