"""Hosted models over a real socket: what each failure is called, and how often a server is asked."""

import asyncio
import gc
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from importlib.util import find_spec

import pytest
import pytest_socket
from tests.faults.hosted import CAUSES, SERVED, TALK, TOOLS, WAITS, served, warm
from tests.faults.server import FINAL_FAULTS, MODEL_FAULTS, OVERFLOW, PROVIDER_FAULTS, SUBMIT, closed_port, error

from finskillbench.errors import Cause, ProviderError
from finskillbench.harness.model import FREE
from finskillbench.harness.models import ModelOptions, get_model

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]
FAULTS = {**PROVIDER_FAULTS, **FINAL_FAULTS}


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    pytest_socket.enable_socket()  # the mark enables it only for the tests themselves
    warm(SERVED, "openai/gpt-4.1")


@pytest.mark.slow
@pytest.mark.parametrize("name", [SERVED, "openai/gpt-4.1"])
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_its_cause_and_is_asked_for_once(fault: str, name: str):
    with served(FAULTS[fault], name, attempt_timeout=0.5 if fault == "no answer" else None) as server:
        with pytest.raises(ProviderError) as caught:
            server.ask()
        assert caught.value.cause == CAUSES[fault]
        assert caught.value.retry_after == WAITS.get(fault)
        assert len(server.requests) == 1
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(name)


def test_every_retried_cause_of_a_provider_is_injected():
    assert set(CAUSES) == set(FAULTS)
    # No server answers so: what does not connect, what an adapter breaks, and an agent whose command does not start.
    assert set(CAUSES.values()) | {Cause.CONNECTION, Cause.ADAPTER, Cause.NOT_STARTED} == set(Cause)


def test_nobody_listens():
    model = get_model(SERVED, ModelOptions(base_url=f"http://127.0.0.1:{closed_port()}/v1"))
    with pytest.raises(ProviderError) as caught:
        asyncio.run(model.generate(TALK, TOOLS, "auto"))
    assert caught.value.cause == Cause.CONNECTION


def test_silence_is_ended_by_the_request_timeout_as_well():
    silent = PROVIDER_FAULTS["no answer"]
    with served(silent, request_timeout=0.3, attempt_timeout=30) as server, pytest.raises(ProviderError) as caught:
        server.ask()
    assert caught.value.cause == Cause.TIMEOUT
    assert len(server.requests) == 1


def test_retry_after_as_a_date():
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    with served(error(429, "later", retry_after=when)) as server, pytest.raises(ProviderError) as caught:
        server.ask()
    assert 30 < (caught.value.retry_after or 0) <= 40


def test_retry_after_that_is_neither_counts_for_nothing():
    with served(error(429, "later", retry_after="soon")) as server, pytest.raises(ProviderError) as caught:
        server.ask()
    assert caught.value.retry_after is None


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens.",
        "the request exceeds the available context size. try increasing the context size",
        "prompt is too long: 250000 tokens > 200000 maximum",
    ],
)
def test_overflow_is_recognised_without_a_code(text: str):
    with served(error(400, text)) as server:
        turn = server.ask()
    assert (turn.stop, turn.usage) == ("context_overflow", FREE)


@pytest.mark.slow
def test_stops_and_texts():
    stops = {}
    for fault, reply in {**MODEL_FAULTS, "overflow": OVERFLOW, "fine": SUBMIT}.items():
        with served(reply) as server:
            stops[fault] = server.ask().stop
    assert stops == {
        "invalid tool json": "done",
        "bare word": "done",
        "unknown tool": "done",
        "wrong type": "done",
        "refusal": "refused",
        "content filter": "refused",
        "text": "done",
        "cut off": "max_tokens",
        "overflow": "context_overflow",
        "fine": "done",
    }


@pytest.mark.slow
def test_no_limit_of_inspect_stands_before_ours():
    with served(PROVIDER_FAULTS["no answer"]) as server:
        model = server.model

        async def main() -> None:
            calls = [asyncio.create_task(model.generate(TALK, TOOLS, "auto")) for _ in range(150)]
            for _ in range(1500):
                if len(server.requests) == 150:
                    break
                await asyncio.sleep(0.01)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            await model.close()

        asyncio.run(main())
    assert len(server.requests) == 150


def test_a_model_is_used_again_in_another_loop_after_it_was_closed():
    with served(SUBMIT) as server:
        assert [server.ask().stop for _ in range(3)] == ["done"] * 3


def test_calls_leave_no_events_behind():
    from inspect_ai.event import ModelEvent

    with served(SUBMIT) as server:

        async def main() -> int:
            for _ in range(20):
                await server.model.generate(TALK, TOOLS, "auto")
            gc.collect()
            return sum(type(each) is ModelEvent for each in gc.get_objects())

        assert asyncio.run(main()) < 5


def test_the_model_keeps_nothing_between_calls():
    with served(SUBMIT) as server:
        before = dict(vars(server.model))
        server.ask()
        after = dict(vars(server.model))
    changed = {key for key in after if after[key] is not before.get(key)}
    assert changed <= {"_closed"}
