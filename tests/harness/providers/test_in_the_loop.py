"""Hosted models in the loop: how an episode ends when its provider or its model fails."""

from importlib.util import find_spec

import pytest
import pytest_socket
from tests.faults.hosted import CAUSES, INCIDENTS, SERVED, WAITS, play, served, warm
from tests.faults.server import FINAL_FAULTS, MODEL_FAULTS, OVERFLOW, PROVIDER_FAULTS, READ, SUBMIT

from finskillbench.harness.model import FREE

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    pytest_socket.enable_socket()  # the mark enables it only for the tests themselves
    warm(SERVED)


@pytest.mark.slow
@pytest.mark.parametrize("fault", PROVIDER_FAULTS)
def test_the_loop_retries_a_passing_fault_three_times(fault: str):
    sleeps: list[float] = []
    with served(PROVIDER_FAULTS[fault], attempt_timeout=0.3 if fault == "no answer" else None) as server:
        trace = play(server.model, sleeps)
    assert (trace.ended, trace.error_cause, trace.retries, trace.turns) == ("error", CAUSES[fault].value, 3, 0)
    assert len(server.requests) == 4
    assert sleeps == ([WAITS[fault]] * 3 if fault in WAITS else [1.0, 2.0, 4.0])
    assert trace.usage == FREE


@pytest.mark.parametrize("fault", FINAL_FAULTS)
def test_the_loop_does_not_retry_a_fault_that_stays(fault: str):
    with served(FINAL_FAULTS[fault]) as server:
        trace = play(server.model)
    assert (trace.ended, trace.error_cause, trace.retries) == ("error", CAUSES[fault].value, 0)
    assert len(server.requests) == 1


@pytest.mark.slow
@pytest.mark.parametrize("fault", PROVIDER_FAULTS)
def test_a_fault_that_passed_leaves_an_incident_and_a_submission(fault: str):
    replies = [PROVIDER_FAULTS[fault], READ, SUBMIT]
    with served(lambda _: replies.pop(0), attempt_timeout=2.0 if fault == "no answer" else None) as server:
        trace = play(server.model)
    assert (trace.ended, trace.incidents, trace.retries, trace.turns) == ("submitted", (CAUSES[fault],), 1, 2)
    assert len(server.requests) == 3
    assert (trace.usage.input_tokens, trace.usage.output_tokens) == (2000, 100)  # the failed request is not counted


@pytest.mark.parametrize("fault", MODEL_FAULTS)
def test_the_agent_is_told_what_it_did_wrong_and_goes_on(fault: str):
    replies = [MODEL_FAULTS[fault], SUBMIT]
    with served(lambda _: replies.pop(0)) as server:
        trace = play(server.model)
    assert (trace.ended, trace.incidents, trace.turns) == ("submitted", (INCIDENTS[fault],), 2)
    assert trace.answer == '{"weights": {"T00": 1.0}}'


def test_overflow_ends_the_episode_ungraded_by_a_provider():
    with served(OVERFLOW) as server:
        trace = play(server.model)
    assert (trace.ended, trace.incidents, len(server.requests)) == ("context_overflow", ("context_overflow",), 1)


def test_the_last_turn_offers_the_submission_alone():
    with served(MODEL_FAULTS["text"]) as server:
        trace = play(server.model)
    assert trace.ended == "max_turns"
    assert len(server.requests) == 12
    assert {request.tools for request in server.requests[:-1]} == {trace.tools}
    assert server.requests[-1].tools == ("submit_answer",)
