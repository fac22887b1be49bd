"""What trades are worth: bounds, no luck, nothing gained by steering, verdicts on traps, hostile records."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from desk_tests.trade_over_time.cases import case, judged, world_of
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import THOROUGH, examples, sampled

from finskillbench.arrays import Floats
from finskillbench_desk.trade_over_time.interactive import as_orders, certified, followed
from finskillbench_desk.trade_over_time.optimum import (
    TradingSetup,
    TradingTrap,
    fallen_book,
    from_json,
    losses,
    optimal_path,
    solved,
    textbooks,
)
from finskillbench_desk.trade_over_time.posterior import all_weeks, forecasts, history_sums
from finskillbench_desk.trade_over_time.world import DECISIONS, VENDOR_OF, Draws, TradingWorld

pytestmark = pytest.mark.slow

TIERS = ("easy", "medium", "hard")


def desk_of(tier: str) -> tuple[TradingSetup, Floats]:
    known = case(tier, 0).truth.verification
    return from_json(known["desk"]), np.array(known["aims"])


@pytest.mark.parametrize("tier", TIERS)
def test_the_optimal_record_scores_one_and_holding_still_nothing(tier: str) -> None:
    task = case(tier, 0)
    assert judged(task, task.truth.expected_output["record"]).value == pytest.approx(1, abs=1e-9)
    still = certified({"decisions": 0}, task.truth, {})
    assert still.value == pytest.approx(0, abs=1e-9)
    assert still.details["decisions"] == 0
    assert set(still.details["traps"].values()) <= {"untested"}


def test_a_better_textbook_is_the_zero() -> None:
    world = world_of("easy", 1)
    optimum, desk = solved(world, history_sums(world)), TradingSetup.of(world)
    books = textbooks(world, desk, all_weeks(history_sums(world, backfilled=True)))
    paths = {name: losses(desk, optimum.aims, path).sum() for name, path in books.items()}
    assert optimum.textbook.sum() == min(paths.values())
    assert set(paths) == {"holding still", "all the way"}


def _future(world: TradingWorld, week: int, rng: np.random.Generator) -> TradingWorld:
    """The world with all signals after a week, and all returns from it on, drawn again from anywhere."""
    signals, returns = world.draws.signals.copy(), world.draws.returns.copy()
    signals[week + 1 :] = rng.integers(-3000, 3000, signals[week + 1 :].shape)
    returns[week:] = rng.integers(-20000, 20000, returns[week:].shape)
    return replace(world, draws=Draws(signals, returns))


@pytest.mark.slow
def test_what_a_decision_lost_does_not_depend_on_what_came_later() -> None:
    """Nothing that is hidden moves a loss, however it is drawn: twenty times in a thorough run."""
    world = replace(world_of("medium", 2), outage=None)
    rng = np.random.default_rng(0)
    optimum, desk = solved(world, history_sums(world)), TradingSetup.of(world)
    books = [book + rng.normal(0, 20, len(book)) for book in optimal_path(desk, optimum.aims)]
    books = [desk.settled(place, book) for place, book in enumerate(books)]
    lost = losses(desk, optimum.aims, books)
    for _ in range(20 if THOROUGH else 3):
        place = int(rng.integers(DECISIONS))
        other_world = _future(world, world.draws.weeks + place, rng)
        other = solved(other_world, history_sums(other_world))
        again = losses(desk, other.aims, books)
        assert np.abs(again[: place + 1] - lost[: place + 1]).max() < 1e-9
        assert np.abs(other.textbook[: place + 1] - optimum.textbook[: place + 1]).max() < 1e-9


def test_true_coefficients_and_the_future_do_not_lift_a_score_above_one() -> None:
    """Somebody who knows the returns to come trades on them, and loses by what could be known."""
    world = world_of("easy", 3)
    optimum, desk = solved(world, history_sums(world)), TradingSetup.of(world)
    to_come = world.draws.returns[world.draws.weeks :] / 100_000
    books = [desk.book.holdings]
    for place in range(DECISIONS):
        best = desk.policy(place).best(place, desk.policy(place).aim(place, to_come[place:]), books[-1])
        books.append(desk.settled(place, best))
    lost = losses(desk, optimum.aims, books[1:])
    assert (lost > 0).all()
    assert 1 - lost.sum() / optimum.textbook.sum() < 0


def test_a_finding_or_a_tariff_counts_from_its_day_on_and_not_before() -> None:
    world = next(each for each in (world_of("easy", seed) for seed in range(9)) if each.news.tariff is not None)
    tariff, audit = world.news.tariff, world.news.audit
    assert tariff is not None
    other = {vendor: not holds for vendor, holds in world.news.verdicts.items()}
    again = replace(world, news=replace(world.news, verdicts=other, tariff=(tariff[0], 2 * tariff[1])))
    found, moved = (solved(each, history_sums(each)) for each in (world, again))
    same = [bool((one == two).all()) for one, two in zip(found.aims, moved.aims, strict=True)]
    assert same == [place < min(audit, tariff[0]) for place in range(DECISIONS)]
    refuted = np.isin(VENDOR_OF, [vendor for vendor, holds in world.news.verdicts.items() if not holds])
    assert not found.worth[audit:, refuted].any()
    assert found.worth[audit - 1, refuted].any()


@settings(deadline=None, max_examples=examples(40))
@given(st.integers(0, 2**32 - 1), st.sampled_from(TIERS), st.floats(-3, 3))
def test_no_record_scores_above_one_or_better_than_the_optimum(seed: int, tier: str, way: float) -> None:
    task = case(tier, 0)
    desk, aims = desk_of(tier)
    rng = np.random.default_rng(seed)
    books = [desk.book.holdings]
    for place in range(DECISIONS):
        best = desk.policy(place).best(place, aims[place], books[-1])
        wanted = books[-1] + way * (best - books[-1]) + rng.normal(0, rng.choice([0, 1, 100]), len(best))
        books.append(desk.settled(place, wanted))
    assert 0 <= judged(task, as_orders(desk, books[1:])).value <= 1


def test_steering_the_book_far_away_gains_nothing() -> None:
    """An agent that first throws the book off and then decides perfectly pays for the throw, whatever came of it."""
    task = case("easy", 0)
    desk, aims = desk_of("easy")
    rng = np.random.default_rng(0)
    scores: list[float] = []
    for size in (0.0, 10.0, 40.0, 160.0):
        books = [desk.book.holdings]
        for place in range(DECISIONS):
            best = desk.policy(place).best(place, aims[place], books[-1])
            thrown = best + (rng.normal(0, size, len(best)) if place == 0 else 0.0)
            books.append(desk.settled(place, thrown))
        score = judged(task, as_orders(desk, books[1:]))
        scores.append(score.value)
        assert max(score.details["losses"][1:]) < 1e-9
        assert score.details["textbook_loss"] == math.fsum(task.truth.verification["textbook_losses"])
    assert scores == sorted(scores, reverse=True)
    assert scores[1] < 1


@pytest.mark.parametrize("tier", TIERS)
def test_each_trap_costs_a_tenth_of_its_decision_and_is_told(tier: str) -> None:
    seen = set()
    for seed in sampled(range(3), 3):
        task = case(tier, seed)
        known = task.truth.verification
        desk, aims = from_json(known["desk"]), np.array(known["aims"])
        path = optimal_path(desk, aims)
        for stored in known["traps"]:
            trap = TradingTrap(stored["kind"], stored["decision"], np.array(stored["aim"]), stored["cost"])
            place = trap.decision
            before = path[place - 1] if place else desk.book.holdings
            books = [*path[:place], fallen_book(desk, trap, before)]
            for later in range(place + 1, DECISIONS):
                books.append(desk.policy(later).best(later, aims[later], books[-1]))
            score = judged(task, as_orders(desk, books))
            key = f"{trap.kind}@decision_{place + 1}"
            assert score.details["traps"][key] == "fallen"
            assert score.details["losses"][place] >= 0.1 * known["textbook_losses"][place] * (1 - 1e-9)
            assert judged(task, as_orders(desk, path)).details["traps"][key] == "avoided"
            seen.add(trap.kind)
    assert len(seen) >= 2


HOSTILE: list[Any] = [
    {},
    {"record": None},
    {"record": []},
    {"record": {"decisions": "all"}},
    {"record": {"decisions": [None, 1, []]}},
    {"record": {"decisions": [{"trades": {"N000": "1"}}]}},
    {"record": {"decisions": [{"trades": {"N000": 1e300}}]}},
    {"record": {"decisions": [{"trades": {"unknown": 1.0}}]}},
    {"record": {"decisions": [{"trades": {"N000": True}}] * 40}},
    {"decisions": 12},
]


@pytest.mark.parametrize("answer", HOSTILE)
def test_hostile_records_score_without_raising(answer: Any) -> None:
    score = certified(answer, case("easy", 0).truth, {})
    assert score.value == pytest.approx(0, abs=0.05)


def test_a_record_that_stops_goes_on_as_if_nobody_decided() -> None:
    task = case("medium", 0)
    desk, aims = desk_of("medium")
    path = optimal_path(desk, aims)
    record = as_orders(desk, path)
    books, taken = followed(desk, {"decisions": record["decisions"][:4]})
    assert taken == 4
    np.testing.assert_allclose(books[3], path[3], atol=1e-9)
    for place in range(4, DECISIONS):
        np.testing.assert_allclose(books[place], desk.held(place, books[place - 1]), atol=1e-9)
    assert 0 < judged(task, {"decisions": record["decisions"][:4]}).value < 1


def test_forecasts_of_later_dates_decay_by_half_lives() -> None:
    world = replace(world_of("easy", 0), outage=None)
    worth = np.zeros(30)
    worth[4] = 0.01
    ahead = forecasts(world, 3, worth)
    assert ahead.shape == (9, 120)
    np.testing.assert_allclose(ahead[1], ahead[0] * 0.5 ** (1 / world.signals.half_life[4]))
