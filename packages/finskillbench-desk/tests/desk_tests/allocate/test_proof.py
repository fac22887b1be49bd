"""The proof of a label: it holds of what is built, and each planted defect fails it at its place."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from desk_tests.allocate.cases import played

from finskillbench.findings import Findings
from finskillbench_desk.allocate import rederive
from finskillbench_desk.allocate.proof import proof


def failures(**changed: Any) -> list[str]:
    found = Findings()
    proof(replace(played(0).label, **changed), found)
    return [failure.message for failure in found.found]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_the_posterior_is_found_again_from_what_an_agent_sees(number: int) -> None:
    one = played(number)
    effects, doubt = rederive.rederive_effects(one.data)
    assert np.abs(effects - one.case.belief.alpha).max() < 1e-12
    assert np.abs(doubt - one.case.belief.doubt).max() < 1e-12


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
