"""Laws of trading cases: posterior against the independent derivation, against truth, and without hindsight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import cache

import numpy as np
import polars as pl
import pytest
from desk_tests.trade_over_time.cases import MARKET

from finskillbench_desk.trade_over_time.law_optimum import law_textbooks
from finskillbench_desk.trade_over_time.law_posterior import (
    Evidence,
    evidence_of,
    followed_aims,
    law_aims,
    unclipped_share,
)
from finskillbench_desk.trade_over_time.law_prompts import law_memo
from finskillbench_desk.trade_over_time.law_rederive import best_book, law_forecasts, read_law_case
from finskillbench_desk.trade_over_time.law_world import LawWorld, draw_law_world
from finskillbench_desk.trade_over_time.laws import STRUCTURES, draw_law, expected_features, features
from finskillbench_desk.trade_over_time.optimum import TradingSetup
from finskillbench_desk.trade_over_time.subtask import trading_tables
from finskillbench_desk.trade_over_time.world import DECISIONS, SIGNALS, VENDOR_OF, VENDORS, WEEKS

pytestmark = pytest.mark.slow
EACH = pytest.mark.parametrize("structure", STRUCTURES)


@cache
def case(structure: str, seed: int) -> LawWorld:
    rng = np.random.default_rng([17, seed])
    names = [each.symbol for each in MARKET], [each.industry for each in MARKET]
    return draw_law_world(*names, draw_law(rng, structure), rng)


def tables(of: LawWorld) -> Mapping[str, pl.DataFrame]:
    """Visible tables, with the half-lives that the law states."""
    world = of.world
    factors = dict(zip(world.risk.factors, of.factor_returns[:WEEKS].T, strict=True))
    return {
        **trading_tables(world, TradingSetup.of(world), date(2020, 1, 6)),
        "factor_returns": pl.DataFrame({"week": np.arange(1, WEEKS + 1)} | factors),
        "signals": pl.DataFrame(
            {
                "signal": list(SIGNALS),
                "vendor": [tuple(VENDORS)[vendor] for vendor in VENDOR_OF],
                "since": world.signals.live_from + 1,
                "half_life": world.signals.half_life,
            }
        ),
    }


@EACH
def test_forecasts_and_first_book_agree_with_the_independent_derivation(structure: str) -> None:
    of = case(structure, 1)
    seen, world = evidence_of(of), of.world
    stated = seen.forecasts(WEEKS, WEEKS, WEEKS + DECISIONS)
    derived = law_forecasts(read_law_case(tables(of), of.law), DECISIONS)
    np.testing.assert_allclose(derived, stated, atol=1e-6 * max(float(np.abs(stated).max()), 1e-3))
    setup = TradingSetup.of(world)
    limits = {
        place: (limit.rows, limit.amounts) for place in range(DECISIONS) if (limit := setup.limits(place)) is not None
    }
    benchmark = np.array([setup.benchmark(place) for place in range(DECISIONS)])
    moved = (world.risk.covariance(), setup.curvature(0), setup.plan.aversion, benchmark, world.book.holdings)
    aim = setup.policy(0).aim(0, stated * world.risk.specific)
    best = setup.policy(0).best(0, aim, world.book.holdings)
    np.testing.assert_allclose(best_book(derived * world.risk.specific, *moved, limits), best, atol=1e-4)


@EACH
def test_quadrature_has_converged(structure: str) -> None:
    of = case(structure, 2)
    coarse, fine = (evidence_of(of, nodes=nodes).forecasts(WEEKS, WEEKS, WEEKS + 2) for nodes in (49, 97))
    np.testing.assert_allclose(coarse, fine, atol=1e-5 * max(float(np.abs(fine).max()), 1e-3))


@EACH
def test_forecasts_use_nothing_of_later_weeks(structure: str) -> None:
    seen = evidence_of(case(structure, 1))
    known, rng = WEEKS + 3, np.random.default_rng(3)
    signals, residuals = seen.signals.copy(), seen.residuals.copy()
    signals[known + 1 :] = rng.normal(size=signals[known + 1 :].shape)
    residuals[known:] = rng.normal(size=residuals[known:].shape)
    other = replace(seen, signals=signals, residuals=residuals)
    for first in (known, known + 2):
        stated = seen.forecasts(known, first, WEEKS + DECISIONS)
        np.testing.assert_allclose(other.forecasts(known, first, WEEKS + DECISIONS), stated, atol=1e-12)


@EACH
def test_backfilled_values_are_no_evidence(structure: str) -> None:
    seen = evidence_of(case(structure, 1))
    signals = np.where(np.arange(len(seen.signals))[:, None, None] < seen.start, 9.0, seen.signals)
    other = replace(seen, signals=signals)
    stated = seen.forecasts(WEEKS, WEEKS, WEEKS + 1)
    np.testing.assert_allclose(other.forecasts(WEEKS, WEEKS, WEEKS + 1), stated, atol=1e-12)


@EACH
def test_expected_features_are_the_mean_of_simulated_ones(structure: str) -> None:
    law, rng = draw_law(np.random.default_rng(5), structure), np.random.default_rng(6)
    decay, ahead, paths, past = rng.uniform(0.8, 0.97, len(SIGNALS)), 9, 20_000, rng.normal(size=(12, 1, len(SIGNALS)))
    moved = [*np.repeat(past, paths, axis=1)]
    for _ in range(ahead):
        moved.append(decay * moved[-1] + np.sqrt(1 - decay**2) * rng.normal(size=moved[-1].shape))
    found = features(law, np.array(moved), decay, np.zeros(len(SIGNALS), dtype=np.int64))[-1]
    expected = expected_features(law, past, decay, ahead)[0]
    assert np.abs(found.mean(axis=0) - expected).max() < 6 * found.std(axis=0).max() / np.sqrt(paths) + 1e-9


def test_errors_are_as_large_as_the_stated_doubt() -> None:
    wrong, doubt, shared, spread = 0.0, 0.0, 0.0, 0.0
    for structure in STRUCTURES:
        for seed in range(20, 26):
            of = case(structure, seed)
            seen = evidence_of(of)
            mean, error, variance = first_week(seen, of)
            wrong, doubt = wrong + float((error**2).sum()), doubt + float(variance.sum())
            shared, spread = shared + float(mean @ (mean + error)), spread + float(mean @ mean)
    case.cache_clear()
    assert 0.6 < wrong / doubt < 1.5
    assert 0.95 < shared / spread < 1.05


def first_week(seen: Evidence, of: LawWorld) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, error and variance of the effects of the first decision's week, each (n,)."""
    mean, square = seen.moments(WEEKS, 1)
    now = expected_features(seen.law, seen.signals[: WEEKS + 1], seen.decay, 0)
    alpha = (now * mean[0][seen.place_of]).sum(axis=1)
    whole = np.einsum("nc,ncd,nd->n", now, square[seen.place_of], now)
    return alpha, of.effects[WEEKS] - alpha, whole - alpha**2


@EACH
def test_the_optimum_loses_nothing_and_other_laws_lose(structure: str) -> None:
    of = next(of for of in (case(structure, seed) for seed in range(1, 20)) if np.abs(of.effects[WEEKS]).max() > 0.05)
    setup, best = TradingSetup.of(of.world), law_aims(of, evidence_of(of))
    zero = min(float(path.sum()) for path in law_textbooks(setup, best).values())
    assert unclipped_share(setup, best, best, zero) == pytest.approx(1.0, abs=1e-9)
    assert len(followed_aims(setup, best)) == DECISIONS
    for other in STRUCTURES:
        if other != structure:
            law = draw_law(np.random.default_rng(8), other)
            assert unclipped_share(setup, best, law_aims(of, evidence_of(of, law)), zero) < 0.7


def test_memos_do_not_name_the_law() -> None:
    described, data = (law_memo(case("block_product_ends", 1), level) for level in ("described", "data"))
    assert data in described
    assert data == law_memo(replace(case("block_product_ends", 1), law=case("market_level_break", 1).law), "data")
    for text in (described, data):
        assert not any(word in text for word in ("block", "intermittent", "strength", "half-life"))
