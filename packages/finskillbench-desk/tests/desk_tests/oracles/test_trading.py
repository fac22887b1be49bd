"""The best trades over time against one dense system of equations for the whole horizon, from memo and tables alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

import numpy as np
import polars as pl
import pytest
from desk_tests.oracles.inputs import as_seen
from desk_tests.oracles.trading import Desk
from tests.sampling import sampled, thorough

from finskillbench.domains import subtask_named
from finskillbench.domains.building import BuiltTask
from finskillbench_desk.market import ListedName
from finskillbench_desk.trade_over_time.subtask import trading_task

TIERS = sampled(["medium", "easy", "hard"], 3)


@pytest.fixture(scope="module", params=TIERS)
def task(request: pytest.FixtureRequest) -> BuiltTask:
    market = [ListedName(f"N{i:03}", f"Sector {i % 12}", "any", core=False) for i in range(120)]
    return trading_task(np.random.default_rng(20262), market, request.param, 1, [date(2021, 6, 30)])


def played(task: BuiltTask) -> Iterator[tuple[Mapping[str, float], Desk]]:
    """The stored trades of each decision and the desk at it; the stage is moved on by them."""
    given, opened = as_seen(task), subtask_named("trade_over_time").open_interactive_state
    assert opened is not None
    assert task.hidden is not None
    stage, history = opened(given, task.hidden), given["history"].frame
    for stored in task.truth.expected_output["record"]["decisions"]:
        now = {**given, **stage.fields}
        if now["news"].frame.height:
            history = pl.concat([history, now["news"].frame.select(history.columns).cast(history.schema)])
        yield stored["trades"], Desk(now, history)
        stage.call("advance", {"trades": stored["trades"]})


@thorough
@pytest.mark.slow
def test_the_stored_trades_are_those_of_the_dense_system(task: BuiltTask) -> None:
    """At four of twelve decisions."""
    compared = 0
    for number, (stored, desk) in enumerate(played(task)):
        if number in {0, 5, 8, 11}:
            wanted = [stored.get(ticker, 0.0) for ticker in desk.names["ticker"]]
            np.testing.assert_allclose(desk.trades(), wanted, atol=1e-6)
            np.testing.assert_allclose(desk.coefficients, task.certificate["worth"][number], atol=1e-12)
            compared += 1
    assert compared == 4
