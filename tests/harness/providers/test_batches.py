"""Calls that go through a provider's batch interface: what is sent, what it costs, what fails."""

from __future__ import annotations

import asyncio
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.faults.batches import BatchServer
from tests.faults.hosted import TALK, TOOLS
from tests.faults.server import OVERFLOW, SUBMIT, Reply, answer, error

from finskillbench.errors import Cause, InputError, ProviderError
from finskillbench.harness.model import Turn
from finskillbench.harness.models import ModelOptions, get_model
from finskillbench.harness.providers.prices import PriceTable

pytestmark = [
    pytest.mark.slow,
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]
NAME = "openai/gpt-4.1"


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect looks after batches every 15 seconds."""
    from inspect_ai.model._providers.util import batch

    monkeypatch.setattr(batch, "DEFAULT_BATCH_TICK", 0.02)
    monkeypatch.setattr(batch, "DEFAULT_SEND_DELAY", 0.05)
    monkeypatch.setenv("OPENAI_API_KEY", "k")


def ask(server: BatchServer, calls: int = 1, **options: object) -> list[Turn | BaseException]:
    model = get_model(
        NAME, ModelOptions(base_url=server.url, batch=True, model_args={"responses_api": False}, **options)
    )

    async def main() -> list[Turn | BaseException]:
        try:
            asked = (model.generate(TALK, TOOLS, "auto", repeat=each) for each in range(calls))
            return await asyncio.gather(*asked, return_exceptions=True)
        finally:
            await model.close()

    return asyncio.run(main())


def test_calls_made_together_are_one_batch() -> None:
    with BatchServer(lambda _: SUBMIT) as server:
        turns = ask(server, calls=5, seed=3)
    (requests,) = server.batches.values()
    assert server.single == []
    assert sorted(request.body["seed"] for request in requests) == [3, 4, 5, 6, 7]
    assert all(isinstance(turn, Turn) and turn.tool_calls[0].name == "submit_answer" for turn in turns)


def test_arguments_arrive_as_they_were_written() -> None:
    with BatchServer(lambda _: answer(("submit_answer", '{"answer": "{\\"a\\": 1.50, \\"a\\": 2}"}'))) as server:
        (turn,) = ask(server)
    assert turn.tool_calls[0].arguments == '{"answer": "{\\"a\\": 1.50, \\"a\\": 2}"}'


def test_a_call_in_a_batch_costs_half() -> None:
    with BatchServer(lambda _: SUBMIT) as server:
        (turn,) = ask(server)
    table = PriceTable.load()
    assert turn.usage.cost_usd == pytest.approx(0.5 * table.price_of(NAME).cost(turn.usage), rel=1e-12)
    assert turn.usage.input_tokens == 1000


def test_a_failure_in_a_batch_fails_one_call() -> None:
    replies = [error(429, "slow down"), error(400, "wrong", "invalid_value"), Reply(manner="never"), Reply(body=b"{}")]
    with BatchServer(lambda request: [*replies, OVERFLOW, SUBMIT][request.body["seed"]]) as server:
        turns = ask(server, calls=6, seed=0)
    causes = [turn.cause for turn in turns if isinstance(turn, ProviderError)]
    assert causes == [Cause.RATE_LIMIT, Cause.BAD_REQUEST, Cause.TIMEOUT, Cause.EMPTY]
    assert [turn.stop for turn in turns if isinstance(turn, Turn)] == ["context_overflow", "done"]


@pytest.mark.parametrize("odd", [{"error": "boom"}, {"response": "text"}, {"response": {"status_code": 200}}])
def test_an_odd_line_fails_one_call(monkeypatch: pytest.MonkeyPatch, odd: dict[str, object]) -> None:
    def answers(server: BatchServer, name: str) -> list[bytes]:
        first, *others = told(server, name)
        return [json.dumps({"custom_id": json.loads(first)["custom_id"], **odd}).encode(), *others]

    told = BatchServer.answers
    monkeypatch.setattr(BatchServer, "answers", answers)
    with BatchServer(lambda _: SUBMIT) as server:
        turns = ask(server, calls=3)
    assert [isinstance(turn, ProviderError) for turn in turns] == [True, False, False]


def test_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with BatchServer(lambda _: SUBMIT) as server:
        ask(server)
    assert capsys.readouterr() == ("", "")


def test_a_batch_that_is_rejected_fails_all_its_calls() -> None:
    with BatchServer(lambda _: SUBMIT) as server:
        server.refuse = True
        turns = ask(server, calls=2)
    assert all(isinstance(turn, ProviderError) for turn in turns)
    assert {turn.cause for turn in turns} == {Cause.SERVER}


def test_an_answer_that_was_kept_is_in_no_batch(tmp_path: Path) -> None:
    with BatchServer(lambda _: SUBMIT) as server:
        cache = tmp_path / "answers.sqlite"
        (first,) = ask(server, response_cache=cache)
        model = get_model(
            NAME,
            ModelOptions(base_url=server.url, batch=True, model_args={"responses_api": False}, response_cache=cache),
        )
        kept = model.recall(TALK, TOOLS, "auto", None, 0)
    assert kept is not None
    assert kept.tool_calls == first.tool_calls
    assert kept.usage.saved_usd == first.usage.cost_usd


def test_a_provider_without_batches_is_refused() -> None:
    with pytest.raises(
        InputError, match="openai-api/local/tiny': its provider has no batch interface; use one of anthropic, "
    ):
        get_model("openai-api/local/tiny", ModelOptions(base_url="http://127.0.0.1:9/v1", batch=True))
