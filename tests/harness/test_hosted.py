"""Hosted models over a real socket: what each failure is called, how often a server is asked, and what is kept."""

import asyncio
import gc
import json
import logging
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from finskillbench.episode import Episode, Prompt
from finskillbench.errors import Cause, InputError, ProviderError
from finskillbench.harness.conditions import Condition, mount
from finskillbench.harness.loop import Surroundings, run_episode
from finskillbench.harness.model import FREE, Message, Turn, Usage
from finskillbench.harness.models import PROVIDERS, ModelOptions, check_model, get_model
from finskillbench.harness.tools import GET_TASK_DATA, QUERY_XBRL, SUBMIT_ANSWER
from finskillbench.harness.trace import Trace
from tests.faults.server import (
    FINAL_FAULTS,
    MODEL,
    MODEL_FAULTS,
    OVERFLOW,
    PROVIDER_FAULTS,
    READ,
    SUBMIT,
    FaultServer,
    Reply,
    Request,
    answer,
    closed_port,
    error,
)

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]
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
    "no choices": Cause.MALFORMED,
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
FAULTS = {**PROVIDER_FAULTS, **FINAL_FAULTS}


@contextmanager
def served(script: Callable[[Request], Reply] | Reply, name: str = SERVED, **options: Any) -> Iterator[Any]:
    """A server, and an `ask` that makes one call to it with a model of its own."""
    with FaultServer(script if callable(script) else lambda _: script) as server:
        model = get_model(name, ModelOptions(base_url=server.url, **options))

        def ask(messages: tuple[Message, ...] = TALK, choice: str = "auto") -> Turn:
            async def call() -> Turn:
                try:
                    return await model.generate(messages, TOOLS, choice)
                finally:
                    await model.close()

            return asyncio.run(call())

        server.model, server.ask = model, ask
        yield server


@pytest.fixture(scope="module", autouse=True)
def _warm(request: pytest.FixtureRequest) -> None:
    """Import what a first call imports, so that the short deadlines below measure the server."""
    import pytest_socket

    pytest_socket.enable_socket()
    for name in (SERVED, "openai/gpt-4.1"):
        with served(SUBMIT, name) as server:
            server.ask()


# --- one request, one cause


@pytest.mark.parametrize("name", [SERVED, "openai/gpt-4.1"])
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_its_cause_and_is_asked_for_once(fault: str, name: str):
    started = time.process_time()
    with served(FAULTS[fault], name, attempt_timeout=0.5 if fault == "no answer" else None) as server:
        with pytest.raises(ProviderError) as caught:
            server.ask()
        assert caught.value.cause == CAUSES[fault]
        assert caught.value.retry_after == WAITS.get(fault)
        assert len(server.requests) == 1
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(name)
    assert time.process_time() - started < 10


def test_every_retried_cause_of_a_provider_is_injected():
    assert set(CAUSES) == set(FAULTS)
    assert set(CAUSES.values()) | {Cause.CONNECTION, Cause.ADAPTER} == set(Cause)


def test_nobody_listens():
    model = get_model(SERVED, ModelOptions(base_url=f"http://127.0.0.1:{closed_port()}/v1"))
    with pytest.raises(ProviderError) as caught:
        asyncio.run(model.generate(TALK, TOOLS, "auto"))
    assert caught.value.cause == Cause.CONNECTION


def test_silence_is_ended_by_the_request_timeout_as_well():
    with served(PROVIDER_FAULTS["no answer"], request_timeout=0.3, attempt_timeout=30) as server:
        with pytest.raises(ProviderError) as caught:
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


# --- what goes over the wire


def test_the_request_is_what_was_asked_for():
    with served(SUBMIT, seed=7, max_tokens=321) as server:
        server.ask()
        server.ask(choice="submit_answer")
    first, forced = (request.body for request in server.requests)
    assert (first["temperature"], first["seed"], first["max_tokens"], first["model"]) == (0, 7, 321, "tiny")
    assert first["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Solve it."},
    ]
    assert [tool["function"]["name"] for tool in first["tools"]] == [spec.name for spec in TOOLS]
    assert [tool["function"]["description"] for tool in first["tools"]] == [spec.description for spec in TOOLS]
    assert [tool["function"]["parameters"] for tool in first["tools"]] == [dict(spec.parameters) for spec in TOOLS]
    assert {tool["function"]["strict"] for tool in first["tools"]} == {False}
    assert first["tool_choice"] == "auto"
    assert forced["tool_choice"] == {"type": "function", "function": {"name": "submit_answer"}}


@pytest.mark.parametrize(
    "arguments",
    [
        '{"answer": {"weights": {"A": 0.10000000000000000001, "A": 1e0}}}',
        '{"answer": "{\\"a\\": 1.50, \\"a\\": 2}"}',
        '{"answer": "{}',
        '{"answer": "{}"}"',
        "expected_returns",
        "[1, 2]",
        "  {}",
        "",
    ],
)
@pytest.mark.parametrize("name", [SERVED, "openai/gpt-4.1"])
def test_arguments_arrive_as_they_were_written(arguments: str, name: str):
    with served(answer(("submit_answer", arguments), ("get_task_data", '{"field":  "x"}')), name) as server:
        turn = server.ask()
    assert [call.arguments for call in turn.tool_calls] == [arguments, '{"field":  "x"}']
    assert [call.id for call in turn.tool_calls] == ["call_0", "call_1"]


def test_a_turn_is_sent_back_with_its_reasoning():
    with served(answer(("get_task_data", '{"field": "x"}'), reasoning_content="Hm, the field.")) as server:
        turn = server.ask()
        said = Message("assistant", turn.text, turn.tool_calls, None, turn.replay)
        server.ask((*TALK, said, Message("tool", "[1]", tool_call_id="call_0")))
    sent = server.requests[1].messages
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]
    assert "Hm, the field." in json.dumps(sent[2])
    assert sent[2]["tool_calls"][0]["function"] == {"name": "get_task_data", "arguments": '{"field": "x"}'}
    assert (sent[3]["tool_call_id"], sent[3]["content"]) == ("call_0", "[1]")


def test_a_turn_that_only_its_words_are_left_of_is_built_anew():
    with served(answer(("get_task_data", "no json"), text="\\ud800 lone".encode().decode("unicode_escape"))) as server:
        turn = server.ask()
        assert turn.replay is None
        assert turn.text == "? lone"
        server.ask((*TALK, Message("assistant", turn.text, turn.tool_calls), Message("tool", "no", (), "call_0")))
    assert server.requests[1].messages[2]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_anthropic_gets_its_signed_thinking_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
    usage = {
        "input_tokens": 100,
        "cache_read_input_tokens": 30,
        "cache_creation_input_tokens": 20,
        "output_tokens": 9,
    }
    call = {"type": "tool_use", "id": "t1", "name": "get_task_data", "input": {}}
    written = {"type": "input_json_delta", "partial_json": '{"field": "x"}'}
    made = {"id": "m1", "type": "message", "role": "assistant", "model": "claude-x", "content": [], "usage": usage}
    events = [
        {"type": "message_start", "message": {**made, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": thinking},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": call},
        {"type": "content_block_delta", "index": 1, "delta": written},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
    reply = Reply(body=body, headers={"content-type": "text/event-stream"})
    with served(reply, "anthropic/claude-sonnet-4-6") as server:
        turn = server.ask()
        said = Message("assistant", turn.text, turn.tool_calls, None, turn.replay)
        server.ask((*TALK, said, Message("tool", "[1]", tool_call_id="t1")))
    assert [json.loads(call.arguments) for call in turn.tool_calls] == [{"field": "x"}]
    assert replace(turn.usage, cost_usd=None, reasoning_tokens=0) == Usage(
        input_tokens=150, cached_tokens=30, cache_write_tokens=20, output_tokens=9
    )
    assert turn.usage.reasoning_tokens > 0  # Inspect's count of the words that were thought
    # 100 fresh at $3, 30 read at $0.30, 20 written at $3.75, 9 out at $15, per million
    assert turn.usage.cost_usd == pytest.approx(0.000519, abs=1e-12)
    assert thinking in server.requests[1].body["messages"][1]["content"]


@pytest.mark.parametrize("fault", ["429 with seconds", "500", "529", "no answer", "cut", "401"])
def test_anthropic_too_is_asked_once(fault: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    with served(FAULTS[fault], "anthropic/claude-sonnet-4-6", attempt_timeout=3) as server:
        with pytest.raises(ProviderError) as caught:
            server.ask()
    assert (caught.value.cause, caught.value.retry_after) == (CAUSES[fault], WAITS.get(fault))
    assert len(server.requests) == 1


# --- tokens and money


def test_usage_counts_the_whole_input_and_its_price():
    with served(SUBMIT, "openai/gpt-4.1") as server:
        turn = server.ask()
    assert turn.served_model == MODEL
    assert replace(turn.usage, cost_usd=None) == Usage(
        input_tokens=1000, cached_tokens=400, output_tokens=50, reasoning_tokens=20
    )
    # 600 at $2.00, 400 at $0.50, 50 at $8.00, per million
    assert turn.usage.cost_usd == pytest.approx(0.0012 + 0.0002 + 0.0004, abs=1e-12)


def test_an_answer_without_usage_has_an_unknown_price():
    with served(answer(text="hello", usage=None), "openai/gpt-4.1") as server:
        assert server.ask().usage == Usage()


# --- the loop around it


def play(server: Any, sleeps: list[float]) -> Trace:
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
        sleeps.append(seconds)

    async def main() -> Trace:
        around = Surroundings(sleep=sleep)
        arm = mount(Condition.NO_SKILL, {}, {})
        try:
            return await run_episode(server.model, episode, "Task 0.", lambda: dict(episode.input), arm, around)
        finally:
            await server.model.close()

    return asyncio.run(main())


@pytest.mark.parametrize("fault", PROVIDER_FAULTS)
def test_the_loop_retries_a_passing_fault_three_times(fault: str):
    sleeps: list[float] = []
    with served(PROVIDER_FAULTS[fault], attempt_timeout=0.3 if fault == "no answer" else None) as server:
        trace = play(server, sleeps)
    assert (trace.ended, trace.error_cause, trace.retries, trace.turns) == ("error", CAUSES[fault].value, 3, 0)
    assert len(server.requests) == 4
    assert sleeps == ([WAITS[fault]] * 3 if fault in WAITS else [1.0, 2.0, 4.0])
    assert trace.usage == FREE


@pytest.mark.parametrize("fault", FINAL_FAULTS)
def test_the_loop_does_not_retry_a_fault_that_stays(fault: str):
    with served(FINAL_FAULTS[fault]) as server:
        trace = play(server, [])
    assert (trace.ended, trace.error_cause, trace.retries) == ("error", CAUSES[fault].value, 0)
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", PROVIDER_FAULTS)
def test_a_fault_that_passed_leaves_an_incident_and_a_submission(fault: str):
    replies = [PROVIDER_FAULTS[fault], READ, SUBMIT]
    with served(lambda _: replies.pop(0), attempt_timeout=0.5 if fault == "no answer" else None) as server:
        trace = play(server, [])
    assert (trace.ended, trace.incidents, trace.retries, trace.turns) == ("submitted", (CAUSES[fault],), 1, 2)
    assert len(server.requests) == 3
    assert (trace.usage.input_tokens, trace.usage.output_tokens) == (2000, 100)  # the failed request is not counted


@pytest.mark.parametrize(
    ("fault", "incident"),
    [
        ("invalid tool json", "invalid_arguments"),
        ("bare word", "invalid_arguments"),
        ("unknown tool", "unknown_tool"),
        ("wrong type", "invalid_arguments"),
        ("refusal", "refused"),
        ("content filter", "refused"),
        ("text", "text_only"),
        ("cut off", "max_tokens"),
    ],
)
def test_the_agent_is_told_what_it_did_wrong_and_goes_on(fault: str, incident: str):
    replies = [MODEL_FAULTS[fault], SUBMIT]
    with served(lambda _: replies.pop(0)) as server:
        trace = play(server, [])
    assert (trace.ended, trace.incidents, trace.turns) == ("submitted", (incident,), 2)
    assert trace.answer == '{"weights": {"T00": 1.0}}'


def test_overflow_ends_the_episode_ungraded_by_a_provider():
    with served(OVERFLOW) as server:
        trace = play(server, [])
    assert (trace.ended, trace.incidents, len(server.requests)) == ("context_overflow", ("context_overflow",), 1)


def test_the_last_turn_offers_the_submission_alone():
    with served(MODEL_FAULTS["text"]) as server:
        trace = play(server, [])
    assert trace.ended == "max_turns"
    assert len(server.requests) == 12
    assert {request.tools for request in server.requests[:-1]} == {trace.tools}
    assert server.requests[-1].tools == ("submit_answer",)


# --- many at once, one after the other, and nothing left behind


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


# --- names and what they need


def test_the_list_of_providers_is_that_of_inspect():
    import inspect_ai.model._providers.providers as registered

    source = Path(registered.__file__).read_text(encoding="utf-8")
    assert sorted(PROVIDERS) == sorted(line.split('"')[1] for line in source.splitlines() if "@modelapi(" in line)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gpt-5", "give provider/model"),
        ("baseline/best", "choose from: baseline/reference"),
        ("opnai/gpt-5", "provider 'opnai' is unknown"),
        ("openai/", "give provider/model"),
        ("/gpt", "give provider/model"),
    ],
)
def test_names_that_nobody_has(name: str, told: str):
    for look in (check_model, get_model):
        with pytest.raises(InputError, match="^[^\n]*$") as caught:
            look(name)
        assert told in str(caught.value)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai/gpt-5", "OPENAI_API_KEY"),
        ("anthropic/claude-opus-5", "ANTHROPIC_API_KEY"),
        ("google/gemini-2.5-pro", "GOOGLE_API_KEY"),
        ("openrouter/a/b", "OPENROUTER_API_KEY"),
        ("openai-api/mine/m", "MINE_API_KEY"),
    ],
)
def test_a_missing_key_is_named(name: str, variable: str, monkeypatch: pytest.MonkeyPatch):
    for key in [key for key in os.environ if key.endswith("_API_KEY")]:
        monkeypatch.delenv(key)
    with pytest.raises(InputError, match="^[^\n]*$") as caught:
        get_model(name)
    assert variable in str(caught.value)
    assert "[" not in str(caught.value)


def test_a_key_of_the_environment_is_sent_to_a_named_server(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOCAL_API_KEY", "secret")
    with served(SUBMIT) as server:
        server.ask()
    assert server.requests[0].headers["authorization"] == "Bearer secret"


def test_a_provider_whose_package_is_missing_says_what_to_install():
    if find_spec("mistralai") is not None:
        pytest.skip("mistralai is installed")
    with pytest.raises(InputError, match="pip install mistralai"):
        get_model("mistral/large")


def test_an_unknown_effort_is_refused():
    with pytest.raises(InputError, match="reasoning effort 'huge' is unknown; choose from: none, "):
        get_model(SERVED, ModelOptions(base_url="http://127.0.0.1:9/v1", reasoning_effort="huge"))


def test_without_the_extra_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("finskillbench.harness.models.find_spec", lambda _: None)
    for look in (check_model, get_model):
        with pytest.raises(InputError, match="needs the extra llm; install it: make llm") as caught:
            look("openai/gpt-5")
        assert "\n" not in str(caught.value)


def _alone(code: str, folder: Path) -> str:
    """Run code in a fresh interpreter inside `folder`."""
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    run = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_checking_a_name_imports_no_provider(tmp_path: Path):
    code = """
        import sys
        from finskillbench.harness.models import check_model
        import finskillbench.harness.models.hosted
        check_model("openai/gpt-5")
        print([name for name in ("inspect_ai", "openai", "anthropic", "httpx2") if name in sys.modules])
    """
    assert _alone(code, tmp_path) == "[]"


def test_making_a_model_touches_neither_logging_nor_environment_nor_disk_nor_network(tmp_path: Path):
    (tmp_path / ".env").write_text("OPENAI_API_KEY=from-dotenv\nINSPECT_LOG_DIR=elsewhere\n")
    code = """
        import logging, os, signal, socket
        def refuse(*_): raise SystemExit("a connection was opened")
        socket.socket.connect = refuse
        before, signals = dict(os.environ), signal.getsignal(signal.SIGINT)
        from finskillbench.errors import InputError
        from finskillbench.harness.models import ModelOptions, get_model
        get_model("openai-api/local/m", ModelOptions(base_url="http://127.0.0.1:9/v1"))
        try:
            get_model("openai/gpt-5")
        except InputError:
            pass
        else:
            raise SystemExit("a key was read from .env")
        changed = {key for key in os.environ.keys() | before.keys() if os.environ.get(key) != before.get(key)}
        root = logging.getLogger()
        print(root.handlers, logging.getLevelName(root.level), sorted(changed), signal.getsignal(signal.SIGINT) is signals)
    """
    assert _alone(code, tmp_path) == "[] WARNING [] True"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env"]


def test_this_process_too_has_its_own_logging():
    assert not [each for each in logging.getLogger().handlers if type(each).__module__.startswith("inspect_ai")]
