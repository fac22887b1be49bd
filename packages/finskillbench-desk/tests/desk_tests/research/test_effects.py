"""Evidence and search of research-methods on planted effects, its panels and forms."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from desk_tests.research.planted import (
    NAMES,
    PERIODS,
    SOURCES,
    Law,
    effect_search,
    evidence,
    features,
    market_of,
    panels,
    plant,
)
from scipy.integrate import quad
from scipy.stats import norm

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
