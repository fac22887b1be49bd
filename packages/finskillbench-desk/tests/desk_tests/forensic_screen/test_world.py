"""Statements tie together, ratios follow from what is printed, and the disclosed corrections recover the paths."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from desk_tests.forensic_screen.worlds import QUARTERS, panel, posterior, world
from tests.sampling import sampled

from finskillbench_desk.engines.posterior.posterior import kind_probabilities
from finskillbench_desk.forensic_screen import procedures
from finskillbench_desk.forensic_screen.difficulty import RATIOS, TIERS
from finskillbench_desk.forensic_screen.generator.lines import LOCAL, ORDERLY, PLANTED, fallen_probabilities
from finskillbench_desk.forensic_screen.reading import BALANCE, IDENTITIES, LAYOUT, SLIP

CASES = [("easy", 0), ("medium", 1), ("hard", 2)]


@pytest.mark.parametrize(("tier", "seed"), CASES)
def test_identities_hold_but_where_a_balance_sheet_slipped(tier: str, seed: int) -> None:
    made = world(tier, seed)
    statements = made.tables["statements"]
    slips = sum(place.kind == "unit_slip" and place.planted for place in made.pitfalls)
    slipped = statements["cash"] == SLIP * statements["closing_cash"]
    assert slipped.sum() == slips
    sheet = set(BALANCE)
    for total, parts in IDENTITIES.items():
        difference = statements[total] - sum(sign * statements[part] for part, sign in parts.items())
        mixed = len({name in sheet for name in (total, *parts)}) > 1
        broken = (difference != 0) & ~slipped if mixed else difference != 0
        assert broken.sum() == 0, total


def test_changes_are_those_of_the_balance_sheet() -> None:
    made = world("medium", 1)
    kept = made.tables["statements"].sort("company", "quarter", "version").unique(["company", "quarter"], keep="last")
    slips = kept.filter(pl.col("cash") == SLIP * pl.col("closing_cash"))["company"].unique()
    kept = kept.filter(~pl.col("company").is_in(slips.implode())).sort("company", "quarter")
    for change, line in (("change_in_inventory", "inventory"), ("change_in_receivables", "receivables_net")):
        moved = kept.select(
            "company", "quarter", change, pl.col(line).diff().over("company").alias("moved")
        ).drop_nulls()
        assert (moved[change] == moved["moved"]).all()


@pytest.mark.parametrize(("tier", "seed"), CASES)
def test_reading_recovers_the_paths(tier: str, seed: int) -> None:
    made, seen = world(tier, seed), panel(tier, seed)
    smallest = made.model.deviation.min()
    assert np.abs(seen.y - made.paths.y).max() < 0.05 * smallest
    exact = kind_probabilities(made.paths.y, seen.acquired, made.model, made.prediction)
    assert np.abs(exact - posterior(tier, seed)).max() < 1e-3


@pytest.mark.parametrize(("seed", "planted"), [(1, True), (4, False)])
def test_an_acquisition_counts_if_it_is_material(seed: int, planted: bool) -> None:
    made, seen = world("medium", seed), panel("medium", seed)
    places = [place for place in made.pitfalls if place.kind == "acquisition"]
    assert places
    for place in places:
        assert place.planted == planted
        assert seen.acquired[place.company] == (place.quarter if planted else -1)
    completed = made.tables["events"].filter(pl.col("event") == "acquisition completed")
    assert len(completed) == 3 + len(places)
    assert (completed["value"] >= made.rules.material).sum() == (seen.acquired >= 0).sum()


def test_ratios_of_the_most_restless_companies_have_logarithms() -> None:
    for seed in sampled(range(6), 3):
        statements = world("hard", seed).tables["statements"]
        used = {line for ratio in RATIOS for line in (ratio.numerator, ratio.denominator)}
        assert all(statements[line].min() > 0 for line in used)  # pyright: ignore[reportOptionalOperand]


@pytest.mark.slow
@pytest.mark.parametrize("tier", list(TIERS))
def test_planted_places_mislead_and_are_innocent(tier: str) -> None:
    live, planted = 0, 0
    for seed in sampled(range(4), 2):
        made, seen = world(tier, seed), panel(tier, seed)
        assert len({place.kind for place in made.pitfalls if place.planted}) == PLANTED
        assert len({place.kind for place in made.pitfalls if not place.planted}) == ORDERLY
        for place in made.pitfalls:
            assert place.kind in LOCAL
            if place.planted:
                own = seen.y[place.company : place.company + 1]
                fallen = float(fallen_probabilities(own + place.offset, made.model, made.prediction).sum())
                planted += 1
                live += fallen > 0.9 and float(posterior(tier, seed)[place.company].sum()) < 0.2
    assert live >= 0.9 * planted


def test_a_case_is_too_long_to_read() -> None:
    tables = world("easy", 0).tables
    printed = sum(len(json.dumps(frame.to_dict(as_series=False))) for frame in tables.values())
    assert printed / 3.3 > 2e6
    assert sum(map(len, LAYOUT.values())) >= 60


def test_attainable_gain_is_substantial_and_far_from_certainty() -> None:
    for tier, seed in CASES:
        found = posterior(tier, seed).sum(axis=1)
        rate = world(tier, seed).model.base_rate
        entropy = -(found * np.log(np.maximum(found, 1e-300)) + (1 - found) * np.log1p(-np.minimum(found, 1 - 1e-12)))
        share = 1.0 - entropy.sum() / (-200 * (rate * np.log(rate) + (1 - rate) * np.log1p(-rate)))
        assert 0.1 < share < 0.75


def test_the_memo_says_what_the_posterior_assumes_of_shifts_and_of_archived_innovations() -> None:
    memo = procedures.documents(world("easy", 0).model, world("easy", 0).rules)["memo"]
    assert "both covariances are multiplied by v" in memo
    assert "expectation, which is not scaled" in memo
    assert "but for the correlation of innovations, which remains in them" in memo


def test_the_request_says_what_earns_nothing_of_the_kinds() -> None:
    request = str(procedures.prompt(QUARTERS))
    assert "naming for all companies the one kind that earns most that way (0)" in request
    assert "a company left out has no kind named and earns nothing of it" in request
