"""The primitives of research-methods on planted effects, and its programs in the sandbox of an agent."""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import replace
from importlib import import_module
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

from finskillbench.errors import InputError
from finskillbench.harness.skills.loader import load_package
from finskillbench.harness.tools.interpreters import Interpreter, code_runner
from finskillbench_desk.allocate.laws import STRUCTURES as ALLOCATE
from finskillbench_desk.domain import SKILLS
from finskillbench_desk.forensic_screen.laws import STRUCTURES as FORENSIC
from finskillbench_desk.trade_over_time.laws import STRUCTURES as TRADE

PACKAGE = next(root for root in SKILLS if root.name == "research-methods")
sys.path.append(str(PACKAGE / "scripts"))
panels, features, evidence, effect_search, archives, decisions = (
    import_module(name) for name in ("panels", "features", "evidence", "effect_search", "archives", "decisions")
)
Law = evidence.Law
NAMES, PERIODS, SOURCES = 40, 36, 12


def market_of(seed: int = 1) -> Any:
    """A market of four groups without any effect."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(PERIODS + 1, NAMES, SOURCES)).astype(np.float32)
    residuals = 0.1 * rng.normal(size=(PERIODS, NAMES))
    labels = [f"S{k:02d}" for k in range(SOURCES)]
    return panels.Market(
        residuals, np.full(NAMES, 0.1), values, panels.valid_from([1] * SOURCES, PERIODS), labels,
        np.arange(NAMES) % 4, [f"V{k // 3}" for k in range(SOURCES)],
    )  # fmt: skip


def plant(market: Any, form: str, label: str, names: Any, first: int, last: int, size: float) -> Any:
    """Add an effect of one label to some names in periods first to last, from 1."""
    values, labels = features.feature(market, form)
    added = np.zeros_like(market.residuals)
    added[first - 1 : last] = size * values[first - 1 : last, :, labels.index(label)] * names
    return market.less(-added)


# Evidence against enumeration and integration.


def small_sums(seed: int, periods: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.uniform(5, 15, (periods, 1, 2)), rng.normal(0, 4, (periods, 1, 2))


def one_effect(x: Any, y: Any, law: Any) -> float:
    """Evidence of one segment by integration over the size of each candidate and sign."""
    total = 0.0
    for c, sign in product(range(2), (1, -1) if law.both else (1,)):
        a, b, m, d = x[:, c].sum(), y[:, c].sum(), sign * law.mean, law.mean * law.ratio
        total += quad(lambda s: norm.pdf(s, m, d) * np.exp(b * s - a * s * s / 2), m - 9 * d, m + 9 * d)[0]  # noqa: B023
    return law.nothing + (1 - law.nothing) * total / 2 / (2 if law.both else 1)


@pytest.mark.parametrize("both", [True, False])
def test_regimes_are_enumerated(both: bool) -> None:
    x, y = small_sums(3, 5)
    law = Law(0.4, both=both, hazard=0.2)
    bounds = np.arange(6)
    logs = evidence.segments(x, y, [law], bounds)[:, :, 0].astype(float)
    total = 0.0
    for ends in product((False, True), repeat=4):
        cuts = [0, *(t + 1 for t in range(4) if ends[t]), 5]
        weight = np.prod([law.hazard if end else 1 - law.hazard for end in ends])
        total += weight * np.prod([one_effect(x[i:j, 0], y[i:j, 0], law) for i, j in pairwise(cuts)])
    assert evidence.log_evidence(logs, bounds, law) == pytest.approx(np.log(total), rel=1e-4)
    alone = law._replace(hazard=0.0)
    assert evidence.log_evidence(logs, bounds, alone) == pytest.approx(
        np.log(one_effect(x[:, 0], y[:, 0], law)), rel=1e-4
    )


def test_effects_that_go_off_and_on_are_enumerated() -> None:
    x, y = small_sums(4, 5)
    law = Law(0.4, ratio=0.1, nothing=0.3, chain=(0.2, 0.3))
    total, path = law.nothing, np.zeros((6, 2))
    for c, sign, states in product(range(2), (1, -1), product((0, 1), repeat=6)):
        p = 0.3 / 0.5 if states[0] else 0.2 / 0.5
        for a, b in pairwise(states):
            p *= {(1, 0): 0.2, (1, 1): 0.8, (0, 1): 0.3, (0, 0): 0.7}[a, b]
        on = np.array(states[:5], float)
        weight = p * (1 - law.nothing) / 4 * np.exp((sign * 0.4 * y[:, 0, c] - 0.08 * x[:, 0, c]) @ on)
        total += weight
        path[:, c] += weight * sign * 0.4 * np.array(states)
    log, found, _, _ = evidence._chained(x, y, law)
    assert log == pytest.approx(np.log(total))
    assert evidence.chain_evidence(x, y, law) == pytest.approx(log)
    np.testing.assert_allclose(found[:, 0], path / total, rtol=1e-6)


# Planted effects.


def test_an_effect_is_found_with_its_end() -> None:
    names = np.arange(NAMES) % 4 == 2
    market = plant(market_of(), "change 1", "S05", names, 1, 20, 0.06)
    maps = {"group": market.groups, "market": np.zeros(NAMES, int)}
    found = effect_search.screen(market, maps, ["level", "change 1"], seconds=60)
    chance = effect_search.screen(market.shuffled(2), maps, ["level", "change 1"], seconds=60)
    assert next(iter(found)) == "change 1 @ group"
    assert found["change 1 @ group"] > max(chance.values()) + 4
    seen = evidence.explain(market, "change 1", market.groups, Law(0.06, hazard=0.05))
    ended = [each for each in seen.episodes if (each.place, each.label) == (2, "S05") and each.last is not None]
    assert sum(each.probability for each in ended) > 0.7
    likely = max(ended, key=lambda each: each.probability)
    assert abs(likely.last - 20) <= 3
    assert likely.size > 0.03
    assert np.abs(seen.alpha[names]).max() < 0.02


def test_an_effect_of_today_is_forecast_and_averaged() -> None:
    market = plant(market_of(2), "level", "S03", np.arange(NAMES) % 4 == 1, 15, PERIODS, 0.06)
    maps = {"group": market.groups, "market": np.zeros(NAMES, int)}
    screened = effect_search.screen(market, maps, ["level", "rank", "magnitude"], seconds=60)
    rows = effect_search.refine(market, maps, list(screened)[:2], seconds=60)
    result = effect_search.forecast(market, maps, rows, screened)
    truth = 0.06 * market.values[-1, :, 3] * (np.arange(NAMES) % 4 == 1)
    assert np.corrcoef(result.alpha, truth)[0, 1] > 0.9
    assert 0.5 < result.alpha @ truth / (truth @ truth) < 1.2
    assert np.linalg.eigvalsh(result.doubt).min() > -1e-9
    slope, error = effect_search.forward(market, maps, result, count=1)
    assert abs(slope - 1) < 3 * error


def test_the_search_continues_where_it_stopped(tmp_path: Path) -> None:
    market, store = market_of(), str(tmp_path / "rows.json")
    maps = {"market": np.zeros(NAMES, int)}
    whole = effect_search.screen(market, maps, ["level", "sign"], seconds=60)
    assert effect_search.screen(market, maps, ["level", "sign"], seconds=-1.0, store=store) == {}
    with pytest.raises(TimeoutError):
        evidence.segments(*small_sums(3, 5), [Law(0.4)], np.arange(6), evidence.clock() - 1)
    effect_search.screen(market, maps, ["level"], store=store)
    assert effect_search.screen(market, maps, ["level", "sign"], store=store) == pytest.approx(whole)


def test_nothing_is_found_in_noise() -> None:
    market = market_of(5)
    maps = {"group": market.groups, "market": np.zeros(NAMES, int)}
    screened = effect_search.screen(market, maps, ["level", "change 1", "product"], seconds=60)
    rows = effect_search.refine(market, maps, list(screened)[:2], seconds=60)
    assert max(screened.values()) < 4
    assert effect_search.forecast(market, maps, rows, screened).alpha.std() < 0.01


def test_two_effects_in_one_place_are_one_model() -> None:
    everywhere = np.ones(NAMES)
    market = plant(market_of(3), "level", "S01", everywhere, 1, PERIODS, 0.03)
    market = plant(market, "level", "S07", everywhere, 1, PERIODS, -0.03)
    places, law = np.zeros(NAMES, int), Law(0.03, hazard=0.01)
    found = evidence.layers(market, [("level", places, law), ("level", places, law), ("level", places, law)])
    best = {each.labels[int(np.abs(each.path[-1, 0]).argmax())] for each in found[:2]}
    assert best == {"S01", "S07"}
    assert min(each.log for each in found[:2]) > 5 > found[2].log
    values = market.values[-1]
    truth = 0.03 * values[:, 1] - 0.03 * values[:, 7]
    assert np.corrcoef(sum(each.alpha for each in found), truth)[0, 1] > 0.95


def test_one_named_effect_is_removed() -> None:
    market = plant(market_of(3), "level", "S01", np.ones(NAMES), 1, PERIODS, 0.04)
    seen = evidence.explain(market, "level", np.zeros(NAMES, int), Law(0.04))
    assert not seen.returns(labels=["S02"]).any() or np.abs(seen.returns(labels=["S02"])).max() < 1e-3
    rest = evidence.explain(market.less(seen.returns(labels=["S01"])), "level", np.zeros(NAMES, int), Law(0.04))
    assert seen.log > 20 > 1 > rest.log


def test_a_fading_effect_is_told_from_a_lasting_one() -> None:
    market = market_of(6)
    values = features.feature(market, "level")[0]
    fade = 0.12 * 2.0 ** (-np.arange(PERIODS) / 6)
    market = market.less(-fade[:, None] * values[:-1, :, 4])
    logs = {
        half: evidence.explain(market, "level", np.zeros(NAMES, int), Law(0.1, half_life=half)).log for half in (0, 6)
    }
    assert logs[6] > logs[0] + 3


def test_fat_tails_are_discounted() -> None:
    z = np.random.default_rng(1).standard_t(3, size=(60, 40))
    score, information = evidence.scores(z)
    assert np.abs(score).max() < 0.3 * np.abs(z).max()
    assert 0.3 < information < 1
    normal = np.random.default_rng(1).normal(size=(60, 40))
    assert evidence.scores(normal)[1] == 1.0


def test_sizes_proportional_to_volatility_are_seen() -> None:
    specific = np.linspace(0.05, 0.25, NAMES)
    market = market_of(7)
    market = replace(market, specific=specific, residuals=market.residuals / 0.1 * specific)
    market = plant(market, "by volatility of sign", "S02", np.ones(NAMES), 1, PERIODS, 0.03)
    forms = ["sign", "by volatility of sign"]
    found = effect_search.screen(market, {"market": np.zeros(NAMES, int)}, forms, seconds=60)
    assert found["by volatility of sign @ market"] > found["sign @ market"] + 2
    alpha = evidence.explain(market, forms[1], np.zeros(NAMES, int), Law(0.03)).alpha
    assert np.abs(alpha[-10:]).mean() > 2 * np.abs(alpha[:10]).mean()


def test_a_delayed_effect_is_known_ahead() -> None:
    market = plant(market_of(8), "older 4", "S03", np.arange(NAMES) % 4 == 1, 5, PERIODS, 0.06)
    found = evidence.explain(market, "older 4", market.groups, Law(0.06))
    np.testing.assert_allclose(found.effects(found.features[-1]), found.alpha, atol=1e-6)
    np.testing.assert_allclose(found.parts().sum(1), found.alpha, atol=1e-6)
    later = found.effects(features.feature(market, "older 1")[0][-1])  # in three periods
    assert np.corrcoef(later, market.values[-2, :, 3] * (market.groups == 1))[0, 1] > 0.9


# Panels and forms.


def test_a_market_is_saved_in_a_small_file(tmp_path: Path) -> None:
    market, maps = market_of(), {"market": np.zeros(NAMES, int)}
    assert panels.save(str(tmp_path / "market.pkl"), market, maps) < market.values.nbytes / 2**20 / 1.8
    kept, places = panels.load(str(tmp_path / "market.pkl"))
    np.testing.assert_allclose(kept.values, market.values, atol=2e-3)
    assert (kept.values.dtype, list(places)) == (np.float32, ["market"])


def test_a_source_that_was_not_delivered_has_no_effect_today() -> None:
    market = market_of().void(["S01"])
    for form, label in (("level", "S01"), ("change 1", "S01"), ("product", "S00,S01"), ("signed by", "S02,S01")):
        values, labels = features.feature(market, form)
        assert not values[-1, :, labels.index(label)].any()
        assert values[-2, :, labels.index(label)].any()
        assert values[
            -1, :, labels.index(label.replace("S01", "S04").replace("S00", "S03").replace("S02", "S05"))
        ].any()
    assert features.feature(market, "older 1")[0][-1, :, 1].any()


def test_forms_are_composed() -> None:
    market = market_of()
    market = replace(market, valid=panels.valid_from([1] * 11 + [10], PERIODS))
    raw = market.values[18, :, 2] - market.values[17, :, 2]
    values, _ = features.feature(market, "older 2 of change 1")
    assert np.corrcoef(values[20, :, 2], raw)[0, 1] == pytest.approx(1, abs=1e-4)
    assert not values[:12, :, 11].any()
    assert values[12, :, 11].any()
    other = market.values[18, :, 0] - market.values[17, :, 0]
    values, labels = features.feature(market, "older 2 of product of change 1")
    found = values[20, :, labels.index("S00,S02")]
    assert np.corrcoef(found, raw * other)[0, 1] == pytest.approx(1, abs=0.01)
    soft = features.feature(market, "soft extremes")[0][20, :, 0]
    assert np.ptp(soft[np.abs(market.values[20, :, 0]) < 1]) < 1e-5
    for form in features.SPANS:
        assert features.feature(market, form)[0].shape == market.values.shape


def test_panels_read_tables() -> None:
    table = {"week": [2, 1, 1], "id": ["b", "a", "b"], "x": [3.0, 1.0, 2.0]}
    np.testing.assert_array_equal(panels.cube(table, "week", "id", ["x"], ["a", "b"])[:, :, 0], [[1, 2], [np.nan, 3]])
    assert panels.valid_from([1, 3], 3).tolist() == [[True, False], [True, False], [True, True], [True, True]]
    assert panels.parts([5, 1, 9, 7, 3, 2]).tolist() == [1, 0, 2, 2, 1, 0]
    returns = panels.unexplained(np.array([[0.3]]), np.array([[2.0]]), np.array([[0.1]]))
    assert returns[0, 0] == pytest.approx(0.1)
    values = np.random.default_rng(1).normal(size=(12, 30, 2))
    raw = values.copy()
    raw[4:6, :, 1] *= 1000
    found, done = panels.rescaled(raw)
    np.testing.assert_allclose(found, values)
    assert done == [(4, 1, 3), (5, 1, 3)]
    market = market_of().take([4, 7])
    assert (market.sources, market.vendors) == (["S04", "S07"], ["V1", "V2"])
    assert len(market.until(10).values) == 11


def test_a_record_filled_in_afterwards_is_seen() -> None:
    market = plant(market_of(), "level", "S06", np.ones(NAMES), 1, 17, 0.04)
    source, before, after = panels.before_and_after(market, [18] * SOURCES)[0]
    assert source == "S06"
    assert before > 6 > 3 > abs(after)


def test_half_lives_are_those_of_the_form() -> None:
    rng = np.random.default_rng(1)
    values = np.zeros((300, 50, 1))
    for t in range(1, 300):
        values[t] = 0.8 * values[t - 1] + 0.6 * rng.normal(size=(50, 1))
    half = panels.half_life(values[50:], np.ones((250, 1), bool))[0]
    assert half == pytest.approx(np.log(0.5) / np.log(0.8), rel=0.1)


def test_forms_are_standardised_and_valid() -> None:
    market = market_of()
    market = replace(market, valid=panels.valid_from([1] * 11 + [10], PERIODS))
    for form in features.USUAL:
        values, labels = features.feature(market, form)
        assert values.shape[2] == len(labels)
        np.testing.assert_allclose(values[20:, :, 0].std(), 1, atol=0.25)
    change, _ = features.feature(market, "change 2")
    assert not change[:11, :, 11].any()
    assert change[11, :, 11].any()
    pairs, labels = features.feature(market, "difference")
    assert labels[:3] == ["S00,S01", "S00,S02", "S01,S02"]
    raw = market.values[5, :, 0] - market.values[5, :, 1]
    assert np.corrcoef(pairs[5, :, 0], raw)[0, 1] == pytest.approx(1, abs=1e-4)
    assert features.feature(market, "level|sign")[1][SOURCES] == "sign: S00"
    with pytest.raises(ValueError, match="unknown"):
        features.feature(market, "levels")


# Archives.


def archive(seed: int = 1, wrong: float = 0.3) -> tuple[Any, ...]:
    """Levels of cases of two kinds with a lasting shift, labels of basis 1 often wrong, starts two periods late."""
    rng = np.random.default_rng(seed)
    count, periods = 150, 24
    kinds = np.repeat([0, 1, 2], 50)
    bases = np.tile([0, 1], 75)
    labels = np.where((bases == 1) & (kinds > 0) & (rng.random(count) < wrong), 3 - kinds, kinds)
    levels, y = np.zeros((count, periods, 3)), np.zeros((count, 3))
    shift = np.array([[0, 0, 0], [0.3, 0.2, 0], [0, -0.2, 0.3]])
    for t in range(periods):
        y = 0.6 * y + 0.1 * rng.normal(size=(count, 3))
        levels[:, t] = y + shift[kinds] * (t >= 14)
    return levels, kinds, labels, bases


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


# Decisions.


def test_the_book_is_the_best_one() -> None:
    rng = np.random.default_rng(1)
    n = 12
    factors = rng.normal(size=(n, 3)) * 0.1
    covariance = factors @ factors.T + np.diag(rng.uniform(0.05, 0.15, n) ** 2)
    mean, held, costs = rng.normal(0, 0.03, n), np.full(n, 1 / n), (np.full(n, 0.002), np.full(n, 0.05))
    groups = (np.arange(3)[:, None] == np.arange(n) % 3).astype(float)
    limits = groups, np.full(3, 0.4)
    w, report = decisions.best_book(mean, covariance, held, costs, 4.0, limits, cap=0.2, turnover=0.3)
    assert report["gap"] < 1e-9
    assert report["breach"] < 1e-9
    assert w.sum() == pytest.approx(1, abs=1e-9)
    found = report["utility"]
    assert found == decisions.utility(w, mean, covariance, held, costs, 4.0)
    assert found > decisions.utility(held, mean, covariance, held, costs, 4.0)
    for _ in range(300):
        other = w + 0.02 * rng.normal(size=n)
        other = np.clip(other, 0, 0.2)
        other = other / other.sum()
        if (groups @ other).max() <= 0.4 and other.max() <= 0.2 and np.abs(other - held).sum() / 2 <= 0.3:
            assert decisions.utility(other, mean, covariance, held, costs, 4.0) <= found + 1e-7


def test_trades_are_best_for_all_dates_together() -> None:
    rng = np.random.default_rng(2)
    dates, n = 3, 4
    covariance, quadratic, held = np.diag(rng.uniform(1, 2, n)), rng.uniform(0.5, 1, n), rng.normal(size=n)
    alphas, targets, aversions = rng.normal(size=(dates, n)), rng.normal(size=(dates, n)), np.array([1.0, 2.0, 1.0])

    def loss(flat: Any) -> float:
        x = flat.reshape(dates, n)
        trades, away = np.diff(np.vstack([held, x]), axis=0), x - targets
        risk = np.einsum("tn,nm,tm->t", away, covariance, away) @ aversions / 2
        return float(risk + (trades**2 @ quadratic).sum() - (alphas * away).sum())

    best = minimize(loss, np.zeros(dates * n), tol=1e-12)
    trades, value = decisions.trade_path(alphas, covariance, aversions, targets, held, quadratic)
    assert value == pytest.approx(-best.fun, abs=1e-6)
    np.testing.assert_allclose(held + trades.cumsum(0), best.x.reshape(dates, n), atol=1e-4)
    rows, right = np.ones((1, n)), np.full((dates, 1), 2.0)
    trades, _ = decisions.trade_path(alphas, covariance, aversions, targets, held, quadratic, (rows, right, 1))
    short, _ = decisions.trade_path(alphas, covariance, aversions, targets, held, quadratic, (rows, right[1:], 1))
    np.testing.assert_allclose(short, trades)
    sums = (held + trades.cumsum(0)).sum(1)
    assert sums[1:] == pytest.approx(2.0)
    assert sums[0] != pytest.approx(2.0)


def test_fast_signals_count_on_few_dates() -> None:
    path = decisions.path_of(np.array([[1.0, 1.0]]), np.array([1.0, 8.0]), 3, end=0.1)
    assert path[:, 0] == pytest.approx([2, 0.9 * (0.5 + 2 ** (-1 / 8)), 0.81 * (0.25 + 2 ** (-2 / 8))])
    mean, doubt = decisions.average([np.array([1.0]), np.array([3.0])], [np.eye(1), np.eye(1)], [0.0, 0.0])
    assert (mean[0], doubt[0, 0]) == (2.0, 2.0)


# Documents and the sandbox.


def test_no_document_names_a_structure() -> None:
    texts = [path.read_text() for path in sorted(PACKAGE.rglob("*")) if path.suffix in (".md", ".py", ".json")]
    assert len(texts) == 14
    for name in (*ALLOCATE, *FORENSIC, *TRADE):
        spelt = re.compile(name.replace("_", "[ _-]"), re.IGNORECASE)
        assert not [text[:60] for text in texts if spelt.search(text)], name


def task_of(market: Any) -> dict[str, Any]:
    """Tables of a market, as a case of quarters states them."""
    rng, tickers = np.random.default_rng(1), [f"T{k:02d}" for k in range(NAMES)]
    panel: dict[str, Any] = {
        "quarter": np.repeat(np.arange(1, PERIODS + 1), NAMES).tolist(),
        "ticker": tickers * PERIODS,
        "return_bp": (1e4 * market.residuals).ravel().tolist(),
    }
    today: dict[str, Any] = {"ticker": tickers}
    for k, source in enumerate(market.sources):
        panel[source] = (2 * market.values[:-1, :, k]).ravel().tolist()
        today[source] = (2 * market.values[-1, :, k]).tolist()
    names = {"ticker": tickers, "industry": [f"G{k}" for k in market.groups], "market": [0.0] * NAMES}
    return {
        "panel": panel,
        "today": today,
        "names": {
            **names,
            "specific_volatility": market.specific.tolist(),
            "benchmark_weight": rng.uniform(size=NAMES).tolist(),
        },
        "factor_returns": {"market": rng.normal(size=PERIODS).tolist()},
        "factor_covariance": {"factors": ["market"]},
        "sources": {
            "source": market.sources,
            "scale": [2.0] * SOURCES,
            "since": [1] * SOURCES,
            "vendor": market.vendors,
        },
    }


@pytest.mark.slow
def test_the_programs_of_the_guide_run_in_the_sandbox() -> None:
    market = plant(market_of(2), "level", "S03", np.arange(NAMES) % 4 == 1, 10, PERIODS, 0.06)
    task, package = task_of(market), load_package(PACKAGE)
    calls = re.split(
        r"\n(?:Second|Third) call", (PACKAGE / "SKILL.md").read_text().split("## Programs to begin with")[1]
    )
    programs = ["\n".join(re.findall(r"(?m)^    (.*)$", call.split("`result.alpha`")[0])) for call in calls]
    programs[1] += '\n[es.screen(market, maps, ["level", "rank"], store="screen.json")][0]'

    async def play() -> list[Any]:
        files, results = {}, []
        for program in programs:
            result = await interpreter.run(program, {"task": task}, files, [package])
            files = result.files
            results.append(result)
        return results

    with code_runner(with_library=True) as runner:
        interpreter = Interpreter(runner)
        first, second, third = asyncio.run(play())
    assert [each.error for each in (first, second, third)] == [None] * 3
    same = ("level @ industry", "by volatility @ industry")  # one volatility for all names
    assert max(second.value, key=second.value.get) in same
    assert "1 S03" in third.printed


def test_scripts_run_without_code() -> None:
    market = plant(market_of(2), "level", "S03", np.arange(NAMES) % 4 == 1, 10, PERIODS, 0.06)
    payload = {key: getattr(market, key).tolist() for key in ("residuals", "specific", "values", "groups")}
    found = effect_search.main(payload)["log_evidence"]
    assert max(found, key=found.get) == "level @ group"
    assert found["level @ group"] > max(effect_search.main({**payload, "shuffle": True})["log_evidence"].values())
    levels, _, labels, bases = archive(wrong=0.4)
    stated = {"levels": levels.tolist(), "labels": labels.tolist(), "bases": bases.tolist(), "kinds": 2, "before": 14}
    result = archives.main({**stated, "starts": [12, 14, 16], "profile": [1]})
    assert result["log_likelihood"] > 3 * result["error"] / 2
    assert result["agreement"]["0"] > result["agreement"]["1"] + 0.15


def test_a_coefficient_is_that_of_the_time_while_it_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PACKAGE.parent / "signal-trading" / "scripts"))
    worth = import_module("signal_worth").main
    rng, weeks, names = np.random.default_rng(1), 40, ["X", "Y", "Z"]
    signal = rng.normal(size=(weeks, 3))
    returns = 0.01 * rng.normal(size=(weeks, 3)) + 0.02 * signal * (np.arange(weeks) < 20)[:, None]
    history = {
        "week": np.repeat(np.arange(1, weeks + 1), 3).tolist(), "ticker": names * weeks,
        "s": signal.ravel().tolist(), "next_return": returns.ravel().tolist(),
    }  # fmt: skip
    listed = {
        "ticker": names, "sector": ["a", "b", "c"], "benchmark_weight": [0.3, 0.3, 0.4], "impact": [5, 5, 5],
        "specific_volatility": [0.01] * 3,
    }  # fmt: skip
    payload = {
        "history": history, "signals": ["s"], "signal_unit": 1, "return_unit": 1, "names": listed, "factors": {},
        "method": "least_squares",
    }  # fmt: skip
    assert worth(payload)["coefficient"]["s"] == pytest.approx(1, abs=0.4)
    held = worth({**payload, "last_week": 20})
    assert held["coefficient"]["s"] == pytest.approx(2, abs=0.4)
    assert held["used"]["weeks"] == 20
    with pytest.raises(InputError, match="last_week"):
        worth({**payload, "last_week": 0})
