"""A row to change in tests."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from finskillbench.episode import Profile, Status
from finskillbench.harness.conditions import Condition
from finskillbench.runs.store.rows import Row, with_digest

ROW = with_digest(
    Row(
        model="m",
        harness="finskillbench",
        provider="test",
        arguments="{}",
        domain="portfolio_construction",
        condition=Condition.CURATED,
        task_id="t0",
        sub_task="rebalancing",
        difficulty="easy",
        cluster="2025-01-31",
        as_of_date=date(2025, 1, 31),
        run_idx=0,
        score=0.5,
        score_profile=Profile.PAPER,
        scores={Profile.PAPER: 0.5, Profile.STRICT: None, Profile.CERTIFIED: None},
        status=Status.SCORED,
        valid_json=True,
        scoring_method="x",
        scoring_details="{}",
        signed=True,
        traps=("stale_price@X=avoided",),
        episodes=2,
        turns=2,
        total_input_tokens=1_000,
        total_cached_tokens=0,
        total_output_tokens=50,
        total_reasoning_tokens=0,
        cost_usd=0.25,
        reused_calls=0,
        saved_usd=0.0,
        served_models=(),
        skills_loaded=("é\n",),
        scripts_run=("a",),
        tool_calls=1,
        data_calls=1,
        error=None,
        error_cause=None,
        incidents=(),
        retries=0,
        started=datetime(2026, 1, 1, tzinfo=UTC),
        ended=datetime(2026, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
        latency_seconds=0.5,
        queue_seconds=0.75,
        retry_seconds=0.25,
        edition="e" * 64,
        mount="f" * 64,
        code_version="0",
        commit=None,
        scorer_version="0",
        answer_digest=None,
        digest="",
    )
)


def row(number: int = 0, **changes: Any) -> Row:
    """The example as the row of task `number`."""
    return with_digest(replace(ROW, task_id=f"t{number}", **changes))
