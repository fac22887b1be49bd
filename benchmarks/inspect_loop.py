"""The agent loop against Inspect's own: CPU time of the same six-turn episode, and of one call over a real socket.

Run: python benchmarks/inspect_loop.py [--episodes N]   (needs the extra llm)

Both loops get the same prompt of 9 to 10 KB, the same tools and the same six answers without latency: five calls of
`get_task_data`, one of them for a 30x30 covariance matrix, then the submission. Ours writes journal and trajectories
(benchmarks/loop.py); Inspect's `react` agent runs as an Inspect task and writes its `.eval` log; its answers come from
its own `mockllm`. Start-up is left out of both: the first, small round is thrown away. A call over a socket is
`Hosted.generate` with the same prompt against a server on the loopback interface: provider package, HTTP and the
reading of the answer, with the server in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from finskillbench.harness.conditions import ARMS
from finskillbench.harness.model import Message
from finskillbench.harness.models import ModelOptions, get_model
from finskillbench.harness.prompts.compose import system_prompt
from finskillbench.harness.tools.contracts import GET_TASK_DATA, SUBMIT_ANSWER
from loop import FIELDS, TURNS
from loop import measure as measure_ours

REQUIRED_RATIO = 1.0
PROMPT = "The quick brown fox buys low and sells high. " * 210
MATRIX = json.dumps([[1 / (1 + row + column) for column in range(30)] for row in range(30)])
USAGE = {"prompt_tokens": 3000, "completion_tokens": 60, "total_tokens": 3060}


def measure_inspect(episodes: int, folder: Path) -> float:
    """CPU milliseconds per episode of Inspect's `react` agent."""
    import inspect_ai
    from inspect_ai.agent import AgentSubmit, react
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage
    from inspect_ai.model import get_model as inspect_model
    from inspect_ai.tool import Tool, tool

    @tool
    def get_task_data() -> Tool:
        async def execute(field: str) -> str:
            """Return one field of the task's input at full precision.

            Args:
                field: Name of the input field.
            """
            return MATRIX if field == "covariance_matrix" else json.dumps({"field": field, "value": 0.0431})

        return execute

    def turn(messages: list[Any], *_: Any) -> ModelOutput:
        step = sum(message.role == "assistant" for message in messages)
        if step < len(FIELDS):
            output = ModelOutput.for_tool_call("mockllm/model", "get_task_data", {"field": FIELDS[step]})
        else:
            answer = json.dumps({"weights": {f"T{name:02}": 1 / 30 for name in range(30)}})
            output = ModelOutput.for_tool_call("mockllm/model", "submit", {"answer": answer})
        output.usage = ModelUsage(input_tokens=3000, output_tokens=60, total_tokens=3060)
        return output

    agent = react(prompt=system_prompt(ARMS["no_skill"]), tools=[get_task_data()], submit=AgentSubmit())
    task = inspect_ai.Task(dataset=[Sample(input=PROMPT, id=number) for number in range(episodes)], solver=agent)
    model = inspect_model("mockllm/model", custom_outputs=turn)
    started = time.process_time()
    logs = inspect_ai.eval(
        task, model=model, log_dir=str(folder), display="none", max_samples=64, score=False, log_level="error"
    )
    spent = time.process_time() - started
    samples = logs[0].samples or []
    turns = {sum(message.role == "assistant" for message in sample.messages) for sample in samples}
    if (len(samples), turns) != (episodes, {TURNS}):
        raise SystemExit(f"Inspect's episodes went wrong: {len(samples)} of {episodes}, with {turns} turns")
    return spent / episodes * 1_000


def measure_calls(calls: int, concurrency: int = 64) -> float:
    """CPU milliseconds of one call of a hosted model over a socket, the server's own left out."""
    ports: Any = multiprocessing.get_context("spawn").Queue()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(ports,), daemon=True)
    server.start()
    model = get_model("openai-api/local/bench", ModelOptions(base_url=f"http://127.0.0.1:{ports.get()}/v1"))
    messages = (Message("system", system_prompt(ARMS["no_skill"])), Message("user", PROMPT))

    async def work(count: int) -> None:
        for _ in range(count):
            await model.generate(messages, (SUBMIT_ANSWER, GET_TASK_DATA), "auto")

    async def main() -> float:
        await work(3)
        started = time.process_time()
        await asyncio.gather(*(work(calls // concurrency) for _ in range(concurrency)))
        spent = time.process_time() - started
        await model.close()
        return spent

    spent = asyncio.run(main())
    server.terminate()
    return spent / (calls // concurrency * concurrency) * 1_000


def _serve(ports: Any) -> None:
    """Answer every request of the loopback interface with the same call."""
    function = {"name": "get_task_data", "arguments": '{"field": "constraints"}'}
    message = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    body = json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": choices, "usage": USAGE})
    reply = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
                writer.write(reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=256)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def main() -> int:
    """Print both loops, their ratio and the cost of a call; exit code 1 where ours is not the cheaper."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=200, help="episodes per round (default: 200)")
    arguments = parser.parse_args()
    if find_spec("inspect_ai") is None:
        print("not measured: the extra llm is not installed (make llm)")
        return 0
    logging.getLogger().setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure_ours(20, folder)
        ours = min(measure_ours(arguments.episodes, folder) for _ in range(3))
        measure_inspect(20, folder)
        theirs = min(measure_inspect(arguments.episodes, folder) for _ in range(3))
    call = min(measure_calls(640) for _ in range(3))
    print(f"six-turn episode, this loop:        {ours:7.2f} CPU ms")
    print(f"six-turn episode, Inspect's react:  {theirs:7.2f} CPU ms; ratio {theirs / ours:.1f}")
    print(f"one call of a hosted model:         {call:7.2f} CPU ms (provider package and HTTP)")
    return int(theirs / ours < REQUIRED_RATIO)


if __name__ == "__main__":
    sys.exit(main())
