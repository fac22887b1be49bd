"""The state of an episode: what moves, what is refused, what an outage hides, and what nobody can see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from desk_tests.trade_over_time.cases import case, full_input, judged

from finskillbench.domains.building import BuiltTask
from finskillbench.domains.interactive import InvalidActionError
from finskillbench.domains.tables import EpisodeTable
from finskillbench_desk.trade_over_time.interactive import TradingState, open_state, unpacked_future
from finskillbench_desk.trade_over_time.optimum import from_json, optimal_path
from finskillbench_desk.trade_over_time.world import DECISIONS, OUTAGE


def opened(task: BuiltTask) -> TradingState:
    return open_state(full_input(task), task.hidden or {})


def with_outage() -> BuiltTask:
    return next(task for task in (case("easy", seed) for seed in range(12)) if task.certificate["outage"] is not None)


def orders(task: BuiltTask) -> list[dict[str, float]]:
    return [each["trades"] for each in task.truth.expected_output["record"]["decisions"]]


def test_the_optimal_orders_are_taken_and_recorded() -> None:
    task = case("easy", 0)
    stage = opened(task)
    assert stage.fields == {}
    for place, trades in enumerate(orders(task)):
        answer = stage.call("advance", {"trades": trades})
        assert (answer["decision_taken"], answer["decisions_left"]) == (place + 1, DECISIONS - place - 1)
    assert judged(task, stage.record).value == pytest.approx(1, abs=1e-9)
    with pytest.raises(InvalidActionError, match="all twelve"):
        stage.call("advance", {"trades": {}})


@pytest.mark.slow
def test_holdings_are_those_that_were_traded_to() -> None:
    task = case("medium", 0)
    known = task.truth.verification
    desk = from_json(known["desk"])
    stage = opened(task)
    for trades, book in zip(orders(task)[:11], optimal_path(desk, np.array(known["aims"])), strict=False):
        stage.call("advance", {"trades": trades})
        current = stage.fields["current"]
        assert isinstance(current, EpisodeTable)
        np.testing.assert_allclose(current["holding"], book, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"trades": {"nobody": 1.0}}, "not in the book"),
        ({"trades": {"N000": 1e9}}, "number of millions"),
        ({"trades": {"N000": "ten"}}, "number of millions"),
        ({"trades": [1, 2]}, "must map"),
        ({}, "must map"),
    ],
)
def test_a_bad_order_is_refused_and_changes_nothing(arguments: dict[str, Any], words: str) -> None:
    stage = opened(case("easy", 0))
    with pytest.raises(InvalidActionError, match=words):
        stage.call("advance", arguments)
    assert stage.record == {"decisions": []}
    assert stage.fields == {}


def test_an_order_that_misses_the_limit_is_refused_with_the_sectors() -> None:
    task = case("easy", 0)
    stage = opened(task)
    begins = from_json(task.truth.verification["desk"]).plan.limit_from
    for trades in orders(task)[:begins]:
        stage.call("advance", {"trades": trades})
    before = stage.fields["current"]["holding"]
    with pytest.raises(InvalidActionError, match=r"differ: Industry \d\d by [-+]\d"):
        stage.call("advance", {"trades": {"N000": 50.0}})
    assert len(stage.record["decisions"]) == begins
    assert stage.fields["current"]["holding"] == before
    rounded = {name: round(amount, 2) for name, amount in orders(task)[begins].items()}
    stage.call("advance", {"trades": rounded})
    sector = np.array(from_json(task.truth.verification["desk"]).sector_of)
    desk = from_json(task.truth.verification["desk"])
    held = np.bincount(sector, np.array(stage.fields["current"]["holding"]))
    np.testing.assert_allclose(held, np.bincount(sector, desk.benchmark(begins)), atol=1e-3)


def test_an_old_file_is_shown_until_all_comes_at_once() -> None:
    task = with_outage()
    outage = task.certificate["outage"]
    signals, returns, _ = unpacked_future(task.certificate, from_json(task.truth.verification["desk"]))
    stage = opened(task)
    for place, trades in enumerate(orders(task)[:11], 1):
        answer = stage.call("advance", {"trades": trades})
        fields = stage.fields
        newest = outage - 1 if outage <= place < outage + OUTAGE else place
        assert fields["state"]["signals_of_week"] == fields["state"]["week"] - (place - newest)
        assert fields["current"]["s07"] == signals[newest, :, 6].tolist()
        assert ("earned" in answer) == (newest == place)
        rows = {True: 0, place == outage + OUTAGE: OUTAGE + 1}.get(True, 0)
        expected = 0 if newest < place else rows or 1
        assert fields["news"].rows == 120 * expected
        if expected:
            assert fields["news"]["next_return"] == returns[place - expected : place].ravel().tolist()


@pytest.mark.slow
def test_the_stage_shows_nothing_of_weeks_to_come() -> None:
    task = case("hard", 0)
    signals, _, _ = unpacked_future(task.certificate, from_json(task.truth.verification["desk"]))
    stage = opened(task)
    for place, trades in enumerate(orders(task)[:3]):
        stage.call("advance", {"trades": trades})
        shown = stage.fields["current"].frame.select("^s\\d+$").to_numpy()
        for later in range(place + 2, DECISIONS):
            assert (shown != signals[later]).mean() > 0.9
    assert set(stage.fields) == {"state", "current", "news", "notices"}


def test_notices_come_on_their_day_and_stay() -> None:
    task = case("hard", 0)
    said: list[tuple[int, str]] = task.certificate["notices"]
    stage, heard = opened(task), list[dict[str, Any]]()
    for place, trades in enumerate(orders(task)[:11], 1):
        answer = stage.call("advance", {"trades": trades})
        assert answer.get("notices", []) == [text for day, text in said if day == place]
        heard += [{"decision": place + 1, "text": text} for day, text in said if day == place]
        assert stage.fields["notices"] == heard
    assert len(heard) == len(said) > 0


def test_a_case_holds_more_than_two_million_tokens() -> None:
    from finskillbench.domains.tables import dump

    for tier in ("easy", "hard"):
        task = case(tier, 0)
        characters = sum(len(dump(EpisodeTable(frame))) for frame in task.tables.values())
        assert characters / 3.3 > 2_000_000
        assert sum(frame.estimated_size() for frame in task.tables.values()) < 6e6
