"""Archives of research-methods: traces, labels, persistence, rates."""

from __future__ import annotations

import numpy as np
import pytest
from desk_tests.research.planted import archive, archives


def test_traces_labels_and_starts_are_recovered() -> None:
    levels, kinds, labels, bases = archive()
    e, persistence, _ = archives.innovations(levels, 14)
    assert persistence == pytest.approx(0.6, abs=0.12)
    scores, information = archives.joint_scores(e, 14)
    shapes = {"lasting": lambda age: 1 + 0 * age, "short": lambda age: age < 3}
    logs = {}
    for name, shape in shapes.items():
        x, y = archives.trace_sums(scores, information, archives.profiles(shape, [12, 14, 16], 24, persistence), 14)
        logs[name] = archives.held_out(x, y, labels, bases, 2).sum()
    assert logs["lasting"] > logs["short"] + 50
    x, y = archives.trace_sums(
        scores, information, archives.profiles(shapes["lasting"], [12, 14, 16], 24, persistence), 14
    )
    found = archives.fit_traces(x, y, labels, bases, 2)
    assert found.starts.argmax() == 1
    assert found.mix[0, 0] > 0.9
    assert found.mix[1, 1] > 0.9
    assert found.mix[4, 1] == pytest.approx((kinds[(labels == 1) & (bases == 1)] == 1).mean(), abs=0.12)
    assert (found.kinds.argmax(1) == kinds).mean() > 0.85


@pytest.mark.parametrize(("persistence", "before"), [(0.0, 12), (0.4, 8), (0.6, 14), (0.9, 20)])
def test_persistence_is_that_of_short_records(persistence: float, before: int) -> None:
    rng = np.random.default_rng(4)
    y, levels = rng.normal(size=(1500, 3)) / np.sqrt(1 - persistence**2), []
    for _ in range(before + 6):
        y = persistence * y + rng.normal(size=(1500, 3))
        levels.append(y)
    e, found, _ = archives.innovations(np.stack(levels, axis=1), before)
    assert found == pytest.approx(persistence, abs=0.06)
    assert (e[:, before:] ** 2).mean() == pytest.approx(1, abs=0.1)


def test_bad_periods_of_a_whole_case_are_no_traces() -> None:
    rng = np.random.default_rng(5)
    levels = 0.1 * rng.normal(size=(400, 30, 8))
    bad = rng.random((400, 30)) < 0.01
    levels += bad[..., None] * 0.4 * rng.normal(size=levels.shape)
    e, _, _ = archives.innovations(levels, 20)
    assert (e[:, 1:20][~bad[:, 1:20]] ** 2).mean() == pytest.approx(0.95, abs=0.1)
    scores, information = archives.joint_scores(e, 20)
    assert information == 1
    assert np.abs(scores[:, 1:20]).max() < np.abs(e[:, 1:20]).max()
    logs, late = archives.bad_periods(e, 20), bad[:, 20:].sum(1)
    assert logs[late == 0].mean() < 0.5 < 5 < np.median(logs[late == 1])
    when = np.where(late == 1, 20 + bad[:, 20:].argmax(1), 30)
    assert np.median(archives.bad_periods(e, 20, when)[late == 1]) < 1


def test_a_series_that_moves_alone_keeps_the_noise_of_the_others() -> None:
    rng = np.random.default_rng(5)
    e = rng.normal(size=(400, 30, 1)) * 0.8 + rng.normal(size=(400, 30, 3)) * 0.6
    scores, information = archives.joint_scores(e, 20, alone=True)
    assert (scores[:, 20:] ** 2).mean((0, 1)) == pytest.approx(information, rel=0.1)
    assert information.min() > 1.3


def test_a_change_of_level_is_not_a_trace() -> None:
    rng = np.random.default_rng(6)
    scores, profile = (
        rng.normal(size=(300, 30, 2)),
        archives.profiles(lambda age: 1 + 0 * age, [20, 23], 30, np.zeros(2)),
    )
    scores[:, 22:] += 5
    moves = archives.profiles(lambda age: 1 + 0 * age, [22] * 300, 30, np.zeros(2))[0]
    x, y = archives.trace_sums(scores, 1.0, profile, 20, moves=moves)
    assert (y**2).mean() == pytest.approx(x.mean(), rel=0.15)
    x, y = archives.trace_sums(scores, 1.0, profile, 20)
    assert (y**2).mean() > 20 * x.mean()


def test_traces_are_found_without_labels() -> None:
    levels, kinds, labels, bases = archive(3, wrong=0.0)
    rng = np.random.default_rng(1)
    bases = rng.integers(0, 3, len(kinds))
    labels = np.where((bases == 2) & (kinds > 0) & (rng.random(len(kinds)) < 0.8), 3 - kinds, kinds)
    e, persistence, _ = archives.innovations(levels, 14)
    profile = archives.profiles(lambda age: 1 + 0 * age, [12, 14, 16], 24, persistence)
    x, y = archives.trace_sums(*archives.joint_scores(e, 14), profile, 14)
    expected = np.array([[1.0, 1, 0], [0, -1, 1]])
    start = archives.find_traces(x, y, labels, bases, expected)
    found = archives.fit_traces(x, y, labels, bases, 2, start=start)
    assert (found.kinds.argmax(1) == kinds).mean() > 0.85
    assert found.mix[1, 1] > 0.8 > 0.5 > found.mix[7, 1]  # label 1 on bases 0 and 2


def test_one_series_that_moves_alone_is_learned() -> None:
    rng = np.random.default_rng(6)
    x, labels = np.full((120, 1, 4), 10.0), np.repeat([0, 1], 60)
    y = rng.normal(size=(120, 1, 4)) * np.sqrt(10)
    y[60:, :, 2] += 10
    found = archives.fit_traces(x, y, labels, 0 * labels, 1, sizes="alone")
    assert found.moved[0].argmax() == 2
    assert found.moved[0, 2] > 0.8


def test_strength_and_rate_of_a_list_are_estimated() -> None:
    rng = np.random.default_rng(7)
    kind = np.where(rng.random(900) < 0.25, 1 + (rng.random(900) < 0.7), 0)
    y = rng.normal(size=(900, 2)) + 0.6 * 4 * (kind[:, None] == [1, 2])
    logs = np.stack([4 * s * y - (4 * s) ** 2 / 2 for s in archives.SCALES])[..., None]
    p, kinds, weights = archives.probabilities(logs, np.full(900, 0.2), np.full(50, -2.0), 0.2)
    assert weights.sum() == pytest.approx(1)
    assert weights.sum(1) @ archives.SCALES == pytest.approx(0.6, abs=0.07)
    assert p.mean() == pytest.approx((kind > 0).mean(), abs=0.04)
    assert kinds.sum(1) == pytest.approx(1)
    assert (kinds.argmax(1) + 1 == kind)[kind > 0].mean() > 0.8


def test_correlated_noise_does_not_look_like_traces() -> None:
    rng = np.random.default_rng(2)
    e = rng.normal(size=(400, 30, 1)) * 0.7 + rng.normal(size=(400, 30, 4)) * 0.7
    scores, information = archives.joint_scores(e, 20)
    assert np.abs(np.corrcoef(scores.reshape(-1, 4).T) - np.eye(4)).max() < 0.05
    profile = archives.profiles(lambda age: 1 + 0 * age, [20, 23], 30, np.zeros(4))
    x, y = archives.trace_sums(scores, information, profile, 20)
    common, turned = archives.log_factors(x, y, 0.15, 0.05)
    assert np.exp((common + turned).sum(-1)).mean() == pytest.approx(1, abs=0.2)


def test_drivers_and_dispersion() -> None:
    rng = np.random.default_rng(3)
    driver = rng.normal(size=(60, 20))
    levels = 0.5 * driver[..., None] + 0.1 * rng.normal(size=(60, 20, 1))
    rest, effect = archives.less_driver(levels, driver, 20)
    assert effect[0] == pytest.approx(0.5, abs=0.02)
    assert rest.std() < 0.15
    e = rng.normal(size=(200, 30, 2))
    e[:, 20:] *= 0.5
    logs = {ratio: archives.dispersion_factors(e, [18, 20], ratio).sum((0, 2)) for ratio in (0.25, 0.6, 1.0)}
    assert logs[0.25][1] > max(logs[0.25][0], logs[0.6][1]) > logs[1.0][1] == 0


def test_rates_of_groups_are_drawn_together() -> None:
    rates = archives.group_rates(np.array([10.0, 12, 30]), np.array([100.0, 100, 100]), 0.2)
    assert 10 / 100 < rates[0] * 0.8 < rates[2] * 0.8 < 0.3
