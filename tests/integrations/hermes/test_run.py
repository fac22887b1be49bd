"""Runs under the harness, with the real worker and a small agent in the place of Hermes: rows, failures, deviations."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integrations.hermes.said import SUBMIT, Said, at_once, calls
from tests.integrations.mcp.small import traces

from finskillbench.edition import Edition
from finskillbench.errors import Cause, InputError, ProviderError
from finskillbench.harness.agents import Task, Tools
from finskillbench.harness.model import Turn, Usage
from finskillbench.harness.programs.program import result_of
from finskillbench.harness.programs.reference import Reference
from finskillbench.integrations.hermes import Hermes
from finskillbench.runs.execute.run import RunResult, run

READ = calls(("get_task_data", '{"field": "cash"}'))
pytestmark = pytest.mark.enable_socket

ONE = {"conditions": ["no_skill"], "subtasks": ["rebalancing"], "limit": 1}
SAME = (
    *("task_id", "condition", "status", "valid_json", "score", "scores", "scoring_details", "answer_digest"),
    *("skills_loaded", "scripts_run", "edition", "mount"),
)


@pytest.fixture
def played(small_edition: Edition, stub: Callable[..., Path], tmp_path: Path) -> Callable[..., RunResult]:
    """A run of a model on one episode, with something wrong about Hermes or nothing."""

    def go(model: Said, wrong: str = "", **options: object) -> RunResult:
        return run(
            small_edition,
            [model],
            **{**ONE, **options},
            harness=Hermes(stub(wrong)),
            out=tmp_path / f"run-{wrong}",
            sleep=at_once,
        )

    return go


@pytest.mark.slow
def test_rows_are_those_of_our_own_loop(small_edition: Edition, stub: Callable[..., Path], tmp_path: Path) -> None:
    conditions = ["no_skill", "curated"]
    ours = run(small_edition, [Reference()], conditions, limit=1, out=tmp_path / "ours")
    theirs = run(small_edition, [Reference()], conditions, limit=1, harness=Hermes(stub()), out=tmp_path / "theirs")
    assert theirs.rows["error"].drop_nulls().to_list() == []
    assert theirs.rows.select(SAME).equals(ours.rows.select(SAME))
    assert theirs.rows.height == 6
    assert set(theirs.rows["harness"]) == {"hermes"}
    assert any(theirs.rows["skills_loaded"].list.len() > 0)
    for mine, other in zip(traces(theirs), traces(ours), strict=True):
        assert mine.messages[:2] == other.messages[:2]
        results = [mine.messages[call.message].content for call in mine.tool_calls if call.message is not None]
        assert len(results) == len(mine.tool_calls)
    crashing = Hermes(stub("crashes"))
    again = run(small_edition, [Reference()], conditions, limit=1, harness=crashing, out=tmp_path / "theirs")
    assert (again.ran, again.kept) == (0, 6)
    both = run(small_edition, [Reference()], conditions, limit=1, out=tmp_path / "theirs").rows
    assert sorted(both["arguments"].value_counts().rows()) == [('{"harness":"hermes"}', 6), ("{}", 6)]


def test_episodes_of_one_process_differ_in_the_words_of_a_tool(played: Callable[..., RunResult]) -> None:
    """Only some domains say that filings can be injected: an agent must read its own description, however slow."""
    rows = played(Said(SUBMIT), "is_slow", conditions=["curated"], subtasks=["rebalancing", "normalization"]).rows
    assert rows["error"].to_list() == [None, None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("remembers", "another system prompt: from character"),
        ("two_systems", "another system prompt: 2 in place of one"),
        ("adds_to_task", "another task: from character 0 on 'Today is Monday. "),
        ("offers_more", "offers its model the tool 'terminal', which is not on"),
        ("offers_less", "does not offer its model the tool 'submit_answer'"),
        ("describes", "describes the tool 'get_task_data' in other words"),
        ("cuts_results", "has changed the result of the call call-0"),
        ("other_model", "asks for 'gpt-9', not 'model/said'"),
        ("no_stream", "asks for 'model/said' without a stream"),
        ("no_json", "a request that cannot be read"),
        ("other_path", "sent the unknown request 'embeddings'"),
        ("calls_alone", "calls 'get_task_data', which its model did not request"),
    ],
)
def test_a_hermes_that_is_not_what_it_was_told_to_be_has_no_row(
    played: Callable[..., RunResult], wrong: str, named: str
) -> None:
    (row,) = played(Said(calls(("get_task_data", '{"field": "cash"}')), SUBMIT), wrong).rows.to_dicts()
    assert row["status"] == "error"
    assert row["error"].startswith("Hermes ")
    assert named in row["error"]
    assert row["score"] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "cause", "named"),
    [
        ("crashes", "adapter", "Hermes has ended: ValueError: a bug"),
        ("gives_up", "adapter", "Hermes has given up: no wish to go on"),
        ("exits", "dropped_stream", "Hermes is gone: its process ended with 3"),
    ],
)
def test_a_hermes_that_fails_is_an_error_that_says_how(
    played: Callable[..., RunResult], wrong: str, cause: str, named: str
) -> None:
    (row,) = played(Said(SUBMIT), wrong).rows.to_dicts()
    assert (row["status"], row["error_cause"], row["incidents"]) == ("error", cause, [cause])
    assert row["error"].startswith(named)


def test_failures_of_the_provider_are_retried_and_told_as_in_our_loop(played: Callable[..., RunResult]) -> None:
    (row,) = played(Said(ProviderError("slow down", Cause.RATE_LIMIT))).rows.to_dicts()
    assert (row["status"], row["error"], row["retries"]) == ("error", "slow down", 3)
    assert row["incidents"] == ["rate_limit"] * 4


def test_a_wrong_key_stops_the_model(played: Callable[..., RunResult]) -> None:
    result = played(Said(ProviderError("no such key", Cause.AUTH)), subtasks=None, limit=2, max_concurrency=1)
    assert result.rows["error"].to_list() == ["no such key"]
    assert result.not_run == 5


def test_text_is_answered_by_a_reminder_and_twelve_turns_are_all(played: Callable[..., RunResult]) -> None:
    result = played(Said(Turn("Let me think.", usage=Usage(cost_usd=0))))
    (row,) = result.rows.to_dicts()
    assert (row["status"], row["episodes"]) == ("max_turns_exhausted", 12)
    assert row["incidents"] == ["text_only"] * 12
    (trace,) = traces(result)
    assert [message.role for message in trace.messages[2:6]] == ["assistant", "user", "assistant", "user"]
    assert trace.messages[3].content.startswith("Plain text is not recorded")
    assert trace.messages[-2].content.startswith("This is the last turn")


def test_the_last_turn_takes_only_an_answer(played: Callable[..., RunResult]) -> None:
    result = played(Said(READ))
    (row,) = result.rows.to_dicts()
    assert (row["status"], row["episodes"], row["tool_calls"]) == ("max_turns_exhausted", 12, 12)
    assert row["incidents"] == ["unknown_tool"]
    (trace,) = traces(result)
    assert len({call.id for call in trace.tool_calls}) == 12


def test_turns_and_tokens_are_counted_as_in_our_loop(played: Callable[..., RunResult]) -> None:
    """Eight tokens left are too few for a call, and an answer that goes beyond the budget counts for nothing."""
    turns = [replace(turn, usage=Usage(output_tokens=10, cost_usd=0)) for turn in (READ, READ, SUBMIT)]
    result = played(Said(*turns), token_budget=28, turns=5)
    (trace,) = traces(result)
    assert trace.messages[0].content.count("5 turns") == 1
    assert (trace.ended, trace.turns, trace.answer) == ("budget_exhausted", 2, None)
    beyond = [replace(turn, usage=Usage(output_tokens=20, cost_usd=0)) for turn in (READ, SUBMIT)]
    (trace,) = traces(played(Said(*beyond), "again", token_budget=38))
    assert (trace.ended, trace.turns, trace.answer) == ("budget_exhausted", 2, None)
    assert [call.fate for call in trace.tool_calls] == ["ok", "not_run"]


def test_what_hermes_declines_and_what_comes_after_the_answer_is_noted(played: Callable[..., RunResult]) -> None:
    submit = calls(("submit_answer", '{"answer": {"turnover": 1.50}}'), ("get_task_data", "{}"))
    result = played(Said(calls(("browse", "{}")), submit))
    (trace,) = traces(result)
    fates = [(call.turn, call.name, call.fate) for call in trace.tool_calls]
    assert fates == [(1, "browse", "unknown_tool"), (2, "submit_answer", "ok"), (2, "get_task_data", "not_run")]
    assert trace.answer == '{"turnover": 1.50}', "the digits that the model wrote"
    assert trace.incidents == ("unknown_tool",)
    declined, submitted, after = (call.message for call in trace.tool_calls)
    assert (result_of(trace.messages[declined or 0]), after) == ("no such tool", None)
    assert trace.messages[submitted or 0].content == '{"status":"submitted"}'


def test_the_process_is_given_no_secret_and_reaches_nothing_but_its_harness(
    played: Callable[..., RunResult], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-secret-of-this-process")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    with caplog.at_level(logging.WARNING):
        (trace,) = traces(played(Said(SUBMIT), "looks_around"))
    seen = json.loads(trace.answer or "")
    assert seen["refused"] == ["name", "address", "port", "datagram", "unix", "process"]
    known = {"PATH", "LANG", "NO_PROXY", "HOME", "TMPDIR", "HERMES_HOME", "STUB", "PWD", "SHLVL", "_", "LC_CTYPE"}
    assert {name for name in seen["environment"] if "TIMEOUT" not in name} <= known
    assert seen["cwd"] == seen["home"] == seen["environment"]["HOME"]
    assert not Path(seen["home"]).exists()
    warned = [record.getMessage() for record in caplog.records]
    assert "Hermes was refused socket.getaddrinfo example.com" in warned
    assert not any("os.system" in line for line in warned)


@pytest.mark.parametrize("condition", ["self_generated", "inline", "code", "placebo", "docs_only"])
def test_arms_that_hermes_has_no_counterpart_for_are_refused(played: Callable[..., RunResult], condition: str) -> None:
    with pytest.raises(InputError, match=f"condition '{condition}' does not exist under Hermes"):
        played(Said(SUBMIT), conditions=["no_skill", condition])


def test_agents_with_a_loop_of_their_own_are_refused(played: Callable[..., RunResult]) -> None:
    async def solve(task: Task, tools: Tools) -> None: ...

    with pytest.raises(InputError, match="agent/solve is an agent; the harness hermes takes models only"):
        played(Said(SUBMIT), agents=[solve])


def test_another_version_and_none_are_refused_before_anything_is_run(stub: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has Hermes Agent 0\.18\.2; version 0\.19\.0 is needed; run make hermes"):
        Hermes(stub(version="0.18.2"))
    with pytest.raises(InputError, match=r"Hermes Agent 0\.19\.0 is not installed \(.*nowhere\); run make hermes"):
        Hermes(tmp_path / "nowhere")
