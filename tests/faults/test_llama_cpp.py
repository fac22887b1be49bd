"""A second implementation of the protocol: llama.cpp's server, with a random model that is made here.

It runs where an interpreter has `llama-cpp-python[server]` and `gguf`: this one, or the one that the environment
variable FINSKILLBENCH_LLAMA_PYTHON names. Building the package takes half an hour: no requirement of the tests.
"""

import asyncio
import os
import subprocess
import sys
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
from finskillbench.harness.model import Message
from finskillbench.harness.models import ModelOptions, get_model
from finskillbench.harness.tools.contracts import SUBMIT_ANSWER
from finskillbench.harness.trace import Trace

INTERPRETER = os.environ.get("FINSKILLBENCH_LLAMA_PYTHON") or sys.executable
CONTEXT = 12_288
pytestmark = [
    pytest.mark.slow,
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    found = subprocess.run([INTERPRETER, "-c", "import llama_cpp.server, gguf"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip("no interpreter with llama-cpp-python[server] and gguf; name one in FINSKILLBENCH_LLAMA_PYTHON")
    folder = tmp_path_factory.mktemp("llama")
    maker = Path(__file__).with_name("tiny_model.py")
    subprocess.run([INTERPRETER, str(maker), str(folder / "tiny.gguf")], check=True, capture_output=True)
    port = closed_port()
    options = ["--model", str(folder / "tiny.gguf"), "--port", str(port), "--n_ctx", str(CONTEXT), "--n_threads", "1"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([INTERPRETER, "-m", "llama_cpp.server", *options], stdout=log, stderr=log)
        try:
            url = f"http://localhost:{port}/v1"
            for _ in range(300):
                try:
                    urllib.request.urlopen(f"{url}/models", timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield url
        finally:
            server.kill()
            server.wait()


def ask(address: str, prompt: str) -> Trace:
    return play(
        get_model("llama-cpp-python/tiny", ModelOptions(base_url=address, max_tokens=16, seed=1)), prompt=prompt
    )


def test_a_model_that_talks_nonsense_uses_up_its_turns(address: str):
    trace = ask(address, "Task 0.")
    assert (trace.ended, trace.turns, trace.retries) == ("max_turns", MAX_TURNS, 0)
    assert set(trace.incidents) <= {"max_tokens", "text_only", "invalid_arguments"}
    assert trace.usage.cost_usd == 0.0
    assert trace.usage.output_tokens > 0
    # each conversation holds the one before it: a server that counts right counts more each time
    read = [call.usage.input_tokens for call in trace.model_calls]
    assert read == sorted(read)
    assert read[0] > 500
    assert trace.usage.input_tokens == sum(read)
    assert all(call.served_model for call in trace.model_calls)


def test_a_conversation_that_outgrows_it_ends_the_episode(address: str):
    trace = ask(address, "word " * CONTEXT)
    assert (trace.ended, trace.turns, trace.usage.input_tokens) == ("context_overflow", 1, 0)


def test_the_same_seed_gives_the_same_answer(address: str):
    assert [m.content for m in ask(address, "Task 0.").messages] == [
        m.content for m in ask(address, "Task 0.").messages
    ]


def test_a_request_it_refuses_has_its_cause(address: str):
    model = get_model("llama-cpp-python/tiny", ModelOptions(base_url=f"{address}/nowhere"))
    with pytest.raises(ProviderError) as caught:
        asyncio.run(model.generate([Message("user", "Hello.")], (SUBMIT_ANSWER,), "auto"))
    assert caught.value.cause == Cause.UNKNOWN_MODEL
