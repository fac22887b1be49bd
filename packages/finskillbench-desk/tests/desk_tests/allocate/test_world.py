"""Worlds and posterior: calibration over drawn worlds, traps that matter, and nothing said of what is hidden."""

import re
from dataclasses import replace
from itertools import combinations, pairwise
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from desk_tests.allocate.cases import NAMES, played
from scipy.stats import multivariate_normal
from tests.sampling import THOROUGH

from finskillbench_desk.allocate.posterior import HALVES, STRETCHES, draw_world, forecast, weigh
from finskillbench_desk.allocate.prompts import source_log
from finskillbench_desk.allocate.sources import (
    IS_ANALYST,
    LEAST_COST,
    LEAST_GAIN,
    QUARTERS,
    SOURCE_NAMES,
    SOURCES,
    TIERS,
    vendor_of,
)
from finskillbench_desk.allocate.traps import SourcePitfall, Study, misread_weights, scored_columns
from finskillbench_desk.engines.trading.net_of_costs import optimum


@pytest.mark.slow
def test_the_posterior_is_calibrated_over_drawn_worlds() -> None:
    """Means of what is true less what is expected, in units of the doubt, and of squares: 0 and 1."""
    errors, doubts = [], []
    for number in range(60 if THOROUGH else 12):
        rng = np.random.default_rng([9, number])
        world = draw_world(rng, NAMES, TIERS["medium"])
        belief = Study.of(world).belief()
        true = np.zeros(120)
        for group, regimes in enumerate(world.effects):
            for effect in regimes:
                if effect.last == QUARTERS:
                    names = slice(10 * group, 10 * group + 10)
                    scores = world.sources.values[-1, names, effect.source] / world.sources.scale[effect.source]
                    true[names] += effect.size * scores
        errors.append((true - belief.alpha)[::10])  # one name of each industry: independent
        doubts.append(np.diag(belief.doubt)[::10])
    error, doubt = np.concatenate(errors), np.concatenate(doubts)
    assert abs(error.sum() / np.sqrt(doubt.sum())) < 3.5
    assert (error**2).sum() / doubt.sum() == pytest.approx(1.0, abs=0.35)


def test_evidence_of_partitions_is_that_of_dense_normals() -> None:
    """One industry, two sources, three half-years: every partition and source written out with dense covariances."""
    world = draw_world(np.random.default_rng(4), NAMES, TIERS["easy"])
    reading = scored_columns(world.sources, (), np.array([3, 160]))
    family, book = world.family, world.book
    found = weigh(reading, world.residuals, book.specific, family)
    for place in np.random.default_rng(0).choice(len(STRETCHES[0]), 12, replace=False):
        first, last = STRETCHES[0][place], STRETCHES[1][place]
        span = slice(2 * first, 2 * last)
        for column in range(2):
            x = reading.scores[:-1][span, 20:30, column].ravel()
            r = world.residuals[span, 20:30].ravel()
            noise = np.diag(np.tile(book.specific[20:30] ** 2, 2 * (last - first)))
            source = reading.columns[column]
            spread = family.deviation[source] ** 2 * np.outer(x, x)
            log = multivariate_normal.logpdf(r, family.mean[source] * x, noise + spread)
            log -= multivariate_normal.logpdf(r, np.zeros(len(r)), noise)
            prior = (1 - family.nothing) * family.prior[source]
            assert np.log(found.odds[place, 2, column]) == pytest.approx(log + np.log(prior), abs=1e-8)


def test_the_recursion_sums_over_all_partitions() -> None:
    """Against partitions one by one: where changes are rare, those of at most two changes are all that matter."""
    world = draw_world(np.random.default_rng(5), NAMES, TIERS["hard"])
    family = replace(world.family, change=1e-4)
    hypotheses = weigh(scored_columns(world.sources, (), np.array([7])), world.residuals, world.book.specific, family)
    odds = {pair: hypotheses.odds[place, :, 0] for place, pair in enumerate(zip(*map(list, STRETCHES), strict=True))}
    total, alive = np.zeros(12), np.zeros(12)
    for count in range(3):
        for cuts in combinations(range(1, HALVES), count):
            parts = list(pairwise((0, *cuts, HALVES)))
            weight = family.change**count * (1 - family.change) ** (HALVES - 1 - count)
            weight *= np.prod([family.nothing + odds[part] for part in parts], axis=0)
            total += weight
            alive += weight * odds[parts[-1]] / (family.nothing + odds[parts[-1]])
    assert forecast(hypotheses, family).alive[:, 0] == pytest.approx(alive / total, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("number", range(6))
def test_every_place_matters_and_one_of_them_is_a_trap(number: int) -> None:
    case = played(number).case
    assert case.gain >= LEAST_GAIN
    assert any(not place.control for place in case.pitfalls)
    assert len({place.kind for place in case.pitfalls}) == len(case.pitfalls)
    assert all(1 - case.share(weights) >= LEAST_COST for weights in case.misread.values())


@pytest.mark.parametrize("number", range(6))
def test_whoever_falls_for_every_trap_loses_much(number: int) -> None:
    case = played(number).case
    wrong = frozenset(place.name for place in case.pitfalls if not place.control)
    assert case.share(misread_weights(Study.of(case.world, case.pitfalls), wrong)) < 0.75


@pytest.mark.slow
def test_whoever_suspects_everything_earns_little() -> None:
    """All that is late, alike, named in the log or odd in its units is left out; the rest is weighed exactly."""
    earned = list[float]()
    for number in range(9 if THOROUGH else 4):
        one = played(number)
        case, sources = one.case, one.case.world.sources
        log = one.data["documents"]["notes"]
        spread = sources.values.std(axis=1)
        left_out = (spread[1:] > 3 * spread[:-1]).any(axis=0) | (sources.values[-1] == sources.values[-2]).all(axis=0)
        left_out |= (np.bincount(sources.parent, minlength=SOURCES)[sources.parent] > 1) | (sources.since > 0)
        left_out |= [bool(re.search(rf"\b({SOURCE_NAMES[c]}|{vendor_of(c)})\b", log)) for c in range(SOURCES)]
        weighed = Study.of(case.world, case.pitfalls).hypotheses
        belief = forecast(replace(weighed, odds=weighed.odds * ~left_out), case.world.family)
        weights = optimum(case.world.book.problem(belief.alpha, belief.doubt), unique=False).weights
        earned.append(max(0.0, case.share(weights)))
    assert fmean(earned) < 0.3


def test_what_is_planted_is_undone_by_the_right_reading() -> None:
    """Values in the wrong unit or sense are read as they were drawn; what is void does not count, whatever it is."""
    for number in range(12 if THOROUGH else 6):
        case = played(number).case
        for place in case.pitfalls:
            if place.kind in ("unit", "reversed") and not place.control:
                scores = scored_columns(case.world.sources, case.pitfalls, np.array(place.columns)).scores
                assert 0.7 < scores.std(axis=(1, 2)).min() <= scores.std(axis=(1, 2)).max() < 1.3
            if place.kind == "backfill" and not place.control:
                values = case.world.sources.values.copy()
                values[: place.quarter, :, list(place.columns)] = 7
                other = Study.of(replace(case.world, sources=replace(case.world.sources, values=values)), case.pitfalls)
                assert np.abs(other.belief().alpha - case.belief.alpha).max() < 1e-15


def test_the_log_tells_of_a_valid_record_whatever_else_is_at_the_source() -> None:
    """An analyst whose record before the seat is valid may be the one that a place with copies is named after."""
    since, start = np.zeros(SOURCES, dtype=np.int64), np.zeros(SOURCES, dtype=np.int64)
    column = int(np.flatnonzero(IS_ANALYST)[3])
    since[column] = 39
    copies = SourcePitfall("copies", SOURCE_NAMES[column], control=False, columns=(column, 75, 104), quarter=0)
    sources = SimpleNamespace(since=since, start=start)
    case: Any = SimpleNamespace(pitfalls=(copies,), world=SimpleNamespace(sources=sources))
    told = [line for line in source_log(np.random.default_rng(1), case).splitlines() if SOURCE_NAMES[column] in line]
    assert len(told) == 1
    assert "person" in told[0]
