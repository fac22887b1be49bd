"""Cases whose law is not disclosed: the scale, the proof, the texts, and answers of known quality."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from desk_tests.allocate.cases import Played, played, played_law

from finskillbench.findings import Findings
from finskillbench_desk.allocate import SUBTASK, AllocateInput, verification_of
from finskillbench_desk.allocate.laws import STRUCTURES, draw_law, follows, law_from_json, law_json
from finskillbench_desk.allocate.posterior import law_effects
from finskillbench_desk.allocate.procedures import PROCEDURES
from finskillbench_desk.allocate.prompts import allocation_data_memo
from finskillbench_desk.allocate.proof import proof
from finskillbench_desk.allocate.sources import LEAST_COST, LEAST_GAIN, SOURCE_NAMES, SOURCES
from finskillbench_desk.allocate.traps import PLANTERS, scored_columns
from finskillbench_desk.engines.trading.net_of_costs import optimum

QUICK = "market_change_break"
SOME = [each for each in STRUCTURES if each != QUICK][::2]
"""The others are proved in the edition of a thorough run."""


def failures(one: Played, **changed: Any) -> list[str]:
    found = Findings()
    proof(replace(one.label, **changed), found)
    return [failure.message for failure in found.found]


@pytest.mark.parametrize("structure", [QUICK, *(pytest.param(each, marks=pytest.mark.slow) for each in SOME)])
def test_a_structure_has_a_case_that_is_proved(structure: str) -> None:
    """Its ends score 1 and 0, its graded examples are in their ranges, and its mistakes cost enough."""
    one = played_law(structure)
    assert failures(one) == []
    assert one.case.gain >= LEAST_GAIN
    assert one.score(one.truth.expected_output).value == pytest.approx(1.0, abs=1e-9)
    assert one.score({}).value == one.score(one.weights(one.case.world.book.current)).value == 0.0
    for name, weights in one.case.misread.items():
        assert 1 - one.case.share(weights) >= LEAST_COST
        assert one.score(one.weights(weights)).details["traps"][name] == "fallen"
    above = 1.0
    for example in SUBTASK.examples.graded(one.label):
        score = one.score(example.answer).value
        assert example.least - 1e-9 <= score <= min(example.most, above) + 1e-9, example.name
        above = score
    for name, answer in SUBTASK.examples.exploits(one.data).items():
        assert one.score(answer).value < 0.5, name


def test_an_oracle_that_knows_the_present_effects_earns_no_more() -> None:
    one = played_law()
    weights = optimum(one.case.world.book.problem(one.case.world.effects[-1])).weights
    assert 0.0 < one.score(one.weights(weights)).value <= 1.0


def test_the_truth_is_a_function_of_visible_data_and_law() -> None:
    """The answers of the right reading and of each mistake are optima under a posterior without hidden effects."""
    one = played_law()
    world = one.case.world
    for name in ("", *one.case.misread):
        reading = scored_columns(world.sources, one.case.pitfalls, frozenset({name}))
        found = law_effects(world.law, *reading, world.residuals, world.book)
        weights = optimum(world.book.problem(*found), unique=False).weights
        stored = one.case.misread.get(name, one.case.best.weights)
        assert one.case.share(weights) == pytest.approx(one.case.share(stored), abs=1e-6)
    other = replace(world, effects=np.zeros_like(world.effects))
    assert verification_of(replace(one.case, world=other)) == verification_of(one.case)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_law_survives_json(structure: str) -> None:
    law = draw_law(np.random.default_rng(1), structure)
    again = law_from_json(json.loads(json.dumps(law_json(law), allow_nan=False)))
    assert again == law
    assert follows(again, structure)
    assert not any(follows(law, other) for other in STRUCTURES if other != structure)


DEFECTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "strength": (
        lambda known: known["law"].__setitem__("strength", (known["law"]["strength"] + 0.01) / 2),
        "rederivation",
    ),
    "form": (lambda known: known["law"].__setitem__("form", "level"), "the law is none of"),
    "no law": (lambda known: known.update(law=None), "needs a law"),
    "effect": (lambda known: known["effects"].__setitem__(3, known["effects"][3] + 1e-5), "an expected effect"),
    "covariance": (lambda known: known["effect_covariance"][0][1].__setitem__(1, 1e-3), "a covariance of effects"),
    "zero": (lambda known: known.__setitem__("textbook_utility", known["textbook_utility"] - 1e-5), "textbook_utility"),
    "trap": (lambda known: _first(known["misread"]).__setitem__(0, 0.01), "the cost of the mistake"),
    "traps": (lambda known: known["misread"].clear(), "mistakes"),
}


def _first(misread: dict[str, list[float]]) -> list[float]:
    return next(iter(misread.values()))


@pytest.mark.parametrize("name", DEFECTS)
def test_a_tampered_truth_fails_the_proof(name: str) -> None:
    one = played_law()
    plant, expected = DEFECTS[name]
    known = deepcopy(dict(one.truth.verification))
    plant(known)
    assert any(expected in failure for failure in failures(one, truth=replace(one.truth, verification=known)))


def test_no_text_or_field_depends_on_the_law() -> None:
    """The memo is a function of the book; the log names sources, vendors and quarters only."""
    for disclosure in ("described", "data"):
        one = played_law(QUICK, disclosure)
        law, given = one.case.world.law, one.label.episode.input
        assert given["documents"]["memo"] == allocation_data_memo(one.case.world.book, disclosure)
        assert set(given) == set(played(0).label.episode.input) - {"family"}
        msgspec.convert(given, AllocateInput)
        text = json.dumps({**given, "factor_covariance": None}) + str(one.label.episode.prompt)
        for name in ("strength", "change", "spread", "nothing"):
            assert not re.search(rf"\b{re.escape(str(getattr(law, name)))}\b", text), name
        assert not re.search(r"renew|intermittent|degrees of freedom|probabilit", text)
    described, data = (allocation_data_memo(one.case.world.book, level) for level in ("described", "data"))
    assert described.startswith(data)


@pytest.mark.parametrize("kind", ["unit", "reversed", "stale"])
def test_an_error_in_the_data_does_not_mark_important_sources(kind: str) -> None:
    """Most sources with a repairable error are drawn at random, and their names are in the order of the columns."""
    world, order = played_law().case.world, list(range(SOURCES))[::-1]
    rng = np.random.default_rng(0)
    planted = PLANTERS[kind](rng, world, order, False)
    assert planted
    columns = planted[0].columns
    assert len(columns) == 19 > 2 * len(set(columns) & set(range(SOURCES - 10, SOURCES))) >= 6
    assert list(columns) == sorted(columns)
    assert planted[0].where == "+".join(SOURCE_NAMES[column] for column in columns)


@pytest.mark.parametrize("disclosure", ["described", "data"])
def test_the_programs_run_without_the_family(disclosure: Any) -> None:
    one = played_law(QUICK, disclosure)
    scores = {name: one.baseline(name).value for name in PROCEDURES}
    assert all(0.0 <= score <= 1.0 for score in scores.values())
    assert scores["textbook"] <= 0.2
