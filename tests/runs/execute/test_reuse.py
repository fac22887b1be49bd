"""A run with a cache of responses: nothing is asked twice, and what was not paid is counted apart."""

import json
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest
from tests.faults.hosted import SERVED
from tests.faults.server import READ, SUBMIT, FaultServer

from finskillbench import report
from finskillbench.harness.models import ModelOptions
from finskillbench.harness.providers.prices import PriceTable
from finskillbench.runs.execute.run import run
from finskillbench.runs.store.journal import read_history
from finskillbench.runs.store.rows import TIMINGS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]


def test_a_second_run_pays_nothing(edition, tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({SERVED: {"input": 2.0, "output": 10.0}}))
    with FaultServer(lambda request: READ if request.turn == 0 else SUBMIT) as server:
        options = ModelOptions(
            base_url=server.url, prices=PriceTable.load(prices), response_cache=tmp_path / "answers.sqlite"
        )

        def play(name: str, **more: float) -> pl.DataFrame:
            return run(edition, [SERVED], ["no_skill"], options=options, out=tmp_path / name, **more).rows

        first = play("first")
        asked = len(server.requests)
        # Not a cent is left, and nothing is needed.
        second = play("second", max_cost=0.0)
        assert len(server.requests) == asked
        repeated = run(edition, [SERVED], ["no_skill"], options=options, epochs=2, out=tmp_path / "second")
        assert len(server.requests) == 2 * asked
    apart = ["reused_calls", "saved_usd", *TIMINGS]
    assert second.drop(apart).equals(first.drop(apart))
    assert first["reused_calls"].sum() == 0
    assert second["reused_calls"].sum() == second["turns"].sum() == asked
    assert second["saved_usd"].to_list() == pytest.approx(second["cost_usd"].to_list())
    assert read_history(tmp_path / "second").spent({}) == pytest.approx(first["cost_usd"].sum())
    assert repeated.rows.filter(run_idx=1)["reused_calls"].sum() == 0
    (note,) = [line for line in report(second).overview.notes if "response cache" in line]
    assert f"{asked} of {asked} model calls" in note
