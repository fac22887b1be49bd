"""Worlds of the disclosed law: traps that matter, readings that undo them, and nothing said of what is hidden."""

import re
from dataclasses import replace
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from desk_tests.allocate.cases import played
from tests.sampling import THOROUGH

from finskillbench_desk.allocate.cases import AllocationCase
from finskillbench_desk.allocate.posterior import Effects, law_effects
from finskillbench_desk.allocate.prompts import source_log
from finskillbench_desk.allocate.sources import IS_ANALYST, LEAST_COST, LEAST_GAIN, SOURCE_NAMES, SOURCES, vendor_of
from finskillbench_desk.allocate.traps import ScoredColumns, SourcePitfall, scored_columns
from finskillbench_desk.engines.trading.net_of_costs import optimum


def believed(case: AllocationCase, reading: ScoredColumns) -> Effects:
    """Posterior of the effects under a reading of the data."""
    return law_effects(case.world.law, *reading, case.world.residuals, case.world.book)


def earned(case: AllocationCase, reading: ScoredColumns) -> float:
    """Share of the attainable gain of the optimum under a reading of the data."""
    return case.share(optimum(case.world.book.problem(*believed(case, reading)), unique=False).weights)


@pytest.mark.parametrize("number", range(6))
def test_every_place_matters_and_one_of_them_is_a_trap(number: int) -> None:
    case = played(number).case
    assert case.gain >= LEAST_GAIN
    assert any(not place.control for place in case.pitfalls)
    assert len({place.kind for place in case.pitfalls}) == len(case.pitfalls)
    assert all(1 - case.share(weights) >= LEAST_COST for weights in case.misread.values())


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_falling_for_every_trap_loses_much(number: int) -> None:
    case = played(number).case
    wrong = frozenset(place.name for place in case.pitfalls if not place.control)
    assert earned(case, scored_columns(case.world.sources, case.pitfalls, wrong)) < 0.75


@pytest.mark.slow
def test_suspecting_everything_earns_little() -> None:
    """Leave out all that is late, alike, named in the log or odd in its units; weigh the rest exactly."""
    shares = list[float]()
    for number in range(9 if THOROUGH else 4):
        case, sources = played(number).case, played(number).case.world.sources
        log = played(number).data["documents"]["notes"]
        spread = sources.values.std(axis=1)
        left_out = (spread[1:] > 3 * spread[:-1]).any(axis=0) | (sources.values[-1] == sources.values[-2]).all(axis=0)
        reading = scored_columns(sources, case.pitfalls)
        alike = np.corrcoef(np.nan_to_num(reading.scores).reshape(-1, SOURCES), rowvar=False) > 0.7
        left_out |= (alike.sum(axis=0) > 1) | (sources.since > 0)
        left_out |= [bool(re.search(rf"\b({SOURCE_NAMES[c]}|{vendor_of(c)})\b", log)) for c in range(SOURCES)]
        shares.append(max(0.0, earned(case, reading._replace(scores=reading.scores * ~left_out))))
    assert fmean(shares) < 0.3


def test_planted_errors_are_undone_by_the_right_reading() -> None:
    """Values in a wrong unit or sense are read as they were drawn; void values do not count, however large."""
    kinds = set[str]()
    for number in range(12 if THOROUGH else 6):
        case = played(number).case
        reading = scored_columns(case.world.sources, case.pitfalls)
        for place in case.pitfalls:
            if place.control:
                continue
            kinds.add(place.kind)
            if place.kind in ("unit", "reversed"):
                deviation = reading.scores[:, :, list(place.columns)].std(axis=(1, 2))
                assert 0.7 < deviation.min() <= deviation.max() < 1.3
            if place.kind in ("backfill", "predecessor"):
                values = case.world.sources.values.copy()
                values[: place.quarter, :, list(place.columns)] = 7
                other = scored_columns(replace(case.world.sources, values=values), case.pitfalls)
                assert np.abs(believed(case, other).alpha - case.belief.alpha).max() < 1e-12
    assert len(kinds) > 2


def test_the_log_states_a_valid_record_also_where_a_source_has_another_pitfall() -> None:
    since, start = np.zeros(SOURCES, dtype=np.int64), np.zeros(SOURCES, dtype=np.int64)
    column = int(np.flatnonzero(IS_ANALYST)[3])
    since[column] = 39
    stale = SourcePitfall("stale", SOURCE_NAMES[column], control=False, columns=(column, 75, 104), quarter=44)
    sources = SimpleNamespace(since=since, start=start)
    case: Any = SimpleNamespace(pitfalls=(stale,), world=SimpleNamespace(sources=sources))
    log = [line for line in source_log(np.random.default_rng(1), case).splitlines() if SOURCE_NAMES[column] in line]
    assert len(log) == 1
    assert "person" in log[0]
