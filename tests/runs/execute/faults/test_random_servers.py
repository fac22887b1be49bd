"""Servers that answer at random: every episode is accounted for once, nothing ends the run, no key is left.

`FINSKILLBENCH_ANSWERS=10000` asks for that many answers instead of some ninety.
"""

import asyncio
import math
import os
import random
import re
import resource
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest
from tests.faults.hosted import SERVED, warm
from tests.faults.hostile import KEY
from tests.faults.random_replies import random_reply
from tests.faults.server import SUBMIT, FaultServer, Reply, Request

from finskillbench.analysis.results import collect
from finskillbench.harness.models import ModelOptions, get_model
from finskillbench.harness.providers.prices import Price, PriceTable
from finskillbench.reports.tables.episodes.conduct import resources_table
from finskillbench.runs.execute.run import run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]
ANSWERS = int(os.environ.get("FINSKILLBENCH_ANSWERS", "90"))
PRICES = PriceTable({SERVED: Price(1.0, 0.1, 1.0, 4.0)}, "2026-01-01")
SEED = 12


async def no_wait(_: float) -> None:
    await asyncio.sleep(0)


def test_random_answers_cost_at_most_their_episodes(memory_edition, episodes_of, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LOCAL_API_KEY", KEY)
    asked: Counter[int] = Counter()
    damaged = 0

    def script(request: Request) -> Reply:
        nonlocal damaged
        found = re.search(r"Task (\d+)\.", request.messages[1]["content"])
        assert found is not None
        number = int(found[1])
        asked[number] += 1
        draw = random.Random(f"{SEED}/{number}/{asked[number]}")
        if draw.random() < 0.1:
            return SUBMIT
        damaged += 1
        return random_reply(draw)

    episodes = max(1, ANSWERS // 3)
    edition = memory_edition(episodes_of("unconstrained_optimization", "pc_uncon", episodes))
    warm(SERVED)
    with FaultServer(script) as server:
        model = get_model(SERVED, ModelOptions(base_url=server.url, attempt_timeout=60.0, prices=PRICES))
        out = tmp_path / "run"
        result = run(edition, [model], ["no_skill"], out=out, limit=episodes, max_concurrency=32, sleep=no_wait)
        server.requests.clear()
    rows = result.rows
    assert rows.height == episodes == result.ran == rows["task_id"].n_unique()
    assert result.stopped == {}
    for incidents, read, written in rows.select("incidents", "total_input_tokens", "total_output_tokens").iter_rows():
        assert ("usage_unknown" in incidents) == (read is None) == (written is None)
    answered = rows.filter((pl.col("turns") > 0) & ~pl.col("incidents").list.contains("context_overflow"))
    assert (answered["total_input_tokens"].drop_nulls() > 0).all()
    resources = resources_table(collect(rows))
    known = rows.filter(pl.col("status") != "error")["total_output_tokens"].drop_nulls()
    assert resources.column("mean_output_tokens") == (known.mean(),)
    assert set(rows["status"]) <= {
        "scored",
        "error",
        "incomplete_submission",
        "max_turns_exhausted",
        "invalid_submission",
    }
    assert all(cost is None or (0 <= cost < 10 and math.isfinite(cost)) for cost in rows["cost_usd"])
    assert not [path for path in out.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{damaged} damaged answers, {sum(asked.values())} in all, {episodes} episodes, {peak:.2f} GB at most")
    assert peak < 1.5 or ANSWERS < 10_000
