"""What a slow model costs a fast one behind the same provider, and how true a row's latency is.

Run: python benchmarks/waits.py [--episodes N]   (needs the extra llm)

A server on the loopback interface, in a process of its own, answers a model after as long as its name says, and keeps
what each answer took it, from the arrival of the request in its kernel on (elsewhere than on Linux by its own clock).
First a model of 0.05 s runs alone, then beside one of 5 s and one that is refused every other call with a Retry-After
of 5 s, four episodes of each in flight; the processor time says how much of a difference is our own work. Then a model
that takes 0.1 to 1 s, another time for each call, runs with more and more in flight: a row's `latency_seconds` (two
calls and a look-up) is held against what the server took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import signal
import socket
import struct
import sys
import tempfile
import time
from dataclasses import replace
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import polars as pl

from finskillbench.episode import Episode, Prompt
from finskillbench.harness.models import ModelOptions
from finskillbench.runs.execute.progress import RunProgress
from finskillbench.runs.execute.run import run
from finskillbench.runs.store.rows import Row
from latency import Episodes as Plain

REQUIRED_RATIO, REQUIRED_SECONDS = 1.10, 0.020
FAST, SLOW, LIMITED, VARIED = "fast-0.05", "slow-5", "limited-0.05", "varied-0"
IN_FLIGHT = 4
ANSWER = '{"answer": "{\\"weights\\": {\\"T00\\": 1.0}}"}'
USAGE = {"prompt_tokens": 3000, "completion_tokens": 60, "total_tokens": 3060}


class Episodes(Plain):
    """The same episodes, each with its number in its words."""

    def episodes(self, sub_tasks: Any = None) -> list[Episode]:
        """All of them."""
        return [
            replace(each, prompt=Prompt(f"[{each.task_id}] {each.prompt.task_description}", "Respond with JSON."))
            for each in self._episodes
        ]


def arrived(writer: asyncio.StreamWriter) -> float | None:
    """How many seconds ago the last byte of a request came in, where the kernel tells."""
    option = getattr(socket, "TCP_INFO", None)
    if option is None:
        return None
    told = writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, option, 104)
    return struct.unpack_from("=I", told, 52)[0] / 1e3


def serve(parent: Connection) -> None:
    """Answer chat completions; asked for "/took", say how many seconds were spent on each task, and forget them."""
    took: dict[str, float] = {}
    asked = 0
    draw = random.Random(1)

    async def reply(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        nonlocal asked
        model = body["model"]
        asked += model == LIMITED
        if model == LIMITED and asked % 2:
            return 429, {"error": {"message": "slow down", "type": "rate", "code": None, "param": None}}
        seconds = draw.uniform(0.1, 1.0) if model == VARIED else float(model.partition("-")[2])
        await asyncio.sleep(seconds)
        last = any(message["role"] == "assistant" for message in body["messages"])
        name, arguments = ("submit_answer", ANSWER) if last else ("get_task_data", '{"field": "risk_free_rate"}')
        call = {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        answer = {"id": "a", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]}
        return 200, {**answer, "usage": USAGE}

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
            except (asyncio.IncompleteReadError, ConnectionResetError):
                writer.close()
                return
            length = next((int(line.partition(":")[2]) for line in lines if line.startswith("content-length:")), 0)
            data = await reader.readexactly(length)
            started = loop.time()
            status, answer = 200, dict(took)
            if "/took" not in first:
                body = json.loads(data)
                status, answer = await reply(body)
                task = body["messages"][1]["content"].partition("[")[2].partition("]")[0]
            seconds = arrived(writer) or loop.time() - started
            content = json.dumps(answer).encode()
            head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n"
            writer.write((head + ("retry-after: 5\r\n" if status == 429 else "") + "\r\n").encode() + content)
            if "/took" in first:
                took.clear()
            elif status == 200 and body["model"] == VARIED:
                took[task] = took.get(task, 0.0) + seconds

    async def main() -> None:
        server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=512, limit=1 << 20)
        parent.send(server.sockets[0].getsockname()[1])
        async with server:
            await server.serve_forever()

    asyncio.run(main())


def measure(port: int, models: list[str], count: int, in_flight: int) -> pl.DataFrame:
    """The rows of a run of some models that ends when the first of them is through."""
    edition: Any = Episodes(count)
    left = count

    def progress(board: RunProgress, row: Row | None) -> None:
        nonlocal left
        if row is None or not row.model.endswith(models[0]):
            return
        left -= 1
        if not left and len(models) > 1:
            os.kill(os.getpid(), signal.SIGTERM)  # drops the episodes of the others that are in flight

    with tempfile.TemporaryDirectory() as folder:
        rows = run(
            edition,
            [f"openai-api/local/{name}" for name in models],
            ["no_skill"],
            limit=count,
            max_concurrency=in_flight,
            options=ModelOptions(base_url=f"http://127.0.0.1:{port}/v1"),
            out=Path(folder) / "run",
            progress=progress,
        ).rows
    if set(rows["status"]) != {"scored"} or rows.filter(pl.col("model").str.ends_with(models[0])).height != count:
        raise SystemExit(f"the run went wrong: {rows.select('model', 'status', 'error')}")
    return rows


def wall(port: int, models: list[str], count: int) -> tuple[float, float]:
    """Seconds from the start of the first model's first episode to the end of its last, and of the processor."""
    busy = time.process_time()
    rows = measure(port, models, count, IN_FLIGHT).filter(pl.col("model").str.ends_with(models[0]))
    busy = time.process_time() - busy
    first, last = rows.select(pl.col("started").min(), pl.col("ended").max()).row(0)
    return (last - first).total_seconds(), busy


def truth(port: int, count: int, in_flight: int) -> bool:
    """Print how far latencies are from the server's own; whether nineteen of twenty are near enough."""
    address = f"http://127.0.0.1:{port}/took"
    urlopen(address).close()  # forgets what went before
    rows = measure(port, [VARIED], count, in_flight)
    with urlopen(address) as answer:
        took = json.load(answer)
    own = np.array([took[name] for name in rows["task_id"]])
    latency, queue = rows["latency_seconds"].to_numpy(), rows["queue_seconds"].to_numpy()
    off, before = np.abs(latency - own), np.abs(latency + queue - own)
    share, worst = np.mean(off <= REQUIRED_SECONDS), off.max()
    print(f"{in_flight:3} in flight: latency off by {1e3 * np.median(off):.1f} ms in the middle,", end=" ")
    print(
        f"{1e3 * np.quantile(off, 0.95):.1f} ms at 95 %, {1e3 * worst:.1f} ms at most; within 20 ms: {share:.1%};",
        end=" ",
    )
    print(f"all of the time {1e3 * np.median(before):.1f} ms in the middle, {1e3 * before.max():.1f} ms at most")
    return bool(np.quantile(off, 0.95) <= REQUIRED_SECONDS)


def main() -> int:
    """Print both measurements; exit code 1 where one misses the requirement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=200, help="of the fast and of the varied model (default: 200)")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many runs counts (default: 3)")
    arguments = parser.parse_args()
    if find_spec("inspect_ai") is None:
        print("needs the extra llm")
        return 0
    os.environ.setdefault("LOCAL_API_KEY", "none")
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    try:
        port = here.recv()
        measure(port, [FAST], 8, IN_FLIGHT)  # imports and connections
        pairs = [
            [wall(port, models, arguments.episodes) for models in ([FAST], [FAST, SLOW, LIMITED])]
            for _ in range(arguments.rounds)
        ]
        (alone, busy), (beside, more) = map(min, zip(*pairs, strict=True))
        ideal = arguments.episodes * 2 * 0.05 / IN_FLIGHT
        print(f"fast model alone {alone:.2f} s ({busy:.1f} s of CPU), beside a slow and a limited one", end=" ")
        print(f"{beside:.2f} s ({more:.1f} s of CPU), ideal {ideal:.2f} s", end="")
        print(f"; ratio {beside / alone:.3f}, required at most {REQUIRED_RATIO:g}", flush=True)
        near = [truth(port, arguments.episodes // 2, in_flight) for in_flight in (1, 4, 16, 64)]
    finally:
        server.terminate()
    return int(beside / alone > REQUIRED_RATIO or not all(near))


if __name__ == "__main__":
    sys.exit(main())
