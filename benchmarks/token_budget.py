"""What episodes generate under a budget of tokens, by the count of the server that generates them.

Run: python benchmarks/token_budget.py [--episodes N]   (needs the extra llm)

A server on the loopback interface draws how much it generates in a call, up to the limit of the call, which it
reaches in three of ten. Asked as `told` it says so; as `reasoning` most of it is reasoning; as `apart` reasoning stands
beside the output in its counts, as xAI has it; as `silent` it tells no counts; as `beyond` it generates up to twice the
limit. Each episode may generate 8,000 tokens, each call 3,000, over at most 20 turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from finskillbench.harness.models import ModelOptions
from finskillbench.runs.execute.run import run
from waits import ANSWER, Episodes

BUDGET, LIMIT, TURNS = 8_000, 3_000, 20
MANNERS = ("told", "reasoning", "apart", "silent", "beyond")
EPISODES = 1_000


class Server:
    """Answers chat completions and keeps, by model and task, what it generated and the limit of the last call."""

    def __init__(self) -> None:
        self.generated: dict[tuple[str, str], int] = {}
        self.limits: dict[tuple[str, str], int] = {}
        self.port = 0
        self._draw = random.Random(7)
        self._ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()
        self._ready.wait()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=512, limit=1 << 20)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
            except (asyncio.IncompleteReadError, ConnectionResetError):
                writer.close()
                return
            length = next(int(line.partition(":")[2]) for line in head if line.startswith("content-length:"))
            content = json.dumps(self._answer(json.loads(await reader.readexactly(length)))).encode()
            fields = f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
            writer.write(b"HTTP/1.1 200 X\r\n" + fields.encode() + content)

    def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        manner, limit, draw = body["model"], body["max_tokens"], self._draw
        most = 2 * limit if manner == "beyond" else limit
        cut = draw.random() < 0.3
        tokens = most if cut else draw.randint(1, most)
        key = manner, body["messages"][1]["content"].partition("[")[2].partition("]")[0]
        self.generated[key] = self.generated.get(key, 0) + tokens
        self.limits[key] = limit
        text = "word " * tokens if manner == "silent" else "word"
        name, arguments = ("submit_answer", ANSWER) if draw.random() < 0.1 else ("get_task_data", '{"field": "x"}')
        call = {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
        message = {"role": "assistant", "content": text, **({} if cut else {"tool_calls": [call]})}
        choice = {"index": 0, "message": message, "finish_reason": "length" if cut else "tool_calls"}
        made = {"id": "a", "object": "chat.completion", "created": 1, "model": manner, "choices": [choice]}
        return made if manner == "silent" else {**made, "usage": self._usage(manner, tokens)}

    def _usage(self, manner: str, tokens: int) -> dict[str, Any]:
        thought = 0 if manner in ("told", "beyond") else tokens * 3 // 4
        said = tokens - thought if manner == "apart" else tokens
        counts = {"prompt_tokens": 1_000, "completion_tokens": said, "total_tokens": 1_000 + tokens}
        return {**counts, "completion_tokens_details": {"reasoning_tokens": thought}}


def measure(count: int) -> tuple[Server, pl.DataFrame]:
    """The server after a run of `count` episodes in each of its manners, and the rows."""
    server, edition = Server(), Episodes(count)
    with tempfile.TemporaryDirectory() as folder:
        result = run(
            edition,  # pyright: ignore[reportArgumentType]
            [f"openai-api/local/{manner}" for manner in MANNERS],
            ["no_skill"],
            limit=count,
            turns=TURNS,
            token_budget=BUDGET,
            max_concurrency=16,
            options=ModelOptions(base_url=f"http://127.0.0.1:{server.port}/v1", max_tokens=LIMIT),
            out=Path(folder) / "run",
        )
    return server, result.rows


def main() -> int:
    """Print, for each manner, how far episodes went beyond their budget; exit code 1 where one went too far."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=EPISODES, help=f"of each manner (default: {EPISODES:,})")
    arguments = parser.parse_args()
    if find_spec("inspect_ai") is None:
        print("the extra llm is not installed: make llm")
        return 0
    server, rows = measure(arguments.episodes)
    print(f"{'server':<10} episodes  most generated  furthest beyond  in limits of its call  statuses")
    missed = False
    for manner in MANNERS:
        generated = {task: tokens for (name, task), tokens in server.generated.items() if name == manner}
        beyond = {task: tokens - BUDGET for task, tokens in generated.items()}
        furthest = max(beyond.values())
        share = max(beyond[task] / server.limits[manner, task] for task in beyond)
        statuses = dict(
            rows.filter(pl.col("model").str.ends_with(manner))["status"].value_counts(sort=True).iter_rows()
        )
        counted = ", ".join(f"{number} {status}" for status, number in statuses.items())
        print(f"{manner:<10} {len(beyond):>8} {max(generated.values()):>15,} {furthest:>16,} {share:>22.2f}  {counted}")
        missed = missed or share > 1 or len(beyond) != arguments.episodes or "error" in statuses
    print(f"required: of {BUDGET:,} tokens, no episode goes beyond by more than the limit of one call (share 1.00)")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
