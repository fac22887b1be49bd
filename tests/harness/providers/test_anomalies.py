"""Each known anomaly of a provider is met as its table says, with the real client over a real socket."""

from __future__ import annotations

import math
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import pytest_socket
from tests.faults.anomalies import ANOMALIES, good
from tests.faults.answers import CLAUDE, RESPONSES, Anomaly, events
from tests.faults.hosted import SERVED, play, served, warm
from tests.faults.server import Reply, Request

from finskillbench.errors import Cause, ProviderError
from finskillbench.harness.providers.prices import Price, PriceTable

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]
PRICES = PriceTable(dict.fromkeys((SERVED, RESPONSES, CLAUDE), Price(1.0, 0.1, 1.0, 4.0)), "2026-01-01")
PAGE = Path(__file__).parents[3] / "docs" / "providers.md"


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    pytest_socket.enable_socket()  # the mark enables it only for the tests themselves
    warm(SERVED)


@pytest.mark.parametrize("anomaly", ANOMALIES, ids=lambda anomaly: anomaly.what)
def test_an_anomaly_has_its_consequence(anomaly: Anomaly, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "k")
    replies, waits = [anomaly.reply], []
    other_protocol = anomaly.model in (CLAUDE, RESPONSES)

    def script(request: Request) -> Reply:
        # A server of another protocol ends the episode after the anomaly: only the first answer is in question.
        if other_protocol:
            return replies.pop() if replies and request.body.get("tools") else Reply(400, b"{}")
        return replies.pop() if replies else good()

    with served(script, anomaly.model, prices=PRICES) as server:
        trace = play(server.model, waits)
        asked = len(server.requests)
    assert trace.incidents[: len(anomaly.follows)] == anomaly.follows
    assert all(math.isfinite(wait) and 0 <= wait <= 120 for wait in waits)
    assert trace.retries == (anomaly.deed == "retry")
    if anomaly.deed == "refuse":
        assert (trace.ended, trace.answer, asked) == ("error", None, 1)
        assert anomaly.words in (trace.error or "")
        return
    if other_protocol:
        return
    assert len(trace.incidents) == len(anomaly.follows)
    if anomaly.follows != ("context_overflow",):
        assert (trace.ended, trace.answer) == ("submitted", '{"weights": {"T00": 1.0}}')
    if anomaly.deed == "accept":
        assert (asked, trace.usage.input_tokens, trace.usage.output_tokens) == (1, 1000, 50)


@pytest.mark.parametrize(
    "anomaly", [each for each in ANOMALIES if each.deed == "retry"], ids=lambda anomaly: anomaly.what
)
def test_a_failure_that_stays_is_an_error_in_the_words_of_the_provider(
    anomaly: Anomaly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    with served(anomaly.reply, anomaly.model) as server:
        trace = play(server.model)
    assert (trace.ended, trace.error_cause, trace.retries) == ("error", anomaly.follows[0], 3)
    assert anomaly.words in (trace.error or "")


def test_an_error_of_no_known_type_inside_a_stream_is_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    strange = {"type": "error", "error": {"type": "strange_error", "message": "Something odd"}}
    with served(events(strange), CLAUDE) as server, pytest.raises(ProviderError, match="Something odd") as caught:
        server.ask()
    assert caught.value.cause is Cause.SERVER


def test_the_page_is_the_table() -> None:
    assert len({each.what for each in ANOMALIES}) == len(ANOMALIES)
    assert len({each.thread for each in ANOMALIES}) >= 60
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", each.thread) for each in ANOMALIES)
    wanted = [f"| {row.what} | {row.deed} | {', '.join(row.follows)} | {row.thread} |" for row in ANOMALIES]
    text = PAGE.read_text(encoding="utf-8")
    assert text[text.index("| reply |") :].split("\n\n")[0].splitlines()[2:] == wanted
