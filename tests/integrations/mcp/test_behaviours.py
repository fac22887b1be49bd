"""Whatever a command does is in the table of failures, and none chooses its episodes by failing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from tests.integrations.mcp.small import NAME, traces

from finskillbench.errors import Cause
from finskillbench.harness.failures import OTHER_POLICIES, PROVIDER_POLICIES
from finskillbench.integrations.mcp import drive
from finskillbench.integrations.mcp.drive import KEPT_CHARS
from finskillbench.integrations.mcp.episode_server import HARNESS
from finskillbench.runs.postprocess.show import conversation, find_trajectory
from finskillbench.runs.store.journal import read_trajectory

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("behaviour", "limits", "entry", "calls"),
    [
        ("leaves", {}, "no_answer", []),
        ("quits", {}, "no_answer", ["get_task_data"]),
        ("fails", {}, "adapter_failed", ["get_task_data"]),
        ("giant", {}, "adapter_failed", ["get_task_data"]),
        ("sleeps", {"seconds": 0.2}, "out_of_time", []),
        ("calls", {"calls": 7}, "out_of_calls", ["get_task_data"] * 7),
    ],
)
def test_one_that_gives_no_answer_is_graded_as_the_table_says(
    driven, behaviour: str, limits: dict[str, Any], entry: str, calls: list[str]
) -> None:
    result = driven(behaviour, **limits)
    (trace,), (row,) = traces(result), result.rows.to_dicts()
    assert (trace.ended, trace.answer, trace.model, trace.harness) == (entry, None, NAME, HARNESS)
    assert trace.incidents[-1] == entry
    assert OTHER_POLICIES[entry].graded
    assert row["status"] == re.search(r"status (\w+)", OTHER_POLICIES[entry].shown)[1]
    assert row["score"] == 0.0
    assert [call.name for call in trace.tool_calls] == calls
    if behaviour == "calls":
        (child,) = re.findall(r"^\d+$", trace.messages[-1].content, re.MULTILINE)
        assert not _is_running(int(child)), "what the command has started outlived it"
    if behaviour == "fails":
        assert "exit code 1: too hard, after 1 tool calls" in row["error"]
    again = driven(behaviour, **limits)
    assert (again.ran, again.kept) == (0, 1)


def _is_running(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_calls_after_the_submission_change_nothing(driven) -> None:
    (trace,) = traces(driven("late"))
    assert (trace.ended, trace.answer) == ("submitted", '{"weights": {"T00": 1.0}}')
    assert [call.fate for call in trace.tool_calls] == ["ok", "not_run", "not_run"]
    assert trace.incidents == ("adapter_failed",)


def test_an_episode_is_shown_with_its_calls_and_its_words(driven) -> None:
    result = driven("late")
    path = find_trajectory(result.folder, "pc_rebal_0")
    shown = [line.text for line in conversation(read_trajectory(path), None)]
    assert "-> submit_answer" in "\n".join(shown)
    assert "   not run: get_task_data, submit_answer" in shown
    assert any("after the answer" in line for line in shown)


def test_one_that_stays_after_its_submission_is_ended(driven, monkeypatch) -> None:
    monkeypatch.setattr(drive, "_AFTER_SUBMISSION", 0.2)
    (trace,) = traces(driven("lingers"))
    assert (trace.ended, trace.incidents) == ("submitted", ())


def test_output_is_kept_bounded_and_without_secrets(driven, monkeypatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "a-secret-of-mine-that-must-not-be-kept")
    result = driven("talks")
    (trace,) = traces(result)
    last = trace.messages[-1]
    assert (last.role, last.tool_calls) == ("assistant", ())
    assert last.content.rstrip().endswith("x" * 2_000)
    assert "399 [redacted]" in last.content
    assert len(last.content) <= KEPT_CHARS + len("[...]")
    assert not [path for path in result.folder.rglob("*") if path.is_file() and b"a-secret" in path.read_bytes()]
    assert not any("a-secret" in message.content for message in trace.messages)


def test_nothing_that_it_is_given_names_the_edition(driven, small_edition) -> None:
    result = driven("looks")
    (trace,) = traces(result)
    seen = trace.messages[-1].content
    assert "prompt.md" in seen
    assert "PATH=" in seen
    assert str(small_edition.path) not in seen
    assert str(result.folder) not in seen


def test_what_it_says_it_has_spent_is_in_its_row(driven) -> None:
    (row,) = driven("spends").rows.to_dicts()
    assert (row["total_input_tokens"], row["total_output_tokens"], row["cost_usd"]) == (200, 20, 0.5)
    assert (row["served_models"], row["episodes"]) == (["theirs"], 2)


def test_what_it_does_not_say_is_unknown(driven) -> None:
    (row,) = driven("late").rows.to_dicts()
    assert row["cost_usd"] is None


def test_one_that_fails_at_once_is_tried_again_and_passes_over_nothing(driven) -> None:
    """It has read the task: the run stops at it, and the same command meets it again."""
    policy = PROVIDER_POLICIES[Cause.NOT_STARTED]
    assert (policy.retried, policy.graded, policy.stops) == (True, False, "model")
    for _ in range(2):
        result = driven("crashes", subtasks=None, limit=2, max_concurrency=1)
        (row,) = result.rows.to_dicts()
        assert (row["status"], row["score"], row["error_cause"]) == ("error", None, "not_started")
        assert row["task_id"] == "pc_tool_0"
        assert "no key for my provider" in row["error"]
        assert (result.ran, result.not_run) == (1, 5)
        assert "not_started" in result.stopped[NAME]
    (trace,) = traces(result)
    assert trace.incidents == ("not_started",)
    assert [message.content for message in trace.messages[2:]] == ["no key for my provider\n"] * 4
    done = driven("solve", subtasks=None, limit=2)
    assert (done.ran, done.not_run, done.errors) == (6, 0, 0)


def test_nothing_is_left_behind(driven, tmp_path, monkeypatch) -> None:
    places = tmp_path / "places"
    places.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(places))
    driven("fails")
    assert not list(places.iterdir())
