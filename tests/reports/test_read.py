"""Rows are read from a run folder or a lone table, and refused where they are not what a run wrote."""

from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

from finskillbench.episode import Profile, Status
from finskillbench.errors import InputError
from finskillbench.reports.read import read_run_rows
from finskillbench.runs.store.rows import Row, to_frame, with_digest, write_rows

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def row() -> Row:
    return with_digest(
        Row(
            model="m", harness="finskillbench", provider=None, arguments="{}", domain="portfolio_construction",
            condition="curated", task_id="t1", sub_task="rebalancing", difficulty="easy", cluster="c",
            as_of_date=date(2025, 1, 31), run_idx=0, score=0.5, score_profile=Profile.CERTIFIED,
            scores={Profile.PAPER: None, Profile.STRICT: None, Profile.CERTIFIED: 0.5}, status=Status.SCORED,
            valid_json=True, scoring_method="x", scoring_details="{}", signed=None, traps=(), episodes=1,
            turns=1, total_input_tokens=1, total_cached_tokens=0, total_output_tokens=1, total_reasoning_tokens=0,
            cost_usd=None, reused_calls=0, saved_usd=0.0,
            served_models=(), skills_loaded=(), scripts_run=(), tool_calls=1, data_calls=1, error=None,
            error_cause=None, incidents=(), retries=0, started=MOMENT, ended=MOMENT, latency_seconds=0.1,
            queue_seconds=0.0, retry_seconds=0.0, edition="e", mount="m", code_version="1", commit=None,
            scorer_version="s", answer_digest=None, digest="",
        )
    )  # fmt: skip


def test_a_lone_table_is_read_without_a_record(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.parquet", to_frame([row()]))
    found = read_run_rows(tmp_path / "rows.parquet")
    assert (found.rows.height, found.record, found.has_trajectories) == (1, None, False)


def test_a_row_that_somebody_edited_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    write_rows(file, to_frame([row()]).with_columns(status=pl.lit("error")))
    with pytest.raises(InputError, match=r"rows.parquet: the row of t1 was altered; update the run"):
        read_run_rows(file)
    # A column that stands beside ours is no reason to believe it.
    pl.read_parquet(file).with_columns(mine=1).write_parquet(file)
    with pytest.raises(InputError, match="was altered"):
        read_run_rows(file)


def test_rows_without_digests_are_told_so(tmp_path: Path) -> None:
    table = to_frame([row()])
    table.drop("digest").write_parquet(tmp_path / "open.parquet")
    write_rows(tmp_path / "sealed.parquet", table)
    assert [read_run_rows(tmp_path / name).sealed for name in ("open.parquet", "sealed.parquet")] == [False, True]


def test_rows_of_another_program_are_taken_as_they_are(tmp_path: Path) -> None:
    pl.DataFrame({"model": ["m"]}).write_parquet(tmp_path / "x.parquet")
    assert read_run_rows(tmp_path / "x.parquet").rows.columns == ["model"]


def test_what_is_no_run_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a run folder"):
        read_run_rows(tmp_path)
    with pytest.raises(InputError, match="neither a run folder"):
        read_run_rows(tmp_path / "absent")
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(InputError, match=r"run\.json"):
        read_run_rows(tmp_path)
    (tmp_path / "rows.parquet").write_text("no table")
    with pytest.raises(InputError, match="not a table of rows"):
        read_run_rows(tmp_path / "rows.parquet")
