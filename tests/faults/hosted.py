"""Hosted models beside a server of faults: what each fault is called, a model that asks it, an episode played on it."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

from tests.faults.server import SUBMIT, FaultServer, Reply, Request

from finskillbench.episode import Episode, Prompt
from finskillbench.errors import Cause
from finskillbench.harness.conditions import Condition, mount
from finskillbench.harness.episode_state import EpisodeSpec, Resources
from finskillbench.harness.loop import run_episode
from finskillbench.harness.model import Message, ToolSpec, Turn
from finskillbench.harness.models import ModelOptions, get_model
from finskillbench.harness.providers.hosted import Hosted
from finskillbench.harness.tools.contracts import GET_TASK_DATA, QUERY_XBRL, SUBMIT_ANSWER
from finskillbench.harness.trace import Trace

TALK = (Message("system", "Be brief."), Message("user", "Solve it."))
TOOLS = (SUBMIT_ANSWER, GET_TASK_DATA, QUERY_XBRL)
SERVED = "openai-api/local/tiny"
CAUSES = {
    "429": Cause.RATE_LIMIT,
    "429 with seconds": Cause.RATE_LIMIT,
    "500": Cause.SERVER,
    "502": Cause.SERVER,
    "503": Cause.SERVER,
    "529": Cause.SERVER,
    "408": Cause.TIMEOUT,
    "no answer": Cause.TIMEOUT,
    "hung up": Cause.DROPPED,
    "cut": Cause.DROPPED,
    "reset": Cause.DROPPED,
    "not json": Cause.MALFORMED,
    "html": Cause.MALFORMED,
    "json text": Cause.MALFORMED,
    "no choices": Cause.EMPTY,
    "choice without message": Cause.MALFORMED,
    "empty choices": Cause.EMPTY,
    "400": Cause.BAD_REQUEST,
    "422": Cause.BAD_REQUEST,
    "413": Cause.BAD_REQUEST,
    "401": Cause.AUTH,
    "403": Cause.AUTH,
    "402": Cause.QUOTA,
    "quota": Cause.QUOTA,
    "404": Cause.UNKNOWN_MODEL,
}
WAITS = {"429 with seconds": 7.0, "503": 3.0}
"""Seconds that a fault asks to wait for."""
INCIDENTS = {
    "invalid tool json": "invalid_arguments",
    "bare word": "invalid_arguments",
    "unknown tool": "unknown_tool",
    "wrong type": "invalid_arguments",
    "refusal": "refused",
    "content filter": "refused",
    "text": "text_only",
    "cut off": "max_tokens",
}
"""What a trace calls each fault of a model."""


@contextmanager
def served(script: Callable[[Request], Reply] | Reply, name: str = SERVED, **options: Any) -> Iterator[Any]:
    """A server, and an `ask` that makes one call to it with a model of its own."""
    with FaultServer(script if callable(script) else lambda _: script) as server:
        model = get_model(name, ModelOptions(base_url=server.url, **options))

        def ask(
            messages: tuple[Message, ...] = TALK, choice: str = "auto", tools: tuple[ToolSpec, ...] = TOOLS
        ) -> Turn:
            async def call() -> Turn:
                try:
                    return await model.generate(messages, tools, choice)
                finally:
                    await model.close()

            return asyncio.run(call())

        server.model, server.ask = model, ask
        yield server


def warm(*names: str) -> None:
    """Import what a first call imports, so that short deadlines measure the server."""
    for name in names:
        with served(SUBMIT, name) as server:
            server.ask()


def play(model: Hosted, sleeps: list[float] | None = None, prompt: str = "Task 0.") -> Trace:
    """Play an episode without an arm on `model`, note its waits instead of waiting, and close it."""
    episode = Episode(
        "pc_uncon_000",
        "portfolio_construction",
        "unconstrained_optimization",
        date(2025, 1, 31),
        "easy",
        {"expected_returns": {"T00": 0.01}},
        Prompt("Task 0.", "Respond with a JSON object."),
    )

    async def sleep(seconds: float) -> None:
        if sleeps is not None:
            sleeps.append(seconds)

    async def main() -> Trace:
        around = Resources(sleep=sleep)
        arm = mount(Condition.NO_SKILL, {}, {})
        try:
            return await run_episode(model, EpisodeSpec(episode, prompt, lambda: dict(episode.input), arm), around)
        finally:
            await model.close()

    return asyncio.run(main())
