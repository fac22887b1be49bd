"""A hostile server ends no more than its episode, learns nothing, and leaves no key behind."""

import math
from importlib.util import find_spec

import orjson
import pytest
import pytest_socket
from tests.faults.hosted import SERVED, play, served, warm
from tests.faults.hostile import HOSTILE, KEY, once

from finskillbench.harness.providers.prices import Price, PriceTable

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]

PRICES = PriceTable({SERVED: Price(1.0, 0.1, 1.0, 4.0)}, "2026-01-01")
"""Of a model without a price nobody expects token counts."""


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    pytest_socket.enable_socket()  # the mark enables it only for the tests themselves
    warm(SERVED)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_API_KEY", KEY)


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_costs_at_most_its_episode(name: str) -> None:
    expected, waits = HOSTILE[name], []
    with served(once(name), prices=PRICES) as server:
        trace = play(server.model, waits)
    assert trace.incidents == expected.incidents
    assert (trace.ended, trace.answer is None) == ("error" if expected.ends else "submitted", expected.ends)
    assert all(math.isfinite(wait) and 0 <= wait <= 120 for wait in waits)
    assert KEY.encode() not in orjson.dumps(trace)
    written = "".join(filter(str.isalnum, " ".join(message.content for message in trace.messages).lower()))
    core = "".join(filter(str.isalnum, KEY.lower()))
    assert core not in written
    assert core[::-1] not in written
    counts = trace.usage
    if "usage_unknown" in trace.incidents:
        assert (counts.input_tokens, counts.cached_tokens, counts.output_tokens, counts.cost_usd) == (None,) * 4
    else:
        assert 0 <= counts.cached_tokens <= counts.input_tokens < 1e5
