"""llama.cpp's own server with the small model of examples/local-model, a second implementation of the protocol.

It runs where `make local-model` was run. Compiling llama.cpp takes minutes: no requirement of the tests.
"""

import asyncio
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.faults.hosted import play
from tests.faults.server import closed_port

from finskillbench.errors import Cause, ProviderError
from finskillbench.harness.allowance import MAX_TURNS
from finskillbench.harness.model import AUTO, Message, Turn
from finskillbench.harness.models import ModelOptions, get_model
from finskillbench.harness.tools.contracts import SAVE_SKILL, SUBMIT_ANSWER
from finskillbench.harness.trace import Trace

ROOT = Path(__file__).parents[2]
NAME = "llama-cpp-python/SmolLM2-135M-Instruct"
OFFERED = (SAVE_SKILL,)
"""The server's grammar for free choices has no such name: each of these calls is of a tool that is not on offer."""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not list(ROOT.glob(".venv-local-model/lib/python3*/site-packages/bin/llama-server")):
        pytest.skip("make local-model was not run")
    port = closed_port()
    server = subprocess.Popen(
        [ROOT / "examples/local-model/serve.sh", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        server.wait()


def ask(address: str, prompt: str) -> Trace:
    return play(get_model(NAME, ModelOptions(base_url=address, max_tokens=16, seed=1)), prompt=prompt)


def call(address: str, choice: str) -> Turn:
    async def answer() -> Turn:
        model = get_model(NAME, ModelOptions(base_url=address, max_tokens=64))
        try:
            return await model.generate([Message("user", "Hello.")], OFFERED, choice)
        finally:
            await model.close()

    return asyncio.run(answer())


def test_a_model_that_talks_nonsense_uses_up_its_turns(address: str):
    trace = ask(address, "Task 0.")
    assert (trace.ended, trace.turns, trace.retries) == ("max_turns", MAX_TURNS, 0)
    assert set(trace.incidents) <= {"max_tokens", "text_only", "invalid_arguments"}
    assert trace.usage.cost_usd == 0.0
    assert trace.usage.output_tokens > 0
    # Each conversation holds the one before it, but the last turn has fewer tools.
    read = [call.usage.input_tokens for call in trace.model_calls]
    assert read[:-1] == sorted(read[:-1])
    assert read[0] > 300
    assert trace.usage.input_tokens == sum(read)
    assert {call.served_model for call in trace.model_calls} == {"SmolLM2-135M-Instruct-Q4_1"}


def test_a_conversation_that_outgrows_it_ends_the_episode(address: str):
    trace = ask(address, "word " * 8_192)
    assert (trace.ended, trace.turns, trace.usage.input_tokens) == ("context_overflow", 1, 0)


def test_a_call_that_the_server_cannot_read_is_the_mistake_of_the_model(address: str):
    assert call(address, AUTO) == Turn("")


def test_the_only_tool_on_offer_can_be_forced(address: str):
    assert {each.name for each in call(address, "save_skill").tool_calls} == {"save_skill"}


def test_the_same_seed_gives_the_same_answer(address: str):
    assert [m.content for m in ask(address, "Task 0.").messages] == [
        m.content for m in ask(address, "Task 0.").messages
    ]


def test_a_request_it_refuses_has_its_cause(address: str):
    model = get_model(NAME, ModelOptions(base_url=f"{address}/nowhere"))
    with pytest.raises(ProviderError) as caught:
        asyncio.run(model.generate([Message("user", "Hello.")], (SUBMIT_ANSWER,), "auto"))
    assert caught.value.cause == Cause.UNKNOWN_MODEL
