"""The proof of a label: it holds of what is built, and each planted defect fails it at its place."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from desk_tests.allocate.cases import played

from finskillbench.findings import Findings
from finskillbench_desk.allocate.laws import disclosed_law, law_json
from finskillbench_desk.allocate.proof import AGREEMENT, proof
from finskillbench_desk.allocate.rederive import rederive_effects
from finskillbench_desk.allocate.visible import read_visible


def failures(**changed: Any) -> list[str]:
    found = Findings()
    proof(replace(played(0).label, **changed), found)
    return [failure.message for failure in found.found]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(2))
def test_the_posterior_is_found_again_from_what_an_agent_sees(number: int) -> None:
    one, family = played(number), played(number).data["family"]
    law = disclosed_law(family["nothing"], family["signal_mean"], family["change"])
    assert law == one.case.world.law
    effects, doubt = rederive_effects(law, read_visible(one.data))
    assert np.abs(effects - one.case.belief.alpha).max() < AGREEMENT
    assert np.abs(doubt - one.case.belief.doubt).max() < AGREEMENT


def test_a_label_as_built_is_proved() -> None:
    assert failures() == []


DEFECTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "an effect": (lambda known: known["effects"].__setitem__(3, known["effects"][3] + 1e-6), "an expected effect"),
    "a doubt": (lambda known: known["effect_covariance"][2][1].__setitem__(1, 1e-3), "a covariance of effects"),
    "a cost": (lambda known: known["book"]["linear"].__setitem__(0, 0.5), "differs from the tables"),
    "the best": (lambda known: known.__setitem__("attainable_utility", 0.5), "attainable_utility differs"),
    "the textbook": (lambda known: known.__setitem__("textbook_utility", -0.5), "textbook_utility is not"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_fails_the_proof(name: str) -> None:
    plant, told = DEFECTS[name]
    truth = played(0).truth
    known = deepcopy(dict(truth.verification))
    plant(known)
    assert any(told in failure for failure in failures(truth=replace(truth, verification=known)))


@pytest.mark.parametrize("name", ["change", "analyst_share", "signal_deviation"])
def test_a_family_that_is_not_of_the_disclosed_form_or_of_the_case_fails_the_proof(name: str) -> None:
    data = played(0).data
    stated = failures(task_input={**data, "family": {**data["family"], name: data["family"][name] + 1e-4}})
    assert any("not those of a disclosed law" in failure or "an expected effect" in failure for failure in stated)


def test_a_disclosed_law_is_not_stored() -> None:
    truth = played(0).truth
    assert truth.verification["law"] is None
    known = {**truth.verification, "law": law_json(played(0).case.world.law)}
    assert any("needs a law" in failure for failure in failures(truth=replace(truth, verification=known)))


def test_a_trap_that_costs_nothing_fails_the_proof() -> None:
    truth = played(0).truth
    known = deepcopy(dict(truth.verification))
    known["misread"] = dict.fromkeys(known["misread"], played(0).case.best.weights.tolist())
    assert any("costs" in failure for failure in failures(truth=replace(truth, verification=known)))


def test_weights_or_multipliers_of_another_problem_fail_the_proof() -> None:
    one = played(0)
    certificate = dict(one.label.certificate)
    certificate["multipliers"] = [0.0] * len(certificate["multipliers"])
    assert any("duality gap" in failure for failure in failures(certificate=certificate))
    weights = dict.fromkeys(one.truth.expected_output["weights"], 1 / 120)
    told = failures(truth=replace(one.truth, expected_output={"weights": weights}))
    assert any("do not earn attainable_utility" in failure for failure in told)
