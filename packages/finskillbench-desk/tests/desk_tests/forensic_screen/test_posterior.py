"""The posterior in closed form against multivariate t densities one by one, and what moves it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from desk_tests.forensic_screen.worlds import panel, posterior, world
from scipy.stats import multivariate_t

from finskillbench_desk.engines.posterior.model import Prediction, RatioModel
from finskillbench_desk.engines.posterior.posterior import kind_probabilities, log_evidence, place_profile
from finskillbench_desk.forensic_screen.generator.lines import drawn_paths
from finskillbench_desk.forensic_screen.reading import read_archive


def _density(
    y: np.ndarray, acquired: int, model: RatioModel, shift: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> float:
    """Log density of one path by simulation-free algebra: build the path from its shocks, then its covariance."""
    periods, ratios = y.shape
    profile, mean, covariance = shift
    # Rows: log ratios of each quarter; columns: the first deviation, shocks, own level, acquired change, shift.
    memory = np.zeros((periods, ratios, periods, ratios))
    pushed = np.zeros((periods, ratios, ratios))
    for quarter in range(periods):
        if quarter:
            memory[quarter] = model.persistence[:, None, None] * memory[quarter - 1]
            pushed[quarter] = model.persistence[:, None] * pushed[quarter - 1]
        memory[quarter, :, quarter] += np.eye(ratios)
        pushed[quarter] += profile[quarter] * np.eye(ratios)
    total = np.zeros((periods * ratios, periods * ratios))
    for quarter in range(periods):
        column = memory[:, :, quarter].reshape(-1, ratios)
        total += column @ (model.sigma if quarter else model.stationary) @ column.T
    level = np.tile(np.eye(ratios), (periods, 1))
    total += level @ np.diag(model.level_deviation**2) @ level.T
    if acquired >= 0:
        level = level.copy()
        level[: acquired * ratios] = 0.0
        total += level @ np.diag(model.acquired**2) @ level.T
    push = pushed.reshape(-1, ratios)
    total += push @ covariance @ push.T
    return float(multivariate_t.logpdf(y.reshape(-1), push @ mean, total, df=model.freedom))


def test_bayes_factors_are_ratios_of_t_densities() -> None:
    made, seen = world("medium", 1), panel("medium", 1)
    model, prediction = made.model, made.prediction
    periods, ratios = seen.y.shape[1:]
    nothing = (np.zeros(periods), np.zeros(ratios), np.eye(ratios))
    buyer = int(np.flatnonzero(seen.acquired >= 0)[0])
    for company in (0, buyer):
        y, bought = seen.y[company], int(seen.acquired[company])
        found = log_evidence(y[None], np.array([bought]), model, prediction)[0]
        null = _density(y, bought, model, nothing)
        for kind, start in ((0, 0), (1, 11), (4, 6)):
            profile = place_profile(model.profiles[kind], periods - model.starts + start, periods)
            shift = (profile, prediction.mean[kind], prediction.covariance[kind])
            assert found[kind, start] == pytest.approx(_density(y, bought, model, shift) - null, abs=1e-6)


def test_archive_prediction_is_the_posterior_predictive_of_a_normal_mean() -> None:
    made = world("easy", 0)
    model, prediction = made.model, made.prediction
    ratios = len(model.deviation)
    kind = 2
    profile = model.profiles[kind]
    table = made.tables["archive"].sort("case", "quarter")
    usable = table["basis"].is_in(["court judgment", "regulator's order"]) & (table["industry"] != "Financials")
    chosen = table.filter(usable & (table["kind"] == "capitalised_costs"))
    moves = chosen[:, 5:].to_numpy().reshape(-1, 20, ratios)[:, 8:] / 100.0
    # One Gaussian system of all cases: the mean, and each case about it, conditioned on the measurements.
    cases, weight = len(moves), profile @ profile
    measured = np.einsum("j,cjr->cr", profile, moves) / weight
    prior = model.prior**2 * np.eye(ratios)
    noise = model.spread**2 * np.eye(ratios) + model.correlation / weight
    joint = np.kron(np.ones((cases, cases)), prior) + np.kron(np.eye(cases), noise)
    gain = np.kron(np.ones(cases), prior) @ np.linalg.inv(joint)
    np.testing.assert_allclose(prediction.mean[kind] / model.deviation, gain @ measured.reshape(-1), atol=1e-9)
    left = prior - gain @ np.kron(np.ones((cases, 1)), prior) + model.spread**2 * np.eye(ratios)
    scale = np.outer(model.deviation, model.deviation)
    np.testing.assert_allclose(prediction.covariance[kind] / scale, left, atol=1e-9)


@pytest.mark.slow
def test_probabilities_are_calibrated() -> None:
    """Among paths that a world draws, those called 30 % are managed three times in ten, and kinds likewise."""
    made = world("hard", 2)
    rng = np.random.default_rng(5)
    paths = drawn_paths(rng, made.model, made.prediction, np.full(6000, -1))
    found = kind_probabilities(paths.y, np.full(6000, -1), made.model, made.prediction)
    managed = found.sum(axis=1)
    truth = paths.kind >= 0
    edges = [0.0, 0.02, 0.05, 0.1, 0.3, 0.6, 0.9, 1.0]
    for low, high in itertools.pairwise(edges):
        which = (managed >= low) & (managed < high)
        expected = managed[which]
        error = np.sqrt((expected * (1 - expected)).sum()) + 1e-9
        assert abs(truth[which].sum() - expected.sum()) < 3.5 * error
    for kind in range(found.shape[1]):
        error = np.sqrt((found[:, kind] * (1 - found[:, kind])).sum())
        assert abs((paths.kind == kind).sum() - found[:, kind].sum()) < 3.5 * error


def test_scaling_sizes_and_volatility_together_changes_nothing() -> None:
    made, seen = world("easy", 0), panel("easy", 0)
    model, prediction = made.model, made.prediction
    from dataclasses import replace

    doubled = replace(
        model, deviation=2 * model.deviation, level_deviation=2 * model.level_deviation, acquired=2 * model.acquired
    )
    larger = Prediction(2 * prediction.mean, 4 * prediction.covariance)
    np.testing.assert_allclose(
        kind_probabilities(2 * seen.y, seen.acquired, doubled, larger), posterior("easy", 0), atol=1e-9
    )


def test_archive_with_unusable_cases_predicts_something_else() -> None:
    made = world("easy", 0)
    assert not made.orderly_archive
    all_cases = read_archive(made.tables["archive"], made.model, usable_only=False)
    gap = np.abs(all_cases.mean - made.prediction.mean) / made.model.deviation
    assert gap.max() > 0.3
