"""Laws of allocation cases: two derivations of the posterior agree, it is calibrated, and draws follow their law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from desk_tests.allocate.cases import NAMES, played
from desk_tests.oracles.allocation import Desk
from tests.sampling import thorough

from finskillbench.arrays import Floats
from finskillbench_desk.allocate.laws import (
    PER_HALF,
    STRUCTURES,
    Law,
    candidates,
    disclosed_law,
    draw_effects,
    draw_law,
    draw_residuals,
    features,
    places,
)
from finskillbench_desk.allocate.posterior import Effects, law_effects
from finskillbench_desk.allocate.rederive import rederive_effects
from finskillbench_desk.allocate.sources import QUARTERS, Sources, draw_book, draw_sources
from finskillbench_desk.allocate.visible import Visible

QUICK = ("market_change_break", "market_gate_fading")
DISCLOSED = disclosed_law(0.08, 0.024, 0.14)
LAWS = ("disclosed", *STRUCTURES)


def drawn(structure: str, number: int) -> tuple[Law, Floats, Effects, Visible]:
    """Law, true effects (T + 1, n), posterior and visible data of a drawn world."""
    rng = np.random.default_rng([3, number])
    law = DISCLOSED if structure == "disclosed" else draw_law(rng, structure)
    book, sources = draw_book(rng, NAMES), draw_sources(rng, 50)
    scores = sources.values / sources.scale
    effects = draw_effects(rng, law, book, features(law, scores, sources.start))
    residuals = draw_residuals(rng, law, book.specific) + effects[:-1]
    seen = Visible(scores, sources.start, residuals, book.specific, book.group_of, book.benchmark)
    return law, effects, law_effects(law, scores, sources.start, residuals, book), seen


@pytest.mark.parametrize(
    "structure", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in LAWS]
)
def test_two_derivations_of_the_posterior_agree(structure: str) -> None:
    law, _, found, seen = drawn(structure, 0)
    alpha, doubt = rederive_effects(law, seen)
    assert np.abs(found.alpha - alpha).max() < 1e-9
    assert np.abs(found.doubt - doubt).max() < 1e-9


def test_two_derivations_agree_where_every_date_of_a_break_is_possible() -> None:
    law, _, _, seen = drawn("market_change_break", 0)
    weak, book = replace(law, strength=0.003), draw_book(np.random.default_rng(0), NAMES)
    book = replace(book, specific=seen.specific, benchmark=seen.benchmark)
    found = law_effects(weak, seen.scores, seen.start, seen.residuals, book)
    alpha, doubt = rederive_effects(weak, seen)
    assert np.abs(found.alpha - alpha).max() < 1e-9
    assert np.abs(found.doubt - doubt).max() < 1e-9


def test_the_posterior_of_the_disclosed_law_has_a_closed_form() -> None:
    one, oracle = played(0), Desk(played(0).data)
    for place in range(12):
        names = np.arange(10 * place, 10 * place + 10)
        mean, covariance = oracle.industry(names)
        assert np.abs(one.case.belief.alpha[names] - mean).max() < 1e-11
        assert np.abs(one.case.belief.doubt[np.ix_(names, names)] - covariance).max() < 1e-11


@thorough
@pytest.mark.slow
@pytest.mark.parametrize("structure", LAWS)
def test_the_posterior_is_calibrated(structure: str) -> None:
    """The squared error of the effects is their variance, over drawn worlds."""
    errors, variances = [], []
    for number in range(8):
        law, effects, found, _ = drawn(structure, 100 + number)
        one_each = np.unique(places(law, draw_book(np.random.default_rng(0), NAMES)), return_index=True)[1]
        errors.append(((effects[-1] - found.alpha)[one_each] ** 2).sum())
        variances.append(np.diag(found.doubt)[one_each].sum())
    ratio = sum(errors) / sum(variances)
    noise = 3.5 * np.std(np.array(errors) - np.array(variances)) * np.sqrt(len(errors)) / sum(variances)
    assert abs(ratio - 1.0) < noise


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_law_is_drawn_within_its_ranges(structure: str) -> None:
    ranges = STRUCTURES[structure]
    for number in range(20):
        law = draw_law(np.random.default_rng(number), structure)
        assert ranges.strength[0] <= law.strength <= ranges.strength[1]
        assert ranges.change[0] <= law.change <= ranges.change[1]
        assert law.tail in ranges.tails
        assert (ranges.life is None) == np.isinf(law.life)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_features_have_a_variance_near_one_and_are_zero_before_the_record(structure: str) -> None:
    law, _, _, seen = drawn(structure, 1)
    found = features(law, seen.scores, seen.start)
    usual = np.sqrt((found[-8:] ** 2).mean(axis=(0, 1)))
    assert 0.6 < np.median(usual) < 1.3
    first, second = candidates(law).T
    late = np.flatnonzero(np.maximum(seen.start[first], seen.start[second]))
    assert len(late)
    for candidate in late.tolist():
        begun = max(seen.start[first[candidate]], seen.start[second[candidate]])
        assert not found[:begun, :, candidate].any()


def _drawn_effects(law: Law) -> Floats:
    rng = np.random.default_rng(2)
    sources: Sources = draw_sources(rng, 50)
    return draw_effects(
        rng, law, draw_book(rng, NAMES), features(law, sources.values / sources.scale, sources.start * 0)
    )


def test_effects_follow_the_course_of_their_law() -> None:
    law = replace(draw_law(np.random.default_rng(0), "industry_product_break"), nothing=0.0, change=0.0)
    assert _drawn_effects(law).any(axis=1).all()
    assert not _drawn_effects(replace(law, nothing=1.0)).any()
    fading = _drawn_effects(replace(law, course="fading", life=2.0))
    size = np.abs(fading).max(axis=1)
    assert size[-1] < 0.01 * size[0]
    lit = _drawn_effects(replace(law, course="intermittent", change=1.0))[:, :10].any(axis=1)
    assert (np.diff(lit.astype(int)) != 0).sum() == QUARTERS // PER_HALF
