"""The score: proper, without luck, in order along a ladder, and nothing beats the posterior."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from desk_tests.forensic_screen.playing import full_input, task
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.sampling import sampled

from finskillbench.domains.examples import Label
from finskillbench.findings import Findings
from finskillbench_desk.forensic_screen.difficulty import (
    KIND_NAMES,
    TIERS,
    ParsedAssessments,
    log_score,
    parse_assessments,
    probabilities_verdict,
    score_parts,
    stored_posterior,
)
from finskillbench_desk.forensic_screen.examples import assessments_of, exploits, graded_examples, shrunk
from finskillbench_desk.forensic_screen.subtask import SUBTASK, certified

CASES = [(tier, 40 + place) for place, tier in enumerate(TIERS)]


def stored(tier: str, seed: int) -> tuple[list[str], np.ndarray, float]:
    verification = task(tier, seed).truth.verification
    return *stored_posterior(verification), verification["base_rate"]


def test_log_score_of_a_hand_count() -> None:
    # Two companies, 0.8 and 0.1: 0.8 ln 0.8 + 0.2 ln 0.2 + 0.1 ln 0.5 + 0.9 ln 0.5
    expected = 0.8 * math.log(0.8) + 0.2 * math.log(0.2) + math.log(0.5)
    assert log_score(np.array([0.8, 0.5]), np.array([0.8, 0.1])) == pytest.approx(expected, abs=1e-15)


def test_certainty_is_clipped_at_a_thousandth() -> None:
    p = np.array([0.3])
    assert log_score(np.array([0.0]), p) == log_score(np.array([0.001]), p)
    assert log_score(np.array([1.0]), p) == pytest.approx(0.3 * math.log(0.999) + 0.7 * math.log(0.001))


@pytest.mark.parametrize(("said", "read"), [(1.0 + 2e-16 * 2, 1.0), (1.0 + 9e-7, 1.0), (-1e-9, 0.0), (0.25, 0.25)])
def test_rounding_takes_no_probability_out_of_its_range(said: float, read: float) -> None:
    found = parse_assessments({"assessments": [{"company": "A", "probability": said}]}, ["A"])
    assert found.probabilities[0] == read


@pytest.mark.parametrize("said", [1.0 + 2e-6, -2e-6, 95.0, math.inf])
def test_a_number_that_is_no_probability_says_nothing(said: float) -> None:
    assert np.isnan(parse_assessments({"assessments": [{"company": "A", "probability": said}]}, ["A"]).probabilities[0])


@pytest.mark.slow
@pytest.mark.parametrize(("tier", "seed"), CASES)
def test_no_single_kind_for_all_earns_anything(tier: str, seed: int) -> None:
    _, posterior, rate = stored(tier, seed)
    managed = posterior.sum(axis=1)
    best = int(posterior.sum(axis=0).argmax())
    for kind in range(len(KIND_NAMES)):
        assert score_parts(ParsedAssessments(managed, np.full(len(managed), kind)), posterior, rate)["kinds"] == 0.0
    # Whoever names the best single kind, and one company better, earns something.
    kinds = np.full(len(managed), best)
    other = int((posterior.max(axis=1) - posterior[:, best]).argmax())
    kinds[other] = posterior[other].argmax()
    assert score_parts(ParsedAssessments(managed, kinds), posterior, rate)["kinds"] > 0.0


@pytest.mark.parametrize(("tier", "seed"), CASES)
def test_the_truth_earns_everything_and_the_ladder_falls(tier: str, seed: int) -> None:
    made = task(tier, seed)
    label = Label(made.episode, full_input(made), made.truth, made.certificate)
    scores = []
    for rung in graded_examples(label):
        score = certified(rung.answer, made.truth, label.task_input).value
        assert rung.least - 1e-9 <= score <= rung.most + 1e-9, rung.name
        scores.append(score)
    assert scores[0] == 1.0
    assert scores == sorted(scores, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize(("tier", "seed"), sampled(CASES, 3))
def test_proof_holds_and_sees_a_planted_error(tier: str, seed: int) -> None:
    made = task(tier, seed)
    label = Label(made.episode, full_input(made), made.truth, made.certificate)
    findings = Findings()
    assert SUBTASK.proof is not None
    SUBTASK.proof(label, findings)
    assert not findings.found
    worst = Findings()
    wrong = {**made.truth.verification, "base_rate": made.truth.verification["base_rate"] + 0.01}
    from dataclasses import replace

    SUBTASK.proof(replace(label, truth=replace(made.truth, verification=wrong)), worst)
    assert worst.found


@pytest.mark.parametrize(("tier", "seed"), CASES)
def test_hindsight_earns_no_more_than_one(tier: str, seed: int) -> None:
    """Whoever knows what happened answers with certainties, which the posterior cannot expect to be right."""
    companies, posterior, rate = stored(tier, seed)
    rng = np.random.default_rng(seed)
    for _ in range(200):
        chances = np.column_stack([posterior, 1.0 - posterior.sum(axis=1)])
        drawn = (rng.random((len(companies), 1)) > np.cumsum(chances, axis=1)).sum(axis=1)
        managed = drawn < len(KIND_NAMES)
        kinds = np.where(managed, drawn, 0)
        earned = score_parts(ParsedAssessments(managed.astype(float), kinds), posterior, rate)
        assert earned["probabilities"] < 1.0
        assert earned["kinds"] <= 1.0


@pytest.mark.parametrize(("tier", "seed"), CASES)
def test_no_random_or_optimised_answer_beats_the_posterior(tier: str, seed: int) -> None:
    _, posterior, rate = stored(tier, seed)
    p = posterior.sum(axis=1)
    best = log_score(p, p)
    rng = np.random.default_rng(seed)
    noise = rng.normal(0.0, rng.choice([0.01, 0.1, 1.0], (2000, 1)), (2000, len(p)))
    odds = np.log(p) - np.log1p(-p)
    for row in noise:
        assert log_score(1.0 / (1.0 + np.exp(-(odds + row))), p) <= best + 1e-12
    start = np.full(len(p), rate)
    found = minimize(
        lambda q: -log_score(q, p),
        start,
        jac=lambda q: -(p / q - (1.0 - p) / (1.0 - q)),
        bounds=[(0.001, 0.999)] * len(p),
        method="L-BFGS-B",
    )
    assert -found.fun <= best + 1e-9
    assert -found.fun == pytest.approx(best, abs=1e-3)
    kinds = rng.integers(0, len(KIND_NAMES), (500, len(p)))
    for row in kinds:
        assert score_parts(ParsedAssessments(p, row), posterior, rate)["kinds"] <= 1.0


@pytest.mark.slow
def test_a_hundred_thousand_random_and_a_thousand_optimised_answers_stay_below_one() -> None:
    _, posterior, _ = stored(*CASES[1])
    p = posterior.sum(axis=1)
    best, odds = log_score(p, p), np.log(p) - np.log1p(-p)
    rng = np.random.default_rng(9)
    for _ in range(100):
        size = np.exp(rng.uniform(-6.0, 2.0, (1000, 1)))
        q = np.clip(1.0 / (1.0 + np.exp(-(odds + size * rng.standard_normal((1000, len(p)))))), 0.001, 0.999)
        assert (np.log(q) @ p + np.log1p(-q) @ (1.0 - p)).max() <= best
    climbing = rng.normal(0.0, 3.0, (1000, len(p)))
    for _ in range(400):  # the gradient of the score in log odds is p - q
        climbing += 2.0 * (p - 1.0 / (1.0 + np.exp(-climbing)))
    q = np.clip(1.0 / (1.0 + np.exp(-climbing)), 0.001, 0.999)
    reached = np.log(q) @ p + np.log1p(-q) @ (1.0 - p)
    assert reached.max() <= best + 1e-9
    assert reached.min() > best - 0.05


def test_the_score_looks_at_nothing_that_is_hidden() -> None:
    """Truth holds the posterior and no label, so that redrawing what happened cannot move a score."""
    made = task(*CASES[0])
    assert set(made.truth.verification) == {"base_rate", "posterior", "traps", "law"}
    assert made.hidden is None
    assert not {"kind", "start", "managed"} & set(made.certificate) - {"kind"}


def test_a_company_left_out_counts_as_the_base_rate() -> None:
    companies, posterior, rate = stored(*CASES[1])
    p, kinds = posterior.sum(axis=1), posterior.argmax(axis=1)
    full = assessments_of(companies, p, kinds)["assessments"]
    without = parse_assessments({"assessments": full[1:]}, companies)
    stated = parse_assessments(
        {"assessments": [{**full[0], "probability": rate, "kind": "none"}, *full[1:]]}, companies
    )
    assert score_parts(without, posterior, rate) == score_parts(stated, posterior, rate)
    twice = parse_assessments({"assessments": [*full, {**full[0], "probability": 0.5}]}, companies)
    assert np.isnan(twice.probabilities[0])


@pytest.mark.parametrize(("tier", "seed"), CASES)
def test_recipes_earn_next_to_nothing(tier: str, seed: int) -> None:
    made = task(tier, seed)
    fields = full_input(made)
    for name, answer in exploits(fields).items():
        assert certified(answer, made.truth, fields).value <= 0.25, name


@pytest.mark.parametrize(("tier", "seed"), CASES)
def test_traps_are_told_from_answers(tier: str, seed: int) -> None:
    made = task(tier, seed)
    companies, posterior, rate = stored(tier, seed)
    right = parse_assessments(made.truth.expected_output, companies)

    def verdict(trap: dict[str, Any], probabilities: np.ndarray, earned: bool = True) -> str:
        answer = ParsedAssessments(probabilities, right.kinds)
        return probabilities_verdict(answer, posterior, trap, companies, earned)

    for trap in made.truth.verification["traps"]:
        assert verdict(trap, right.probabilities) == "avoided"
        assert verdict(trap, right.probabilities, earned=False) == "untested"
        where = np.array([companies.index(name) for name in trap["probabilities"]])
        fallen = right.probabilities.copy()
        fallen[where] = list(trap["probabilities"].values())
        assert verdict(trap, fallen) == verdict(trap, fallen, earned=False) == "fallen"
        timid = shrunk(right.probabilities, rate, 0.7)
        if len(where) > 1:
            assert verdict(trap, timid) == "avoided"
        fallen[where] = np.nan
        assert verdict(trap, fallen) == "untested"
        for same in (rate, 0.5):
            assert verdict(trap, np.full(len(companies), same)) == "untested"


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5) | st.just("early_revenue"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["company", "probability", "kind", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(answer=st.dictionaries(st.sampled_from(["assessments", "x"]), _JSON, max_size=2))
def test_any_answer_gets_a_finite_score(answer: dict[str, Any]) -> None:
    made = task(*CASES[2])
    score = certified(answer, made.truth, made.episode.input)  # pyright: ignore[reportArgumentType]
    assert 0.0 <= score.value <= 1.0
