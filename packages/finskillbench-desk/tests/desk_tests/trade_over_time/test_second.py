"""The posterior, the memo and the optimum derived twice; the proof sees planted defects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from desk_tests.trade_over_time.cases import case, full_input, world_of
from tests.sampling import THOROUGH, sampled, thorough

from finskillbench.domains.building import BuiltTask
from finskillbench.domains.examples import Label
from finskillbench.findings import Findings
from finskillbench_desk.engines.panel import least_squares
from finskillbench_desk.trade_over_time import rederive
from finskillbench_desk.trade_over_time.posterior import all_weeks, history_sums, posterior_means, sums_at_decisions
from finskillbench_desk.trade_over_time.prompts import notices, trading_memo
from finskillbench_desk.trade_over_time.subtask import proof
from finskillbench_desk.trade_over_time.world import (
    DECISIONS,
    ENDS,
    HALF_LIVES,
    HOLDS,
    SECTOR_SHARE,
    SIGNAL_UNIT,
    VENDOR_OF,
    VENDORS,
)

pytestmark = pytest.mark.slow


def _proved(task: BuiltTask, **changes: Any) -> Findings:
    findings = Findings()
    truth = replace(task.truth, verification={**task.truth.verification, **changes})
    proof(Label(task.episode, full_input(task), truth, task.certificate), findings)
    return findings


@pytest.mark.parametrize("tier", sampled(["easy", "medium", "hard"], 3))
def test_both_derivations_agree(tier: str) -> None:
    findings = _proved(case(tier, 1))
    assert not findings.found
    assert findings.figures["coefficient_difference"] < 1e-10
    assert findings.figures["book_difference"] < 1e-10


@thorough
def test_a_wrong_aim_or_coefficient_is_seen() -> None:
    task = case("easy", 1)
    aims = np.array(task.truth.verification["aims"])
    aims[0, 3] += 0.01
    assert any("book differs" in each.message for each in _proved(task, aims=aims.tolist()).found)
    worth = np.array(task.certificate["worth"])
    worth[0, 0] += 1e-4
    wrong = replace(task, certificate={**task.certificate, "worth": worth.tolist()})
    assert any("coefficient differs" in each.message for each in _proved(wrong).found)
    record = {"decisions": task.truth.expected_output["record"]["decisions"][:7]}
    cut = replace(task, truth=replace(task.truth, expected_output={"decisions": 12, "record": record}))
    assert any("its own record scores" in each.message for each in _proved(cut).found)


@pytest.mark.parametrize("seed", range(8))
def test_every_wording_of_the_memo_is_read_back(seed: int) -> None:
    world = world_of(("easy", "medium", "hard")[seed % 3], seed)
    for wording in range(12):
        read = rederive.read_memo(trading_memo(world, np.random.default_rng(wording)))
        plan, late = world.plan, np.flatnonzero(world.signals.live_from)
        assert [read.capital_at(day + 1) for day in range(12)] == pytest.approx(plan.capital.tolist())
        assert [read.aversion_at(day + 1) for day in range(12)] == pytest.approx(plan.aversion.tolist())
        assert (read.limit_from, read.clip, read.strengths) == (
            plan.limit_from + 1,
            world.book.clip,
            world.tier.strengths,
        )
        expected = None
        if len(late):
            expected = (tuple(VENDORS)[VENDOR_OF[late[0]]], int(world.signals.live_from[late[0]]) + 1)
        assert read.late == expected
        assert (read.ends, read.holds) == (ENDS, HOLDS)
        said = notices(world, np.random.default_rng(wording))
        heard = rederive.apply_notices(read, [text for _, text in said])
        assert heard.found == {tuple(VENDORS)[each]: holds for each, holds in world.news.verdicts.items()}
        assert heard.tariff == (1.0 if world.news.tariff is None else world.news.tariff[1])
        days = {world.news.audit, *([] if world.news.tariff is None else world.news.tariff[:1])}
        assert {day for day, _ in said} == days | ({world.controls.calm} - {None})


def test_the_posterior_is_that_of_all_weeks_at_once() -> None:
    """Recursive updating against conditioning on the whole panel as it stands at the last decision."""
    world = world_of("hard", 4)
    decay = world.signals.decay
    at_last = replace(world, outage=None)
    recursive = posterior_means(sums_at_decisions(at_last, history_sums(at_last))[-1], world.tier, decay, {})
    weeks = world.draws.weeks + DECISIONS - 1
    whole = replace(
        at_last,
        draws=type(world.draws)(
            np.concatenate([world.draws.signals[:weeks], world.draws.signals[:12]]),
            np.concatenate([world.draws.returns[:weeks], world.draws.returns[:12]]),
        ),
    )
    np.testing.assert_allclose(posterior_means(history_sums(whole), world.tier, decay, {}), recursive, atol=1e-12)


def test_the_posterior_is_calibrated() -> None:
    """Over drawn worlds the mean error of the posterior mean is nil, and it explains what its spread promises.

    E[worth (estimate - worth)] = 0 for the posterior mean and for no other estimate.
    """
    from finskillbench_desk.trade_over_time import generate

    product, size, count = 0.0, 0.0, 24 if THOROUGH else 12
    for seed in range(count):
        drawn: list[generate.Edges] = []
        original = generate._edges
        try:
            generate._edges = lambda *given: drawn.append(original(*given)) or drawn[-1]  # noqa: B023
            world = world_of("easy", 100 + seed)
        finally:
            generate._edges = original
        scale = np.sqrt(1 - world.signals.decay)
        estimate = posterior_means(history_sums(world), world.tier, world.signals.decay, {}) / scale
        product += float(estimate @ (drawn[0].today / scale - estimate))
        size += float(estimate @ estimate)
    assert abs(product) < 0.1 * size


def test_what_was_filled_in_afterwards_counts_for_nothing() -> None:
    world = next(each for each in (world_of("easy", seed) for seed in range(9)) if each.signals.live_from.any())
    late = np.flatnonzero(world.signals.live_from)
    first = int(world.signals.live_from[late[0]])
    signals = world.draws.signals.copy()
    signals[:first, :, late] = 77
    other = replace(world, draws=replace(world.draws, signals=signals))
    of, again = history_sums(world), history_sums(other)
    np.testing.assert_array_equal(all_weeks(of).information, all_weeks(again).information)
    believed = least_squares(all_weeks(history_sums(world, backfilled=True)))[0]
    assert np.abs(believed - least_squares(all_weeks(of))[0])[late].max() > 1e-3


def test_half_lives_are_shown_beyond_doubt() -> None:
    """The likelihood of every signal's own half-life is e^50 times that of any other: the posterior has no other."""
    of_sector = np.arange(120) // 10
    shared = SECTOR_SHARE * (of_sector[:, None] == of_sector) + (1 - SECTOR_SHARE) * np.eye(120)
    whitener = np.linalg.inv(np.linalg.cholesky(shared))
    for seed in range(2):
        world = world_of("medium", 20 + seed)
        x = whitener @ (world.draws.signals[: world.draws.weeks] / SIGNAL_UNIT)
        logs: list[np.ndarray] = []
        for half_life in HALF_LIVES:
            decay = 0.5 ** (1 / half_life)
            shocks = x[1:] - decay * x[:-1]
            variance = 1 - decay**2
            logs.append(-(shocks**2).sum((0, 1)) / (2 * variance) - shocks[:, :, 0].size * np.log(variance) / 2)
        ordered = np.sort(logs, axis=0)
        assert (np.array(HALF_LIVES)[np.argmax(logs, axis=0)] == world.signals.half_life).all()
        assert (ordered[-1] - ordered[-2] > 50).all()
