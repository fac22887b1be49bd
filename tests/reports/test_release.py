"""The published rows become rows of ours; what they do not tell is null, and what is none of them is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from finskillbench.errors import InputError
from finskillbench.reports.read import join_runs, read_run_rows, read_runs
from finskillbench.reports.release import cluster_of_task
from finskillbench.reports.report import report
from finskillbench.runs.store.rows import SCHEMA

FULL = {
    "model": "gpt-x",
    "litellm_model": "azure/gpt-x",
    "model_tier": "frontier",
    "domain": "portfolio_construction",
    "condition": "no_skill",
    "task_id": "pc_bl_2025-05-30_v3",
    "sub_task": "black_litterman",
    "difficulty": "hard",
    "as_of_date": "2025-05-30",
    "run_idx": 0,
    "score": 0.25,
    "valid_json": True,
    "scoring_method": "view_incorporation_plus_weights",
    "scoring_details": {"mae": 0.5},
    "episodes": 7,
    "total_input_tokens": 900,
    "total_output_tokens": 100,
    "skills_loaded": ["portfolio-construction"],
    "tool_calls_log": [{"name": "submit_answer", "arguments": {}, "duration_s": 0.1}],
    "error": None,
    "latency_seconds": 12.5,
    "eval_attempt": 1,
}
HERMES = {
    "experiment_id": "e",
    "run_id": "r",
    "task_id": "rm_ri_portfolio_factor_tilted_2023_24_rebound_000",
    "skill_domain": "risk_management",
    "sub_task": "risk_identification",
    "difficulty": "unknown",
    "model": "gpt-x",
    "condition": "curated",
    "harness": "hermes",
    "score": 0.5,
    "valid_json": True,
    "scoring_method": "ranked_list_recall",
    "scorer_details": {"recall": 1.0},
    "scoring_error": None,
    "completed": True,
    "partial": False,
    "turns": 5,
    "tool_calls_total": 4,
    "tools_used": ["submit_answer"],
    "submitted_answer": {},
    "usage": {
        "input_tokens": 100,
        "output_tokens": 50,
        "cache_read_tokens": 900,
        "reasoning_tokens": 20,
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "total_tokens": 1050,
        "estimated_cost_usd": 0.01,
    },
    "latency_seconds": 9.0,
    "error": None,
    "timestamp": "2026-01-01T00:00:00Z",
}


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_a_row_of_the_full_run(tmp_path: Path) -> None:
    frame = read_run_rows(write(tmp_path / "results_all.jsonl", FULL)).rows
    assert dict(frame.schema) == dict(SCHEMA)
    row = frame.row(0, named=True)
    assert row["scores"] == {"paper": 0.25, "strict": None, "certified": None}
    told = ("model", "provider", "harness", "cluster", "status", "turns", "total_input_tokens", "tool_calls", "score")
    assert [row[name] for name in told] == ["gpt-x", "azure", "finskillbench", "2025-05-30", "scored", 7, 900, 1, 0.25]
    for name in ("cost_usd", "total_reasoning_tokens", "incidents", "scripts_run", "retries", "digest", "started"):
        assert row[name] is None


def test_a_row_of_a_hermes_run(tmp_path: Path) -> None:
    row = read_run_rows(write(tmp_path / "no_skill.jsonl", HERMES)).rows.row(0, named=True)
    assert (row["harness"], row["arguments"]) == ("hermes", '{"harness":"hermes"}')
    assert (row["total_input_tokens"], row["total_cached_tokens"], row["total_output_tokens"]) == (1000, 900, 50)
    assert (row["cost_usd"], row["cluster"]) == (0.01, "portfolio_factor_tilted_2023_24_rebound_000")


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"error": "max_turns_exhausted"}, "max_turns_exhausted"),
        ({"valid_json": False, "error": "Max turns (12) reached"}, "max_turns_exhausted"),
        ({"valid_json": False, "scoring_details": {"error": "incomplete_submission"}}, "incomplete_submission"),
        ({"valid_json": False, "error": "no JSON"}, "invalid_submission"),
        ({"valid_json": False, "scoring_details": []}, "invalid_submission"),
        ({}, "scored"),
    ],
)
def test_the_status_is_what_can_be_told(tmp_path: Path, changed, status) -> None:
    frame = read_run_rows(write(tmp_path / "x.jsonl", {**FULL, **changed})).rows
    assert frame["status"].to_list() == [status]
    assert frame["score"].to_list() == [0.25]  # the paper counts it whatever the status


def test_an_answer_that_hermes_could_not_score_is_no_zero(tmp_path: Path) -> None:
    frame = read_run_rows(write(tmp_path / "x.jsonl", {**HERMES, "score": None, "scoring_error": "crashed"})).rows
    assert frame.select("status", "score", "error").row(0) == ("error", None, "crashed")


@pytest.mark.parametrize(
    ("task_id", "cluster"),
    [
        ("pc_uncon_2025-01-31_easy_max_return", "2025-01-31"),
        (
            "rm_cm_portfolio_concentrated_2023_24_rebound_001_mandate_aggressive_growth",
            "portfolio_concentrated_2023_24_rebound_001",
        ),
        (
            "rm_st_portfolio_concentrated_2023_24_rebound_000_stress_rates_down_100",
            "portfolio_concentrated_2023_24_rebound_000",
        ),
        ("fa_eq_AAPL_2022-09-24", "AAPL"),
        ("fa_dd_BRK.B_2017-04-01_to_2017-07-01", "BRK.B"),
        ("pc_tool_017", "pc_tool_017"),
    ],
)
def test_clusters_are_read_from_names(task_id, cluster) -> None:
    assert cluster_of_task(task_id) == cluster


def test_both_stand_in_one_report_which_says_what_they_do_not_tell(tmp_path: Path) -> None:
    paths = [write(tmp_path / "full.jsonl", FULL), write(tmp_path / "hermes.jsonl", HERMES)]
    found = report(join_runs(read_runs([*paths, paths[0]])), paper=True)
    assert found.results.rows.height == 2
    assert found.results.models == ["gpt-x harness=-", "gpt-x harness=hermes"]
    assert any("have no status" in note for note in found.overview.notes)
    assert [table.name for table in found.tables()].count("harnesses") == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({**FULL, "score": "high"}, r"Expected `float`, got `str` - at `\$\.score`"),
        ({**FULL, "score": -1.0}, r"score -1.0 is not a score - at `\$\.score`"),
        ({**HERMES, "usage": {}}, r"missing required field `prompt_tokens` - at `\$\.usage`"),
        ({"a": 1}, "missing required field `model`"),
        ([1], "Expected `object`, got `array`"),
    ],
)
def test_a_bad_line_is_told_with_its_field(tmp_path: Path, line, told) -> None:
    with pytest.raises(InputError, match=rf"x\.jsonl, line 2: .*{told}.*restore the file from the release"):
        read_run_rows(write(tmp_path / "x.jsonl", FULL, line))


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is empty"):
        read_run_rows(write(tmp_path / "x.jsonl"))
    (tmp_path / "y.jsonl").write_text("{")
    with pytest.raises(InputError, match=r"y\.jsonl, line 1: neither a row"):
        read_run_rows(tmp_path / "y.jsonl")
