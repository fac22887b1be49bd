"""The taskset of verifiers: its CLI plays 20 tasks with a model on loopback, for the rewards of our environment."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.training.actions import actions_of

from finskillbench.edition import Edition
from finskillbench.episode import Reward, Status
from finskillbench.harness.environment import Environment
from finskillbench.harness.model import ToolCall
from finskillbench.integrations.environments import EditionTasks

VENV = Path(__file__).parents[2] / ".venv-verifiers"
SCRIPT = Path(__file__).with_name("verifiers_tools.py")
TASKS = 20

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not VENV.exists(), reason="verifiers is not installed; make verifiers installs it"),
]


def _calls(source: EditionTasks) -> dict[str, list[ToolCall]]:
    """Calls by task: one that reads data, and a submission that is right, empty or nearly right, but for the first."""
    seeds = [*range(0, len(source.tasks), 2), *range(1, len(source.tasks), 2)][:TASKS]
    calls = {
        source.task_of(seed): [
            ToolCall(tool, tool, json.dumps(arguments))
            for tool, arguments in actions_of(source, seed)
            if tool in ("get_task_data", "submit_answer")
        ]
        for seed in seeds
    }
    calls[source.task_of(0)].pop()
    return calls


def _ours(source: EditionTasks, calls: Mapping[str, list[ToolCall]]) -> tuple[dict[str, Reward], dict[str, str]]:
    """The rewards of the calls in our environment, and the task of each prompt."""

    async def play() -> tuple[dict[str, Reward], dict[str, str]]:
        rewards, prompts = dict[str, Reward](), dict[str, str]()
        for task, made in calls.items():
            environment = Environment(source)
            prompts[(await environment.reset(task)).messages[1].content] = task
            for call in made:
                await environment.step(call)
            environment.close()
            assert environment.reward is not None
            rewards[task] = environment.reward
        return rewards, prompts

    return asyncio.run(play())


@contextmanager
def _model(reply: Callable[[list[dict[str, Any]]], ToolCall | None]) -> Generator[str]:
    """Serve a model on loopback that streams one tool call for each conversation, or a text; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            call = reply(body["messages"])
            delta: dict[str, Any] = {"role": "assistant", "content": "I do not know."}
            if call is not None:
                function = {"name": call.name, "arguments": call.arguments}
                delta = {
                    "role": "assistant",
                    "tool_calls": [{"index": 0, "id": call.id, "type": "function", "function": function}],
                }
            choice = {"index": 0, "delta": delta, "finish_reason": "stop" if call is None else "tool_calls"}
            chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def _environment(folder: Path) -> dict[str, str]:
    """Variables of a process of verifiers; a uv that installs nothing gives harness programs its interpreter."""
    uv = folder / "bin" / "uv"
    uv.parent.mkdir(parents=True)
    uv.write_text(f'#!/bin/sh\ncase "$*" in *--help) echo --script ;; python*) echo {VENV}/bin/python ;; esac\n')
    uv.chmod(0o755)
    return {"PATH": f"{uv.parent}:{os.environ['PATH']}", "HOME": str(folder), "OPENBLAS_NUM_THREADS": "1"}


@pytest.mark.enable_socket
def test_its_cli_plays_twenty_tasks_with_our_rewards(training_edition: Edition, tmp_path: Path) -> None:
    source = EditionTasks(training_edition, "curated")
    calls = _calls(source)
    rewards, prompts = _ours(source, calls)

    def reply(messages: list[dict[str, Any]]) -> ToolCall | None:
        task = next(prompts[m["content"]] for m in messages if m["role"] == "user")
        made = sum(m["role"] == "tool" for m in messages)
        return calls[task][made] if made < len(calls[task]) else None

    config = tmp_path / "config.json"
    with _model(reply) as address:
        taskset = {"id": "finskillbench-verifiers", "edition": str(training_edition.path), "condition": "curated"}
        agent = {"runtime": {"type": "subprocess"}}
        settings = {"env": {"taskset": taskset, "agent": agent}, "select": {"include": {"ids": list(calls)}}}
        config.write_text(json.dumps({**settings, "client": {"base_url": address}, "run": {"name": "parity"}}))
        options = ["--no-push", "--no-rich", "--output-dir", str(tmp_path), "--max-concurrent", "4"]
        command = [VENV / "bin" / "vf-eval", "@", config, *options]
        played = subprocess.run(command, env=_environment(tmp_path / "home"), capture_output=True, text=True)
    assert played.returncode == 0, played.stderr[-2000:]
    lines = (tmp_path / "parity" / "traces.jsonl").read_text().splitlines()
    traces = [trace for line in lines for trace in json.loads(line)["traces"]]
    assert sorted(trace["task"]["data"]["id"] for trace in traces) == sorted(calls)
    for trace in traces:
        reward = rewards[trace["task"]["data"]["id"]]
        parts = {f"part_{name}": value for name, value in reward.parts.items()}
        expected = {"raw": reward.raw, f"status_{reward.status}": 1.0, **parts}
        found = {name: value for name, value in trace["metrics"].items() if value or not name.startswith("status_")}
        assert found == pytest.approx(expected, abs=1e-9), trace["task"]["data"]["id"]
        assert "load_skill" in [tool["name"] for tool in trace["tools"]]
        assert trace["rewards"]["certified"]["score"] == pytest.approx(reward.score, abs=1e-9)
        unfinished = reward.status is Status.INCOMPLETE_SUBMISSION
        assert trace["stop_condition"] == ("agent_completed" if unfinished else "ended")
    assert (len(traces), rewards[source.task_of(0)].status) == (TASKS, Status.INCOMPLETE_SUBMISSION)
    by_subtask = {tuple(rewards[task].score for task in tasks if task in calls) for tasks in source.by_subtask.values()}
    assert len(by_subtask) > 2, by_subtask


def test_tools_end_abandoned_episodes_and_tasks_repeat(training_edition: Edition, tmp_path: Path) -> None:
    name = training_edition.sub_tasks[0]
    command = [VENV / "bin" / "python", "-I", SCRIPT, training_edition.path, name, "train"]
    played = subprocess.run(command, env=_environment(tmp_path), capture_output=True, text=True)
    assert played.returncode == 0, played.stderr[-2000:]
