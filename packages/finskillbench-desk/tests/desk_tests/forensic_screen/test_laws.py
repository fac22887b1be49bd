"""Laws of forensic_screen: draws, archive, the posterior by two derivations, calibration, and texts."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from desk_tests.forensic_screen.worlds import world

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.forensic_screen import law_paths, law_prompts
from finskillbench_desk.forensic_screen.difficulty import INDUSTRIES, KIND_NAMES
from finskillbench_desk.forensic_screen.law_paths import draw_archive, draw_managed, draw_paths, read_covariates
from finskillbench_desk.forensic_screen.law_posterior import law_probabilities
from finskillbench_desk.forensic_screen.law_rederive import rederive_covariates, rederive_probabilities
from finskillbench_desk.forensic_screen.laws import STRUCTURES, Covariates, Law, draw_law, law_json, read_law

PERIODS = 40


def _covariates(rng: np.random.Generator, n: int) -> Covariates:
    fiscal = (rng.integers(0, 4, n)[:, None] + np.arange(PERIODS)) % 4
    growth, size = rng.standard_normal((n, PERIODS)), rng.standard_normal(n)
    return Covariates(fiscal, growth, size, rng.integers(0, len(INDUSTRIES), n))


def _drawn(structure: str, seed: int, n: int, starts: int) -> tuple[Law, Covariates, Integers, Integers, Floats]:
    rng = np.random.default_rng([seed, n])
    law = draw_law(rng, structure)
    law = replace(law, model=replace(law.model, starts=starts))
    covariates = _covariates(rng, n)
    acquired = np.full(n, -1)
    acquired[-1] = 33
    kind, start = draw_managed(rng, law, covariates.industry, PERIODS)
    return law, covariates, acquired, kind, draw_paths(rng, law, covariates, kind, start, acquired)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_two_derivations_of_the_posterior_agree(structure: str) -> None:
    law, covariates, acquired, _, y = _drawn(structure, 1, 6, 3)
    found = law_probabilities(law, y, acquired, covariates)
    again = rederive_probabilities(law, y, acquired, covariates)
    assert np.abs(found - again).max() < 1e-8


@pytest.mark.parametrize("structure", STRUCTURES)
def test_probabilities_are_calibrated(structure: str) -> None:
    expected = outcome = doubt = slope = doubt_of_slope = 0.0
    for seed in range(4):
        law, covariates, acquired, kind, y = _drawn(structure, 100 + seed, 150, 8)
        p = np.clip(law_probabilities(law, y, acquired, covariates).sum(axis=1), 1e-9, 1.0 - 1e-9)
        odds = np.log(p) - np.log1p(-p)
        expected, outcome = expected + p.sum(), outcome + (kind >= 0).sum()
        doubt += (p * (1.0 - p)).sum()
        slope += (((kind >= 0) - p) * odds).sum()
        doubt_of_slope += (p * (1.0 - p) * odds**2).sum()
    assert abs(outcome - expected) < 4.0 * np.sqrt(doubt)
    assert abs(slope) < 4.0 * np.sqrt(doubt_of_slope)


@pytest.mark.parametrize("structure", [name for name, each in STRUCTURES.items() if each.either_sign])
def test_the_sign_of_a_path_is_no_evidence_where_signs_are_free(structure: str) -> None:
    law, covariates, acquired, _, y = _drawn(structure, 2, 20, 6)
    found = law_probabilities(law, y, acquired, covariates)
    assert np.abs(law_probabilities(law, -y, acquired, covariates) - found).max() < 1e-9


def test_structures_differ_in_what_they_make_of_a_company() -> None:
    names = [name for name, each in STRUCTURES.items() if each.together and each.form != "smoothing"]
    law, covariates, acquired, kind, y = _drawn(names[0], 3, 150, 12)
    managed = kind >= 0
    own = law_probabilities(law, y, acquired, covariates).sum(axis=1)
    for name in names[1:]:
        form, half = STRUCTURES[name].form, law.half
        other = law_probabilities(replace(law, form=form, half=half), y, acquired, covariates).sum(axis=1)
        assert own[managed].mean() - own[~managed].mean() > other[managed].mean() - other[~managed].mean(), name


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_archive_shows_labels_and_no_truth(structure: str) -> None:
    rng = np.random.default_rng(4)
    law = draw_law(rng, structure)
    archive = draw_archive(rng, law)
    table = archive.table(law)
    rows = law_paths.BEFORE + law_paths.AFTER
    assert len(table) == (law_paths.CASES + law_paths.CLEARED) * rows
    assert set(table["kind"].unique()) == {*KIND_NAMES, law_paths.CLEAR}
    assert not {"start", "true_kind", "managed"} & set(table.columns)
    cases, cleared = slice(None, law_paths.CASES), slice(law_paths.CASES, None)
    wrong = archive.reported[cases] != archive.kind[cases]
    rate = law.labels.wrong[archive.basis[cases]].mean()
    assert abs(wrong.mean() - rate) < 4.0 * np.sqrt(rate * (1.0 - rate) / law_paths.CASES)
    hidden, share = (archive.kind[cleared] >= 0).mean(), law.labels.unreported
    assert abs(hidden - share) <= 4.0 * np.sqrt(share * (1.0 - share) / law_paths.CLEARED)


def test_public_facts_are_read_alike_by_two_derivations() -> None:
    tables = world("easy", 1).tables
    found, again = read_covariates(tables), rederive_covariates(tables)
    assert np.array_equal(found.fiscal, again.fiscal)
    assert np.array_equal(found.industry, again.industry)
    assert np.abs(found.growth - again.growth).max() < 1e-9
    assert np.abs(found.size - again.size).max() < 1e-9


def test_texts_do_not_depend_on_the_law() -> None:
    memo = law_prompts.documents(8.0, described=True)["memo"]
    assert not re.search(r"\d", memo)
    assert "memo" not in law_prompts.documents(8.0, described=False)
    text = (
        memo
        + law_prompts.documents(8.0, described=False)["data_notes"]
        + law_prompts.prompt("2024Q4", True).task_description
    )
    assert not [name for name in STRUCTURES if name != "smoothing" and name in text]
    assert not re.search(r"autoregress|inverse gamma|damping|Student|innovation|smoothing", text)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_law_is_read_back_from_json(structure: str) -> None:
    law = draw_law(np.random.default_rng(5), structure)
    stored = law_json(law)
    again = read_law(json.loads(json.dumps(stored)))
    assert law_json(again) == stored
    assert again.labels.confused.dtype == law.labels.confused.dtype
    assert np.array_equal(again.model.sigma, law.model.sigma)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_traces_of_the_archive_have_a_strength_of_their_own(structure: str) -> None:
    law = draw_law(np.random.default_rng(1), structure)
    assert ((law.archive >= 0.9) & (law.archive <= 1.9)).all()
    factors = np.ones(len(KIND_NAMES)), np.full(len(KIND_NAMES), 2.0)
    weak, strong = (draw_archive(np.random.default_rng(2), replace(law, archive=factor)) for factor in factors)
    managed = weak.kind >= 0
    difference = strong.y - weak.y
    assert not difference[~managed].any()
    assert (np.abs(difference[managed]).max(axis=(1, 2)) > 0.0).mean() > 0.95
    if structure == "single_ratio_heavy_tails":  # a step of one ratio: the shift itself
        last = np.abs(difference[managed][:, -1]).max(axis=1)
        usual = np.abs(law.signature).max() * law.model.deviation
        assert np.isclose(last[:, None], usual, rtol=1e-3).any(axis=1).all()
