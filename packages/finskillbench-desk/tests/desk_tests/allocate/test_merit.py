"""The share of the attainable gain: its ends, what beats nothing, and what cannot be gamed."""

import math
from typing import Any

import numpy as np
import pytest
from desk_tests.allocate.cases import played, played_law
from hypothesis import given, settings
from hypothesis import strategies as st

from finskillbench_desk.allocate.prompts import problem_of, weights_verdict
from finskillbench_desk.allocate.proof import attempts
from finskillbench_desk.allocate.sources import NAMES, PENALTY
from finskillbench_desk.engines.trading.net_of_costs import optimum


def test_the_optimum_earns_one_and_the_textbook_answers_nothing() -> None:
    one = played(0)
    assert one.score(one.truth.expected_output).value == pytest.approx(1.0, abs=1e-9)
    assert one.score(one.weights(one.case.world.book.current)).value <= 1e-9
    ignoring = optimum(one.case.world.book.problem(np.zeros(NAMES))).weights
    assert one.score(one.weights(ignoring)).value <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_no_portfolio_at_hand_earns_more_than_the_optimum(number: int) -> None:
    one = played(number)
    problem = problem_of(one.truth.verification)
    tried = attempts(problem, one.case.best.weights, count=3000, seed=number)
    assert max(problem.penalised(weights, PENALTY) for weights in tried) <= one.case.attainable + 1e-9


@pytest.mark.parametrize("number", range(3))
def test_an_oracle_that_knows_what_is_true_earns_no_more(number: int) -> None:
    one = played(number)
    world = one.case.world
    assert one.score(one.weights(optimum(world.book.problem(world.effects[-1])).weights)).value <= 1.0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-6, 0.5))
def test_breaking_limits_never_pays(seed: int, size: float) -> None:
    one = played(1)
    moved = one.case.best.weights + size * np.random.default_rng(seed).normal(size=NAMES)
    problem = problem_of(one.truth.verification)
    assert problem.penalised(moved, PENALTY) <= one.case.attainable + 1e-9


def test_rounding_to_six_decimals_costs_nothing_to_speak_of() -> None:
    one = played(2)
    rounded = {name: round(weight, 6) for name, weight in one.truth.expected_output["weights"].items()}
    assert one.score({"weights": rounded}).value > 0.995
    assert one.score({"weights": {name: weight for name, weight in rounded.items() if weight}}).value > 0.995


@pytest.mark.parametrize(
    "answer",
    [{}, {"weights": {}}, {"weights": None}, {"weights": {"NOBODY": 1.0}}, {"weights": {"N000": "1"}},
     {"weights": {"N000": math.inf}}, {"weights": {"N000": 1e308}}, {"weights": [1]}, {"weights": {"N000": True}}],
)  # fmt: skip
def test_what_is_no_book_earns_nothing(answer: Any) -> None:
    found = played(0).score(answer)
    assert found.value == 0.0
    assert set(found.details["traps"].values()) == {"untested"}


def test_what_is_charged_is_the_price_of_each_unit_broken() -> None:
    one = played(0)
    weights = dict(one.truth.expected_output["weights"])
    largest = max(weights, key=lambda name: weights[name])
    found = one.score({"weights": weights | {largest: weights[largest] + 0.05}})
    assert found.details["charged"] == pytest.approx(PENALTY * sum(found.details["broken"].values()))
    assert found.details["broken"]["fully_invested"] == pytest.approx(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_each_mistake_is_told_from_the_weights(number: int) -> None:
    one = played(number)
    told = one.score(one.truth.expected_output).details["traps"]
    assert set(told.values()) == {"avoided"}
    for name, wrong in one.truth.verification["misread"].items():
        assert one.score(one.weights(wrong)).details["traps"][name] == "fallen"


def test_a_book_far_from_both_says_nothing_of_a_mistake() -> None:
    best, wrong, held = np.zeros(6), np.array([1.0, 1, 0, 0, 0, 0]), np.array([0.7, 0.7, 0, 0, 0, 0])
    assert weights_verdict(np.array([0.9, 0.9, 5, 5, 5, 5]), best, wrong, held) == "fallen"
    assert weights_verdict(np.array([1.0, -1, 0, 0, 0, 0]), best, wrong, held) == "avoided"
    assert weights_verdict(np.array([3.0, -3, 0, 0, 0, 0]), best, wrong, held) == "untested"
    assert weights_verdict(np.array([0.5, 0.5, 0, 0, 0, 0]), best, wrong, held) == "untested"
    assert weights_verdict(held, best, wrong, held) == "untested"


def test_an_answer_that_did_nothing_has_avoided_and_fallen_for_nothing() -> None:
    for one in (played(0), played(1), played_law()):
        traps = one.score(one.weights(one.case.world.book.current)).details["traps"]
        assert set(traps.values()) == {"untested"}
