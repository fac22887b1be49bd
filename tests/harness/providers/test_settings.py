"""Settings of hosted models: what arrives with a call, budgets for thinking, and arguments that are refused."""

import asyncio
from importlib.util import find_spec

import pytest
from tests.faults.hosted import SERVED, TALK, TOOLS, served
from tests.faults.server import SUBMIT, USAGE, answer

from finskillbench.errors import InputError
from finskillbench.harness.models import ModelOptions, get_model
from finskillbench.harness.providers.settings import CallSettings, fixed_config, parse_model_args

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]
NOWHERE = "http://127.0.0.1:9/v1"


def test_limit_and_seed_go_with_each_call_and_the_rest_with_all():
    options = {"seed": 7, "max_tokens": 800, "temperature": 0.5, "model_args": {"top_p": 0.9, "stream": False}}
    with served(SUBMIT, **options) as server:

        async def ask() -> None:
            await server.model.generate(TALK, TOOLS, "auto")
            await server.model.generate(TALK, TOOLS, "auto", max_tokens=300, repeat=2)
            await server.model.generate(TALK, TOOLS, "auto", max_tokens=10**6, repeat=1)
            await server.model.close()

        asyncio.run(ask())
    bodies = [request.body for request in server.requests]
    assert [(body["max_tokens"], body["seed"]) for body in bodies] == [(800, 7), (300, 9), (800, 8)]
    assert {(body["temperature"], body["top_p"]) for body in bodies} == {(0.5, 0.9)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "limit", "thinking"),
    [
        # Anthropic before 4.6, and Gemini 2.5: a budget, which must stay below the limit of the call.
        ("anthropic/claude-sonnet-4-0", {"reasoning_effort": "low"}, 8192, (4096, "low")),
        ("anthropic/claude-sonnet-4-0", {"reasoning_effort": "high"}, 8192, (6144, "high")),
        ("anthropic/claude-sonnet-4-0", {"reasoning_effort": "high"}, 2000, (1500, "high")),
        ("anthropic/claude-sonnet-4-0", {"reasoning_effort": "high"}, 1000, (None, "none")),
        ("anthropic/claude-sonnet-4-0", {"model_args": {"reasoning_tokens": 2000}}, 8192, (2000, None)),
        ("google/gemini-2.5-pro", {"reasoning_effort": "high"}, 4000, (3000, "high")),
        ("google/gemini-2.5-flash", {"model_args": {"reasoning_tokens": 5000}}, 500, (None, "none")),
        # Effort alone, or no thinking at all: the limit of the answer covers all.
        ("anthropic/claude-sonnet-4-6", {"reasoning_effort": "high"}, 1000, (None, "high")),
        ("google/gemini-3-pro", {"reasoning_effort": "low"}, 500, (None, "low")),
        ("google/gemini-2.5-pro", {}, 500, (None, None)),
        ("openai/gpt-5", {"reasoning_effort": "high"}, 500, (None, "high")),
    ],
)
def test_a_budget_for_thinking_leaves_room_for_an_answer(monkeypatch, name: str, options, limit: int, thinking):
    for provider in ("ANTHROPIC", "GOOGLE", "OPENAI"):
        monkeypatch.setenv(f"{provider}_API_KEY", "k")
    chosen = ModelOptions(**options)
    made = CallSettings(get_model(name, chosen)._model.api, fixed_config(chosen)).of(limit, None)
    assert (made.max_tokens, (made.reasoning_tokens, made.reasoning_effort)) == (min(limit, 8192), thinking)


def test_reasoning_that_a_server_leaves_out_of_the_output_is_counted():
    told = {**USAGE, "completion_tokens": 50, "total_tokens": 1070}
    for usage, counted in ((USAGE, 50), (told, 70)):
        with served(answer(text="Hm.", usage=usage)) as server:
            assert server.ask().usage.output_tokens == counted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "--model-args is not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"api_key": "sk-1"}', "api_key holds a secret"),
        ('{"extra_body": {"deep": {"Authorization": "Bearer x"}}}', "Authorization holds a secret"),
        ('{"extra_body": {"x": "of-the-environment"}}', "x holds a secret"),
        ('{"extra_body": {"max_tokens": 5}}', "extra_body.max_tokens is set by an option"),
        ('{"temperatur": 1}', "has no argument 'temperatur'"),
        ('{"topp": 1}', "did you mean top_p?"),
        ('{"max_tokens": 1}', "has no argument 'max_tokens'"),
        ('{"base_url": "http://elsewhere"}', "has no argument 'base_url'"),
        ('{"top_p": "high"}', "model_args: top_p: "),
    ],
)
def test_arguments_that_are_refused_are_told_in_one_line(monkeypatch: pytest.MonkeyPatch, text: str, said: str):
    monkeypatch.setenv("SOME_API_KEY", "of-the-environment")
    with pytest.raises(InputError) as caught:
        get_model(SERVED, ModelOptions(base_url=NOWHERE, model_args=parse_model_args(text)))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_counts_under_a_name_like_a_secret_are_none():
    assert parse_model_args('{"reasoning_tokens": 2000}') == {"reasoning_tokens": 2000}
