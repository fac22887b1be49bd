"""The best trades over time against one dense system of equations for the whole horizon, from memo and tables alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from itertools import islice

import numpy as np
import polars as pl
import pytest
from tests.oracles.desk.inputs import as_seen
from tests.oracles.desk.trading import Desk

from finskillbench.domains import by_name
from finskillbench.domains.building import Task
from finskillbench.domains.desk.market import Listed
from finskillbench.domains.desk.trade_over_time.subtask import task_of

TIERS = ["easy", "medium", "hard"]


@pytest.fixture(scope="module", params=TIERS)
def task(request: pytest.FixtureRequest) -> Task:
    market = [Listed(f"N{i:03}", f"Sector {i % 12}", "any", core=False) for i in range(120)]
    return task_of(np.random.default_rng(20262), market, request.param, 1, [date(2021, 6, 30)])


def played(task: Task) -> Iterator[Desk]:
    """The desk at each decision, moved on by the oracle's own trades."""
    given, opened = as_seen(task), by_name("trade_over_time").stage
    assert opened is not None
    assert task.hidden is not None
    stage, history = opened(given, task.hidden), given["history"].frame
    while True:
        now = {**given, **stage.fields}
        if now["news"].frame.height:
            history = pl.concat([history, now["news"].frame.select(history.columns).cast(history.schema)])
        desk = Desk(now, history)
        yield desk
        stage.call("advance", {"trades": dict(zip(desk.names["ticker"], desk.trades().tolist(), strict=True))})


@pytest.mark.slow
def test_the_stored_trades_are_those_of_the_dense_system(task: Task) -> None:
    stored = task.truth.expected_output["record"]["decisions"]
    for number, desk in enumerate(islice(played(task), 12)):
        if number not in {0, 5, 8, 11}:
            continue
        wanted = [stored[number]["trades"].get(ticker, 0.0) for ticker in desk.names["ticker"]]
        np.testing.assert_allclose(desk.trades(), wanted, atol=1e-6)
        np.testing.assert_allclose(desk.coefficients, task.certificate["worth"][number], atol=1e-12)
