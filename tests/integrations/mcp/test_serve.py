"""One episode served: over HTTP to two clients at once, and over stdio to a client of the official kit."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from queue import Queue
from typing import Any

import polars as pl
import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from tests.integrations.mcp.small import NAME, traces

from finskillbench import cli
from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.conditions import ARMS
from finskillbench.harness.prompts.compose import system_prompt
from finskillbench.integrations.mcp import serve
from finskillbench.integrations.mcp.episode_server import HARNESS, PROMPT
from finskillbench.runs.execute.run import RunResult

pytestmark = pytest.mark.slow

TASK, OTHER = "pc_rebal_0", "pc_rebal_1"
ANSWER = '{"weights": {"AAA": 1.0}}'


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "_LINGER", 0.5)


def _text(result: Any) -> str:
    return result.content[0].text


def _serving(edition: Edition, out: Path, results: Queue[RunResult], task: str = TASK) -> str:
    """Serve a task in a thread; returns its address."""
    urls: Queue[str] = Queue()

    def work() -> None:
        results.put(serve.serve_episode(edition, task, "no_skill", name=NAME, port=0, out=out, announce=urls.put))

    threading.Thread(target=work, daemon=True).start()
    return urls.get(timeout=600)


@pytest.mark.enable_socket
def test_two_clients_share_an_episode_and_its_one_submission(small_edition, tmp_path, quick) -> None:
    results: Queue[RunResult] = Queue()
    url = _serving(small_edition, tmp_path / "run", results)

    async def both() -> None:
        async with Client(url) as first, Client(url) as second:
            read = [client.call_tool("get_task_data", {"field": "cash"}) for client in (first, second) * 5]
            assert {_text(each) for each in await asyncio.gather(*read)} == {'{"field":"cash","value":1}'}
            submitted = await asyncio.gather(
                first.call_tool("submit_answer", {"answer": ANSWER}),
                second.call_tool("submit_answer", {"answer": "{}"}),
            )
            assert sorted(each.is_error for each in submitted) == [False, True]
            assert sum("submitted" in _text(each) and not each.is_error for each in submitted) == 1

    asyncio.run(both())
    result = results.get(timeout=600)
    (trace,) = traces(result)
    assert [call.fate for call in trace.tool_calls] == ["ok"] * 11 + ["not_run"]
    assert (trace.harness, trace.model, trace.ended) == (HARNESS, NAME, "submitted")
    places = [call.message for call in trace.tool_calls[:-1]]
    assert places == sorted(places), "calls are served one after another"


@pytest.mark.enable_socket
def test_what_is_served_is_the_arm_and_the_task_and_each_episode_is_a_row(small_edition, tmp_path, quick) -> None:
    out = tmp_path / "run"

    async def look(url: str, mode: str) -> None:
        async with Client(url, mode=mode) as client:
            tools = await client.list_tools()
            names = [tool.name for tool in tools.tools]
            assert names == ["submit_answer", "get_task_data"]
            assert all(tool.input_schema["type"] == "object" for tool in tools.tools)
            (resource,) = (await client.list_resources()).resources
            (content,) = (await client.read_resource(resource.uri)).contents
            assert content.text.startswith(system_prompt(ARMS["no_skill"]))
            assert "Subtask: rebalancing" in content.text
            with pytest.raises(MCPError, match=PROMPT):
                await client.read_resource("finskillbench://truth")
            assert '"error"' in _text(await client.call_tool("truth", {}))
            wrong = await client.call_tool("submit_answer", {"answer": 7})
            assert wrong.is_error
            assert not (await client.call_tool("submit_answer", {"answer": ANSWER})).is_error

    for task, mode in ((TASK, "auto"), (OTHER, "legacy")):
        results: Queue[RunResult] = Queue()
        asyncio.run(look(_serving(small_edition, out, results, task), mode))
        result = results.get(timeout=600)
        assert (result.ran, result.errors) == (1, 0)
    rows = pl.read_parquet(out / "rows.parquet")
    assert rows["task_id"].to_list() == [TASK, OTHER]
    assert rows["incidents"].to_list() == [["unknown_tool", "invalid_arguments"]] * 2
    with pytest.raises(InputError, match=f"{TASK} is already finished"):
        serve.serve_episode(small_edition, TASK, "no_skill", name=NAME, port=0, out=out)


def _stdio(edition: Edition, out: Path) -> StdioServerParameters:
    program = "import sys; from finskillbench.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["serve", str(edition.path), TASK, "--out", str(out), "--name", NAME]
    return StdioServerParameters(command=sys.executable, args=["-c", program, *arguments])


def test_over_stdio_what_does_not_parse_has_an_error_reply(small_edition, tmp_path) -> None:
    started = _stdio(small_edition, tmp_path / "run")
    lines = ['{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {', '{"jsonrpc": "2.0", "id": 2}', "", "[]"]
    done = subprocess.run(
        [started.command, *started.args], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False
    )
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["id"], each["error"]["code"]) for each in replies] == [(None, -32700), (2, -32600), (None, -32600)]


def test_over_stdio_a_client_starts_it_and_its_leaving_ends_it(small_edition, tmp_path, monkeypatch) -> None:
    """One that only looks at the tools, as clients do when they start, has not played."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 600.0)  # a busy machine is no server that hangs
    out = tmp_path / "run"

    async def look() -> None:
        async with Client(_stdio(small_edition, out)) as client:
            await client.list_tools()

    asyncio.run(look())
    (row,) = pl.read_parquet(out / "rows.parquet").to_dicts()
    assert (row["status"], row["score"], row["error_cause"]) == ("error", None, "not_started")

    async def play() -> None:
        async with Client(_stdio(small_edition, out)) as client:
            assert "cash" in _text(await client.call_tool("get_task_data", {"field": "cash"}))
            await client.call_tool("submit_answer", {"answer": ANSWER})

    asyncio.run(play())
    (row,) = pl.read_parquet(out / "rows.parquet").to_dicts()
    assert (row["task_id"], row["harness"], row["valid_json"], row["tool_calls"]) == (TASK, HARNESS, True, 2)


@pytest.mark.enable_socket
def test_what_cannot_be_served_is_told_in_a_line(small_edition, tmp_path, capsys, monkeypatch) -> None:
    edition, out = str(small_edition.path), str(tmp_path / "run")
    cases = [
        (["serve", edition, "pc_rebal_9", "--out", out, "--http", "0"], "unknown task 'pc_rebal_9'; tasks are, "),
        (["serve", edition, TASK, "--out", out, "--condition", "x", "--http", "0"], "condition 'x' is unknown"),
        (
            ["serve", edition, TASK, "--out", out, "--condition", "self_generated_persistent", "--http", "0"],
            "condition self_generated_persistent runs its tasks in sequence",
        ),
    ]
    for arguments, message in cases:
        assert cli.main(arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()[-1:]
        assert message in line
    assert not Path(out).exists()
    monkeypatch.setattr("finskillbench.integrations.find_spec", lambda name: None)
    assert cli.main(["serve", edition, TASK, "--out", out, "--http", "0"]) == 2
    assert (
        "is not installed; run: pip install 'finskillbench[mcp]' (in a checkout: make mcp)" in capsys.readouterr().err
    )
